#include "runtime/vulkan/memory_block.hpp"

namespace tuff {

VkBufferUsageFlags block_usage(bool addresses, bool texels) {
  VkBufferUsageFlags usage =
      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (texels) usage |= VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT;
  return addresses ? usage | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : usage;
}

VkMemoryRequirements make_block_buffer(Device& device, MemoryBlock& block, VkExternalMemoryHandleTypeFlags handles) {
  const VolkDeviceTable& vk = device.vk;
  VkExternalMemoryBufferCreateInfo external{};
  external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
  external.handleTypes = handles;
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.pNext = handles != 0 ? &external : nullptr;
  info.size = block.size;
  info.usage = block_usage(device.traits.addresses, device.traits.cpu);
  // Queues of several families use the buffer; semaphores make writes visible across queues.
  const std::span<const uint32_t> families = device.families();
  if (families.size() > 1) info.sharingMode = VK_SHARING_MODE_CONCURRENT;
  info.queueFamilyIndexCount = static_cast<uint32_t>(families.size());
  info.pQueueFamilyIndices = families.data();
  device.check_made(vk.vkCreateBuffer(device.handle, &info, nullptr, &block.buffer), block.buffer, "vkCreateBuffer");
  VkMemoryDedicatedRequirements dedicated{};
  dedicated.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS;
  VkMemoryRequirements2 requirements{};
  requirements.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2;
  requirements.pNext = &dedicated;
  VkBufferMemoryRequirementsInfo2 which{};
  which.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2;
  which.buffer = block.buffer;
  vk.vkGetBufferMemoryRequirements2(device.handle, &which, &requirements);
  block.dedicated = dedicated.requiresDedicatedAllocation;
  return requirements.memoryRequirements;
}

VkResult allocate_block(Device& device, MemoryBlock& block, uint64_t bytes, uint32_t type, const void* next) {
  VkMemoryDedicatedAllocateInfo dedicated{};
  dedicated.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO;
  dedicated.pNext = next;
  dedicated.buffer = block.buffer;
  if (block.dedicated) next = &dedicated;
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.pNext = next;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  if (device.traits.addresses) next = &flags;
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.pNext = next;
  allocate.allocationSize = bytes;
  allocate.memoryTypeIndex = type;
  const VkResult result = device.vk.vkAllocateMemory(device.handle, &allocate, nullptr, &block.memory);
  if (result != VK_SUCCESS) {
    block.memory = VK_NULL_HANDLE;
    return result;
  }
  device.count_object();
  block.type = type;
  block.memory_size = bytes;
  return result;
}

void bind_block(Device& device, MemoryBlock& block, bool map) {
  const VolkDeviceTable& vk = device.vk;
  device.check(vk.vkBindBufferMemory(device.handle, block.buffer, block.memory, 0), "vkBindBufferMemory");
  const VkMemoryPropertyFlags properties = device.physical.memory.memoryTypes[block.type].propertyFlags;
  if (map && (properties & kCoherentMemory) == kCoherentMemory) {
    void* pointer = nullptr;
    device.check(vk.vkMapMemory(device.handle, block.memory, 0, VK_WHOLE_SIZE, 0, &pointer), "vkMapMemory");
    block.host = static_cast<std::byte*>(pointer);
  }
  block.cached = properties & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  if (!device.traits.addresses) return;
  VkBufferDeviceAddressInfo address{};
  address.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  address.buffer = block.buffer;
  block.address = vk.vkGetBufferDeviceAddress(device.handle, &address);
}

bool has_texels(const Device& device, const MemoryBlock& block, uint64_t bytes) {
  return block.size >= bytes && block.size / bytes <= device.traits.max_texels;
}

VkBufferView texels_of(Device& device, const MemoryBlock& block, uint64_t bytes) {
  VkBufferView& view = block.texels[bytes == 2 ? 0 : bytes == 4 ? 1 : 2];
  if (view != VK_NULL_HANDLE) return view;
  VkBufferViewCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO;
  info.buffer = block.buffer;
  info.format = bytes == 2 ? VK_FORMAT_R16_UINT : bytes == 4 ? VK_FORMAT_R32_UINT : VK_FORMAT_R32G32_UINT;
  info.range = block.size / bytes * bytes;
  device.check_made(device.vk.vkCreateBufferView(device.handle, &info, nullptr, &view), view, "vkCreateBufferView");
  return view;
}

// Also for partly created blocks.
void DestroyBlock::operator()(MemoryBlock* block) const noexcept {
  for (const VkBufferView view : block->texels) device->vk.vkDestroyBufferView(device->handle, view, nullptr);
  device->vk.vkDestroyBuffer(device->handle, block->buffer, nullptr);
  device->vk.vkFreeMemory(device->handle, block->memory, nullptr);
  delete block;
}

OwnBlock new_block(Device& device) { return OwnBlock(new MemoryBlock, DestroyBlock{&device}); }

}  // namespace tuff
