// Matrix x vector and its neighbours: products bound by reading one operand once.
#include <algorithm>

#include "kernels/gemm/gemm_plan.hpp"
#include "runtime/log.hpp"
#include "shaders.hpp"

namespace tuff::gemm {
namespace {

// Mirrors Push in gemm_skinny_common.glsl, behind the bases.
template <typename Index>
struct SkinnyPush {
  Index ld, s_k, s_col, out_row, out_col, stride_l, stride_s, stride_out;
  uint32_t rows, k, batch_count, slices, k_slice, row_blocks;
  float alpha, beta;
};

// A skinny product with the roles settled: the long operand (rows x k, perhaps stored k x rows), the short one.
struct Skinny {
  const Buffer *l, *s;
  uint64_t l_elements, s_elements, rows, cols, ld, s_k, s_col, stride_l, stride_s;
  bool along_k;     // the long operand's rows lie along k
  bool transposed;  // it is B: C is made column by column
};

Skinny skinny_of(const Plan& plan) {
  const GemmArgs& args = plan.args;
  if (args.n <= kMostShort) {
    return {args.a,
            args.b,
            plan.a_elements,
            plan.b_elements,
            args.m,
            args.n,
            args.lda,
            plan.tb ? 1 : args.ldb,
            plan.tb ? args.ldb : 1,
            args.stride_a,
            args.stride_b,
            !plan.ta,
            false};
  }
  return {args.b,
          args.a,
          plan.b_elements,
          plan.a_elements,
          args.n,
          args.m,
          args.ldb,
          plan.ta ? args.lda : 1,
          plan.ta ? 1 : args.lda,
          args.stride_b,
          args.stride_a,
          plan.tb,
          true};
}

template <typename Index>
void push_skinny(Dispatch& dispatch, const Plan& plan, const Skinny& skinny, uint64_t row_blocks) {
  const GemmArgs& args = plan.args;
  const bool sliced = plan.slices > 1;
  const auto index = [](uint64_t x) { return static_cast<Index>(x); };
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  dispatch.push(SkinnyPush<Index>{
      index(skinny.ld), index(skinny.s_k), index(skinny.s_col), index(skinny.transposed ? 1 : plan.out_ld),
      index(skinny.transposed ? plan.out_ld : 1), index(skinny.stride_l), index(skinny.stride_s),
      index(plan.out_stride), number(skinny.rows), number(args.k), number(args.batch_count), number(plan.slices),
      number(plan.k_slice), number(row_blocks), sliced ? 1.0f : static_cast<float>(args.alpha),
      sliced ? 0.0f : static_cast<float>(args.beta)});
}

}  // namespace

void record_skinny(Recorder& recorder, Plan& plan) {
  const DeviceTraits& traits = recorder.traits();
  const GemmArgs& args = plan.args;
  const Skinny skinny = skinny_of(plan);
  const uint32_t width = traits.subgroup_size;
  // A subgroup for each row pays only if k keeps its lanes busy.
  const bool by_rows = skinny.along_k && traits.subgroup_arithmetic && args.k >= 4 * width;
  const bool vector_l = aligned(skinny.l, skinny.ld, skinny.stride_l, 4);
  KernelRequest request(by_rows ? shaders::gemm_rows : shaders::gemm_cols);
  request.streaming();
  request.define("SHORT", static_cast<int64_t>(skinny.cols)).define("PAIRS", traits.cpu && traits.addresses);
  uint64_t block_rows = 0;
  if (by_rows) {
    const uint32_t local_size = traits.cpu ? width : std::max(width, std::min(128u, traits.max_invocations));
    const uint32_t rows = traits.cpu ? 4 : skinny.rows >= 64 * cores_of(traits) ? 2 : 1;
    block_rows = traits.cpu ? 16 : local_size / width * rows;
    const bool vector_s = skinny.s_k == 1 && aligned(skinny.s, skinny.cols > 1 ? skinny.s_col : 0, skinny.stride_s, 4);
    request.define("LOCAL_SIZE", local_size).define("GROUP_ROWS", static_cast<int64_t>(block_rows));
    request.define("ROWS", rows).define("VECTOR_L", vector_l).define("VECTOR_S", vector_s);
  } else {
    const bool shuffle = traits.cpu && traits.subgroup_shuffle;
    const uint32_t lanes = traits.cpu ? width : 32;
    const uint32_t depth = traits.cpu || args.k < 64 ? 1 : 8;
    // On a processor long runs of each row of the stored matrix, if there are rows enough for every core.
    const uint32_t blocks = !traits.cpu ? 1 : skinny.rows >= uint64_t{width} * 32 * cores_of(traits) ? 8 : 2;
    block_rows = uint64_t{lanes} * 4 * blocks;
    request.define("LANES", lanes).define("DEPTH", depth).define("BLOCKS", blocks).define("SHUFFLE", shuffle);
    request.define("ALONG_K", skinny.along_k);
    request.define("VECTOR_L", vector_l && !skinny.along_k && skinny.rows % 4 == 0);
  }
  const uint64_t row_blocks = ceil_div(skinny.rows, block_rows), groups = row_blocks * args.batch_count;
  slice_k(plan, recorder, groups, traits.cpu ? cores_of(traits) : 8 * cores_of(traits), traits.cpu ? 4096 : 512, 32);

  Dispatch dispatch("gemm skinny");
  dispatch.operand(skinny.l, 0, skinny.l_elements * 4, Access::read);
  dispatch.operand(skinny.s, 0, skinny.s_elements * 4, Access::read);
  dispatch.operand(plan.out, 0, plan.out_elements * 4, out_access(plan));
  if (plan.wide) {
    push_skinny<uint64_t>(dispatch, plan, skinny, row_blocks);
  } else {
    push_skinny<uint32_t>(dispatch, plan, skinny, row_blocks);
  }
  dispatch.groups_linear(groups * plan.slices, traits).work(work_bytes(plan), operations_of(args));
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    log(TUFF_LOG_DISPATCH, "gemm {}{} {}x{}x{} batch {}: {}, {} groups, {} slices of k{}", plan.ta ? 't' : 'n',
        plan.tb ? 't' : 'n', args.m, args.n, args.k, args.batch_count, by_rows ? "rows" : "cols", groups, plan.slices,
        plan.wide ? ", wide" : "");
  }
  recorder.dispatch(request.wide(plan.wide), dispatch);
}

}  // namespace tuff::gemm
