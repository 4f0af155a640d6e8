// The streams of a context: makes them, keeps those that nobody has any more for whoever asks next, and does what
// concerns all of them. The caller holds the context's lock, but where it says otherwise.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/vulkan/stream_recorder.hpp"

namespace tuff {

class Streams {
 public:
  // With the default stream, which stays.
  explicit Streams(RecorderBase& base);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  StreamRecorder& main() { return *all_.front(); }
  StreamRecorder& at(uint32_t index) { return *all_[index]; }
  // Errors: LIMIT_EXCEEDED.
  StreamRecorder& open(std::string name);
  // Nobody records there any more; what was recorded goes on.
  void close(StreamRecorder& stream);

  // Submits what streams have recorded. What has to be waited for then is in `uses`.
  void submit_all(bool for_host, std::vector<Use>& uses);
  void wait(const std::vector<Use>& uses);  // needs no lock
  // Whether the driver is done with all that any of them submitted. With `wait`, it has the wait limit's time to be.
  bool at_rest(bool wait) noexcept;
  // Until nothing is left to do; what partial results were kept in is given up.
  void drain();
  void release_scratch() noexcept;
  // Looks how far the device is.
  void poll_all();

  RecorderBase& base() { return base_; }
  Timelines& timelines() { return base_.pool->timelines(); }
  // 0: the default.
  void set_wait_limit(uint64_t milliseconds) {
    wait_milliseconds_ = milliseconds == 0 ? kDefaultWaitMilliseconds : milliseconds;
  }
  uint64_t wait_limit() const { return wait_milliseconds_; }
  StreamRecorder::Counters counters() const;

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
