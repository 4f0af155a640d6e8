// A stream: records commands, submits them, and orders them after what they wait for.
//
// Commands are appended to the open command buffer (command_ring.hpp). It is submitted when the work gathered in it is
// worth a submission, or when someone waits; submissions are counted by a timeline semaphore (stream_timeline.hpp).
// Copies from and to pinned memory go to a queue of their own where the device has one: a stream is on one queue at a
// time, and where it changes, the next submission waits for the last (submission_waits.hpp). The caller holds the
// context's lock.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platform/mutex.hpp"
#include "runtime/vulkan/command_ring.hpp"
#include "runtime/vulkan/command_writer.hpp"
#include "runtime/vulkan/device_recorder.hpp"
#include "runtime/vulkan/profiler.hpp"
#include "runtime/vulkan/stream_timeline.hpp"
#include "runtime/vulkan/submission_waits.hpp"
#include "runtime/vulkan/transient_memory.hpp"
#include "runtime/vulkan/whole_calls.hpp"

namespace tuff {

class PluginDevice;
class Streams;
class VulkanGraph;
struct GraphCommand;

class StreamRecorder final : public DeviceRecorder {
 public:
  // Submissions that can be in flight; the next one waits for the oldest of them.
  static constexpr uint32_t kDefaultRing = 32, kRing = 8, kCopyRing = 8;

  StreamRecorder(Streams& streams, RecorderBase& base, uint32_t index, uint32_t ring);
  StreamRecorder(const StreamRecorder&) = delete;
  StreamRecorder& operator=(const StreamRecorder&) = delete;

  const Buffer& parameters(const void* data, uint32_t bytes) override;
  bool holds(const Probe& probe) override;
  void fill_edge(const Buffer& dst, uint64_t offset, uint64_t bytes, const std::byte* pattern, Buffer& text) override;

  // The staging side of an upload or download is not tracked: its range is fresh.
  void copy_from_staging(const Buffer& dst, uint64_t offset, const MemoryRange& staging, uint64_t bytes);
  void copy_to_staging(const MemoryRange& staging, const Buffer& src, uint64_t offset, uint64_t bytes);
  // What other streams have done to the buffer and has finished is seen by what is recorded from now on. For downloads:
  // the host may have waited for those streams instead of making this one wait.
  void catch_up_with(const Buffer& buffer);
  // What the host has put into the buffer is there for every stream once what is recorded here has happened.
  void filled(const Buffer& buffer);
  // From or to pinned memory.
  void copy_pinned(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset, uint64_t bytes);

  // All of the graph's commands, as if they were recorded here. The processor computes its steps, for which it waits.
  void launch_graph(VulkanGraph& graph, PluginDevice* processor);
  using DeviceRecorder::launch;

  // compute() is what the processor does for a call of this stream, with all before it done. captured: the call's text in
  // a graph.
  template <typename Compute>
  void computed(const char* operation, const CallText* captured, const Compute& compute) {
    const HostTime begin = profiler_ != nullptr ? host_now() : 0;
    compute();
    ++dispatches_;
    show_usage();
    if (profiler_ == nullptr) return;
    profiler_->replay(captured);
    profiler_->computed({DeviceSpan::Kind::kernel, operation, 0, 0, "libtuff-cpu"}, begin, host_now());
    profiler_->replay(nullptr);
  }

  // All the commands of a call, which attempt(*this) sends, or none if it throws. They may be asked for twice.
  template <typename Attempt>
  void whole(const Attempt& attempt) {
    const WholeCall call(*this);
    attempt(*this);
    if (calls_.pass() == WholeCalls::Pass::rehearsal) {
      call.repeat();
      attempt(*this);
    }
    call.done();
  }
  // What the context has given up, calls may need again.
  void release_scratch() noexcept {
    calls_.forget();
    DeviceRecorder::release_scratch();
  }

  // Gives up what the host writes for commands, if the device is done with all of them: parameters and tables.
  void release_written() noexcept;

  // Before an operation begins: waits until all of it can be recorded without another wait for a free command buffer,
  // so that one that ends by TIMEOUT has had no effect. `lock` holds the context's lock, and is let go while it waits.
  void make_room(std::unique_lock<Mutex>& lock);
  // Hands what is recorded to the device and returns the number of the last submission. With `for_host`
  // all that was written so far is visible to the host once that submission has finished. If it throws
  // OUT_OF_HOST_MEMORY or OUT_OF_DEVICE_MEMORY, nothing is lost: the next attempt submits the same.
  uint64_t submit(bool for_host);
  // Returns when that submission has finished. Needs no lock. Errors: TIMEOUT, DEVICE_LOST.
  using For = StreamTimeline::For;
  void wait(uint64_t submission, For what = For::result);
  bool at_rest(uint64_t milliseconds) noexcept { return timeline_.at_rest(milliseconds); }
  // Whether the device may still touch this memory, or will once the open command buffers are submitted.
  bool busy(const Buffer& buffer);
  // The last submission that is known to have finished.
  uint64_t completed() const noexcept { return timeline_.completed(); }
  uint64_t poll() { return timeline_.poll(); }
  // The number that work recorded now will have.
  uint64_t current_submission() const noexcept { return timeline_.next(); }
  uint64_t submitted() const noexcept { return timeline_.submitted(); }
  // All that was called so far is done when this is.
  Use last() const noexcept {
    return {index_, recording_ || closed_ || !waits_.empty() ? timeline_.next() : timeline_.submitted()};
  }
  // What is recorded from now on comes after that.
  void wait_for(Use use);
  // A timestamp, when all before it has finished.
  void write_timestamp(VkQueryPool queries, uint32_t query);
  // Staging that this submission of the stream uses last.
  void release(const MemoryRange& range, uint64_t submission) {
    base_.pool->release(range, LastUses(Use{index_, submission}));
  }

