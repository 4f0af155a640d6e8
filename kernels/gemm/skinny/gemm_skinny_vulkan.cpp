// Matrix times vector and other skinny GEMMs: bound by reading one operand once, as it is stored.
#include <algorithm>

#include "kernels/common/workgroup.hpp"
#include "kernels/gemm/gemm_plan.hpp"
#include "planning/log.hpp"
#include "shaders/gemm_cols.hpp"
#include "shaders/gemm_rows.hpp"
#include "shaders/gemm_skinny_common.hpp"

namespace tuff::gemm {
namespace {

// kFew: rows or columns for which these kernels suit any device. On a GPU they suit up to twice as many if the long
// side and k are at least kLong and keep it busy; elsewhere tiles are up to twelve times faster (docs/gemm.md).
// kMaxShort: the maximum that they compute at all.
constexpr uint64_t kFew = 4, kMaxShort = 16, kLong = 256;
// For CPU devices and rows that run across k: minimum adjacent vec4 per lane, maximum sums of vec4 per lane, and
// minimum steps of k of a split-K part. Memory is read fastest about a page at a time: with 1 KiB of every row,
// prefetched data is evicted before it is used.
constexpr uint32_t kMinBlocks = 8, kMaxBlocks = 32;
constexpr uint64_t kMinSteps = 256;
constexpr uint64_t kLarge = 4u << 20;  // bytes of an operand from which a larger kernel pays its second of compiling

// A skinny GEMM as the kernels see it: the long operand l (rows x k, perhaps stored k x rows) and the short one s.
struct Skinny {
  const Buffer *l, *s;
  int32_t l_type, s_type;
  uint64_t rows, cols, ld, s_k, s_col, stride_l, stride_s;
  bool along_k;     // the long operand's rows run along k
  bool transposed;  // the long operand is B, so that C is computed transposed
};

Skinny skinny_of(const Plan& plan) {
  const GemmArgs& args = plan.args;
  Skinny skinny{};
  // If C has few rows and few columns, the operand that is contiguous along k is the long one.
  skinny.transposed = args.n > kFew ? args.n > args.m : args.m <= kFew && plan.ta && plan.tb;
  if (!skinny.transposed) {
    skinny.l = args.a, skinny.s = args.b;
    skinny.l_type = args.a_type, skinny.s_type = args.b_type;
    skinny.rows = args.m, skinny.cols = args.n;
    skinny.ld = args.lda, skinny.stride_l = args.stride_a, skinny.stride_s = args.stride_b;
    skinny.s_k = plan.tb ? 1 : args.ldb, skinny.s_col = plan.tb ? args.ldb : 1;
    skinny.along_k = !plan.ta;
  } else {
    skinny.l = args.b, skinny.s = args.a;
    skinny.l_type = args.b_type, skinny.s_type = args.a_type;
    skinny.rows = args.n, skinny.cols = args.m;
    skinny.ld = args.ldb, skinny.stride_l = args.stride_b, skinny.stride_s = args.stride_a;
    skinny.s_k = plan.ta ? args.lda : 1, skinny.s_col = plan.ta ? 1 : args.lda;
    skinny.along_k = plan.tb;
  }
  return skinny;
}

template <typename Index, typename Number, bool epilogue>
void push_skinny(Dispatch& dispatch, const Plan& plan, const Skinny& skinny, uint64_t row_blocks) {
  const GemmArgs& args = plan.args;
  const auto index = [](uint64_t x) { return static_cast<Index>(x); };
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  shaders::GemmRows::Push<Index, Number, epilogue> push{.ld = index(skinny.ld),
                                                        .s_k = index(skinny.s_k),
                                                        .s_col = index(skinny.s_col),
                                                        .ld_out = index(plan.out_ld),
                                                        .stride_l = index(skinny.stride_l),
                                                        .stride_s = index(skinny.stride_s),
                                                        .stride_out = index(plan.out_stride),
                                                        .rows = number(skinny.rows),
                                                        .cols = number(skinny.cols),
                                                        .k = number(args.k),
                                                        .batch_count = number(args.batch_count),
                                                        .k_slice = number(plan.k_slice),
                                                        .row_blocks = number(row_blocks),
                                                        .alpha = static_cast<Number>(plan.alpha()),
                                                        .beta = static_cast<Number>(plan.beta())};
  if constexpr (epilogue) set_epilogue_places(push, args.epilogue);
  dispatch.push(push);
}

// gemm_rows.comp: a subgroup for each one, two or four rows.
struct RowShape {
  uint32_t local_size, rows, depth;
  uint64_t group_rows;
  bool interleaved, vector_l, vector_s;
};

RowShape row_shape(const DeviceTraits& traits, const Skinny& skinny, uint32_t summed) {
  const uint32_t width = traits.subgroup_size;
  RowShape shape{};
  shape.local_size = traits.cpu ? width : std::max(width, std::min(128u, max_along_x(traits)));
  // Loads of 8 bytes gain nothing from having several in flight (H200, f16 4096 x 14336: 2.9 TB/s with two, 3.2 with
  // one).
  shape.depth = !traits.cpu && dtype_size(skinny.l_type) == 1 ? 4 : 1;
  shape.vector_s =
      skinny.s_k == 1 && aligned(skinny.s, skinny.s_type, skinny.cols > 1 ? skinny.s_col : 0, skinny.stride_s, 4);
  // Each element of S is then read on its own, and used for at least two rows.
  shape.interleaved = !traits.cpu && skinny.along_k && !shape.vector_s;
  shape.vector_l =
      skinny.along_k && !shape.interleaved && aligned(skinny.l, skinny.l_type, skinny.ld, skinny.stride_l, 4);
  const bool many = skinny.rows >= 64 * cores_of(traits) || summed > kFew;
  shape.rows = traits.cpu ? (skinny.rows > 1 ? 4 : 1) : many || shape.interleaved ? 2 : 1;
  shape.group_rows = !traits.cpu ? shape.local_size / width * shape.rows : skinny.rows > 4 ? 16 : shape.rows;
  return shape;
}

// The number of blocks of `unit` rows per workgroup that gives workgroups about equal work, with few different kernels.
uint32_t blocks_of(uint64_t rows, uint64_t bytes, uint32_t unit, uint32_t summed) {
  const uint64_t units = ceil_div(rows, unit);
  if (units < 2 * kMinBlocks) return 2;
  if (bytes < kLarge) return kMinBlocks;
  const uint64_t groups = ceil_div(units, std::max(kMaxBlocks / summed, kMinBlocks));
  return static_cast<uint32_t>(ceil_div(ceil_div(units, groups), kMinBlocks) * kMinBlocks);
}

// gemm_cols.comp: an invocation for each four rows, or several times four.
struct ColumnShape {
  uint32_t lanes, depth, blocks, steps;
  bool shuffle, vector_l;
  uint64_t group_rows() const { return uint64_t{lanes} * 4 * blocks; }
};

ColumnShape column_shape(const DeviceTraits& traits, const Skinny& skinny, const GemmArgs& args, uint32_t summed) {
  ColumnShape shape{};
  const uint32_t lanes = shape.lanes = traits.cpu ? traits.subgroup_size : 32;
  const uint64_t bytes = skinny.rows * args.k * dtype_size(skinny.l_type);
  const uint32_t blocks = shape.blocks = traits.cpu ? blocks_of(skinny.rows, bytes, lanes * 4, summed) : 1;
  shape.shuffle = traits.cpu && traits.subgroup_shuffle && args.k >= lanes && blocks <= kMinBlocks;
  const auto layer_bytes = static_cast<uint32_t>(lanes * 4 * blocks * summed * dtype_size(args.sum_type()));
  uint32_t depth = traits.cpu || args.k < 64 ? 1 : 8;
  while (depth > 1 && (depth * layer_bytes > traits.shared_bytes || depth * lanes > traits.max_invocations)) depth /= 2;
  shape.depth = depth;
  // Smaller types load more elements at once, to keep enough bytes in flight.
  shape.steps =
      traits.cpu ? (blocks > kMinBlocks ? 1 : 4) : std::max(4u, 16 / static_cast<uint32_t>(dtype_size(skinny.l_type)));
  shape.vector_l =
      !skinny.along_k && skinny.rows % 4 == 0 && aligned(skinny.l, skinny.l_type, skinny.ld, skinny.stride_l, 4);
  return shape;
}

}  // namespace

bool is_few(const GemmArgs& args) { return std::min(args.m, args.n) <= kFew; }

void offer_skinny(const DeviceTraits& traits, const Plan& plan, Offers& offers) {
  const GemmArgs& args = plan.args;
  if (std::min(args.m, args.n) > kMaxShort) return;
  const Skinny skinny = skinny_of(plan);
  // If lanes are adjacent along k but the short operand is strided there, each of its elements is a separate load.
  const bool even = skinny.s_k == 1 || !skinny.along_k;
  // For tiles, a long operand of another type than the sums' would have to be copied first.
  const bool better = dtype_size(skinny.l_type) < 4 || (skinny.cols <= 2 * kFew && args.k >= kLong && even);
  const bool suits = is_few(args) || (!traits.cpu && skinny.rows >= kLong && better);
  offers.add({Kind::skinny, "skinny", 0, 0, suits ? Fit::suits : Fit::perhaps});
}

void record_skinny(Recorder& recorder, Plan& plan) {
  const DeviceTraits& traits = recorder.traits();
  const GemmArgs& args = plan.args;
  const Skinny skinny = skinny_of(plan);
  const uint32_t summed = skinny.cols <= kFew ? static_cast<uint32_t>(skinny.cols) : skinny.cols <= 8 ? 8 : 16;
  // A subgroup per row pays only if k keeps its lanes busy, on a CPU device for as long as adding up their sums takes.
  // A lane per row pays only if there are enough rows to fill the lanes.
  const bool few_rows = traits.cpu && skinny.rows <= kMaxShort;
  const uint64_t min_k = uint64_t{4} * traits.subgroup_size * (traits.cpu && !few_rows ? 2 + 2 * summed : 1);
  const bool by_rows = (skinny.along_k || few_rows) && traits.subgroup_arithmetic && args.k >= min_k;
  const RowShape rows = by_rows ? row_shape(traits, skinny, summed) : RowShape{};
  const ColumnShape columns = by_rows ? ColumnShape{} : column_shape(traits, skinny, args, summed);
  const uint64_t block_rows = by_rows ? rows.group_rows : columns.group_rows();
  const uint64_t row_blocks = ceil_div(skinny.rows, block_rows), groups = row_blocks * args.batch_count;
  const uint64_t least = !traits.cpu ? 128 : by_rows ? 4096 : kMinSteps;
  slice_k(plan, traits, groups, traits.cpu ? cores_of(traits) : 8 * cores_of(traits), least, 32);
  // Five operands with 64-bit sizes do not fit into push constants. A CPU driver would compile the epilogue once for
  // each element that an invocation stores, and a second dispatch costs it little.
  const bool fits = !(plan.wide && args.epilogue.has_operands()) && (!traits.cpu || plan.choice.why == Why::forced);
  plan.to_scratch = plan.slices > 1 || only_finish_has(args) || (needs_finish(args) && !fits);
  take_scratch(recorder, plan);

  const shaders::GemmSkinnyCommon operands{.l_type = skinny.l_type,
                                           .padded = summed != skinny.cols,
                                           .pairs = traits.cpu && traits.addresses,
                                           .s_type = skinny.s_type,
                                           .short_ = summed,
                                           .sum_type = args.sum_type(),
                                           .transposed = skinny.transposed};
  KernelRequest request = by_rows ? shaders::GemmRows::request({.along_k = skinny.along_k,
                                                                .depth = rows.depth,
                                                                .epilogue = plan.epilogue_defines(traits),
                                                                .group_rows = rows.group_rows,
                                                                .interleaved = rows.interleaved,
                                                                .local_size = rows.local_size,
                                                                .rows = rows.rows,
                                                                .skinny = operands,
                                                                .vector_l = rows.vector_l,
                                                                .vector_s = rows.vector_s})
                                  : shaders::GemmCols::request({.along_k = skinny.along_k,
                                                                .blocks = columns.blocks,
                                                                .depth = columns.depth,
                                                                .epilogue = plan.epilogue_defines(traits),
                                                                .lanes = columns.lanes,
                                                                .shuffle = columns.shuffle,
                                                                .skinny = operands,
                                                                .steps = columns.steps,
                                                                .vector_l = columns.vector_l});
  request.streaming().wide(plan.wide);
  Dispatch dispatch("gemm skinny");
  if (!skinny.transposed) plan.operand_a(dispatch);
  plan.operand_b(dispatch);
  if (skinny.transposed) plan.operand_a(dispatch);
  plan.operand_out(dispatch);
  plan.epilogue_operands(dispatch);
  define_each(request, dispatch);
  with_index(plan.wide, [&](auto index) {
    with_number(plan.out_type, [&](auto number) {
      with_flag(plan.fused(), [&](auto fused) {
        push_skinny<decltype(index), decltype(number), fused>(dispatch, plan, skinny, row_blocks);
      });
    });
  });
  dispatch.groups_linear(groups * plan.slices, traits).work(work_bytes(plan), operations_of(args)).variant("skinny");
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    log(TUFF_LOG_DISPATCH, "gemm {}{} {}x{}x{} {} x {} batch {}: skinny ({}), by {}, {} groups, {} parts of k{}",
        plan.ta ? 't' : 'n', plan.tb ? 't' : 'n', args.m, args.n, args.k, dtype_name(args.a_type),
        dtype_name(args.b_type), args.batch_count, reason(plan), by_rows ? "rows" : "cols", groups, plan.slices,
        plan.wide ? ", wide" : "");
  }
  recorder.dispatch(request, dispatch);
}

}  // namespace tuff::gemm
