// Sizes of workgroups.
#pragma once

#include <algorithm>
#include <cstdint>

#include "planning/device_traits.hpp"

namespace tuff {

// The most invocations of a workgroup that lies along x, where a device may run fewer than in several dimensions.
inline uint32_t most_along_x(const DeviceTraits& traits) {
  return std::min(traits.max_invocations, traits.max_local_size[0]);
}

}  // namespace tuff
