// Messages for whoever asked: the callback of tuff_set_log, or stderr under TUFF_LOG. Silent by default.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "tuff/tuff.h"

namespace tuff {

void set_log(tuff_log_callback callback, void* user, int32_t level);
bool log_enabled(int32_t level) noexcept;  // one relaxed load: cheap enough for every dispatch
void log_message(int32_t level, std::string_view message);

// Messages of TUFF_LOG_DISPATCH are made for the listener too, whatever level the log has; it runs on the thread that
// they come from. Null: none.
void set_dispatch_listener(void (*listener)(std::string_view message));

template <typename... Args>
void log(int32_t level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_message(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tuff
