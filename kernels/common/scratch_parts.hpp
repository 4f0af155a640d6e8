// Scratch memory that a planner divides into parts.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "planning/arithmetic.hpp"
#include "planning/buffer.hpp"
#include "planning/recorder.hpp"

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

// Scratch memory for all parts, one behind the other.
struct ScratchPart {
  Buffer* buffer;
  uint64_t bytes;
};
inline void take_scratch(Recorder& recorder, std::initializer_list<ScratchPart> parts, Scratch place = Scratch::inner) {
  ScratchLayout all, before;
  for (const ScratchPart& part : parts) all.add(part.bytes);
  const Buffer& memory = recorder.scratch(all.bytes(), place);
  for (const ScratchPart& part : parts) *part.buffer = part_of(memory, before.add(part.bytes), part.bytes);
}

}  // namespace tuff
