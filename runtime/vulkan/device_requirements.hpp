// What Tuff needs of a device.
#pragma once

#include <string>

#include "runtime/vulkan/instance.hpp"

namespace tuff {

// All that the device lacks, as a list for a person, with what it reports; empty if it is usable.
std::string missing(const PhysicalDevice& device);

}  // namespace tuff
