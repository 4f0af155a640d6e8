#include "runtime/vulkan/stream_recorder.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "planning/log.hpp"
#include "runtime/unlocked.hpp"
#include "runtime/vulkan/custom_pipeline.hpp"
#include "runtime/vulkan/graph.hpp"
#include "runtime/vulkan/probes.hpp"
#include "runtime/vulkan/streams.hpp"
#include "runtime/vulkan/timeline_wait.hpp"

namespace tuff {
namespace {

// When the open command buffer is worth a submission: so many operations, or so many seconds of work by
// a rough guess. A submission costs 5 to 80 µs, so the guess may be off by a lot without harm.
constexpr uint32_t kSubmitOperations = Profiler::kMaxCommands;
constexpr double kSubmitSecondsGpu = 100e-6, kSubmitSecondsCpu = 1e-3;
// Copies from here on go to the queue for copies: changing queues costs two submissions.
constexpr uint64_t kCopyQueueBytes = 1 << 20;
// Submissions of graphs are no part of the ring, but the queue holds only so many.
constexpr uint64_t kMaxInFlight = 256;
constexpr std::chrono::microseconds kAwake{200};  // waiting for a GPU's result

}  // namespace

StreamRecorder::StreamRecorder(Streams& streams, RecorderBase& base, uint32_t index, uint32_t ring)
    : DeviceRecorder(base),
      streams_(streams),
      timelines_(base.pool->timelines()),
      index_(index),
      compute_ring_(ring),
      writer_(base.device, bound_of(base.unused)) {
  Device& device = *base_.device;
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore{};
  semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore.pNext = &type;
  device.check(device.vk.vkCreateSemaphore(device.handle, &semaphore, nullptr, &timeline_), "vkCreateSemaphore");
  device.count_object();
  compute_.queue = device.queues[index % device.queues.size()];
  compute_.family = device.physical.queue_family;
  copies_.queue = device.copy_queue;
  copies_.family = device.physical.copy_family;
  copies_.computes = false;
  try {
    make_slots(compute_, ring);
    set_name(index == 0 ? "default stream" : "");
    if (device.labels) {
      kept_profiler_ = std::make_unique<Profiler>(base_.device, compute_ring_ + kCopyRing);
      profiler_ = kept_profiler_.get();
    }
  } catch (...) {
    destroy();
    throw;
  }
  timelines_.record(index_, 0);
}

StreamRecorder::~StreamRecorder() { destroy(); }

void StreamRecorder::destroy() noexcept {
  const VolkDeviceTable& vk = base_.device->vk;
  for (const Lane* lane : {&compute_, &copies_}) {
    for (const Slot& slot : lane->slots) vk.vkDestroyCommandPool(base_.device->handle, slot.pool, nullptr);
  }
  vk.vkDestroySemaphore(base_.device->handle, timeline_, nullptr);
}

void StreamRecorder::make_slots(Lane& lane, uint32_t count) {
  lane.slots.reserve(count);
  while (lane.slots.size() < count) {
    const Device::Commands made = base_.device->make_commands(lane.family, VK_COMMAND_POOL_CREATE_TRANSIENT_BIT);
    lane.slots.push_back({made.pool, made.buffer, 0});
  }
}

void StreamRecorder::set_name(std::string name) {
  name_ = !name.empty() ? std::move(name) : fmt::format("stream {}", index_);
}

void StreamRecorder::wait_if_needed(uint64_t submission) {
  if (!has_finished(submission)) wait(submission, For::room);
}

void StreamRecorder::open(Lane& lane) {
  if (recording_ && lane_ == &lane) return;
  Device& device = *base_.device;
  device.require_alive();
  if (recording_ || closed_) submit(false);
  if (!lane.computes && lane.slots.size() < kCopyRing) make_slots(lane, kCopyRing);
  Slot& slot = lane.slots[lane.slot];
  wait_if_needed(slot.submission);
  if (lane_ != &lane) {
    // The two queues know nothing of each other.
    if (submitted_ != 0) add_wait(timeline_, submitted_);
    for (const Use use : ahead_) add_wait(streams_.at(use.stream).timeline_, use.submission);
    ahead_.clear();
    writer_.forget();
    lane_ = &lane;
  }
  const VolkDeviceTable& vk = device.vk;
  device.check(vk.vkResetCommandPool(device.handle, slot.pool, 0), "vkResetCommandPool");
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  device.check(vk.vkBeginCommandBuffer(slot.commands, &begin), "vkBeginCommandBuffer");
  if (profiler_ != nullptr) profiler_->opened(slot.commands, profiler_slot(), lane.computes);
  writer_.begin(slot.commands, lane.computes);
  recording_ = true;
  timelines_.record(index_, submitted_ + 1);
}

uint64_t StreamRecorder::submit(bool for_host) {
  if (for_host && writer_.hidden_from_host()) open(*lane_);
  if (!recording_ && !closed_ && !waits()) return submitted_;
  if (!recording_ && !closed_) open(*lane_);
  host_looks_ = host_looks_ || for_host;
  submit_with(VK_NULL_HANDLE);
  return submitted_;
}

void StreamRecorder::close(Slot& slot) {
  if (std::exchange(host_looks_, false)) writer_.show_to_host();
  recording_ = false;
  Device& device = *base_.device;
  const VkResult result = device.vk.vkEndCommandBuffer(slot.commands);
  // What was recorded is gone with it, and calls have said that it would be done.
  if (result != VK_SUCCESS) device.lose("vkEndCommandBuffer", result);
  closed_ = true;
}

// What is recorded, if anything is, and then that.
void StreamRecorder::submit_with(VkCommandBuffer more) {
  Device& device = *base_.device;
  const VolkDeviceTable& vk = device.vk;
  const ProfiledStep step("submit");
  VkCommandBuffer buffers[2];
  uint32_t count = 0, operations = gathered_;
  Slot* slot = nullptr;
  if (recording_ || closed_) {
    slot = &lane_->slots[lane_->slot];
    if (recording_) close(*slot);
    buffers[count++] = slot->commands;
  }
  if (more != VK_NULL_HANDLE) {
    buffers[count++] = more;
    if (operations++ == 0) notes_.begin("graph", {});
  }
  const uint64_t number = submitted_ + 1;
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.waitSemaphoreValueCount = static_cast<uint32_t>(wait_values_.size());
  timeline.pWaitSemaphoreValues = wait_values_.data();
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &number;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.waitSemaphoreCount = static_cast<uint32_t>(waits_.size());
  info.pWaitSemaphores = waits_.data();
  info.pWaitDstStageMask = wait_stages_.data();
  info.commandBufferCount = count;
  info.pCommandBuffers = buffers;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  VkResult result = vk.vkQueueSubmit(lane_->queue, 1, &info, VK_NULL_HANDLE);
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
    // It has had no effect then. Empty blocks are given back, and it is tried again: now, and with the next call.
    base_.pool->trim();
    result = vk.vkQueueSubmit(lane_->queue, 1, &info, VK_NULL_HANDLE);
  }
  device.check(result, "vkQueueSubmit");
  closed_ = false;
  gathered_ = 0;
  gathered_seconds_ = 0;
  ahead_.clear();
  waits_.clear();
  wait_values_.clear();
  wait_stages_.clear();
  submitted_ = number;
  const uint64_t bit = uint64_t{1} << (number % kRemembered);
  copied_ = lane_ == &copies_ ? copied_ | bit : copied_ & ~bit;
  notes_.submitted(number, operations);
  timelines_.record(index_, number);
  if (slot != nullptr) {
    slot->submission = number;
    if (profiler_ != nullptr) profiler_->submitted(profiler_slot(), number);
    lane_->slot = (lane_->slot + 1) % static_cast<uint32_t>(lane_->slots.size());
  }
  ++submissions_;
}

