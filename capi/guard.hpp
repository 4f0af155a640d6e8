// Wrapper around every exported function. It turns exceptions into status codes, keeps their message, prefixed with
// the function's name, for tuff_last_error, and rejects calls in a forked child.
#pragma once

#include <string_view>
#include <utility>

#include "tuff/tuff.h"

namespace tuff::capi {

// In a forked child of the process that first used a device.
bool is_foreign_process() noexcept;
// Returns NOT_INITIALIZED and keeps its message. Throws nothing even internally: to find a handler, libgcc 12 locks a
// mutex that another thread may have held during the fork.
tuff_status report_fork(const char* function) noexcept;

// Marks this process as the one that uses devices. Neither drivers nor locks held by other threads survive a fork.
void claim_process();

// Keeps the message of the exception being handled and returns its code.
tuff_status report_exception(const char* function) noexcept;

std::string_view last_error() noexcept;

// Runs the body of an exported function.
template <typename Body>
tuff_status guarded(const char* function, Body&& body) noexcept {
  if (is_foreign_process()) [[unlikely]] {
    return report_fork(function);
  }
  try {
    std::forward<Body>(body)();
    return TUFF_OK;
  } catch (...) {
    return report_exception(function);
  }
}

}  // namespace tuff::capi
