// Numbers as words of the push blocks and tables of fft_pass.comp and dct.glsl.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <numbers>

#include "kernels/common/division.hpp"
#include "planning/element_type.hpp"

namespace tuff::fft {

inline void set_words(uint32_t* words, uint64_t value) {
  words[0] = static_cast<uint32_t>(value), words[1] = static_cast<uint32_t>(value >> 32);
}
// A number of the type that is computed in.
inline void set_number(uint32_t* words, double number, int32_t type) {
  type == TUFF_F64 ? set_words(words, std::bit_cast<uint64_t>(number))
                   : set_words(words, std::bit_cast<uint32_t>(static_cast<float>(number)));
}
// pi / 2 / span: as a double, or as the sum of two floats.
inline void set_angle(uint32_t* words, uint64_t span, int32_t type) {
  const double angle = std::numbers::pi / 2 / static_cast<double>(span);
  if (type == TUFF_F64) return set_words(words, std::bit_cast<uint64_t>(angle));
  const auto high = static_cast<float>(angle);
  words[0] = std::bit_cast<uint32_t>(high);
  words[1] = std::bit_cast<uint32_t>(static_cast<float>(angle - static_cast<double>(high)));
}

// Strides of at most 10 axes of lanes, behind the four words or eight that a kernel has for itself.
struct Table {
  std::array<uint32_t, 8 + 7 * 10> words;
  uint32_t count = 0;
  void add(uint32_t word) { words[count++] = word; }
  void add64(uint64_t value) { add(static_cast<uint32_t>(value)), add(static_cast<uint32_t>(value >> 32)); }
  // An axis of lanes.
  void add_axis(uint32_t size, uint64_t first, uint64_t second) {
    const Divider by = divider(size);
    add(size), add(by.multiplier), add(by.shift);
    add64(first), add64(second);
  }
};

}  // namespace tuff::fft
