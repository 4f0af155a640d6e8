// A logical device: its function table, its queues and its properties.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "planning/recorder.hpp"
#include "runtime/vulkan/instance.hpp"
#include "runtime/vulkan/reconvergence_spirv.hpp"
#include "runtime/vulkan/vk.hpp"

namespace tuff {

// A heap's VK_EXT_memory_budget values: how much of it this process may use, and how much is in use.
struct HeapBudget {
  uint64_t budget = 0, used = 0;
  bool known() const noexcept { return budget != 0; }
  uint64_t left() const noexcept { return budget > used ? budget - used : 0; }
};
HeapBudget read_heap_budget(const PhysicalDevice& physical, uint32_t heap);
// For the largest device-local heap.
HeapBudget heap_budget(const PhysicalDevice& physical);
uint64_t heap_bytes(const PhysicalDevice& physical);

// Blocks of device memory have a multiple of this size if a request has a block of its own.
inline constexpr uint64_t kBlockGranule = 2ull << 20;

// The largest block that the device may have. Drivers guarantee maxMemoryAllocationSize (4 GiB on NVIDIA's) and may
// grant any size up to the heap's, which only an attempt shows.
uint64_t max_block_bytes(const PhysicalDevice& physical);

class Device {
 public:
  Device(Instance& instance, const PhysicalDevice& physical);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Every Vulkan call on the device goes through this table, so that tests can replace a function.
  VolkDeviceTable vk{};
  HeapBudget (*heap_budget)(const PhysicalDevice& physical, uint32_t heap) = read_heap_budget;
  VkDevice handle = VK_NULL_HANDLE;
  std::vector<VkQueue> queues;          // for compute, at least one, all of one family
  VkQueue copy_queue = VK_NULL_HANDLE;  // of a transfer-only family, if there is one
  const PhysicalDevice& physical;
  Instance& instance;
  DeviceTraits traits;
  // True if a tool is attached or TUFF_DEBUG_LABELS=1 is set: commands are labelled and objects named. Otherwise the
  // functions of VK_EXT_debug_utils are null.
  bool labels = false;
  PFN_vkCmdBeginDebugUtilsLabelEXT begin_label = nullptr;
  PFN_vkCmdEndDebugUtilsLabelEXT end_label = nullptr;
  bool full_subgroups = false;  // pipelines must ask for traits.subgroup_size explicitly
  // How accesses are kept within a descriptor's range: per pipeline on request, or in all pipelines of the device.
  enum class Robustness { none, by_pipeline, everywhere };
  Robustness robustness = Robustness::none;
  bool zeroes_shared = false;                         // if a kernel asks for it
  Reconvergence reconvergence = Reconvergence::core;  // of kernels with subgroup operations
  bool native = false;                                // kernels in PTX can be loaded

  // Commands on the copy queue can be timed.
  bool times_copies() const { return host_query_reset_ && physical.copy_timestamp_bits != 0; }
  // The queue families that use the device's buffers.
  std::span<const uint32_t> families() const { return {families_, copy_queue != VK_NULL_HANDLE ? 2u : 1u}; }

  bool lost() const noexcept { return lost_by_.load(std::memory_order_relaxed) != nullptr; }
  // Throws DEVICE_LOST if the device is lost.
  void require_alive() const {
    if (lost_by_.load(std::memory_order_acquire) != nullptr) [[unlikely]]
      refuse_lost();
  }
  // Like check_vk, and records that the device was lost and by which call. `what` has static storage.
  void check(VkResult result, const char* what);
  // Like check(), for a call that creates `made`, whose content is undefined if the call failed. Counts the object.
  template <typename Handle>
  void check_made(VkResult result, Handle& made, const char* what) {
    if (result != VK_SUCCESS) made = VK_NULL_HANDLE;
    check(result, what);
    count_object();
  }
  // Marks the device as lost because this call failed in a way that leaves its work incomplete.
  [[noreturn]] void lose(const char* what, VkResult result);
  // Descriptor set layouts are for push descriptors. A pipeline layout may go without a set (null)
  // and without push constants (push_bytes 0).
  VkDescriptorSetLayout make_set_layout(std::span<const VkDescriptorSetLayoutBinding> bindings);
  VkPipelineLayout make_pipeline_layout(VkDescriptorSetLayout set, uint32_t push_bytes);
  VkShaderModule make_shader_module(std::span<const uint32_t> words);
  // A kernel in PTX; only if `native` is set. The function is null if the driver refuses the text.
  struct Native {
    VkCuModuleNVX module = VK_NULL_HANDLE;
    VkCuFunctionNVX function = VK_NULL_HANDLE;
  };
  Native load_native(const std::string& ptx, const char* entry);
  void destroy_native(VkCuModuleNVX module, VkCuFunctionNVX function) noexcept;
  // A command buffer in a pool of its own; destroying the pool frees it.
  struct Commands {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer buffer = VK_NULL_HANDLE;
  };
  // `more`: further command buffers of the same pool.
  Commands make_commands(uint32_t family, VkCommandPoolCreateFlags flags, std::span<VkCommandBuffer> more = {});
  // To be called after every vkCreate* and vkAllocate*.
  void count_object() noexcept { objects_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t objects() const noexcept { return objects_.load(std::memory_order_relaxed); }

  // Does nothing without labels.
  template <typename Handle>
  void set_name(VkObjectType type, Handle object, const char* name) {
    if (labels) name_object(type, (uint64_t)object, name);  // NOLINT: a pointer or a number, by platform
  }

  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  void create();
  void choose();
  void open(const VkPhysicalDeviceFeatures2& features, std::span<const char* const> extensions);
  void destroy() noexcept;
  [[noreturn]] void refuse_lost() const;
  void read_traits();
  void load_labels();
  void name_object(VkObjectType type, uint64_t object, const char* name);

  PFN_vkSetDebugUtilsObjectNameEXT set_name_ = nullptr;
  std::atomic<VkResult> loss_{VK_SUCCESS};     // the first error that lost the device
  std::atomic<const char*> lost_by_{nullptr};  // the function that returned it
  std::atomic<uint64_t> objects_{0};
  uint32_t families_[2] = {};
  bool host_query_reset_ = false;
  uint32_t heap_ = 0;
  uint64_t memory_bytes_ = 0;
};

// A physical device's properties, for tuff_device_info and tuff_context_info.
void describe(const PhysicalDevice& physical, tuff_device_properties& properties);

}  // namespace tuff
