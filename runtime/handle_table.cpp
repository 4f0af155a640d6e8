#include "runtime/handle_table.hpp"

#include "planning/status.hpp"
#include "platform/never_destroyed.hpp"

namespace tuff {

const char* handle_kind_name(HandleKind kind) {
  switch (kind) {
    case HandleKind::context: return "context";
    case HandleKind::buffer: return "buffer";
    case HandleKind::stream: return "stream";
    case HandleKind::event: return "event";
    case HandleKind::graph: return "graph";
    case HandleKind::kernel: return "kernel";
    case HandleKind::expr: return "expr";
    case HandleKind::op: return "op";
    case HandleKind::none: break;
  }
  return "unknown";
}

HandleTable& handle_table() {
  static NeverDestroyed<HandleTable> table;
  return *table;
}

HandleTable::~HandleTable() {
  for (uint32_t chunk = 0; chunk < kChunks; ++chunk) {
    detail::HandleSlot* slots = chunks_[chunk].load(std::memory_order_relaxed);
    if (slots == nullptr) continue;
    for (uint32_t i = 0; i < kFirstChunk << chunk; ++i) delete slots[i].object;
    delete[] slots;
  }
}

detail::HandleSlot& HandleTable::take_slot() {
  const std::lock_guard lock(mutex_);
  if (first_free_ != kNoSlot) {
    detail::HandleSlot& slot = *slot_at(first_free_);
    first_free_ = slot.next_free;
    ++slot.generation;
    return slot;
  }
  const uint32_t index = slot_count_;
  const auto chunk = static_cast<uint32_t>(std::bit_width(index + kFirstChunk)) - 1 - kFirstChunkBits;
  if (chunk >= kChunks) fail(TUFF_ERROR_LIMIT_EXCEEDED, "all {} handles are in use", slot_count_);
  if (chunks_[chunk].load(std::memory_order_relaxed) == nullptr) {
    chunks_[chunk].store(new detail::HandleSlot[kFirstChunk << chunk], std::memory_order_release);
  }
  detail::HandleSlot& slot = *slot_at(index);
  slot.table = this;
  slot.index = index;
  slot.generation = 1;
  ++slot_count_;
  return slot;
}

uint64_t HandleTable::insert(HandleKind kind, std::unique_ptr<HandleObject> object) {
  const uint64_t handle = reserve(kind);
  fill(handle, kind, std::move(object));
  return handle;
}

uint64_t HandleTable::reserve(HandleKind kind) {
  const detail::HandleSlot& slot = take_slot();
  const uint64_t tag = static_cast<uint64_t>(kind) << kGenerationBits | slot.generation;
  return tag << kSlotBits | slot.index;
}

void HandleTable::fill(uint64_t handle, HandleKind kind, std::unique_ptr<HandleObject> object) noexcept {
  detail::HandleSlot& slot = *find(handle, kind);
  slot.object = object.release();
  // The table's own reference; release publishes the object.
  slot.word.store(tag_of(handle) << detail::HandleSlot::kReferenceBits | 1, std::memory_order_release);
}

void HandleTable::give_up(uint64_t handle) noexcept { recycle(*slot_at(handle & ((uint64_t{1} << kSlotBits) - 1))); }

void HandleTable::recycle(detail::HandleSlot& slot) noexcept {
  delete std::exchange(slot.object, nullptr);
  if (slot.generation >= last_generation_) return;  // retired
  const std::lock_guard lock(mutex_);
  slot.next_free = first_free_;
  first_free_ = slot.index;
}

std::string HandleTable::describe(uint64_t handle) {
  if (handle == 0) return "TUFF_NULL_HANDLE";
  const uint64_t kind = handle >> (kSlotBits + kGenerationBits);
  const auto generation = static_cast<uint32_t>(handle >> kSlotBits) & kLastGeneration;
  const auto index = static_cast<uint32_t>(handle & ((uint64_t{1} << kSlotBits) - 1));
  const bool known_kind = kind > 0 && kind <= static_cast<uint64_t>(HandleKind::op);

  const std::lock_guard lock(mutex_);
  if (!known_kind || index >= slot_count_) return fmt::format("{:#x}, which is not a handle", handle);
  const detail::HandleSlot& slot = *slot_at(index);
  const char* name = handle_kind_name(static_cast<HandleKind>(kind));
  const uint64_t word = slot.word.load(std::memory_order_relaxed);
  if (word >> detail::HandleSlot::kReferenceBits == tag_of(handle)) return fmt::format("a {} handle", name);
  if (generation == 0 || generation > slot.generation) return fmt::format("{:#x}, which is not a handle", handle);
  return fmt::format("a stale {} handle ({:#x})", name, handle);
}

}  // namespace tuff
