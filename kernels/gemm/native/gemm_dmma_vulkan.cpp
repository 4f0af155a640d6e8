// Plans a GEMM of f64 for NVIDIA's Hopper GPUs: a kernel in PTX (gemm_dmma.cpp).
#include <algorithm>

#include "kernels/gemm/gemm_plan.hpp"
#include "kernels/gemm/native/gemm_dmma.hpp"
#include "kernels/native/refusals.hpp"
#include "planning/log.hpp"

namespace tuff::gemm {
namespace {

struct DmmaVariant {
  const char* name;
  uint32_t rows, columns;
  uint32_t together;  // blocks that a multiprocessor runs at the same time
  double rate;        // of a multiprocessor, relative to the best
  double ends;        // the time of a tile outside the loop over k, in elements of k
};

constexpr DmmaVariant kVariants[] = {
    {"dmma_128x128", 128, 128, 1, 1.00, 40},
    {"dmma_128x64", 128, 64, 1, 0.90, 60},
    {"dmma_64x64", 64, 64, 2, 0.85, 60},
};
Refusals refusals;
constexpr uint64_t kMinSlice = 128;  // minimum length of a split-K part, so that it pays for the second pass
// The time of the second pass, in products of a multiprocessor: its start, and an element that it reads or writes.
constexpr double kSecondPass = 5e5, kSumElement = 0.3;
constexpr uint64_t kMinExtent = 32;                   // with fewer rows or columns, other kernels are better
constexpr uint64_t kMinLength = 16;                   // of k
constexpr uint64_t kMaxElements = uint64_t{1} << 31;  // offsets within an operand have 32 bits

bool computes(const DeviceTraits& traits, const Plan& plan) {
  const GemmArgs& args = plan.args;
  return traits.hopper && args.a_type == TUFF_F64 && args.b_type == TUFF_F64 && args.c_type == TUFF_F64 &&
         plan.windows == nullptr && args.c_array == nullptr && args.ldc <= UINT32_MAX && args.k <= UINT32_MAX &&
         plan.a_elements < kMaxElements && plan.b_elements < kMaxElements;
}

uint64_t tiles_of(const GemmArgs& args, const DmmaVariant& variant) {
  return ceil_div(args.m, variant.rows) * ceil_div(args.n, variant.columns) * args.batch_count;
}

// The number of blocks up to which k is split: if half of the multiprocessors would be idle and k is long enough to pay
// for the second pass.
uint64_t wanted_groups(const DeviceTraits& traits, const DmmaVariant& variant, uint64_t tiles, uint64_t k) {
  const uint64_t cores = cores_of(traits);
  return tiles * 2 <= cores && k >= 2 * kMinSlice ? cores * variant.together : tiles;
}

// Two elements are loaded, or stored, at once.
bool in_pairs(const Buffer* buffer, uint64_t ld, uint64_t stride) { return aligned(buffer, TUFF_F64, ld, stride, 2); }

}  // namespace

void offer_dmma(const DeviceTraits& traits, const Plan& plan, Offers& offers) {
  const GemmArgs& args = plan.args;
  if (!computes(traits, plan)) return;
  const bool suits = args.m >= kMinExtent && args.n >= kMinExtent && args.k >= kMinLength;
  for (uint32_t row = 0; row < std::size(kVariants); ++row) {
    const DmmaVariant& variant = kVariants[row];
    if (!offers.wants(variant.name) || refusals.has(row)) continue;
    const uint64_t tiles = tiles_of(args, variant);
    if (tiles > UINT32_MAX / 256) continue;  // times the parts of k
    const uint64_t slices = slices_of_k(args.k, tiles, wanted_groups(traits, variant, tiles, args.k), kMinSlice);
    const uint64_t rounds = ceil_div(tiles * slices, cores_of(traits) * variant.together) * variant.together;
    const double length = static_cast<double>(args.k) / static_cast<double>(slices) + variant.ends;
    double time = static_cast<double>(rounds * variant.rows * variant.columns) * length / variant.rate;
    if (slices > 1)
      time += kSecondPass + kSumElement * static_cast<double>(args.m * args.n * (slices + 1) * args.batch_count);
    offers.add({Kind::dmma, variant.name, row, time, suits ? Fit::suits : Fit::perhaps});
  }
}

bool is_dmma_variant(std::string_view name) {
  return std::any_of(std::begin(kVariants), std::end(kVariants),
                     [&](const DmmaVariant& row) { return name == row.name; });
}

bool record_dmma(Recorder& recorder, Plan& plan) {
  const DeviceTraits& traits = recorder.traits();
  const GemmArgs& args = plan.args;
  const DmmaVariant& variant = kVariants[plan.choice.offer.row];
  const uint64_t tiles = tiles_of(args, variant);
  Dmma kernel;
  slice_k(plan, traits, tiles, wanted_groups(traits, variant, tiles, args.k), kMinSlice, Dmma::kStep);
  plan.to_scratch = plan.slices > 1 || needs_finish(args);
  take_scratch(recorder, plan);

  kernel.trans_a = plan.ta;
  kernel.trans_b = plan.tb;
  kernel.rows = variant.rows;
  kernel.columns = variant.columns;
  kernel.edge = args.m % variant.rows != 0 || args.n % variant.columns != 0 || args.k % Dmma::kStep != 0;
  kernel.beta = plan.beta() != 0;
  kernel.c_part = plan.to_scratch ? GemmPart::all : args.c_part;
  kernel.pairs = in_pairs(args.a, args.lda, args.stride_a) && in_pairs(args.b, args.ldb, args.stride_b);
  kernel.vector = in_pairs(plan.out, plan.out_ld, plan.out_stride) && args.n % 2 == 0;
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  constexpr uint64_t kBytes = sizeof(double);
  const Dmma::Push push{
      .m = number(args.m),
      .n = number(args.n),
      .k = number(args.k),
      .k_slice = number(plan.k_slice),
      .tiles_m = number(ceil_div(args.m, variant.rows)),
      .tiles_n = number(ceil_div(args.n, variant.columns)),
      .tiles = number(tiles * plan.slices),
      .matrices = number(args.batch_count),
      .lda = number(args.lda),
      .ldb = number(args.ldb),
      .ldc = number(plan.out_ld),
      .unused = 0,
      .stride_a = args.stride_a * kBytes,
      .stride_b = args.stride_b * kBytes,
      .stride_c = plan.out_stride * kBytes,
      .slice_c = plan.to_scratch ? args.batch_count * plan.out_stride * kBytes : 0,
      .alpha = plan.alpha(),
      .beta = plan.beta(),
  };
  Dispatch dispatch("gemm native");
  plan.operand_a(dispatch);
  plan.operand_b(dispatch);
  plan.operand_out(dispatch);
  dispatch.push(push);
  dispatch.groups(number(std::min<uint64_t>(push.tiles, cores_of(traits) * variant.together)))
      .work(work_bytes(plan), operations_of(args))
      .variant(variant.name);
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    log(TUFF_LOG_DISPATCH, "gemm {}{} f64 {}x{}x{} batch {}: {} ({}), {} tiles, {} parts of k{}{}", plan.ta ? 't' : 'n',
        plan.tb ? 't' : 'n', args.m, args.n, args.k, args.batch_count, variant.name, reason(plan), tiles, plan.slices,
        kernel.edge ? ", with edges" : "", kernel.pairs ? "" : ", single elements");
  }
  return refusals.dispatch(recorder, kernel.request(), dispatch, "gemm", plan.choice.offer.row);
}

}  // namespace tuff::gemm
