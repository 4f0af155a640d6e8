// What kernels reach by their parameters, compared with what their dispatches bind and launch.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "planning/dispatch.hpp"
#include "planning/recorder.hpp"

namespace tuff_test {

// Says in what way a dispatch binds more or less than its kernel reaches, or launches fewer workgroups than there is
// work for; empty if it does not, or if nothing is known of the kernel. `parameters`: the last ones that were recorded.
std::string wrong_reach(const tuff::KernelRequest& kernel, const tuff::Dispatch& dispatch,
                        std::span<const std::byte> parameters, const tuff::DeviceTraits& device);

}  // namespace tuff_test
