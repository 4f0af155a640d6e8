#include "runtime/vulkan/command_writer.hpp"

#include <algorithm>
#include <cstring>

namespace tuff {
namespace {

VkAccessFlags writes_of(VkPipelineStageFlags stages) {
  VkAccessFlags access = 0;
  if (stages & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) access |= VK_ACCESS_SHADER_WRITE_BIT;
  if (stages & VK_PIPELINE_STAGE_TRANSFER_BIT) access |= VK_ACCESS_TRANSFER_WRITE_BIT;
  return access;
}

VkAccessFlags accesses_of(VkPipelineStageFlags stages) {
  VkAccessFlags access = writes_of(stages);
  if (stages & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) access |= VK_ACCESS_SHADER_READ_BIT;
  if (stages & VK_PIPELINE_STAGE_TRANSFER_BIT) access |= VK_ACCESS_TRANSFER_READ_BIT;
  return access;
}

}  // namespace

void CommandWriter::forget() noexcept {
  hazards_.clear();
  pending_stages_ = 0;
  transfers_uncovered_ = false;
}

void CommandWriter::assume_everything() noexcept {
  hazards_.add_everything();
  pending_stages_ |= all_stages();
  hidden_from_host_ = true;
}

void CommandWriter::wait_for_all() {
  const VkPipelineStageFlags stages = all_stages();
  const VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, writes_of(stages), accesses_of(stages)};
  device_->vk.vkCmdPipelineBarrier(commands_, stages, stages, 0, 1, &barrier, 0, nullptr, 0, nullptr);
  forget();
}

void CommandWriter::show_to_host() {
  if (!hidden_from_host_) return;
  // All writes: the data waited for may come from kernels, even if this queue only copies.
  const VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_MEMORY_WRITE_BIT,
                                VK_ACCESS_HOST_READ_BIT};
  device_->vk.vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                                   &barrier, 0, nullptr, 0, nullptr);
  hidden_from_host_ = false;
}

void CommandWriter::barrier(VkPipelineStageFlags stage) {
  // Covers all later work, of either kind, so that the tracker starts empty; between kernels, it covers only kernels.
  const bool kernels_alone =
      stage == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT && pending_stages_ == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  const VkPipelineStageFlags next = kernels_alone ? stage : all_stages();
  const VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, writes_of(pending_stages_),
                                accesses_of(next)};
  device_->vk.vkCmdPipelineBarrier(commands_, pending_stages_, next, 0, 1, &barrier, 0, nullptr, 0, nullptr);
  ++barriers_;
  hazards_.clear();
  // A barrier between kernels does not cover transfers; the next transfer adds one.
  transfers_uncovered_ = kernels_alone;
  pending_stages_ = 0;
}

void CommandWriter::order(const HazardTracker::Range* ranges, uint32_t count, VkPipelineStageFlags stage,
                          bool everything) {
  bool wait = !hazards_.has_room(count) || (everything && !hazards_.empty());
  for (uint32_t i = 0; i < count && !wait; ++i) wait = hazards_.conflicts(ranges[i]);
  if (stage == VK_PIPELINE_STAGE_TRANSFER_BIT && transfers_uncovered_) {
    // Work before the last barrier was made visible to kernels only.
    pending_stages_ |= VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    wait = true;
  }
  if (wait) barrier(stage);
  for (uint32_t i = 0; i < count; ++i) hazards_.add(ranges[i]);
  if (everything) hazards_.add_everything();
  pending_stages_ |= stage;
  hidden_from_host_ = true;
}

void CommandWriter::order(const BoundDispatch& dispatch) {
  const Touched& touched = dispatch.touched;
  if (dispatch.addresses || !dispatch.bases) {
    order(touched.ranges.data(), touched.count, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, touched.everything);
    return;
  }
  // A descriptor begins at an aligned address before its operand. Its whole range counts, as in the validation layer.
  const uint64_t alignment = device_->physical.properties.limits.minStorageBufferOffsetAlignment;
  std::array<HazardTracker::Range, Touched::kMaxRanges + Dispatch::kMaxSlots> ranges;
  static_assert(HazardTracker::kCapacity >= ranges.size());
  for (uint32_t i = 0; i < touched.count; ++i) {
    ranges[i] = touched.ranges[i];
    ranges[i].begin &= ~(alignment - 1);  // a power of two
  }
  // A texel buffer covers its block.
  uint32_t count = touched.count;
  for (uint32_t i = 0; dispatch.texels >> (4 * i) != 0; ++i) {
    const MemoryBlock* const block = dispatch.bound[i].block;
    if (texel_bytes(dispatch.texels, i) == 0 || block == nullptr) continue;
    const HazardTracker::Range whole{block->id, 0, block->size, false};
    const auto begin = ranges.begin() + touched.count, end = ranges.begin() + count;
    const bool known =
        std::any_of(begin, end, [&](const HazardTracker::Range& range) { return range.block == whole.block; });
    if (!known) ranges[count++] = whole;
  }
  order(ranges.data(), count, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, touched.everything);
}

void CommandWriter::order(const BoundCopy& copy) {
  HazardTracker::Range ranges[2];
  uint32_t count = 0;
  if (copy.tracked[0]) ranges[count++] = {copy.to->id, copy.to_offset, copy.to_end(), true};
  if (copy.tracked[1]) ranges[count++] = {copy.from->id, copy.from_offset, copy.from_end(), false};
  order(ranges, count, VK_PIPELINE_STAGE_TRANSFER_BIT);
}

void CommandWriter::order(const BoundFill& fill) {
  const HazardTracker::Range range{fill.to->id, fill.offset, fill.offset + fill.bytes, true};
  order(&range, 1, VK_PIPELINE_STAGE_TRANSFER_BIT);
}

