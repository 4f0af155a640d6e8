// Element types: their names and sizes, and sets of types.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "tuff/tuff.h"

namespace tuff {

// Size in bytes of one element, a power of two; INVALID_ARGUMENT for an unknown dtype.
uint64_t dtype_size_of_any(int32_t dtype);
inline uint64_t dtype_size(int32_t dtype) { return dtype == TUFF_F32 ? 4 : dtype_size_of_any(dtype); }
const char* dtype_name(int32_t dtype);         // "f32"
int32_t dtype_by_name(std::string_view name);  // 0 if there is none

// The type that arithmetic on this type is done in: f32 for f16 and bf16, the type itself otherwise.
inline int32_t computed_type(int32_t dtype) { return dtype == TUFF_F16 || dtype == TUFF_BF16 ? TUFF_F32 : dtype; }

// The type of the parts of a complex type; the type itself for a real one.
inline int32_t part_type(int32_t dtype) { return dtype == TUFF_C64 ? TUFF_F32 : dtype == TUFF_C128 ? TUFF_F64 : dtype; }

class ElementTypes {
 public:
  constexpr ElementTypes() = default;
  constexpr ElementTypes(std::initializer_list<int32_t> dtypes) {
    for (const int32_t dtype : dtypes) bits_ |= bit(dtype);
  }
  constexpr bool has(int32_t dtype) const { return (bits_ & bit(dtype)) != 0; }
  constexpr ElementTypes operator|(ElementTypes other) const { return ElementTypes(bits_ | other.bits_); }
  constexpr ElementTypes operator&(ElementTypes other) const { return ElementTypes(bits_ & other.bits_); }
  constexpr ElementTypes operator-(ElementTypes other) const { return ElementTypes(bits_ & ~other.bits_); }
  constexpr bool operator==(const ElementTypes&) const = default;

 private:
  explicit constexpr ElementTypes(uint32_t bits) : bits_(bits) {}
  static constexpr uint32_t bit(int32_t dtype) { return dtype > 0 && dtype < 32 ? 1u << dtype : 0; }
  uint32_t bits_ = 0;
};

std::string names_of(ElementTypes types);  // "f32, f16 or bf16"

inline constexpr ElementTypes kFloatTypes = {TUFF_F32, TUFF_F16, TUFF_BF16};  // computed in f32
inline constexpr ElementTypes kFloat8Types = {TUFF_F8_E4M3, TUFF_F8_E5M2};
inline constexpr ElementTypes kFactorTypes = kFloatTypes | kFloat8Types | ElementTypes{TUFF_F64, TUFF_I8};  // of GEMM
inline constexpr ElementTypes kIntegerTypes = {TUFF_I64, TUFF_U64, TUFF_I32, TUFF_U32,
                                               TUFF_I16, TUFF_U16, TUFF_I8,  TUFF_U8};
inline constexpr ElementTypes kRealTypes =
    kFloatTypes | kFloat8Types | kIntegerTypes | ElementTypes{TUFF_F64, TUFF_BOOL};
inline constexpr ElementTypes kComplexTypes = {TUFF_C64, TUFF_C128};
inline constexpr ElementTypes kAllTypes = kRealTypes | kComplexTypes;

// The stored types that a device has, by the size of their elements: every device has those of 4, 8 and 16.
inline constexpr ElementTypes kTypesOf1Byte = kFloat8Types | ElementTypes{TUFF_I8, TUFF_U8, TUFF_BOOL};
inline constexpr ElementTypes kTypesOf2Bytes = {TUFF_F16, TUFF_BF16, TUFF_I16, TUFF_U16};

}  // namespace tuff
