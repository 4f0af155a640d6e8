#include "runtime/vulkan/memory_pool.hpp"

#include <algorithm>
#include <utility>

#include "planning/log.hpp"
#include "runtime/memory_pressure.hpp"
#include "runtime/vulkan/external_memory.hpp"

namespace tuff {
namespace {

uint32_t class_of(uint64_t bytes) {
  uint32_t size_class = 0;
  while (size_class < MemoryPool::kOwnBlock && bytes > MemoryPool::kSizeClasses[size_class].most) ++size_class;
  return size_class;
}

// Moving leads from blocks of lower rank to those of higher: by the bytes in use, and by age where these are equal.
std::pair<uint64_t, uint64_t> rank_of(const MemoryBlock& block) { return {block.size - block.free_bytes, ~block.id}; }

}  // namespace

MemoryPool::MemoryPool(std::shared_ptr<Device> device, std::shared_ptr<Usage> usage)
    : device_(std::move(device)), usage_(std::move(usage)) {
  types_[0] = find_type(MemoryKind::device);
  types_[1] = find_type(MemoryKind::readback);
  const VkMemoryPropertyFlags flags = device_->physical.memory.memoryTypes[types_[0]].propertyFlags;
  device_mapped_ = (flags & kCoherentMemory) == kCoherentMemory;
  pending_.reserve(1024);
}

// Returns the type with the highest score among those with the required properties.
uint32_t MemoryPool::find_type(MemoryKind kind, uint32_t among) const {
  const VkPhysicalDeviceMemoryProperties& memory = device_->physical.memory;
  const VkMemoryPropertyFlags host = kCoherentMemory;
  const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  const VkMemoryPropertyFlags required = kind == MemoryKind::device ? local : host;
  uint32_t best = UINT32_MAX;
  double best_score = -1;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    if (!(among >> i & 1) || (flags & required) != required) continue;
    if (flags & (VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT)) continue;
    const uint64_t heap = memory.memoryHeaps[memory.memoryTypes[i].heapIndex].size;
    double score = 0;
    if (kind == MemoryKind::device) {
      // A small mapped window (256 MiB BAR) scores less than the whole memory.
      score = 4.0 * static_cast<double>(heap) / static_cast<double>(std::max<uint64_t>(1, device_->memory_bytes()));
      if ((flags & host) == host) score += 1;
      if (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) score += 0.5;
    } else {
      if (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) score += 2;
      if (!(flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT)) score += 1;
    }
    if (score > best_score) {
      best_score = score;
      best = i;
    }
  }
  if (best == UINT32_MAX) fail(TUFF_ERROR_UNSUPPORTED, "the device has no memory that Tuff can use");
  return best;
}

// A device-local type that the host cannot access. Where the host can access device memory, it is through a window (a
// GPU's BAR), and drivers may refuse blocks of that type long before the memory is full: NVIDIA's (580) refuses 100 GiB
// of an H200's 140, which this type provides.
uint32_t MemoryPool::find_unmapped_type(uint32_t among) const {
  const VkPhysicalDeviceMemoryProperties& memory = device_->physical.memory;
  uint32_t best = kNoType;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const auto heap_of = [&](uint32_t type) { return memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size; };
    constexpr VkMemoryPropertyFlags kOthers = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |
                                              VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT;
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    if (!(among >> i & 1) || !(flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) || (flags & kOthers)) continue;
    if (best == kNoType || heap_of(i) > heap_of(best)) best = i;
  }
  return best;
}

bool MemoryPool::maps(uint64_t bytes) const {
  if (!device_mapped_) return false;
  return bytes <= device_->physical.maintenance3.maxMemoryAllocationSize || find_unmapped_type(~0u) == kNoType;
}

MemoryPool::Types MemoryPool::types_for(const MemoryRequest& request, const VkMemoryRequirements& requirements) const {
  uint32_t type = types_[request.kind == MemoryKind::device ? 0 : 1];
  if (!(requirements.memoryTypeBits >> type & 1)) type = find_type(request.kind, requirements.memoryTypeBits);
  if (request.kind != MemoryKind::device || request.mapped || !device_mapped_) return {type, kNoType};
  const uint32_t unmapped = find_unmapped_type(requirements.memoryTypeBits);
  // Drivers guarantee blocks up to this size of every type. Larger ones do not take up the window.
  const bool guaranteed = requirements.size <= device_->physical.maintenance3.maxMemoryAllocationSize;
  if (guaranteed || unmapped == kNoType) return {type, unmapped};
  return {unmapped, type};
}

