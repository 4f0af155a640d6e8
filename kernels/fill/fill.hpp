// Filling memory with patterns that are longer than the device's own fill command takes.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/buffer.hpp"

namespace tuff {

class Recorder;

// offset and bytes are multiples of 4 counted from the start of the memory; word i becomes pattern[i % 4].
void record_fill(Recorder& recorder, const Buffer& dst, uint64_t offset, uint64_t bytes,
                 const std::array<uint32_t, 4>& pattern);

}  // namespace tuff
