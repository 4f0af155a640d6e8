// The binary operations of binary.def, with independent definitions in double precision.
#pragma once

#include <cmath>
#include <cstdint>

#include "tuff/tuff.h"

namespace tuff_test {

struct BinaryOperation {
  int32_t op;
  const char* name;
  // f64 holds sums, differences and products of f32 accurately enough for a single rounding to f32.
  double (*reference)(double, double);
  double ulps;  // 0: correctly rounded; otherwise what the library promises for f32
};

namespace definition {
inline double add(double a, double b) { return a + b; }
inline double sub(double a, double b) { return a - b; }
inline double mul(double a, double b) { return a * b; }
inline double div(double a, double b) { return a / b; }
inline double max(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b; }
inline double min(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : a < b ? a : b; }
inline double pow(double a, double b) { return std::pow(a, b); }
}  // namespace definition

inline constexpr BinaryOperation kBinaryOperations[] = {
#define BINARY(number, NAME, name, python, file, ulps, ...) {TUFF_BINARY_##NAME, #name, definition::name, ulps},
#include "kernels/elementwise/binary.def"
};

}  // namespace tuff_test
