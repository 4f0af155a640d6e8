// One VkDeviceMemory with one VkBuffer covering it, and the steps that create them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/vulkan/device.hpp"

namespace tuff {

// The kind of memory: device-local (also mapped if the device has such a heap), or host memory that the host reads
// fast.
enum class MemoryKind { device, readback };

struct FreeRange {
  uint64_t offset, size;
};

struct MemoryBlock {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceAddress address = 0;
  std::byte* host = nullptr;  // null unless host-visible
  uint64_t size = 0;          // of the buffer
  uint64_t memory_size = 0;   // of the memory, which may be slightly larger
  uint64_t id = 0;            // unique for the pool's lifetime: identifies the block in hazard tracking
  uint32_t type = 0;          // memory type
  MemoryKind kind = MemoryKind::device;
  bool cached = false;  // the host reads it fast
  uint32_t size_class = 0;
  bool exportable = false;             // as a file descriptor
  bool imported = false;               // not allocated by this context
  std::shared_ptr<void> owner;         // of imported memory, if the block keeps its owner alive
  bool dedicated = false;              // a dedicated allocation for this buffer
  std::vector<FreeRange> free_ranges;  // sorted by offset, with capacity for everything that may be freed
  uint64_t free_bytes = 0;
  size_t taken = 0;  // number of ranges in use
  // The buffer as texels of 2, 4 and 8 bytes, each made when a kernel first reads it so (texels_of). They cover the
  // whole block, so that there are no more than these.
  mutable std::array<VkBufferView, 3> texels{};

  // The memory may be shared with others: when released, it is freed and never reused for another buffer.
  bool outside() const noexcept { return exportable || imported; }
};

// A block that owns its Vulkan objects.
struct DestroyBlock {
  Device* device = nullptr;
  void operator()(MemoryBlock* block) const noexcept;
};
using OwnBlock = std::unique_ptr<MemoryBlock, DestroyBlock>;
OwnBlock new_block(Device& device);

struct MemoryRange {
  MemoryBlock* block = nullptr;
  uint64_t offset = 0, size = 0;
};

inline constexpr VkMemoryPropertyFlags kCoherentMemory =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

// The usage flags of block buffers.
VkBufferUsageFlags block_usage(bool addresses, bool texels);

// The steps, in order: the buffer of block.size bytes, for memory imported or exported with these handle types; its
// memory, with `next` as vkAllocateMemory's pNext chain; binding both, and mapping the memory if `map` is set and its
// type allows it.
VkMemoryRequirements make_block_buffer(Device& device, MemoryBlock& block, VkExternalMemoryHandleTypeFlags handles = 0);
VkResult allocate_block(Device& device, MemoryBlock& block, uint64_t bytes, uint32_t type, const void* next = nullptr);
void bind_block(Device& device, MemoryBlock& block, bool map);

// Whether a kernel can read the block as texels of this size, and the view for it. The caller holds the context's lock.
bool has_texels(const Device& device, const MemoryBlock& block, uint64_t bytes);
VkBufferView texels_of(Device& device, const MemoryBlock& block, uint64_t bytes);

}  // namespace tuff
