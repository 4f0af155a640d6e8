// The memory pool by itself, on a real device.
#include "runtime/vulkan/memory_pool.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "runtime/memory_pressure.hpp"
#include "runtime/vulkan/instance.hpp"
#include "support/allocation_count.hpp"
#include "support/tensor.hpp"

namespace tuff {
namespace {

class Pool : public testing::Test {
 protected:
  void SetUp() override {
    Instance& instance = Instance::get(tuff_test::validating());
    device_ = std::make_shared<Device>(instance, instance.choose(""));
    pool_ = std::make_unique<MemoryPool>(device_);
  }
  std::shared_ptr<Device> device_;
  std::unique_ptr<MemoryPool> pool_;
};

TEST_F(Pool, RangesAreAlignedAndApart) {
  tuff_test::Random random(3);
  std::vector<MemoryRange> live;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> taken;  // (block, offset) → end
  for (int step = 0; step < 3000; ++step) {
    if (!live.empty() && random.next() % 5 < 2) {
      const size_t which = random.next() % live.size();
      taken.erase({live[which].block->id, live[which].offset});
      pool_->release(live[which], {});
      live[which] = live.back();
      live.pop_back();
      continue;
    }
    const uint64_t bytes = random.next() % 50'000;
    const MemoryRange range = pool_->allocate(bytes, MemoryKind::device);
    ASSERT_GE(range.size, std::max<uint64_t>(bytes, 1));
    ASSERT_EQ(range.offset % MemoryPool::kAlignment, 0u);
    ASSERT_LE(range.offset + range.size, range.block->size);
    const auto next = taken.lower_bound({range.block->id, range.offset});
    if (next != taken.end() && next->first.first == range.block->id) {
      ASSERT_LE(range.offset + range.size, next->first.second);
    }
    if (next != taken.begin() && std::prev(next)->first.first == range.block->id) {
      ASSERT_LE(std::prev(next)->second, range.offset);
    }
    taken[{range.block->id, range.offset}] = range.offset + range.size;
    live.push_back(range);
  }
  for (const MemoryRange& range : live) pool_->release(range, {});
  EXPECT_EQ(pool_->counters().in_use, 0u);
  // Adjacent ranges have been merged: a whole block is one range.
  EXPECT_EQ(pool_->counters().largest_free, MemoryPool::kSizeClasses[0].block);
  EXPECT_EQ(pool_->counters().free, pool_->counters().reserved);
  EXPECT_EQ(pool_->counters().live, 0u);
}

TEST_F(Pool, RangesInFlightAreNotUsedAgain) {
  const MemoryRange first = pool_->allocate(1000, MemoryKind::device);
  pool_->release(first, LastUses(Use{0, 7}));  // submission 7 has not finished
  std::vector<MemoryRange> others;
  for (int i = 0; i < 100; ++i) {
    others.push_back(pool_->allocate(1000, MemoryKind::device));
    EXPECT_FALSE(others.back().block == first.block && others.back().offset == first.offset);
  }
  pool_->timelines().complete(0, 6);
  pool_->completed();
  EXPECT_GE(pool_->counters().in_use, 101u * 1000);
  pool_->timelines().complete(0, 7);
  pool_->completed();
  for (const MemoryRange& range : others) pool_->release(range, LastUses(Use{0, 7}));
  EXPECT_EQ(pool_->counters().in_use, 0u) << "finished work holds nothing";
}

TEST_F(Pool, BlocksInFlightArePassedOnInTheOrderOfTheOnlyStream) {
  constexpr uint64_t kBytes = 40ull << 20;
  pool_->timelines().record(0, 7);
  const MemoryRequest request{.bytes = kBytes, .limited = true};
  const MemoryRange first = pool_->allocate(request);
  pool_->release(first, LastUses(Use{0, 7}));  // submission 7 has not finished
  const MemoryRange other = pool_->allocate(request);
  EXPECT_NE(other.block, first.block) << "nobody said that it would wait";
  pool_->release(other, LastUses(Use{0, 8}));
  const auto refused = [&](MemoryRequest asked, const char* why) {
    Use before;
    const MemoryRange range = pool_->allocate(asked, &before);
    EXPECT_TRUE(range.block != first.block && range.block != other.block) << why;
    EXPECT_EQ(before.submission, 0u) << why;
    pool_->release(range, {});
    pool_->trim();
  };
  refused({.bytes = 2 * kBytes, .limited = true}, "larger");
  refused({.bytes = 20ull << 20, .limited = true}, "much smaller");
  refused({.bytes = kBytes, .limited = true, .mapped = true}, "the host may write without waiting");
  refused({.bytes = kBytes, .kind = MemoryKind::readback, .limited = true}, "other memory");
  refused({.bytes = 1000, .limited = true}, "shares a block");

  // What is passed on needs nothing of the limit.
  const MemoryPool::Counters counted = pool_->counters();
  pool_->set_limit(counted.in_use);
  Use before;
  const MemoryRange again = pool_->allocate({.bytes = kBytes - 5000, .limited = true}, &before);
  EXPECT_EQ(again.block, first.block);
  EXPECT_EQ(before.stream, 0u);
  EXPECT_EQ(before.submission, 7u);
  const MemoryPool::Counters now = pool_->counters();
  EXPECT_EQ(now.in_use, counted.in_use);
  EXPECT_EQ(now.live, counted.live);
  EXPECT_EQ(now.reserved, counted.reserved);
  EXPECT_EQ(now.allocations, counted.allocations + 1);
  EXPECT_EQ(now.hits, counted.hits + 1);
  // It counts for the limit like any other.
  pool_->release(again, LastUses(Use{0, 9}));
  const uint64_t passed = again.size, others = counted.in_use - passed;
  for (const uint64_t limit : {kBytes - 1, others + kBytes - 1}) {
    pool_->set_limit(limit);
    Use unused;
    try {
      pool_->allocate({.bytes = kBytes, .limited = true}, &unused);
      ADD_FAILURE() << limit;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TUFF_ERROR_LIMIT_EXCEEDED) << limit;
      EXPECT_EQ(dynamic_cast<const MemoryShortage*>(&error) != nullptr, limit > kBytes) << limit;
    }
    EXPECT_EQ(unused.submission, 0u) << limit;
    EXPECT_EQ(pool_->counters().in_use, counted.in_use) << limit;
  }
  pool_->set_limit(0);

