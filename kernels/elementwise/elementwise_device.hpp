// TUFF_ELEMENTWISE_VARIANT=gpu or cpu in the environment forces the shapes of that kind of device, for tests.
#pragma once

#include <optional>
#include <string>

#include "kernels/common/stream_device.hpp"
#include "runtime/platform/platform.hpp"

namespace tuff {

inline const std::optional<std::string>& elementwise_variant() {
  static const std::optional<std::string> forced = platform::environment("TUFF_ELEMENTWISE_VARIANT");
  return forced;
}

}  // namespace tuff
