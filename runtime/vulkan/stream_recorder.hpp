// The stream of a context: command buffers in a ring, a timeline semaphore, hazards, submission.
//
// Operations are appended to the open command buffer. It is submitted when the work gathered in it is
// worth a submission, or when someone waits. Submissions are numbered; the timeline semaphore counts the
// finished ones. The caller holds the context's lock.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/vulkan/hazard_tracker.hpp"
#include "runtime/vulkan/kernel_cache.hpp"
#include "runtime/vulkan/memory_pool.hpp"
#include "runtime/vulkan/profiler.hpp"
#include "runtime/vulkan/recorder.hpp"
#include "runtime/vulkan/submission_notes.hpp"

namespace tuff {

class VulkanKernel;
struct LaunchArgs;

class StreamRecorder final : public Recorder {
 public:
  StreamRecorder(std::shared_ptr<Device> device, std::shared_ptr<MemoryPool> pool, KernelCache& kernels);
  ~StreamRecorder() override;
  StreamRecorder(const StreamRecorder&) = delete;
  StreamRecorder& operator=(const StreamRecorder&) = delete;

  const DeviceTraits& traits() const noexcept override { return device_->traits; }
  bool binds_addresses(Reads reads, const Dispatch& dispatch) const noexcept override;
  void dispatch(const KernelRequest& kernel, const Dispatch& dispatch) override;
  const Buffer& scratch(uint64_t bytes, Scratch place) override;
  const Buffer& parameters(const void* data, uint32_t bytes) override;
  void copy_rows(const Rows& to, const Rows& from, uint64_t bytes, uint64_t count) override;
  bool matrix_quads() override;
  // What partial results were kept in goes back to the pool; the next operation that needs some takes it anew.
  void release_scratch() noexcept {
    for (Buffer& buffer : scratch_) buffer = {};
  }
  const TuningTable* tuning() const noexcept override { return tuning_; }

  // A kernel that a caller brought, with arguments that are checked.
  void launch(VulkanKernel& kernel, const LaunchArgs& args);

  // Copies between ranges of pool memory, in order with the rest. The staging side of an upload or
  // download is not tracked: its range is fresh.
  void copy(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset, uint64_t bytes);
  void copy_from_staging(const Buffer& dst, uint64_t offset, const MemoryRange& staging, uint64_t bytes);
  void copy_to_staging(const MemoryRange& staging, const Buffer& src, uint64_t offset, uint64_t bytes);
  // A 4-byte pattern; offset and bytes are multiples of 4 from the start of the memory.
  void fill_words(const Buffer& dst, uint64_t offset, uint64_t bytes, uint32_t word);

  // Before an operation begins: waits until all of it can be recorded without another wait for a free command buffer,
  // so that one that ends by TIMEOUT has had no effect.
  void make_room();
  // Hands what is recorded to the device and returns the number of the last submission. With `for_host`
  // all that was written so far is visible to the host once that submission has finished.
  uint64_t submit(bool for_host);
  // Returns when that submission has finished. Needs no lock. Errors: TIMEOUT, DEVICE_LOST.
  void wait(uint64_t submission);
  // Whether the driver is done with all that was submitted, so that the recorder and what it used may be destroyed.
  // With `wait`, it has the time that wait() would give it.
  bool at_rest(bool wait) noexcept;
  // Whether the device may still touch this memory, or will once the open command buffer is submitted.
  bool busy(const Buffer& buffer);
  // The last submission that is known to have finished.
  uint64_t last_completed() { return std::max(completed_.load(), poll()); }
  // The number that work recorded now will have.
  uint64_t current_submission() const noexcept { return submitted_ + 1; }

  // 0: the default.
  void set_wait_limit(uint64_t milliseconds) {
    wait_milliseconds_ = milliseconds == 0 ? kDefaultWaitMilliseconds : milliseconds;
  }
  // What the device reports is final but for how it likes operands bound, which is measured.
  void set_binding(bool streams_by_addresses, bool tiles_by_addresses, bool packed_by_addresses) {
    device_->traits.streams_by_addresses = streams_by_addresses;
    device_->traits.tiles_by_addresses = tiles_by_addresses;
    device_->traits.packed_by_addresses = packed_by_addresses;
  }
  void set_stream_words(bool by_words) { device_->traits.streams_by_words = by_words; }

