// GEMM with sums in f32 and packed operands: gemm_pack.comp and gemm_panels.comp.
#pragma once

#include "kernels/gemm/gemm_plan.hpp"

namespace tuff::gemm {

// Offers these kernels if the device runs them: a CPU device with subgroups of a few lanes and operands bound by
// address. They suit if packing, padding to whole tiles, copies of 16-bit inputs and a second pass for an epilogue cost
// little beside the GEMM itself: less than the extra time of other kernels.
void offer_panels(const Recorder& recorder, const Plan& plan, Offers& offers);

void record_panels(Recorder& recorder, Plan& plan);

// For planners that multiply by one matrix again and again: op(B) = B^T, n x k in f32 with rows of k, packed once.
// Whether the kernels take products of m rows with it.
bool takes_packed(const Recorder& recorder, uint64_t m, uint64_t n, uint64_t k);
uint64_t packed_bytes(const Recorder& recorder, uint64_t n, uint64_t k);
void record_packing(Recorder& recorder, const Buffer& b, uint64_t n, uint64_t k, const Buffer& packed);
// C = A * B^T, with dense A (m x k) and C (m x n). Uses inner scratch memory.
void record_packed_product(Recorder& recorder, const Buffer& a, const Buffer& packed, const Buffer& c, uint64_t m,
                           uint64_t n, uint64_t k);

}  // namespace tuff::gemm
