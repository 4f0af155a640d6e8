// What the reference implementation and the planners of pad share.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/shape/shape.hpp"

namespace tuff {

struct StridedCopy;

__extension__ using Int128 = __int128;

// The output's shape; throws if an axis has fewer elements than are removed.
std::array<uint64_t, 8> padded_shape(const PadArgs& args);

// The constant as the first 8 bytes of an element; what a longer one has more is 0.
uint64_t pad_value_bits(const PadArgs& args);

// Constants one after another.
std::array<uint32_t, 4> pad_pattern(const PadArgs& args);

// The elements of the input that an output of this shape has (pad_vulkan.cpp).
StridedCopy copy_of_padded(const PadArgs& args, const std::array<uint64_t, 8>& shape);

// Pads by copies (pad_copies_vulkan.cpp). Returns false, and has recorded nothing, where that is impossible or does not
// pay.
bool record_pad_copies(Recorder& recorder, const PadArgs& args, const std::array<uint64_t, 8>& shape);

}  // namespace tuff
