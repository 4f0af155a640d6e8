#include "runtime/vulkan/stream_recorder.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "planning/log.hpp"
#include "runtime/unlocked.hpp"
#include "runtime/vulkan/custom_pipeline.hpp"
#include "runtime/vulkan/graph.hpp"
#include "runtime/vulkan/probes.hpp"
#include "runtime/vulkan/streams.hpp"

namespace tuff {
namespace {

// When the open command buffer is worth a submission: so many operations, or so many seconds of work by
// a rough guess. A submission costs 5 to 80 µs, so the guess may be off by a lot without harm.
constexpr uint32_t kSubmitOperations = Profiler::kMaxCommands;
constexpr double kSubmitSecondsGpu = 100e-6, kSubmitSecondsBusyGpu = 500e-6, kSubmitSecondsCpu = 1e-3;
// Copies from here on go to the queue for copies: changing queues costs two submissions.
constexpr uint64_t kCopyQueueBytes = 1 << 20;
// Submissions of graphs are no part of the ring, but the queue holds only so many.
constexpr uint64_t kMaxInFlight = 256;

}  // namespace

StreamRecorder::StreamRecorder(Streams& streams, RecorderBase& base, uint32_t index, uint32_t ring)
    : DeviceRecorder(base),
      streams_(streams),
      timelines_(base.pool->timelines()),
      index_(index),
      timeline_(base.device, base.pool, index),
      compute_(base.device, base.device->queues[index % base.device->queues.size()], base.device->physical.queue_family,
               true, ring),
      copies_(base.device, base.device->copy_queue, base.device->physical.copy_family, false, kCopyRing),
      writer_(base.device, bound_of(base.unused)) {
  compute_.create();
  set_name(index == 0 ? "default stream" : "");
  if (base.device->labels) {
    kept_profiler_ = std::make_unique<Profiler>(base_.device, profiler_slots());
    profiler_ = kept_profiler_.get();
  }
  timelines_.record(index_, 0);
}

void StreamRecorder::set_name(std::string name) {
  name_ = !name.empty() ? std::move(name) : fmt::format("stream {}", index_);
}

void StreamRecorder::wait(uint64_t submission, For what) { timeline_.wait(submission, what, streams_.wait_limit()); }

void StreamRecorder::wait_if_needed(uint64_t submission) {
  if (!timeline_.has_finished(submission)) wait(submission, For::room);
}

void StreamRecorder::wait_to_rewrite(uint64_t submission) {
  if (submission > submitted()) submit(false);
  wait_if_needed(submission);
}

void StreamRecorder::open(CommandRing& ring) {
  if (recording_ && ring_ == &ring) return;
  base_.device->require_alive();
  if (recording_ || closed_) submit(false);
  ring.create();
  wait_if_needed(ring.submission());
  if (ring_ != &ring) {
    // The two queues know nothing of each other.
    if (submitted() != 0) waits_.add(timeline_.semaphore(), submitted());
    waits_.queue_changes(
        [this](Use use) { waits_.add(streams_.at(use.stream).timeline_.semaphore(), use.submission); });
    writer_.forget();
    ring_ = &ring;
  }
  ring.begin();
  if (profiler_ != nullptr) profiler_->opened(ring.commands(), profiler_slot(), ring.computes());
  writer_.begin(ring.commands(), ring.computes());
  recording_ = true;
  timeline_.record();
}

uint64_t StreamRecorder::submit(bool for_host) {
  calls_.submitting();
  if (for_host && writer_.hidden_from_host()) open(*ring_);
  if (!recording_ && !closed_) {
    if (waits_.empty()) return submitted();
    open(*ring_);
  }
  host_looks_ = host_looks_ || for_host;
  submit_with(VK_NULL_HANDLE);
  return submitted();
}

void StreamRecorder::close() {
  if (std::exchange(host_looks_, false)) writer_.show_to_host();
  recording_ = false;
  Device& device = *base_.device;
  const VkResult result = device.vk.vkEndCommandBuffer(ring_->commands());
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
  const bool recorded = recording_ || closed_;
  if (recorded) {
    if (recording_) close();
    buffers[count++] = ring_->commands();
  }
  if (more != VK_NULL_HANDLE) {
    buffers[count++] = more;
    if (operations++ == 0) timeline_.notes().begin("graph", {});
  }
  const uint64_t number = timeline_.next();
  const VkSemaphore semaphore = timeline_.semaphore();
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &number;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  waits_.fill(info, timeline);
  info.commandBufferCount = count;
  info.pCommandBuffers = buffers;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &semaphore;
  VkResult result = vk.vkQueueSubmit(ring_->queue(), 1, &info, VK_NULL_HANDLE);
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
    // It has had no effect then. Empty blocks are given back, and it is tried again: now, and with the next call.
    base_.pool->trim();
    result = vk.vkQueueSubmit(ring_->queue(), 1, &info, VK_NULL_HANDLE);
  }
  device.check(result, "vkQueueSubmit");
  closed_ = false;
  gathered_ = 0;
  gathered_seconds_ = 0;
  waits_.clear();
  timeline_.advance(operations, ring_ == &copies_);
  if (recorded) {
    if (profiler_ != nullptr) profiler_->submitted(profiler_slot(), number);
    ring_->submitted(number);
  }
  ++submissions_;
  show_usage();
}

