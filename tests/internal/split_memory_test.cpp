// GPUs whose memory the host accesses through a window that does not hold all of it: large blocks are outside of it,
// and the host's copies are staged. The device's own memory types are replaced by those of such a GPU.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "capi/objects.hpp"
#include "runtime/vulkan/device.hpp"
#include "runtime/vulkan/instance.hpp"
#include "runtime/vulkan/memory_block.hpp"
#include "support/tensor.hpp"

namespace tuff_test {
namespace {

enum : uint32_t { kWindow, kHidden, kHost, kTypes };  // the GPU's memory types
constexpr uint64_t kGuaranteed = 24ull << 20;         // its maxMemoryAllocationSize
constexpr uint64_t kLarge = (40ull << 20) + 4096;     // not a multiple of a staging chunk

struct Asked {
  uint32_t type;
  uint64_t bytes;
};
std::array<uint32_t, kTypes> own_types;   // the device's types that stand for the GPU's
std::vector<Asked> asked;                 // calls of vkAllocateMemory
std::map<VkDeviceMemory, uint32_t> live;  // types of what they returned
uint64_t window_block = 0;                // larger blocks are refused in the window
bool hidden_refused = false;
PFN_vkAllocateMemory allocate_memory = nullptr;
PFN_vkMapMemory map_memory = nullptr;
PFN_vkGetBufferMemoryRequirements2 memory_requirements = nullptr;
PFN_vkGetDeviceProcAddr proc_address = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL split_allocate(VkDevice device, const VkMemoryAllocateInfo* info,
                                              const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory) {
  const uint32_t type = info->memoryTypeIndex;
  asked.push_back({type, info->allocationSize});
  if (type == kWindow && info->allocationSize > window_block) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  if (type == kHidden && hidden_refused) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  VkMemoryAllocateInfo own = *info;
  own.memoryTypeIndex = own_types.at(type);
  const VkResult result = allocate_memory(device, &own, callbacks, memory);
  if (result == VK_SUCCESS) live[*memory] = type;
  return result;
}
VKAPI_ATTR VkResult VKAPI_CALL split_map(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size,
                                         VkMemoryMapFlags flags, void** pointer) {
  EXPECT_NE(live.at(memory), kHidden) << "memory that the host cannot access was mapped";
  return map_memory(device, memory, offset, size, flags, pointer);
}
VKAPI_ATTR void VKAPI_CALL split_requirements(VkDevice device, const VkBufferMemoryRequirementsInfo2* info,
                                              VkMemoryRequirements2* requirements) {
  memory_requirements(device, info, requirements);
  requirements->memoryRequirements.memoryTypeBits = (1u << kTypes) - 1;
}
template <typename Function>
PFN_vkVoidFunction replaced(Function& original, PFN_vkVoidFunction found, Function replacement) {
  original = reinterpret_cast<Function>(found);
  return reinterpret_cast<PFN_vkVoidFunction>(replacement);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL split_proc_address(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = proc_address(device, name);
  if (std::strcmp(name, "vkAllocateMemory") == 0) return replaced(allocate_memory, found, split_allocate);
  if (std::strcmp(name, "vkMapMemory") == 0) return replaced(map_memory, found, split_map);
  if (std::strcmp(name, "vkGetBufferMemoryRequirements2") == 0) {
    return replaced(memory_requirements, found, split_requirements);
  }
  return found;
}

class SplitMemory : public testing::Test {
 protected:
  void SetUp() override {
    physical_ = &const_cast<tuff::PhysicalDevice&>(tuff::Instance::get(validating()).choose(""));
    kept_ = *physical_;
    constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, kMapped = tuff::kCoherentMemory,
                                    kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    own_types = {type_with(kLocal | kMapped), type_with(kLocal), type_with(kMapped | kCached)};
    VkPhysicalDeviceMemoryProperties memory{};
    memory.memoryHeapCount = 2;
    memory.memoryHeaps[0] = {2ull << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
    memory.memoryHeaps[1] = {1ull << 30, 0};
    memory.memoryTypeCount = kTypes;
    memory.memoryTypes[kWindow] = {kLocal | kMapped, 0};
    memory.memoryTypes[kHidden] = {kLocal, 0};
    memory.memoryTypes[kHost] = {kMapped | kCached, 1};
    physical_->memory = memory;
    physical_->maintenance3.maxMemoryAllocationSize = kGuaranteed;
    physical_->max_buffer_bytes = 1ull << 40;
    physical_->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    physical_->memory_budget = false;  // the driver reports it for its own heaps
    asked.clear(), live.clear();
    window_block = 64ull << 20, hidden_refused = false;
    proc_address = vkGetDeviceProcAddr;
    vkGetDeviceProcAddr = split_proc_address;
  }
  void TearDown() override {
    own_.reset();
    vkGetDeviceProcAddr = proc_address;
    *physical_ = kept_;
  }
  // The first of the device's types that has the flags.
  uint32_t type_with(VkMemoryPropertyFlags flags) const {
    for (uint32_t i = 0; i < kept_.memory.memoryTypeCount; ++i) {
      if ((kept_.memory.memoryTypes[i].propertyFlags & flags) == flags) return i;
    }
    ADD_FAILURE() << "no memory type with " << flags;
    return 0;
  }
  tuff_context context() {
    if (!own_) own_.emplace("vulkan");
    return *own_;
  }
  OwnBuffer allocated(uint64_t bytes, uint32_t flags = 0) {
    tuff_alloc_desc desc{};
    desc.struct_size = sizeof desc;
    desc.bytes = bytes, desc.flags = flags;
    tuff_buffer buffer = 0;
    EXPECT_OK(tuff_alloc_ex(context(), &desc, &buffer));
    return OwnBuffer(buffer);
  }
  static std::vector<uint8_t> pattern(uint64_t bytes, uint64_t seed) {
    std::vector<uint8_t> values(bytes);
    Random random(seed);
    for (uint8_t& value : values) value = static_cast<uint8_t>(random.next());
    return values;
  }

  tuff::PhysicalDevice* physical_ = nullptr;
  tuff::PhysicalDevice kept_;
  std::optional<OwnContext> own_;
};

// Regression: device memory came from the window alone, and no request above maxMemoryAllocationSize was accepted.
TEST_F(SplitMemory, LargeBuffersAreOutsideTheWindow) {
  const OwnBuffer small = allocated(1000), large = allocated(kLarge);
  EXPECT_EQ(asked.back().type, kHidden);
  EXPECT_GE(asked.back().bytes, kLarge);
  EXPECT_EQ(properties_of(context()).max_allocation_bytes, 2ull << 30);
  std::vector<uint8_t> back(kLarge, 1);
  ASSERT_OK(tuff_copy_dtoh(context(), back.data(), large, 0, kLarge));
  EXPECT_TRUE(back == std::vector<uint8_t>(kLarge, 0)) << "a new buffer reads as zero";

  std::vector<uint8_t> values = pattern(kLarge, 1);
  const uint64_t staged = stats_of(context()).bytes_staged;
  ASSERT_OK(tuff_copy_htod(context(), large, 0, values.data(), kLarge));
  ASSERT_OK(tuff_copy_dtoh(context(), back.data(), large, 0, kLarge));
  EXPECT_TRUE(back == values);
  EXPECT_EQ(stats_of(context()).bytes_staged, staged + 2 * kLarge);
  // A few bytes at its end, at any offset, and next to them what a kernel and a fill write.
  values[kLarge - 1] = 77, values[kLarge - 2] = 76, values[kLarge - 3] = 75;
  ASSERT_OK(tuff_copy_htod(context(), large, kLarge - 3, &values[kLarge - 3], 3));
  ASSERT_OK(tuff_fill(context(), large, 16, kLarge / 2, "\x09", 1));
  std::fill_n(values.begin() + 16, kLarge / 2, 9);
  ASSERT_OK(tuff_copy_dtod(context(), large, kLarge / 2 + 32, large, 0, 1000));
  std::copy_n(values.begin(), 1000, values.begin() + kLarge / 2 + 32);
  ASSERT_OK(tuff_copy_dtoh(context(), back.data(), large, 0, kLarge));
  EXPECT_TRUE(back == values);

  // The host writes into what is small directly, as before.
  const uint64_t before = stats_of(context()).bytes_staged;
  ASSERT_OK(tuff_synchronize(context()));
  ASSERT_OK(tuff_copy_htod(context(), small, 0, values.data(), 1000));
  EXPECT_EQ(stats_of(context()).bytes_staged, before);
}

TEST_F(SplitMemory, OperationsOnBuffersOutsideTheWindow) {
  constexpr uint64_t kCount = kLarge / 4;
  const OwnBuffer x = allocated(kLarge), y = allocated(kLarge);
  std::vector<float> values(kCount, 0.0f), back(kCount);
  for (uint64_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i % 1001);
  ASSERT_OK(tuff_copy_htod(context(), x, 0, values.data(), kLarge));
  ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, x, y, kCount));
  ASSERT_OK(tuff_copy_dtoh(context(), back.data(), y, 0, kLarge));
  for (float& value : values) value = -value;
  expect_same_bits(back, values);
}

// The window may be full before the memory is.
TEST_F(SplitMemory, WhatTheWindowRefusesIsOutsideIt) {
  const OwnBuffer first = allocated(20ull << 20);
  EXPECT_EQ(asked.back().type, kWindow);
  window_block = 0;
  const uint64_t kBytes = 20ull << 20;
  for (const uint64_t bytes : {kBytes, uint64_t{1} << 20}) {
    const OwnBuffer buffer = allocated(bytes);
    EXPECT_EQ(asked.back().type, kHidden);
    const std::vector<uint8_t> values = pattern(bytes, bytes);
    std::vector<uint8_t> back(bytes);
    ASSERT_OK(tuff_copy_htod(context(), buffer, 0, values.data(), bytes));
    ASSERT_OK(tuff_copy_dtoh(context(), back.data(), buffer, 0, bytes));
    EXPECT_TRUE(back == values);
  }
}

TEST_F(SplitMemory, LargeBuffersThatTheHostMapsAreInItsMemory) {
  const OwnBuffer buffer = allocated(kLarge, TUFF_ALLOC_HOST_VISIBLE);
  EXPECT_EQ(asked.back().type, kHost);
  void* pointer = nullptr;
  ASSERT_OK(tuff_map(buffer, &pointer));
  ASSERT_NE(pointer, nullptr);
  std::memset(pointer, 5, kLarge);
  ASSERT_OK(tuff_unmap(buffer));
  std::vector<uint8_t> back(kLarge);
  ASSERT_OK(tuff_copy_dtoh(context(), back.data(), buffer, 0, kLarge));
  EXPECT_TRUE(back == std::vector<uint8_t>(kLarge, 5));
}

// An empty block outside the window does not serve a request that the host maps.
TEST_F(SplitMemory, MappedBuffersDoNotReuseHiddenBlocks) {
  OwnBuffer large = allocated(kGuaranteed + (2 << 20));
  EXPECT_EQ(asked.back().type, kHidden);
  ASSERT_OK(tuff_synchronize(context()));
  large.free();
  const size_t before = asked.size();
  const OwnBuffer hidden = allocated(kGuaranteed);  // the block is reused
  EXPECT_EQ(asked.size(), before);
  OwnBuffer again = allocated(kGuaranteed + (2 << 20));
  ASSERT_OK(tuff_synchronize(context()));
  again.free();
  const OwnBuffer mapped = allocated(kGuaranteed, TUFF_ALLOC_HOST_VISIBLE);
  EXPECT_EQ(asked.back().type, kWindow);
  void* pointer = nullptr;
  ASSERT_OK(tuff_map(mapped, &pointer));
  EXPECT_NE(pointer, nullptr);
  EXPECT_OK(tuff_unmap(mapped));
}

// Regression: what was reserved in all heaps was compared with the size of one, so that staging memory was refused once
// the buffers on the GPU were larger than the host's heap.
TEST_F(SplitMemory, EachHeapCountsItsOwnBlocks) {
  physical_->memory.memoryHeaps[1].size = 64ull << 20;
  const OwnBuffer x = allocated(kLarge), y = allocated(kLarge);
  const std::vector<uint8_t> values = pattern(kLarge, 3);
  std::vector<uint8_t> back(kLarge);
  ASSERT_OK(tuff_copy_htod(context(), x, 0, values.data(), kLarge));
  ASSERT_OK(tuff_copy_dtoh(context(), back.data(), x, 0, kLarge));
  EXPECT_TRUE(back == values);
  tuff_alloc_desc desc{};
  desc.struct_size = sizeof desc;
  desc.bytes = 65ull << 20, desc.flags = TUFF_ALLOC_HOST_PINNED;
  tuff_buffer pinned = 0;
  EXPECT_FAILS(tuff_alloc_ex(context(), &desc, &pinned), TUFF_ERROR_OUT_OF_DEVICE_MEMORY, "tuff_alloc_ex", "67108864");
}

TEST_F(SplitMemory, RefusedEverywhere) {
  const OwnBuffer survivor = allocated(1000);
  hidden_refused = true, window_block = 30ull << 20;
  // The other type is tried too.
  const OwnBuffer granted = allocated(28ull << 20);
  EXPECT_EQ(asked.back().type, kWindow);
  const size_t before = asked.size();
  tuff_buffer buffer = 77;
  EXPECT_FAILS(tuff_alloc(context(), kLarge, &buffer), TUFF_ERROR_OUT_OF_DEVICE_MEMORY, "tuff_alloc", "bytes");
  EXPECT_EQ(buffer, 77u);
  ASSERT_GE(asked.size(), before + 2);
  EXPECT_EQ(asked[before].type, kHidden);
  EXPECT_EQ(asked[before + 1].type, kWindow);
  // Beyond the heap no driver is asked.
  const size_t then = asked.size();
  EXPECT_FAILS(tuff_alloc(context(), (2ull << 30) + 1, &buffer), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc", "bytes");
  EXPECT_EQ(asked.size(), then);
  hidden_refused = false;
  EXPECT_NE(static_cast<tuff_buffer>(allocated(kLarge)), 0u);
}

TEST_F(SplitMemory, LargestBuffer) {
  const auto largest = [&] {
    tuff_device_properties properties{};
    tuff::describe(*physical_, properties);
    return properties.max_allocation_bytes;
  };
  EXPECT_EQ(largest(), 2ull << 30) << "the heap";
  physical_->max_buffer_bytes = (1ull << 30) + 5;
  EXPECT_EQ(largest(), 1ull << 30) << "maxBufferSize, in whole blocks";
}

}  // namespace
}  // namespace tuff_test
