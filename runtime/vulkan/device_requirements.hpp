// What Tuff requires of a device.
#pragma once

#include <string>

#include "runtime/vulkan/instance.hpp"

namespace tuff {

// A readable list of everything that the device lacks, with what it reports instead; empty if it is usable.
std::string missing(const PhysicalDevice& device);

}  // namespace tuff