  uint32_t index() const noexcept { return index_; }
  void set_name(std::string name);
  const std::string& name() const noexcept { return name_; }
  // What the device reports is final but for how it likes operands bound, which is measured.
  void set_binding(bool streams_by_addresses, bool tiles_by_addresses, bool packed_by_addresses) {
    base_.device->traits.streams_by_addresses = streams_by_addresses;
    base_.device->traits.tiles_by_addresses = tiles_by_addresses;
    base_.device->traits.packed_by_addresses = packed_by_addresses;
  }
  void set_no_texels() { base_.device->traits.max_texels = 0; }
  void set_stream_words(bool by_words) { base_.device->traits.streams_by_words = by_words; }

  // Times what is recorded from here on; then what has finished so far is handed over; then no more.
  void profile_begin(Profile& profile);
  void profile_collect();
  void profile_end() noexcept;

  struct Counters {
    uint64_t dispatches = 0, submissions = 0, barriers = 0;
  };
  Counters counters() const noexcept { return {dispatches_, submissions_, writer_.barriers()}; }
  UsageCounters& usage() noexcept { return base_.pool->usage().counters(); }
  // Adds what was counted since the last time to the context's usage. Done with each submission.
  void show_usage() noexcept;

 private:
  friend class Streams;

  void will_use(const Buffer& buffer) override;
  void has_used(const Buffer& buffer) override;
  void append(const BoundDispatch& dispatch) override;
  void append(const BoundCopy& copy) override;
  void append(const BoundFill& fill) override;
  BoundDispatch& place(BoundDispatch& own) noexcept override {
    return calls_.pass() == WholeCalls::Pass::first ? *::new (&held_dispatch_) BoundDispatch : own;
  }
  bool rehearses(const Dispatch& dispatch) override;
  void appended(double seconds) override;
  void launched(VulkanKernel& kernel) override;
  Buffer table_memory(uint64_t bytes) override;

  // A call, while its commands are asked for.
  class WholeCall {
   public:
    explicit WholeCall(StreamRecorder& stream) noexcept : stream_(stream) { stream.calls_.begin(); }
    ~WholeCall() { stream_.calls_.end(); }
    WholeCall(const WholeCall&) = delete;
    WholeCall& operator=(const WholeCall&) = delete;
    // All that the call needs is there now: its commands are recorded the next time.
    void repeat() const;
    void done() const;

   private:
    StreamRecorder& stream_;
    mutable LogRepeat log_;
  };
  // Whether the command is not to be recorded now: it is held back, or rehearsed.
  template <typename Command>
  bool withholds(const Command& command, Command& held);
  uint64_t signature_of_held() const noexcept;
  void record_held();
  void record(const BoundDispatch& dispatch);
  void record(const BoundFill& fill);
  void make_tables();

  void mark_completed(uint64_t submission) noexcept { timeline_.mark_completed(submission); }
  void open(CommandRing& ring);
  void close();
  void submit_with(VkCommandBuffer more);
  void replay(std::span<const GraphCommand> commands, bool host_looks);
  void append_copy(const BoundCopy& copy, CommandRing& ring);
  CommandRing& ring_for_copy(uint64_t bytes);
  void wait_if_needed(uint64_t submission);
  // Until the device is done with memory that this submission reads, which may not have been submitted yet.
  void wait_to_rewrite(uint64_t submission);
  uint32_t profiler_slot() const noexcept {
    return ring_ == &copies_ ? compute_.size() + copies_.position() : compute_.position();
  }
  uint32_t profiler_slots() const noexcept { return compute_.size() + copies_.size(); }
  // Records a command, and what stands around it where somebody looks on.
  template <typename Describe, typename Command>
  void observed(const Describe& describe, const Command& command) {
    if (gathered_ == 0) {
      const auto first = describe();
      timeline_.notes().begin(first.label, first.kernel);
    }
    if (profiler_ == nullptr) [[likely]] {
      writer_.write(command);
    } else {
      profiler_->around(writer_.commands(), profiler_slot(), describe(), [&] { writer_.write(command); });
    }
  }

  bool has_gathered_enough();

  Streams& streams_;
  Timelines& timelines_;  // of all streams
  const uint32_t index_;
  std::string name_;
  StreamTimeline timeline_;
  CommandRing compute_, copies_;
  CommandRing* ring_ = &compute_;  // the one that was used last
  bool recording_ = false;
  bool closed_ = false;  // the command buffer is complete but not submitted yet: the driver had no memory for that
  CommandWriter writer_;
  bool host_looks_ = false;      // into what the open command buffer has written, once that has finished
  uint32_t gathered_ = 0;        // operations in the open command buffer
  double gathered_seconds_ = 0;  // a rough guess of how long they take
  SubmissionWaits waits_;
  std::vector<uint64_t> waited_;  // by stream: up to here nothing has to be waited for again
  WholeCalls calls_;
  // A call's first command, while it is held back.
  enum class Held : uint8_t { dispatch, copy, fill } held_ = Held::dispatch;
  BoundDispatch held_dispatch_;
  BoundCopy held_copy_;
  BoundFill held_fill_;
  double held_seconds_ = 0;
  ParameterSlots parameter_slots_;
  OperandTables tables_;
  std::unique_ptr<Profiler> kept_profiler_;  // created on first use
  Profiler* profiler_ = nullptr;             // null: nothing is timed or labelled
  uint64_t dispatches_ = 0, submissions_ = 0;
  uint64_t shown_dispatches_ = 0;      // of dispatches_
  double bytes_ = 0, operations_ = 0;  // work that the context's usage does not show yet
};

}  // namespace tuff
