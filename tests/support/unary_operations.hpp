// The unary operations of unary.def, with independent definitions in double precision.
#pragma once

#include <cfloat>
#include <cmath>

#include "support/bounds.hpp"
#include "tuff/tuff.h"

namespace tuff_test {

struct Operation {
  int32_t op;
  const char* name;
  double (*reference)(double);
  double ulps;                       // 0: exact; otherwise what the library promises for f32
  double (*more)(double) = nullptr;  // further ULP that depend on the argument
  double allowed(double x) const { return ulps + (more != nullptr ? more(x) : 0); }
};

namespace definition {
inline double relu(double x) { return std::isnan(x) ? x : x > 0 ? x : 0; }
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double tanh(double x) { return std::tanh(x); }
inline double exp(double x) { return std::exp(x); }
inline double log(double x) { return std::log(x); }
inline double sqrt(double x) { return std::sqrt(x); }
inline double sin(double x) { return std::sin(x); }
inline double cos(double x) { return std::cos(x); }
inline double erf(double x) { return std::erf(x); }
inline double abs(double x) { return std::fabs(x); }
inline double neg(double x) { return -x; }

inline double gelu(double x) { return std::isinf(x) && x < 0 ? 0 : 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }
inline double silu(double x) { return std::isinf(x) && x < 0 ? 0 : x / (1 + std::exp(-x)); }
inline double gelu_argument(double x) { return std::sqrt(8 / std::acos(-1.0)) * (x + 0.044715 * x * x * x); }
inline double gelu_tanh(double x) { return std::isinf(x) && x < 0 ? 0 : x / (1 + std::exp(-gelu_argument(x))); }
inline double leaky_relu(double x) { return x < 0 ? double{0.01f} * x : x; }
inline double elu(double x) { return x < 0 ? std::expm1(x) : x; }
inline double hardswish(double x) { return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6; }
inline double softplus(double x) {
  return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x))) + 0 * (std::isnan(x) ? x : 0);
}
}  // namespace definition

// The argument t of the sigmoid takes 7 roundings (two constants, five operations), each a relative error of at most u
// = 1/2 ULP. The sigmoid turns a relative error of t into that times t (1 - sigmoid(t)).
inline double gelu_tanh_more(double x) {
  const double t = std::fmin(std::fabs(definition::gelu_argument(x)), 200);
  return x < 0 ? 7 * t : 7 * t * std::exp(-t);
}

// The table and its promises are the library's; the reference functions are defined above.
inline constexpr Operation kOperations[] = {
#define UNARY(number, NAME, name, file, ulps, ...)   \
  {TUFF_UNARY_##NAME, #name, definition::name, ulps, \
   TUFF_UNARY_##NAME == TUFF_UNARY_GELU_TANH ? gelu_tanh_more : nullptr},
#include "kernels/elementwise/unary.def"
};

inline bool denormal(double x) { return x != 0 && std::fabs(x) < FLT_MIN; }

// The distance of `got` from the exact result, in ULP. For a denormal result, a zero of the right sign counts as
// exact; NaN must match NaN; infinity counts as one step above the largest number.
inline double error_in_ulp(double want, float got) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(want)) return got == want ? 0 : INFINITY;
  if (denormal(want) && got == 0 && std::signbit(got) == std::signbit(want)) return 0;
  const double limit = std::ldexp(1.0, 128);  // anything larger is infinite in f32
  if (std::fabs(want) > limit) want = std::copysign(limit, want);
  return std::fabs((std::isinf(got) ? std::copysign(limit, got) : got) - want) / ulp(want);
}

}  // namespace tuff_test
