// GEMM with sums in f32 and packed operands: gemm_pack.comp and gemm_panels.comp.
#pragma once

#include "kernels/gemm/gemm_plan.hpp"

namespace tuff::gemm {

// Offers these kernels if the device runs them: a CPU device with subgroups of a few lanes and operands bound by
// address. They suit if packing, padding to whole tiles, copies of 16-bit inputs and a second pass for an epilogue cost
// little beside the GEMM itself: less than the extra time of other kernels.
void offer_panels(const Recorder& recorder, const Plan& plan, Offers& offers);

void record_panels(Recorder& recorder, Plan& plan);

}  // namespace tuff::gemm