void StreamRecorder::add_wait(VkSemaphore timeline, uint64_t value) {
  for (size_t i = 0; i < waits_.size(); ++i) {
    if (waits_[i] != timeline) continue;
    wait_values_[i] = std::max(wait_values_[i], value);
    return;
  }
  waits_.reserve(waits_.size() + 1);
  wait_values_.reserve(waits_.size() + 1);
  wait_stages_.reserve(waits_.size() + 1);
  waits_.push_back(timeline);
  wait_values_.push_back(value);
  wait_stages_.push_back(VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
}

void StreamRecorder::wait_for(Use use) {
  if (use.stream == index_ || use.submission == 0) return;
  if (waited_.size() <= use.stream) waited_.resize(use.stream + 1);
  if (waited_[use.stream] >= use.submission) return;
  StreamRecorder& other = streams_.at(use.stream);
  if (use.submission > other.submitted_) other.submit(false);
  writer_.assume_writes();
  if (lane_ == &compute_ && other.computed(use.submission, compute_.queue)) {
    // It is before us on the same queue: the next barrier is all that it takes.
    writer_.assume_everything();
    ahead_.push_back(use);
    waited_[use.stream] = use.submission;
    return;
  }
  // What has finished is waited for too, which costs nothing and makes what was written visible to this queue.
  if (recording_ && !timelines_.done(use) && use.submission > other.poll()) submit(false);
  add_wait(other.timeline_, use.submission);
  waited_[use.stream] = use.submission;
}

bool StreamRecorder::computed(uint64_t submission, VkQueue queue) const noexcept {
  return compute_.queue == queue && submission + kRemembered > submitted_ &&
         !(copied_ >> (submission % kRemembered) & 1);
}

void StreamRecorder::mark_completed(uint64_t submission) noexcept {
  if (timelines_.complete(index_, submission)) base_.pool->completed();
}

uint64_t StreamRecorder::poll() {
  const uint64_t value = read_timeline(*base_.device, timeline_);
  mark_completed(value);
  return value;
}

void StreamRecorder::wait(uint64_t submission, For what) {
  Device& device = *base_.device;
  device.require_alive();
  if (submission <= completed()) return;
  const ProfiledStep step("wait for the device");
  const uint64_t milliseconds = streams_.wait_limit();
  // A processor that is the device itself has better to do.
  const auto awake = what == For::result && !traits().cpu ? kAwake : std::chrono::microseconds(0);
  const std::optional<uint64_t> counted = wait_timeline(device, timeline_, submission, milliseconds, awake);
  if (!counted) {
    fail(TUFF_ERROR_TIMEOUT, "{} did not finish within {} ms: {}; the work goes on",
         device.physical.properties.deviceName, milliseconds, notes_.describe(poll()));
  }
  mark_completed(*counted);
}

bool StreamRecorder::at_rest(uint64_t milliseconds) noexcept {
  return timeline_at_rest(*base_.device, timeline_, submitted_, milliseconds);
}

void StreamRecorder::make_room(std::unique_lock<std::mutex>& lock) {
  const std::vector<Slot>& slots = compute_.slots;
  const auto in_the_way = [&] {
    const uint64_t of_graphs = submitted_ > kMaxInFlight ? submitted_ - kMaxInFlight : 0;
    const size_t ahead = compute_.slot + slots.size() / 4;
    return std::max(of_graphs, slots[ahead < slots.size() ? ahead : ahead - slots.size()].submission);
  };
  // Others may have recorded meanwhile.
  for (uint64_t submission; !has_finished(submission = in_the_way());) {
    const Unlocked unlocked(lock);
    wait(submission, For::room);
  }
}

bool StreamRecorder::busy(const Buffer& buffer) {
  const auto& uses = static_cast<const VulkanAllocation&>(*buffer.allocation).uses;
  if (uses.done(timelines_)) return false;
  streams_.poll_all();
  return !uses.done(timelines_);
}

void StreamRecorder::will_use(const Buffer& buffer) {
  const Use filled = static_cast<const VulkanAllocation&>(*buffer.allocation).filled;
  if (filled.stream != index_) wait_for(filled);
}

void StreamRecorder::has_used(const Buffer& buffer) {
  static_cast<VulkanAllocation&>(*buffer.allocation).uses.add({index_, submitted_ + 1}, timelines_);
  // Something may have been submitted since parameters() gave it: for another stream's upload, or between two kernels.
  if (!parameter_slots_.empty() && buffer.allocation == parameter_slots_.front().buffer.allocation) {
    parameter_slots_[buffer.offset / kMaxParameterBytes].submission = current_submission();
  }
}

void StreamRecorder::catch_up_with(const Buffer& buffer) {
  const LastUses& uses = static_cast<const VulkanAllocation&>(*buffer.allocation).uses;
  const auto catch_up = [this](Use use) {
    if (timelines_.done(use)) wait_for(use);
  };
  if (!uses.more()) return uses.each(catch_up);
  for (const Use use : timelines_.all()) catch_up({use.stream, timelines_.completed(use.stream)});
}

void StreamRecorder::filled(const Buffer& buffer) {
  static_cast<VulkanAllocation&>(*buffer.allocation).filled = last();
}

void StreamRecorder::append(const BoundDispatch& dispatch) {
  open(compute_);
  // What was open may have been submitted since table_memory() gave it.
  if (std::exchange(table_wanted_, false)) tables_[table_].submission = current_submission();
  const uint64_t barriers_before = writer_.barriers();
  writer_.order(dispatch);
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    log(TUFF_LOG_DISPATCH, "{}: {} by {}, {} x {} x {} groups{}", dispatch.label, dispatch.kernel,
        dispatch.addresses ? "addresses" : "descriptors", dispatch.groups[0], dispatch.groups[1], dispatch.groups[2],
        writer_.barriers() != barriers_before ? ", after a barrier" : "");
  }
  observed(
      [&] {
        return Command{DeviceSpan::Kind::kernel, dispatch.label,   dispatch.bytes, dispatch.operations,
                       dispatch.kernel,          dispatch.variant, dispatch.groups};
      },
      dispatch);
  ++dispatches_;
}

