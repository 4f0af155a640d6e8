#include "runtime/handle_table.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace tuff {
namespace {

struct Counted : HandleObject {
  explicit Counted(std::atomic<int>& count) : alive(count) { ++alive; }
  ~Counted() override { --alive; }
  std::atomic<int>& alive;
};

constexpr uint32_t slot_of(uint64_t handle) {
  return static_cast<uint32_t>(handle & ((1u << HandleTable::kSlotBits) - 1));
}
constexpr uint64_t generation_of(uint64_t handle) {
  return handle >> HandleTable::kSlotBits & HandleTable::kLastGeneration;
}

TEST(HandleTable, HandlesNameTheirObject) {
  std::atomic<int> alive{0};
  {
    HandleTable table;
    const uint64_t first = table.insert(HandleKind::buffer, std::make_unique<Counted>(alive));
    const uint64_t second = table.insert(HandleKind::buffer, std::make_unique<Counted>(alive));
    EXPECT_NE(first, 0u);
    EXPECT_NE(first, second);
    EXPECT_EQ(first >> 63, 0u);
    EXPECT_TRUE(table.acquire<Counted>(first, HandleKind::buffer));
    EXPECT_FALSE(table.acquire<Counted>(first, HandleKind::context)) << "another kind";
    EXPECT_FALSE(table.acquire<Counted>(0, HandleKind::buffer));
    EXPECT_FALSE(table.acquire<Counted>(first | uint64_t{1} << 63, HandleKind::buffer));
    EXPECT_FALSE(table.acquire<Counted>(first + 1'000'000, HandleKind::buffer)) << "a slot that is not there";
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0) << "the table ends what is left";
}

TEST(HandleTable, RemovedHandlesAreStaleAtOnceAndObjectsLiveUntilTheirLastReference) {
  std::atomic<int> alive{0};
  HandleTable table;
  const uint64_t handle = table.insert(HandleKind::buffer, std::make_unique<Counted>(alive));
  auto held = table.acquire<Counted>(handle, HandleKind::buffer);
  table.remove<Counted>(handle, HandleKind::buffer);
  EXPECT_EQ(alive, 1);
  EXPECT_FALSE(table.acquire<Counted>(handle, HandleKind::buffer));
  EXPECT_FALSE(table.remove<Counted>(handle, HandleKind::buffer));
  // The slot is not reused while a reference to the object is held.
  const uint64_t other = table.insert(HandleKind::buffer, std::make_unique<Counted>(alive));
  EXPECT_NE(slot_of(other), slot_of(handle));
  held = {};
  EXPECT_EQ(alive, 1);
}

TEST(HandleTable, SlotsAreRetiredBeforeTheirGenerationWraps) {
  constexpr uint32_t kLast = 5;
  std::atomic<int> alive{0};
  HandleTable table(kLast);
  std::set<uint64_t> seen;
  std::set<uint32_t> slots;
  for (int i = 0; i < 100; ++i) {
    const uint64_t handle = table.insert(HandleKind::buffer, std::make_unique<Counted>(alive));
    EXPECT_TRUE(seen.insert(handle).second) << "handle " << handle << " came back";
    EXPECT_LE(generation_of(handle), kLast);
    slots.insert(slot_of(handle));
    table.remove<Counted>(handle, HandleKind::buffer);
  }
  EXPECT_GE(slots.size(), 100 / (kLast + 1)) << "more slots than their generations allow";
  for (uint64_t handle : seen) EXPECT_FALSE(table.acquire<Counted>(handle, HandleKind::buffer));
}

TEST(HandleTable, GrowsBeyondItsFirstChunks) {
  std::atomic<int> alive{0};
  HandleTable table;
  std::vector<uint64_t> handles;
  for (int i = 0; i < 20'000; ++i) {
    handles.push_back(table.insert(HandleKind::buffer, std::make_unique<Counted>(alive)));
  }
  for (uint64_t handle : handles) ASSERT_TRUE(table.acquire<Counted>(handle, HandleKind::buffer));
  for (uint64_t handle : handles) table.remove<Counted>(handle, HandleKind::buffer);
  EXPECT_EQ(alive, 0);
}

TEST(HandleTable, ThreadsRaceForOneHandle) {
  std::atomic<int> alive{0};
  HandleTable table;
  for (int round = 0; round < 200; ++round) {
    const uint64_t handle = table.insert(HandleKind::buffer, std::make_unique<Counted>(alive));
    std::atomic<int> removed{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < 20; ++j) {
          const auto held = table.acquire<Counted>(handle, HandleKind::buffer);
          ASSERT_TRUE(!held || held->alive >= 1);
        }
        if (table.remove<Counted>(handle, HandleKind::buffer)) ++removed;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(removed, 1);
    ASSERT_EQ(alive, 0);
  }
}

TEST(HandleTable, DescribesWhatAHandleIs) {
  std::atomic<int> alive{0};
  HandleTable table;
  const uint64_t handle = table.insert(HandleKind::buffer, std::make_unique<Counted>(alive));
  EXPECT_NE(table.describe(handle).find("buffer"), std::string::npos) << table.describe(handle);
  table.remove<Counted>(handle, HandleKind::buffer);
  EXPECT_NE(table.describe(handle).find("stale"), std::string::npos) << table.describe(handle);
  EXPECT_FALSE(table.describe(0).empty());
  EXPECT_FALSE(table.describe(~uint64_t{0}).empty());
}

}  // namespace
}  // namespace tuff
