#include "runtime/vulkan/stream_recorder.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "runtime/log.hpp"
#include "runtime/vulkan/matrix_probe.hpp"
#include "runtime/vulkan/timeline_wait.hpp"

namespace tuff {
namespace {

// When the open command buffer is worth a submission: so many operations, or so many seconds of work by
// a rough guess. A submission costs 5 to 80 µs, so the guess may be off by a lot without harm.
constexpr uint32_t kSubmitOperations = Profiler::kMostCommands;
constexpr double kSubmitSecondsGpu = 100e-6, kSubmitSecondsCpu = 1e-3;

}  // namespace

Dispatch& Dispatch::groups_linear(uint64_t total, const DeviceTraits& traits) {
  const uint64_t most = traits.max_groups[0];
  const uint64_t rows = ceil_div(total, most);
  if (rows > traits.max_groups[1]) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "{} workgroups are needed, the device runs {} x {} at once", total, most,
         traits.max_groups[1]);
  }
  return groups(static_cast<uint32_t>(rows == 0 ? 0 : ceil_div(total, rows)), static_cast<uint32_t>(rows));
}

StreamRecorder::StreamRecorder(std::shared_ptr<Device> device, std::shared_ptr<MemoryPool> pool, KernelCache& kernels)
    : device_(std::move(device)), pool_(std::move(pool)), kernels_(kernels) {
  const VolkDeviceTable& vk = device_->vk;
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore{};
  semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore.pNext = &type;
  device_->check(vk.vkCreateSemaphore(device_->handle, &semaphore, nullptr, &timeline_), "vkCreateSemaphore");
  device_->count_object();
  for (Slot& slot : ring_) {
    VkCommandPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    info.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    info.queueFamilyIndex = device_->physical.queue_family;
    device_->check(vk.vkCreateCommandPool(device_->handle, &info, nullptr, &slot.pool), "vkCreateCommandPool");
    device_->count_object();
    VkCommandBufferAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate.commandPool = slot.pool;
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = 1;
    device_->check(vk.vkAllocateCommandBuffers(device_->handle, &allocate, &slot.commands), "vkAllocateCommandBuffers");
    device_->count_object();
  }
  unused_.allocation =
      std::make_shared<VulkanAllocation>(pool_, pool_->allocate(MemoryPool::kAlignment, MemoryKind::device));
  unused_.bytes = MemoryPool::kAlignment;
  if (device_->labels) {
    kept_profiler_ = std::make_unique<Profiler>(device_, kRing);
    profiler_ = kept_profiler_.get();
  }
}

StreamRecorder::~StreamRecorder() {
  const VolkDeviceTable& vk = device_->vk;
  // at_rest() was asked before: what runs on belongs to nobody's context. A driver may wait for a lost device for ever.
  if (!device_->lost()) vk.vkDeviceWaitIdle(device_->handle);
  mark_completed(submitted_ + 1);
  for (const Slot& slot : ring_) vk.vkDestroyCommandPool(device_->handle, slot.pool, nullptr);
  vk.vkDestroySemaphore(device_->handle, timeline_, nullptr);
}

VkCommandBuffer StreamRecorder::open() {
  Slot& slot = ring_[slot_];
  if (recording_) return slot.commands;
  device_->require_alive();
  if (slot.submission > completed_ && slot.submission > poll()) wait(slot.submission);
  const VolkDeviceTable& vk = device_->vk;
  device_->check(vk.vkResetCommandPool(device_->handle, slot.pool, 0), "vkResetCommandPool");
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  device_->check(vk.vkBeginCommandBuffer(slot.commands, &begin), "vkBeginCommandBuffer");
  if (profiler_ != nullptr) profiler_->opened(slot.commands, slot_);
  recording_ = true;
  bound_ = VK_NULL_HANDLE;
  return slot.commands;
}

void StreamRecorder::make_room() {
  const uint64_t last = ring_[(slot_ + kMostOfOneOperation) % kRing].submission;
  if (last > completed_ && last > poll()) wait(last);
}

