#include "runtime/vulkan/transient_memory.hpp"

#include <cstring>

#include "planning/arithmetic.hpp"

namespace tuff {

void ParameterSlots::use_memory(const Buffer& memory) {
  slots_.resize(kSlots);
  for (uint32_t i = 0; i < kSlots; ++i) {
    Buffer& buffer = slots_[i].buffer;
    buffer = memory;
    buffer.offset = uint64_t{i} * kMaxParameterBytes;
    buffer.bytes = kMaxParameterBytes;
  }
}

ParameterSlots::Slot* ParameterSlots::find(const void* data, uint32_t bytes) noexcept {
  for (Slot& slot : slots_) {
    if (slot.count == bytes && std::memcmp(slot.bytes.data(), data, bytes) == 0) return &slot;
  }
  return nullptr;
}

ParameterSlots::Slot& ParameterSlots::oldest() noexcept {
  Slot* oldest = &slots_.front();
  for (Slot& slot : slots_) {
    if (slot.submission < oldest->submission) oldest = &slot;
  }
  return *oldest;
}

void ParameterSlots::write(Slot& slot, const void* data, uint32_t bytes) noexcept {
  // Written before the submission that reads it, which is all that coherent memory asks for.
  std::memcpy(slot.bytes.data(), data, bytes);
  std::memcpy(slot.buffer.host<std::byte>(), data, bytes);
  slot.count = bytes;
}

Buffer OperandTables::take(uint64_t bytes) noexcept {
  wanted_ = true;
  Buffer table = pieces_[current_].buffer;
  table.offset += used_;
  table.bytes = bytes;
  used_ += round_up(bytes, MemoryPool::kAlignment);
  return table;
}

}  // namespace tuff
