// Plans depthwise convolutions: each filter reads one channel. How many outputs an invocation computes depends on the
// device. On CPU devices loads are gathers, and are worth sharing along rows and columns; on GPUs neighbouring
// invocations should read neighbouring elements.
#include <algorithm>

#include "kernels/common/stream_device.hpp"
#include "kernels/conv/conv_plan.hpp"
#include "planning/log.hpp"
#include "shaders/conv_depthwise.hpp"

namespace tuff::conv {
namespace {

// Whether the window is one for which the kernel is compiled with fixed taps; others use the same kernel with loops.
bool is_fixed(const ConvArgs& args) {
  const uint64_t R = args.taps()[1], S = args.taps()[2];
  const bool window = (R == S || R == 1) && (S == 3 || S == 5 || (S == 7 && R == 1));
  const uint64_t stride = args.stride[2];
  return window && args.dilation[1] == 1 && args.dilation[2] == 1 && stride <= 2 &&
         (args.stride[1] == stride || R == 1);
}

}  // namespace

bool is_depthwise(const ConvArgs& args) {
  const uint64_t taps = args.filter_shape.pixels();
  return !args.transposed && args.groups > 1 && args.group_channels() == 1 && args.flat() && taps <= 1024 &&
         args.in_shape.elements() != 0;
}

void record_depthwise(Recorder& recorder, const ConvArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  const StreamDevice device = stream_device(traits, {}, sizeof(float));
  const uint64_t size = dtype_size(args.dtype), filters = args.filters();
  const bool fixed = is_fixed(args);
  const bool vec =
      args.channels_last() && args.group_filters() == 1 && filters % 4 == 0 && args.input->offset % (4 * size) == 0;
  uint32_t across = device.cpu ? 4 : 1, down = fixed ? 4 : 1;
  if (vec) {
    // The weights of four filters are far apart in memory, so that enough outputs have to share their loads.
    const bool small = fixed && args.taps()[2] == 3;
    across = device.cpu || small ? 4 : 2;
    down = !fixed || args.taps()[1] == 1 ? 1 : !device.cpu && small ? 4 : 2;
  } else if (fixed && args.taps()[1] == 1) {
    across = 4, down = 1;  // outputs share input only along the row
  } else if (device.cpu && fixed) {
    down = 2;
  }
  const uint64_t P = args.out()[1], Q = args.out()[2];
  const uint64_t items = args.batch() * ceil_div(P, down) * ceil_div(Q, across) * (filters / (vec ? 4 : 1));
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const shaders::ConvDepthwise::Push push{.items = number(items),
                                          .channels = number(args.channels()),
                                          .filters = number(filters),
                                          .P = number(P),
                                          .Q = number(Q),
                                          .H = number(args.in()[1]),
                                          .W = number(args.in()[2]),
                                          .R = number(args.taps()[1]),
                                          .S = number(args.taps()[2]),
                                          .stride = packed(args, "stride", args.stride, args.out(), 1, 2),
                                          .dilation = packed(args, "dilation", args.dilation, args.taps(), 1, 2),
                                          .pad_y = static_cast<int32_t>(args.padding[1]),
                                          .pad_x = static_cast<int32_t>(args.padding[2])};
  KernelRequest kernel = shaders::ConvDepthwise::request({.channels_last = args.channels_last(),
                                                          .fixed = fixed,
                                                          .pairs = device.cpu && traits.addresses,
                                                          .store = store_of(args, traits),
                                                          .stride = fixed ? static_cast<int64_t>(args.stride[2]) : 0,
                                                          .taps_x = fixed ? static_cast<int64_t>(args.taps()[2]) : 0,
                                                          .taps_y = fixed ? static_cast<int64_t>(args.taps()[1]) : 0,
                                                          .type = args.dtype,
                                                          .vec = vec,
                                                          .vx = across,
                                                          .vy = down});
  kernel.streaming().constant(0, device.workgroup);
  const uint64_t in_elements = args.in_shape.elements(), out_elements = args.out_shape.elements();
  kernel.wide(needs_wide(std::max({in_elements, args.filter_shape.elements(), out_elements})));
  log(TUFF_LOG_DISPATCH, "conv depthwise {} filters={} items={} {}x{} outputs each fixed={} vec={}",
      dtype_name(args.dtype), filters, items, down, across, fixed, vec);
  Dispatch dispatch("conv depthwise");
  dispatch.operand(args.input, 0, in_elements * size, Access::read)
      .operand(args.filter, 0, args.filter_shape.elements() * size, Access::read)
      .operand(args.output, 0, out_elements * size, Access::write)
      .operand(args.bias, 0, args.bias != nullptr ? filters * size : 0, Access::read)
      .operand(args.residual, 0, args.residual != nullptr ? out_elements * size : 0, Access::read)
      .push(push)
      .groups_linear(ceil_div(items, device.workgroup), traits)
      .work(static_cast<double>((in_elements + out_elements) * size),
            2.0 * static_cast<double>(out_elements * args.filter_shape.pixels()));
  recorder.dispatch(kernel, dispatch);
}

}  // namespace tuff::conv
