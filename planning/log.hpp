// Messages for whoever asked: the callback of tuff_set_log, or stderr under TUFF_LOG. Silent by default.
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
// Of the messages that are made, for the log or for the listener; the largest number until TUFF_LOG has been read.
inline std::atomic<int32_t> log_level{std::numeric_limits<int32_t>::max()};
bool log_enabled(int32_t level) noexcept;
}  // namespace detail

// One relaxed load: cheap enough for every dispatch.
inline bool log_enabled(int32_t level) noexcept {
  return level <= detail::log_level.load(std::memory_order_relaxed) && detail::log_enabled(level);
}

// None of these throws: where there is no memory for a message, it is lost and nothing else is.
void log_message(int32_t level, std::string_view message) noexcept;
namespace detail {
void log_formatted(int32_t level, fmt::string_view format, fmt::format_args args) noexcept;
}

// Messages of TUFF_LOG_DISPATCH are made for the listener too, whatever level the log has; it runs on the thread that
// they come from. Null: none.
void set_dispatch_listener(void (*listener)(std::string_view message));

template <typename... Args>
void log(int32_t level, fmt::format_string<Args...> format, Args&&... args) noexcept {
  if (log_enabled(level)) detail::log_formatted(level, format, fmt::make_format_args(args...));
}

}  // namespace tuff
