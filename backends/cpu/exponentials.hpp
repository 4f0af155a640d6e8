// Exponentials of many numbers, in blocks of one size, so that a result does not depend on its place (elementwise.cpp).
// Include vector_math.hpp before everything else.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/vector_math.hpp"

namespace tuff_cpu {

constexpr uint64_t kExpBlock = 64;

// Replaces n <= kExpBlock numbers x by exp(x - shift) and returns the sum of these.
inline double exponentials(double* x, uint64_t n, double shift = 0) {
  if (n == kExpBlock) {
    double sum = 0;
#pragma omp simd
    for (uint64_t i = 0; i < kExpBlock; ++i) x[i] = std::exp(x[i] - shift);
#pragma omp simd reduction(+ : sum)
    for (uint64_t i = 0; i < kExpBlock; ++i) sum += x[i];
    return sum;
  }
  alignas(64) double block[kExpBlock];
  std::copy_n(x, n, block);
  std::fill(block + n, block + kExpBlock, shift);
#pragma omp simd
  for (uint64_t i = 0; i < kExpBlock; ++i) block[i] = std::exp(block[i] - shift);
  std::copy_n(block, n, x);
  std::fill(block + n, block + kExpBlock, 0.0);
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (uint64_t i = 0; i < kExpBlock; ++i) sum += block[i];
  return sum;
}

}  // namespace tuff_cpu
