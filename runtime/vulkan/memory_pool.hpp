// Device memory in sub-allocated blocks, each one VkDeviceMemory with one VkBuffer covering it.
//
// Requests up to kSmallLimit are allocated from shared blocks by best fit. The smallest requests have a size class with
// blocks of its own, so that they do not fragment the others' blocks. Larger requests get a block each. A released
// range that the device may still use is kept, with the number of its last submission, until that has finished; in a
// context with one stream, whose order protects it, a block of its own is passed on before. Empty blocks are kept for
// later requests, up to a share of the heap, and freed when the device runs out of memory. The functions lock; none
// waits for the device.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planning/buffer.hpp"
#include "platform/mutex.hpp"
#include "runtime/usage.hpp"
#include "runtime/vulkan/memory_block.hpp"
#include "runtime/vulkan/timelines.hpp"

namespace tuff {

// A request to the pool.
struct MemoryRequest {
  uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::device;
  bool limited = false;     // counts against the caller's limit, as everything but staging does
  bool exportable = false;  // in a block of its own that can be exported as a file descriptor
  bool mapped = false;      // the host accesses it, as it does all readback memory
};

class VulkanAllocation;

class MemoryPool {
 public:
  static constexpr uint64_t kAlignment = 256;
  // Requests up to `most` bytes share blocks of `block` bytes.
  struct SizeClass {
    uint64_t most, block;
  };
  static constexpr SizeClass kSizeClasses[] = {{64ull << 10, 16ull << 20}, {16ull << 20, 64ull << 20}};
  static constexpr uint32_t kOwnBlock = 2;  // the class of larger requests
  static constexpr uint64_t kSmallLimit = kSizeClasses[kOwnBlock - 1].most;

  explicit MemoryPool(std::shared_ptr<Device> device, std::shared_ptr<Usage> usage = std::make_shared<Usage>());
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Throws LIMIT_EXCEEDED beyond the device's or the caller's limit or the heap's budget, and OUT_OF_DEVICE_MEMORY; as
  // a MemoryShortage if freeing something could help. With `before`, the range may be one that the device still uses:
  // *before is then the last use, which every other stream and the host have to wait for.
  MemoryRange allocate(const MemoryRequest& request, Use* before = nullptr);
  MemoryRange allocate(uint64_t bytes, MemoryKind kind) {
    return allocate({.bytes = bytes, .kind = kind, .limited = kind == MemoryKind::device});
  }
  // Adds a block of imported memory and returns its whole range.
  MemoryRange adopt(OwnBlock block);
  // The range becomes free once its uses have finished. Allocates nothing: room was reserved when the range was taken.
  // `counted`: false for the one of the two ranges of take_closer() that does not count as in use.
  void release(const MemoryRange& range, const LastUses& uses, bool counted = true) noexcept;
  // For moving live memory together (compaction.cpp).
  // Whether a range may lie elsewhere: device memory in a block that others share and that nobody outside knows.
  static bool may_move(const MemoryRange& range) noexcept;
  // Sorts memory by the order in which to move it: from blocks of which little is in use, and there from the end.
  void sort_to_move(std::vector<std::shared_ptr<VulkanAllocation>>& memory);
  // Takes a range of the same kind and size where that memory would lie closer to others: in a block of which more is
  // in use but none of `not_in`, or earlier in its own. Empty if there is none. One of the two counts as in use: the
  // other is released as not counted.
  MemoryRange take_closer(const MemoryRange& now, const std::vector<const MemoryBlock*>& not_in);
  // Call it when a stream's work has finished.
  void completed() noexcept;
  Timelines& timelines() const { return *timelines_; }
  // The context's counters. The pool keeps those of memory, under its own mutex.
  Usage& usage() const { return *usage_; }

  void set_limit(uint64_t bytes);  // 0: no limit
  void trim();                     // frees every empty block
  void reset_peak();
  bool device_memory_mapped() const { return device_mapped_; }
  // Whether the host can access device memory for a request of this size.
  bool maps(uint64_t bytes) const;

  struct Counters {
    uint64_t in_use = 0, reserved = 0, peak = 0, free = 0, largest_free = 0;
    uint64_t blocks = 0, live = 0, allocations = 0, hits = 0;
    uint64_t limit = 0, imported = 0;
  };
  Counters counters();
  // The heap of device-local memory.
  HeapBudget heap_budget() const;

 private:
  struct Pending {
    MemoryRange range;
    FinalUses uses;
    bool counted;
  };

  // Memory types in the order in which they are tried; kNoType where there are fewer.
  static constexpr uint32_t kNoType = UINT32_MAX;
  using Types = std::array<uint32_t, 2>;
  // What came of allocating a block of a type.
  struct Attempt {
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    uint32_t heap = 0;
    HeapBudget budget;
    bool beyond_budget = false;  // the driver was not asked
  };