uint64_t& MemoryPool::reserved_in_heap_of(const MemoryBlock& block) noexcept {
  return heap_reserved_[device_->physical.memory.memoryTypes[block.type].heapIndex];
}

// "1024 are free, the largest range is 512"
std::string MemoryPool::kept_free() const {
  uint64_t free = 0, largest = 0;
  for (const auto& block : blocks_) {
    free += block->free_bytes;
    for (const FreeRange& range : block->free_ranges) largest = std::max(largest, range.size);
  }
  return fmt::format("{} are free, the largest range is {}", free, largest);
}

// Whether a request keeps to the caller's limit where this much else is in use.
bool MemoryPool::within_limit(const MemoryRequest& request, uint64_t in_use) const noexcept {
  if (!request.limited || limit_ == 0) return true;
  return request.bytes <= limit_ && in_use <= limit_ - request.bytes;
}

void MemoryPool::fail_limit(uint64_t bytes) const {
  if (bytes > limit_) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "{} bytes were requested, the context's limit is {}", bytes, limit_);
  }
  throw MemoryShortage(TUFF_ERROR_LIMIT_EXCEEDED,
                       fmt::format("{} bytes were requested, {} of the context's limit of {} are in use; {}", bytes,
                                   in_use_, limit_, kept_free()),
                       bytes, in_use_ - (limit_ - bytes));
}

MemoryRange MemoryPool::allocate(const MemoryRequest& request, Use* before) {
  const std::lock_guard lock(mutex_);
  const uint64_t bytes = request.bytes;
  const uint64_t most = max_block_bytes(device_->physical);
  if (bytes > most) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "{} bytes were requested, the device allocates at most {} at once", bytes, most);
  }
  const uint32_t size_class = request.exportable ? kOwnBlock : class_of(bytes);
  const bool own = size_class == kOwnBlock;
  const uint64_t size = round_up(std::max<uint64_t>(bytes, 1), own ? kBlockGranule : kAlignment);
  make_room();
  MemoryRange range;
  const auto within = [&] { return within_limit(request, in_use_); };
  const auto take_free = [&] {
    if (!request.exportable && within()) range = take_best_fit(size, request, size_class);
    return range.block != nullptr;
  };
  if (!take_free()) {
    reclaim();
    const bool shares = before != nullptr && own && !request.exportable && !request.mapped && timelines_->single();
    if (!take_free() && shares) {
      range = take_pending(size, request, *before);
      if (range.block != nullptr) {
        ++hits_;
        ++allocations_;
        return range;
      }
    }
    if (range.block == nullptr && !within()) fail_limit(bytes);
  }
  if (range.block != nullptr) {
    ++hits_;
  } else {
    MemoryBlock* block = own ? make_block(size, request, size_class) : make_shared_block(size, request, size_class);
    range = take(*block, 0, size);
  }
  ++ranges_;
  ++allocations_;
  ++live_;
  in_use_ += range.size;
  peak_ = std::max(peak_, in_use_);
  show_usage();
  return range;
}

void MemoryPool::show_usage() noexcept {
  UsageCounters& counters = usage_->counters();
  counters.bytes_in_use.store(in_use_, std::memory_order_relaxed);
  counters.bytes_reserved.store(reserved_, std::memory_order_relaxed);
  counters.bytes_peak.store(peak_, std::memory_order_relaxed);
  counters.bytes_limit.store(limit_, std::memory_order_relaxed);
}

// Allocates a smaller block, just large enough for the request, if there is no memory for a whole one.
MemoryBlock* MemoryPool::make_shared_block(uint64_t size, const MemoryRequest& request, uint32_t size_class) {
  const uint64_t least = round_up(size, kBlockGranule);
  const uint64_t whole = kSizeClasses[size_class].block;
  try {
    return make_block(whole, request, size_class);
  } catch (const MemoryShortage&) {
    if (least >= whole) throw;
  }
  return make_block(least, request, size_class);
}

MemoryRange MemoryPool::take_best_fit(uint64_t size, const MemoryRequest& request, uint32_t size_class) {
  MemoryBlock* best = nullptr;
  size_t best_range = 0;
  uint64_t best_size = UINT64_MAX;
  for (const auto& block : blocks_) {
    if (block->kind != request.kind || block->size_class != size_class || block->free_bytes < size) continue;
    if (request.mapped && block->host == nullptr) continue;
    for (size_t i = 0; i < block->free_ranges.size(); ++i) {
      const uint64_t bytes = block->free_ranges[i].size;
      if (bytes >= size && bytes < best_size) {
        best = block.get();
        best_range = i;
        best_size = bytes;
      }
    }
  }
  const bool own = size_class == kOwnBlock;
  // A block of the class kOwnBlock may be reused for a slightly smaller request, but not for a much smaller one.
  if (best == nullptr || (own && best->size > size + size / 4)) return {};
  return take(*best, best_range, own ? best->size : size);
}