void StreamRecorder::append_copy(const BoundCopy& copy, Lane& lane) {
  open(lane);
  writer_.order(copy);
  observed([&] { return Command{DeviceSpan::Kind::copy, copy.label, copy.moved()}; }, copy);
}

void StreamRecorder::append(const BoundFill& fill) {
  open(compute_);
  writer_.order(fill);
  observed([&] { return Command{DeviceSpan::Kind::fill, "fill", static_cast<double>(fill.bytes)}; }, fill);
}

void StreamRecorder::appended(double bytes, double operations) {
  const bool cpu = traits().cpu;
  gathered_seconds_ += cpu ? bytes / 4e9 + operations / 10e9 : bytes / 2e12 + operations / 20e12;
  if (++gathered_ < kSubmitOperations && gathered_seconds_ < (cpu ? kSubmitSecondsCpu : kSubmitSecondsGpu)) return;
  try {
    submit(false);
  } catch (const Error&) {
    // The call that recorded this has done so. If it was for memory the next one tells, before it records anything.
    if (!closed_ || base_.device->lost()) throw;
  } catch (const std::bad_alloc&) {
  }
}

void StreamRecorder::launched(VulkanKernel& kernel) { kernel.use({index_, submitted_ + 1}, timelines_); }

Buffer StreamRecorder::table_memory(uint64_t bytes) {
  if (table_used_ + bytes > kTableBytes) {
    const uint32_t turn = (table_ + 1) % tables_.size();
    TablePiece& next = tables_[turn];
    if (next.buffer.allocation == nullptr) next.buffer = new_memory(kTableBytes, written_by_host());
    if (next.submission > submitted_) submit(false);
    wait_if_needed(next.submission);
    table_ = turn;  // only now: after a wait that took too long the device still reads it
    table_used_ = 0;
  }
  TablePiece& piece = tables_[table_];
  table_wanted_ = true;
  Buffer table = piece.buffer;
  table.offset += table_used_;
  table.bytes = bytes;
  table_used_ += round_up(bytes, MemoryPool::kAlignment);
  return table;
}

