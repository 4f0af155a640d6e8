// Reads the description of a custom kernel.
#pragma once

#include "runtime/compute_backend.hpp"
#include "tuff/tuff.h"

namespace tuff::capi {

// Throws INVALID_ARGUMENT, LIMIT_EXCEEDED and UNSUPPORTED.
KernelOptions read_kernel_options(const tuff_kernel_desc& desc);

}  // namespace tuff::capi
