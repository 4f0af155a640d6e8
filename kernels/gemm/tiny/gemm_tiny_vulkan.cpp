// A batch of tiny matrices: several per workgroup.
#include <algorithm>
#include <bit>

#include "kernels/common/workgroup.hpp"
#include "kernels/gemm/gemm_plan.hpp"
#include "planning/log.hpp"
#include "shaders/gemm_tiny.hpp"

namespace tuff::gemm {
namespace {

// Maximum rows and columns; minimum matrices; maximum k, and maximum k on a CPU device with at least a workgroup of
// matrices for each core.
constexpr uint64_t kMaxTiny = 16, kMinBatch = 16, kMaxDepth = 64, kMaxDepthCpu = 4096;
// Elements of C up to which a CPU device is faster this way if the tiles need neither copies nor a second pass: by a
// quarter at 12 x 12 x 12 (Mesa 25.0; a third with 22.3), not at all at 16 x 16 x 16.
constexpr uint64_t kMaxElementsCpu = 144;

// Subgroups of a workgroup on a CPU device: several, because each workgroup costs 160 to 200 ns.
constexpr uint32_t kSubgroupsCpu = 8;

template <typename Index, typename Number, bool epilogue>
void push_tiny(Dispatch& dispatch, const Plan& plan) {
  const GemmArgs& args = plan.args;
  const auto index = [](uint64_t x) { return static_cast<Index>(x); };
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  shaders::GemmTiny::Push<Index, Number, epilogue> push{.lda = index(args.lda),
                                                        .ldb = index(args.ldb),
                                                        .ldc = index(plan.out_ld),
                                                        .stride_a = index(args.stride_a),
                                                        .stride_b = index(args.stride_b),
                                                        .stride_c = index(plan.out_stride),
                                                        .m = number(args.m),
                                                        .n = number(args.n),
                                                        .k = number(args.k),
                                                        .batch_count = number(args.batch_count),
                                                        .alpha = static_cast<Number>(plan.alpha()),
                                                        .beta = static_cast<Number>(plan.beta())};
  if constexpr (epilogue) set_epilogue_places(push, args.epilogue);
  dispatch.push(push);
}

// How invocations share a matrix.
struct Parts {
  uint32_t rows, cols, row_parts, col_parts, local_size;
};

// The two ways: each lane computes a matrix of its own (or a large part), or neighbouring lanes compute its columns.
enum Way : uint32_t { kLanes, kColumns };
constexpr const char* kNames[] = {"tiny_lanes", "tiny_columns"};

Parts parts_of(const DeviceTraits& traits, const GemmArgs& args, uint32_t way) {
  const auto m = static_cast<uint32_t>(args.m), n = static_cast<uint32_t>(args.n);
  if (way == kColumns) {
    const uint32_t rows = std::min(8u, std::bit_ceil(m));
    return {rows, 1, std::bit_ceil(m) / rows, std::bit_ceil(n), 128};
  }
  // More than 64 sums per lane gain nothing and take seconds to compile. Above four the extent is rounded up to a
  // multiple of two, for fewer kernels.
  const auto part = [](uint32_t extent) {
    const uint32_t each = extent > 8 ? (extent + 1) / 2 : extent;
    return each > 4 ? (each + 1) / 2 * 2 : each;
  };
  const uint32_t subgroups = std::clamp(max_along_x(traits) / traits.subgroup_size, 1u, kSubgroupsCpu);
  const uint32_t local_size = traits.cpu ? subgroups * traits.subgroup_size : 128;
  return {part(m), part(n), m > 8 ? 2u : 1u, n > 8 ? 2u : 1u, local_size};
}

}  // namespace

void offer_tiny(const DeviceTraits& traits, const GemmArgs& args, Offers& offers) {
  if (std::max(args.m, args.n) > kMaxTiny || args.k > max_k(traits)) return;
  const bool every_core = traits.cpu && args.batch_count >= cores_of(traits) * kSubgroupsCpu * traits.subgroup_size;
  const bool as_tiles_are = args.a_type == args.sum_type() && args.b_type == args.a_type && !needs_finish(args);
  const bool suits = args.batch_count >= kMinBatch && args.k <= (every_core ? kMaxDepthCpu : kMaxDepth) &&
                     (!traits.cpu || !as_tiles_are || args.m * args.n <= kMaxElementsCpu);
  for (const uint32_t way : {kLanes, kColumns}) {
    const bool usual = (way == kLanes) == traits.cpu;
    const Fit fit = usual && suits ? Fit::suits : args.batch_count > 1 ? Fit::perhaps : Fit::by_name;
    offers.add({Kind::tiny, kNames[way], way, usual ? 0.0 : 1.0, fit});
  }
}

void record_tiny(Recorder& recorder, Plan& plan) {
  const DeviceTraits& traits = recorder.traits();
  const GemmArgs& args = plan.args;
  const GemmEpilogue& epilogue = args.epilogue;
  const uint32_t way = plan.choice.offer.row;
  const Parts parts = parts_of(traits, args, way);
  const bool exact = parts.rows * parts.row_parts == args.m && parts.cols * parts.col_parts == args.n;
  // Five operands with 64-bit sizes do not fit into push constants. With a matrix per lane a long activation would be
  // compiled once for each element.
  plan.to_scratch = only_finish_has(args) || (plan.wide && epilogue.has_operands()) ||
                    (way == kLanes && epilogue.activation > TUFF_ACTIVATION_RELU);
  take_scratch(recorder, plan);

  const bool a_vec4 = aligned(args.a, args.a_type, args.lda, args.stride_a, 4);
  const bool b_vec4 = aligned(args.b, args.b_type, args.ldb, args.stride_b, 4);
  const bool vector_a = a_vec4 && (plan.ta ? exact && parts.rows % 4 == 0 : args.k >= 4);
  const bool vector_b = b_vec4 && (plan.tb ? args.k >= 4 : exact && parts.cols % 4 == 0);
  const uint64_t together = 8 / dtype_size(plan.out_type);
  const bool pairs = traits.cpu && traits.addresses;
  const bool vector_c = pairs && exact && together > 1 && parts.cols % together == 0 &&
                        aligned(plan.out, plan.out_type, plan.out_ld, plan.out_stride, together);
  const bool along_k = (vector_a && !plan.ta) || (vector_b && plan.tb);
  KernelRequest request = shaders::GemmTiny::request({.a_type = args.a_type,
                                                      .b_type = args.b_type,
                                                      .beta = plan.beta() != 0,
                                                      .col_parts = parts.col_parts,
                                                      .cols = parts.cols,
                                                      .depth = along_k || (!traits.cpu && args.k >= 4) ? 4 : 1,
                                                      .epilogue = plan.epilogue_defines(traits),
                                                      .exact = exact,
                                                      .local_size = parts.local_size,
                                                      .pairs = pairs,
                                                      .row_parts = parts.row_parts,
                                                      .rows = parts.rows,
                                                      .sum_type = args.sum_type(),
                                                      .trans_a = plan.ta,
                                                      .trans_b = plan.tb,
                                                      .vector_a = vector_a,
                                                      .vector_b = vector_b,
                                                      .vector_c = vector_c});
  request.streaming().wide(plan.wide);
  Dispatch dispatch("gemm tiny");
  plan.operand_a(dispatch);
  plan.operand_b(dispatch);
  plan.operand_out(dispatch);
  plan.epilogue_operands(dispatch);
  define_each(request, dispatch);
  with_index(plan.wide, [&](auto index) {
    with_number(plan.out_type, [&](auto number) {
      with_flag(plan.fused(), [&](auto fused) { push_tiny<decltype(index), decltype(number), fused>(dispatch, plan); });
    });
  });
  const uint32_t matrices = parts.local_size / (parts.row_parts * parts.col_parts);
  const uint64_t groups = ceil_div(args.batch_count, matrices);
  dispatch.groups_linear(groups, traits).work(work_bytes(plan), operations_of(args)).variant(kNames[way]);
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    log(TUFF_LOG_DISPATCH, "gemm {}{} {}x{}x{} {} x {} batch {}: {} ({}), {} groups of {} matrices, vectors {}{}{}{}",
        plan.ta ? 't' : 'n', plan.tb ? 't' : 'n', args.m, args.n, args.k, dtype_name(args.a_type),
        dtype_name(args.b_type), args.batch_count, kNames[way], reason(plan), groups, matrices, vector_a ? "a" : "",
        vector_b ? "b" : "", vector_c ? "c" : "", plan.wide ? ", wide" : "");
  }
  recorder.dispatch(request, dispatch);
}

}  // namespace tuff::gemm
