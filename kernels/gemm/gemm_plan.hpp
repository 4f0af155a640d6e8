// What the planners of matrix products share: one dispatch's worth of a product, and what they ask about it.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/gemm/gemm.hpp"
#include "runtime/vulkan/recorder.hpp"

namespace tuff::gemm {

// One dispatch's worth, with what the kernels ask about its operands.
struct Plan {
  GemmArgs args;
  bool ta, tb, wide;
  uint64_t a_elements, b_elements, c_elements;  // footprints
  uint64_t slices = 1, k_slice;
  const Buffer* out;  // C, or scratch memory where k is cut into slices
  uint64_t out_elements, out_ld, out_stride;
};

uint64_t footprint(uint64_t rows, uint64_t cols, uint64_t ld, uint64_t stride, uint64_t batch_count);

// Every row of every matrix starts at a multiple of `elements`, from the first on.
bool aligned(const Buffer* buffer, uint64_t ld, uint64_t stride, uint64_t elements);

uint64_t cores_of(const DeviceTraits& traits);
double operations_of(const GemmArgs& args);
double work_bytes(const Plan& plan);
Access out_access(const Plan& plan);

// What TUFF_GEMM_VARIANT forces: a row of the table of tiles, "skinny", or 64-bit indices ("wide"). Empty: nothing.
std::string_view forced_variant();

// Cuts k into slices where `groups` workgroups leave most of the device idle: up to `wanted` workgroups, each
// with at least `least` of k, a multiple of `unit`. The slices depend on nothing but shape and device.
void slice_k(Plan& plan, Recorder& recorder, uint64_t groups, uint64_t wanted, uint64_t least, uint64_t unit);

// gemm_tiles_vulkan.cpp: the best tile of C for each workgroup.
void record_tiles(Recorder& recorder, Plan& plan);

// gemm_skinny_vulkan.cpp: m or n of at most kMostShort.
constexpr uint64_t kMostShort = 4;
void record_skinny(Recorder& recorder, Plan& plan);

// gemm_finish_vulkan.cpp: C = alpha * (the slices' sums) + beta * C; with no slices, C = beta * C.
void record_finish(Recorder& recorder, const GemmArgs& args, const Buffer* partials, uint64_t slices);

}  // namespace tuff::gemm
