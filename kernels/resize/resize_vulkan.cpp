// Planner of resizing. If every axis keeps its size, this is a copy.
//
// TUFF_RESIZE_VARIANT=gpu or cpu in the environment forces the shapes of that kind of device, for tests.
#include <algorithm>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/division.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/resize/resize.hpp"
#include "kernels/shape/strided_copy.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/resize.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxElements = (uint64_t{1} << 30) - 1;  // of one dispatch's input, and of its output

using Push = shaders::Resize::Push;

Push push_of(const ResizeShape& s, uint64_t inner, uint64_t across) {
  Push push;
  const uint64_t sizes[4] = {s.axes[0].out * s.axes[1].out * across * inner, inner, across, s.axes[1].out};
  for (uint32_t i = 0; i < 4; ++i) {
    push.sizes[i] = static_cast<uint32_t>(sizes[i]);
    const Divider by = divider(push.sizes[i]);
    push.multipliers[i] = by.multiplier;
    push.shifts |= by.shift << (8 * i);
  }
  for (uint32_t i = 0; i < 3; ++i) {
    const ResizeAxis& axis = s.axes[i];
    const uint64_t part = axis.step % axis.whole;
    push.axes[i] = {static_cast<uint32_t>(axis.in - 1), static_cast<uint32_t>(axis.step / axis.whole),
                    static_cast<uint32_t>(part), static_cast<uint32_t>(axis.whole),
                    static_cast<uint32_t>((part << 32) / axis.whole)};
  }
  return push;
}

void record_copy(Recorder& recorder, const ResizeArgs& args, uint64_t elements) {
  StridedCopy copy{"resize", dtype_size(args.dtype), args.input, args.output, 0, 0, {}};
  copy.axes.append(elements, {1, 1});
  record_strided_copy(recorder, copy);
}

}  // namespace

void record_resize(Recorder& recorder, const ResizeArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, args.dtype);
  const ResizeShape s = resize_shape(args);
  if (s.planes == 0 || s.inner == 0) return;
  if (s.rank == 0) return record_copy(recorder, args, s.planes * s.inner);
  const uint64_t largest = std::max(s.inputs(), s.outputs());
  if (largest > kMaxElements) {
    fail(TUFF_ERROR_UNSUPPORTED, "planes of {} elements become {}, at most {} are resized", s.inputs(), s.outputs(),
         kMaxElements);
  }
  const uint64_t element = dtype_size(args.dtype);
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_RESIZE_VARIANT">(), element);
  const bool along_x = s.inner == 1 && s.axes[2].out % 4 == 0, along_inner = s.inner % 4 == 0;
  const uint64_t width = along_x || along_inner ? 4 : 1;
  Push push = push_of(s, along_inner ? s.inner / 4 : s.inner, along_x ? s.axes[2].out / 4 : s.axes[2].out);
  const uint64_t at_once = kMaxElements / largest;
  for (uint64_t begin = 0; begin < s.planes; begin += at_once) {
    const uint64_t planes = std::min(at_once, s.planes - begin), units = planes * push.sizes[0];
    // Enough workgroups for every core several times over.
    const uint64_t most = device.cpu ? 64 : 4, enough = (device.cpu ? 8 : 64) * device.cores * device.workgroup;
    const uint64_t run = few_values(std::min(units / enough, planes), 1, most);
    push.run = static_cast<uint32_t>(run);
    push.planes = static_cast<uint32_t>(planes);
    push.chunks = static_cast<uint32_t>(ceil_div(planes, run));
    push.n = push.chunks * push.sizes[0];
    const uint64_t input = begin * s.inputs() * element, output = begin * s.outputs() * element;
    const bool aligned = aligned16(args.output, output) && (along_x || aligned16(args.input, input));
    KernelRequest kernel = shaders::Resize::request({.along_x = along_x,
                                                     .linear = s.linear,
                                                     .parts = 1,
                                                     .run = device.fixed_run(run),
                                                     .type = args.dtype,
                                                     .vector = vector_mode(traits, aligned && width == 4),
                                                     .width = width});
    kernel.streaming().constant(0, device.workgroup).constant(1, s.rank).constant(2, s.centres).constant(3, s.halves);
    const auto taps = static_cast<double>(s.linear ? 1u << s.rank : 1u);
    Dispatch dispatch("resize");
    dispatch.operand(args.input, input, planes * s.inputs() * element, Access::read)
        .operand(args.output, output, planes * s.outputs() * element, Access::write)
        .push(push)
        .groups_linear(ceil_div(push.n, device.workgroup), traits)
        .work(static_cast<double>(planes * (s.inputs() + s.outputs()) * element),
              3 * taps * static_cast<double>(planes * s.outputs()));
    log(TUFF_LOG_DISPATCH,
        "resize {} {} planes of {}x{}x{} to {}x{}x{}, {} within: {} lanes, {} elements of {} planes each",
        dtype_name(args.dtype), planes, s.axes[0].in, s.axes[1].in, s.axes[2].in, s.axes[0].out, s.axes[1].out,
        s.axes[2].out, s.inner, device.workgroup, width, run);
    recorder.dispatch(kernel, dispatch);
  }
}

}  // namespace tuff
