// Functions in double precision that the standard library lacks, for the host backend and for derivatives.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

namespace tuff::elementwise {

// pi / tan(pi x); |x - whole| <= 1/2 keeps the digits of a large x.
inline double pi_cotangent(double x) { return std::numbers::pi / std::tan(std::numbers::pi * (x - std::round(x))); }

// Reflection for negative x, recurrence up to 10, then the asymptotic series in 1 / x^2 of Bernoulli numbers.
inline double digamma(double x) {
  if (x == 0) return -std::copysign(std::numeric_limits<double>::infinity(), x);
  if (x < 0) {
    if (std::floor(x) == x) return std::numeric_limits<double>::quiet_NaN();
    return digamma(1 - x) - pi_cotangent(x);
  }
  if (std::isinf(x)) return x;
  double below = 0;
  for (; x < 10; x += 1) below += 1 / x;
  const double z = 1 / (x * x);
  const double series =
      z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * 691.0 / 32760)))));
  return std::log(x) - 0.5 / x - series - below;
}

// The derivative of digamma.
inline double trigamma(double x) {
  if (x < 0.5) {
    const double cotangent = pi_cotangent(x);
    return std::numbers::pi * std::numbers::pi + cotangent * cotangent - trigamma(1 - x);
  }
  double below = 0;
  for (; x < 10; x += 1) below += 1 / (x * x);
  const double z = 1 / (x * x);
  const double series = 1.0 / 6 - z * (1.0 / 30 - z * (1.0 / 42 - z * (1.0 / 30 - z * 5.0 / 66)));
  return below + 1 / x + z / 2 + z / x * series;
}

// Winitzki's approximation, within 0.2 percent, and two of Halley's steps, which cube the error.
inline double erfinv(double x) {
  const double a = std::fabs(x);
  if (!(a < 1)) return a == 1 ? x * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  constexpr double kHalfRootPi = 0.88622692545275801;
  double y = kHalfRootPi * a;
  if (a > 1e-3) {
    const double l = std::log1p(-a * a), t = 2 / (std::numbers::pi * 0.147) + l / 2;
    y = std::sqrt(std::sqrt(t * t - l / 0.147) - t);
  }
  for (int step = 0; step < 4; ++step) {
    const double error = a < 0.5 ? std::erf(y) - a : (1 - a) - std::erfc(y);
    const double e = error * kHalfRootPi * std::exp(y * y);
    y -= e / (1 + y * e);
  }
  return std::copysign(y, x);
}

}  // namespace tuff::elementwise
