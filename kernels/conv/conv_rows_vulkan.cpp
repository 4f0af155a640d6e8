// Plans convolutions of long rows by filters of one channel on CPU devices. Implicit GEMM would compute a whole
// subgroup's filters where there are one or two.
#include <algorithm>

#include "kernels/common/loop_limit.hpp"
#include "kernels/conv/conv_plan.hpp"
#include "planning/log.hpp"
#include "shaders/conv_rows.hpp"

namespace tuff::conv {
namespace {

constexpr uint64_t kTaps = 8;  // of an iteration of the kernel's loop
constexpr uint64_t kOutputs = 16;

// Subgroups of one filter's outputs of one image.
uint64_t subgroups_each(const ConvArgs& args, uint32_t width) { return ceil_div(args.out()[2], kOutputs * width); }

}  // namespace

bool suits_rows(const DeviceTraits& traits, const ConvArgs& args) {
  if (!traits.cpu || !traits.subgroup_shuffle || args.transposed || args.group_channels() != 1) return false;
  const bool row =
      args.flat() && args.in()[1] == 1 && args.taps()[1] == 1 && args.out()[1] == 1 && args.padding[1] == 0;
  const bool alone = args.channels() == 1 && args.filters() == 1;  // both layouts are the same then
  const uint64_t taps = args.taps()[2], width = std::max(traits.subgroup_size, 1u);
  if (!row || (args.channels_last() && !alone) || args.in_shape.elements() == 0) return false;
  if (args.stride[2] != 1 || (taps > 1 && args.dilation[2] != 1)) return false;
  // Fewer taps are left to the depthwise kernel, and many filters of a channel share inputs by implicit GEMM.
  if (args.groups > 1 ? taps < kTaps : 2 * args.filters() > width) return false;
  if (taps > kMaxLoopIterationsCpu * kTaps || args.out()[2] < kOutputs * width / 2) return false;
  return args.batch() * args.filters() * subgroups_each(args, traits.subgroup_size) < kMaxColumns;
}

void record_rows(Recorder& recorder, const ConvArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  const uint64_t size = dtype_size(args.dtype), filters = args.filters(), taps = args.taps()[2];
  const uint64_t each = subgroups_each(args, traits.subgroup_size), subgroups = args.batch() * filters * each;
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const shaders::ConvRows::Push push{.subgroups = number(subgroups),
                                     .each = number(each),
                                     .channels = number(args.channels()),
                                     .filters = number(filters),
                                     .Q = number(args.out()[2]),
                                     .W = number(args.in()[2]),
                                     .S = number(taps),
                                     .pad_x = static_cast<int32_t>(args.padding[2])};
  KernelRequest kernel = shaders::ConvRows::request({.left = static_cast<int64_t>(taps % kTaps),
                                                     .outputs = kOutputs,
                                                     .pairs = traits.addresses,
                                                     .store = store_of(args, traits),
                                                     .type = args.dtype,
                                                     .width = traits.subgroup_size});
  const uint64_t in_elements = args.in_shape.elements(), out_elements = args.out_shape.elements();
  kernel.streaming().texels(0, size).wide(
      needs_wide(std::max({in_elements, args.filter_shape.elements(), out_elements})));
  log(TUFF_LOG_DISPATCH, "conv rows {} filters={} taps={} outputs={} {} subgroups", dtype_name(args.dtype), filters,
      taps, args.out()[2], subgroups);
  Dispatch dispatch("conv rows");
  dispatch.operand(args.input, 0, in_elements * size, Access::read)
      .operand(args.filter, 0, args.filter_shape.elements() * size, Access::read)
      .operand(args.output, 0, out_elements * size, Access::write)
      .operand(args.bias, 0, args.bias != nullptr ? filters * size : 0, Access::read)
      .operand(args.residual, 0, args.residual != nullptr ? out_elements * size : 0, Access::read)
      .push(push)
      .groups_linear(subgroups, traits)
      .work(static_cast<double>((in_elements + out_elements) * size), 2.0 * static_cast<double>(out_elements * taps));
  recorder.dispatch(kernel, dispatch);
}

}  // namespace tuff::conv
