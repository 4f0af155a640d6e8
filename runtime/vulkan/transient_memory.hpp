// Memory that the host writes for a command that is about to be recorded: parameters that do not fit a push-constant
// block, and tables of operands. Each class hands out pieces in turn; the stream waits until the device is done with a
// piece before it is written again.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "planning/dispatch.hpp"
#include "planning/recorder.hpp"
#include "runtime/vulkan/memory_pool.hpp"

namespace tuff {

// Each set of parameters has a slot of its own and stays: a call that is repeated finds its set. A new set replaces the
// one that has been unused for longest.
class ParameterSlots {
 public:
  static constexpr uint32_t kSlots = 64, kMaxParameterBytes = Recorder::kMaxParameterBytes;
  struct Slot {
    Buffer buffer;
    std::array<std::byte, kMaxParameterBytes> bytes{};
    uint32_t count = 0;
    uint64_t submission = 0;  // the last that reads it
  };

  bool empty() const noexcept { return slots_.empty(); }
  // Gives the memory up. The device must be done with all slots.
  void release() noexcept { slots_.clear(); }
  static constexpr uint64_t memory_bytes() noexcept { return uint64_t{kSlots} * kMaxParameterBytes; }
  void use_memory(const Buffer& memory);
  // The slot that holds these bytes, or null.
  Slot* find(const void* data, uint32_t bytes) noexcept;
  Slot& oldest() noexcept;
  // The device must be done with the slot.
  static void write(Slot& slot, const void* data, uint32_t bytes) noexcept;
  // If the buffer is one of the slots, that submission reads it.
  void used(const Buffer& buffer, uint64_t submission) noexcept {
    if (slots_.empty() || buffer.allocation != slots_.front().buffer.allocation) return;
    slots_[buffer.offset / kMaxParameterBytes].submission = submission;
  }

 private:
  std::vector<Slot> slots_;
};

// Tables of operands that are a buffer for each matrix, one behind the other in a few pieces of memory.
class OperandTables {
 public:
  static constexpr uint64_t kPieceBytes = uint64_t{Dispatch::kMaxEach} * Dispatch::kMaxEachOperands * 8;
  struct Piece {
    Buffer buffer;
    uint64_t submission = 0;  // the last that reads it
  };

  bool has_room(uint64_t bytes) const noexcept { return used_ + bytes <= kPieceBytes; }
  auto& pieces() noexcept { return pieces_; }
  // The piece after the current one, and switching to it, once the device is done with it.
  Piece& next() noexcept { return pieces_[(current_ + 1) % pieces_.size()]; }
  void turn() noexcept {
    current_ = (current_ + 1) % pieces_.size();
    used_ = 0;
  }
  // Gives the memory up. The device must be done with all pieces.
  void release() noexcept { *this = {}; }
  // Memory for a table that the next dispatch reads.
  Buffer take(uint64_t bytes) noexcept;
  // The dispatch is recorded for that submission.
  void recorded(uint64_t submission) noexcept {
    if (!wanted_) return;
    wanted_ = false;
    pieces_[current_].submission = submission;
  }

 private:
  std::array<Piece, 4> pieces_;  // memory is allocated on first use
  size_t current_ = 0;
  uint64_t used_ = kPieceBytes;
  bool wanted_ = false;  // by the next dispatch
};

}  // namespace tuff
