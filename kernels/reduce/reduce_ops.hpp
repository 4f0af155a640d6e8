// The reductions of reduce.def and the element types that they take.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "planning/element_type.hpp"
#include "tuff/tuff.h"

namespace tuff::reduce {

enum class Result { value, mean, place };

// The value that leaves the other of two operands unchanged.
struct Identity {
  double of_floats;
  int64_t of_integers;
};

struct Op {
  int32_t op;
  const char* name;
  int32_t gathers;  // the operation that accumulates values (a mean accumulates a sum); 0: none
  Result result;
  bool integers;  // also takes integers
  bool empty;     // an empty axis has a value
  Identity identity;
  double (*combine)(double, double);
  int64_t (*combine_integers)(int64_t, int64_t);  // of 32-bit values; the result is truncated to 32 bits

  ElementTypes types() const;
};

namespace table {
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr Identity ZERO{0, 0}, ONE{1, 1}, LOWEST{-kInfinity, std::numeric_limits<int32_t>::min()},
    HIGHEST{kInfinity, std::numeric_limits<int32_t>::max()};
enum Gathers : int32_t {
  NONE = 0,
#define REDUCE(number, NAME, ...) NAME = number,
#include "kernels/reduce/reduce.def"
};
inline bool is_nan(double x) { return std::isnan(x); }
inline bool is_nan(int64_t) { return false; }

inline constexpr Op kOps[] = {
#define REDUCE(number, NAME, name, gathers, result, integers, empty, selects, identity, combine, y) \
  {TUFF_REDUCE_##NAME,                                                                              \
   #name,                                                                                           \
   gathers,                                                                                         \
   Result::result,                                                                                  \
   integers != 0,                                                                                   \
   empty != 0,                                                                                      \
   identity,                                                                                        \
   [](double a, double b) { return y; },                                                            \
   [](int64_t a, int64_t b) { return y; }},
#include "kernels/reduce/reduce.def"
};

#define REDUCE(number, NAME, ...) static_assert(TUFF_REDUCE_##NAME == number);
#include "kernels/reduce/reduce.def"
}  // namespace table

#define REDUCE_TYPE(NAME) TUFF_##NAME,
inline constexpr ElementTypes kTypes = {
#include "kernels/reduce/reduce.def"
};

inline ElementTypes Op::types() const { return integers ? kTypes : kTypes & kFloatTypes; }

inline const Op* find(int32_t op) {
  for (const Op& entry : table::kOps) {
    if (entry.op == op) return &entry;
  }
  return nullptr;
}

}  // namespace tuff::reduce
