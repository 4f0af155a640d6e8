// A stream: command buffers in rings, a timeline semaphore, submission, what it waits for.
//
// Operations are appended to the open command buffer. It is submitted when the work gathered in it is worth a
// submission, or when someone waits. Submissions are numbered; the timeline semaphore counts the finished ones. Copies
// from and to pinned memory go to a queue of their own where the device has one: a stream is on one queue at a time,
// and where it changes, the next submission waits for the last. The caller holds the context's lock.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/vulkan/command_writer.hpp"
#include "runtime/vulkan/device_recorder.hpp"
#include "runtime/vulkan/profiler.hpp"
#include "runtime/vulkan/submission_notes.hpp"
#include "runtime/vulkan/timelines.hpp"

namespace tuff {

class Streams;
class VulkanGraph;

class StreamRecorder final : public DeviceRecorder {
 public:
  // Submissions that can be in flight; the next one waits for the oldest of them.
  static constexpr uint32_t kDefaultRing = 32, kRing = 8, kCopyRing = 8;

  StreamRecorder(Streams& streams, RecorderBase& base, uint32_t index, uint32_t ring);
  ~StreamRecorder() override;
  StreamRecorder(const StreamRecorder&) = delete;
  StreamRecorder& operator=(const StreamRecorder&) = delete;

  const Buffer& parameters(const void* data, uint32_t bytes) override;
  bool holds(const Probe& probe) override;
  void fill_edge(const Buffer& dst, uint64_t offset, uint64_t bytes, const std::byte* pattern) override;

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

  // All of the graph's commands, as if they were recorded here.
  void launch_graph(VulkanGraph& graph);
  using DeviceRecorder::launch;

  // Before an operation begins: waits until all of it can be recorded without another wait for a free command buffer,
  // so that one that ends by TIMEOUT has had no effect. `lock` holds the context's lock, and is let go while it waits.
  void make_room(std::unique_lock<std::mutex>& lock);
  // Hands what is recorded to the device and returns the number of the last submission. With `for_host`
  // all that was written so far is visible to the host once that submission has finished. If it throws
  // OUT_OF_HOST_MEMORY or OUT_OF_DEVICE_MEMORY, nothing is lost: the next attempt submits the same.
  uint64_t submit(bool for_host);
  // Returns when that submission has finished. Needs no lock. For a result that somebody waits for it stays awake a
  // while; for room, while there is more under way, it does not. Errors: TIMEOUT, DEVICE_LOST.
  enum class For { result, room };
  void wait(uint64_t submission, For what = For::result);
  // Whether the driver is done with all that was submitted, so that the recorder and what it used may be destroyed; it
  // has so long to be.
  bool at_rest(uint64_t milliseconds) noexcept;
  // Whether the device may still touch this memory, or will once the open command buffers are submitted.
  bool busy(const Buffer& buffer);
  // The last submission that is known to have finished.
  uint64_t completed() const noexcept { return timelines_.completed(index_); }
  uint64_t poll();
  // The number that work recorded now will have.
  uint64_t current_submission() const noexcept { return submitted_ + 1; }
  uint64_t submitted() const noexcept { return submitted_; }
  // All that was called so far is done when this is.
  Use last() const noexcept { return {index_, recording_ || closed_ || waits() ? submitted_ + 1 : submitted_}; }
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
  void set_stream_words(bool by_words) { base_.device->traits.streams_by_words = by_words; }

  // Times what is recorded from here on; then what has finished so far is handed over; then no more.
  void profile_begin(Profile& profile);
  void profile_collect();
  void profile_end() noexcept;

  struct Counters {
    uint64_t dispatches = 0, submissions = 0, barriers = 0;
  };
  Counters counters() const noexcept { return {dispatches_, submissions_, writer_.barriers()}; }

 private:
  friend class Streams;

  struct Slot {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    uint64_t submission = 0;
  };
  // A queue, and the command buffers for it.
  struct Lane {
    VkQueue queue = VK_NULL_HANDLE;
    uint32_t family = 0;
    bool computes = true;
    std::vector<Slot> slots;  // made when it is first used
    uint32_t slot = 0;
  };

