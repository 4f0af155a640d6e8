// Handles: 64-bit numbers that name objects and are checked on every use.
//
//   bit 63    zero
//   58..62    kind
//   28..57    generation of the slot: how many objects have used it
//   0..27     slot
//
// A look-up takes no lock: a slot's word holds the kind and generation (its tag) next to a reference count, so that one
// compare-and-swap both checks a handle and pins its object. Removing a handle clears the tag, which makes it stale at
// once; the object lives until its last reference is released. Only then is the slot reused, with the next generation.
// A slot that has used up its generations is retired.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "platform/mutex.hpp"

namespace tuff {

enum class HandleKind : uint32_t {
  none = 0,
  context = 1,
  buffer = 2,
  stream = 3,
  event = 4,
  graph = 5,
  kernel = 6,
  expr = 7,
  op = 8
};

const char* handle_kind_name(HandleKind kind);  // "context"

// Base class of objects that a handle can name.
class HandleObject {
 public:
  HandleObject() = default;
  HandleObject(const HandleObject&) = delete;
  HandleObject& operator=(const HandleObject&) = delete;
  virtual ~HandleObject() = default;
};

class HandleTable;

namespace detail {

// Each slot has its own cache line, so that threads using different objects do not share one.
struct alignas(64) HandleSlot {
  static constexpr uint32_t kReferenceBits = 29;
  static constexpr uint64_t kReferenceMask = (uint64_t{1} << kReferenceBits) - 1;

  std::atomic<uint64_t> word{0};  // tag << kReferenceBits | references; tag 0: stale or unused
  HandleObject* object = nullptr;
  HandleTable* table = nullptr;
  uint32_t index = 0;
  uint32_t generation = 0;  // of the current or last object
  uint32_t next_free = 0;
};

}  // namespace detail

// A counted reference to an object of the table.
template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(detail::HandleSlot* slot) : slot_(slot) {}
  Ref(Ref&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  Ref(const Ref& other) noexcept : slot_(other.slot_) {
    if (slot_ != nullptr) slot_->word.fetch_add(1, std::memory_order_relaxed);
  }
  Ref& operator=(const Ref&) = delete;
  inline ~Ref();

  explicit operator bool() const { return slot_ != nullptr; }
  T* get() const { return static_cast<T*>(slot_->object); }
  T* operator->() const { return get(); }
  T& operator*() const { return *get(); }

 private:
  detail::HandleSlot* slot_ = nullptr;
};

class HandleTable {
 public:
  static constexpr uint32_t kSlotBits = 28, kGenerationBits = 30;
  static constexpr uint32_t kLastGeneration = (1u << kGenerationBits) - 1;

  // A slot is retired after `last_generation` objects.
  explicit HandleTable(uint32_t last_generation = kLastGeneration) : last_generation_(last_generation) {}
  ~HandleTable();
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  // Throws std::bad_alloc, or Error (LIMIT_EXCEEDED) once every slot is taken.
  uint64_t insert(HandleKind kind, std::unique_ptr<HandleObject> object);

  // insert() in two steps, of which only the first may fail. reserve() returns a handle that names nothing yet; fill()
  // gives it its object. After give_up() it never names one.
  uint64_t reserve(HandleKind kind);
  void fill(uint64_t handle, HandleKind kind, std::unique_ptr<HandleObject> object) noexcept;
  void give_up(uint64_t handle) noexcept;

  // Returns an empty Ref unless the handle is live and of this kind. Does not allocate or lock.
  template <typename T>
  Ref<T> acquire(uint64_t handle, HandleKind kind) noexcept {
    detail::HandleSlot* slot = find(handle, kind);
    if (slot == nullptr) return {};
    uint64_t word = slot->word.load(std::memory_order_relaxed);
    do {
      if (word >> detail::HandleSlot::kReferenceBits != tag_of(handle)) return {};
    } while (!slot->word.compare_exchange_weak(word, word + 1, std::memory_order_acquire, std::memory_order_relaxed));
    return Ref<T>(slot);
  }

  // Makes the handle stale and passes the table's reference to the caller; empty if the handle was not live.
  template <typename T>
  Ref<T> remove(uint64_t handle, HandleKind kind) noexcept {
    detail::HandleSlot* slot = find(handle, kind);
    if (slot == nullptr) return {};
    uint64_t word = slot->word.load(std::memory_order_relaxed);
    do {
      if (word >> detail::HandleSlot::kReferenceBits != tag_of(handle)) return {};
    } while (!slot->word.compare_exchange_weak(word, word & detail::HandleSlot::kReferenceMask,
                                               std::memory_order_acquire, std::memory_order_relaxed));
    return Ref<T>(slot);
  }

  // For messages: "a stale buffer handle (0x…)".
  std::string describe(uint64_t handle);

  // Internal: the slot's last reference has been released.
  void recycle(detail::HandleSlot& slot) noexcept;

 private:
  // Chunk i holds kFirstChunk << i slots, so that slots never move.
  static constexpr uint32_t kFirstChunkBits = 10, kFirstChunk = 1u << kFirstChunkBits;
  static constexpr uint32_t kChunks = kSlotBits - kFirstChunkBits;
  static constexpr uint32_t kNoSlot = ~0u;

  static uint64_t tag_of(uint64_t handle) { return handle >> kSlotBits; }

  detail::HandleSlot* slot_at(uint64_t index) const noexcept {
    const auto shifted = static_cast<uint32_t>(index) + kFirstChunk;
    const auto chunk = static_cast<uint32_t>(std::bit_width(shifted)) - 1 - kFirstChunkBits;
    if (chunk >= kChunks) return nullptr;
    detail::HandleSlot* slots = chunks_[chunk].load(std::memory_order_acquire);
    return slots == nullptr ? nullptr : slots + (shifted - (kFirstChunk << chunk));
  }

  detail::HandleSlot* find(uint64_t handle, HandleKind kind) const noexcept {
    if (handle >> (kSlotBits + kGenerationBits) != static_cast<uint64_t>(kind)) return nullptr;
    return slot_at(handle & ((uint64_t{1} << kSlotBits) - 1));
  }

  detail::HandleSlot& take_slot();

  const uint32_t last_generation_;
  std::array<std::atomic<detail::HandleSlot*>, kChunks> chunks_{};
  Mutex mutex_{LockRank::handle_table};  // guards what follows, and generation and next_free of every slot
  uint32_t first_free_ = kNoSlot;
  uint32_t slot_count_ = 0;
};

// The process's table. Never destroyed: handles may be used while the process exits.
HandleTable& handle_table();

template <typename T>
Ref<T>::~Ref() {
  if (slot_ == nullptr) return;
  // Tag and count are both zero only after removal, when no other thread can find the slot any more.
  if (slot_->word.fetch_sub(1, std::memory_order_acq_rel) == 1) slot_->table->recycle(*slot_);
}

}  // namespace tuff
