#include "platform/mutex.hpp"

#ifdef TUFF_LOCK_ORDER

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace tuff::detail {
namespace {

const char* name_of(LockRank rank) {
  switch (rank) {
#define TUFF_LOCK(name) \
  case LockRank::name:  \
    return #name;
#include "platform/lock_ranks.def"
#undef TUFF_LOCK
  }
  return "unknown";
}

// In the order of locking. No destructor, because threads lock mutexes until they have ended.
struct Held {
  static constexpr size_t kMax = 32;
  LockRank ranks[kMax];
  size_t count;
};
constinit thread_local Held held{};

[[noreturn]] void fail(const char* what, LockRank rank) noexcept {
  std::fprintf(stderr, "tuff: lock order: %s %s; this thread holds", what, name_of(rank));
  for (size_t i = 0; i < held.count; ++i) std::fprintf(stderr, " %s", name_of(held.ranks[i]));
  std::fprintf(stderr, "\n");
  std::abort();
}

}  // namespace

void LockOrder::check() const noexcept {
  for (size_t i = 0; i < held.count; ++i) {
    if (held.ranks[i] >= rank_) fail("may not lock", rank_);
  }
}

void LockOrder::add() const noexcept {
  if (held.count == Held::kMax) fail("no room for", rank_);
  held.ranks[held.count++] = rank_;
}

void LockOrder::remove() const noexcept {
  size_t last = held.count;
  while (last > 0 && held.ranks[last - 1] != rank_) --last;
  if (last == 0) fail("this thread does not hold", rank_);
  for (size_t i = last; i < held.count; ++i) held.ranks[i - 1] = held.ranks[i];
  --held.count;
}

}  // namespace tuff::detail

#endif
