// Planner of softmax's gradient (shared_rows.hpp). TUFF_SOFTMAX_VARIANT forces the shapes of a kind of device, for
// tests.
#include <string>

#include "kernels/softmax/shared_rows.hpp"
#include "kernels/softmax/softmax_backward.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/softmax_backward.hpp"

namespace tuff {
namespace {

constexpr double kFlops = 25;  // rough cost per element

void record_pass(Recorder& recorder, const SoftmaxBackwardArgs& args, const softmax::SharedRows& shape, int mode,
                 uint64_t row, uint64_t rows, const Buffer* partials) {
  const DeviceTraits& traits = recorder.traits();
  const bool aligned = aligned16(args.output) && aligned16(args.output_gradient) && aligned16(args.gradient);
  const uint64_t elements = rows * shape.view.axis, element = dtype_size(args.dtype);
  KernelRequest kernel = shaders::SoftmaxBackward::request({.exact_arithmetic = traits.cpu,
                                                            .lanes = shape.lanes,
                                                            .logarithm = args.logarithm,
                                                            .mode = mode,
                                                            .parts = block_parts(args.dtype),
                                                            .peel = shape.peel,
                                                            .shared = shape.lanes > shape.device.subgroup,
                                                            .type = args.dtype,
                                                            .unroll = block_parts(args.dtype) == 1 ? 4 : 2,
                                                            .vector = vector_mode(traits, !shape.peel && aligned)});
  kernel.streaming().constant(0, shape.device.workgroup).wide(needs_wide(elements));
  const shaders::SoftmaxBackward::Push push{.rows = static_cast<uint32_t>(rows),
                                            .extent = static_cast<uint32_t>(shape.view.axis),
                                            .inner = static_cast<uint32_t>(shape.view.inner),
                                            .segments = static_cast<uint32_t>(shape.segments.count),
                                            .segment = static_cast<uint32_t>(shape.segments.size),
                                            .scale = static_cast<float>(args.scale)};
  const uint64_t first = row * shape.view.axis * element, bytes = elements * element;
  const bool writes = mode != 1;
  Dispatch dispatch("softmax_backward");
  dispatch.operand(args.output, first, bytes, Access::read)
      .operand(args.output_gradient, first, bytes, Access::read)
      .operand(writes ? args.gradient : nullptr, writes ? first : 0, writes ? bytes : 0, Access::write)
      .operand(partials, 0, partials != nullptr ? rows * shape.segments.count * sizeof(float) : 0,
               writes ? Access::read : Access::write)
      .push(push)
      .groups_linear(shape.groups(rows), traits)
      .work((mode == 0 ? 5.0
             : writes  ? 3.0
                       : 2.0) *
                static_cast<double>(bytes),
            kFlops * static_cast<double>(elements));
  log(TUFF_LOG_DISPATCH, "softmax_backward {} rows={} extent={} inner={}: pass {}, {} lanes, {} segments of {}",
      dtype_name(args.dtype), rows, shape.view.axis, shape.view.inner, mode, shape.lanes, shape.segments.count,
      shape.segments.size);
  recorder.dispatch(kernel, dispatch);
}

}  // namespace

void record_softmax_backward(Recorder& recorder, const SoftmaxBackwardArgs& args) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  require_storage(recorder.traits(), args.dtype);
  if (view.outer == 0 || view.axis == 0 || view.inner == 0) return;
  const softmax::SharedRows shape(recorder.traits(), args.dtype, view);
  const Buffer* const partials = shape.cut() ? &recorder.scratch(shape.most_segments() * sizeof(float)) : nullptr;
  shape.for_each_pass(
      [&](int mode, uint64_t row, uint64_t rows) { record_pass(recorder, args, shape, mode, row, rows, partials); });
}

}  // namespace tuff
