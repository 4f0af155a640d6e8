// Scratch memory that a planner divides into parts.
#pragma once

#include <cstdint>

#include "planning/arithmetic.hpp"
#include "planning/buffer.hpp"

namespace tuff {

// Places for parts, aligned as allocations are.
class ScratchLayout {
 public:
  uint64_t add(uint64_t bytes) {
    const uint64_t at = bytes_;
    bytes_ += round_up(bytes, 256);
    return at;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
};

inline Buffer part_of(const Buffer& memory, uint64_t offset, uint64_t bytes) {
  Buffer part = memory;
  part.offset += offset;
  part.bytes = bytes;
  return part;
}

}  // namespace tuff
