// The element-wise operations of unary.def and binary.def, and the helpers that their definitions in double precision
// use.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "kernels/elementwise/special_functions.hpp"
#include "planning/element_type.hpp"
#include "tuff/tuff.h"

namespace tuff::elementwise {

struct UnaryOp {
  int32_t op;
  const char* name;
  double flops;  // rough cost per element, for deciding when to submit
  double (*apply)(double x, double alpha);
  double alpha = 0;  // default; 0: the operation takes none
};

struct BinaryOp {
  int32_t op;
  const char* name;
  double flops;
  bool integers;  // also takes integers
  double (*apply)(double, double);
  int64_t (*apply_integers)(int64_t, int64_t);  // of 32-bit values; the result is truncated to 32 bits

  ElementTypes types() const;
};

// Activations return their limit at -infinity, where multiplying by 0 would give NaN.
inline bool is_nan(double x) { return std::isnan(x); }
inline bool is_nan(int64_t) { return false; }
inline double weighted(double x, double weight) { return weight == 0 && x < 0 ? -0.0 : x * weight; }
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double relu(double x) { return x < 0 ? 0 : x; }
inline double gelu(double x) { return weighted(x, 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2)); }
inline double silu(double x) { return weighted(x, sigmoid(x)); }
// The sigmoid of t is (1 + tanh(t / 2)) / 2.
inline double gelu_argument(double x) { return 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }
inline double gelu_tanh(double x) { return weighted(x, sigmoid(gelu_argument(x))); }
inline double hardswish(double x) { return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6; }

inline double sign(double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); }
inline double softsign(double x) { return std::isinf(x) ? std::copysign(1, x) : x / (1 + std::fabs(x)); }
inline double hardsigmoid(double x) { return x <= -3 ? 0 : x >= 3 ? 1 : (x + 3) / 6; }
inline double mish_weight(double x) { return std::tanh(std::log1p(std::exp(x))); }

inline constexpr UnaryOp kUnaryOps[] = {
#define UNARY(number, NAME, name, file, ulps, measured, measured_gpu, flops, alpha_by_default, low, high, y, dy) \
  {TUFF_UNARY_##NAME, #name, flops, [](double x, [[maybe_unused]] double alpha) -> double { return y; },         \
   alpha_by_default},
#include "kernels/elementwise/unary.def"
};
#define UNARY(number, NAME, ...) static_assert(TUFF_UNARY_##NAME == number);
#include "kernels/elementwise/unary.def"

// The alpha that a call means, rounded as the device computes with it.
inline float alpha_of(const UnaryOp& op, double alpha) { return static_cast<float>(alpha != 0 ? alpha : op.alpha); }

inline constexpr BinaryOp kBinaryOps[] = {
#define BINARY(number, NAME, name, python, file, ulps, measured, measured_gpu, flops, integers, low, high, y) \
  {TUFF_BINARY_##NAME,                                                                                        \
   #name,                                                                                                     \
   flops,                                                                                                     \
   integers != 0,                                                                                             \
   [](double a, double b) -> double { return y; },                                                            \
   [](int64_t a, int64_t b) -> int64_t { return static_cast<int64_t>(y); }},
#include "kernels/elementwise/binary.def"
};
#define BINARY(number, NAME, ...) static_assert(TUFF_BINARY_##NAME == number);
#include "kernels/elementwise/binary.def"

#define UNARY_TYPE(NAME) TUFF_##NAME,
inline constexpr ElementTypes kUnaryTypes = {
#include "kernels/elementwise/unary.def"
};
#define BINARY_TYPE(NAME) TUFF_##NAME,
inline constexpr ElementTypes kBinaryTypes = {
#include "kernels/elementwise/binary.def"
};
inline ElementTypes BinaryOp::types() const { return integers ? kBinaryTypes : kBinaryTypes & kFloatTypes; }

template <typename Op, uint32_t count>
constexpr const Op* find(const Op (&table)[count], int32_t op) {
  for (const Op& entry : table) {
    if (entry.op == op) return &entry;
  }
  return nullptr;
}

}  // namespace tuff::elementwise
