// Moves live buffers together, so that free memory is in few large ranges.
//
// Calls find a buffer's memory when they are recorded, under the context's lock. So a buffer that nothing but handles
// refers to can be moved in between: its bytes are copied on the default stream, and its allocation exchanges memory
// with one that is then released. What is recorded later, on any stream, waits for the copy as it does for an upload.
// If recording a copy fails, that buffer keeps its memory, and those before it have theirs by copies that were
// recorded.
#include <algorithm>
#include <unordered_map>

#include "runtime/vulkan/vulkan_backend.hpp"

namespace tuff {
namespace {

// The lock is held while a step is recorded.
constexpr uint64_t kMaxInAStep = 256;

// Whether only handles refer to it: a graph that has captured it, a transfer that has its address, or a view that is
// being made holds it too. The span that is passed to compact() counts as one.
bool only_handles(const OwnedMemory& owned) { return owned.allocation.use_count() == owned.handles + 1; }

}  // namespace

void VulkanBackend::compact(std::span<const OwnedMemory> memory, CompactionStep& step) {
  const std::lock_guard lock(mutex_);
  device_->require_alive();
  streams_->poll_all();
  StreamRecorder& main = streams_->main();
  std::vector<std::shared_ptr<VulkanAllocation>> movable;
  for (const OwnedMemory& owned : memory) {
    const auto& allocation = static_cast<const VulkanAllocation&>(*owned.allocation);
    if (!MemoryPool::may_move(allocation.range()) || owned.allocation->mapped.load() || !only_handles(owned)) {
      ++step.fixed;
    } else if (!allocation.uses.done(streams_->timelines())) {
      ++step.waiting;
    } else {
      movable.push_back(std::static_pointer_cast<VulkanAllocation>(owned.allocation));
    }
  }
  pool_->sort_to_move(movable);
  std::vector<const MemoryBlock*> sources;
  // The smallest size of each block for which there was no place. What comes later in the block lies closer to its
  // beginning, and the places have become fewer: there is none for as much or more.
  std::unordered_map<const MemoryBlock*, uint64_t> no_place;
  for (const std::shared_ptr<VulkanAllocation>& allocation : movable) {
    const MemoryRange range = allocation->range();
    uint64_t& too_large = no_place.try_emplace(range.block, UINT64_MAX).first->second;
    if (range.size >= too_large) continue;
    const auto other = std::make_shared<VulkanAllocation>(pool_);
    if (!other->take_closer(*allocation, sources)) {
      too_large = range.size;
      continue;
    }
    if (range.size > step.max_bytes - step.bytes || step.buffers == kMaxInAStep) {
      ++step.waiting;
      if (step.buffers != 0) break;  // the next step goes on
      continue;                      // another may be small enough
    }
    if (std::find(sources.begin(), sources.end(), range.block) == sources.end()) sources.push_back(range.block);
    const Buffer from{allocation, 0, range.size, false, false}, to{other, 0, range.size, false, false};
    main.catch_up_with(from);
    main.copy("compact", to, 0, from, 0, range.size);
    allocation->move_to_memory_of(*other);
    main.filled(from);
    step.bytes += range.size;
    ++step.buffers;
  }
  main.submit(false);
}

}  // namespace tuff
