// Division by a number that is constant within a dispatch: kernels/common/division.glsl.
#pragma once

#include <bit>
#include <cstdint>

namespace tuff {

struct Divider {
  uint32_t multiplier, shift;
};

// n / d = (mulhi(n, multiplier) + n) >> shift for n < 2^31, d > 0.
inline Divider divider(uint32_t d) {
  const uint32_t shift = static_cast<uint32_t>(std::bit_width(d - 1u));
  return {static_cast<uint32_t>((((uint64_t{1} << shift) - d) << 32) / d + 1), shift};
}

}  // namespace tuff
