// Byte ranges accessed since the last barrier: tells whether the next operation has to wait for them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace tuff {

class HazardTracker {
 public:
  static constexpr uint32_t kCapacity = 96;

  struct Range {
    uint64_t block;  // the memory block's id
    uint64_t begin, end;
    bool write;
  };

  // Read after write, write after read or write after write on common bytes.
  bool conflicts(const Range& range) const noexcept {
    return everything_ || written_.touches(range) || (range.write && read_.touches(range));
  }

  // Returns false if there is no room; the caller then adds a barrier and clears.
  bool add(const Range& range) noexcept { return (range.write ? written_ : read_).add(range); }

  // Everything counts as accessed, because there were too many ranges to track.
  void add_everything() noexcept { everything_ = true; }

  void clear() noexcept {
    read_.clear();
    written_.clear();
    everything_ = false;
  }
  bool empty() const noexcept { return read_.empty() && written_.empty() && !everything_; }
  bool has_room(uint32_t ranges) const noexcept { return read_.has_room(ranges) && written_.has_room(ranges); }

 private:
  // Sorted intervals that neither overlap nor adjoin. Adjacent buffers, such as those allocated together, merge into
  // one.
  class Bytes {
   public:
    bool touches(const Range& range) const noexcept {
      const uint32_t i = first_beyond(range.block, range.begin);
      return i < count_ && at_[i].block == range.block && at_[i].begin < range.end && range.begin < range.end;
    }

    bool add(const Range& range) noexcept {
      if (range.begin >= range.end) return true;
      // All intervals that the range overlaps or adjoins become one.
      uint32_t first = first_beyond(range.block, range.begin);
      if (first > 0 && at_[first - 1].block == range.block && at_[first - 1].end == range.begin) --first;
      uint32_t last = first;
      while (last < count_ && at_[last].block == range.block && at_[last].begin <= range.end) ++last;
      if (last == first) {
        if (count_ == kCapacity) return false;
        std::move_backward(at_.begin() + first, at_.begin() + count_, at_.begin() + count_ + 1);
        at_[first] = {range.block, range.begin, range.end};
        ++count_;
        return true;
      }
      at_[first].begin = std::min(at_[first].begin, range.begin);
      at_[first].end = std::max(at_[last - 1].end, range.end);
      std::move(at_.begin() + last, at_.begin() + count_, at_.begin() + first + 1);
      count_ -= last - first - 1;
      return true;
    }

    void clear() noexcept { count_ = 0; }
    bool empty() const noexcept { return count_ == 0; }
    bool has_room(uint32_t ranges) const noexcept { return count_ + ranges <= kCapacity; }

   private:
    struct Interval {
      uint64_t block, begin, end;
    };

    // The first interval with bytes at or after `begin`.
    uint32_t first_beyond(uint64_t block, uint64_t begin) const noexcept {
      const auto is_before = [&](const Interval& interval) {
        return interval.block != block ? interval.block < block : interval.end <= begin;
      };
      if (count_ == 0 || is_before(at_[count_ - 1])) return count_;  // memory is often used in ascending order
      return static_cast<uint32_t>(std::partition_point(at_.begin(), at_.begin() + count_, is_before) - at_.begin());
    }

    std::array<Interval, kCapacity> at_;
    uint32_t count_ = 0;
  };

  Bytes read_, written_;
  bool everything_ = false;
};

}  // namespace tuff
