// Planner of pooling. Whole planes are reduced as rows (kernels/reduce). For small windows without dilation a lane
// computes several that overlap (pool_windows.comp); any others are computed one per lane and step (pool.comp).
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
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/pool.hpp"
#include "shaders/pool_windows.hpp"

namespace tuff {
namespace {

// Fills in everything but n and run.
shaders::Pool::Push push_of(const PoolShape& s) {
  shaders::Pool::Push push;
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

// TUFF_DILATED of pool.comp: walking over a few taps before the input is cheaper than a division.
uint32_t dilation_mode(const PoolShape& s) {
  constexpr uint64_t kMaxWalked = 16;
  bool dilated = false, far = false;
  for (uint32_t d = 0; d < 3; ++d) {
    dilated = dilated || s.dilation[d] != 1;
    far = far || s.padding[d] / s.dilation[d] > kMaxWalked;
  }
  return !dilated ? 0 : far ? 2 : 1;
}

// Upper bound on the taps of one window that the kernel walks over: those in the input, of which there are at most as
// many as elements in a plane, and in mode 1 a few before it. Never 0.
uint64_t window_elements(const PoolShape& s) {
  const bool walks = dilation_mode(s) == 1;
  uint64_t elements = 1;
  for (uint32_t d = 0; d < 3; ++d) {
    const uint64_t reach = s.in[d] + (walks ? s.padding[d] : 0);
    elements *=
        s.adaptive ? std::min(s.in[d], s.in[d] / s.out[d] + 2) : std::min(s.kernel[d], ceil_div(reach, s.dilation[d]));
  }
  return elements;
}

// Whether pool_windows.comp covers these windows. Their sizes are part of its code.
bool are_small(const PoolArgs& args, const PoolShape& s) {
  if (s.adaptive || args.indices != nullptr || s.kernel[0] != 1 || s.stride[0] != 1 || s.padding[0] != 0) return false;
  for (int d = 1; d < 3; ++d) {
    if (s.kernel[d] > 5 || s.stride[d] > 3 || s.dilation[d] != 1) return false;
  }
  return s.out[2] > 1;
}

void record_windows(Recorder& recorder, const StreamDevice& device, const PoolArgs& args, const PoolShape& s,
                    uint64_t at_once) {
  const DeviceTraits& traits = recorder.traits();
  const uint64_t element = dtype_size(args.dtype), rows_each = s.out[1] > 1 ? 2 : 1;
  shaders::PoolWindows::Push push;
  push.width = static_cast<uint32_t>(s.in[2]);
  push.height = static_cast<uint32_t>(s.in[1]);
  push.out_width = static_cast<uint32_t>(s.out[2]);
  push.out_height = static_cast<uint32_t>(s.out[1]);
  push.vec4s = static_cast<uint32_t>(ceil_div(s.out[2], 4));
  push.rows = static_cast<uint32_t>(ceil_div(s.out[1], rows_each));
  push.padding_y = static_cast<int32_t>(s.padding[1]);
  const Divider by_vec4s = divider(push.vec4s), by_rows = divider(push.rows);
  push.multipliers[0] = by_vec4s.multiplier;
  push.multipliers[1] = by_rows.multiplier;
  push.shifts = by_vec4s.shift | by_rows.shift << 8;
  const uint64_t plane_in = s.in[1] * s.in[2], plane_out = s.out[1] * s.out[2];
  for (uint64_t begin = 0; begin < s.planes; begin += at_once) {
    // The kernel's planes have two axes, so a plane of three counts once for each depth.
    const uint64_t count = std::min(at_once, s.planes - begin) * s.in[0], first = begin * s.in[0];
    const uint64_t items = count * push.vec4s * push.rows;
    const bool vectors = s.in[2] % 4 == 0 && s.out[2] % 4 == 0 && aligned16(args.input, first * plane_in * element) &&
                         aligned16(args.output, first * plane_out * element);
    const uint64_t run = device.cpu ? device.items_each(items, 64) : 1;
    push.n = static_cast<uint32_t>(items);
    push.run = static_cast<uint32_t>(run);
    KernelRequest kernel = shaders::PoolWindows::request({.kernel_x = s.kernel[2],
                                                          .kernel_y = s.kernel[1],
                                                          .maximum = args.maximum,
                                                          .padding_x = s.padding[2],
                                                          .parts = 1,
                                                          .rows = rows_each,
                                                          .run = device.fixed_run(run),
                                                          .stride_x = s.stride[2],
                                                          .stride_y = s.stride[1],
                                                          .type = args.dtype,
                                                          .vector = vector_mode(traits, vectors)});
    kernel.streaming().constant(0, device.workgroup).constant(1, args.count_include_pad != 0);
    Dispatch dispatch(args.maximum ? "max_pool" : "avg_pool");
    dispatch.operand(args.input, first * plane_in * element, count * plane_in * element, Access::read)
        .operand(args.output, first * plane_out * element, count * plane_out * element, Access::write)
        .push(push)
        .groups_linear(ceil_div(items, device.workgroup * run), traits)
        .work(static_cast<double>(count * (plane_in + plane_out) * element),
              static_cast<double>(count * plane_out * s.kernel[1] * s.kernel[2]));
    log(TUFF_LOG_DISPATCH, "{} {} {} planes of {}x{}, windows of {}x{}: {} lanes, {} times {}x4 windows each{}",
        dispatch.label(), dtype_name(args.dtype), count, s.in[1], s.in[2], s.kernel[1], s.kernel[2], device.workgroup,
        run, rows_each, vectors ? ", as vectors" : "");
    recorder.dispatch(kernel, dispatch);
  }
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
  const uint64_t element = dtype_size(args.dtype);
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_POOL_VARIANT">(), element);
  const uint64_t planes = std::max<uint64_t>((1u << 30) / std::max(s.inputs(), s.outputs()), 1);
  if (are_small(args, s)) return record_windows(recorder, device, args, s, planes);
  const uint64_t window = window_elements(s);
  if (traits.cpu && window > kMaxLoopIterationsCpu / 2) {
    fail(TUFF_ERROR_UNSUPPORTED, "windows of {} elements, on this device at most {} are pooled", window,
         kMaxLoopIterationsCpu / 2);
  }
  const uint32_t dilated = dilation_mode(s);
  for (uint64_t begin = 0; begin < s.planes; begin += planes) {
    const uint64_t count = std::min(planes, s.planes - begin), n = count * s.outputs();
    const uint64_t run = device.cpu ? few_values(kMaxLoopIterationsCpu / (2 * window), 1, device.items_each(n, 64)) : 1;
    shaders::Pool::Push push = push_of(s);
    push.n = static_cast<uint32_t>(n);
    push.run = static_cast<uint32_t>(run);
    KernelRequest kernel = shaders::Pool::request({.adaptive = s.adaptive,
                                                   .dilated = dilated,
                                                   .indices = args.indices != nullptr,
                                                   .maximum = args.maximum,
                                                   .run = device.fixed_run(run),
                                                   .type = args.dtype});
    kernel.streaming().constant(0, device.workgroup).constant(1, args.count_include_pad != 0);
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
    recorder.dispatch(kernel, dispatch);
  }
}

}  // namespace tuff