uint64_t StreamRecorder::submit(bool for_host) {
  const VolkDeviceTable& vk = device_->vk;
  if (for_host && hidden_from_host_) {
    VkMemoryBarrier barrier{};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vk.vkCmdPipelineBarrier(open(), VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                            VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
    hidden_from_host_ = false;
  }
  if (!recording_) return submitted_;
  const ProfiledStep step("submit");
  Slot& slot = ring_[slot_];
  recording_ = false;
  const uint32_t operations = std::exchange(gathered_, 0);
  gathered_seconds_ = 0;
  device_->check(vk.vkEndCommandBuffer(slot.commands), "vkEndCommandBuffer");
  const uint64_t number = submitted_ + 1;
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &number;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &slot.commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  device_->check(vk.vkQueueSubmit(device_->queue, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
  submitted_ = number;
  slot.submission = number;
  notes_.submitted(number, operations);
  if (profiler_ != nullptr) profiler_->submitted(slot_, number);
  slot_ = (slot_ + 1) % kRing;
  ++counters_.submissions;
  return submitted_;
}

void StreamRecorder::mark_completed(uint64_t submission) noexcept {
  uint64_t known = completed_.load(std::memory_order_relaxed);
  while (known < submission && !completed_.compare_exchange_weak(known, submission)) {
  }
  if (known < submission) pool_->completed(submission);
}

uint64_t StreamRecorder::poll() {
  const uint64_t value = read_timeline(*device_, timeline_);
  mark_completed(value);
  return value;
}

void StreamRecorder::wait(uint64_t submission) {
  device_->require_alive();
  if (submission <= completed_.load(std::memory_order_acquire)) return;
  const ProfiledStep step("wait for the device");
  const uint64_t milliseconds = wait_milliseconds_;
  const std::optional<uint64_t> counted = wait_timeline(*device_, timeline_, submission, milliseconds);
  if (!counted) {
    fail(TUFF_ERROR_TIMEOUT, "{} did not finish within {} ms: {}; the work goes on",
         device_->physical.properties.deviceName, milliseconds, notes_.describe(poll()));
  }
  mark_completed(*counted);
}

bool StreamRecorder::at_rest(bool wait) noexcept {
  return timeline_at_rest(*device_, timeline_, submitted_, wait ? wait_milliseconds_.load() : 0);
}

bool StreamRecorder::busy(const Buffer& buffer) {
  const auto& allocation = static_cast<const VulkanAllocation&>(*buffer.allocation);
  const uint64_t last = allocation.last_use.load(std::memory_order_relaxed);
  if (last <= completed_) return false;
  return last > submitted_ || last > poll();
}

void StreamRecorder::touch(const Buffer& buffer) noexcept {
  static_cast<VulkanAllocation&>(*buffer.allocation).last_use.store(submitted_ + 1, std::memory_order_relaxed);
}

HazardTracker::Range StreamRecorder::range_of(const Buffer& buffer, uint64_t offset, uint64_t bytes, bool write) const {
  const DeviceLocation at = locate(buffer, offset);
  return {at.block->id, at.offset, at.offset + bytes, write};
}

void StreamRecorder::barrier(VkPipelineStageFlags stage) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  if (pending_stages_ & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) barrier.srcAccessMask |= VK_ACCESS_SHADER_WRITE_BIT;
  if (pending_stages_ & VK_PIPELINE_STAGE_TRANSFER_BIT) barrier.srcAccessMask |= VK_ACCESS_TRANSFER_WRITE_BIT;
  // What comes later, of either kind, is covered: the tracker starts anew.
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  VkPipelineStageFlags next = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  if (stage != VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT || pending_stages_ != VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) {
    barrier.dstAccessMask |= VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    next |= VK_PIPELINE_STAGE_TRANSFER_BIT;
  }
  device_->vk.vkCmdPipelineBarrier(open(), pending_stages_, next, 0, 1, &barrier, 0, nullptr, 0, nullptr);
  ++counters_.barriers;
  hazards_.clear();
  // A barrier between kernels alone does not reach transfers: they stay pending for the next one.
  transfers_uncovered_ = !(next & VK_PIPELINE_STAGE_TRANSFER_BIT);
  pending_stages_ = 0;
}

void StreamRecorder::order(const HazardTracker::Range* ranges, uint32_t count, VkPipelineStageFlags stage,
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

bool StreamRecorder::fits_descriptors(const Dispatch& dispatch) const noexcept {
  const uint64_t slack = device_->physical.properties.limits.minStorageBufferOffsetAlignment;
  for (uint32_t i = 0; i < dispatch.operand_count(); ++i) {
    if (dispatch.operands()[i].bytes + slack > device_->traits.max_range) return false;
  }
  return true;
}

bool StreamRecorder::prefers_addresses(Reads reads) const noexcept {
  switch (reads) {
    case Reads::streams: return device_->traits.streams_by_addresses;
    case Reads::packed: return device_->traits.packed_by_addresses;
    case Reads::tiles: break;
  }
  return device_->traits.tiles_by_addresses;
}

bool StreamRecorder::binds_addresses(Reads reads, const Dispatch& dispatch) const noexcept {
  return prefers_addresses(reads) || !fits_descriptors(dispatch);
}

void StreamRecorder::push_descriptors(VkCommandBuffer commands, const Pipeline& pipeline, const AllBound& all,
                                      uint32_t count, uint64_t* bases) {
  const uint64_t alignment = device_->physical.properties.limits.minStorageBufferOffsetAlignment;
  std::array<VkDescriptorBufferInfo, Dispatch::kMaxOperands + 1> infos;
  std::array<VkWriteDescriptorSet, Dispatch::kMaxOperands + 1> writes;
  const DeviceLocation unused = locate(unused_, 0);
  for (uint32_t i = 0; i < count; ++i) {
    const Bound at =
        all[i].block != nullptr ? all[i] : Bound{unused.block, unused.offset, unused.offset + MemoryPool::kAlignment};
    const uint64_t residual = at.begin % alignment;
    infos[i] = {at.block->buffer, at.begin - residual, at.end - at.begin + residual};
    bases[i] = residual;
    writes[i] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, VK_NULL_HANDLE, i,      0, 1,
                 VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,      nullptr, &infos[i],      nullptr};
  }
  device_->vk.vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, count,
                                        writes.data());
}

// The memory of a batch of buffers from the first to the last, if they lie in one block: what one descriptor spans.
StreamRecorder::Bound StreamRecorder::find_each(const Dispatch& dispatch, const Dispatch::Operand& operand,
                                                Touched& touched) const {
  const uint32_t first = touched.count;
  for (uint32_t i = 0; i < dispatch.each_count(); ++i) {
    const DeviceLocation at = locate(*operand.each[i], 0);
    uint32_t r = touched.count;
    while (r > first && touched.ranges[r - 1].block != at.block->id) --r;
    if (r > first) {
      HazardTracker::Range& range = touched.ranges[r - 1];
      range.begin = std::min(range.begin, at.offset);
      range.end = std::max(range.end, at.offset + operand.bytes);
    } else if (touched.count - first < Touched::kMostBlocks) {
      touched.ranges[touched.count++] = {at.block->id, at.offset, at.offset + operand.bytes,
                                         operand.access != Access::read};
    } else {
      touched.everything = true;
      return {};
    }
  }
  if (touched.count - first != 1) return {};
  // A table has distances from there: elements lie in it as they lie in memory.
  HazardTracker::Range& all = touched.ranges[first];
  all.begin -= all.begin % MemoryPool::kAlignment;
  return {locate(*operand.each[0], 0).block, all.begin, all.end};
}

// Where the operands lie, and whether each lies in memory that a descriptor can span.
bool StreamRecorder::find(const Dispatch& dispatch, AllBound& all, Touched& touched) const {
  const uint64_t slack = device_->physical.properties.limits.minStorageBufferOffsetAlignment;
  bool fits = true;
  for (uint32_t i = 0; i < dispatch.operand_count(); ++i) {
    const Dispatch::Operand& operand = dispatch.operands()[i];
    all[i] = {};
    if (operand.each != nullptr) {
      all[i] = find_each(dispatch, operand, touched);
      fits = fits && all[i].block != nullptr;
    } else if (operand.buffer != nullptr && operand.bytes != 0) {
      const DeviceLocation at = locate(*operand.buffer, operand.offset);
      all[i] = {at.block, at.offset, at.offset + operand.bytes};
      touched.ranges[touched.count++] = {at.block->id, at.offset, all[i].end, operand.access != Access::read};
    }
    fits = fits && all[i].end - all[i].begin + slack <= device_->traits.max_range;
  }
  return fits;
}

// The bases of operands that are a buffer for each matrix, matrix by matrix.
StreamRecorder::Bound StreamRecorder::write_table(const Dispatch& dispatch, const AllBound& all, bool addresses) {
  const uint64_t bytes = uint64_t{dispatch.each_count()} * dispatch.each_operands() * 8;
  if (table_used_ + bytes > kTableBytes) {
    const uint32_t turn = (table_ + 1) % tables_.size();
    TablePiece& next = tables_[turn];
    if (next.buffer.allocation == nullptr) {
      const MemoryKind kind = pool_->device_memory_mapped() ? MemoryKind::device : MemoryKind::readback;
      next.buffer.allocation = std::make_shared<VulkanAllocation>(pool_, pool_->allocate(kTableBytes, kind));
      next.buffer.bytes = kTableBytes;
    }
    if (next.submission > submitted_) submit(false);
    if (next.submission > completed_ && next.submission > poll()) wait(next.submission);
    table_ = turn;  // only now: after a wait that took too long the device still reads it
    table_used_ = 0;
  }
  TablePiece& piece = tables_[table_];
  piece.submission = current_submission();
  auto* out = reinterpret_cast<uint64_t*>(piece.buffer.host<std::byte>() + table_used_);
  for (uint32_t i = 0; i < dispatch.each_count(); ++i) {
    for (uint32_t slot = 0; slot < dispatch.operand_count(); ++slot) {
      const Dispatch::Operand& operand = dispatch.operands()[slot];
      if (operand.each == nullptr) continue;
      const DeviceLocation at = locate(*operand.each[i], 0);
      *out++ = addresses ? at.block->address + at.offset : at.offset - all[slot].begin;
    }
  }
  const DeviceLocation at = locate(piece.buffer, table_used_);
  table_used_ += ceil_div(bytes, MemoryPool::kAlignment) * MemoryPool::kAlignment;
  return {at.block, at.offset, at.offset + bytes};
}

void StreamRecorder::dispatch(const KernelRequest& kernel, const Dispatch& dispatch) {
  device_->require_alive();
  const auto& groups = dispatch.group_counts();
  if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0) return;
  for (int i = 0; i < 3; ++i) {
    if (groups[i] > device_->traits.max_groups[i]) {
      fail(TUFF_ERROR_INTERNAL, "{} asks for {} groups in dimension {}, the device runs {}", dispatch.label(),
           groups[i], i, device_->traits.max_groups[i]);
    }
  }
  AllBound bound;
  Touched touched;
  const bool fits = find(dispatch, bound, touched);
  const bool addresses = kernel.is_wide() || prefers_addresses(kernel.reads()) || !fits;
  if (addresses && !device_->traits.addresses) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED,
         "an operand is beyond the {} bytes of a descriptor, and the device has no buffer addresses",
         device_->traits.max_range);
  }
  const uint32_t operands = dispatch.operand_count(), count = operands + (dispatch.each() != 0 ? 1 : 0);
  const Pipeline& pipeline = kernels_.get(kernel, count, addresses);
  if (dispatch.each() != 0) bound[operands] = write_table(dispatch, bound, addresses);
  if (!addresses) {
    // A descriptor reaches back to an aligned start: what it spans is what counts, as validation sees it.
    for (uint32_t i = 0; i < touched.count; ++i) {
      touched.ranges[i].begin -=
          touched.ranges[i].begin % device_->physical.properties.limits.minStorageBufferOffsetAlignment;
    }
  }
  VkCommandBuffer commands = open();
  const uint64_t barriers_before = counters_.barriers;
  order(touched.ranges.data(), touched.count, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, touched.everything);
  const VolkDeviceTable& vk = device_->vk;
  if (bound_ != pipeline.handle) {
    vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
    bound_ = pipeline.handle;
  }

  // The bases of the operands, then the kernel's own parameters.
  alignas(8) std::byte push[KernelCache::kPushBytes];
  const uint32_t push_bytes = count * 8 + (dispatch.push_bytes() + 3) / 4 * 4;
  if (push_bytes > sizeof push) {
    fail(TUFF_ERROR_INTERNAL, "{} pushes {} bytes, {} is the most", dispatch.label(), push_bytes, sizeof push);
  }
  auto* bases = reinterpret_cast<uint64_t*>(push);
  if (addresses) {
    for (uint32_t i = 0; i < count; ++i) {
      bases[i] = bound[i].block != nullptr ? bound[i].block->address + bound[i].begin : 0;
    }
  } else {
    push_descriptors(commands, pipeline, bound, count, bases);
  }
  std::memcpy(push + count * 8, dispatch.push_data(), dispatch.push_bytes());
  vk.vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes, push);
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    log(TUFF_LOG_DISPATCH, "{}: {} by {}, {} x {} x {} groups{}", dispatch.label(), kernel.source().name,
        addresses ? "addresses" : "descriptors", groups[0], groups[1], groups[2],
        counters_.barriers != barriers_before ? ", after a barrier" : "");
  }
  observed(
      [&] {
        return Command{DeviceSpan::Kind::kernel,
                       dispatch.label(),
                       dispatch.bytes(),
                       dispatch.operations(),
                       kernel.source().name,
                       dispatch.variant(),
                       groups};
      },
      [&] { vk.vkCmdDispatch(commands, groups[0], groups[1], groups[2]); });
  for (uint32_t i = 0; i < operands; ++i) {
    const Dispatch::Operand& operand = dispatch.operands()[i];
    if (operand.each == nullptr) {
      touch(operand.buffer != nullptr && operand.bytes != 0 ? *operand.buffer : unused_);
    } else {
      for (uint32_t j = 0; j < dispatch.each_count(); ++j) touch(*operand.each[j]);
    }
  }
  ++counters_.dispatches;
  note_work(dispatch.bytes(), dispatch.operations());
}

