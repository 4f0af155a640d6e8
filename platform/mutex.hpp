// The library's mutexes. Each has a rank, and a thread locks them in the order of platform/lock_ranks.def only, so no
// two threads can wait for each other. With the CMake option TUFF_LOCK_ORDER (presets dev, asan and tsan) a thread that
// breaks the order ends the process with the names of both mutexes. Without it these are the standard mutexes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <utility>

namespace tuff {

enum class LockRank : uint8_t {
#define TUFF_LOCK(rank) rank,
#include "platform/lock_ranks.def"
#undef TUFF_LOCK
};

namespace detail {

#ifdef TUFF_LOCK_ORDER
// The locks that this thread holds, as far as they are ranked.
class LockOrder {
 public:
  constexpr explicit LockOrder(LockRank rank) noexcept : rank_(rank) {}
  void check() const noexcept;  // ends the process if this thread holds a lock of the same rank or a later one
  void add() const noexcept;
  void remove() const noexcept;

 private:
  LockRank rank_;
};
#else
class LockOrder {
 public:
  constexpr explicit LockOrder(LockRank) noexcept {}
  void check() const noexcept {}
  void add() const noexcept {}
  void remove() const noexcept {}
};
#endif

template <typename Native>
class Ranked {
 public:
  constexpr explicit Ranked(LockRank rank) noexcept : order_(rank) {}

  void lock() {
    order_.check();
    native_.lock();
    order_.add();
  }
  // In any order, because it does not wait.
  bool try_lock() {
    if (!native_.try_lock()) return false;
    order_.add();
    return true;
  }
  void unlock() {
    order_.remove();
    native_.unlock();
  }

  void lock_shared() {
    order_.check();
    native_.lock_shared();
    order_.add();
  }
  void unlock_shared() {
    order_.remove();
    native_.unlock_shared();
  }

  Native& native() noexcept { return native_; }

 private:
  Native native_;
  [[no_unique_address]] LockOrder order_;
};

}  // namespace detail

using Mutex = detail::Ranked<std::mutex>;
using SharedMutex = detail::Ranked<std::shared_mutex>;

#ifndef TUFF_LOCK_ORDER
static_assert(sizeof(Mutex) == sizeof(std::mutex) && sizeof(SharedMutex) == sizeof(std::shared_mutex));
#endif

// A condition variable for Mutex.
class Condition {
 public:
  template <typename Predicate>
  void wait(std::unique_lock<Mutex>& lock, Predicate predicate) {
    struct Borrowed {
      std::unique_lock<std::mutex> lock;
      ~Borrowed() { lock.release(); }
    } borrowed{std::unique_lock(lock.mutex()->native(), std::adopt_lock)};
    native_.wait(borrowed.lock, std::move(predicate));
  }
  void notify_all() noexcept { native_.notify_all(); }

 private:
  std::condition_variable native_;
};

// During its lifetime this thread may wait only for mutexes after `rank`, as if it held one of that rank.
class LockFloor {
 public:
  explicit LockFloor(LockRank rank) noexcept : order_(rank) {
    order_.check();
    order_.add();
  }
  ~LockFloor() { order_.remove(); }
  LockFloor(const LockFloor&) = delete;
  LockFloor& operator=(const LockFloor&) = delete;

 private:
  [[no_unique_address]] detail::LockOrder order_;
};

}  // namespace tuff
