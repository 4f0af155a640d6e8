// A random matrix product of the exact tier: every value on the way to C is a whole number of quarters that its type
// holds, so that C has to match bit for bit, whatever the order of the sums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/typed_gemm.hpp"

namespace tuff_test {

// Cases come in classes: those of one class differ in sizes, layout and values, and need few pipelines. The first
// classes are short, so that a short run sees several of them.
uint64_t class_of(uint64_t number);

struct GemmCase {
  uint64_t number = 0;
  tuff_batched_gemm_desc desc{};  // without buffers
  bool arrays = false;            // a batch of buffers
  bool flat = false;              // by tuff_gemm or tuff_batched_gemm, which have no descriptor
  Residual residual = Residual::none;
  uint64_t shift_a = 0, shift_b = 0, shift_c = 0;  // elements beyond a multiple of 64 bytes
  uint64_t value_seed = 0;

  std::string types() const;     // f16 x f16 -> f32
  std::string describe() const;  // all that a person needs to write the call by hand
  double work() const;
};

// The same for the same seed and number, whatever else is drawn.
GemmCase draw_gemm_case(uint64_t seed, uint64_t number);

// An operand as it lies in memory: a batch of stored matrices, or of vectors (one row).
struct StoredMatrices {
  int32_t dtype = TUFF_F32;
  uint64_t rows = 0, cols = 0, ld = 0, stride = 0, count = 1;

  uint64_t matrix_elements() const { return rows == 0 || cols == 0 ? 0 : (rows - 1) * ld + cols; }
  uint64_t elements() const { return matrix_elements() == 0 ? 0 : (count - 1) * stride + matrix_elements(); }
  uint64_t at(uint64_t matrix, uint64_t row, uint64_t col) const { return matrix * stride + row * ld + col; }
};

struct GemmLayout {
  explicit GemmLayout(const GemmCase& gemm);
  StoredMatrices a, b, c, bias, residual;  // no elements: there is none
};

// Memory before and after the call: operands one behind another, guards between and around them, gaps poisoned.
struct GemmImage {
  explicit GemmImage(const GemmCase& gemm);

  GemmLayout layout;
  uint64_t a = 0, b = 0, c = 0, bias = 0, residual = 0;  // bytes from the image's start
  Bytes before, after;
};

// Elements of an image that an operand's view ends with and that nothing may touch.
inline constexpr uint64_t kInnerGuard = 16;

}  // namespace tuff_test
