// The streams of a context: creates them, reuses closed ones, and performs operations on all of them. The caller holds
// the context's lock unless stated otherwise.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/vulkan/stream_recorder.hpp"

namespace tuff {

class Streams {
 public:
  // Creates the default stream, which is never closed.
  explicit Streams(RecorderBase& base);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  StreamRecorder& main() { return *all_.front(); }
  StreamRecorder& at(uint32_t index) { return *all_[index]; }
  // Throws LIMIT_EXCEEDED.
  StreamRecorder& open(std::string name);
  // Makes the stream available for reuse; what was recorded continues.
  void close(StreamRecorder& stream);

  // Submits what the streams have recorded and puts the submissions to wait for into `uses`.
  void submit_all(bool for_host, std::vector<Use>& uses);
  void wait(const std::vector<Use>& uses);  // needs no lock
  // Whether the driver has finished all submissions. With `wait`, it is given up to the wait limit.
  bool at_rest(bool wait) noexcept;
  // Waits until all work has finished, and releases what it needed: scratch memory, parameters and tables.
  void drain();
  void release_scratch() noexcept;
  // Parameters and tables of streams that have nothing in flight.
  void release_written() noexcept;
  // Updates the streams' completed submissions.
  void poll_all();

  RecorderBase& base() { return base_; }
  Timelines& timelines() { return base_.pool->timelines(); }
  // 0: the default.
  void set_wait_limit(uint64_t milliseconds) {
    wait_milliseconds_ = milliseconds == 0 ? kDefaultWaitMilliseconds : milliseconds;
  }
  uint64_t wait_limit() const { return wait_milliseconds_; }
  StreamRecorder::Counters counters() const;
  void show_usage() noexcept;  // of what is not submitted yet, too

  void profile_begin(Profile& profile);
  void profile_collect();
  void profile_end() noexcept;

 private:
  static constexpr uint64_t kDefaultWaitMilliseconds = 300000;

  RecorderBase& base_;
  std::vector<std::unique_ptr<StreamRecorder>> all_;
  std::vector<uint32_t> closed_;
  std::atomic<uint64_t> wait_milliseconds_{kDefaultWaitMilliseconds};
  Profile* profile_ = nullptr;
};

}  // namespace tuff
