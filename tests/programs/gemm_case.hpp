// A random GEMM of the exact tier: every value on the way to C is an integer number of quarters that its type can
// represent, so C must match bit for bit, whatever the order of the sums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/typed_gemm.hpp"

namespace tuff_test {

// Cases come in classes. Those of one class differ in sizes, layout and values, and need few pipelines. The first
// classes are short, so that even a short run covers several.
uint64_t class_of(uint64_t number);

struct GemmCase {
  uint64_t number = 0;
  tuff_batched_gemm_desc desc{};  // without buffers
  bool arrays = false;            // a batch given as arrays of buffers
  bool flat = false;              // uses tuff_gemm or tuff_batched_gemm, which take no descriptor
  Residual residual = Residual::none;
  uint64_t shift_a = 0, shift_b = 0, shift_c = 0;  // elements beyond a multiple of 64 bytes
  double scales[3] = {0, 0, 0};                    // of A, B and C, powers of two; 0: none
  uint64_t value_seed = 0;

  std::string types() const;     // f16 x f16 -> f32
  std::string describe() const;  // everything needed to write the call by hand
  double factor() const;         // alpha with the scales of A and B
  double work() const;
};

// Gives the same case for the same seed and number, whatever else is drawn.
GemmCase draw_gemm_case(uint64_t seed, uint64_t number);

// An operand as stored: a batch of matrices, or of vectors (one row).
struct StoredMatrices {
  int32_t dtype = TUFF_F32;
  uint64_t rows = 0, cols = 0, ld = 0, stride = 0, count = 1;

  uint64_t matrix_elements() const { return rows == 0 || cols == 0 ? 0 : (rows - 1) * ld + cols; }
  uint64_t elements() const { return matrix_elements() == 0 ? 0 : (count - 1) * stride + matrix_elements(); }
  uint64_t at(uint64_t matrix, uint64_t row, uint64_t col) const { return matrix * stride + row * ld + col; }
};

struct GemmLayout {
  explicit GemmLayout(const GemmCase& gemm);
  StoredMatrices a, b, c, bias, residual;  // without elements: absent
};

// Memory before and after the call: consecutive operands, guards between and around them, poisoned gaps.
struct GemmImage {
  explicit GemmImage(const GemmCase& gemm);

  GemmLayout layout;
  uint64_t a = 0, b = 0, c = 0, bias = 0, residual = 0;  // bytes from the image's start
  Bytes before, after;
};

// Elements at the end of an operand's view that must not be touched.
inline constexpr uint64_t kInnerGuard = 16;

}  // namespace tuff_test
