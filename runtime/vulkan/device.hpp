// A logical device: its function table, its queues, and what it reports.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "planning/recorder.hpp"
#include "runtime/vulkan/instance.hpp"
#include "runtime/vulkan/vk.hpp"

namespace tuff {

// What VK_EXT_memory_budget says of a heap: how much of it this process may use, and how much is used.
struct HeapBudget {
  uint64_t budget = 0, used = 0;
  bool known() const noexcept { return budget != 0; }
  uint64_t left() const noexcept { return budget > used ? budget - used : 0; }
};
HeapBudget read_heap_budget(const PhysicalDevice& physical, uint32_t heap);

class Device {
 public:
  Device(Instance& instance, const PhysicalDevice& physical);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Every Vulkan call on the device goes through this table; a test may put its own function in.
  VolkDeviceTable vk{};
  HeapBudget (*heap_budget)(const PhysicalDevice& physical, uint32_t heap) = read_heap_budget;
  VkDevice handle = VK_NULL_HANDLE;
  std::vector<VkQueue> queues;          // that compute, at least one, all of one family
  VkQueue copy_queue = VK_NULL_HANDLE;  // of a family that only copies, if there is one
  const PhysicalDevice& physical;
  Instance& instance;
  DeviceTraits traits;
  // Commands are labelled and objects named, for a tool that is attached or under TUFF_DEBUG_LABELS=1; the functions of
  // VK_EXT_debug_utils are null otherwise.
  bool labels = false;
  PFN_vkCmdBeginDebugUtilsLabelEXT begin_label = nullptr;
  PFN_vkCmdEndDebugUtilsLabelEXT end_label = nullptr;
  bool full_subgroups = false;  // pipelines must ask for traits.subgroup_size explicitly
  // What keeps accesses within a descriptor's range: the pipeline, if it asks for it; the device, in all pipelines.
  enum class Robustness { none, by_pipeline, everywhere };
  Robustness robustness = Robustness::none;
  bool zeroes_shared = false;  // where a kernel asks for it

  // Commands on the queue for copies can be timed.
  bool times_copies() const { return host_query_reset_ && physical.copy_timestamp_bits != 0; }
  // Whose queues use the device's buffers.
  std::span<const uint32_t> families() const { return {families_, copy_queue != VK_NULL_HANDLE ? 2u : 1u}; }

  bool lost() const noexcept { return lost_by_.load(std::memory_order_relaxed) != nullptr; }
  // Throws DEVICE_LOST if the device is.
  void require_alive() const;
  // As check_vk, and remembers that the device is lost, and by which call: `what` has static storage.
  void check(VkResult result, const char* what);
  // As check(), of a call that was to write `made`, the contents of which are undefined where it failed; counts it.
  template <typename Handle>
  void check_made(VkResult result, Handle& made, const char* what) {
    if (result != VK_SUCCESS) made = VK_NULL_HANDLE;
    check(result, what);
    count_object();
  }
  // What the device was to do cannot be done any more, as this call returned that: from now on it counts as lost.
  [[noreturn]] void lose(const char* what, VkResult result);
  // Called after every vkCreate* and vkAllocate*.
  // Of storage buffers that are pushed; the second with or without such a set, push_bytes may be 0.
  VkDescriptorSetLayout make_set_layout(std::span<const VkDescriptorSetLayoutBinding> bindings);
  VkPipelineLayout make_pipeline_layout(VkDescriptorSetLayout set, uint32_t push_bytes);
  VkShaderModule make_shader_module(std::span<const uint32_t> words);
  // A command buffer in a pool of its own, with which it goes.
  struct Commands {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer buffer = VK_NULL_HANDLE;
  };
  Commands make_commands(uint32_t family, VkCommandPoolCreateFlags flags);
  void count_object() noexcept { objects_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t objects() const noexcept { return objects_.load(std::memory_order_relaxed); }

  // Does nothing without labels.
  template <typename Handle>
  void set_name(VkObjectType type, Handle object, const char* name) {
    if (labels) name_object(type, (uint64_t)object, name);  // NOLINT: a pointer or a number, by platform
  }

  // Of the heap that device-local memory comes from; 0 if the driver does not say.
  uint64_t free_memory() const;
  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  void create();
  void destroy() noexcept;
  void read_traits();
  void load_labels();
  void name_object(VkObjectType type, uint64_t object, const char* name);

  PFN_vkSetDebugUtilsObjectNameEXT set_name_ = nullptr;
  std::atomic<VkResult> loss_{VK_SUCCESS};     // the first that it was lost by
  std::atomic<const char*> lost_by_{nullptr};  // the function that returned it
  std::atomic<uint64_t> objects_{0};
  uint32_t families_[2] = {};
  bool host_query_reset_ = false;
  uint32_t heap_ = 0;
  uint64_t memory_bytes_ = 0;
};

// What a physical device says of itself, for tuff_device_info and tuff_context_info.
void describe(const PhysicalDevice& physical, tuff_device_properties& properties);

}  // namespace tuff
