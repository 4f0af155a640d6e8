// Matrix products of f32 from packed operands: gemm_pack.comp and gemm_panels.comp.
#pragma once

#include "kernels/gemm/gemm_plan.hpp"

namespace tuff::gemm {

// If the device runs these kernels (a CPU with subgroups of a few lanes, operands bound by address) and nothing is left
// to a second pass. They suit where what packing and whole tiles cost is small beside the product's operations.
void offer_panels(const Recorder& recorder, const Plan& plan, Offers& offers);

void record_panels(Recorder& recorder, const Plan& plan);

}  // namespace tuff::gemm
