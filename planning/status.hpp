// Errors inside Tuff: one exception type with a TUFF_ERROR_* code and a message. capi/ turns it into a return code and
// puts the function's name in front of the message.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "tuff/tuff.h"

namespace tuff {

class Error : public std::exception {
 public:
  Error(tuff_status code, std::string message) : code_(code), message_(std::move(message)) {}
  tuff_status code() const noexcept { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  tuff_status code_;
  std::string message_;
};

template <typename... Args>
[[noreturn]] void fail(tuff_status code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// Checks an argument: throws INVALID_ARGUMENT unless the condition holds.
template <typename... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]] {
    fail(TUFF_ERROR_INVALID_ARGUMENT, format, std::forward<Args>(args)...);
  }
}

// A field that later versions may give a meaning.
template <typename T>
void require_reserved(T value, std::string_view name = "desc->reserved") {
  require(value == 0, "{} is {}, needs 0", name, value);
}

template <typename T>
void require_flag(T value, std::string_view name) {
  require(value == 0 || value == 1, "{} is {}, needs 0 or 1", name, value);
}

}  // namespace tuff