  void will_use(const Buffer& buffer) override;
  void has_used(const Buffer& buffer) override;
  void append(const BoundDispatch& dispatch) override;
  void append(const BoundCopy& copy) override { append_copy(copy, compute_); }
  void append(const BoundFill& fill) override;
  void appended(double bytes, double operations) override;
  void launched(VulkanKernel& kernel) override;
  Buffer table_memory(uint64_t bytes) override;

  void mark_completed(uint64_t submission) noexcept;
  void add_wait(VkSemaphore timeline, uint64_t value);
  void destroy() noexcept;
  void make_slots(Lane& lane, uint32_t count);
  void open(Lane& lane);
  void close(Slot& slot);
  void submit_with(VkCommandBuffer more);
  void append_copy(const BoundCopy& copy, Lane& lane);
  Lane& copy_lane(uint64_t bytes);
  bool waits() const noexcept { return !waits_.empty() || !ahead_.empty(); }
  // Whether that submission was for this queue, as far as it is remembered.
  bool computed(uint64_t submission, VkQueue queue) const noexcept;
  void wait_if_needed(uint64_t submission);
  bool has_finished(uint64_t submission) { return submission <= completed() || submission <= poll(); }
  uint32_t profiler_slot() const noexcept { return lane_ == &copies_ ? compute_ring_ + copies_.slot : compute_.slot; }
  // Records a command, and what stands around it where somebody looks on.
  template <typename Describe, typename Command>
  void observed(const Describe& describe, const Command& command) {
    if (gathered_ == 0) {
      const auto first = describe();
      notes_.begin(first.label, first.kernel);
    }
    if (profiler_ == nullptr) [[likely]] {
      writer_.write(command);
    } else {
      profiler_->around(writer_.commands(), profiler_slot(), describe(), [&] { writer_.write(command); });
    }
  }

  Streams& streams_;
  Timelines& timelines_;
  const uint32_t index_;
  std::string name_;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  Lane compute_, copies_;
  const uint32_t compute_ring_;
  Lane* lane_ = &compute_;
  bool recording_ = false;
  bool closed_ = false;  // the command buffer, and not submitted yet: the driver had no memory for that
  CommandWriter writer_;
  bool host_looks_ = false;  // into what the open command buffer has written, once that has finished
  uint64_t submitted_ = 0;
  static constexpr uint64_t kRemembered = 64;
  uint64_t copied_ = 0;          // a bit for each of the last submissions: it went to the queue for copies
  uint32_t gathered_ = 0;        // operations in the open command buffer
  double gathered_seconds_ = 0;  // a rough guess of how long they take
  SubmissionNotes notes_;
  // What the next submission waits for: a timeline and a value each.
  std::vector<VkSemaphore> waits_;
  std::vector<uint64_t> wait_values_;
  std::vector<VkPipelineStageFlags> wait_stages_;
  // What comes before the next submission by being on the same queue before it.
  std::vector<Use> ahead_;
  std::vector<uint64_t> waited_;  // by stream: up to here nothing has to be waited for again
  // Parameters lie in memory that the host writes to, each set in a slot of its own, and stay: a call that is made
  // again finds its set. A slot is written anew once the device is done with it, the one unused for longest first.
  struct ParameterSlot {
    Buffer buffer;
    std::array<std::byte, kMaxParameterBytes> bytes{};
    uint32_t count = 0;
    uint64_t submission = 0;  // the last that reads it
  };
  static constexpr uint32_t kParameterSlots = 64;
  std::vector<ParameterSlot> parameter_slots_;  // made on first use
  // The tables of operands that are a buffer for each matrix, one behind the other in a few pieces of memory that take
  // turns: a piece is written anew once the device is done with all of it.
  struct TablePiece {
    Buffer buffer;
    uint64_t submission = 0;  // the last that reads it
  };
  static constexpr uint64_t kTableBytes = uint64_t{Dispatch::kMaxEach} * Dispatch::kMaxEachOperands * 8;
  std::array<TablePiece, 4> tables_;  // made on first use
  uint32_t table_ = 0;
  uint64_t table_used_ = kTableBytes;
  bool table_wanted_ = false;                // by the next dispatch
  std::unique_ptr<Profiler> kept_profiler_;  // made on first use
  Profiler* profiler_ = nullptr;             // null: nobody looks on
  uint64_t dispatches_ = 0, submissions_ = 0;
};

}  // namespace tuff