  // Outlives the recorder, or the next call.
  void set_tuning(const TuningTable* table) { tuning_ = table; }

  // Times what is recorded from here on; then what has finished so far is handed over; then no more.
  void profile_begin(Profile& profile);
  void profile_collect();
  void profile_end() noexcept;

  struct Counters {
    uint64_t dispatches = 0, submissions = 0, barriers = 0;
  };
  const Counters& counters() const noexcept { return counters_; }

 private:
  static constexpr uint64_t kDefaultWaitMilliseconds = 300000;
  // Submissions that can be in flight; the next one waits for the oldest of them.
  static constexpr uint32_t kRing = 32;
  static constexpr uint32_t kMostOfOneOperation = 8;
  struct Slot {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    uint64_t submission = 0;
  };

  // What a dispatch has in one slot: memory from begin to end; none: the shader never touches it.
  struct Bound {
    const MemoryBlock* block = nullptr;
    uint64_t begin = 0, end = 0;
  };
  using AllBound = std::array<Bound, Dispatch::kMaxOperands + 1>;
  // All that a dispatch touches, for order(): ranges, or more than is worth telling apart.
  struct Touched {
    static constexpr uint32_t kMostBlocks = 4;  // of an operand that is a buffer for each matrix
    std::array<HazardTracker::Range, Dispatch::kMaxOperands + Dispatch::kMaxEachOperands * kMostBlocks> ranges;
    uint32_t count = 0;
    bool everything = false;
  };

  bool fits_descriptors(const Dispatch& dispatch) const noexcept;
  bool prefers_addresses(Reads reads) const noexcept;
  bool find(const Dispatch& dispatch, AllBound& all, Touched& touched) const;
  Bound find_each(const Dispatch& dispatch, const Dispatch::Operand& operand, Touched& touched) const;
  Bound write_table(const Dispatch& dispatch, const AllBound& all, bool addresses);
  VkCommandBuffer open();
  uint64_t poll();
  void mark_completed(uint64_t submission) noexcept;
  void order(const HazardTracker::Range* ranges, uint32_t count, VkPipelineStageFlags stage, bool everything = false);
  void barrier(VkPipelineStageFlags stage);
  void note_work(double bytes, double operations);
  void touch(const Buffer& buffer) noexcept;
  HazardTracker::Range range_of(const Buffer& buffer, uint64_t offset, uint64_t bytes, bool write) const;
  void push_descriptors(VkCommandBuffer commands, const Pipeline& pipeline, const AllBound& all, uint32_t count,
                        uint64_t* bases);
  void record_copy(const char* label, const MemoryBlock& dst, uint64_t dst_offset, const MemoryBlock& src,
                   uint64_t src_offset, uint64_t bytes);
  // Records a command, and what stands around it where somebody looks on.
  template <typename Describe, typename Record>
  void observed(const Describe& describe, const Record& record) {
    if (gathered_ == 0) {
      const Command first = describe();
      notes_.begin(first.label, first.kernel);
    }
    if (profiler_ == nullptr) [[likely]] {
      record();
    } else {
      profiler_->around(ring_[slot_].commands, slot_, describe(), record);
    }
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<MemoryPool> pool_;
  KernelCache& kernels_;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::array<Slot, kRing> ring_{};
  uint32_t slot_ = 0;
  bool recording_ = false;
  VkPipeline bound_ = VK_NULL_HANDLE;
  HazardTracker hazards_;
  VkPipelineStageFlags pending_stages_ = 0;  // of the work since the last barrier
  bool transfers_uncovered_ = false;         // the last barrier was between kernels alone
  bool hidden_from_host_ = false;            // something was written since the last barrier for the host
  uint64_t submitted_ = 0;
  std::atomic<uint64_t> completed_{0};
  uint32_t gathered_ = 0;        // operations in the open command buffer
  double gathered_seconds_ = 0;  // a rough guess of how long they take
  std::atomic<uint64_t> wait_milliseconds_{kDefaultWaitMilliseconds};
  SubmissionNotes notes_;
  std::optional<bool> matrix_quads_;
  std::array<Buffer, 2> scratch_;
  Buffer unused_;
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
  const TuningTable* tuning_ = nullptr;
  std::unique_ptr<Profiler> kept_profiler_;  // made on first use
  Profiler* profiler_ = nullptr;             // null: nobody looks on
  Counters counters_;
};

}  // namespace tuff
