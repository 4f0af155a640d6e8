#include "runtime/vulkan/external_memory.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "platform/platform.hpp"
#include "runtime/vulkan/device_selection.hpp"

namespace tuff {
namespace {

constexpr VkExternalMemoryHandleTypeFlagBits kHostMemory = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;

OwnBlock new_import(Device& device, uint64_t size) {
  OwnBlock block = new_block(device);
  block->size = size;
  block->imported = true;
  return block;
}

// A host-coherent memory type out of `bits`, host-cached if possible.
uint32_t coherent_type(const Device& device, uint32_t bits) {
  const VkPhysicalDeviceMemoryProperties& memory = device.physical.memory;
  uint32_t best = UINT32_MAX;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    if (!(bits >> i & 1) || (flags & kCoherentMemory) != kCoherentMemory) continue;
    if (best == UINT32_MAX || flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) best = i;
  }
  if (best == UINT32_MAX)
    fail(TUFF_ERROR_UNSUPPORTED, "the device can import memory of this kind only as non-coherent memory");
  return best;
}

void check_size(const Device& device, uint64_t bytes, const char* name) {
  const uint64_t most = max_block_bytes(device.physical);
  if (bytes > most) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "{} is {}, the device takes at most {} bytes at once", name, bytes, most);
  }
}

// The descriptor passed to the driver; the caller keeps its own.
class Duplicate {
 public:
  explicit Duplicate(int original) : original_(original), descriptor_(platform::duplicate_descriptor(original)) {
    require(descriptor_ >= 0, "info->fd is {}, needs an open file descriptor", original);
  }
  ~Duplicate() {
    if (descriptor_ >= 0) platform::close_duplicate(descriptor_, original_);
  }
  Duplicate(const Duplicate&) = delete;
  Duplicate& operator=(const Duplicate&) = delete;
  int get() const { return descriptor_; }
  void taken() { descriptor_ = -1; }

 private:
  int original_, descriptor_;
};

// lavapipe's memory files begin with their size and the offset of the data, and the offset is repeated before the data
// (src/util/os_memory_fd.c). The driver trusts these numbers when it maps and unmaps the memory.
void check_mesa_header(int descriptor, uint64_t file_bytes, const tuff_memory_fd& info) {
  uint64_t header[2] = {}, again = 0;
  const auto bytes_of = [](auto& number) { return std::as_writable_bytes(std::span(&number, 1)); };
  const bool whole = platform::read_at(descriptor, 0, std::as_writable_bytes(std::span(header)));
  const auto [bytes, offset] = header;
  const bool fits = whole && bytes <= file_bytes && offset <= bytes && info.memory_bytes <= bytes - offset &&
                    offset >= sizeof header + sizeof again &&
                    platform::read_at(descriptor, offset - sizeof again, bytes_of(again)) && again == offset;
  require(fits, "info->fd is {}, a memory file of {} bytes that does not begin like the driver's files with {} bytes",
          info.fd, file_bytes, info.memory_bytes);
}

// Runs before the driver gets the descriptor: the driver might block reading from it, or map more than there is.
void check_descriptor(const Device& device, int descriptor, const tuff_memory_fd& info) {
  using platform::DescriptorKind;
  platform::DescriptorFacts facts = platform::inspect_descriptor(descriptor);
  // What a GPU's driver exports is its own business. A CPU device's driver exports memory files.
  const bool files = device.traits.cpu;
  const bool memory =
      facts.kind == DescriptorKind::memory_file || (!files && facts.kind == DescriptorKind::device_memory);
  require(memory, "info->fd is {}, {} and not the driver's memory", info.fd, facts.name);
  if (facts.kind == DescriptorKind::memory_file) {
    if (!facts.keeps_length) facts.keeps_length = platform::keep_length(descriptor);
    require(facts.keeps_length, "info->fd is {}, a memory file that can be made shorter (it lacks F_SEAL_SHRINK)",
            info.fd);
    facts = platform::inspect_descriptor(descriptor);  // the length can no longer shrink
    require(facts.bytes >= info.memory_bytes, "info->fd is {}, a memory file of {} bytes, info->memory_bytes {}",
            info.fd, facts.bytes, info.memory_bytes);
  } else {
    require(facts.bytes == 0 || facts.bytes >= info.memory_bytes,
            "info->fd is {}, {} of {} bytes, info->memory_bytes {}", info.fd, facts.name, facts.bytes,
            info.memory_bytes);
  }
  if (device.physical.driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE) check_mesa_header(descriptor, facts.bytes, info);
}

void check_same_device(const Device& device, const tuff_memory_fd& info) {
  const VkPhysicalDeviceVulkan11Properties& ids = device.physical.properties11;
  require(std::memcmp(info.device_uuid, ids.deviceUUID, VK_UUID_SIZE) == 0,
          "info->device_uuid is {}, the context's device has {}", uuid_text(info.device_uuid),
          uuid_text(ids.deviceUUID));
  require(std::memcmp(info.driver_uuid, ids.driverUUID, VK_UUID_SIZE) == 0,
          "info->driver_uuid is {}, the context's driver has {}", uuid_text(info.driver_uuid),
          uuid_text(ids.driverUUID));
}

}  // namespace