  // With a second stream, the next user may be in another order.
  pool_->timelines().record(1, 0);
  refused({.bytes = kBytes, .limited = true}, "two streams");
  pool_->timelines().complete(0, 9);
  pool_->completed();
  EXPECT_EQ(pool_->counters().in_use, 0u);
}

// For more ranges than the pool has room for at first; half of them leave holes.
TEST_F(Pool, ReleasingNeedsNoMemory) {
  if (!tuff_test::counts_allocations()) GTEST_SKIP() << "the sanitizer has operator new";
  if (tuff_test::validating()) GTEST_SKIP() << "allocations of the validation layer would fail, too";
  std::vector<MemoryRange> live;
  for (int i = 0; i < 3000; ++i) live.push_back(pool_->allocate(1000, MemoryKind::device));
  bool allocated = false;
  {
    const tuff_test::FailingAllocations failing(1, true);
    for (size_t first = 0; first < 2; ++first) {
      for (size_t i = first; i < live.size(); i += 2) pool_->release(live[i], LastUses(Use{0, 7 + first}));
      pool_->timelines().complete(0, 7 + first);
      pool_->completed();
    }
    allocated = failing.failed();
  }
  EXPECT_FALSE(allocated);
  EXPECT_EQ(pool_->counters().in_use, 0u);
}

TEST_F(Pool, LargeRequestsHaveTheirOwnBlock) {
  const uint64_t bytes = MemoryPool::kSmallLimit + 1;
  const MemoryRange large = pool_->allocate(bytes, MemoryKind::device);
  EXPECT_EQ(large.offset, 0u);
  EXPECT_EQ(large.size, large.block->size);
  const uint64_t reserved = pool_->counters().reserved;
  pool_->release(large, {});
  const MemoryRange again = pool_->allocate(bytes, MemoryKind::device);
  EXPECT_EQ(pool_->counters().reserved, reserved) << "an empty block is kept for the next request";
  pool_->release(again, {});
}

PFN_vkAllocateMemory allocate_memory = nullptr;
VKAPI_ATTR VkResult VKAPI_CALL little_memory(VkDevice device, const VkMemoryAllocateInfo* info,
                                             const VkAllocationCallbacks* host, VkDeviceMemory* memory) {
  if (info->allocationSize > (8u << 20)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return allocate_memory(device, info, host, memory);
}

TEST_F(Pool, WhereABlockDoesNotFitASmallerOneDoes) {
  allocate_memory = device_->vk.vkAllocateMemory;
  device_->vk.vkAllocateMemory = little_memory;
  const MemoryRange range = pool_->allocate(3 << 20, MemoryKind::device);
  EXPECT_EQ(range.block->size, 4u << 20);
  EXPECT_THROW(pool_->allocate(9 << 20, MemoryKind::device), MemoryShortage);
  pool_->release(range, {});
}

TEST_F(Pool, SmallRequestsDoNotCutUpTheBlocksOfLargerOnes) {
  const MemoryRange small = pool_->allocate(1000, MemoryKind::device),
                    medium = pool_->allocate(1 << 20, MemoryKind::device);
  EXPECT_NE(small.block, medium.block);
  EXPECT_EQ(small.block->size, MemoryPool::kSizeClasses[0].block);
  EXPECT_EQ(medium.block->size, MemoryPool::kSizeClasses[1].block);
  EXPECT_EQ(pool_->counters().blocks, 2u);
  pool_->release(small, {});
  pool_->release(medium, {});
  EXPECT_EQ(pool_->counters().blocks, 2u) << "kept";
  pool_->trim();
  EXPECT_EQ(pool_->counters().blocks, 0u);
  EXPECT_EQ(pool_->counters().reserved, 0u);
}

TEST_F(Pool, LimitsAndImpossibleSizes) {
  const auto status = [&](uint64_t bytes) {
    try {
      pool_->release(pool_->allocate(bytes, MemoryKind::device), {});
      return TUFF_OK + 0;
    } catch (const Error& error) {
      return error.code() + 0;
    }
  };
  EXPECT_EQ(status(~uint64_t{0}), TUFF_ERROR_LIMIT_EXCEEDED);
  EXPECT_EQ(status(uint64_t{1} << 46), TUFF_ERROR_LIMIT_EXCEEDED);
  pool_->set_limit(100'000);
  EXPECT_EQ(status(100'001), TUFF_ERROR_LIMIT_EXCEEDED);
  EXPECT_EQ(status(90'000), TUFF_OK);
  EXPECT_EQ(status(90'000), TUFF_OK) << "what was released does not count";
  pool_->set_limit(0);
  EXPECT_EQ(status(200'000), TUFF_OK);
}

}  // namespace
}  // namespace tuff
