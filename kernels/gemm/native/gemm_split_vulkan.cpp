// Plans a GEMM of f32 for NVIDIA's Hopper GPUs: a kernel in PTX (gemm_split.cpp).
#include <algorithm>
#include <string_view>

#include "kernels/gemm/gemm_plan.hpp"
#include "kernels/gemm/native/gemm_split.hpp"
#include "kernels/gemm/native/wgmma_plan.hpp"
#include "kernels/native/refusals.hpp"
#include "planning/log.hpp"

namespace tuff::gemm {
namespace {

constexpr const char* kVariant = "split_128x128";
Refusals refusals;
constexpr uint64_t kQuad = 4;  // numbers in 16 bytes

// Whether this kernel can load rows that are windows of images.
bool loadable(const Plan& plan, const Extents& all) {
  const Windows& windows = *plan.windows;
  const Buffer* image = windows.of_a ? plan.args.a : plan.args.b;
  return windows.padded && !windows.of_k && windows.filter.elements == 0 && windows.groups == 1 &&
         in_pieces(windows, kQuad) && windows.channels >= kMinTap && image->offset % 16 == 0 &&
         std::max(all.m, all.n) < kMaxWindows && plan.args.k < kMaxWindows &&
         (windows.of_a || plan.args.n >= Wgmma::kMinPerImage);
}

// A permission for less than f32 is used where other kernels can use it, which are asked before.
bool computes(const DeviceTraits& traits, const Plan& plan) {
  const GemmArgs& args = plan.args;
  const bool shorter = args.precision == TUFF_PRECISION_ALLOW_F16 || args.precision == TUFF_PRECISION_ALLOW_BF16;
  return traits.hopper && args.a_type == TUFF_F32 && args.b_type == TUFF_F32 && !shorter &&
         (plan.windows == nullptr || loadable(plan, extents_of(args, plan.windows))) && args.c_array == nullptr &&
         std::max(args.lda, args.ldb) < Split::kMaxLd && args.ldc <= UINT32_MAX && args.k <= UINT32_MAX &&
         args.epilogue.ld_residual <= UINT32_MAX;
}

uint64_t tiles_of(const Extents& all) {
  return ceil_div(all.m, Split::kRows) * ceil_div(all.n, Split::kColumns) * all.batch;
}

// In seconds, on an H200: a tile takes 40 ns for each of k, and as long as 60 of k for its ends.
double time_of(const DeviceTraits& traits, const Extents& all, uint64_t k, uint64_t tiles) {
  constexpr double kEach = 40e-9, kEnds = 60;
  constexpr double kBestTile = 10.7e-9 / (128 * 256);  // a multiply-add of the best tile of 16 bits
  const uint64_t slices = slices_of_k(k, tiles, wanted_groups(traits, tiles, k), kMinWgmmaSlice);
  const double rounds = static_cast<double>(ceil_div(tiles * slices, cores_of(traits)));
  const double sums = static_cast<double>(all.m * all.n * all.batch * slices);
  return rounds * kEach * (static_cast<double>(k) / static_cast<double>(slices) + kEnds) +
         (slices > 1 ? second_pass_time(sums) * kBestTile : 0);
}

// About what tiles in SPIR-V take.
double time_of_tiles(const Extents& all, uint64_t k) {
  constexpr double kCall = 3e-6, kRate = 27e12, kSide = 64;
  const double operations = 2.0 * static_cast<double>(all.m * all.batch) * static_cast<double>(all.n * k);
  return kCall + operations / (kRate * std::min(1.0, static_cast<double>(std::min(all.m, all.n)) / kSide));
}

bool in_quads(const Buffer* buffer, uint64_t ld, uint64_t stride, uint64_t row) {
  return aligned(buffer, TUFF_F32, ld, stride, 4) && row % 4 == 0;
}

}  // namespace

void offer_split(const DeviceTraits& traits, const Plan& plan, Offers& offers) {
  const GemmArgs& args = plan.args;
  if (!offers.wants(kVariant) || refusals.has(0) || !computes(traits, plan)) return;
  const Extents all = extents_of(args, plan.windows);
  const uint64_t tiles = tiles_of(all);
  if (tiles > UINT32_MAX / 256) return;  // times the parts of k
  const double time = time_of(traits, all, args.k, tiles);
  const bool suits = std::min(all.m, all.n) >= kMinExtent && args.k >= kMinLength && time < time_of_tiles(all, args.k);
  offers.add({Kind::split, kVariant, 0, time, suits ? Fit::suits : Fit::perhaps});
}

bool is_split_variant(std::string_view name) { return name == kVariant; }

bool record_split(Recorder& recorder, Plan& plan) {
  const DeviceTraits& traits = recorder.traits();
  const GemmArgs& args = plan.args;
  const Extents all = extents_of(args, plan.windows);
  const uint64_t tiles = tiles_of(all);
  slice_k(plan, traits, tiles, wanted_groups(traits, tiles, args.k), kMinWgmmaSlice, Wgmma::kStep);
  plan.to_scratch = plan.slices > 1 || takes_second_pass(args) || kFloat8Types.has(args.c_type) || !adds_residual(plan);
  take_scratch(recorder, plan);

  Split kernel;
  set_options(plan, all, kernel);
  if (!plan.to_scratch) kernel.c_part = args.c_part;
  kernel.quads_a = in_quads(args.a, args.lda, args.stride_a, plan.ta ? args.m : args.k);
  kernel.quads_b = in_quads(args.b, args.ldb, args.stride_b, plan.tb ? args.k : args.n);
  Wgmma::Push push = wgmma_push(plan, all, kernel, tiles, 1);
  Dispatch dispatch = wgmma_dispatch(traits, plan, kernel, push, kVariant);
  if (plan.windows == nullptr) {
    dispatch.push(push);
  } else {
    kernel.windows = plan.windows->of_a ? 1 : 2;
    kernel.padded = true;
    (plan.windows->of_a ? kernel.quads_a : kernel.quads_b) = true;
    (plan.windows->of_a ? push.lda : push.ldb) /= kQuad;
    push.stride_bias = image_push(*plan.windows);
    dispatch.push(windows_push(plan, push, kQuad));
  }
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    log(TUFF_LOG_DISPATCH, "gemm {}{} f32 {}x{}x{} batch {}: {} ({}), {} tiles, {} parts of k{}{}", plan.ta ? 't' : 'n',
        plan.tb ? 't' : 'n', args.m, args.n, args.k, args.batch_count, kVariant, reason(plan), tiles, plan.slices,
        kernel.edge ? ", with edges" : "", kernel.quads_a && kernel.quads_b ? "" : ", single elements");
  }
  return refusals.dispatch(recorder, kernel.request(), dispatch, "gemm", 0);
}

}  // namespace tuff::gemm
