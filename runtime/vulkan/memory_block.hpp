// One VkDeviceMemory with one VkBuffer over all of it, and the steps that make it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/vulkan/device.hpp"

namespace tuff {

// Which memory: device-local (mapped too where the device has such a heap), or host memory that the
// host reads fast.
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
  uint64_t memory_size = 0;   // of the memory, which may be somewhat larger
  uint64_t id = 0;            // unique in the pool's life: names the block in hazard tracking
  uint32_t type = 0;          // memory type
  MemoryKind kind = MemoryKind::device;
  bool cached = false;  // the host reads it fast
  uint32_t size_class = 0;
  bool exportable = false;             // as a file descriptor
  bool imported = false;               // no memory of the context's own
  std::shared_ptr<void> owner;         // of imported memory, if it goes with the block
  bool dedicated = false;              // the memory is for this buffer alone
  std::vector<FreeRange> free_ranges;  // by offset, with room for all that may come back
  uint64_t free_bytes = 0;
  size_t taken = 0;  // ranges that are in use

  // Others may hold the memory: once released it goes back to the device, never to another buffer.
  bool outside() const noexcept { return exportable || imported; }
};

// A block and its Vulkan objects, which go with it.
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

// How the buffers of blocks are used.
VkBufferUsageFlags block_usage(bool addresses);

// In this order: the buffer, of block.size bytes, for memory that comes from or goes to elsewhere by these handles;
// its memory, with what else vkAllocateMemory is to know; both together, seen by the host if the type allows it.
VkMemoryRequirements make_block_buffer(Device& device, MemoryBlock& block, VkExternalMemoryHandleTypeFlags handles = 0);
VkResult allocate_block(Device& device, MemoryBlock& block, uint64_t bytes, uint32_t type, const void* next = nullptr);
void bind_block(Device& device, MemoryBlock& block, bool map);

}  // namespace tuff