void StreamRecorder::note_work(double bytes, double operations) {
  const bool cpu = device_->traits.cpu;
  gathered_seconds_ += cpu ? bytes / 4e9 + operations / 10e9 : bytes / 2e12 + operations / 20e12;
  if (++gathered_ >= kSubmitOperations || gathered_seconds_ >= (cpu ? kSubmitSecondsCpu : kSubmitSecondsGpu)) {
    submit(false);
  }
}

const Buffer& StreamRecorder::scratch(uint64_t bytes, Scratch place) {
  Buffer& scratch = scratch_[static_cast<size_t>(place)];
  if (scratch.bytes < bytes) {
    // Half as much again, so that growing shapes do not allocate every time.
    const uint64_t size = std::max<uint64_t>(bytes + bytes / 2, 1 << 20);
    scratch.allocation = std::make_shared<VulkanAllocation>(pool_, pool_->allocate(size, MemoryKind::device));
    scratch.bytes = size;
  }
  return scratch;
}

const Buffer& StreamRecorder::parameters(const void* data, uint32_t bytes) {
  if (parameter_slots_.empty()) {
    const MemoryKind kind = pool_->device_memory_mapped() ? MemoryKind::device : MemoryKind::readback;
    const auto memory = std::make_shared<VulkanAllocation>(
        pool_, pool_->allocate(uint64_t{kParameterSlots} * kMaxParameterBytes, kind));
    parameter_slots_.resize(kParameterSlots);
    for (uint32_t i = 0; i < kParameterSlots; ++i) {
      Buffer& buffer = parameter_slots_[i].buffer;
      buffer.allocation = memory;
      buffer.offset = uint64_t{i} * kMaxParameterBytes;
      buffer.bytes = kMaxParameterBytes;
    }
  }
  ParameterSlot* oldest = &parameter_slots_.front();
  for (ParameterSlot& slot : parameter_slots_) {
    if (slot.count == bytes && std::memcmp(slot.bytes.data(), data, bytes) == 0) {
      slot.submission = current_submission();
      return slot.buffer;
    }
    if (slot.submission < oldest->submission) oldest = &slot;
  }
  if (oldest->submission > submitted_) submit(false);
  if (oldest->submission > completed_ && oldest->submission > poll()) wait(oldest->submission);
  // Written before the submission that reads it, which is all that coherent memory asks for.
  std::memcpy(oldest->bytes.data(), data, bytes);
  std::memcpy(oldest->buffer.host<std::byte>(), data, bytes);
  oldest->count = bytes;
  oldest->submission = current_submission();
  return oldest->buffer;
}

