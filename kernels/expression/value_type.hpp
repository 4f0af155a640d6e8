// The types of values in formulas: their names, sizes, and how the kernel holds them.
#pragma once

#include <cstdint>
#include <string_view>

#include "tuff/tuff.h"

namespace tuff::expression {

// Holds every number of 64-bit integers, of either sign.
__extension__ using Int128 = __int128;

enum class Value : uint8_t { none, boolean, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, c64, c128 };

// The GLSL types: i32 also holds i8 and i16; u32 also u8, u16 and bool.
enum class Form : uint8_t { f32, f64, i32, u32, i64, u64 };

struct ValueInfo {
  const char* name;
  uint32_t bits;
  Form form;
  bool integer, is_signed;
};

inline constexpr ValueInfo kValues[] = {
    {"", 0, Form::i32, false, false},    {"bool", 1, Form::u32, false, false},  {"i8", 8, Form::i32, true, true},
    {"i16", 16, Form::i32, true, true},  {"i32", 32, Form::i32, true, true},    {"i64", 64, Form::i64, true, true},
    {"u8", 8, Form::u32, true, false},   {"u16", 16, Form::u32, true, false},   {"u32", 32, Form::u32, true, false},
    {"u64", 64, Form::u64, true, false}, {"f32", 32, Form::f32, false, true},   {"f64", 64, Form::f64, false, true},
    {"c64", 64, Form::f32, false, true}, {"c128", 128, Form::f64, false, true},
};
constexpr const ValueInfo& info(Value value) { return kValues[static_cast<size_t>(value)]; }
constexpr bool is_integer(Value value) { return info(value).integer; }
constexpr bool is_float(Value value) { return value == Value::f32 || value == Value::f64; }
constexpr bool is_complex(Value value) { return value == Value::c64 || value == Value::c128; }
// The type of the parts of a complex type; the type itself for a real one.
constexpr Value part_of(Value value) {
  return value == Value::c64 ? Value::f32 : value == Value::c128 ? Value::f64 : value;
}
constexpr bool is_narrow(Value value) { return is_integer(value) && info(value).bits < 32; }

// The value that an element of this dtype is read as; none if formulas do not take it.
constexpr Value value_of(int32_t dtype) {
  switch (dtype) {
    case TUFF_F32:
    case TUFF_F16:
    case TUFF_BF16: return Value::f32;
    case TUFF_F64: return Value::f64;
    case TUFF_I8: return Value::i8;
    case TUFF_I16: return Value::i16;
    case TUFF_I32: return Value::i32;
    case TUFF_I64: return Value::i64;
    case TUFF_U8: return Value::u8;
    case TUFF_U16: return Value::u16;
    case TUFF_U32: return Value::u32;
    case TUFF_U64: return Value::u64;
    case TUFF_BOOL: return Value::boolean;
    case TUFF_C64: return Value::c64;
    case TUFF_C128: return Value::c128;
    default: return Value::none;
  }
}

// The dtype whose elements are read as this type, without rounding.
constexpr int32_t dtype_of(Value value) {
  switch (value) {
    case Value::boolean: return TUFF_BOOL;
    case Value::i8: return TUFF_I8;
    case Value::i16: return TUFF_I16;
    case Value::i32: return TUFF_I32;
    case Value::i64: return TUFF_I64;
    case Value::u8: return TUFF_U8;
    case Value::u16: return TUFF_U16;
    case Value::u32: return TUFF_U32;
    case Value::u64: return TUFF_U64;
    case Value::f32: return TUFF_F32;
    case Value::f64: return TUFF_F64;
    case Value::c64: return TUFF_C64;
    case Value::c128: return TUFF_C128;
    default: return 0;
  }
}

// The smallest type that holds both; none if there is none (u64 with a signed integer).
constexpr Value common_type(Value a, Value b) {
  if (a == b) return a;
  if (a == Value::boolean) return b;
  if (b == Value::boolean) return a;
  if (is_complex(a) || is_complex(b)) {
    const Value parts[] = {part_of(a), part_of(b)};
    return parts[0] == Value::f64 || parts[1] == Value::f64 ? Value::c128 : Value::c64;
  }
  if (is_float(a) || is_float(b)) return a == Value::f64 || b == Value::f64 ? Value::f64 : Value::f32;
  if (info(a).is_signed == info(b).is_signed) return info(a).bits > info(b).bits ? a : b;
  const Value with_sign = info(a).is_signed ? a : b, without = info(a).is_signed ? b : a;
  if (info(with_sign).bits > info(without).bits) return with_sign;
  switch (without) {
    case Value::u8: return Value::i16;
    case Value::u16: return Value::i32;
    case Value::u32: return Value::i64;
    default: return Value::none;
  }
}

}  // namespace tuff::expression
