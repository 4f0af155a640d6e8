// f32 as sums of three bf16, which multiply on tensor cores of 16 bits: h = bf16(x), m = bf16(x - h), l = x - h - m.
#pragma once

#include <cstdint>

#include "kernels/native/elements.hpp"
#include "kernels/native/ptx.hpp"

namespace tuff::ptx {

inline constexpr uint32_t kPlanes = 3;

inline F32 bits_as_float(const U32& bits) {
  const F32 made = bits.writer->make<Type::f32>();
  bits.writer->emit("mov.b32 {}, {};", made.text, bits.text);
  return made;
}

// The nearest bf16 of two numbers, which become what is left of them; with `scale`, a power of 2, times that, so that
// small numbers lose no bits below the least bf16.
inline U32 take_plane(F32& low, F32& high, const F32* scale) {
  const U32 pair = packed_pair(TUFF_BF16, low, high);
  low = low - bits_as_float(pair << 16);
  if (scale != nullptr) low = low * *scale;
  high = high - bits_as_float(pair & 0xffff0000u);
  if (scale != nullptr) high = high * *scale;
  return pair;
}

}  // namespace tuff::ptx
