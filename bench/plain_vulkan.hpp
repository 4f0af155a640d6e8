// The peer of small calls: the time the device's driver takes when a minimal Vulkan program calls it.
#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tuff/tuff.hpp"

namespace bench {

// Computes max(x, 0) of `values` floats in place, many times, with its own pipeline, and without any checks, lookups,
// allocation or hazard tracking. Buffers are bound in the way that is cheapest for the device: on CPU devices by
// descriptor sets created in advance, on GPUs by addresses in push constants.
class PlainVulkan {
 public:
  explicit PlainVulkan(const tuff::DeviceProperties& device);  // on the same device
  ~PlainVulkan();
  PlainVulkan(const PlainVulkan&) = delete;
  PlainVulkan& operator=(const PlainVulkan&) = delete;

  // Allocates buffers, which calls cycle through. `values` must be a multiple of four.
  void allocate(uint64_t values, uint64_t buffers);
  // Call i works on buffer i % buffers. With a single buffer each call waits for the previous one.
  void eager(uint64_t calls);   // records again and submits
  void record(uint64_t calls);  // records once, for replay()
  void replay();
  void finish();  // waits for everything

 private:
  void find(const tuff::DeviceProperties& device);
  void create_device();
  void create_commands();
  void create_sets();
  void destroy();
  void free_buffers();
  void create_pipeline();
  void write(VkCommandBuffer commands, uint64_t calls, VkCommandBufferUsageFlags usage);
  void submit(uint64_t turn);
  void wait(VkFence fence);

  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0;
  bool by_sets_ = false;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  // Two, used alternately: one is recorded or submitted while the device executes the other.
  std::array<VkCommandBuffer, 2> commands_{};
  std::array<VkFence, 2> fences_{};
  uint64_t turn_ = 0;
  uint64_t values_ = 0;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkBuffer buffer_ = VK_NULL_HANDLE;  // holds all buffers, one after the other
  std::vector<VkDeviceAddress> addresses_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkDescriptorPool set_pool_ = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets_;
};

}  // namespace bench
