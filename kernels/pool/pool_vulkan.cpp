// Planner of pooling. Whole planes are rows to reduce (kernels/reduce); smaller windows are a lane's each (pool.comp).
//
// TUFF_POOL_VARIANT=gpu or cpu in the environment forces the shapes of that kind of device, for tests.
#include <algorithm>
#include <optional>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/division.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/reduce/reduce.hpp"
#include "runtime/log.hpp"
#include "runtime/platform/platform.hpp"
#include "runtime/vulkan/recorder.hpp"
#include "shaders.hpp"

namespace tuff {
namespace {

// Mirrors the push block of pool.comp.
struct Push {
  uint32_t n;
  uint32_t in_size[3], out_size[3], multipliers[3], shifts;
  int32_t window[3], stride[3], padding[3], dilation[3];
};

Push push_of(const PoolShape& s) {
  Push push{};
  for (uint32_t d = 0; d < 3; ++d) {
    push.in_size[d] = static_cast<uint32_t>(s.in[d]);
    push.out_size[d] = static_cast<uint32_t>(s.out[d]);
    const Divider by = divider(push.out_size[d]);
    push.multipliers[d] = by.multiplier;
    push.shifts |= by.shift << (8 * d);
    push.window[d] = static_cast<int32_t>(s.kernel[d]);
    push.stride[d] = static_cast<int32_t>(s.stride[d]);
    push.padding[d] = static_cast<int32_t>(s.padding[d]);
    push.dilation[d] = static_cast<int32_t>(s.dilation[d]);
  }
  return push;
}

// The most elements of one window.
uint64_t window_elements(const PoolShape& s) {
  uint64_t elements = 1;
  for (uint32_t d = 0; d < 3; ++d) {
    elements *= s.adaptive ? std::min(s.in[d], s.in[d] / s.out[d] + 2) : std::min(s.kernel[d], s.in[d] + s.padding[d]);
  }
  return elements;
}

}  // namespace

void record_pool(Recorder& recorder, const PoolArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, args.dtype);
  const PoolShape s = pool_shape(args);
  if (s.planes == 0) return;
  if (s.global() && args.indices == nullptr) {
    const uint64_t rows[2] = {s.planes, s.inputs()};
    record_reduce(recorder,
                  {args.dtype, args.maximum ? TUFF_REDUCE_MAX : TUFF_REDUCE_MEAN, args.input, args.output, rows, 2, 1});
    return;
  }
  if (std::max(s.inputs(), s.outputs()) > 0x3fffffffu) {
    fail(TUFF_ERROR_UNSUPPORTED, "planes of {} elements give {}, at most 2^30 - 1 are pooled", s.inputs(), s.outputs());
  }
  const uint64_t window = window_elements(s);
  if (traits.cpu && window > kMaxLoopIterationsCpu / 2) {
    fail(TUFF_ERROR_UNSUPPORTED, "windows of {} elements, on this device at most {} are pooled", window,
         kMaxLoopIterationsCpu / 2);
  }
  const uint64_t element = dtype_size(args.dtype);
  const StreamDevice device = stream_device(traits, platform::environment_once<"TUFF_POOL_VARIANT">(), element);
  KernelRequest kernel(shaders::pool);
  kernel.streaming();
  kernel.define("TUFF_TYPE", args.dtype)
      .define("TUFF_MAXIMUM", args.maximum)
      .define("TUFF_INDICES", args.indices != nullptr)
      .define("TUFF_ADAPTIVE", s.adaptive);
  const uint64_t planes = std::max<uint64_t>((1u << 30) / std::max(s.inputs(), s.outputs()), 1);
  for (uint64_t begin = 0; begin < s.planes; begin += planes) {
    const uint64_t count = std::min(planes, s.planes - begin), n = count * s.outputs();
    uint64_t run = 1;
    if (device.cpu) {
      run = std::clamp<uint64_t>(n / device.workgroup / (8 * device.cores), 1, 64);
      run = std::clamp<uint64_t>(kMaxLoopIterationsCpu / (2 * window), 1, run);
    }
    Push push = push_of(s);
    push.n = static_cast<uint32_t>(n);
    KernelRequest piece = kernel;
    piece.constant(0, device.workgroup)
        .constant(1, static_cast<uint32_t>(run))
        .constant(2, args.count_include_pad != 0);
    const uint64_t output = begin * s.outputs();
    Dispatch dispatch(args.maximum ? "max_pool" : "avg_pool");
    dispatch.operand(args.input, begin * s.inputs() * element, count * s.inputs() * element, Access::read)
        .operand(args.output, output * element, n * element, Access::write)
        .operand(args.indices, args.indices ? output * 4 : 0, args.indices ? n * 4 : 0, Access::write)
        .push(push)
        .groups_linear(ceil_div(n, device.workgroup * run), traits)
        .work(static_cast<double>(count * (s.inputs() + s.outputs()) * element), static_cast<double>(n * window));
    log(TUFF_LOG_DISPATCH, "{} {} {} planes of {}x{}x{}: {} lanes, {} windows of at most {} each", dispatch.label(),
        dtype_name(args.dtype), count, s.in[0], s.in[1], s.in[2], device.workgroup, run, window);
    recorder.dispatch(piece, dispatch);
  }
}

}  // namespace tuff
