// Device memory in blocks, each one VkDeviceMemory with one VkBuffer over all of it, sub-allocated.
//
// Requests up to kSmallLimit come out of shared blocks by best fit, the smallest ones out of blocks of their own size
// class, so that they do not cut up the others'; larger requests get a block each. A range that is released while the
// device may still use it waits, with the number of the submission that used it last, until that has finished. Empty
// blocks are kept for the next request, up to a share of the heap, and given back when the device runs out. Calls
// lock; none waits for the device.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "planning/buffer.hpp"
#include "runtime/vulkan/memory_block.hpp"
#include "runtime/vulkan/timelines.hpp"

namespace tuff {

// What is asked of the pool.
struct MemoryRequest {
  uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::device;
  bool limited = false;     // the caller's limit counts for it, as for all but what is staged
  bool exportable = false;  // in a block of its own that a file descriptor can be had of
};

class MemoryPool {
 public:
  static constexpr uint64_t kAlignment = 256;
  // Requests up to `most` share blocks of `block` bytes.
  struct SizeClass {
    uint64_t most, block;
  };
  static constexpr SizeClass kSizeClasses[] = {{64ull << 10, 16ull << 20}, {16ull << 20, 64ull << 20}};
  static constexpr uint32_t kOwnBlock = 2;  // the class of what is larger
  static constexpr uint64_t kSmallLimit = kSizeClasses[kOwnBlock - 1].most;

  explicit MemoryPool(std::shared_ptr<Device> device);
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Errors: LIMIT_EXCEEDED beyond the device's or the caller's limit or the heap's budget, OUT_OF_DEVICE_MEMORY; as a
  // MemoryShortage where freeing something could help.
  MemoryRange allocate(const MemoryRequest& request);
  MemoryRange allocate(uint64_t bytes, MemoryKind kind) {
    return allocate({.bytes = bytes, .kind = kind, .limited = kind == MemoryKind::device});
  }
  // The whole of a block of imported memory.
  MemoryRange adopt(OwnBlock block);
  // The range is free once its uses have finished. Allocates nothing: there has been room since the range was taken.
  void release(const MemoryRange& range, const LastUses& uses) noexcept;
  // Some stream's work has finished.
  void completed() noexcept;
  Timelines& timelines() const { return *timelines_; }

  void set_limit(uint64_t bytes);  // 0: none
  void trim();                     // gives every empty block back
  void reset_peak();
  bool device_memory_mapped() const { return device_mapped_; }

  struct Counters {
    uint64_t in_use = 0, reserved = 0, peak = 0, free = 0, largest_free = 0;
    uint64_t blocks = 0, live = 0, allocations = 0, hits = 0;
    uint64_t limit = 0, imported = 0;
  };
  Counters counters();
  // The heap that device memory comes from.
  HeapBudget heap_budget() const;

 private:
  struct Pending {
    MemoryRange range;
    FinalUses uses;
  };

  uint32_t find_type(MemoryKind kind, uint32_t among = ~0u) const;
  MemoryBlock* make_block(uint64_t bytes, const MemoryRequest& request, uint32_t size_class);
  MemoryBlock* make_shared_block(uint64_t size, const MemoryRequest& request, uint32_t size_class);
  void check_limit(uint64_t bytes);
  std::string kept_free() const;
  void make_room();
  void give_outside(MemoryBlock& block) noexcept;
  MemoryRange take(MemoryBlock& block, size_t which, uint64_t size);
  MemoryRange take_best_fit(uint64_t size, MemoryKind kind, uint32_t size_class);
  void give_back(const MemoryRange& range) noexcept;
  void reclaim() noexcept;
  void trim_to(uint64_t keep_bytes) noexcept;

  std::shared_ptr<Device> device_;
  std::unique_ptr<Timelines> timelines_ = std::make_unique<Timelines>();
  std::mutex mutex_;
  std::vector<OwnBlock> blocks_;
  std::vector<Pending> pending_;  // with room for every range that is in use
  size_t ranges_ = 0;             // in use or pending
  uint32_t types_[2];
  bool device_mapped_ = false;
  bool pending_outside_ = false;  // memory that others hold is waiting for the device
  uint64_t limit_ = 0, next_id_ = 1;
  uint64_t in_use_ = 0, reserved_ = 0, peak_ = 0, imported_ = 0;
  uint64_t live_ = 0, allocations_ = 0, hits_ = 0;
};

// What Buffer::allocation is on Vulkan.
class VulkanAllocation final : public Allocation {
 public:
  // Takes the range itself, once there is an object to give it back.
  VulkanAllocation(std::shared_ptr<MemoryPool> pool, const MemoryRequest& request)
      : pool_(std::move(pool)), range_(pool_->allocate(request)) {}
  VulkanAllocation(std::shared_ptr<MemoryPool> pool, uint64_t bytes, MemoryKind kind)
      : pool_(std::move(pool)), range_(pool_->allocate(bytes, kind)) {}
  VulkanAllocation(std::shared_ptr<MemoryPool> pool, OwnBlock block)
      : pool_(std::move(pool)), range_(pool_->adopt(std::move(block))) {}
  ~VulkanAllocation() override { pool_->release(range_, uses); }

  std::byte* host() const noexcept override {
    return range_.block->host == nullptr ? nullptr : range_.block->host + range_.offset;
  }
  const MemoryRange& range() const noexcept { return range_; }

  // Under the context's lock, or where nobody has the allocation any more.
  LastUses uses;
  Use filled;  // what the host put into it, zeros or an upload, is there once that has happened

 private:
  std::shared_ptr<MemoryPool> pool_;
  MemoryRange range_;
};

// Where a byte of a buffer lies on the device.
struct DeviceLocation {
  MemoryBlock* block;
  uint64_t offset;
};
inline DeviceLocation locate(const Buffer& buffer, uint64_t offset) {
  const MemoryRange& range = static_cast<const VulkanAllocation&>(*buffer.allocation).range();
  return {range.block, range.offset + buffer.offset + offset};
}

}  // namespace tuff
