// Sizes of workgroups.
#pragma once

#include <algorithm>
#include <cstdint>

#include "planning/device_traits.hpp"

namespace tuff {

// The maximum number of invocations of a one-dimensional workgroup, which may be below that of a three-dimensional one.
inline uint32_t max_along_x(const DeviceTraits& traits) {
  return std::min(traits.max_invocations, traits.max_local_size[0]);
}

}  // namespace tuff
