// The second pass of a GEMM: adds up the split-K parts, applies the epilogue, and rounds to C's type.
#include <algorithm>

#include "kernels/common/division.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/common/workgroup.hpp"
#include "kernels/gemm/gemm_plan.hpp"
#include "shaders/gemm_finish.hpp"

namespace tuff::gemm {
namespace {

template <typename Index, typename Number>
void push_finish(Dispatch& dispatch, const GemmArgs& args, uint64_t slices) {
  const GemmEpilogue& epilogue = args.epilogue;
  constexpr bool kWide = sizeof(Index) == 8;
  const auto index = [](uint64_t x) { return static_cast<Index>(x); };
  const auto bit = [](const Buffer* scale, uint32_t number) { return scale != nullptr ? 1u << number : 0; };
  const uint32_t given = bit(epilogue.scale_a, 16) | bit(epilogue.scale_b, 17) | bit(epilogue.scale_c, 18);
  shaders::GemmFinish::Push<Index, Number, kWide> push{.ldc = index(args.ldc),
                                                       .stride_c = index(args.stride_c),
                                                       .elements = index(args.m * args.n * args.batch_count),
                                                       .matrix = index(args.m * args.n),
                                                       .ld_residual = index(epilogue.ld_residual),
                                                       .stride_bias = index(epilogue.stride_bias),
                                                       .stride_residual = index(epilogue.stride_residual),
                                                       .n = static_cast<uint32_t>(args.n),
                                                       .slices = static_cast<uint32_t>(slices) | given,
                                                       .alpha = static_cast<Number>(args.alpha),
                                                       .beta = static_cast<Number>(args.beta)};
  if constexpr (!kWide) {
    const Divider by_matrix = divider(push.matrix), by_n = divider(push.n);
    push.matrix_multiplier = by_matrix.multiplier;
    push.matrix_shift = by_matrix.shift;
    push.n_multiplier = by_n.multiplier;
    push.n_shift = by_n.shift;
  }
  dispatch.push(push);
}

}  // namespace

void record_finish(Recorder& recorder, const GemmArgs& args, const Buffer* partials, uint64_t slices) {
  const DeviceTraits& traits = recorder.traits();
  const GemmEpilogue& epilogue = args.epilogue;
  const uint64_t c_elements = footprint(args.m, args.n, args.ldc, args.stride_c, args.batch_count);
  const uint64_t elements = args.m * args.n * args.batch_count;
  const bool each = args.c_array != nullptr;
  const bool dense =
      !each && (args.ldc == args.n || args.m == 1) && (args.stride_c == args.m * args.n || args.batch_count == 1);
  const uint64_t bias = bias_elements(args), residual = residual_elements(args);
  const bool wide = needs_wide(std::max({c_elements, elements * std::max<uint64_t>(slices, 1), residual, bias}));
  const uint32_t local_size = traits.cpu ? traits.subgroup_size : std::min(256u, max_along_x(traits));
  const uint32_t items = traits.cpu && slices * 16 < kMaxLoopIterationsCpu ? 16 : 1;
  KernelRequest request = shaders::GemmFinish::request({.dense = dense,
                                                        .epilogue = {.activation = epilogue.activation,
                                                                     .bias_axis = epilogue.bias_axis,
                                                                     .c_type = args.c_type,
                                                                     .exact_arithmetic = traits.cpu,
                                                                     .residual = epilogue.residual != nullptr},
                                                        .items = items,
                                                        .local_size = local_size,
                                                        .scales = epilogue.scaled(),
                                                        .sum_type = args.sum_type()});
  request.streaming().wide(wide);
  const uint64_t sum_bytes = dtype_size(args.sum_type()), c_bytes = dtype_size(args.c_type);
  Dispatch dispatch("gemm finish");
  dispatch.operand(partials, 0, elements * slices * sum_bytes, Access::read);
  add_operand(dispatch, args.c, args.c_array, args.batch_count, c_elements * c_bytes,
              args.beta == 0 ? Access::write : Access::read_write);
  dispatch.operand(epilogue.bias, 0, bias * c_bytes, Access::read);
  dispatch.operand(epilogue.residual, 0, residual * c_bytes, Access::read);
  if (epilogue.scaled()) scale_operands(dispatch, epilogue);
  define_each(request, dispatch);
  with_index(wide, [&](auto index) {
    with_number(args.c_type,
                [&](auto number) { push_finish<decltype(index), decltype(number)>(dispatch, args, slices); });
  });
  dispatch.groups_linear(ceil_div(elements, uint64_t{local_size} * items), traits);
  dispatch.work(static_cast<double>(elements * (slices * sum_bytes + 2 * c_bytes)),
                static_cast<double>(elements * (slices + 2)));
  recorder.dispatch(request, dispatch);
}

}  // namespace tuff::gemm