const Buffer& StreamRecorder::parameters(const void* data, uint32_t bytes) {
  if (parameter_slots_.empty()) {
    const Buffer memory = new_memory(uint64_t{kParameterSlots} * kMaxParameterBytes, written_by_host());
    parameter_slots_.resize(kParameterSlots);
    for (uint32_t i = 0; i < kParameterSlots; ++i) {
      Buffer& buffer = parameter_slots_[i].buffer;
      buffer = memory;
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
  wait_if_needed(oldest->submission);
  // Written before the submission that reads it, which is all that coherent memory asks for.
  std::memcpy(oldest->bytes.data(), data, bytes);
  std::memcpy(oldest->buffer.host<std::byte>(), data, bytes);
  oldest->count = bytes;
  oldest->submission = current_submission();
  return oldest->buffer;
}

bool StreamRecorder::holds(const Probe& probe) {
  for (const RecorderBase::Probed& probed : base_.probed) {
    if (probed.probe == &probe) return probed.holds;
  }
  const bool holds = run_probe(probe, *this, base_.pool, base_.kernels);
  base_.probed.push_back({&probe, holds});
  return holds;
}

// Behind what is recorded, in one submission with it.
void StreamRecorder::launch_graph(VulkanGraph& graph) {
  base_.device->require_alive();
  graph.check_launch();
  if (graph.empty()) return;
  graph.each_buffer([this](const Buffer& buffer) { will_use(buffer); });
  wait_for(graph.last_launch());
  if (profiler_ != nullptr) {
    // One by one, so that each is timed.
    try {
      for (const GraphCommand& command : graph.commands()) {
        profiler_->replay(command.call.get());
        std::visit([this](const auto& what) { append(what); }, command.what);
        host_looks_ = host_looks_ || graph.host_looks();
        appended(0, 0);
      }
      profiler_->replay(nullptr);
    } catch (...) {
      profiler_->replay(nullptr);
      graph.launched(last());  // some are under way
      throw;
    }
  } else {
    if (lane_ != &compute_) open(compute_);
    submit_with(graph.encode());
    graph.submitted({index_, submitted_});
    writer_.assume_everything();
    dispatches_ += graph.dispatches();
  }
  graph.launched(last());
}

StreamRecorder::Lane& StreamRecorder::copy_lane(uint64_t bytes) {
  const bool timed = profiler_ == nullptr || base_.device->times_copies();
  return copies_.queue != VK_NULL_HANDLE && bytes >= kCopyQueueBytes && timed ? copies_ : compute_;
}

void StreamRecorder::copy_from_staging(const Buffer& dst, uint64_t offset, const MemoryRange& staging, uint64_t bytes) {
  will_use(dst);
  const DeviceLocation to = locate(dst, offset);
  BoundCopy copy;
  copy.label = "upload";
  copy.to = to.block;
  copy.to_offset = to.offset;
  copy.from = staging.block;
  copy.from_offset = staging.offset;
  copy.bytes = bytes;
  copy.tracked[1] = false;
  append_copy(copy, copy_lane(bytes));
  has_used(dst);
  appended(copy.moved(), 0);
}

void StreamRecorder::copy_to_staging(const MemoryRange& staging, const Buffer& src, uint64_t offset, uint64_t bytes) {
  will_use(src);
  const DeviceLocation from = locate(src, offset);
  BoundCopy copy;
  copy.label = "download";
  copy.to = staging.block;
  copy.to_offset = staging.offset;
  copy.from = from.block;
  copy.from_offset = from.offset;
  copy.bytes = bytes;
  copy.tracked[0] = false;
  append_copy(copy, copy_lane(bytes));
  has_used(src);
  appended(copy.moved(), 0);
}

void StreamRecorder::copy_pinned(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                                 uint64_t bytes) {
  will_use(dst);
  will_use(src);
  const bool down = locate(dst, 0).block->kind == MemoryKind::readback;
  const BoundCopy copy = bound_copy(down ? "download" : "upload", dst, dst_offset, src, src_offset, bytes);
  append_copy(copy, copy_lane(bytes));
  host_looks_ = true;
  has_used(dst);
  has_used(src);
  appended(copy.moved(), 0);
}

// Up to three bytes that do not fill a word.
void StreamRecorder::fill_edge(const Buffer& dst, uint64_t offset, uint64_t bytes, const std::byte* pattern) {
  const Buffer text = new_memory(4, MemoryKind::readback);
  std::memcpy(text.host<std::byte>(), pattern, bytes);
  copy("fill", dst, offset, text, 0, bytes);
}

void StreamRecorder::write_timestamp(VkQueryPool queries, uint32_t query) {
  open(compute_);
  const VolkDeviceTable& vk = base_.device->vk;
  vk.vkCmdResetQueryPool(writer_.commands(), queries, query, 1);
  vk.vkCmdWriteTimestamp(writer_.commands(), VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries, query);
  if (gathered_ == 0) notes_.begin("event", {});
  appended(0, 0);  // events alone fill a command buffer too
}

void StreamRecorder::profile_begin(Profile& profile) {
  submit(false);
  if (kept_profiler_ == nullptr) kept_profiler_ = std::make_unique<Profiler>(base_.device, compute_ring_ + kCopyRing);
  kept_profiler_->begin(profile, name_, index_);
  profiler_ = kept_profiler_.get();
}

void StreamRecorder::profile_collect() {
  if (profiler_ != nullptr) profiler_->collect(completed());
}

void StreamRecorder::profile_end() noexcept {
  if (kept_profiler_ != nullptr) kept_profiler_->end();
  if (!base_.device->labels) profiler_ = nullptr;
}

}  // namespace tuff
