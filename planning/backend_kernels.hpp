// Work that a backend itself records: its fills and copies, and what it measures a device by. A backend knows no family
// of kernels: kernels/memory/backend_kernels.cpp defines this table, and the linker brings the two together.
#pragma once

#include <array>
#include <cstdint>

#include "planning/buffer.hpp"

namespace tuff {

class Recorder;

struct BackendKernels {
  // offset and bytes are multiples of 4 counted from the start of the memory; word i becomes pattern[i % 4].
  void (*fill)(Recorder& recorder, const Buffer& dst, uint64_t offset, uint64_t bytes,
               const std::array<uint32_t, 4>& pattern);
  // False: nothing is recorded, and the device's copy command is the better choice.
  bool (*copy)(Recorder& recorder, const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
               uint64_t bytes);
  // `elements` f32 through an element-wise operation.
  void (*stream)(Recorder& recorder, const Buffer& in, const Buffer& out, uint64_t elements);
  // C = A * B, all n x n f32, by the kernel that a call of that size would get.
  void (*multiply)(Recorder& recorder, const Buffer& a, const Buffer& b, const Buffer& c, uint64_t n);
  // The same by a kernel that reads tiles in place, whatever is forced or tuned: fast to compile at n = 64.
  void (*multiply_tiles)(Recorder& recorder, const Buffer& a, const Buffer& b, const Buffer& c, uint64_t n);
  // Copies `bytes` with little else: what the way of binding costs.
  void (*bind)(Recorder& recorder, const Buffer& in, const Buffer& out, uint64_t bytes);
};

extern const BackendKernels backend_kernels;

}  // namespace tuff