void StreamRecorder::show_usage() noexcept {
  UsageCounters& shown = usage();
  add_usage(shown.dispatches, dispatches_ - std::exchange(shown_dispatches_, dispatches_));
  add_usage(shown.bytes, std::exchange(bytes_, 0.0));
  add_usage(shown.flops, std::exchange(operations_, 0.0));
}

void StreamRecorder::wait_for(Use use) {
  if (use.stream == index_ || use.submission == 0) return;
  if (waited_.size() <= use.stream) waited_.resize(use.stream + 1);
  if (waited_[use.stream] >= use.submission) return;
  StreamRecorder& other = streams_.at(use.stream);
  if (use.submission > other.submitted()) other.submit(false);
  writer_.assume_writes();
  if (ring_ == &compute_ && other.compute_.queue() == compute_.queue() && other.timeline_.computed(use.submission)) {
    // It precedes us on the same queue: the next barrier is all that it takes.
    writer_.assume_everything();
    waits_.add_ahead(use);
    waited_[use.stream] = use.submission;
    return;
  }
  // What has finished is waited for too, which costs nothing and makes what was written visible to this queue.
  if (recording_ && !timelines_.done(use) && use.submission > other.poll()) submit(false);
  waits_.add(other.timeline_.semaphore(), use.submission);
  waited_[use.stream] = use.submission;
}

