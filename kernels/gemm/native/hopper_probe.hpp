// Whether this driver and GPU run kernels in PTX for Hopper's tensor cores.
#pragma once

#include "planning/probe.hpp"

namespace tuff::gemm {

extern const Probe hopper_probe;

}  // namespace tuff::gemm
