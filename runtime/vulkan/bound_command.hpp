// Commands whose memory is found: what is left is to write them into a command buffer, now or, in a graph, again and
// again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "planning/recorder.hpp"
#include "runtime/vulkan/hazard_tracker.hpp"
#include "runtime/vulkan/memory_block.hpp"

namespace tuff {

struct CachedPipeline;

// Memory from begin to end; none: the shader never touches it.
struct Bound {
  const MemoryBlock* block;
  uint64_t begin, end;
};

// All that a command touches: ranges, or more than is worth telling apart.
struct Touched {
  static constexpr uint32_t kMaxBlocks = 4;  // of an operand that is a buffer for each matrix
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
  static constexpr uint32_t kMaxSlots = TUFF_KERNEL_MAX_BINDINGS;  // Tuff's own have fewer
  static_assert(kMaxSlots >= Dispatch::kMaxSlots && kMaxSlots <= Touched::kMaxRanges);
  static constexpr uint32_t kPushBytes = 256;

  const char *label = "", *kernel = "", *variant = "";
  double bytes = 0, operations = 0;
  std::array<uint32_t, 3> groups{};
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  const CachedPipeline* cached = nullptr;  // of Tuff's kernels: what a graph has to pin
  // Of Tuff's kernels: 8 bytes for each slot come before the parameters, where its memory begins, as an address or
  // within its descriptor.
  bool bases = true, addresses = false;
  uint32_t slots = 0;
  std::array<Bound, kMaxSlots> bound;
  std::array<uint8_t, kMaxSlots> bindings;  // of custom kernels: the shader's number of the slot
  uint32_t push_bytes = 0;
  alignas(8) std::array<std::byte, kPushBytes> push;  // the parameters
  Touched touched;
};

struct BoundCopy {
  const char* label = "";
  const MemoryBlock *to = nullptr, *from = nullptr;
  uint64_t to_offset = 0, from_offset = 0;
  uint64_t bytes = 0;  // of a row
  uint64_t to_pitch = 0, from_pitch = 0, rows = 1;
  bool tracked[2] = {true, true};  // to, from: memory that staging is made of is fresh and needs no order
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
