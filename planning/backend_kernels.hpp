// Work that a backend records for itself: fills, copies, and the kernels that it measures a device with. Backends do
// not depend on kernel families: kernels/memory/backend_kernels.cpp defines this table, and the linker resolves it.
#pragma once

#include <array>
#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/probe.hpp"

namespace tuff {

class Recorder;

struct BackendKernels {
  // offset and bytes are multiples of 4, relative to the start of the buffer. Word i is set to pattern[i % 4].
  void (*fill)(Recorder& recorder, const Buffer& dst, uint64_t offset, uint64_t bytes,
               const std::array<uint32_t, 4>& pattern);
  // Returns false and records nothing if the device's copy command is the better choice.
  bool (*copy)(Recorder& recorder, const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
               uint64_t bytes);
  // Runs an element-wise operation over `elements` f32 elements.
  void (*stream)(Recorder& recorder, const Buffer& in, const Buffer& out, uint64_t elements);
  // C = A * B, all n x n f32, with the kernel that a GEMM of that size would get.
  void (*multiply)(Recorder& recorder, const Buffer& a, const Buffer& b, const Buffer& c, uint64_t n);
  // The same with a kernel that reads tiles directly from A and B, regardless of forced or tuned variants. Compiles
  // quickly at n = 64.
  void (*multiply_tiles)(Recorder& recorder, const Buffer& a, const Buffer& b, const Buffer& c, uint64_t n);
  // Copies `bytes` with little other work, to measure the cost of a binding method.
  void (*bind)(Recorder& recorder, const Buffer& in, const Buffer& out, uint64_t bytes);
  // Whether kernels in PTX work: sets DeviceTraits::hopper.
  const Probe* hopper;
};

extern const BackendKernels backend_kernels;

}  // namespace tuff
