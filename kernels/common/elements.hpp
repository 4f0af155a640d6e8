// The element types that C++ lacks, for the host: conversion to double is exact, conversion from double rounds once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "tuff/tuff.h"

namespace tuff {

// Rounds to `bits` significant binary digits, but no finer than multiples of 2^least; ties to even. From half a unit
// beyond `most` on the result is infinite.
inline double rounded_to(double value, int bits, int least, double most) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent - bits, least);
  const double result = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  return std::fabs(result) <= most ? result : std::copysign(std::numeric_limits<double>::infinity(), value);
}

struct Half {
  Half() = default;
  explicit Half(double value) {
    const double result = rounded_to(value, 11, -24, 65504);
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::fabs(result);
    if (std::isnan(result)) {
      bits = sign | 0x7e00;
    } else if (std::isinf(result)) {
      bits = sign | 0x7c00;
    } else if (magnitude < 0x1p-14) {
      bits = static_cast<uint16_t>(sign | static_cast<uint16_t>(magnitude * 0x1p24));
    } else {
      int exponent = 0;
      const double significand = std::frexp(magnitude, &exponent);  // in [1/2, 1)
      bits = static_cast<uint16_t>(sign | (((exponent + 14) << 10) + static_cast<int>(significand * 0x1p11) - 0x400));
    }
  }
  operator double() const {  // NOLINT(google-explicit-constructor)
    const int exponent = bits >> 10 & 31, significand = bits & 0x3ff;
    double magnitude = exponent == 0 ? significand * 0x1p-24 : std::ldexp(significand + 0x400, exponent - 25);
    if (exponent == 31) {
      magnitude = significand == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    }
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
  }
  uint16_t bits;
};

struct Bfloat {
  Bfloat() = default;
  explicit Bfloat(double value) {
    const auto result = static_cast<float>(rounded_to(value, 8, -133, 0x1.fep127));
    uint32_t word = 0;
    std::memcpy(&word, &result, sizeof word);
    bits = static_cast<uint16_t>(word >> 16 | (std::isnan(value) ? 0x40u : 0u));
  }
  operator double() const {  // NOLINT(google-explicit-constructor)
    const uint32_t word = static_cast<uint32_t>(bits) << 16;
    float value = 0;
    std::memcpy(&value, &word, sizeof value);
    return double{value};
  }
  uint16_t bits;
};

// An 8-bit float of `fraction` bits of fraction. What is beyond `most`, the largest number as stored, becomes `most`.
template <int fraction, uint8_t most, uint8_t nan, bool has_infinity>
struct Float8 {
  static constexpr int kBias = fraction == 3 ? 7 : 15, kLeast = 1 - kBias - fraction;

  Float8() = default;
  explicit Float8(double value) {
    const double result = rounded_to(value, fraction + 1, kLeast, double{Float8(most)});
    const uint8_t sign = std::signbit(value) ? 0x80 : 0;
    const double magnitude = std::fabs(result);
    if (std::isnan(result)) {
      bits = sign | nan;
    } else if (std::isinf(result)) {
      bits = sign | most;
    } else if (magnitude < std::ldexp(1.0, 1 - kBias)) {
      bits = static_cast<uint8_t>(sign | static_cast<uint8_t>(std::ldexp(magnitude, -kLeast)));
    } else {
      int exponent = 0;
      const double significand = std::frexp(magnitude, &exponent);  // in [1/2, 1)
      const int digits = static_cast<int>(std::ldexp(significand, fraction + 1)) - (1 << fraction);
      bits = static_cast<uint8_t>(sign | (((exponent - 1 + kBias) << fraction) + digits));
    }
  }
  operator double() const {  // NOLINT(google-explicit-constructor)
    const int magnitude = bits & 0x7f, exponent = magnitude >> fraction, digits = magnitude & ((1 << fraction) - 1);
    double value =
        exponent == 0 ? std::ldexp(digits, kLeast) : std::ldexp(digits + (1 << fraction), exponent - 1 + kLeast);
    if (magnitude > most) {
      value = has_infinity && digits == 0 ? std::numeric_limits<double>::infinity()
                                          : std::numeric_limits<double>::quiet_NaN();
    }
    return (bits & 0x80) != 0 ? -value : value;
  }
  uint8_t bits;

 private:
  explicit Float8(uint8_t stored) : bits(stored) {}
};
using FloatE4M3 = Float8<3, 0x7e, 0x7f, false>;
using FloatE5M2 = Float8<2, 0x7b, 0x7e, true>;

// TUFF_BOOL: any byte other than 0 counts as 1.
struct Bool {
  Bool() = default;
  explicit Bool(double value) : bits(value != 0 ? 1 : 0) {}  // 1 for NaN
  operator double() const { return bits != 0 ? 1 : 0; }      // NOLINT(google-explicit-constructor)
  uint8_t bits;
};

static_assert(sizeof(Half) == 2 && sizeof(Bfloat) == 2 && sizeof(FloatE4M3) == 1 && sizeof(FloatE5M2) == 1);
static_assert(sizeof(Bool) == 1);

// Calls body(T{}) with the C++ type of TUFF_F32, TUFF_F16 or TUFF_BF16: T(double) rounds once, double(T) is exact.
template <typename Body>
void with_float_type(int32_t dtype, const Body& body) {
  if (dtype == TUFF_F16) return body(Half{});
  if (dtype == TUFF_BF16) return body(Bfloat{});
  body(float{});
}

// The same for f64 and the integers of 8 and 32 bits too. Integers are converted from double by truncation; the caller
// must keep the value in range.
template <typename Body>
void with_element_type(int32_t dtype, const Body& body) {
  switch (dtype) {
    case TUFF_F64: return body(double{});
    case TUFF_I32: return body(int32_t{});
    case TUFF_U32: return body(uint32_t{});
    case TUFF_I8: return body(int8_t{});
    case TUFF_U8: return body(uint8_t{});
    default: with_float_type(dtype, body);
  }
}

// The same for any dtype. A double does not hold every integer of 64 bits.
template <typename Body>
void with_any_type(int32_t dtype, const Body& body) {
  switch (dtype) {
    case TUFF_I64: return body(int64_t{});
    case TUFF_U64: return body(uint64_t{});
    case TUFF_I16: return body(int16_t{});
    case TUFF_U16: return body(uint16_t{});
    case TUFF_BOOL: return body(Bool{});
    case TUFF_F8_E4M3: return body(FloatE4M3{});
    case TUFF_F8_E5M2: return body(FloatE5M2{});
    default: with_element_type(dtype, body);
  }
}

}  // namespace tuff
