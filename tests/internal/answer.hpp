// What a check, or a planner, says to a call.
#pragma once

#include <functional>
#include <string>

#include "planning/status.hpp"

namespace tuff {

// The message of a refused call; "accepted" if it is not refused.
inline std::string answer(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace tuff
