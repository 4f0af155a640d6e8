// Matrix products of f32 from packed operands: gemm_pack.comp and gemm_panels.comp.
#pragma once

#include "kernels/gemm/gemm_plan.hpp"

namespace tuff::gemm {

// True if the device runs these kernels (a CPU with subgroups of a few lanes, operands bound by address), nothing is
// left to a second pass, and what packing and whole tiles cost is small beside the product's operations.
bool uses_panels(const Recorder& recorder, const Plan& plan);

void record_panels(Recorder& recorder, const GemmArgs& args);

}  // namespace tuff::gemm
