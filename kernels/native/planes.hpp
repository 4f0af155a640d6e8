// f32 as sums of three bf16, which multiply on tensor cores of 16 bits: h = bf16(x), m = bf16(x - h), l = x - h - m.
#pragma once

#include <array>
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

// Neighbouring numbers of 16 bytes.
inline constexpr uint32_t kQuad = 4;

// Loads a quad; zeros if `exists` is given and does not hold.
inline void load_quad(const U64& at, uint32_t offset, const F32* quad, const Pred* exists) {
  Writer& w = *at.writer;
  if (exists != nullptr) {
    for (uint32_t i = 0; i < kQuad; ++i) w.emit("mov.f32 {}, 0f00000000;", quad[i].text);
  }
  const std::string place = offset == 0 ? at.text : fmt::format("{}+{}", at.text, offset);
  w.emit(exists != nullptr ? if_true(*exists) : Guard{}, "ld.global.nc.L2::128B.v4.f32 {{{}, {}, {}, {}}}, [{}];",
         quad[0].text, quad[1].text, quad[2].text, quad[3].text, place);
}

// Stores the three parts of a quad in planes so many bytes apart; with `scale`, as take_plane().
inline void store_planes(const U32& to, uint32_t offset, uint32_t plane_bytes, const F32* quad, const F32* scale,
                         const Guard& guard = {}) {
  std::array<F32, kQuad> rest{quad[0], quad[1], quad[2], quad[3]};
  for (uint32_t plane = 0; plane < kPlanes; ++plane) {
    std::array<U32, 2> pairs;
    for (uint32_t pair = 0; pair < 2; ++pair) {
      F32 &low = rest[2 * pair], &high = rest[2 * pair + 1];
      const bool last = plane + 1 == kPlanes;
      pairs[pair] = last ? packed_pair(TUFF_BF16, low, high) : take_plane(low, high, scale);
    }
    to.writer->emit(guard, "st.shared.v2.b32 [{}+{}], {{{}, {}}};", to.text, offset + plane * plane_bytes,
                    pairs[0].text, pairs[1].text);
  }
}

}  // namespace tuff::ptx
