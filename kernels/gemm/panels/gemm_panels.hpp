// Matrix products with sums in f32 from packed operands: gemm_pack.comp and gemm_panels.comp.
#pragma once

#include "kernels/gemm/gemm_plan.hpp"

namespace tuff::gemm {

// If the device runs these kernels (a CPU with subgroups of a few lanes, operands bound by address). They suit where
// what packing and whole tiles cost is small beside the product's operations, and with it copies of inputs of 16 bits
// and a second pass for an epilogue: less than what other kernels, which have neither, take longer.
void offer_panels(const Recorder& recorder, const Plan& plan, Offers& offers);

void record_panels(Recorder& recorder, Plan& plan);

}  // namespace tuff::gemm
