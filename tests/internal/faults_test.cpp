// Behaviour when Vulkan fails: functions of the device's table are replaced by ones that fail.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "internal/faults.hpp"
#include "support/kernel.hpp"

namespace tuff_test {
namespace {

VKAPI_ATTR VkResult VKAPI_CALL no_memory(VkDevice, const VkMemoryAllocateInfo*, const VkAllocationCallbacks*,
                                         VkDeviceMemory*) {
  ++calls;
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}
VKAPI_ATTR VkResult VKAPI_CALL no_buffer(VkDevice, const VkBufferCreateInfo*, const VkAllocationCallbacks*, VkBuffer*) {
  ++calls;
  return VK_ERROR_OUT_OF_HOST_MEMORY;
}
VKAPI_ATTR VkResult VKAPI_CALL no_map(VkDevice, VkDeviceMemory, VkDeviceSize, VkDeviceSize, VkMemoryMapFlags, void**) {
  ++calls;
  return VK_ERROR_MEMORY_MAP_FAILED;
}
VKAPI_ATTR VkResult VKAPI_CALL lost_on_submit(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) {
  ++calls;
  return VK_ERROR_DEVICE_LOST;
}
VKAPI_ATTR VkResult VKAPI_CALL no_memory_to_submit(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) {
  ++calls;
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}
VKAPI_ATTR VkResult VKAPI_CALL no_memory_to_end(VkCommandBuffer) {
  ++calls;
  return VK_ERROR_OUT_OF_HOST_MEMORY;
}
VKAPI_ATTR VkResult VKAPI_CALL lost_on_wait(VkDevice, const VkSemaphoreWaitInfo*, uint64_t) {
  ++calls;
  return VK_ERROR_DEVICE_LOST;
}
VKAPI_ATTR VkResult VKAPI_CALL no_pipeline(VkDevice, VkPipelineCache, uint32_t, const VkComputePipelineCreateInfo*,
                                           const VkAllocationCallbacks*, VkPipeline*) {
  ++calls;
  return VK_ERROR_OUT_OF_HOST_MEMORY;
}
VKAPI_ATTR VkResult VKAPI_CALL no_module(VkDevice, const VkShaderModuleCreateInfo*, const VkAllocationCallbacks*,
                                         VkShaderModule*) {
  ++calls;
  return VK_ERROR_OUT_OF_HOST_MEMORY;
}

VKAPI_ATTR VkResult VKAPI_CALL no_layout(VkDevice, const VkPipelineLayoutCreateInfo*, const VkAllocationCallbacks*,
                                         VkPipelineLayout*) {
  ++calls;
  return VK_ERROR_OUT_OF_HOST_MEMORY;
}
VKAPI_ATTR VkResult VKAPI_CALL no_set_layout(VkDevice, const VkDescriptorSetLayoutCreateInfo*,
                                             const VkAllocationCallbacks*, VkDescriptorSetLayout*) {
  ++calls;
  return VK_ERROR_OUT_OF_HOST_MEMORY;
}

// The simulated budget of a heap; freeing a block makes room.
tuff::HeapBudget budget;
PFN_vkFreeMemory free_memory = nullptr;
PFN_vkAllocateMemory allocate_memory = nullptr;

// The budget applies to device memory; a separate host heap has enough.
tuff::HeapBudget small_budget(const tuff::PhysicalDevice& physical, uint32_t heap) {
  const bool of_device = physical.memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
  return of_device ? budget : tuff::HeapBudget{uint64_t{1} << 40, 0};
}
VKAPI_ATTR void VKAPI_CALL free_makes_room(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* host) {
  budget.used = 0;
  free_memory(device, memory, host);
}
VKAPI_ATTR VkResult VKAPI_CALL counted_memory(VkDevice device, const VkMemoryAllocateInfo* info,
                                              const VkAllocationCallbacks* host, VkDeviceMemory* memory) {
  ++calls;
  return allocate_memory(device, info, host, memory);
}

TEST_F(Faults, OutOfDeviceMemoryLeavesEverythingElseUsable) {
  const Tensor before(context(), std::vector<float>(50, 3.0f));
  vk_->vkAllocateMemory = no_memory;
  tuff_buffer buffer = 77;
  EXPECT_FAILS(tuff_alloc(context(), 200 << 20, &buffer), TUFF_ERROR_OUT_OF_DEVICE_MEMORY, "tuff_alloc", "bytes");
  EXPECT_EQ(buffer, 77u);
  EXPECT_GT(calls, 1) << "it gives back what it can and tries again";
  EXPECT_EQ(stats_of(context()).live_buffers, 2u);  // the tensor's two handles
  vk_->vkAllocateMemory = whole_.vkAllocateMemory;
  expect_works(context());
  ASSERT_OK(tuff_alloc(context(), 200 << 20, &buffer));
  EXPECT_OK(tuff_free(buffer));
  before.expect_unchanged(std::vector<float>(50, 3.0f));
}

TEST_F(Faults, OutOfDeviceMemorySaysWhatIsThere) {
  const OwnBuffer kept(context(), 1000);  // from a block whose rest is free
  vk_->vkAllocateMemory = no_memory;
  tuff_buffer buffer = 0;
  EXPECT_FAILS(tuff_alloc(context(), 200 << 20, &buffer), TUFF_ERROR_OUT_OF_DEVICE_MEMORY, "tuff_alloc", "209715200");
  const tuff_memory_stats memory = memory_of(context());  // empty blocks have been returned to the driver
  for (uint64_t number : {memory.bytes_free, memory.bytes_largest_free, memory.bytes_reserved, memory.heap_bytes}) {
    EXPECT_NE(last_error().find(std::to_string(number)), std::string::npos) << number << ": " << last_error();
  }
}

TEST_F(Faults, CallbackMakesRoomOnTheDevice) {
  vk_->vkAllocateMemory = no_memory;
  struct Room {
    VolkDeviceTable *broken, *whole;
    int called = 0;
    tuff_status status = 0;
  } room{vk_, &whole_};
  const auto callback = [](void* user, const tuff_memory_pressure* pressure) {
    auto& made = *static_cast<Room*>(user);
    ++made.called;
    made.status = pressure->status;
    made.broken->vkAllocateMemory = made.whole->vkAllocateMemory;
  };
  ASSERT_OK(tuff_context_set_memory_callback(context(), callback, &room));
  const OwnBuffer buffer(context(), 200 << 20);
  EXPECT_NE(static_cast<tuff_buffer>(buffer), 0u);
  EXPECT_EQ(room.called, 1);
  EXPECT_EQ(room.status, TUFF_ERROR_OUT_OF_DEVICE_MEMORY);
}

TEST_F(Faults, BeyondTheBudgetTheDriverIsNotAsked) {
  allocate_memory = whole_.vkAllocateMemory;
  vk_->vkAllocateMemory = counted_memory;
  const Tensor before(context(), std::vector<float>(50, 3.0f));
  calls = 0;
  device(context()).heap_budget = small_budget;
  budget = {1'000'000'000, 999'000'000};
  tuff_buffer buffer = 77;
  EXPECT_FAILS(tuff_alloc(context(), 200 << 20, &buffer), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc", "209715200");
  for (const char* number : {"1000000000", "999000000", "budget"}) {
    EXPECT_NE(last_error().find(number), std::string::npos) << last_error();
  }
  EXPECT_EQ(buffer, 77u);
  EXPECT_EQ(calls, 0) << "the driver was asked";
  before.expect_unchanged(std::vector<float>(50, 3.0f));
  const tuff_memory_stats memory = memory_of(context());
  EXPECT_EQ(memory.heap_budget_bytes, 1'000'000'000u);
  EXPECT_EQ(memory.heap_used_bytes, 999'000'000u);
  budget.used = 0;
  calls = 0;
  ASSERT_OK(tuff_alloc(context(), 200 << 20, &buffer));
  EXPECT_EQ(calls, 1);
  EXPECT_OK(tuff_free(buffer));
}

TEST_F(Faults, BeyondTheBudgetEmptyBlocksAreGivenBackFirst) {
  OwnBuffer(context(), 100 << 20).free();
  ASSERT_OK(tuff_synchronize(context()));
  free_memory = whole_.vkFreeMemory;
  vk_->vkFreeMemory = free_makes_room;
  device(context()).heap_budget = small_budget;
  budget = {1'000'000'000, 999'000'000};
  const OwnBuffer large(context(), 300 << 20);
  EXPECT_NE(static_cast<tuff_buffer>(large), 0u);
  EXPECT_EQ(budget.used, 0u);
}

TEST_F(Faults, AFailedImportLeavesTheDescriptor) {
  int32_t yes = 0;
  ASSERT_OK(tuff_supports(context(), "memory_fd", &yes));
  if (yes == 0) GTEST_SKIP() << "not run: the device has no VK_KHR_external_memory_fd";
  tuff_alloc_desc desc{};
  desc.struct_size = sizeof desc;
  desc.bytes = 4096, desc.flags = TUFF_ALLOC_EXPORTABLE;
  tuff_buffer made = 0;
  ASSERT_OK(tuff_alloc_ex(context(), &desc, &made));
  const OwnBuffer shared(made);
  tuff_memory_fd info{};
  info.struct_size = sizeof info;
  ASSERT_OK(tuff_buffer_export_fd(shared, &info));
  const auto imported = [&] { return memory_of(context()).bytes_imported; };
  const auto fails_with = [&](tuff_status status) {
    made = 77;
    EXPECT_EQ(tuff_buffer_import_fd(context(), &info, &made), status) << last_error();
    EXPECT_EQ(made, 77u);
    EXPECT_EQ(imported(), 0u);
    EXPECT_GE(fcntl(info.fd, F_GETFD), 0);
    *vk_ = whole_;
  };
  vk_->vkAllocateMemory = no_memory;
  fails_with(TUFF_ERROR_OUT_OF_DEVICE_MEMORY);
  vk_->vkCreateBuffer = no_buffer;
  fails_with(TUFF_ERROR_OUT_OF_HOST_MEMORY);
  ASSERT_OK(tuff_buffer_import_fd(context(), &info, &made));
  EXPECT_GE(imported(), 4096u);
  EXPECT_OK(tuff_free(made));
  EXPECT_EQ(imported(), 0u);
  close(info.fd);
}

// What a function that fails was to write is undefined then.
uint64_t destroyed_nonsense = 0;
PFN_vkDestroyBuffer destroy_buffer = nullptr;
VkBuffer nonsense() {
  VkBuffer buffer;
  std::memset(&buffer, 0xD5, sizeof buffer);
  return buffer;
}
VKAPI_ATTR VkResult VKAPI_CALL nonsense_for_a_buffer(VkDevice, const VkBufferCreateInfo*, const VkAllocationCallbacks*,
                                                     VkBuffer* buffer) {
  ++calls;
  *buffer = nonsense();
  return VK_ERROR_OUT_OF_HOST_MEMORY;
}
VKAPI_ATTR void VKAPI_CALL no_nonsense(VkDevice device, VkBuffer buffer, const VkAllocationCallbacks* host) {
  if (buffer == nonsense()) {
    ++destroyed_nonsense;
  } else {
    destroy_buffer(device, buffer, host);
  }
}

TEST_F(Faults, WhatAFunctionThatFailsHasWrittenIsNotDestroyed) {
  destroyed_nonsense = 0;
  destroy_buffer = whole_.vkDestroyBuffer;
  vk_->vkCreateBuffer = nonsense_for_a_buffer;
  vk_->vkDestroyBuffer = no_nonsense;
  tuff_buffer buffer = 0;
  EXPECT_FAILS(tuff_alloc(context(), 100 << 20, &buffer), TUFF_ERROR_OUT_OF_HOST_MEMORY, "tuff_alloc",
               "vkCreateBuffer");
  EXPECT_GT(calls, 0);
  EXPECT_EQ(destroyed_nonsense, 0u);
  *vk_ = whole_;
  expect_works(context());
}

VKAPI_ATTR VkResult VKAPI_CALL too_many_allocations(VkDevice, const VkMemoryAllocateInfo*, const VkAllocationCallbacks*,
                                                    VkDeviceMemory*) {
  ++calls;
  return VK_ERROR_TOO_MANY_OBJECTS;
}

TEST_F(Faults, AsManyAllocationsAsTheDeviceAllowsIsALimit) {
  vk_->vkAllocateMemory = too_many_allocations;
  tuff_buffer buffer = 0;
  EXPECT_FAILS(tuff_alloc(context(), 100 << 20, &buffer), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc",
               "VK_ERROR_TOO_MANY_OBJECTS");
  EXPECT_EQ(calls, 2) << "it gives back what it can and tries again";
  *vk_ = whole_;
  expect_works(context());
}

VKAPI_ATTR VkResult VKAPI_CALL no_memory_for_timestamps(VkDevice, VkQueryPool, uint32_t, uint32_t, size_t, void*,
                                                        VkDeviceSize, VkQueryResultFlags) {
  ++calls;
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

TEST_F(Faults, AProfileThatCannotBeEndedForWantOfMemoryGoesOn) {
  const Tensor x(context(), std::vector<float>(100, 2.0f));
  ASSERT_OK(tuff_profile_begin(context()));
  ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, x, x, 100));
  vk_->vkGetQueryPoolResults = no_memory_for_timestamps;
  EXPECT_FAILS(tuff_profile_end(context()), TUFF_ERROR_OUT_OF_DEVICE_MEMORY, "tuff_profile_end",
               "vkGetQueryPoolResults");
  EXPECT_GT(calls, 0);
  *vk_ = whole_;
  EXPECT_OK(tuff_profile_end(context()));
  EXPECT_FAILS(tuff_profile_end(context()), TUFF_ERROR_INVALID_ARGUMENT, "tuff_profile_end", "not being profiled");
}

TEST(FaultsOfLists, AListThatGrowsIsAskedForAgain) {
  uint32_t length = 3;
  const auto list = [&](uint32_t* count, int* numbers) {
    if (numbers == nullptr) {
      *count = length++;
      return VK_SUCCESS;
    }
    const bool whole = *count == 5;
    for (uint32_t i = 0; i < *count; ++i) numbers[i] = static_cast<int>(i);
    return whole ? VK_SUCCESS : VK_INCOMPLETE;
  };
  EXPECT_EQ(tuff::list_vk<int>("list", list), (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(FaultsOfLists, AListThatCannotBeHadIsNotEmpty) {
  for (const bool at_once : {true, false}) {
    const auto list = [&](uint32_t* count, int* numbers) {
      if (numbers == nullptr && !at_once) {
        *count = 3;
        return VK_SUCCESS;
      }
      *count = 0xD5D5D5D5;
      return VK_ERROR_OUT_OF_HOST_MEMORY;
    };
    EXPECT_THROW(tuff::list_vk<int>("list", list), tuff::Error);
    EXPECT_THROW(tuff::list_optional_vk<int>("list", list), tuff::Error);
  }
  const auto unknown = [](uint32_t*, int*) { return VK_ERROR_UNKNOWN; };
  EXPECT_THROW(tuff::list_vk<int>("list", unknown), tuff::Error);
  EXPECT_TRUE(tuff::list_optional_vk<int>("list", unknown).empty());
}

TEST_F(Faults, FailedBlocksLeakNothing) {
  const uint64_t reserved = stats_of(context()).bytes_reserved;
  tuff_buffer buffer = 0;
  vk_->vkCreateBuffer = no_buffer;
  EXPECT_EQ(tuff_alloc(context(), 100 << 20, &buffer), TUFF_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_NE(last_error().find("VK_ERROR_OUT_OF_HOST_MEMORY"), std::string::npos) << last_error();
  *vk_ = whole_;
  vk_->vkMapMemory = no_map;
  // Only host-visible memory is mapped; without any, nothing fails.
  const bool unified = properties_of(context()).unified_memory != 0;
  EXPECT_EQ(tuff_alloc(context(), 100 << 20, &buffer) != TUFF_OK, unified);
  if (!unified) {
    EXPECT_OK(tuff_free(buffer));
  } else {
    EXPECT_EQ(stats_of(context()).bytes_reserved, reserved);
  }
  *vk_ = whole_;
  expect_works(context());
}

TEST_F(Faults, LostWhenSubmitting) {
  const OwnBuffer buffer(context(), 64);
  ASSERT_OK(tuff_synchronize(context()));
  vk_->vkQueueSubmit = lost_on_submit;
  ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 16));
  EXPECT_EQ(tuff_synchronize(context()), TUFF_ERROR_DEVICE_LOST);
  EXPECT_NE(last_error().find("VK_ERROR_DEVICE_LOST"), std::string::npos) << last_error();
  vk_->vkQueueSubmit = whole_.vkQueueSubmit;  // the device stays lost all the same
  expect_everything_says_lost(buffer);
  EXPECT_EQ(calls, 1);
  // A new context in the same process works beside the lost one.
  const OwnContext other("vulkan");
  expect_works(other);
}

TEST_F(Faults, WithoutMemoryToSubmitWhatIsRecordedIsKept) {
  const Tensor x(context(), std::vector<float>(64, 2.0f)), y(context(), std::vector<float>(64, 3.0f));
  const auto negate = [&](const Tensor& tensor) {
    return tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, tensor, tensor, 64);
  };
  tuff_graph graph = 0;
  ASSERT_OK(tuff_graph_begin(context()));
  ASSERT_OK(negate(y));
  ASSERT_OK(tuff_graph_end(context(), &graph));
  ASSERT_OK(tuff_synchronize(context()));
  ASSERT_OK(negate(x));
  vk_->vkQueueSubmit = no_memory_to_submit;
  EXPECT_FAILS(tuff_synchronize(context()), TUFF_ERROR_OUT_OF_DEVICE_MEMORY, "tuff_synchronize", "vkQueueSubmit");
  EXPECT_EQ(calls, 2) << "it gives back what it can and tries again";
  // Later calls that cannot be submitted either have no effect.
  EXPECT_FAILS(negate(x), TUFF_ERROR_OUT_OF_DEVICE_MEMORY, "tuff_unary", "vkQueueSubmit");
  EXPECT_FAILS(tuff_graph_launch(context(), graph), TUFF_ERROR_OUT_OF_DEVICE_MEMORY, "tuff_graph_launch",
               "vkQueueSubmit");
  EXPECT_EQ(tuff_synchronize(context()), TUFF_ERROR_OUT_OF_DEVICE_MEMORY);
  *vk_ = whole_;
  EXPECT_OK(tuff_synchronize(context()));
  expect_same_bits(x.read(), std::vector<float>(64, -2.0f));
  EXPECT_OK(tuff_graph_launch(context(), graph));
  expect_same_bits(y.read(), std::vector<float>(64, -3.0f));
  EXPECT_OK(tuff_graph_destroy(graph));
}

// Calls that succeeded before the command buffer was full take effect, whether it can be submitted at the time or not.
TEST_F(Faults, WithoutMemoryToSubmitCallsGoAsFarAsTheyCan) {
  const Tensor x(context(), std::vector<float>(64, 1.0f));
  ASSERT_OK(tuff_synchronize(context()));
  vk_->vkQueueSubmit = no_memory_to_submit;
  int done = 0;
  tuff_status status = TUFF_OK;
  while (done < 100000 && status == TUFF_OK) {
    status = tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, x, x, 64);
    done += status == TUFF_OK;
  }
  EXPECT_EQ(status, TUFF_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_GT(done, 1);
  *vk_ = whole_;
  expect_same_bits(x.read(), std::vector<float>(64, done % 2 == 0 ? 1.0f : -1.0f));
}

TEST_F(Faults, ACommandBufferThatCannotBeEndedIsLost) {
  const OwnBuffer buffer(context(), 64);
  ASSERT_OK(tuff_synchronize(context()));
  ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 16));
  vk_->vkEndCommandBuffer = no_memory_to_end;
  EXPECT_FAILS(tuff_synchronize(context()), TUFF_ERROR_DEVICE_LOST, "tuff_synchronize", "VK_ERROR_OUT_OF_HOST_MEMORY");
  *vk_ = whole_;
  expect_everything_says_lost(buffer);
  const OwnContext other("vulkan");
  expect_works(other);
}

TEST_F(Faults, LostWhileWaiting) {
  const tuff_buffer buffer = OwnBuffer(context(), 64).release();  // its context is destroyed before this test ends
  ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 16));
  vk_->vkWaitSemaphores = lost_on_wait;
  vk_->vkGetSemaphoreCounterValue = none_finished;  // otherwise a poll before the wait would see that it has finished
  float value = 0;
  const tuff_status status = tuff_copy_dtoh(context(), &value, buffer, 0, 4);
  *vk_ = whole_;
  EXPECT_EQ(status, TUFF_ERROR_DEVICE_LOST);
  expect_everything_says_lost(buffer);
  own_.reset();  // a lost device is freed all the same
  vk_ = nullptr;
}

TEST_F(Faults, ALateDeviceIsNotLost) {
  const Tensor x(context(), std::vector<float>(16, 2.0f));
  ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, x, x, 16));
  tuff_limits limits{};
  limits.struct_size = sizeof limits;
  limits.wait_milliseconds = 5;
  ASSERT_OK(tuff_context_set_limits(context(), &limits));
  vk_->vkWaitSemaphores = late;
  vk_->vkGetSemaphoreCounterValue = none_finished;
  EXPECT_FAILS(tuff_synchronize(context()), TUFF_ERROR_TIMEOUT, "tuff_synchronize", "5");
  *vk_ = whole_;
  limits.wait_milliseconds = 0;
  ASSERT_OK(tuff_context_set_limits(context(), &limits));
  EXPECT_OK(tuff_synchronize(context()));
  expect_same_bits(x.read(), std::vector<float>(16, -2.0f));
}