// A released block that the device still uses. It stays in use: what it counts for does not change.
MemoryRange MemoryPool::take_pending(uint64_t size, const MemoryRequest& request, Use& before) noexcept {
  for (auto i = pending_.begin(); i != pending_.end(); ++i) {
    const MemoryRange range = i->range;
    const MemoryBlock& block = *range.block;
    if (block.kind != request.kind || block.size_class != kOwnBlock || block.outside()) continue;
    if (range.size < size || range.size > size + size / 4) continue;
    if (!within_limit(request, in_use_ - range.size)) continue;
    const Use use = i->uses.only();
    if (use.submission == 0) continue;
    before = use;
    pending_.erase(i);
    return range;
  }
  return {};
}

// With n ranges in use there can be at most n + 1 free ranges: releasing must find room for all of them.
MemoryRange MemoryPool::take(MemoryBlock& block, size_t which, uint64_t size) {
  std::vector<FreeRange>& free = block.free_ranges;
  if (free.capacity() < block.taken + 2) free.reserve(2 * (block.taken + 2));
  const uint64_t offset = free[which].offset;
  if (free[which].size == size) {
    free.erase(free.begin() + static_cast<ptrdiff_t>(which));
  } else {
    free[which] = {offset + size, free[which].size - size};
  }
  ++block.taken;
  block.free_bytes -= size;
  return {&block, offset, size};
}

bool MemoryPool::may_move(const MemoryRange& range) noexcept {
  const MemoryBlock& block = *range.block;
  return block.kind == MemoryKind::device && block.size_class != kOwnBlock && !block.outside();
}

void MemoryPool::sort_to_move(std::vector<std::shared_ptr<VulkanAllocation>>& memory) {
  const std::lock_guard lock(mutex_);
  reclaim();
  const auto key = [](const VulkanAllocation& allocation) {
    return std::pair(rank_of(*allocation.range().block), ~allocation.range().offset);
  };
  std::sort(memory.begin(), memory.end(), [&](const auto& a, const auto& b) { return key(*a) < key(*b); });
}

// A move goes to a block further up, which makes the two more unequal, or down within its block: so moving comes to an
// end.
MemoryRange MemoryPool::take_closer(const MemoryRange& now, const std::vector<const MemoryBlock*>& not_in) {
  const std::lock_guard lock(mutex_);
  make_room();
  const MemoryBlock& own = *now.block;
  MemoryBlock* best = nullptr;
  size_t best_range = 0;
  for (const auto& block : blocks_) {
    const bool same = block.get() == &own;
    if (block->kind != own.kind || block->size_class != own.size_class || block->type != own.type) continue;
    if (block->outside() || block->free_bytes < now.size) continue;
    if (!same &&
        (rank_of(*block) <= rank_of(own) || std::find(not_in.begin(), not_in.end(), block.get()) != not_in.end())) {
      continue;
    }
    if (best != nullptr && rank_of(*block) <= rank_of(*best)) continue;
    // The smallest that it fits into; of its own block's the first.
    size_t found = block->free_ranges.size();
    for (size_t i = 0; i < block->free_ranges.size(); ++i) {
      const FreeRange& free = block->free_ranges[i];
      if (free.size < now.size || (same && free.offset > now.offset)) continue;
      if (found == block->free_ranges.size() || (!same && free.size < block->free_ranges[found].size)) found = i;
    }
    if (found == block->free_ranges.size()) continue;
    best = block.get();
    best_range = found;
  }
  if (best == nullptr) return {};
  const MemoryRange range = take(*best, best_range, now.size);
  ++ranges_;
  return range;
}

// Reserves everything that releasing a range needs, before the range is taken, so that releasing cannot fail.
void MemoryPool::make_room() {
  if (pending_.capacity() <= ranges_) pending_.reserve(2 * ranges_ + 1);
  if (blocks_.capacity() == blocks_.size()) blocks_.reserve(2 * blocks_.size() + 8);
}

