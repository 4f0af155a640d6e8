// Commands whose memory has been resolved. What is left is writing them into a command buffer, once or, for a graph,
// repeatedly.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "planning/recorder.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "runtime/vulkan/hazard_tracker.hpp"
#include "runtime/vulkan/memory_block.hpp"

namespace tuff {

struct CachedPipeline;

// Memory from begin to end. A null block: the shader never accesses it.
struct Bound {
  const MemoryBlock* block;
  uint64_t begin, end;
};

// Everything that a command accesses: byte ranges, or `everything` if there are too many to track separately.
struct Touched {
  static constexpr uint32_t kMaxBlocks = 4;  // per operand that has one buffer per matrix
  static constexpr uint32_t kMaxRanges = 32;
  static_assert(kMaxRanges >= Dispatch::kMaxOperands + Dispatch::kMaxEachOperands * kMaxBlocks);
  std::array<HazardTracker::Range, kMaxRanges> ranges;
  uint32_t count = 0;
  bool everything = false;

  void add(const MemoryBlock& block, uint64_t begin, uint64_t end, bool write) {
    ranges[count++] = {block.id, begin, end, write};
  }
};

struct BoundDispatch {
  static constexpr uint32_t kMaxSlots = TUFF_KERNEL_MAX_BINDINGS;  // Tuff's own kernels have fewer
  static_assert(kMaxSlots >= Dispatch::kMaxSlots && kMaxSlots <= Touched::kMaxRanges);
  static constexpr uint32_t kPushBytes = 256;
  static_assert(kPushBytes >= kMaxPtxPushBytes);

  const char *label = "", *kernel = "", *variant = "";
  double bytes = 0, operations = 0;
  std::array<uint32_t, 3> groups{};
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  // A kernel in PTX, in place of pipeline and layout. Its parameters are the slots' addresses, then the push block,
  // unless a custom kernel lists others; the list is as durable as the pipeline.
  VkCuFunctionNVX function = VK_NULL_HANDLE;
  std::array<uint32_t, 3> workgroup_size{1, 1, 1};
  uint32_t shared_bytes = 0;
  std::span<const KernelInterface::Parameter> parameters;
  const CachedPipeline* cached = nullptr;  // Tuff's kernels: what a graph has to pin
  // Tuff's kernels: the push constants begin with 8 bytes per slot, before the parameters. They hold where the slot's
  // memory begins, as an address or as an offset within its descriptor.
  bool bases = true, addresses = false;
  // Tuff's kernels: the slots that are texel buffers (KernelForm), over the whole block. Their base is the slot's
  // offset.
  uint64_t texels = 0;
  uint32_t slots = 0;
  std::array<Bound, kMaxSlots> bound;
  std::array<uint8_t, kMaxSlots> bindings;  // custom kernels: the slot's binding number in the shader
  uint32_t push_bytes = 0;
  alignas(8) std::array<std::byte, kPushBytes> push;  // the parameters
  Touched touched;
};

struct BoundCopy {
  const char* label = "";
  const MemoryBlock *to = nullptr, *from = nullptr;
  uint64_t to_offset = 0, from_offset = 0;
  uint64_t bytes = 0;  // of one row
  uint64_t to_pitch = 0, from_pitch = 0, rows = 1;
  bool tracked[2] = {true, true};  // to, from; staging memory is fresh and needs no ordering
  double moved() const { return 2.0 * static_cast<double>(bytes * rows); }
  uint64_t to_end() const { return to_offset + (rows - 1) * to_pitch + bytes; }
  uint64_t from_end() const { return from_offset + (rows - 1) * from_pitch + bytes; }
};

struct BoundFill {
  const MemoryBlock* to = nullptr;
  uint64_t offset = 0, bytes = 0;
  uint32_t word = 0;
};

}  // namespace tuff
