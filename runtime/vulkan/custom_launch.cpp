// Recording a kernel that a caller brought: bound by descriptors that reach the whole of each buffer.
#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/log.hpp"
#include "runtime/vulkan/custom_pipeline.hpp"
#include "runtime/vulkan/stream_recorder.hpp"

namespace tuff {

void StreamRecorder::launch(VulkanKernel& kernel, const LaunchArgs& args) {
  device_->require_alive();
  const auto& groups = args.groups;
  if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0) return;
  std::array<HazardTracker::Range, TUFF_KERNEL_MAX_BINDINGS> ranges;
  std::array<VkDescriptorBufferInfo, TUFF_KERNEL_MAX_BINDINGS> infos;
  std::array<VkWriteDescriptorSet, TUFF_KERNEL_MAX_BINDINGS> writes;
  uint32_t count = 0;
  double bytes = 0;
  for (uint32_t i = 0; i < args.buffers.size(); ++i) {
    const KernelInterface::Binding& binding = kernel.interface().bindings[i];
    if (!binding.used) continue;
    const Buffer& buffer = *args.buffers[i];
    const DeviceLocation at = locate(buffer, 0);
    // A block that is only asked for its length is neither read nor written, and harmless to track as read.
    ranges[count] = {at.block->id, at.offset, at.offset + buffer.bytes, binding.written};
    infos[count] = {at.block->buffer, at.offset, buffer.bytes};
    writes[count] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, VK_NULL_HANDLE, i,      0, 1,
                     VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,      nullptr, &infos[count],  nullptr};
    bytes += static_cast<double>(buffer.bytes);
    ++count;
  }
  const VolkDeviceTable& vk = device_->vk;
  const RetiredPipelines::Objects& objects = kernel.objects();
  VkCommandBuffer commands = open();
  kernel.last_use.store(current_submission(), std::memory_order_relaxed);
  const uint64_t barriers_before = counters_.barriers;
  order(ranges.data(), count, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
  if (bound_ != objects.pipeline) {
    vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, objects.pipeline);
    bound_ = objects.pipeline;
  }
  if (count != 0) {
    vk.vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, objects.layout, 0, count, writes.data());
  }
  if (args.push_bytes != 0) {
    vk.vkCmdPushConstants(commands, objects.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, args.push_bytes, args.push);
  }
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    log(TUFF_LOG_DISPATCH, "kernel: {} by descriptors, {} x {} x {} groups{}", kernel.name(), groups[0], groups[1],
        groups[2], counters_.barriers != barriers_before ? ", after a barrier" : "");
  }
  observed([&] { return Command{DeviceSpan::Kind::kernel, "kernel", bytes, 0, kernel.name().c_str(), "", groups}; },
           [&] { vk.vkCmdDispatch(commands, groups[0], groups[1], groups[2]); });
  for (uint32_t i = 0; i < args.buffers.size(); ++i) {
    if (kernel.interface().bindings[i].used) touch(*args.buffers[i]);
  }
  ++counters_.dispatches;
  note_work(bytes, 0);
}

}  // namespace tuff
