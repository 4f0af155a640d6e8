// The reductions of reduce.def and the element types that they take and give.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/common/check.hpp"
#include "kernels/reduce/reduce.hpp"
#include "planning/element_type.hpp"
#include "tuff/tuff.h"

namespace tuff::reduce {

// The columns of reduce.def.
enum class Result : uint8_t { value, mean, root, variance, deviation, logarithm, place };
enum class Output : uint8_t { same, sum, real, place, truth, count };
enum class Prepare : uint8_t { plain, nonzero, magnitude, square, distance, exponential };

// The value that leaves the other of two operands unchanged. Integers are as `y` of the table takes them.
struct Identity {
  double of_floats;
  uint64_t of_integers;
};

struct Op {
  int32_t op;
  const char* name;
  int32_t gathers;  // the operation that accumulates values (a mean accumulates a sum); 0: none
  Result result;
  Output output;
  Prepare prepare;
  int32_t center;  // the operation whose result each element is compared with; 0: none
  bool empty;      // an empty axis has a value
  bool selects;    // the result is one of the elements
  Identity identity;
  double (*combine)(double, double);
  long double (*combine_wide)(long double, long double);
  uint64_t (*combine_integers)(uint64_t, uint64_t);
};

namespace table {
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr Identity ZERO{0, 0}, ONE{1, 1}, LOWEST{-kInfinity, 0}, HIGHEST{kInfinity, UINT64_MAX};
enum Rows : int32_t {
  NONE = 0,
#define REDUCE(number, NAME, ...) NAME = number,
#include "kernels/reduce/reduce.def"
};
inline bool is_nan(double x) { return std::isnan(x); }
inline bool is_nan(long double x) { return std::isnan(x); }
inline bool is_nan(uint64_t) { return false; }

inline constexpr Op kOps[] = {
#define REDUCE(number, NAME, name, gathers, result, output, prepare, center, empty, selects, identity, combine, y) \
  {TUFF_REDUCE_##NAME,                                                                                             \
   #name,                                                                                                          \
   gathers,                                                                                                        \
   Result::result,                                                                                                 \
   Output::output,                                                                                                 \
   Prepare::prepare,                                                                                               \
   center,                                                                                                         \
   empty != 0,                                                                                                     \
   selects != 0,                                                                                                   \
   identity,                                                                                                       \
   [](double a, double b) { return y; },                                                                           \
   [](long double a, long double b) { return y; },                                                                 \
   [](uint64_t a, uint64_t b) { return y; }},
#include "kernels/reduce/reduce.def"
};

#define REDUCE(number, NAME, ...) static_assert(TUFF_REDUCE_##NAME == number);
#include "kernels/reduce/reduce.def"
}  // namespace table

#define REDUCE_TYPE(NAME) TUFF_##NAME,
inline constexpr ElementTypes kTypes = {
#include "kernels/reduce/reduce.def"
};

inline const Op* find(int32_t op) {
  for (const Op& entry : table::kOps) {
    if (entry.op == op) return &entry;
  }
  return nullptr;
}

// What an operation gives for elements of a type: the types that may be asked for, and the one for 0.
struct OutputTypes {
  int32_t first;
  ElementTypes all;
};
OutputTypes output_types(const Op& op, int32_t dtype);
inline int32_t output_type(const Op& op, int32_t dtype, int32_t wanted) {
  return wanted != 0 ? wanted : output_types(op, dtype).first;
}

// The type that values are computed in on a device: f32, f64, i32, u32, i64 or u64.
int32_t value_type(const Op& op, int32_t dtype, int32_t output);

// The shape around the reduced axes, checked.
AxisView view_of(const ReduceArgs& args);

}  // namespace tuff::reduce
