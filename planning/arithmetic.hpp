// Size arithmetic used by planners.
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"

namespace tuff {

// True if this many elements cannot be indexed with 32-bit signed integers.
inline bool needs_wide(uint64_t elements) { return elements > 0x7fffffffu; }

// True if the operand may be read as 16-byte vectors.
inline bool aligned16(const Buffer* buffer, uint64_t offset = 0) {
  return buffer == nullptr || (buffer->offset + offset) % 16 == 0;
}

// The halves of a number of 64 bits, as push blocks and tables have it.
inline uint32_t low_word(uint64_t x) { return static_cast<uint32_t>(x); }
inline uint32_t high_word(uint64_t x) { return static_cast<uint32_t>(x >> 32); }
// A number that is known to fit 32 bits.
inline uint32_t narrow(uint64_t x) { return static_cast<uint32_t>(x); }

inline uint64_t ceil_div(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }
inline uint64_t round_up(uint64_t x, uint64_t unit) { return ceil_div(x, unit) * unit; }

}  // namespace tuff