bool StreamRecorder::matrix_quads() {
  if (!matrix_quads_) matrix_quads_ = measure_matrix_quads(*this, pool_, kernels_);
  return *matrix_quads_;
}

void StreamRecorder::profile_begin(Profile& profile) {
  submit(false);
  if (kept_profiler_ == nullptr) kept_profiler_ = std::make_unique<Profiler>(device_, kRing);
  kept_profiler_->begin(profile);
  profiler_ = kept_profiler_.get();
}

void StreamRecorder::profile_collect() {
  if (profiler_ != nullptr) profiler_->collect(completed_);
}

void StreamRecorder::profile_end() noexcept {
  if (kept_profiler_ != nullptr) kept_profiler_->end();
  if (!device_->labels) profiler_ = nullptr;
}

void StreamRecorder::record_copy(const char* label, const MemoryBlock& dst, uint64_t dst_offset, const MemoryBlock& src,
                                 uint64_t src_offset, uint64_t bytes) {
  const VkBufferCopy region{src_offset, dst_offset, bytes};
  VkCommandBuffer commands = open();
  observed(
      [&] {
        return Command{DeviceSpan::Kind::copy, label, 2.0 * static_cast<double>(bytes)};
      },
      [&] { device_->vk.vkCmdCopyBuffer(commands, src.buffer, dst.buffer, 1, &region); });
  note_work(2.0 * static_cast<double>(bytes), 0);
}

