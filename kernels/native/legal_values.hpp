// Legal values of defines of kernels in PTX.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "planning/kernel_request.hpp"
#include "tuff/tuff.h"

namespace tuff::ptx {

inline constexpr LegalRange kFlag[] = {{0, 1}};
inline constexpr LegalRange kHalves[] = {{TUFF_F16, TUFF_BF16}};
inline constexpr LegalRange kFloats[] = {{TUFF_F32, TUFF_BF16}};
inline constexpr LegalRange kActivations[] = {{TUFF_ACTIVATION_NONE, TUFF_ACTIVATION_RELU6}};

// The multiples of `unit` up to `most`.
template <uint32_t unit, uint32_t most>
constexpr auto multiples() {
  std::array<LegalRange, most / unit> all{};
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t value = static_cast<int64_t>(i + 1) * unit;
    all[i] = {value, value};
  }
  return all;
}

}  // namespace tuff::ptx
