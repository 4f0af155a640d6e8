// The element-wise operations: one line each, with the host's definition in double precision. The device's
// is the line of the same number in unary.comp or binary.comp.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "tuff/tuff.h"

namespace tuff::elementwise {

struct UnaryOp {
  int32_t op;
  const char* name;
  double flops;  // a rough price for one element, for deciding when to submit
  double (*apply)(double);
};

struct BinaryOp {
  int32_t op;
  const char* name;
  double flops;
  double (*apply)(double, double);
};

inline constexpr UnaryOp kUnaryOps[] = {
    {TUFF_UNARY_RELU, "relu", 1, [](double x) { return x < 0 ? 0 : x; }},
    {TUFF_UNARY_SIGMOID, "sigmoid", 30, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {TUFF_UNARY_TANH, "tanh", 40, [](double x) { return std::tanh(x); }},
    {TUFF_UNARY_EXP, "exp", 20, [](double x) { return std::exp(x); }},
    {TUFF_UNARY_LOG, "log", 25, [](double x) { return std::log(x); }},
    {TUFF_UNARY_SQRT, "sqrt", 4, [](double x) { return std::sqrt(x); }},
    {TUFF_UNARY_ABS, "abs", 1, [](double x) { return std::fabs(x); }},
    {TUFF_UNARY_NEG, "neg", 1, [](double x) { return -x; }},
};

inline constexpr BinaryOp kBinaryOps[] = {
    {TUFF_BINARY_ADD, "add", 1, [](double a, double b) { return a + b; }},
    {TUFF_BINARY_SUB, "sub", 1, [](double a, double b) { return a - b; }},
    {TUFF_BINARY_MUL, "mul", 1, [](double a, double b) { return a * b; }},
    {TUFF_BINARY_DIV, "div", 8, [](double a, double b) { return a / b; }},
    {TUFF_BINARY_MAX, "max", 1, [](double a, double b) { return std::isnan(a) || a > b ? a : b; }},
    {TUFF_BINARY_MIN, "min", 1, [](double a, double b) { return std::isnan(a) || a < b ? a : b; }},
};

template <typename Op, uint32_t count>
constexpr const Op* find(const Op (&table)[count], int32_t op) {
  for (const Op& entry : table) {
    if (entry.op == op) return &entry;
  }
  return nullptr;
}

}  // namespace tuff::elementwise
