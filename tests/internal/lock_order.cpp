// The check of the order in which mutexes are locked (platform/mutex.hpp), which only some builds of the library have.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "platform/mutex.hpp"

namespace tuff {
namespace {

struct Named {
  LockRank rank;
  const char* name;
};
const std::vector<Named> ranks = {
#define TUFF_LOCK(rank) {LockRank::rank, #rank},
#include "platform/lock_ranks.def"
#undef TUFF_LOCK
};

TEST(LockOrderDeathTest, EachPairInOneOrderOnly) {
  for (size_t held = 0; held < ranks.size(); ++held) {
    for (size_t wanted = 0; wanted < ranks.size(); ++wanted) {
      Mutex first(ranks[held].rank), second(ranks[wanted].rank);
      const std::lock_guard lock(first);
      if (wanted > held) {
        const std::lock_guard next(second);
      } else {
        const std::string message =
            std::string("lock order: may not lock ") + ranks[wanted].name + "; this thread holds " + ranks[held].name;
        EXPECT_DEATH(second.lock(), message);
      }
    }
  }
}

TEST(LockOrderDeathTest, TheSameOneTwice) {
  Mutex mutex(LockRank::backend);
  const std::lock_guard lock(mutex);
  EXPECT_DEATH(mutex.lock(), "may not lock backend; this thread holds backend");
}

TEST(LockOrderDeathTest, ReadersToo) {
  SharedMutex log(LockRank::log);
  Mutex backend(LockRank::backend), profile(LockRank::profile);
  const std::shared_lock lock(log);
  const std::lock_guard after(profile);
  EXPECT_DEATH(backend.lock(), "may not lock backend; this thread holds log profile");
  EXPECT_DEATH(log.lock_shared(), "may not lock log");
}

TEST(LockOrderDeathTest, UnlockedInAnyOrder) {
  Mutex context(LockRank::context), backend(LockRank::backend), table(LockRank::handle_table);
  context.lock();
  backend.lock();
  table.lock();
  backend.unlock();
  EXPECT_DEATH(backend.lock(), "this thread holds context handle_table");
  table.unlock();
  backend.lock();
  context.unlock();
  backend.unlock();
  context.lock();
  context.unlock();
  EXPECT_DEATH(context.unlock(), "does not hold context");
}

TEST(LockOrderDeathTest, ToTryIsAllowedInAnyOrder) {
  Mutex file(LockRank::pipeline_file), backend(LockRank::backend);
  const LockFloor floor(LockRank::prewarm_thread);
  EXPECT_DEATH(file.lock(), "may not lock pipeline_file; this thread holds prewarm_thread");
  ASSERT_TRUE(file.try_lock());
  EXPECT_DEATH(backend.lock(), "this thread holds prewarm_thread pipeline_file");
  file.unlock();
}

TEST(LockOrder, EachThreadHasItsOwn) {
  Mutex backend(LockRank::backend), table(LockRank::handle_table);
  const std::lock_guard lock(table);
  std::thread([&] { const std::lock_guard other(backend); }).join();
}

TEST(LockOrder, WaitingKeepsTheLock) {
  Mutex mutex(LockRank::prewarm);
  Condition changed;
  bool ready = false;
  std::thread other([&] {
    const std::lock_guard lock(mutex);
    ready = true;
    changed.notify_all();
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ready; });
    EXPECT_TRUE(lock.owns_lock());
  }
  other.join();
  const std::lock_guard again(mutex);
}

}  // namespace
}  // namespace tuff
