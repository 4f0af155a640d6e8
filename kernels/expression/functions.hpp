// The functions that formulas call: every row of unary.def and binary.def, and those that are only for formulas.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/expression/value_type.hpp"

namespace tuff::expression {

// What a function takes and gives.
enum class Typing : uint8_t {
  numbers,     // any numbers, converted to their common type, which the result has too; bool counts as i32
  floats,      // the same, and integers count as f32
  f32,         // the same; f64 only if the function has `doubles`
  whole,       // floats and integers: an integer is its own result
  compares,    // as numbers, and bool stays bool; the result is bool
  classifies,  // of one float: the result is bool. For an integer it is known
  integers,    // integers only; bool counts as i32
  bits,        // integers, or bool
};

enum class Op : uint8_t {
  unary,   // a row of unary.def
  binary,  // a row of binary.def
  add,
  sub,
  mul,
  div,
  floor_divide,
  mod,
  fmod,
  pow_integers,
  neg,
  abs,
  sign,
  max,
  min,
  sqrt,
  floor,
  ceil,
  trunc,
  round,
  copysign,
  nextafter,
  atan2,
  hypot,
  logaddexp,
  isnan,
  isinf,
  isfinite,
  signbit,
  eq,
  ne,
  lt,
  le,
  bitand_,
  bitor_,
  bitxor,
  bitnot,
  shl,
  shr,
  gcd,
  lcm,
  popcount
};

struct Function {
  const char* name;
  Op op;
  uint32_t arity;
  Typing typing;
  double flops;
  bool wraps = false;     // integer results can leave a narrow type
  uint32_t own = 0;       // bit of TUFF_OWN
  int32_t row = 0;        // TUFF_UNARY_* or TUFF_BINARY_*
  double alpha = 0;       // default of a unary function's alpha; 0: it has none
  const char* file = "";  // with the GLSL of a row
  uint32_t doubles = 0;   // bits of TUFF_DOUBLES for f64; 0: it takes no f64, or needs none of those files
};

// Bits of TUFF_OWN (expression_functions.glsl).
inline constexpr uint32_t kOwnAtan2 = 1, kOwnHypot = 2, kOwnLogaddexp = 4, kOwnRemainders = 8;

// By name, or null. Functions for formulas precede rows of the same name, since they take more types.
const Function* find_function(std::string_view name);
const Function& function_of(Op op);

// The bit of TUFF_FILES for a row's file: functions.def.
uint32_t file_bit(std::string_view file);

}  // namespace tuff::expression
