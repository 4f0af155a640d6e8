// How far the device is in each stream of a context, and when memory used by streams becomes free.
//
// Each stream numbers its submissions from 1 and never restarts. What is being recorded belongs to the submission after
// the last one.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <new>
#include <vector>

#include "runtime/limits.hpp"

namespace tuff {

// A submission of a stream. Submission 0 of any stream counts as finished.
struct Use {
  uint32_t stream = 0;
  uint64_t submission = 0;
};

class Timelines {
 public:
  bool done(Use use) const noexcept { return use.submission <= completed(use.stream); }
  uint64_t completed(uint32_t stream) const noexcept { return completed_[stream].load(std::memory_order_acquire); }
  // Returns how many submissions were not known to have finished before.
  uint64_t complete(uint32_t stream, uint64_t submission) noexcept {
    uint64_t known = completed_[stream].load(std::memory_order_relaxed);
    while (known < submission) {
      if (completed_[stream].compare_exchange_weak(known, submission, std::memory_order_release)) {
        return submission - known;
      }
    }
    return 0;
  }

  // Sets the submission that the stream's last recorded work is, or will be, part of.
  void record(uint32_t stream, uint64_t submission) noexcept {
    recorded_[stream].store(submission, std::memory_order_relaxed);
    uint32_t known = count_.load(std::memory_order_relaxed);
    while (known <= stream && !count_.compare_exchange_weak(known, stream + 1)) {
    }
  }
  bool all_done() const noexcept {
    for (uint32_t i = 0, n = count_; i < n; ++i) {
      if (!done({i, recorded_[i].load(std::memory_order_relaxed)})) return false;
    }
    return true;
  }
  // Whether the context has never had a second stream.
  bool single() const noexcept { return count_.load(std::memory_order_relaxed) <= 1; }
  // The last recorded submission of every stream.
  std::vector<Use> all() const {
    std::vector<Use> uses;
    for (uint32_t i = 0, n = count_; i < n; ++i) uses.push_back({i, recorded_[i].load(std::memory_order_relaxed)});
    return uses;
  }

 private:
  std::array<std::atomic<uint64_t>, kMaxStreams> completed_{}, recorded_{};
  std::atomic<uint32_t> count_{0};
};

// The last submission of each stream that uses an object. If more streams use it than there is room for, any work
// counts as a use.
class LastUses {
 public:
  LastUses() = default;
  explicit LastUses(Use use) : count_(1) { uses_[0] = use; }

  void add(Use use, const Timelines& timelines) noexcept {
    for (uint32_t i = 0; i < count_; ++i) {
      if (uses_[i].stream == use.stream) {
        uses_[i].submission = std::max(uses_[i].submission, use.submission);
        return;
      }
    }
    if (count_ == uses_.size()) {
      const auto end = std::remove_if(uses_.begin(), uses_.end(), [&](Use old) { return timelines.done(old); });
      count_ = static_cast<uint32_t>(end - uses_.begin());
    }
    if (count_ < uses_.size()) {
      uses_[count_++] = use;
    } else {
      more_ = true;
    }
  }
  bool done(const Timelines& timelines) const noexcept {
    if (more_) return timelines.all_done();
    return std::all_of(uses_.begin(), uses_.begin() + count_, [&](Use use) { return timelines.done(use); });
  }
  // Visits the known uses.
  template <typename Visit>
  void each(const Visit& visit) const {
    std::for_each(uses_.begin(), uses_.begin() + count_, visit);
  }
  // The use, if there is exactly one; otherwise submission 0.
  Use only() const noexcept { return count_ == 1 && !more_ ? uses_[0] : Use{}; }
  // True if there are more streams than are stored.
  bool more() const noexcept { return more_; }

 private:
  std::array<Use, 6> uses_{};
  uint32_t count_ = 0;
  bool more_ = false;
};

// Uses to which no more will be added.
class FinalUses {
 public:
  FinalUses(const LastUses& uses, const Timelines& timelines) noexcept : uses_(uses) {
    if (!uses.more()) return;
    try {
      all_ = timelines.all();
    } catch (const std::bad_alloc&) {  // then later work is waited for as well
    }
  }
  bool done(const Timelines& timelines) const noexcept {
    if (!uses_.more() || all_.empty()) return uses_.done(timelines);
    return std::all_of(all_.begin(), all_.end(), [&](Use use) { return timelines.done(use); });
  }
  // The use, if it is known to be the only one; otherwise submission 0.
  Use only() const noexcept { return uses_.only(); }

 private:
  LastUses uses_;
  std::vector<Use> all_;
};

}  // namespace tuff