void fail_without_memory_fd(const Device& device) {
  fail(TUFF_ERROR_UNSUPPORTED, "{} does not share memory by file descriptors (VK_KHR_external_memory_fd)",
       device.physical.properties.deviceName);
}

OwnBlock import_host(Device& device, void* memory, uint64_t bytes) {
  const VolkDeviceTable& vk = device.vk;
  const uint64_t alignment = device.physical.host_import_alignment;
  if (alignment == 0) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} does not import host memory (VK_EXT_external_memory_host)",
         device.physical.properties.deviceName);
  }
  require(reinterpret_cast<uintptr_t>(memory) % alignment == 0, "memory is at {}, needs a multiple of {}",
          fmt::ptr(memory), alignment);
  require(bytes != 0 && bytes % alignment == 0, "bytes is {}, needs a multiple of {} above 0", bytes, alignment);
  check_size(device, bytes, "bytes");
  VkMemoryHostPointerPropertiesEXT pointer{};
  pointer.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT;
  device.check(vk.vkGetMemoryHostPointerPropertiesEXT(device.handle, kHostMemory, memory, &pointer),
               "vkGetMemoryHostPointerPropertiesEXT");
  OwnBlock block = new_import(device, bytes);
  block->kind = MemoryKind::readback;
  const VkMemoryRequirements requirements = make_block_buffer(device, *block, kHostMemory);
  if (requirements.size > bytes) {
    fail(TUFF_ERROR_UNSUPPORTED, "the device needs {} bytes for a buffer over memory of {}", requirements.size, bytes);
  }
  VkImportMemoryHostPointerInfoEXT import{};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT;
  import.handleType = kHostMemory;
  import.pHostPointer = memory;
  const uint32_t type = coherent_type(device, pointer.memoryTypeBits & requirements.memoryTypeBits);
  device.check(allocate_block(device, *block, bytes, type, &import), "vkAllocateMemory of host memory");
  bind_block(device, *block, false);
  block->host = static_cast<std::byte*>(memory);
  return block;
}

OwnBlock import_fd(Device& device, const tuff_memory_fd& info) {
  if (!device.physical.memory_fd) fail_without_memory_fd(device);
  check_same_device(device, info);
  const uint32_t types = device.physical.memory.memoryTypeCount;
  require(info.memory_type < types, "info->memory_type is {}, the device has {} types", info.memory_type, types);
  require_flag(info.dedicated, "info->dedicated");
  require(info.bytes != 0, "info->bytes is 0, there is nothing to import");
  require(info.offset <= info.memory_bytes && info.bytes <= info.memory_bytes - info.offset,
          "info->bytes is {} from {} on, info->memory_bytes {}", info.bytes, info.offset, info.memory_bytes);
  check_size(device, info.memory_bytes, "info->memory_bytes");
  Duplicate descriptor(info.fd);
  check_descriptor(device, descriptor.get(), info);
  OwnBlock block = new_import(device, info.memory_bytes);
  const VkMemoryRequirements requirements = make_block_buffer(device, *block, kMemoryFd);
  block->dedicated = info.dedicated == 1;
  require(requirements.size <= info.memory_bytes && (requirements.memoryTypeBits >> info.memory_type & 1),
          "info->memory_bytes is {} of memory type {}, a buffer needs {} of types {:#x}", info.memory_bytes,
          info.memory_type, requirements.size, requirements.memoryTypeBits);
  VkImportMemoryFdInfoKHR import{};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR;
  import.handleType = kMemoryFd;
  import.fd = descriptor.get();
  const VkResult result = allocate_block(device, *block, info.memory_bytes, info.memory_type, &import);
  require(result != VK_ERROR_INVALID_EXTERNAL_HANDLE,
          "info->fd is {}, which the driver does not know as {} bytes of its memory", info.fd, info.memory_bytes);
  device.check(result, "vkAllocateMemory of imported memory");
  descriptor.taken();
  bind_block(device, *block, true);
  return block;
}

void export_fd(Device& device, const MemoryBlock& block, tuff_memory_fd& info) {
  VkMemoryGetFdInfoKHR get{};
  get.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR;
  get.memory = block.memory;
  get.handleType = kMemoryFd;
  int descriptor = -1;
  device.check(device.vk.vkGetMemoryFdKHR(device.handle, &get, &descriptor), "vkGetMemoryFdKHR");
  platform::close_on_exec(descriptor);
  // An importer could shrink a memory file and so take away pages in use here. Mesa's files are sealed already.
  if (device.traits.cpu) platform::keep_length(descriptor);
  info.fd = descriptor;
  info.memory_bytes = block.memory_size;
  info.memory_type = block.type;
  info.dedicated = block.dedicated ? 1 : 0;
  std::copy_n(device.physical.properties11.deviceUUID, VK_UUID_SIZE, info.device_uuid);
  std::copy_n(device.physical.properties11.driverUUID, VK_UUID_SIZE, info.driver_uuid);
}

}  // namespace tuff