MemoryRange MemoryPool::adopt(OwnBlock block) {
  const std::lock_guard lock(mutex_);
  make_room();
  block->id = next_id_++;
  imported_ += block->size;
  ++ranges_;
  blocks_.push_back(std::move(block));
  return {blocks_.back().get(), 0, blocks_.back()->size};
}

// Shared memory is freed when its last handle here is released.
void MemoryPool::give_outside(MemoryBlock& block) noexcept {
  if (block.imported) {
    imported_ -= block.size;
  } else {
    in_use_ -= block.size;
    reserved_ -= block.size;
    reserved_in_heap_of(block) -= block.size;
    --live_;
  }
  std::erase_if(blocks_, [&](const auto& other) { return other.get() == &block; });
}

void MemoryPool::give_back(const MemoryRange& range, bool counted) noexcept {
  MemoryBlock& block = *range.block;
  --ranges_;
  if (block.outside()) {
    give_outside(block);
    return;
  }
  std::vector<FreeRange>& free = block.free_ranges;
  const auto next = std::lower_bound(free.begin(), free.end(), range.offset,
                                     [](const FreeRange& other, uint64_t offset) { return other.offset < offset; });
  const bool joins_next = next != free.end() && next->offset == range.offset + range.size;
  const bool joins_previous = next != free.begin() && std::prev(next)->offset + std::prev(next)->size == range.offset;
  if (joins_previous && joins_next) {
    std::prev(next)->size += range.size + next->size;
    free.erase(next);
  } else if (joins_previous) {
    std::prev(next)->size += range.size;
  } else if (joins_next) {
    *next = {range.offset, range.size + next->size};
  } else {
    free.insert(next, {range.offset, range.size});  // take() has reserved room
  }
  --block.taken;
  block.free_bytes += range.size;
  if (!counted) return;
  in_use_ -= range.size;
  --live_;
}

void MemoryPool::release(const MemoryRange& range, const LastUses& uses, bool counted) noexcept {
  const std::lock_guard lock(mutex_);
  if (uses.done(*timelines_)) {
    give_back(range, counted);
    show_usage();
    return;
  }
  pending_.push_back({range, FinalUses(uses, *timelines_), counted});  // make_room() has reserved room
  pending_outside_ = pending_outside_ || range.block->outside();
}

void MemoryPool::completed() noexcept {
  const std::lock_guard lock(mutex_);
  if (pending_.size() >= 64 || pending_outside_) reclaim();
}

void MemoryPool::reclaim() noexcept {
  const auto done = std::partition(pending_.begin(), pending_.end(),
                                   [this](const Pending& pending) { return !pending.uses.done(*timelines_); });
  for (auto i = done; i != pending_.end(); ++i) give_back(i->range, i->counted);
  pending_.erase(done, pending_.end());
  pending_outside_ = std::any_of(pending_.begin(), pending_.end(),
                                 [](const Pending& pending) { return pending.range.block->outside(); });
  trim_to(device_->memory_bytes() / 4);
  show_usage();
}

// Frees empty blocks, keeping at most `keep_bytes` of them.
void MemoryPool::trim_to(uint64_t keep_bytes) noexcept {
  uint64_t kept = 0;
  for (auto i = blocks_.begin(); i != blocks_.end();) {
    MemoryBlock& block = **i;
    const bool empty = block.free_bytes == block.size;
    if (empty && kept + block.size > keep_bytes) {
      reserved_ -= block.size;
      reserved_in_heap_of(block) -= block.size;
      i = blocks_.erase(i);
      continue;
    }
    if (empty) kept += block.size;
    ++i;
  }
}

MemoryPool::Attempt MemoryPool::attempt(MemoryBlock& block, uint64_t bytes, uint32_t type, const void* next) {
  Attempt attempt;
  attempt.heap = device_->physical.memory.memoryTypes[type].heapIndex;
  const uint64_t heap = device_->physical.memory.memoryHeaps[attempt.heap].size;
  // lavapipe promises memory that it does not have, so stay within the heap that it reports.
  if (bytes > heap || heap_reserved_[attempt.heap] > heap - bytes) return attempt;
  attempt.budget = device_->heap_budget(device_->physical, attempt.heap);
  attempt.beyond_budget = attempt.budget.known() && bytes > attempt.budget.left();
  if (!attempt.beyond_budget) attempt.result = allocate_block(*device_, block, bytes, type, next);
  return attempt;
}

