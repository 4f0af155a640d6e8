// Plans a GEMM of few rows or columns for NVIDIA's Hopper GPUs: a kernel in PTX (gemm_narrow.cpp).
#include <algorithm>

#include "kernels/gemm/gemm_plan.hpp"
#include "kernels/gemm/native/gemm_narrow.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/native/refusals.hpp"
#include "planning/log.hpp"

namespace tuff::gemm {
namespace {

struct NarrowVariant {
  const char* name;
  uint32_t rows;
};

constexpr NarrowVariant kVariants[] = {{"narrow_32", 32}, {"narrow_48", 48},   {"narrow_64", 64},  {"narrow_80", 80},
                                       {"narrow_96", 96}, {"narrow_112", 112}, {"narrow_128", 128}};
Refusals refusals;
constexpr uint64_t kSplitLength = 16384, kMinPart = 2048;  // of k that is split, and of its parts
constexpr uint64_t kMaxLength = uint64_t{1} << 31;         // of k
constexpr uint64_t kShortLength = 2048;
constexpr uint64_t kMinRows = 256, kMinLength = 256, kMinMeasured = 64;
// With at most kFew rows, elements of the long operand from which this is better than `skinny`. With more than kMany,
// tiles of wgmma are as fast from so many elements on, or such a k. For 16 bits those with 64 columns are as fast
// whatever the size, or much faster if k is short, and those with 64 rows if B has many more columns than k (H200).
constexpr uint64_t kFew = 4, kMany = 32, kHugeLength = 8192, kManyForLength = 16;
constexpr double kLarge = 0x1p21, kHuge = 0x1p26;
// In bytes of the long operand that a multiprocessor reads while all of them do (H200): a byte of the short operand,
// which comes from the L2 cache; the share of time that is lost if nearly all multiprocessors are idle; what a block
// needs for a byte of either operand if it has all of the memory's rate; a second pass.
constexpr double kShortCost = 0.3, kIdleCost = 0.15, kLongAlone = 0.33, kShortAlone = 0.7, kSecondPass = 130e3;
constexpr uint64_t kPieceBytes = 16;

// A product as the kernel sees it.
struct Operands {
  uint64_t rows, columns;  // of the long operand, of the short one
  int32_t type_long, type_short;
  uint64_t ld_long, ld_short, stride_long, stride_short;
  bool long_along_k, short_along_k;
  bool transposed;  // the long operand is B
};

Operands operands_of(const Plan& plan) {
  const GemmArgs& args = plan.args;
  if (args.n > args.m) {
    return {args.n,        args.m,        args.b_type, args.a_type, args.ldb, args.lda,
            args.stride_b, args.stride_a, plan.tb,     !plan.ta,    true};
  }
  return {args.m,        args.n,        args.a_type, args.b_type, args.lda, args.ldb,
          args.stride_a, args.stride_b, !plan.ta,    plan.tb,     false};
}

bool is_half(int32_t type) { return type == TUFF_F16 || type == TUFF_BF16; }

// The copy of the short operand that the kernel reads instead: 8-bit floats become the type of a long operand of 16
// bits. Beside a long operand of 8 bits its rows run along k.
CopyRequest copy_of_short(const Operands& x) {
  if (is_half(x.type_long)) return {x.type_short != x.type_long, x.type_long, false};
  return {!x.short_along_k, x.type_short, true};
}

bool computes_types(int32_t type_long, int32_t type_short) {
  const bool bytes_long = kFloat8Types.has(type_long), bytes_short = kFloat8Types.has(type_short);
  return bytes_long ? bytes_short || is_half(type_short)
                    : is_half(type_long) && (type_long == type_short || bytes_short);
}

bool computes(const DeviceTraits& traits, const Plan& plan) {
  const GemmArgs& args = plan.args;
  if (!traits.hopper || plan.windows != nullptr || args.c_array != nullptr) return false;
  const Operands x = operands_of(plan);
  const auto loadable = [](const Buffer* buffer, int32_t type, uint64_t ld, uint64_t stride) {
    return aligned(buffer, type, ld, stride, kPieceBytes / dtype_size(type));
  };
  if (!computes_types(x.type_long, x.type_short)) return false;
  const CopyRequest copy = copy_of_short(x);
  if (copy.wanted && copy.transposed && !can_transpose(traits)) return false;
  const Buffer *const of_long = x.transposed ? args.b : args.a, *const of_short = x.transposed ? args.a : args.b;
  return x.columns <= Narrow::kMaxColumns && args.k < kMaxLength && args.ldc <= UINT32_MAX &&
         args.epilogue.ld_residual <= UINT32_MAX && loadable(of_long, x.type_long, x.ld_long, x.stride_long) &&
         (copy.wanted || loadable(of_short, x.type_short, x.ld_short, x.stride_short));
}

bool takes_second_pass(const GemmArgs& args) {
  // Elements of 8 bits are stored, but not read.
  if (kFloat8Types.has(args.c_type) && (args.beta != 0 || args.epilogue.has_operands())) return true;
  return !ptx::activates(args.epilogue.activation, args.c_type);
}

uint64_t tiles_of(const GemmArgs& args, const NarrowVariant& variant) {
  return ceil_div(std::max(args.m, args.n), variant.rows) * args.batch_count;
}

// What the text of the kernel depends on, without the epilogue.
Narrow kernel_of(const DeviceTraits& traits, const Plan& plan, const NarrowVariant& variant) {
  const Operands x = operands_of(plan);
  Narrow kernel;
  kernel.type = x.type_long;
  kernel.short_type = x.type_short;
  kernel.long_along_k = x.long_along_k;
  kernel.short_along_k = x.short_along_k;
  if (const CopyRequest copy = copy_of_short(x); copy.wanted) {
    kernel.short_type = copy.type;
    kernel.short_along_k = x.short_along_k != copy.transposed;
  }
  kernel.transposed = x.transposed;
  kernel.rows = variant.rows;
  kernel.columns = 8;
  while (kernel.columns < x.columns) kernel.columns *= 2;
  // One block with all the shared memory reads memory fastest. Two hide each other's beginning and end, which counts if
  // k is short.
  if (plan.args.k > kShortLength || tiles_of(plan.args, variant) <= cores_of(traits) || !kernel.fits()) {
    kernel.blocks = 1;
  }
  return kernel;
}

// The number of blocks up to which k is split: if half of the multiprocessors would be idle and k is long enough to pay
// for the second pass.
uint64_t wanted_groups(const DeviceTraits& traits, uint64_t tiles, uint64_t k) {
  return tiles * 2 <= cores_of(traits) && k >= kSplitLength ? cores_of(traits) : tiles;
}

// The time, in bytes that a multiprocessor reads while all of them do. All blocks but the last ones share the memory's
// rate evenly.
double time_of(const DeviceTraits& traits, const GemmArgs& args, const NarrowVariant& variant, uint32_t blocks) {
  const uint64_t tiles = tiles_of(args, variant), at_once = cores_of(traits) * blocks;
  const uint64_t slices = slices_of_k(args.k, tiles, wanted_groups(traits, tiles, args.k), kMinPart);
  const uint64_t all = tiles * slices, last = (all - 1) % at_once + 1;
  const double columns = static_cast<double>(std::min(args.m, args.n)), rows = variant.rows;
  const double bytes = static_cast<double>(dtype_size(args.n > args.m ? args.b_type : args.a_type));
  const double row = static_cast<double>(args.k) / static_cast<double>(slices) * bytes;
  const double cores = static_cast<double>(cores_of(traits));
  const double idle = 1 - static_cast<double>(last) / static_cast<double>(at_once);
  const double shared = (rows + columns * kShortCost) * row / cores;
  const double last_ones = static_cast<double>(last) * shared * (1 + kIdleCost * idle);
  const double alone = (rows * kLongAlone + columns * kShortAlone) * row;
  return static_cast<double>(all - last) * shared + std::max(last_ones, alone) + (slices > 1 ? kSecondPass : 0);
}

// Whether no other kernel is better. Many rows and columns are for wgmma, and little memory for subgroups.
bool suits(const GemmArgs& args) {
  const uint64_t few = std::min(args.m, args.n), many = std::max(args.m, args.n);
  const double elements = static_cast<double>(many) * static_cast<double>(args.k * args.batch_count);
  if (many < kMinRows || args.k < kMinLength || (few <= kFew && elements < kLarge)) return false;
  if (few <= kMany) return true;
  if (elements > kHuge || args.k > kHugeLength) return false;
  const bool half = is_half(args.a_type) && args.a_type == args.b_type;
  return !half || (args.n > args.m && many <= kManyForLength * args.k);
}

}  // namespace

void offer_narrow(const DeviceTraits& traits, const Plan& plan, Offers& offers) {
  const GemmArgs& args = plan.args;
  if (!computes(traits, plan)) return;
  const bool measured = std::max(args.m, args.n) >= kMinMeasured && args.k >= kMinMeasured;
  const Fit fit = suits(args) ? Fit::suits : measured ? Fit::perhaps : Fit::by_name;
  for (uint32_t row = 0; row < std::size(kVariants); ++row) {
    const NarrowVariant& variant = kVariants[row];
    if (!offers.wants(variant.name) || refusals.has(row)) continue;
    if (tiles_of(args, variant) > traits.max_groups[0]) continue;
    const Narrow kernel = kernel_of(traits, plan, variant);
    if (!kernel.fits()) continue;
    offers.add({Kind::narrow, variant.name, row, time_of(traits, args, variant, kernel.blocks), fit});
  }
}

bool is_narrow_variant(std::string_view name) {
  return std::any_of(std::begin(kVariants), std::end(kVariants),
                     [&](const NarrowVariant& row) { return name == row.name; });
}

CopyRequest narrow_copy_of_a(const Plan& plan) {
  const Operands x = operands_of(plan);
  return x.transposed ? copy_of_short(x) : CopyRequest{};
}
CopyRequest narrow_copy_of_b(const Plan& plan) {
  const Operands x = operands_of(plan);
  return x.transposed ? CopyRequest{} : copy_of_short(x);
}

bool record_narrow(Recorder& recorder, Plan& plan) {
  const DeviceTraits& traits = recorder.traits();
  const GemmArgs& args = plan.args;
  const NarrowVariant& variant = kVariants[plan.choice.offer.row];
  const uint64_t tiles = tiles_of(args, variant);
  if (tiles * plan.choice.slices > traits.max_groups[0]) plan.choice.slices = 0;  // more parts than can be launched
  slice_k(plan, traits, tiles, wanted_groups(traits, tiles, args.k), kMinPart, kernel_of(traits, plan, variant).step());
  plan.to_scratch = plan.slices > 1 || takes_second_pass(args);
  take_scratch(recorder, plan);

  const Operands x = operands_of(plan);  // with the copy, if there is one
  Narrow kernel = kernel_of(traits, plan, variant);
  kernel.c_type = plan.out_type;
  kernel.beta = plan.beta() != 0;
  if (!plan.to_scratch) {
    kernel.activation = args.epilogue.activation;
    kernel.bias_axis = args.epilogue.bias_axis;
    kernel.residual = args.epilogue.residual != nullptr;
    kernel.scaled = args.epilogue.scaled();
  }
  const auto number = [](uint64_t value) { return static_cast<uint32_t>(value); };
  const uint64_t size_long = dtype_size(x.type_long), size_short = dtype_size(x.type_short);
  const uint64_t out_size = dtype_size(plan.out_type);
  const Narrow::Push push{
      .rows = number(x.rows),
      .columns = number(x.columns),
      .k = number(args.k),
      .k_slice = number(plan.k_slice),
      .tiles = number(ceil_div(x.rows, variant.rows)),
      .parts = number(plan.slices),
      .ldc = number(plan.out_ld),
      .ld_residual = number(args.epilogue.ld_residual),
      .ld_long = x.ld_long * size_long,
      .ld_short = x.ld_short * size_short,
      .stride_long = x.stride_long * size_long,
      .stride_short = x.stride_short * size_short,
      .stride_c = plan.out_stride * out_size,
      .slice_c = plan.to_scratch ? args.batch_count * plan.out_stride * out_size : 0,
      .stride_bias = args.epilogue.stride_bias * out_size,
      .stride_residual = args.epilogue.stride_residual * out_size,
      .alpha = static_cast<float>(plan.alpha()),
      .beta = static_cast<float>(plan.beta()),
  };
  Dispatch dispatch("gemm native");
  if (!x.transposed) plan.operand_a(dispatch);
  plan.operand_b(dispatch);
  if (x.transposed) plan.operand_a(dispatch);
  plan.operand_out(dispatch);
  plan.epilogue_operands(dispatch);
  if (kernel.scaled) scale_operands(dispatch, args.epilogue);
  dispatch.push(push);
  dispatch.groups(number(tiles * plan.slices)).work(work_bytes(plan), operations_of(args)).variant(variant.name);
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    log(TUFF_LOG_DISPATCH, "gemm {}{} {} {}x{}x{} batch {}: {} ({}), {} tiles, {} parts of k", plan.ta ? 't' : 'n',
        plan.tb ? 't' : 'n', dtype_name(args.a_type), args.m, args.n, args.k, args.batch_count, variant.name,
        reason(plan), tiles, plan.slices);
  }
  return refusals.dispatch(recorder, kernel.request(), dispatch, "gemm", plan.choice.offer.row);
}

}  // namespace tuff::gemm
