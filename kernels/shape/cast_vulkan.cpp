// Planner of cast. A cast between equal types is a copy.
#include <algorithm>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/shape/shape.hpp"
#include "kernels/shape/strided_copy.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/cast.hpp"

namespace tuff {

void record_cast(Recorder& recorder, const CastArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, args.from);
  require_storage(traits, args.to);
  if (args.n == 0) return;
  if (args.from == args.to) {
    StridedCopy copy{"cast", dtype_size(args.from), args.input, args.output, 0, 0, {}};
    copy.axes.append(args.n, {1, 1});
    record_strided_copy(recorder, copy);
    return;
  }
  const CastParts parts = cast_parts(args);
  const uint64_t from = dtype_size(parts.from), to = dtype_size(parts.to);
  const bool apart = parts.from_step != parts.to_step;  // one of the types is complex
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_SHAPE_VARIANT">(), sizeof(float));
  const bool aligned = !apart && aligned16(args.input) && aligned16(args.output);
  // Lanes whose items have few bytes process several items.
  const uint64_t least = std::max(from, to) < 4 ? 4 : std::min(from, to) < 4 ? 2 : 1;
  const uint64_t run = device.cpu ? device.items_each(parts.n / 4, 128) : least;
  KernelRequest kernel = shaders::Cast::request({.run = device.fixed_run(run),
                                                 .source = parts.from,
                                                 .source_bytes = from,
                                                 .source_step = parts.from_step,
                                                 .target = parts.to,
                                                 .target_bytes = to,
                                                 .target_step = parts.to_step,
                                                 .unroll = !device.cpu && least > 1 ? 2 : 1,
                                                 .vector = aligned});
  kernel.streaming().constant(0, device.workgroup);
  // StreamDevice::piece counts elements of four bytes; halved, it suits those of eight too, and complex ones take two.
  const uint64_t piece = device.piece / (apart ? 4 : 2) / 64 * 64;
  const uint64_t from_element = from * parts.from_step, to_element = to * parts.to_step;
  for (uint64_t begin = 0; begin < parts.n; begin += piece) {
    const uint64_t count = std::min(piece, parts.n - begin), items = count / 4 + count % 4;
    Dispatch dispatch("cast");
    dispatch.operand(args.input, begin * from_element, count * from_element, Access::read)
        .operand(args.output, begin * to_element, count * to_element, Access::write)
        .push(shaders::Cast::Push{static_cast<uint32_t>(count), static_cast<uint32_t>(run)})
        .groups_linear(ceil_div(items, device.workgroup * run), traits)
        .work(static_cast<double>(count * (from_element + to_element)), 10.0 * static_cast<double>(count));
    log(TUFF_LOG_DISPATCH, "cast {} to {} n={}: {} lanes, {} times four each", dtype_name(args.from),
        dtype_name(args.to), count, device.workgroup, run);
    recorder.dispatch(kernel, dispatch);
  }
}

}  // namespace tuff