void StreamRecorder::copy(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                          uint64_t bytes) {
  open();
  const HazardTracker::Range ranges[2] = {range_of(src, src_offset, bytes, false),
                                          range_of(dst, dst_offset, bytes, true)};
  order(ranges, 2, VK_PIPELINE_STAGE_TRANSFER_BIT);
  touch(dst);
  touch(src);
  const DeviceLocation to = locate(dst, dst_offset), from = locate(src, src_offset);
  record_copy("copy", *to.block, to.offset, *from.block, from.offset, bytes);
}

void StreamRecorder::copy_rows(const Rows& to, const Rows& from, uint64_t bytes, uint64_t count) {
  if (count == 0 || bytes == 0) return;
  VkCommandBuffer commands = open();
  const auto range = [&](const Rows& rows, bool write) {
    return range_of(*rows.buffer, rows.offset, (count - 1) * rows.pitch + bytes, write);
  };
  const HazardTracker::Range ranges[2] = {range(from, false), range(to, true)};
  order(ranges, 2, VK_PIPELINE_STAGE_TRANSFER_BIT);
  touch(*to.buffer);
  touch(*from.buffer);
  const DeviceLocation target = locate(*to.buffer, to.offset), source = locate(*from.buffer, from.offset);
  const auto copy_all = [&] {
    std::array<VkBufferCopy, 64> regions;
    for (uint64_t row = 0; row < count;) {
      uint32_t some = 0;
      for (; some < regions.size() && row < count; ++some, ++row) {
        regions[some] = {source.offset + row * from.pitch, target.offset + row * to.pitch, bytes};
      }
      device_->vk.vkCmdCopyBuffer(commands, source.block->buffer, target.block->buffer, some, regions.data());
    }
  };
  observed(
      [&] {
        return Command{DeviceSpan::Kind::copy, "copy rows", 2.0 * static_cast<double>(bytes * count)};
      },
      copy_all);
  note_work(2.0 * static_cast<double>(bytes * count), 0);
}

