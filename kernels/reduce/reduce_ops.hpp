// The reductions: one line each. The device's definition of a line's `partial` is in reduce.glsl.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "tuff/tuff.h"

namespace tuff::reduce {

struct Op {
  int32_t op;
  const char* name;
  int32_t partial;  // the operation that gathers values: a mean gathers a sum
  bool mean;        // the gathered value is divided by the number of elements at the end
  bool empty;       // an empty axis has a value
  double identity;
  double (*combine)(double, double);
};

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline double sum(double a, double b) { return a + b; }

inline constexpr Op kOps[] = {
    {TUFF_REDUCE_SUM, "sum", TUFF_REDUCE_SUM, false, true, 0, sum},
    {TUFF_REDUCE_MAX, "max", TUFF_REDUCE_MAX, false, false, -kInfinity,
     [](double a, double b) { return std::isnan(a) || a > b ? a : b; }},
    {TUFF_REDUCE_MIN, "min", TUFF_REDUCE_MIN, false, false, kInfinity,
     [](double a, double b) { return std::isnan(a) || a < b ? a : b; }},
    {TUFF_REDUCE_MEAN, "mean", TUFF_REDUCE_SUM, true, true, 0, sum},
    {TUFF_REDUCE_PROD, "prod", TUFF_REDUCE_PROD, false, true, 1, [](double a, double b) { return a * b; }},
    // Of these, combine gives the value whose place is wanted.
    {TUFF_REDUCE_ARGMAX, "argmax", 0, false, false, -kInfinity,
     [](double a, double b) { return std::isnan(a) || a >= b ? a : b; }},
    {TUFF_REDUCE_ARGMIN, "argmin", 0, false, false, kInfinity,
     [](double a, double b) { return std::isnan(a) || a <= b ? a : b; }},
};

// The result is not a value but where it is, as u32.
inline bool names_a_place(int32_t op) { return op == TUFF_REDUCE_ARGMAX || op == TUFF_REDUCE_ARGMIN; }

inline const Op* find(int32_t op) {
  for (const Op& entry : kOps) {
    if (entry.op == op) return &entry;
  }
  return nullptr;
}

}  // namespace tuff::reduce
