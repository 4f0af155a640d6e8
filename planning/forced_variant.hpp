// The variant that an environment variable such as TUFF_GEMM_VARIANT forces on a family's planners, for tests. Each
// variable is read once.
#pragma once

#include <optional>
#include <string>

#include "platform/platform.hpp"

namespace tuff {

template <platform::VariableName name>
const std::optional<std::string>& forced_variant() {
  return platform::environment_once<name>();
}

}  // namespace tuff
