#include "fuzz/numbers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tuff/tuff.h"

namespace tuff_fuzz {
namespace {

template <typename T>
T load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void store(double value, uint8_t* to) {
  const T number = static_cast<T>(value);
  std::memcpy(to, &number, sizeof number);
}

double of_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

uint16_t to_half(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (size == 0) return sign;
  int exponent;
  std::frexp(size, &exponent);  // size in [2^(e-1), 2^e)
  const int biased = std::max(exponent - 1 + 15, 1);
  const auto mantissa = static_cast<uint32_t>(std::ldexp(size, 25 - biased));  // with the leading bit, if it has one
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(biased - 1) << 10) + mantissa));
}

// 8-bit floats are f16s: E5M2 with fewer digits, E4M3 with fewer digits and an exponent that is smaller by 8.
double of_e4m3(uint8_t bits) {
  if ((bits & 0x7f) == 0x7f) return NAN;
  return std::ldexp(of_half(static_cast<uint16_t>((bits & 0x80) << 8 | (bits & 0x7f) << 7)), 8);
}

uint8_t to_e4m3(double value) {
  const uint16_t half = to_half(std::ldexp(value, -8));
  return static_cast<uint8_t>((half >> 8 & 0x80) | (half >> 7 & 0x7f));
}

}  // namespace

uint64_t size_of(int32_t dtype) {
  switch (dtype) {
    case TUFF_F16:
    case TUFF_BF16:
    case TUFF_I16:
    case TUFF_U16: return 2;
    case TUFF_F64:
    case TUFF_I64:
    case TUFF_U64:
    case TUFF_C64: return 8;
    case TUFF_C128: return 16;
    case TUFF_I8:
    case TUFF_U8:
    case TUFF_BOOL:
    case TUFF_F8_E4M3:
    case TUFF_F8_E5M2: return 1;
    default: return 4;
  }
}

int32_t part_of(int32_t dtype) { return dtype == TUFF_C64 ? TUFF_F32 : dtype == TUFF_C128 ? TUFF_F64 : dtype; }

double decode(int32_t dtype, const uint8_t* element) {
  switch (dtype) {
    case TUFF_F16: return of_half(load<uint16_t>(element));
    case TUFF_BF16: return double{std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(element)) << 16)};
    case TUFF_F64: return load<double>(element);
    case TUFF_I32: return load<int32_t>(element);
    case TUFF_U32: return load<uint32_t>(element);
    case TUFF_I8: return load<int8_t>(element);
    case TUFF_U8: return load<uint8_t>(element);
    case TUFF_I64: return static_cast<double>(load<int64_t>(element));
    case TUFF_U64: return static_cast<double>(load<uint64_t>(element));
    case TUFF_I16: return load<int16_t>(element);
    case TUFF_U16: return load<uint16_t>(element);
    case TUFF_BOOL: return *element != 0 ? 1 : 0;
    case TUFF_F8_E4M3: return of_e4m3(*element);
    case TUFF_F8_E5M2: return of_half(static_cast<uint16_t>(*element << 8));
    case TUFF_C128: return load<double>(element);
    default: return double{load<float>(element)};
  }
}

void encode(int32_t dtype, double value, uint8_t* element) {
  switch (dtype) {
    case TUFF_F16: {
      const uint16_t bits = to_half(value);
      std::memcpy(element, &bits, 2);
      return;
    }
    case TUFF_BF16: {
      const auto bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
      std::memcpy(element, &bits, 2);
      return;
    }
    case TUFF_F64: return store<double>(value, element);
    case TUFF_I32: return store<int32_t>(value, element);
    case TUFF_U32: return store<uint32_t>(value, element);
    case TUFF_I8: return store<int8_t>(value, element);
    case TUFF_U8: return store<uint8_t>(value, element);
    case TUFF_I64: return store<int64_t>(value, element);
    case TUFF_U64: return store<uint64_t>(value, element);
    case TUFF_I16: return store<int16_t>(value, element);
    case TUFF_U16: return store<uint16_t>(value, element);
    case TUFF_BOOL: return store<uint8_t>(value, element);
    case TUFF_F8_E4M3: *element = to_e4m3(value); return;
    case TUFF_F8_E5M2: *element = static_cast<uint8_t>(to_half(value) >> 8); return;
    case TUFF_C64:
    case TUFF_C128:
      for (const int part : {0, 1}) {
        encode(part_of(dtype), part == 0 ? value : -value, element + part * size_of(part_of(dtype)));
      }
      return;
    default: return store<float>(value, element);
  }
}

double spacing(int32_t dtype, double value) {
  int digits, least;
  switch (dtype) {
    case TUFF_F32: digits = 24, least = -149; break;
    case TUFF_F16: digits = 11, least = -24; break;
    case TUFF_BF16: digits = 8, least = -133; break;
    case TUFF_F64: digits = 53, least = -1074; break;
    case TUFF_F8_E4M3: digits = 4, least = -9; break;
    case TUFF_F8_E5M2: digits = 3, least = -16; break;
    default: return 0;
  }
  if (!std::isfinite(value) || value == 0) return std::ldexp(1.0, least);
  int exponent;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::max(exponent - digits, least));
}

double with_storage(int32_t dtype, double value, double error) {
  return error + (dtype == TUFF_F32 ? 0 : spacing(dtype, std::fabs(value) + error));
}

}  // namespace tuff_fuzz
