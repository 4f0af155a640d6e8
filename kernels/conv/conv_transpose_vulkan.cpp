// Plans the transposed convolution as a gather. Outputs that are a stride apart (a phase) use the same taps of their
// windows, so each phase is an ordinary convolution of stride 1 whose outputs have a step between them. No
// multiplications with zeros between pixels are needed, and no output is written twice.
//
// Along an axis, output p uses tap r with input y if p + padding = y * stride + r * dilation. With
// g = gcd(stride, dilation), the taps of p's phase are r0, r0 + stride / g, …, and y decreases by dilation / g from one
// to the next: in reverse order they are the taps of a window with that dilation.
#include <algorithm>
#include <numeric>

#include "kernels/common/stream_device.hpp"
#include "kernels/conv/conv_plan.hpp"
#include "planning/log.hpp"
#include "shaders/conv_transpose_filter.hpp"

namespace tuff::conv {
namespace {

// The outputs first, first + stride, … of one axis.
struct Phase {
  uint64_t first, outputs;
  uint64_t tap, taps;  // the lowest tap, and their number; without taps these outputs depend on no input
  uint64_t dilation;
  int64_t padding;
};

uint64_t tap_step(const ConvArgs& args, uint32_t axis) {
  return args.stride[axis] / std::gcd(args.stride[axis], args.dilation[axis]);
}

uint64_t phase_count(const ConvArgs& args, uint32_t axis) { return std::min(args.stride[axis], args.out()[axis]); }

Phase phase_of(const ConvArgs& args, uint32_t axis, uint64_t first) {
  const auto stride = static_cast<int64_t>(args.stride[axis]), dilation = static_cast<int64_t>(args.dilation[axis]);
  const uint64_t step = tap_step(args, axis), taps = args.taps()[axis], out = args.out()[axis];
  Phase phase{};
  phase.first = first;
  phase.outputs = (out - 1 - first) / args.stride[axis] + 1;
  phase.dilation = args.dilation[axis] / std::gcd(args.stride[axis], args.dilation[axis]);
  for (uint64_t tap = 0; tap < std::min(step, taps); ++tap) {
    const int64_t reach = static_cast<int64_t>(first + args.padding[axis]) - static_cast<int64_t>(tap) * dilation;
    if (reach % stride != 0) continue;
    phase.tap = tap;
    phase.taps = (taps - 1 - tap) / step + 1;
    phase.padding = static_cast<int64_t>((phase.taps - 1) * phase.dilation) - reach / stride;
    break;
  }
  return phase;
}

uint64_t taps_before(uint64_t taps, uint64_t step, uint64_t first) {
  return first * (taps / step) + std::min(first, taps % step);
}

// The start of a phase's filter, in units of K * C / groups elements, as written by conv_transpose_filter.comp.
uint64_t filter_place(const ConvArgs& args, const Phase& y, const Phase& x) {
  return taps_before(args.taps()[1], tap_step(args, 1), y.tap) * args.taps()[2] +
         y.taps * taps_before(args.taps()[2], tap_step(args, 2), x.tap);
}

void record_filter(Recorder& recorder, const ConvArgs& args, const Buffer& ordered) {
  const DeviceTraits& traits = recorder.traits();
  const StreamDevice device = stream_device(traits, {}, sizeof(float));
  const uint64_t elements = args.filter_shape.elements(), bytes = dtype_size(args.dtype);
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const shaders::ConvTransposeFilter::Push push{.items = number(elements),
                                                .filters = number(args.group_filters()),
                                                .channels = number(args.group_channels()),
                                                .R = number(args.taps()[1]),
                                                .S = number(args.taps()[2]),
                                                .step_y = number(std::min(tap_step(args, 1), args.taps()[1])),
                                                .step_x = number(std::min(tap_step(args, 2), args.taps()[2]))};
  KernelRequest kernel = shaders::ConvTransposeFilter::request({.bytes = bytes, .channels_last = args.channels_last()});
  kernel.streaming().constant(0, device.workgroup);
  Dispatch dispatch("conv transpose filter");
  dispatch.operand(args.filter, 0, elements * bytes, Access::read)
      .operand(&ordered, 0, elements * bytes, Access::write)
      .push(push)
      .groups_linear(ceil_div(elements, device.workgroup), traits)
      .work(2.0 * static_cast<double>(elements * bytes), static_cast<double>(elements));
  recorder.dispatch(kernel, dispatch);
}

// The implicit GEMM of one phase, without its filter buffer, which the caller sets.
Product product_of(const ConvArgs& args, const Phase& y, const Phase& x) {
  Product product;
  product.args = args;
  ConvArgs& phase = product.args;
  phase.transposed = false;
  phase.filter_shape.outer = {args.filters(), args.group_channels()};
  phase.filter_shape.extents = {1, y.taps, x.taps};
  phase.out_shape.extents = {1, y.outputs, x.outputs};
  phase.stride = {1, 1, 1};
  phase.dilation = {1, y.dilation, x.dilation};
  if (y.taps == 0 || x.taps == 0) {  // a sum over no channels
    phase.in_shape.outer[1] = 0;
    phase.filter_shape.extents = {1, 1, 1};
  }
  product.padding = {0, y.padding, x.padding};
  for (uint32_t axis = 0; axis < kConvAxes; ++axis) {
    phase.padding[axis] = static_cast<uint64_t>(std::max<int64_t>(product.padding[axis], 0));
    phase.padding_end[axis] = 0;
  }
  product.spaced = true;
  product.out_image = args.out_shape.pixels();
  product.out_row = args.out()[2];
  product.out_step = {args.stride[1], args.stride[2]};
  product.out_first = (y.first * product.out_row + x.first) * (args.channels_last() ? args.filters() : 1);
  return product;
}

template <typename Body>
void for_each_phase(const ConvArgs& args, const Body& body) {
  for (uint64_t y = 0; y < phase_count(args, 1); ++y) {
    for (uint64_t x = 0; x < phase_count(args, 2); ++x) body(phase_of(args, 1, y), phase_of(args, 2, x));
  }
}

}  // namespace

void record_transposed(Recorder& recorder, const ConvArgs& args, uint64_t max_sums) {
  const bool empty = args.in_shape.elements() == 0;
  const uint64_t size = dtype_size(args.dtype), elements = empty ? 0 : args.filter_shape.elements();
  if (elements >= uint64_t{1} << 31) {
    fail(TUFF_ERROR_UNSUPPORTED, "filter_shape has {} elements, must be below 2^31", elements);
  }
  uint64_t slices = 1, max_taps = 0;
  for_each_phase(args, [&](const Phase& y, const Phase& x) {
    Product product = product_of(args, y, x);
    check_phase(product);
    slice_taps(product, recorder.traits());
    slices = std::max(slices, product.slices);
    max_taps = std::max(max_taps, taps_of(product.args));
  });
  log(TUFF_LOG_DISPATCH, "conv transpose: {} x {} phases", phase_count(args, 1), phase_count(args, 2));
  // Scratch memory: the filter in the phases' order, then the sums of the split-K parts.
  const uint64_t filter_bytes = ceil_div(elements * size, 256) * 256;
  const uint64_t stored = stored_slices(slices, args.out_shape.elements(), max_sums);
  const uint64_t sum_bytes = slices == 1 ? 0 : stored * args.out_shape.elements() * sizeof(float);
  Buffer filter, partials;
  if (filter_bytes + sum_bytes != 0) {
    filter = partials = recorder.scratch(filter_bytes + sum_bytes);
    partials.offset += filter_bytes;
    partials.bytes -= filter_bytes;
  }
  if (!empty) record_filter(recorder, args, filter);
  for_each_phase(args, [&](const Phase& y, const Phase& x) {
    Product product = product_of(args, y, x);
    const Buffer own = moved(&filter, filter_place(args, y, x) * args.filters() * args.group_channels(), args.dtype);
    product.args.filter = &own;
    if (slices == 1) return record_product(recorder, product);
    product.partials = &partials;
    product.slice_taps = ceil_div(ceil_div(max_taps, slices), 16) * 16;
    for (product.first_slice = 0; product.first_slice < slices; product.first_slice += stored) {
      if (product.first_slice != 0 && product.first_slice * product.slice_taps >= taps_of(product.args)) break;
      product.slices = std::min(stored, slices - product.first_slice);
      record_product(recorder, product);
    }
  });
  if (slices > 1) record_slices(recorder, args, partials, stored);
}

}  // namespace tuff::conv