void StreamRecorder::make_room(std::unique_lock<Mutex>& lock) {
  const auto in_the_way = [this] {
    const uint64_t of_graphs = submitted() > kMaxInFlight ? submitted() - kMaxInFlight : 0;
    return std::max(of_graphs, compute_.submission(compute_.size() / 4));
  };
  // Others may have recorded meanwhile.
  for (uint64_t submission; !timeline_.has_finished(submission = in_the_way());) {
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
  static_cast<VulkanAllocation&>(*buffer.allocation).uses.add({index_, current_submission()}, timelines_);
  // Something may have been submitted since parameters() gave it: for another stream's upload, or between two kernels.
  parameter_slots_.used(buffer, current_submission());
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

uint64_t StreamRecorder::signature_of_held() const noexcept {
  switch (held_) {
    case Held::dispatch: return WholeCalls::signature(held_dispatch_);
    case Held::copy: return WholeCalls::signature(held_copy_);
    case Held::fill: break;
  }
  return WholeCalls::signature(held_fill_);
}

void StreamRecorder::record_held() {
  calls_.record();
  switch (held_) {
    case Held::dispatch: record(held_dispatch_); break;
    case Held::copy: append_copy(held_copy_, compute_); break;
    case Held::fill: record(held_fill_); break;
  }
  appended(held_seconds_);
}

template <typename Command>
bool StreamRecorder::withholds(const Command& command, Command& held) {
  using Pass = WholeCalls::Pass;
  if (calls_.pass() == Pass::none || calls_.pass() == Pass::recording) return false;
  open(compute_);
  const bool known = calls_.pass() == Pass::held &&
                     calls_.knows(signature_of_held(), WholeCalls::signature(command), base_.kernels.evicted());
  if (known) {
    record_held();
    return false;
  }
  // What the command uses is in use until the next submission has finished, even if nothing is recorded.
  tables_.recorded(current_submission());
  if (calls_.pass() != Pass::first) {
    calls_.rehearse();
  } else {
    if (&command != &held) held = command;
    held_ = std::is_same_v<Command, BoundDispatch> ? Held::dispatch
            : std::is_same_v<Command, BoundCopy>   ? Held::copy
                                                   : Held::fill;
    calls_.hold();
  }
  return true;
}

void StreamRecorder::append(const BoundDispatch& dispatch) {
  if (withholds(dispatch, held_dispatch_)) return;
  open(compute_);
  // What was open may have been submitted since table_memory() gave it.
  tables_.recorded(current_submission());
  record(dispatch);
}

void StreamRecorder::append(const BoundCopy& copy) {
  if (!withholds(copy, held_copy_)) append_copy(copy, compute_);
}

void StreamRecorder::append(const BoundFill& fill) {
  if (withholds(fill, held_fill_)) return;
  open(compute_);
  record(fill);
}

void StreamRecorder::make_tables() {
  for (OperandTables::Piece& piece : tables_.pieces()) {
    if (piece.buffer.allocation == nullptr) piece.buffer = new_host_written(OperandTables::kPieceBytes);
  }
}

bool StreamRecorder::rehearses(const Dispatch& dispatch) {
  if (calls_.pass() != WholeCalls::Pass::rehearsal) return false;
  if (dispatch.each() != 0) make_tables();
  open(compute_);
  return true;
}

void StreamRecorder::WholeCall::repeat() const {
  if (stream_.tables_.pieces()[0].buffer.allocation != nullptr) stream_.make_tables();
  stream_.open(stream_.compute_);
  stream_.calls_.record();
  log_.repeat();
}

void StreamRecorder::WholeCall::done() const {
  if (stream_.calls_.pass() == WholeCalls::Pass::held) stream_.record_held();
  stream_.calls_.learn();
}

void StreamRecorder::record(const BoundDispatch& dispatch) {
  const uint64_t barriers_before = writer_.barriers();
  writer_.order(dispatch);
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    const LogRepeat::Aside aside;
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
  bytes_ += dispatch.bytes;
  operations_ += dispatch.operations;
}

void StreamRecorder::append_copy(const BoundCopy& copy, CommandRing& ring) {
  open(ring);
  writer_.order(copy);
  observed([&] { return Command{DeviceSpan::Kind::copy, copy.label, copy.moved()}; }, copy);
  bytes_ += copy.moved();
}

void StreamRecorder::record(const BoundFill& fill) {
  writer_.order(fill);
  observed([&] { return Command{DeviceSpan::Kind::fill, "fill", static_cast<double>(fill.bytes)}; }, fill);
  bytes_ += static_cast<double>(fill.bytes);
}

// A GPU pauses between two submissions for some microseconds. So while it has work, more is gathered for the next one.
bool StreamRecorder::has_gathered_enough() {
  if (gathered_ >= kSubmitOperations) return true;
  if (traits().cpu) return gathered_seconds_ >= kSubmitSecondsCpu;
  if (gathered_seconds_ < kSubmitSecondsGpu) return false;
  return gathered_seconds_ >= kSubmitSecondsBusyGpu || timeline_.has_finished(submitted());
}

void StreamRecorder::appended(double seconds) {
  if (calls_.pass() == WholeCalls::Pass::held) held_seconds_ = seconds;
  if (calls_.withholds()) return;
  gathered_seconds_ += seconds;
  ++gathered_;
  try {
    if (has_gathered_enough()) submit(false);
  } catch (const Error&) {
    // The call that recorded this has done so. If it was for memory the next one tells, before it records anything.
    if (base_.device->lost() || !(recording_ || closed_)) throw;
  } catch (const std::bad_alloc&) {
  }
}

void StreamRecorder::launched(VulkanKernel& kernel) { kernel.use({index_, current_submission()}, timelines_); }

Buffer StreamRecorder::table_memory(uint64_t bytes) {
  if (!tables_.has_room(bytes)) {
    OperandTables::Piece& next = tables_.next();
    if (next.buffer.allocation == nullptr) next.buffer = new_host_written(OperandTables::kPieceBytes);
    wait_to_rewrite(next.submission);
    tables_.turn();  // only now: after a wait that took too long the device still reads the piece
  }
  return tables_.take(bytes);
}

void StreamRecorder::release_written() noexcept {
  if (recording_ || closed_ || timeline_.completed() != timeline_.submitted()) return;
  calls_.forget();
  parameter_slots_.release();
  tables_.release();
}

const Buffer& StreamRecorder::parameters(const void* data, uint32_t bytes) {
  if (parameter_slots_.empty()) {
    parameter_slots_.use_memory(new_host_written(ParameterSlots::memory_bytes()));
  }
  ParameterSlots::Slot* slot = parameter_slots_.find(data, bytes);
  if (slot == nullptr) {
    slot = &parameter_slots_.oldest();
    wait_to_rewrite(slot->submission);
    ParameterSlots::write(*slot, data, bytes);
  }
  slot->submission = current_submission();
  return slot->buffer;
}

bool StreamRecorder::holds(const Probe& probe) {
  for (const RecorderBase::Probed& probed : base_.probed) {
    if (probed.probe == &probe) return probed.holds;
  }
  const WholeCalls::Aside aside(calls_);
  const bool holds = run_probe(probe, *this, base_.pool, base_.kernels);
  base_.probed.push_back({&probe, holds});
  return holds;
}

// Parts of the device go behind what is recorded, in one submission with it. Before a step the host waits for them, with
// the lock held: a launch in parts is one call to other threads.
void StreamRecorder::launch_graph(VulkanGraph& graph, PluginDevice* processor) {
  base_.device->require_alive();
  graph.check_launch();
  if (graph.empty()) return;
  graph.each_buffer([this](const Buffer& buffer) { will_use(buffer); });
  wait_for(graph.last_launch());
  const bool timed = profiler_ != nullptr;
  const std::vector<VkCommandBuffer>* const encoded = timed || !graph.has_parts() ? nullptr : &graph.encode();
  size_t parts = 0;
  bool begun = false, shown = false;  // shown: the host sees what was called before
  try {
    graph.each_part(
        [&](std::span<const GraphCommand> part) {
          if (timed) {
            begun = true;
            replay(part, graph.host_looks());
          } else {
            if (ring_ != &compute_) open(compute_);
            submit_with((*encoded)[parts++]);
            graph.submitted({index_, submitted()});
            begun = true;
          }
          shown = !timed;
        },
        [&](const GraphCommand& command) {
          timeline_.wait(shown ? submitted() : submit(true), For::result, UINT64_MAX);
          shown = true;
          const HostCommand& call = *std::get<HostStep>(command.what).call;
          computed(call.name(), command.call.get(), [&] { call.run(processor); });
          begun = true;
        });
  } catch (...) {
    if (begun) {  // some are in flight
      writer_.assume_everything();
      graph.launched(last());
    }
    throw;
  }
  if (!timed) {
    writer_.assume_everything();
    dispatches_ += graph.dispatches();
    bytes_ += graph.bytes();
    operations_ += graph.operations();
    show_usage();
  }
  graph.launched(last());
}

// One by one, so that each is timed.
void StreamRecorder::replay(std::span<const GraphCommand> commands, bool host_looks) {
  struct Replay {
    Profiler& profiler;
    ~Replay() { profiler.replay(nullptr); }
  } const end{*profiler_};
  for (const GraphCommand& command : commands) {
    profiler_->replay(command.call.get());
    with_commands(command, [this](const auto& what) { append(what); });
    host_looks_ = host_looks_ || host_looks;
    appended(0);
  }
}

CommandRing& StreamRecorder::ring_for_copy(uint64_t bytes) {
  const bool timed = profiler_ == nullptr || base_.device->times_copies();
  return copies_.queue() != VK_NULL_HANDLE && bytes >= kCopyQueueBytes && timed ? copies_ : compute_;
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
  append_copy(copy, ring_for_copy(bytes));
  has_used(dst);
  appended(guess_seconds(copy.moved()));
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
  append_copy(copy, ring_for_copy(bytes));
  has_used(src);
  appended(guess_seconds(copy.moved()));
}

void StreamRecorder::copy_pinned(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                                 uint64_t bytes) {
  will_use(dst);
  will_use(src);
  const bool down = locate(dst, 0).block->kind == MemoryKind::readback;
  const BoundCopy copy = bound_copy(down ? "download" : "upload", dst, dst_offset, src, src_offset, bytes);
  append_copy(copy, ring_for_copy(bytes));
  host_looks_ = true;
  has_used(dst);
  has_used(src);
  appended(guess_seconds(copy.moved()));
}

// Up to three bytes that do not fill a word.
void StreamRecorder::fill_edge(const Buffer& dst, uint64_t offset, uint64_t bytes, const std::byte* pattern,
                               Buffer& text) {
  if (text.allocation == nullptr) text = new_memory(4, MemoryKind::readback);
  std::memcpy(text.host<std::byte>(), pattern, bytes);
  copy("fill", dst, offset, text, 0, bytes);
}

void StreamRecorder::write_timestamp(VkQueryPool queries, uint32_t query) {
  open(compute_);
  const VolkDeviceTable& vk = base_.device->vk;
  vk.vkCmdResetQueryPool(writer_.commands(), queries, query, 1);
  vk.vkCmdWriteTimestamp(writer_.commands(), VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries, query);
  if (gathered_ == 0) timeline_.notes().begin("event", {});
  appended(0);  // events alone fill a command buffer too
}

void StreamRecorder::profile_begin(Profile& profile) {
  submit(false);
  if (kept_profiler_ == nullptr) kept_profiler_ = std::make_unique<Profiler>(base_.device, profiler_slots());
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
