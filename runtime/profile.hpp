// Records a context's calls and the device's work for them while profiling is on, and produces two reports: a trace and
// a table. Independent of Vulkan: the host's track is the same for every backend, and the device's is filled in by
// runtime/vulkan/profiler.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "platform/mutex.hpp"
#include "tuff/tuff.h"

namespace tuff {

// Nanoseconds of std::chrono::steady_clock.
using HostTime = int64_t;
HostTime host_now() noexcept;

// A call of the C ABI, or a step within one (the host waits, submits, builds a kernel).
struct HostSpan {
  uint32_t name = 0, shape = 0;  // text numbers
  uint32_t thread = 0;
  int32_t dtype = 0;  // the type that the operation computes in; 0: none
  uint64_t call = 0;  // number of the call; for a step, of the call that contains it
  bool step = false, failed = false;
  HostTime begin = 0, end = 0;
};

// A command on the device.
struct DeviceSpan {
  enum class Kind : uint8_t { kernel, copy, fill };
  Kind kind = Kind::kernel;
  uint32_t operation = 0, label = 0, kernel = 0, variant = 0, plan = 0, stream = 0;  // text numbers
  uint32_t shape = 0;  // text number and dtype of the call that a graph captured; 0: use those of `call`
  int32_t dtype = 0;
  uint32_t track = 0;  // index among the context's queues; each gets a row, whatever its name
  uint32_t thread = 0;
  std::array<uint32_t, 3> groups{};
  double bytes = 0, operations = 0;
  uint64_t call = 0, submission = 0;
  uint64_t begin = 0, end = 0;  // device ticks, corrected for wrap-around
};

// Maps device ticks to the host's clock: a line through one or two points at which both were read.
struct DeviceClock {
  struct Point {
    uint64_t ticks = 0;
    HostTime host = 0;
  };
  double period = 1;  // nanoseconds per tick
  Point first, last;
  bool calibrated = false;   // both read at once by the driver; otherwise estimated from a submission
  HostTime uncertainty = 0;  // possible error of a point in nanoseconds

  double nanoseconds(uint64_t begin, uint64_t end) const { return static_cast<double>(end - begin) * period; }
  double host_time(uint64_t ticks) const;
};

// Measured rates of the device, which percentages refer to; 0: not measured.
struct DeviceRates {
  double bytes_per_second = 0;      // bytes read plus bytes written in a copy
  double f32_flops_per_second = 0;  // in a GEMM
};

class Profile {
 public:
  static constexpr size_t kMaxSpans = size_t{1} << 18;  // of each kind: further spans are only counted

  explicit Profile(size_t max_spans = kMaxSpans);
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // Discards the spans so far and starts recording.
  void start();
  void stop(const tuff_stats& stats);
  void set_before(const tuff_stats& stats);
  bool recording() const noexcept { return recording_.load(std::memory_order_relaxed); }

  // May be called from any thread. A text's number is valid for the profile's lifetime; 0 is the empty text.
  uint32_t text(std::string_view text);
  uint32_t thread_number();
  uint64_t next_call() noexcept { return calls_.fetch_add(1, std::memory_order_relaxed) + 1; }
  // Spans for which there is no room or memory are counted as dropped.
  void add(const HostSpan& span) noexcept;
  void add(const DeviceSpan& span) noexcept;
  void add_dropped(uint64_t count);
  // timed: its commands are timed, and the device gets a track.
  void set_device(std::string_view name, bool timed, const DeviceRates& rates);
  void set_clock(const DeviceClock& clock);

  // stats: the current counters, used if it is still recording.
  std::string trace(const tuff_stats& stats) const;  // Chrome's trace format
  std::string table(const tuff_stats& stats) const;

  std::vector<DeviceSpan> device_spans() const;  // so far
  double seconds(const DeviceSpan& span) const;

  struct View;  // a copy of everything, for the reports, because calls continue meanwhile

 private:
  View view(const tuff_stats& stats) const;

  const size_t max_spans_;
  std::atomic<bool> recording_{false};
  std::atomic<uint64_t> calls_{0};
  mutable Mutex mutex_{LockRank::profile};  // guards what follows
  HostTime began_ = 0, ended_ = 0;
  tuff_stats before_{}, after_{};
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> numbers_;
  std::vector<std::string> texts_;
  struct Thread {
    uint64_t id;
    std::string name;  // empty: unnamed
  };
  std::vector<Thread> threads_;
  std::vector<HostSpan> host_;
  std::vector<DeviceSpan> device_;
  uint64_t dropped_ = 0;
  bool has_device_ = false;
  std::string device_name_;
  DeviceRates rates_;
  DeviceClock clock_;
};

struct CallText;

// A call in progress, on its thread. Spans recorded meanwhile belong to it.
class ProfiledCall {
 public:
  ProfiledCall(Profile& profile, const char* name);
  ~ProfiledCall();
  ProfiledCall(const ProfiledCall&) = delete;
  ProfiledCall& operator=(const ProfiledCall&) = delete;

  // This thread's call; null if none is profiled.
  static ProfiledCall* current() noexcept;
  // Marks the call as successful. text() describes it; the description is dropped if there is no memory for it.
  template <typename Text>
  void done(const Text& text) noexcept {
    span_.failed = false;
    try {
      about(text());
    } catch (const std::bad_alloc&) {
    }
  }
  void done() noexcept { span_.failed = false; }

  Profile& profile() const { return profile_; }
  const HostSpan& span() const { return span_; }
  // The planner's log line about the next kernel.
  void note_plan(std::string_view line);
  uint32_t take_plan();  // a text number

 private:
  void about(const CallText& text);

  Profile& profile_;
  ProfiledCall* outer_;
  HostSpan span_;
  std::string noted_;
};

// A step of the thread's current call; does nothing if none is profiled.
class ProfiledStep {
 public:
  explicit ProfiledStep(const char* name) : call_(ProfiledCall::current()), name_(name) {
    if (call_ != nullptr) begin_ = host_now();
  }
  ~ProfiledStep() {
    if (call_ != nullptr) finish();
  }
  ProfiledStep(const ProfiledStep&) = delete;
  ProfiledStep& operator=(const ProfiledStep&) = delete;

 private:
  void finish() noexcept;

  ProfiledCall* call_;
  const char* name_;
  HostTime begin_ = 0;
};

}  // namespace tuff
