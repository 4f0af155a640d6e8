// Memory shared with others: the caller's own memory, and memory passed between processes and APIs by file descriptor.
#pragma once

#include <memory>

#include "runtime/vulkan/memory_block.hpp"

namespace tuff {

inline constexpr VkExternalMemoryHandleTypeFlagBits kMemoryFd = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;

// Blocks of memory that was allocated elsewhere, without an id. Throw UNSUPPORTED if the device cannot import, and
// INVALID_ARGUMENT for memory that it does not accept.
OwnBlock import_host(Device& device, void* memory, uint64_t bytes);
OwnBlock import_fd(Device& device, const tuff_memory_fd& info);

// Sets the descriptor and what an importer has to know of the block; leaves the other fields.
void export_fd(Device& device, const MemoryBlock& block, tuff_memory_fd& info);

[[noreturn]] void fail_without_memory_fd(const Device& device);

}  // namespace tuff
