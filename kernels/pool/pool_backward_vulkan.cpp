// Planner of the gradient of pooling: a gather, in which each element of the input looks at the windows that contain
// it. A maximum without indices is computed again first, for its indices.
#include <algorithm>
#include <optional>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/pool/pool_backward.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/pool_backward.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxPlane = 0x3fffffff;  // elements

// Upper bound on the windows that the kernel looks at for one element.
uint64_t windows_of(const PoolShape& s) {
  uint64_t windows = 1;
  for (uint32_t d = 0; d < 3; ++d) {
    const uint64_t reach = s.dilation[d] * (s.kernel[d] - 1) + 1;
    windows *= std::min(s.out[d], s.adaptive ? s.out[d] / s.in[d] + 2 : reach / s.stride[d] + 1);
  }
  return windows;
}

}  // namespace

void record_pool_backward(Recorder& recorder, const PoolBackwardArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  const PoolArgs& pool = args.pool;
  require_storage(traits, pool.dtype);
  const PoolShape s = pool_shape(pool);
  if (s.planes == 0) return;
  if (std::max(s.inputs(), s.outputs()) > kMaxPlane) {
    fail(TUFF_ERROR_UNSUPPORTED, "planes of {} elements give {}, at most 2^30 - 1 are pooled", s.inputs(), s.outputs());
  }
  const uint64_t windows = windows_of(s);
  if (traits.cpu && windows > kMaxLoopIterationsCpu / 4) {
    fail(TUFF_ERROR_UNSUPPORTED, "elements are in {} windows, on this device in at most {}", windows,
         kMaxLoopIterationsCpu / 4);
  }
  const uint64_t element = dtype_size(pool.dtype), outputs = s.planes * s.outputs();
  const Buffer* indices = pool.indices;
  Buffer found;
  if (pool.maximum && indices == nullptr) {
    const uint64_t index_bytes = ceil_div(outputs * 4, 256) * 256;
    found = recorder.scratch(index_bytes + outputs * element, Scratch::outermost);
    Buffer largest = found;
    largest.offset += index_bytes;
    largest.bytes -= index_bytes;
    PoolArgs again = pool;
    again.output = &largest;
    again.indices = indices = &found;
    record_pool(recorder, again);
  }
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_POOL_VARIANT">(), element);
  const uint64_t planes = std::max<uint64_t>((1u << 30) / std::max(s.inputs(), s.outputs()), 1);
  const bool dilated = std::any_of(s.dilation.begin(), s.dilation.end(), [](uint64_t x) { return x != 1; });
  for (uint64_t begin = 0; begin < s.planes; begin += planes) {
    const uint64_t count = std::min(planes, s.planes - begin), n = count * s.inputs(), m = count * s.outputs();
    const uint64_t run =
        device.cpu ? few_values(kMaxLoopIterationsCpu / (4 * windows), 1, device.items_each(n, 64)) : 1;
    shaders::PoolBackward::Push push;
    push.n = static_cast<uint32_t>(n);
    push.run = static_cast<uint32_t>(run);
    for (uint32_t d = 0; d < 3; ++d) {
      push.in_size[d] = static_cast<uint32_t>(s.in[d]);
      push.out_size[d] = static_cast<uint32_t>(s.out[d]);
      push.window[d] = static_cast<int32_t>(s.kernel[d]);
      push.stride[d] = static_cast<int32_t>(s.stride[d]);
      push.padding[d] = static_cast<int32_t>(s.padding[d]);
      push.dilation[d] = static_cast<int32_t>(s.dilation[d]);
    }
    KernelRequest kernel = shaders::PoolBackward::request({.adaptive = s.adaptive,
                                                           .dilated = dilated,
                                                           .maximum = pool.maximum,
                                                           .run = device.fixed_run(run),
                                                           .type = pool.dtype});
    kernel.streaming().constant(0, device.workgroup).constant(1, pool.count_include_pad != 0);
    const uint64_t first = begin * s.outputs();
    Dispatch dispatch("pool_backward");
    dispatch.operand(args.doutput, first * element, m * element, Access::read)
        .operand(args.dinput, begin * s.inputs() * element, n * element, Access::write)
        .operand(pool.maximum ? indices : nullptr, pool.maximum ? first * 4 : 0, pool.maximum ? m * 4 : 0, Access::read)
        .push(push)
        .groups_linear(ceil_div(n, device.workgroup * run), traits)
        .work(static_cast<double>((n + m) * element + (pool.maximum ? m * 4 : 0)), static_cast<double>(n * windows));
    log(TUFF_LOG_DISPATCH, "pool_backward {} {} planes of {}x{}x{}: {} lanes, {} elements of at most {} windows each",
        dtype_name(pool.dtype), count, s.in[0], s.in[1], s.in[2], device.workgroup, run, windows);
    recorder.dispatch(kernel, dispatch);
  }
}

}  // namespace tuff
