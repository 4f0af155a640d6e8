// Error bounds of f32 results, derived by error analysis (Higham, Accuracy and Stability of Numerical Algorithms,
// chapters 3 and 4), never tuned until a test passes.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>

namespace tuff_test {

inline constexpr double kU = 0x1p-24;  // unit roundoff of f32

// gamma_n = n u / (1 - n u): n successive roundings change a value by a factor within 1 +- gamma_n.
inline double gamma(double n) { return n * kU / (1 - n * kU); }

inline double ceil_log2(uint64_t n) { return n <= 1 ? 0 : std::ceil(std::log2(static_cast<double>(n))); }

// Consecutive additions in one lane, over all stages, before lanes are combined in a tree. The reduce kernels stay
// below this (kernels/reduce/reduce_vulkan.cpp); a serial chain over a large axis would be far above.
inline constexpr double kSerialAdditions = 256;

// The number of roundings on the longest path of a sum of n terms.
inline double sum_depth(uint64_t n) { return std::min(static_cast<double>(n), ceil_log2(n) + kSerialAdditions); }

// One unit in the last place at a value; below the normal range, the smallest denormal.
inline double ulp(double value) {
  const double magnitude = std::fabs(value);
  if (!(magnitude > FLT_MIN)) return 0x1p-149;
  int exponent;
  std::frexp(magnitude, &exponent);  // magnitude in [2^(e-1), 2^e)
  return std::ldexp(1.0, exponent - 24);
}

// Relative error of exp(x) as a shader may compute it: 3 + 2|x| ULP (Vulkan specification, "Precision and
// Operation of SPIR-V Instructions"); one ULP is at most 2 u of the value.
inline double exp_error(double x) { return (3 + 2 * std::fabs(x)) * 2 * kU; }

}  // namespace tuff_test
