// A GEMM with its operands laid out in memory, solved in f64: the basis of the gemm tests and of those of its
// guarantees.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/tensor.hpp"

namespace tuff_test {

struct GemmShape {
  int32_t ta = TUFF_NO_TRANS, tb = TUFF_NO_TRANS;
  uint64_t m = 1, n = 1, k = 1;
  double alpha = 1, beta = 0;                // f32 holds them exactly
  uint64_t pad_a = 0, pad_b = 0, pad_c = 0;  // leading dimension beyond the stored row
  uint64_t shift = 0;                        // bytes by which each operand starts off a 256-byte boundary
  uint64_t batch = 1;
  bool repeat_a = false, repeat_b = false;  // stride 0
  uint64_t gap = 0;                         // elements between the matrices of a batch

  std::string name() const;
  double work() const;
  double largest_operand() const;  // elements
};

// A batch of row-major matrices in one buffer.
struct MatrixLayout {
  uint64_t rows, cols, ld, stride, batch;
  uint64_t elements() const;
  uint64_t index(uint64_t matrix, uint64_t row, uint64_t col) const { return matrix * stride + row * ld + col; }
};

enum class Tier { exact, bound };

struct GemmProblem {
  GemmProblem(const GemmShape& shape, Tier tier);

  GemmShape shape;
  MatrixLayout a_layout, b_layout, c_layout;
  std::vector<float> a, b, c;  // as stored; gaps are poison, and so is all of c if beta is 0
  Expected expected;           // c's elements in storage order; gaps must stay unchanged
};

// Calls tuff_gemm, or tuff_batched_gemm for a batch.
tuff_status call_gemm(tuff_stream stream, const GemmProblem& problem, tuff_buffer a, tuff_buffer b, tuff_buffer c);

// Compares c, including its gaps.
void expect_gemm(const GemmProblem& problem, const std::vector<float>& c);

// Solves, runs and compares it.
void run_gemm(tuff_context context, const GemmShape& shape, Tier tier);

}  // namespace tuff_test
