// Planner of batch normalisation with stored statistics: every element is independent, and lanes process blocks of 16
// bytes (batch_norm.comp). TUFF_NORM_VARIANT=gpu or cpu in the environment forces the shapes of that class, for tests.
#include <algorithm>
#include <optional>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/norm/norm.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/batch_norm.hpp"

namespace tuff {

void record_batch_norm(Recorder& recorder, const BatchNormArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, args.dtype);
  require_storage(traits, args.weight_type);
  const uint64_t total = args.batch * args.channels * args.inner;
  if (total == 0) return;
  if (std::max(args.channels, args.inner) > 0x3fffffffu) {
    fail(TUFF_ERROR_UNSUPPORTED, "channels={} inner={}, at most 2^30 - 1 of each are normalised", args.channels,
         args.inner);
  }
  const StreamDevice device =
      stream_device(traits, forced_variant<"TUFF_NORM_VARIANT">(), dtype_size(computed_type(args.dtype)));
  const uint64_t block = 4 * block_parts(args.dtype), element = dtype_size(args.dtype);
  const int channel = args.inner == 1 && args.channels % block == 0 ? 0 : args.inner % block == 0 ? 1 : 2;
  const bool aligned = channel != 2 && aligned16(args.input) && aligned16(args.output) && aligned16(args.mean) &&
                       aligned16(args.variance) && aligned16(args.weight) && aligned16(args.bias);
  const uint64_t run = device.cpu ? device.items_each(total / block, 128) : 1;
  KernelRequest kernel = shaders::BatchNorm::request({.bias = args.bias != nullptr,
                                                      .channel = channel,
                                                      .exact_arithmetic = traits.cpu,
                                                      .parts = block_parts(args.dtype),
                                                      .run = device.fixed_run(run),
                                                      .type = args.dtype,
                                                      .vector = vector_mode(traits, aligned),
                                                      .weight = args.weight != nullptr,
                                                      .weight_type = args.weight_type});
  kernel.streaming().constant(0, device.workgroup);
  const uint64_t weight_bytes = args.channels * dtype_size(args.weight_type);
  for (uint64_t begin = 0; begin < total; begin += device.piece) {
    const uint64_t count = std::min(device.piece, total - begin);
    const shaders::BatchNorm::Push push{.n = static_cast<uint32_t>(count),
                                        .run = static_cast<uint32_t>(run),
                                        .first = static_cast<uint32_t>(begin % args.inner),
                                        .channel = static_cast<uint32_t>(begin / args.inner % args.channels),
                                        .inner = static_cast<uint32_t>(args.inner),
                                        .channels = static_cast<uint32_t>(args.channels),
                                        .epsilon = static_cast<float>(args.epsilon)};
    const uint64_t items = count / block + count % block;
    Dispatch dispatch("batch_norm");
    dispatch.operand(args.input, begin * element, count * element, Access::read)
        .operand(args.mean, 0, weight_bytes, Access::read)
        .operand(args.variance, 0, weight_bytes, Access::read)
        .operand(args.weight, 0, args.weight ? weight_bytes : 0, Access::read)
        .operand(args.bias, 0, args.bias ? weight_bytes : 0, Access::read)
        .operand(args.output, begin * element, count * element, Access::write)
        .push(push)
        .groups_linear(ceil_div(items, device.workgroup * run), traits)
        .work(2.0 * static_cast<double>(count * element), 20.0 * static_cast<double>(count));
    log(TUFF_LOG_DISPATCH, "batch_norm {} n={} inner={} channels={}: {} lanes, {} blocks each", dtype_name(args.dtype),
        count, args.inner, args.channels, device.workgroup, run);
    recorder.dispatch(kernel, dispatch);
  }
}

}  // namespace tuff
