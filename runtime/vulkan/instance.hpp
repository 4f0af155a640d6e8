// The process's VkInstance and its devices: those that are usable, best first or as TUFF_VISIBLE_DEVICES orders them,
// and why the others are rejected.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runtime/vulkan/matrix_cores.hpp"
#include "runtime/vulkan/vk.hpp"

namespace tuff {

// Everything read from a physical device, once.
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
  uint32_t queue_family = 0;               // for compute
  uint32_t queue_count = 1;                // of that family
  uint32_t copy_family = 0;                // a transfer-only family, or queue_family if there is none
  uint32_t cores = 0;                      // 0 if unknown
  uint64_t max_buffer_bytes = UINT64_MAX;  // of one VkBuffer
  bool push_descriptors = false;
  bool memory_budget = false;
  bool portability_subset = false;
  uint32_t timestamp_bits = 0;         // of the queue family; 0: no timestamps
  uint32_t copy_timestamp_bits = 0;    // of copy_family
  bool calibrated_timestamps = false;  // the host can read the device's clock
  bool debug_markers = false;          // an attached tool shows labels
  bool memory_fd = false;              // can export and import memory as file descriptors
  bool memory_fd_dedicated = false;    // only dedicated allocations
  uint64_t host_import_alignment = 0;  // alignment of host memory that can be imported; 0: unsupported
  bool subgroup_size_control = false;
  bool matrix_cores = false;           // VK_KHR_cooperative_matrix
  bool bfloat16 = false;               // in cooperative matrices
  bool robust_access = false;          // accesses beyond a descriptor's exact range can be made harmless
  bool pipeline_robustness = false;    // the same, for individual pipelines
  bool zeroes_shared = false;          // shared variables may have an initialiser
  bool uniform_control_flow = false;   // VK_KHR_shader_subgroup_uniform_control_flow
  bool maximal_reconvergence = false;  // VK_KHR_shader_maximal_reconvergence
  bool binary_import = false;          // VK_NVX_binary_import: kernels in PTX
  bool compute_only = false;           // the queue family has no graphics
  std::vector<MatrixShape> matrix_shapes;
  std::string pci_address;  // "0000:03:00.0"; empty if unknown
  std::string lacks;        // empty if the device is usable
};

class Instance {
 public:
  // Created on first use and never destroyed, because drivers do not survive teardown at exit. Throws NO_DEVICE if
  // there is no loader or driver, UNSUPPORTED if the validation layer is requested but missing.
  static Instance& get(bool validation);

  // Throws INVALID_ARGUMENT if TUFF_VISIBLE_DEVICES is invalid.
  const std::vector<PhysicalDevice>& devices() const;
  // "llvmpipe lacks timeline semaphores": the rejected devices, each with all reasons.
  const std::vector<std::string>& refusals() const { return refusals_; }
  bool debug_utils() const { return debug_utils_; }
  uint64_t validation_messages() const { return messages_.load(std::memory_order_relaxed); }

  // Selects as match_devices() does; empty: the first device. Throws NO_DEVICE.
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
  std::string selection_problem_;  // why TUFF_VISIBLE_DEVICES is invalid
  bool debug_utils_ = false;
  std::atomic<uint64_t> messages_{0};
};

}  // namespace tuff
