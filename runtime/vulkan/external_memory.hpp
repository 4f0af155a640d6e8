// Memory that others hold too: the caller's own, and what goes between processes and APIs as a file descriptor.
#pragma once

#include <memory>

#include "runtime/vulkan/memory_block.hpp"

namespace tuff {

inline constexpr VkExternalMemoryHandleTypeFlagBits kMemoryFd = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;

// Blocks of memory that was not allocated here, without an id. Errors: UNSUPPORTED where the device has no way to do
// it, INVALID_ARGUMENT for what it does not take.
OwnBlock import_host(Device& device, void* memory, uint64_t bytes);
OwnBlock import_fd(Device& device, const tuff_memory_fd& info);

// The descriptor and what an importer has to know of the block; the rest of the structure stays.
void export_fd(Device& device, const MemoryBlock& block, tuff_memory_fd& info);

[[noreturn]] void fail_without_memory_fd(const Device& device);

}  // namespace tuff
