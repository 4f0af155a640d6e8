// Log messages, sent to the callback of tuff_set_log, or to stderr if TUFF_LOG is set. Silent by default.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "tuff/tuff.h"

namespace tuff {

void set_log(tuff_log_callback callback, void* user, int32_t level);

namespace detail {
// The highest level for which messages are formatted, for the log or for the listener. The maximum int32_t until
// TUFF_LOG has been read.
inline std::atomic<int32_t> log_level{std::numeric_limits<int32_t>::max()};
bool log_enabled(int32_t level) noexcept;
}  // namespace detail

// One relaxed load: cheap enough for every dispatch.
inline bool log_enabled(int32_t level) noexcept {
  return level <= detail::log_level.load(std::memory_order_relaxed) && detail::log_enabled(level);
}

// None of these functions throws. A message is dropped if there is no memory for it.
void log_message(int32_t level, std::string_view message) noexcept;
namespace detail {
void log_formatted(int32_t level, fmt::string_view format, fmt::format_args args) noexcept;
}

// A planner may run twice for one call, and tell of each of its steps once all the same. While an object of this class
// exists, no message of level TUFF_LOG_DISPATCH of its thread is dropped or told twice: from repeat() on, the messages
// that come again are dropped.
class LogRepeat {
 public:
  LogRepeat() noexcept : outer_(current()) { current() = this; }
  ~LogRepeat() { current() = outer_; }
  LogRepeat(const LogRepeat&) = delete;
  LogRepeat& operator=(const LogRepeat&) = delete;
  void repeat() noexcept { again_ = told_; }

  // Whether this thread tells its next message.
  static bool tells() noexcept {
    LogRepeat* const call = current();
    if (call == nullptr) return true;
    if (call->again_ != 0) return --call->again_, false;
    return ++call->told_, true;
  }
  // Messages that come once.
  class Aside {
   public:
    Aside() noexcept : outer_(current()) { current() = nullptr; }
    ~Aside() { current() = outer_; }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

   private:
    LogRepeat* outer_;
  };

 private:
  static LogRepeat*& current() noexcept;

  LogRepeat* outer_;
  uint64_t told_ = 0, again_ = 0;
};

// Messages of level TUFF_LOG_DISPATCH also go to the listener, regardless of the log's level. The listener runs on the
// thread that logs the message. Null removes it.
void set_dispatch_listener(void (*listener)(std::string_view message));

template <typename... Args>
void log(int32_t level, fmt::format_string<Args...> format, Args&&... args) noexcept {
  if (log_enabled(level)) detail::log_formatted(level, format, fmt::make_format_args(args...));
}

}  // namespace tuff