void CommandWriter::push_descriptors(const BoundDispatch& dispatch, uint64_t* bases) {
  const uint64_t alignment = device_->physical.properties.limits.minStorageBufferOffsetAlignment;
  std::array<VkDescriptorBufferInfo, BoundDispatch::kMaxSlots> infos;
  std::array<VkBufferView, BoundDispatch::kMaxSlots> views;
  std::array<VkWriteDescriptorSet, BoundDispatch::kMaxSlots> writes;
  for (uint32_t i = 0; i < dispatch.slots; ++i) {
    const Bound& at = dispatch.bound[i].block != nullptr ? dispatch.bound[i] : unused_;
    if (const uint64_t bytes = dispatch.texels != 0 ? texel_bytes(dispatch.texels, i) : 0; bytes != 0) {
      views[i] = texels_of(*device_, *at.block, bytes);  // made when the operands were bound
      bases[i] = at.begin;
      writes[i] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,  nullptr, VK_NULL_HANDLE, i,        0, 1,
                   VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, nullptr, nullptr,        &views[i]};
      continue;
    }
    const uint64_t residual = dispatch.bases ? at.begin & (alignment - 1) : 0;  // a power of two
    infos[i] = {at.block->buffer, at.begin - residual, at.end - at.begin + residual};
    if (dispatch.bases) bases[i] = residual;
    const uint32_t binding = dispatch.bases ? i : dispatch.bindings[i];
    writes[i] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, VK_NULL_HANDLE, binding, 0, 1,
                 VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,      nullptr, &infos[i],      nullptr};
  }
  device_->vk.vkCmdPushDescriptorSetKHR(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.layout, 0, dispatch.slots,
                                        writes.data());
}

// A kernel in PTX. Pipelines have to be bound again after it.
void CommandWriter::launch(const BoundDispatch& dispatch) {
  std::array<uint64_t, BoundDispatch::kMaxSlots> addresses;
  std::array<const void*, BoundDispatch::kMaxSlots + kMaxPtxPushBytes> parameters;
  uint32_t count = 0;
  for (uint32_t i = 0; i < dispatch.slots; ++i) {
    const Bound& at = dispatch.bound[i];
    addresses[i] = at.block != nullptr ? at.block->address + at.begin : 0;
  }
  if (!dispatch.bases) {
    for (const auto [is_buffer, at] : dispatch.parameters) {
      parameters[count++] = is_buffer ? static_cast<const void*>(&addresses[at]) : &dispatch.push[at];
    }
  } else {
    for (; count < dispatch.slots; ++count) parameters[count] = &addresses[count];
    if (dispatch.push_bytes != 0) parameters[count++] = dispatch.push.data();
  }
  VkCuLaunchInfoNVX info{};
  info.sType = VK_STRUCTURE_TYPE_CU_LAUNCH_INFO_NVX;
  info.function = dispatch.function;
  info.gridDimX = dispatch.groups[0];
  info.gridDimY = dispatch.groups[1];
  info.gridDimZ = dispatch.groups[2];
  info.blockDimX = dispatch.workgroup_size[0];
  info.blockDimY = dispatch.workgroup_size[1];
  info.blockDimZ = dispatch.workgroup_size[2];
  info.sharedMemBytes = dispatch.shared_bytes;
  info.paramCount = count;
  info.pParams = parameters.data();
  device_->vk.vkCmdCuLaunchKernelNVX(commands_, &info);
  pipeline_ = VK_NULL_HANDLE;
}

void CommandWriter::write(const BoundDispatch& dispatch) {
  if (dispatch.function != VK_NULL_HANDLE) return launch(dispatch);
  const VolkDeviceTable& vk = device_->vk;
  if (pipeline_ != dispatch.pipeline) {
    vk.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline);
    pipeline_ = dispatch.pipeline;
  }
  // The bases of the operands, then the kernel's own parameters.
  alignas(8) std::byte push[BoundDispatch::kPushBytes + Dispatch::kMaxSlots * 8];
  const uint32_t base_bytes = dispatch.bases ? dispatch.slots * 8 : 0;
  auto* bases = reinterpret_cast<uint64_t*>(push);
  if (dispatch.addresses) {
    for (uint32_t i = 0; i < dispatch.slots; ++i) {
      const Bound& at = dispatch.bound[i];
      bases[i] = at.block != nullptr ? at.block->address + at.begin : 0;
    }
  } else if (dispatch.slots != 0) {
    push_descriptors(dispatch, bases);
  }
  std::memcpy(push + base_bytes, dispatch.push.data(), dispatch.push_bytes);
  if (const uint32_t bytes = base_bytes + dispatch.push_bytes; bytes != 0) {
    vk.vkCmdPushConstants(commands_, dispatch.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, bytes, push);
  }
  vk.vkCmdDispatch(commands_, dispatch.groups[0], dispatch.groups[1], dispatch.groups[2]);
}

void CommandWriter::write(const BoundCopy& copy) {
  std::array<VkBufferCopy, 64> regions;
  for (uint64_t row = 0; row < copy.rows;) {
    uint32_t some = 0;
    for (; some < regions.size() && row < copy.rows; ++some, ++row) {
      regions[some] = {copy.from_offset + row * copy.from_pitch, copy.to_offset + row * copy.to_pitch, copy.bytes};
    }
    device_->vk.vkCmdCopyBuffer(commands_, copy.from->buffer, copy.to->buffer, some, regions.data());
  }
}

void CommandWriter::write(const BoundFill& fill) {
  device_->vk.vkCmdFillBuffer(commands_, fill.to->buffer, fill.offset, fill.bytes, fill.word);
}

}  // namespace tuff
