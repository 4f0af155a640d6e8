// The process's VkInstance and what it finds: usable devices, best first or as TUFF_VISIBLE_DEVICES has them, and why
// others are refused.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runtime/vulkan/matrix_cores.hpp"
#include "runtime/vulkan/vk.hpp"

namespace tuff {

// All that is read from a physical device, once.
struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceVulkan11Properties properties11{};
  VkPhysicalDeviceFloatControlsProperties float_controls{};
  VkPhysicalDeviceDriverProperties driver{};
  VkPhysicalDeviceMaintenance3Properties maintenance3{};
  VkPhysicalDeviceSubgroupSizeControlProperties subgroup_control{};
  VkPhysicalDeviceMemoryProperties memory{};
  VkPhysicalDeviceFeatures features{};
  VkPhysicalDeviceVulkan11Features features11{};
  VkPhysicalDeviceVulkan12Features features12{};
  std::vector<VkQueueFamilyProperties> queue_families;
  uint32_t queue_family = 0;  // the first that computes, compute-only families last
  uint32_t queue_count = 1;   // of that family
  uint32_t copy_family = 0;   // one that only copies; the same where there is none
  uint32_t cores = 0;         // 0 if the driver does not say
  bool push_descriptors = false;
  bool memory_budget = false;
  bool portability_subset = false;
  uint32_t timestamp_bits = 0;         // of the queue family; 0: it has no timestamps
  uint32_t copy_timestamp_bits = 0;    // of the family for copies
  bool calibrated_timestamps = false;  // the host can read the device's clock
  bool debug_markers = false;          // a tool is attached that shows labels
  bool memory_fd = false;              // exports and imports memory by file descriptors
  bool memory_fd_dedicated = false;    // and only memory of one buffer
  uint64_t host_import_alignment = 0;  // of host memory that can be imported; 0: none can
  bool subgroup_size_control = false;
  bool matrix_cores = false;         // by VK_KHR_cooperative_matrix
  bool bfloat16 = false;             // in matrix products
  bool robust_access = false;        // accesses beyond a descriptor's range can be made harmless, exactly there
  bool pipeline_robustness = false;  // and that for one pipeline and not for another
  bool zeroes_shared = false;        // shared variables may have an initialiser
  std::vector<MatrixShape> matrix_shapes;
  std::string lacks;  // empty if the device is usable
};

class Instance {
 public:
  // Made when first asked for and never destroyed: drivers do not survive teardown at exit.
  // Throws NO_DEVICE if there is no loader or driver, UNSUPPORTED if the layer is asked for and missing.
  static Instance& get(bool validation);

  // Throws INVALID_ARGUMENT if TUFF_VISIBLE_DEVICES cannot be followed.
  const std::vector<PhysicalDevice>& devices() const;
  // "llvmpipe lacks timeline semaphores": the devices that were passed over, each with all the reasons.
  const std::vector<std::string>& refusals() const { return refusals_; }
  bool debug_utils() const { return debug_utils_; }
  uint64_t validation_messages() const { return messages_.load(std::memory_order_relaxed); }

  // By what match_devices() takes; empty: the first. Throws NO_DEVICE.
  const PhysicalDevice& choose(const std::string& wanted) const;

 private:
  explicit Instance(bool validation);
  void create(bool validation);
  void enumerate();
  void keep_visible();
  static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                   VkDebugUtilsMessageTypeFlagsEXT types,
                                                   const VkDebugUtilsMessengerCallbackDataEXT* data, void* user);

  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::vector<PhysicalDevice> devices_;
  std::vector<std::string> refusals_;
  std::string selection_problem_;  // why TUFF_VISIBLE_DEVICES cannot be followed
  bool debug_utils_ = false;
  std::atomic<uint64_t> messages_{0};
};

}  // namespace tuff
