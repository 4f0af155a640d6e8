// Byte ranges touched since the last barrier: tells whether the next operation has to wait for them.
#pragma once

#include <array>
#include <cstdint>

namespace tuff {

class HazardTracker {
 public:
  static constexpr uint32_t kCapacity = 96;

  struct Range {
    uint64_t block;  // which memory
    uint64_t begin, end;
    bool write;
  };

  // Read after write, write after read or write after write on bytes that both touch.
  bool conflicts(const Range& range) const noexcept {
    if (everything_) return true;
    for (uint32_t i = 0; i < count_; ++i) {
      const Range& other = ranges_[i];
      if (other.block == range.block && (other.write || range.write) && other.begin < range.end &&
          range.begin < other.end) {
        return true;
      }
    }
    return false;
  }

  // False if there is no room: the caller adds a barrier and clears.
  bool add(const Range& range) noexcept {
    for (uint32_t i = 0; i < count_; ++i) {
      const Range& other = ranges_[i];
      if (other.block == range.block && other.write == range.write && other.begin <= range.begin &&
          other.end >= range.end) {
        return true;
      }
    }
    if (count_ == kCapacity) return false;
    ranges_[count_++] = range;
    return true;
  }

  // What was touched is more than ranges are worth keeping for.
  void add_everything() noexcept { everything_ = true; }

  void clear() noexcept {
    count_ = 0;
    everything_ = false;
  }
  bool empty() const noexcept { return count_ == 0 && !everything_; }
  bool has_room(uint32_t ranges) const noexcept { return count_ + ranges <= kCapacity; }

 private:
  std::array<Range, kCapacity> ranges_;
  uint32_t count_ = 0;
  bool everything_ = false;
};

}  // namespace tuff