TEST_F(Faults, AFailedPipelineHasNoEffectAndIsTriedAgain) {
  const Tensor x(context(), std::vector<float>(16, 2.0f)), y(context(), 16);
  const tuff_stats before = stats_of(context());
  vk_->vkCreateComputePipelines = no_pipeline;
  EXPECT_EQ(tuff_unary(context(), TUFF_F32, TUFF_UNARY_SQRT, x, y, 16), TUFF_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_NE(last_error().find("VK_ERROR_OUT_OF_HOST_MEMORY"), std::string::npos) << last_error();
  vk_->vkCreateComputePipelines = whole_.vkCreateComputePipelines;
  vk_->vkCreateShaderModule = no_module;
  EXPECT_EQ(tuff_unary(context(), TUFF_F32, TUFF_UNARY_SQRT, x, y, 16), TUFF_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(calls, 2);
  *vk_ = whole_;
  EXPECT_EQ(stats_of(context()).dispatches, before.dispatches);
  y.expect_poisoned();
  ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_SQRT, x, y, 16));
  for (float value : y.read()) EXPECT_NEAR(value, 1.41421356, 4 * 0x1p-23);
}

// A failed creation of a custom kernel leaves nothing behind; a kernel can be destroyed although its device is lost.
TEST_F(Faults, CustomKernels) {
  const tuff_kernel_desc desc = glsl(kPlusOne);
  tuff_kernel kernel = 77;
  const auto expect_no_kernel = [&] {
    EXPECT_EQ(tuff_kernel_create(context(), &desc, &kernel), TUFF_ERROR_OUT_OF_HOST_MEMORY);
    EXPECT_EQ(kernel, 77u);
    *vk_ = whole_;
  };
  vk_->vkCreateShaderModule = no_module;
  expect_no_kernel();
  vk_->vkCreateComputePipelines = no_pipeline;
  expect_no_kernel();
  vk_->vkCreatePipelineLayout = no_layout;
  expect_no_kernel();
  vk_->vkCreateDescriptorSetLayout = no_set_layout;
  expect_no_kernel();
  EXPECT_EQ(calls, 4);
  ASSERT_OK(tuff_kernel_create(context(), &desc, &kernel));
  const Tensor a(context(), 1), b(context(), 1);
  const tuff_buffer buffers[] = {a, b};
  const auto launch = [&] { return tuff_kernel_launch(context(), kernel, buffers, 2, nullptr, 0, 1, 1, 1); };
  ASSERT_OK(launch());
  vk_->vkQueueSubmit = lost_on_submit;
  EXPECT_EQ(tuff_synchronize(context()), TUFF_ERROR_DEVICE_LOST);
  EXPECT_EQ(launch(), TUFF_ERROR_DEVICE_LOST);
  tuff_kernel other = 0;
  EXPECT_EQ(tuff_kernel_create(context(), &desc, &other), TUFF_ERROR_DEVICE_LOST);
  EXPECT_OK(tuff_kernel_destroy(kernel));
}

}  // namespace
}  // namespace tuff_test
