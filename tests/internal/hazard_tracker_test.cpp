#include "runtime/vulkan/hazard_tracker.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tuff {
namespace {

using Range = HazardTracker::Range;

TEST(HazardTracker, ConflictsNeedAWriteOnCommonBytes) {
  HazardTracker tracker;
  ASSERT_TRUE(tracker.add({1, 100, 200, false}));
  ASSERT_TRUE(tracker.add({1, 300, 400, true}));
  const struct {
    Range range;
    bool conflicts;
  } cases[] = {
      {{1, 100, 200, false}, false},  // read after read
      {{1, 150, 160, true}, true},    // write after read
      {{1, 300, 400, false}, true},   // read after write
      {{1, 399, 500, true}, true},    // write after write
      {{1, 200, 300, true}, false},   // between the two
      {{1, 0, 100, true}, false},    {{1, 0, 101, true}, true},
      {{1, 400, 500, false}, false}, {{2, 300, 400, true}, false},  // other memory
      {{1, 0, 1000, false}, true},
  };
  for (const auto& [range, conflicts] : cases) {
    EXPECT_EQ(tracker.conflicts(range), conflicts) << range.block << ": " << range.begin << " to " << range.end;
  }
  tracker.clear();
  EXPECT_TRUE(tracker.empty());
  EXPECT_FALSE(tracker.conflicts({1, 300, 400, true}));
}

TEST(HazardTracker, SaysWhenItIsFull) {
  HazardTracker tracker;
  for (uint64_t i = 0; i < HazardTracker::kCapacity; ++i) {
    EXPECT_TRUE(tracker.has_room(1));
    EXPECT_TRUE(tracker.add({1, i * 10, i * 10 + 5, false}));
  }
  EXPECT_FALSE(tracker.has_room(1));
  EXPECT_FALSE(tracker.add({1, 5000, 5005, false}));
  EXPECT_TRUE(tracker.add({1, 20, 25, false})) << "what it holds already needs no room";
  EXPECT_TRUE(tracker.conflicts({1, 20, 25, true}));
}

TEST(HazardTracker, EverythingConflictsWithAll) {
  HazardTracker tracker;
  EXPECT_TRUE(tracker.empty());
  tracker.add_everything();
  EXPECT_FALSE(tracker.empty());
  EXPECT_TRUE(tracker.conflicts({1, 0, 1, false}));
  tracker.clear();
  EXPECT_TRUE(tracker.empty());
  EXPECT_FALSE(tracker.conflicts({1, 0, 1, true}));
}

TEST(HazardTracker, NeighboursShareAPlace) {
  HazardTracker tracker;
  for (uint64_t i = 0; i < 10 * HazardTracker::kCapacity; ++i) ASSERT_TRUE(tracker.add({1, i * 10, i * 10 + 10, true}));
  EXPECT_TRUE(tracker.has_room(HazardTracker::kCapacity - 1));
  EXPECT_TRUE(tracker.conflicts({1, 5000, 5001, false}));
  EXPECT_FALSE(tracker.conflicts({1, 9600, 9601, true}));
  EXPECT_FALSE(tracker.conflicts({2, 5000, 5001, true})) << "up to the end of their block";
}

// Compares random ranges with a plain list of all ranges added.
TEST(HazardTracker, AsAListOfAllThatWasAdded) {
  std::mt19937 random(7);
  const auto below = [&](uint64_t n) { return random() % n; };
  for (int round = 0; round < 2000; ++round) {
    HazardTracker tracker;
    std::vector<Range> all;
    const uint64_t space = 1 + below(400), longest = 1 + below(30);
    for (int i = 0; i < 150; ++i) {
      const uint64_t begin = below(space);
      const Range range{1 + below(3), begin, begin + below(longest + 1), below(2) == 0};
      bool expected = false;
      for (const Range& other : all) {
        expected = expected || (other.block == range.block && (other.write || range.write) &&
                                std::max(other.begin, range.begin) < std::min(other.end, range.end));
      }
      ASSERT_EQ(tracker.conflicts(range), expected) << "round " << round << ", range " << i;
      if (tracker.add(range)) all.push_back(range);
    }
  }
}

TEST(HazardTracker, AReadDoesNotHideAWrite) {
  HazardTracker tracker;
  tracker.add({1, 0, 100, false});
  tracker.add({1, 20, 30, true});
  EXPECT_TRUE(tracker.conflicts({1, 25, 26, false}));
}

}  // namespace
}  // namespace tuff