  uint32_t find_type(MemoryKind kind, uint32_t among = ~0u) const;
  uint32_t find_unmapped_type(uint32_t among) const;
  Types types_for(const MemoryRequest& request, const VkMemoryRequirements& requirements) const;
  Attempt attempt(MemoryBlock& block, uint64_t bytes, uint32_t type, const void* next);
  [[noreturn]] void fail_block(const MemoryRequest& request, uint64_t bytes, const Attempt& last);
  uint64_t& reserved_in_heap_of(const MemoryBlock& block) noexcept;
  MemoryBlock* make_block(uint64_t bytes, const MemoryRequest& request, uint32_t size_class);
  MemoryBlock* make_shared_block(uint64_t size, const MemoryRequest& request, uint32_t size_class);
  bool within_limit(const MemoryRequest& request, uint64_t in_use) const noexcept;
  [[noreturn]] void fail_limit(uint64_t bytes) const;
  std::string kept_free() const;
  void make_room();
  void give_outside(MemoryBlock& block) noexcept;
  MemoryRange take(MemoryBlock& block, size_t which, uint64_t size);
  MemoryRange take_best_fit(uint64_t size, const MemoryRequest& request, uint32_t size_class);
  MemoryRange take_pending(uint64_t size, const MemoryRequest& request, Use& before) noexcept;
  void give_back(const MemoryRange& range, bool counted) noexcept;
  void reclaim() noexcept;
  void trim_to(uint64_t keep_bytes) noexcept;
  void show_usage() noexcept;

  std::shared_ptr<Device> device_;
  std::shared_ptr<Usage> usage_;
  std::unique_ptr<Timelines> timelines_ = std::make_unique<Timelines>();
  Mutex mutex_{LockRank::memory_pool};
  std::vector<OwnBlock> blocks_;
  std::vector<Pending> pending_;  // has room for every range that is in use
  size_t ranges_ = 0;             // in use or pending
  uint32_t types_[2];
  bool device_mapped_ = false;
  bool pending_outside_ = false;  // shared memory is waiting for the device
  uint64_t limit_ = 0, next_id_ = 1;
  uint64_t in_use_ = 0, reserved_ = 0, peak_ = 0, imported_ = 0;
  std::array<uint64_t, VK_MAX_MEMORY_HEAPS> heap_reserved_{};  // the share of each heap in reserved_
  uint64_t live_ = 0, allocations_ = 0, hits_ = 0;
};

// Buffer::allocation on Vulkan.
class VulkanAllocation final : public Allocation {
 public:
  // Allocates the range in the constructor, so that an object to release it always exists.
  VulkanAllocation(std::shared_ptr<MemoryPool> pool, const MemoryRequest& request)
      : pool_(std::move(pool)), range_(pool_->allocate(request, &filled)) {
    if (filled.submission != 0) uses = LastUses(filled);
  }
  VulkanAllocation(std::shared_ptr<MemoryPool> pool, uint64_t bytes, MemoryKind kind)
      : pool_(std::move(pool)), range_(pool_->allocate(bytes, kind)) {}
  VulkanAllocation(std::shared_ptr<MemoryPool> pool, OwnBlock block)
      : pool_(std::move(pool)), range_(pool_->adopt(std::move(block))) {}
  // Without memory yet, for take_closer(): the other's counts for both.
  explicit VulkanAllocation(std::shared_ptr<MemoryPool> pool) : pool_(std::move(pool)), counted_(false) {}
  ~VulkanAllocation() override {
    if (range_.block != nullptr) pool_->release(range_, uses, counted_);
  }

  std::byte* host() const noexcept override {
    return range_.block->host == nullptr ? nullptr : range_.block->host + range_.offset;
  }
  const MemoryRange& range() const noexcept { return range_; }

  // Takes memory that is closer to others than `other`'s is. False if there is none. See MemoryPool::take_closer().
  bool take_closer(const VulkanAllocation& other, const std::vector<const MemoryBlock*>& not_in) {
    range_ = pool_->take_closer(other.range_, not_in);
    return range_.block != nullptr;
  }
  // Gives `other` its memory for that which it has taken by take_closer(). Under the context's lock, while nothing else
  // refers to the memory of either.
  void move_to_memory_of(VulkanAllocation& other) noexcept { std::swap(range_, other.range_); }

  // Under the context's lock, or once nothing else refers to the allocation.
  LastUses uses;
  // When finished, what the host put into the memory (zeros or an upload) is there, and the last work of the block's
  // previous owner (allocate's `before`) is done.
  Use filled;

 private:
  std::shared_ptr<MemoryPool> pool_;
  MemoryRange range_;
  const bool counted_ = true;  // in bytes_in_use
};

// A position in a buffer, as its place in device memory.
struct DeviceLocation {
  MemoryBlock* block;
  uint64_t offset;
};
inline DeviceLocation locate(const Buffer& buffer, uint64_t offset) {
  const MemoryRange& range = static_cast<const VulkanAllocation&>(*buffer.allocation).range();
  return {range.block, range.offset + buffer.offset + offset};
}

}  // namespace tuff