void StreamRecorder::copy_from_staging(const Buffer& dst, uint64_t offset, const MemoryRange& staging, uint64_t bytes) {
  open();
  const HazardTracker::Range range = range_of(dst, offset, bytes, true);
  order(&range, 1, VK_PIPELINE_STAGE_TRANSFER_BIT);
  touch(dst);
  const DeviceLocation to = locate(dst, offset);
  record_copy("upload", *to.block, to.offset, *staging.block, staging.offset, bytes);
}

void StreamRecorder::copy_to_staging(const MemoryRange& staging, const Buffer& src, uint64_t offset, uint64_t bytes) {
  open();
  const HazardTracker::Range range = range_of(src, offset, bytes, false);
  order(&range, 1, VK_PIPELINE_STAGE_TRANSFER_BIT);
  touch(src);
  const DeviceLocation from = locate(src, offset);
  record_copy("download", *staging.block, staging.offset, *from.block, from.offset, bytes);
}

void StreamRecorder::fill_words(const Buffer& dst, uint64_t offset, uint64_t bytes, uint32_t word) {
  open();
  const HazardTracker::Range range = range_of(dst, offset, bytes, true);
  order(&range, 1, VK_PIPELINE_STAGE_TRANSFER_BIT);
  touch(dst);
  const DeviceLocation at = locate(dst, offset);
  VkCommandBuffer commands = open();
  observed(
      [&] {
        return Command{DeviceSpan::Kind::fill, "fill", static_cast<double>(bytes)};
      },
      [&] { device_->vk.vkCmdFillBuffer(commands, at.block->buffer, at.offset, bytes, word); });
  note_work(static_cast<double>(bytes), 0);
}

}  // namespace tuff
