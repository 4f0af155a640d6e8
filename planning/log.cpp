#include "planning/log.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "platform/mutex.hpp"
#include "platform/never_destroyed.hpp"
#include "platform/platform.hpp"

namespace tuff {
namespace {

constexpr std::array<const char*, 6> kLevelNames = {"off", "error", "warning", "info", "debug", "dispatch"};
constexpr int32_t kUnknown = -1;  // TUFF_LOG has not been read yet

struct Log {
  // Held shared while a message is delivered, exclusively while the callback changes: once tuff_set_log returns, the
  // previous callback is no longer called.
  SharedMutex mutex{LockRank::log};
  bool changing = false;  // the callback is being changed, by a thread that holds the mutex exclusively
  tuff_log_callback callback = nullptr;
  void* user = nullptr;
  int32_t own_level = kUnknown;  // for the callback or stderr
  void (*listener)(std::string_view) = nullptr;

  // The callers of these functions hold the mutex.
  void set_callback(tuff_log_callback wanted, void* with) {
    changing = true;
    callback = wanted;
    user = with;
    changing = false;
  }
  void set_level(int32_t wanted) {
    own_level = wanted;
    detail::log_level.store(listener != nullptr ? std::max<int32_t>(wanted, TUFF_LOG_DISPATCH) : wanted,
                            std::memory_order_relaxed);
  }
};

// Never destroyed: threads may log while the process exits.
Log& shared_log() {
  static NeverDestroyed<Log> instance;
  return *instance;
}

// How often this thread holds the mutex: once in a callback, which may fork.
constinit thread_local int delivering = 0;
struct Delivery {
  Delivery() noexcept { ++delivering; }
  ~Delivery() { --delivering; }
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;
};

// Allocates nothing, because the first message may be about a lack of memory.
int32_t level_from_environment() noexcept {
  const char* wanted = platform::environment_text("TUFF_LOG");
  if (wanted == nullptr || *wanted == '\0') return TUFF_LOG_OFF;
  for (size_t level = 0; level < kLevelNames.size(); ++level) {
    if (std::strcmp(wanted, kLevelNames[level]) == 0) return static_cast<int32_t>(level);
  }
  // The user wants messages of some kind, and should at least be told that the value is invalid
  // (runtime/variables.cpp).
  return TUFF_LOG_WARNING;
}

// Other threads, which exist in the parent alone, may have held the mutex at the time of the fork. Calls that a child
// makes log their refusal, and tuff_set_log works there.
void renew_after_fork() {
  Log& log = shared_log();
  ::new (static_cast<void*>(&log.mutex)) SharedMutex(LockRank::log);
  for (int i = 0; i < delivering; ++i) log.mutex.native().lock_shared();  // as this thread did
  if (!log.changing) return;
  log.set_callback(nullptr, nullptr);
  log.set_level(level_from_environment());
}

// The log is constructed when the library is loaded: in a child of a process whose other thread had been constructing
// it, it never would be.
[[maybe_unused]] const bool renewed = (shared_log(), platform::call_in_forked_children(renew_after_fork));

void write_line(const Log& log, int32_t level, const std::string& line) {
  if (log.callback != nullptr) {
    log.callback(log.user, level, line.c_str());
  } else {
    std::fprintf(stderr, "tuff %s: %s\n", kLevelNames[static_cast<size_t>(level)], line.c_str());
  }
}

}  // namespace

void set_log(tuff_log_callback callback, void* user, int32_t level) {
  Log& log = shared_log();
  const bool on = callback != nullptr && level > TUFF_LOG_OFF;
  const std::unique_lock lock(log.mutex);
  log.set_callback(on ? callback : nullptr, on ? user : nullptr);
  log.set_level(on ? level : level_from_environment());
}

void set_dispatch_listener(void (*listener)(std::string_view)) {
  Log& log = shared_log();
  const std::unique_lock lock(log.mutex);
  log.listener = listener;
  log.set_level(log.own_level == kUnknown ? level_from_environment() : log.own_level);
}

bool detail::log_enabled(int32_t level) noexcept {
  if (log_level.load(std::memory_order_relaxed) == std::numeric_limits<int32_t>::max()) {
    Log& log = shared_log();
    const std::unique_lock lock(log.mutex);
    if (log.own_level == kUnknown) log.set_level(level_from_environment());
  }
  return level <= log_level.load(std::memory_order_relaxed) && level > TUFF_LOG_OFF;
}

LogRepeat*& LogRepeat::current() noexcept {
  constinit static thread_local LogRepeat* call = nullptr;
  return call;
}

void log_message(int32_t level, std::string_view message) noexcept {
  if (level == TUFF_LOG_DISPATCH && !LogRepeat::tells()) return;
  try {
    Log& log = shared_log();
    const std::shared_lock lock(log.mutex);
    const Delivery delivery;
    if (level == TUFF_LOG_DISPATCH && log.listener != nullptr) log.listener(message);
    if (level > log.own_level) return;  // meant for the listener, or the level has changed since the caller's check
    // A message is one line; a compiler's log becomes several messages.
    while (!message.empty()) {
      const size_t end = message.find('\n');
      const std::string_view line = message.substr(0, end);
      if (!line.empty()) write_line(log, level, std::string(line));
      message = end == std::string_view::npos ? std::string_view() : message.substr(end + 1);
    }
  } catch (...) {
  }
}

void detail::log_formatted(int32_t level, fmt::string_view format, fmt::format_args args) noexcept {
  try {
    log_message(level, fmt::vformat(format, args));
  } catch (...) {
  }
}

}  // namespace tuff