void MemoryPool::fail_block(const MemoryRequest& request, uint64_t bytes, const Attempt& last) {
  if (last.result != VK_ERROR_OUT_OF_DEVICE_MEMORY) device_->check(last.result, "vkAllocateMemory");
  if (last.beyond_budget) {
    throw MemoryShortage(
        TUFF_ERROR_LIMIT_EXCEEDED,
        fmt::format("{} bytes were requested, which needs {} more device memory; its heap's budget is {}, of which {} "
                    "are used; {}",
                    request.bytes, bytes, last.budget.budget, last.budget.used, kept_free()),
        request.bytes, bytes - last.budget.left());
  }
  const uint64_t heap = device_->physical.memory.memoryHeaps[last.heap].size, reserved = heap_reserved_[last.heap];
  const uint64_t left = heap - std::min(heap, reserved);
  throw MemoryShortage(
      TUFF_ERROR_OUT_OF_DEVICE_MEMORY,
      fmt::format("{} bytes were requested, which needs {} more device memory; {} of its heap of {} are reserved; {}",
                  request.bytes, bytes, reserved, heap, kept_free()),
      request.bytes, bytes > left ? bytes - left : bytes);
}

MemoryBlock* MemoryPool::make_block(uint64_t bytes, const MemoryRequest& request, uint32_t size_class) {
  OwnBlock block = new_block(*device_);
  block->free_ranges.reserve(2);
  block->size = bytes;
  block->kind = request.kind;
  block->size_class = size_class;
  block->exportable = request.exportable;
  block->id = next_id_++;
  VkExportMemoryAllocateInfo exported{};
  exported.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
  exported.handleTypes = kMemoryFd;
  const VkMemoryRequirements requirements =
      make_block_buffer(*device_, *block, request.exportable ? VkFlags{kMemoryFd} : 0);
  if (request.exportable) block->dedicated = block->dedicated || device_->physical.memory_fd_dedicated;
  const Types types = types_for(request, requirements);
  Attempt last;
  // Too many objects: of allocations, of which a device may have so many.
  const auto refused = [&] {
    return last.result == VK_ERROR_OUT_OF_DEVICE_MEMORY || last.result == VK_ERROR_TOO_MANY_OBJECTS;
  };
  for (int round = 0; round < 2 && refused(); ++round) {
    if (round == 1) trim_to(0);
    for (const uint32_t type : types) {
      if (type == kNoType || !refused()) break;
      last = attempt(*block, requirements.size, type, request.exportable ? &exported : nullptr);
    }
  }
  if (last.result != VK_SUCCESS) {
    block.reset();
    fail_block(request, requirements.size, last);
  }
  bind_block(*device_, *block, request.kind == MemoryKind::readback || device_mapped_);
  device_->set_name(VK_OBJECT_TYPE_BUFFER, block->buffer,
                    request.kind != MemoryKind::device ? "tuff staging"
                    : size_class == kOwnBlock          ? "tuff buffer"
                                                       : "tuff small buffers");
  block->free_ranges.push_back({0, block->size});
  block->free_bytes = block->size;
  log(TUFF_LOG_DEBUG, "memory: a new block of {} MiB of type {}{}", block->size >> 20, block->type,
      block->host == nullptr ? ", not mapped" : "");
  reserved_ += block->size;
  reserved_in_heap_of(*block) += block->size;
  blocks_.push_back(std::move(block));
  return blocks_.back().get();
}

void MemoryPool::set_limit(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
  show_usage();
}

void MemoryPool::trim() {
  const std::lock_guard lock(mutex_);
  reclaim();
  trim_to(0);
  show_usage();
}

void MemoryPool::reset_peak() {
  const std::lock_guard lock(mutex_);
  reclaim();
  peak_ = in_use_;
  show_usage();
}

HeapBudget MemoryPool::heap_budget() const {
  return device_->heap_budget(device_->physical, device_->physical.memory.memoryTypes[types_[0]].heapIndex);
}

MemoryPool::Counters MemoryPool::counters() {
  const std::lock_guard lock(mutex_);
  reclaim();
  Counters counters;
  counters.in_use = in_use_;
  counters.reserved = reserved_;
  counters.peak = peak_;
  counters.imported = imported_;
  counters.live = live_;
  counters.allocations = allocations_;
  counters.hits = hits_;
  counters.limit = limit_;
  for (const auto& block : blocks_) {
    counters.blocks += block->imported ? 0 : 1;
    counters.free += block->free_bytes;
    for (const FreeRange& range : block->free_ranges) {
      counters.largest_free = std::max(counters.largest_free, range.size);
    }
  }
  return counters;
}

}  // namespace tuff
