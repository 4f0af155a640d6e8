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
inline double log_sigmoid(double x) { return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x)); }

inline double square(double x) { return x * x; }
inline double cube(double x) { return x * x * x; }
inline double sign(double x) { return std::isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0; }
inline double floor(double x) { return std::floor(x); }
inline double ceil(double x) { return std::ceil(x); }
inline double round(double x) {
  if (!(std::fabs(x) < 0x1p52)) return x;
  const double below = std::floor(x), part = x - below;
  const bool up = part > 0.5 || (part == 0.5 && std::fmod(below, 2) != 0);
  return std::copysign(up ? below + 1 : below, x);
}
inline double trunc(double x) { return std::trunc(x); }
inline double reciprocal(double x) { return 1 / x; }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline double cbrt(double x) { return std::cbrt(x); }
inline double exp2(double x) { return std::exp2(x); }
inline double expm1(double x) { return std::expm1(x); }
inline double log2(double x) { return std::log2(x); }
inline double log10(double x) { return std::log10(x); }
inline double log1p(double x) { return std::log1p(x); }
inline double tan(double x) { return std::tan(x); }
inline double asin(double x) { return std::asin(x); }
inline double acos(double x) { return std::acos(x); }
inline double atan(double x) { return std::atan(x); }
inline double sinh(double x) { return std::sinh(x); }
inline double cosh(double x) { return std::cosh(x); }
inline double asinh(double x) { return std::asinh(x); }
inline double acosh(double x) { return std::acosh(x); }
inline double atanh(double x) { return std::atanh(x); }
inline double erfc(double x) { return std::erfc(x); }
inline double selu(double x) {
  const double scale = 1.0507009873554804934, alpha = 1.6732632423543772848;
  return scale * (x > 0 ? x : alpha * std::expm1(x));
}
inline double softsign(double x) { return std::isinf(x) ? (x > 0 ? 1 : -1) : x / (1 + std::fabs(x)); }
inline double hardsigmoid(double x) { return std::isnan(x) ? x : std::fmin(std::fmax(x + 3, 0), 6) / 6; }
// tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2) and e = exp(x)
inline double mish(double x) {
  if (x > 30) return x;
  if (x < -700) return -0.0;
  const double n = std::exp(x) * (std::exp(x) + 2);
  return x * (n / (n + 2));
}
// Newton's iteration for erf(y) = |x|, or for ln erfc(y) = ln(1 - |x|), which is almost a parabola.
inline double erfinv(double x) {
  const double a = std::fabs(x), root_pi = std::sqrt(std::acos(-1.0));
  if (!(a < 1)) return a == 1 ? std::copysign(INFINITY, x) : NAN;
  double y = a < 0.5 ? a * root_pi / 2 : std::sqrt(-std::log((1 - a) * (1 + a)));
  for (double last = -1; std::fabs(y - last) > 1e-15 * y;) {
    last = y;
    const double derivative = 2 / root_pi * std::exp(-y * y);
    if (a < 0.5) {
      y -= (std::erf(y) - a) / derivative;
    } else {
      y += (std::log(std::erfc(y)) - std::log(1 - a)) * std::erfc(y) / derivative;
    }
    if (std::fabs(y - last) < 1e-9 * y) break;  // the step squares the error
  }
  return std::copysign(y, x);
}
// Stirling's series above 15. Below, the recurrence; for negative x, the reflection.
inline double lgamma(double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return INFINITY;
  const double pi = std::acos(-1.0);
  if (x < 0.5) {
    if (std::floor(x) == x) return INFINITY;
    const double sine = std::fabs(std::sin(pi * (x - std::round(x))));
    if (x > -1e-3) return std::log(pi / sine) - lgamma(1 - x);
    return std::log(pi) - std::log(sine) - lgamma(1 - x);
  }
  if (x > 1e17) return x * (std::log(x) - 1);
  if (std::fabs(x - 1) < 0.02 || std::fabs(x - 2) < 0.02) {  // the series of Riemann's zeta about the zeros
    const double zeta[] = {1.6449340668482264, 1.2020569031595942, 1.0823232337111382, 1.0369277551433699,
                           1.0173430619844491, 1.0083492773819228, 1.0040773561979443, 1.0020083928260822};
    const double t = x < 1.5 ? x - 1 : x - 2;
    double sum = 0, power = t;
    for (int k = 2; k < 10; ++k) power *= -t, sum -= zeta[k - 2] * power / k;
    return (x < 1.5 ? -0.57721566490153286 : 1 - 0.57721566490153286) * t + sum - (x < 1.5 ? 0 : t - std::log1p(t));
  }
  double product = 1;
  for (; x < 15; x += 1) product *= x;
  const double z = 1 / (x * x);
  const double series = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z / 1188)))) / x;
  return (x - 0.5) * std::log(x) - x + 0.5 * std::log(2 * pi) + series - std::log(product);
}
// The same for its derivative, with the tangent's own reflection.
inline double digamma(double x) {
  if (std::isnan(x)) return x;
  if (x == 0) return std::signbit(x) ? INFINITY : -INFINITY;
  if (x < 0) {
    const double pi = std::acos(-1.0), part = x - std::round(x);
    if (part == 0 || std::isinf(x)) return NAN;
    return digamma(-x) - 1 / x - pi * std::cos(pi * part) / std::sin(pi * part);
  }
  if (std::isinf(x)) return x;
  double sum = 0;
  for (; x < 15; x += 1) sum += 1 / x;
  const double z = 1 / (x * x);
  return std::log(x) - 0.5 / x - z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z / 132)))) - sum;
}
}  // namespace definition

// The argument t of the sigmoid takes 7 roundings (two constants, five operations), each a relative error of at most u
// = 1/2 ULP. The sigmoid turns a relative error of t into that times t (1 - sigmoid(t)).
inline double gelu_tanh_more(double x) {
  const double t = std::fmin(std::fabs(definition::gelu_argument(x)), 200);
  return x < 0 ? 7 * t : 7 * t * std::exp(-t);
}

// For negative arguments the function of -x or 1 - x is subtracted from terms that are as large near a zero, so that
// the errors of the terms remain: 4 ULP of the function of |x|, or of 1 (lgamma) and 4 (digamma), which bound the
// factors of the other terms. The function of |x| takes 3/2 ULP. The terms of lgamma are a logarithm (1 ULP) of a
// product with three roundings (3/2 ULP of 1); those of digamma are a reciprocal and a product (3/2 ULP), and two sums
// (1 ULP).
inline double reflected_more(double x, double of_x, double of_size, double least) {
  if (!(x < 0) || !std::isfinite(of_x)) return 0;
  return 4 * ulp(std::fmax(std::fabs(of_size), least)) / ulp(of_x);
}
inline double lgamma_more(double x) { return reflected_more(x, definition::lgamma(x), definition::lgamma(-x), 1); }
inline double digamma_more(double x) { return reflected_more(x, definition::digamma(x), definition::digamma(-x), 4); }

constexpr auto more_of(int32_t op) {
  return op == TUFF_UNARY_GELU_TANH ? gelu_tanh_more
         : op == TUFF_UNARY_LGAMMA  ? lgamma_more
         : op == TUFF_UNARY_DIGAMMA ? digamma_more
                                    : nullptr;
}

// The table and its promises are the library's; the reference functions are defined above.
inline constexpr Operation kOperations[] = {
#define UNARY(number, NAME, name, file, ulps, ...) \
  {TUFF_UNARY_##NAME, #name, definition::name, ulps, more_of(TUFF_UNARY_##NAME)},
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
