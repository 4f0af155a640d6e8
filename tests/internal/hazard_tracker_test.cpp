#include "runtime/vulkan/hazard_tracker.hpp"

#include <gtest/gtest.h>

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
      {{1, 200, 300, true}, false},   // between them
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

TEST(HazardTracker, AReadDoesNotHideAWrite) {
  HazardTracker tracker;
  tracker.add({1, 0, 100, false});
  tracker.add({1, 20, 30, true});
  EXPECT_TRUE(tracker.conflicts({1, 25, 26, false}));
}

}  // namespace
}  // namespace tuff
