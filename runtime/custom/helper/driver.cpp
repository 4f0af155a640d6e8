#include "runtime/custom/helper/driver.hpp"

#include <algorithm>
#include <cstring>

#include "planning/status.hpp"
#include "runtime/vulkan/custom_objects.hpp"
#include "runtime/vulkan/device.hpp"
#include "runtime/vulkan/memory_block.hpp"

namespace tuff {
namespace {

const PhysicalDevice& find(Instance& instance, const DriverTrial& trial) {
  for (const PhysicalDevice& device : instance.devices()) {
    if (std::memcmp(device.properties11.deviceUUID, trial.device.data(), trial.device.size()) == 0 &&
        std::memcmp(device.properties.pipelineCacheUUID, trial.pipeline_cache.data(), trial.pipeline_cache.size()) == 0)
      return device;
  }
  fail(TUFF_ERROR_UNSUPPORTED, "the driver is a different one in a separate process");
}

}  // namespace

struct DriverCompiler::Objects {
  explicit Objects(const DriverTrial& trial) : device(Instance::get(false), find(Instance::get(false), trial)) {
    commands = device.make_commands(device.physical.queue_family, VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT);
    // A buffer for the kernel's bindings: the kernel is never run, but its commands must still be valid.
    buffer.size = 65536;
    const VkMemoryRequirements needed = make_block_buffer(device, buffer);
    uint32_t type = 0;
    while (type < 32 && (needed.memoryTypeBits >> type & 1) == 0) ++type;
    device.check(allocate_block(device, buffer, needed.size, type), "vkAllocateMemory");
    bind_block(device, buffer, false);
  }

  void compile(const std::vector<uint32_t>& words, const std::string& entry, const std::vector<uint32_t>& bindings,
               uint32_t push_bytes, bool robust) {
    const VkDescriptorSetLayout set = make_custom_set(device, bindings);
    const VkPipelineLayout layout = device.make_pipeline_layout(set, (push_bytes + 3) / 4 * 4);
    const VkPipeline pipeline = make_custom_pipeline(device, layout, words, entry, robust, VK_NULL_HANDLE);
    const VolkDeviceTable& vk = device.vk;
    const VkCommandBuffer to = commands.buffer;
    VkCommandBufferBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    device.check(vk.vkBeginCommandBuffer(to, &begin), "vkBeginCommandBuffer");
    vk.vkCmdBindPipeline(to, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    std::vector<VkDescriptorBufferInfo> buffers(bindings.size(), {buffer.buffer, 0, VK_WHOLE_SIZE});
    std::vector<VkWriteDescriptorSet> writes(bindings.size());
    for (size_t i = 0; i < bindings.size(); ++i) {
      writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
      writes[i].dstBinding = bindings[i];
      writes[i].descriptorCount = 1;
      writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      writes[i].pBufferInfo = &buffers[i];
    }
    if (!writes.empty()) {
      vk.vkCmdPushDescriptorSetKHR(to, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, static_cast<uint32_t>(writes.size()),
                                   writes.data());
    }
    const std::vector<uint32_t> push((push_bytes + 3) / 4);
    if (!push.empty()) {
      vk.vkCmdPushConstants(to, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, static_cast<uint32_t>(push.size() * 4),
                            push.data());
    }
    // lavapipe generates machine code when a kernel is first dispatched, even with no workgroups.
    vk.vkCmdDispatch(to, 0, 1, 1);
    device.check(vk.vkEndCommandBuffer(to), "vkEndCommandBuffer");
    VkSubmitInfo submit{};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &to;
    device.check(vk.vkQueueSubmit(device.queues[0], 1, &submit, VK_NULL_HANDLE), "vkQueueSubmit");
    device.check(vk.vkQueueWaitIdle(device.queues[0]), "vkQueueWaitIdle");
    // The other objects are freed with the process.
    vk.vkDestroyPipeline(device.handle, pipeline, nullptr);
  }

  Device device;
  Device::Commands commands;
  MemoryBlock buffer;
};

DriverCompiler::DriverCompiler(const DriverTrial& trial) : objects_(std::make_unique<Objects>(trial)) {
  CustomSource nothing;
  nothing.text = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n";
  objects_->compile(compile_custom(nothing).words, "main", {}, 0, false);
}

DriverCompiler::~DriverCompiler() = default;

void DriverCompiler::compile(const DriverTrial& trial) {
  try {
    objects_->compile(trial.words, trial.entry, trial.bindings, trial.push_bytes, trial.robust);
  } catch (const Error& error) {
    fail(TUFF_ERROR_COMPILE_FAILED, "{}: the driver does not compile it: {}", trial.name, error.what());
  }
}

}  // namespace tuff
