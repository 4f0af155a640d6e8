// Fills and copies memory by kernels, where the device's own commands do not apply or are slow.
#pragma once

#include <array>
#include <cstdint>

#include "planning/buffer.hpp"

namespace tuff {

class Recorder;

// The range consists of whole words, counted from the start of dst's memory. Word i of it becomes pattern[i % 4].
void record_fill(Recorder& recorder, const Buffer& dst, uint64_t offset, uint64_t bytes,
                 const std::array<uint32_t, 4>& pattern);

// Records a copy by a kernel and returns true. Records nothing and returns false where the device's copy command is the
// better choice: on CPU devices, and for ranges that are not aligned to words.
bool record_copy(Recorder& recorder, const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                 uint64_t bytes);

}  // namespace tuff
