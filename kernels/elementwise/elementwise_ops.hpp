// The element-wise operations: one line each, with the host's definition in double precision. The device's
// is the line of the same number in unary.comp or binary.comp.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "tuff/tuff.h"

namespace tuff::elementwise {

struct UnaryOp {
  int32_t op;
  const char* name;
  double flops;  // a rough price for one element, for deciding when to submit
  double (*apply)(double x, double alpha);
  double alpha = 0;  // by default; 0: the operation has none
};

struct BinaryOp {
  int32_t op;
  const char* name;
  double flops;
  double (*apply)(double, double);
};

// Activations take their limit at -infinity, where 0 times it would be NaN.
inline double weighted(double x, double weight) { return weight == 0 && x < 0 ? -0.0 : x * weight; }
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double relu(double x) { return x < 0 ? 0 : x; }
inline double gelu(double x) { return weighted(x, 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2)); }
inline double silu(double x) { return weighted(x, sigmoid(x)); }
inline double gelu_tanh(double x) {
  // (1 + tanh(t / 2)) / 2 is the sigmoid of t.
  return weighted(x, sigmoid(2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}
inline double hardswish(double x) { return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6; }

inline constexpr UnaryOp kUnaryOps[] = {
    {TUFF_UNARY_RELU, "relu", 1, [](double x, double) { return relu(x); }},
    {TUFF_UNARY_SIGMOID, "sigmoid", 30, [](double x, double) { return sigmoid(x); }},
    {TUFF_UNARY_TANH, "tanh", 40, [](double x, double) { return std::tanh(x); }},
    {TUFF_UNARY_EXP, "exp", 20, [](double x, double) { return std::exp(x); }},
    {TUFF_UNARY_LOG, "log", 25, [](double x, double) { return std::log(x); }},
    {TUFF_UNARY_SQRT, "sqrt", 4, [](double x, double) { return std::sqrt(x); }},
    {TUFF_UNARY_ABS, "abs", 1, [](double x, double) { return std::fabs(x); }},
    {TUFF_UNARY_NEG, "neg", 1, [](double x, double) { return -x; }},
    {TUFF_UNARY_GELU, "gelu", 60, [](double x, double) { return gelu(x); }},
    {TUFF_UNARY_GELU_TANH, "gelu_tanh", 40, [](double x, double) { return gelu_tanh(x); }},
    {TUFF_UNARY_SILU, "silu", 30, [](double x, double) { return silu(x); }},
    {TUFF_UNARY_LEAKY_RELU, "leaky_relu", 2, [](double x, double alpha) { return x < 0 ? alpha * x : x; }, 0.01},
    {TUFF_UNARY_ELU, "elu", 30, [](double x, double alpha) { return x < 0 ? alpha * std::expm1(x) : x; }, 1},
    {TUFF_UNARY_HARDSWISH, "hardswish", 10, [](double x, double) { return hardswish(x); }},
    {TUFF_UNARY_SOFTPLUS, "softplus", 50,
     [](double x, double) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }},
    {TUFF_UNARY_SIN, "sin", 80, [](double x, double) { return std::sin(x); }},
    {TUFF_UNARY_COS, "cos", 80, [](double x, double) { return std::cos(x); }},
};

// What a call's alpha stands for, as the device computes with it.
inline float alpha_of(const UnaryOp& op, double alpha) { return static_cast<float>(alpha != 0 ? alpha : op.alpha); }

inline constexpr BinaryOp kBinaryOps[] = {
    {TUFF_BINARY_ADD, "add", 1, [](double a, double b) { return a + b; }},
    {TUFF_BINARY_SUB, "sub", 1, [](double a, double b) { return a - b; }},
    {TUFF_BINARY_MUL, "mul", 1, [](double a, double b) { return a * b; }},
    {TUFF_BINARY_DIV, "div", 8, [](double a, double b) { return a / b; }},
    {TUFF_BINARY_MAX, "max", 1, [](double a, double b) { return std::isnan(a) || a > b ? a : b; }},
    {TUFF_BINARY_MIN, "min", 1, [](double a, double b) { return std::isnan(a) || a < b ? a : b; }},
    {TUFF_BINARY_POW, "pow", 120, [](double a, double b) { return std::pow(a, b); }},
};

template <typename Op, uint32_t count>
constexpr const Op* find(const Op (&table)[count], int32_t op) {
  for (const Op& entry : table) {
    if (entry.op == op) return &entry;
  }
  return nullptr;
}

}  // namespace tuff::elementwise
