// Elements of 16 bits, converted in blocks: to f32 exactly, from f32 with one rounding, ties to even.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__F16C__) && defined(__AVX2__)
#include <immintrin.h>
#endif

#include "tuff/tuff.h"

namespace tuff_cpu {

struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

inline float wide(float x) { return x; }
inline float wide(Half x) {
  _Float16 value;
  std::memcpy(&value, &x, sizeof value);
  return static_cast<float>(value);
}
inline float wide(Bfloat x) {
  const uint32_t word = static_cast<uint32_t>(x.bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

inline void round_to(float x, float& result) { result = x; }
inline void round_to(float x, Half& result) {
  const auto value = static_cast<_Float16>(x);
  std::memcpy(&result, &value, sizeof value);
}
inline void round_to(float x, Bfloat& result) {
  uint32_t word;
  std::memcpy(&word, &x, sizeof word);
  const uint32_t rounded = (word + 0x7fff + (word >> 16 & 1)) >> 16;
  // A NaN keeps its sign and becomes quiet.
  result.bits = static_cast<uint16_t>(x == x ? rounded : (word >> 16 | 0x40));
}

// For any number of elements.
inline void widen(const float* from, float* to, uint64_t n) { std::memcpy(to, from, n * sizeof(float)); }
inline void widen(const Bfloat* from, float* to, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) to[i] = wide(from[i]);
}
inline void widen(const Half* from, float* to, uint64_t n) {
  uint64_t i = 0;
#if defined(__F16C__) && defined(__AVX2__)
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
#endif
  for (; i < n; ++i) to[i] = wide(from[i]);
}

inline void narrow(const float* from, float* to, uint64_t n) { std::memcpy(to, from, n * sizeof(float)); }
inline void narrow(const float* from, Bfloat* to, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) round_to(from[i], to[i]);
}
inline void narrow(const float* from, Half* to, uint64_t n) {
  uint64_t i = 0;
#if defined(__F16C__) && defined(__AVX2__)
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  for (; i < n; ++i) round_to(from[i], to[i]);
}

inline bool is_float(int32_t dtype) { return dtype == TUFF_F32 || dtype == TUFF_F16 || dtype == TUFF_BF16; }

// Calls body(T{}) with the C++ type of TUFF_F32, TUFF_F16 or TUFF_BF16.
template <typename Body>
void with_float(int32_t dtype, const Body& body) {
  if (dtype == TUFF_F16) return body(Half{});
  if (dtype == TUFF_BF16) return body(Bfloat{});
  body(float{});
}

// 0 for a type that this plug-in does not know.
inline uint64_t size_of(int32_t dtype) {
  switch (dtype) {
    case TUFF_C128: return 16;
    case TUFF_C64:
    case TUFF_F64:
    case TUFF_I64:
    case TUFF_U64: return 8;
    case TUFF_F32:
    case TUFF_I32:
    case TUFF_U32: return 4;
    case TUFF_F16:
    case TUFF_BF16:
    case TUFF_I16:
    case TUFF_U16: return 2;
    case TUFF_I8:
    case TUFF_U8:
    case TUFF_BOOL:
    case TUFF_F8_E4M3:
    case TUFF_F8_E5M2: return 1;
    default: return 0;
  }
}

template <typename T>
T* at(tuff_buffer address) {
  return reinterpret_cast<T*>(static_cast<uintptr_t>(address));
}

}  // namespace tuff_cpu
