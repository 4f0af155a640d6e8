// A product of matrices. rows.cpp includes this, so it has no functions.
#pragma once

#include <cstdint>

namespace tuff_cpu {

// C = alpha * op(A) * op(B) + beta * C in f32, row-major: op(A) is m x k, op(B) is k x n. 'T': stored transposed.
struct Product {
  char ta, tb;
  uint64_t m, n, k;
  float alpha;
  const float* a;
  uint64_t lda;
  const float* b;
  uint64_t ldb;
  float beta;
  float* c;
  uint64_t ldc;
};

}  // namespace tuff_cpu
