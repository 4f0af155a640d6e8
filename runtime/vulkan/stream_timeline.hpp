// How far the device is in a stream: a timeline semaphore that counts the stream's submissions, and waiting for it.
//
// Submissions are numbered from 1. Reading and waiting need no lock; everything else is done under the context's lock.
#pragma once

#include <memory>
#include <string>

#include "runtime/vulkan/memory_pool.hpp"
#include "runtime/vulkan/submission_notes.hpp"
#include "runtime/vulkan/timelines.hpp"

namespace tuff {

class StreamTimeline {
 public:
  // A wait for a result that somebody needs now, or for a command buffer or memory that is in use.
  enum class For { result, room };

  StreamTimeline(std::shared_ptr<Device> device, std::shared_ptr<MemoryPool> pool, uint32_t stream);
  ~StreamTimeline();
  StreamTimeline(const StreamTimeline&) = delete;
  StreamTimeline& operator=(const StreamTimeline&) = delete;

  VkSemaphore semaphore() const noexcept { return semaphore_; }
  // The last submission, and the number of the next.
  uint64_t submitted() const noexcept { return submitted_; }
  uint64_t next() const noexcept { return submitted_ + 1; }
  // The last submission that is known to have finished.
  uint64_t completed() const noexcept { return all_.completed(stream_); }
  // Asks the device. Throws DEVICE_LOST.
  uint64_t poll();
  bool has_finished(uint64_t submission) { return submission <= completed() || submission <= poll(); }

  // What is recorded now will be in the next submission.
  void record() noexcept { all_.record(stream_, next()); }
  // The next submission, of so many operations, went to a queue: for_copies says to which.
  void advance(uint32_t operations, bool for_copies) noexcept;
  // Whether that submission was for the queue of kernels, as far as it is remembered.
  bool computed(uint64_t submission) const noexcept {
    return submission + kRemembered > submitted_ && !(copied_ >> (submission % kRemembered) & 1);
  }
  void mark_completed(uint64_t submission) noexcept;

  // Returns when that submission has finished. For a result it looks for a while before it sleeps, except on CPU
  // devices, whose cycles that would take. Errors: TIMEOUT after so many milliseconds, DEVICE_LOST.
  void wait(uint64_t submission, For what, uint64_t milliseconds);
  // Whether the driver is done with all that was submitted; waits for that as long as it may.
  bool at_rest(uint64_t milliseconds) noexcept;

  // The work in flight, for the message of a wait that took too long.
  SubmissionNotes& notes() noexcept { return notes_; }

 private:
  static constexpr uint64_t kRemembered = 64;

  const std::shared_ptr<Device> device_;
  const std::shared_ptr<MemoryPool> pool_;
  Timelines& all_;
  const uint32_t stream_;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  uint64_t submitted_ = 0;
  uint64_t copied_ = 0;  // a bit for each of the last submissions: it went to the queue for copies
  SubmissionNotes notes_;
};

}  // namespace tuff
