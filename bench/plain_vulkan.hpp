// The peer of small calls: what the device's driver takes for them when a program written for nothing else calls it.
#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tuff/tuff.hpp"

namespace bench {

// max(x, 0) of `values` floats in place, many times, by a pipeline of its own: nothing is checked, looked up, allocated
// or tracked. Buffers are bound by what costs such a device least: on processors by descriptor sets that are there
// before, on GPUs by addresses in push constants.
class PlainVulkan {
 public:
  explicit PlainVulkan(const tuff::DeviceProperties& device);  // on the same one
  ~PlainVulkan();
  PlainVulkan(const PlainVulkan&) = delete;
  PlainVulkan& operator=(const PlainVulkan&) = delete;

  // So many buffers, for calls to go through in turn. Values are a multiple of four.
  void allocate(uint64_t values, uint64_t buffers);
  // Call i works on buffer i % buffers; each waits for the one before if there is one buffer only.
  void eager(uint64_t calls);   // recorded anew and submitted
  void record(uint64_t calls);  // once, for replay()
  void replay();
  void finish();  // waits for all

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
  // Two that take turns, so that one is recorded or submitted while the device has the other.
  std::array<VkCommandBuffer, 2> commands_{};
  std::array<VkFence, 2> fences_{};
  uint64_t turn_ = 0;
  uint64_t values_ = 0;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkBuffer buffer_ = VK_NULL_HANDLE;  // all of them, one after the other
  std::vector<VkDeviceAddress> addresses_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkDescriptorPool set_pool_ = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets_;
};

}  // namespace bench
