// The shapes of the kernels of this folder. TUFF_SHAPE_VARIANT=gpu or cpu in the environment forces those of one kind
// of device, for tests.
#pragma once

#include <optional>
#include <string>

#include "kernels/common/stream_device.hpp"
#include "runtime/platform/platform.hpp"

namespace tuff {

inline StreamDevice shape_device(const DeviceTraits& traits) {
  static const std::optional<std::string> forced = platform::environment("TUFF_SHAPE_VARIANT");
  return stream_device(traits, forced, sizeof(float));
}

}  // namespace tuff
