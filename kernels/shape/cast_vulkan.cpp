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
  const uint64_t from = dtype_size(args.from), to = dtype_size(args.to);
  if (args.from == args.to) {
    StridedCopy copy{"cast", from, args.input, args.output, 0, 0, {}};
    copy.axes.append(args.n, {1, 1});
    record_strided_copy(recorder, copy);
    return;
  }
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_SHAPE_VARIANT">(), sizeof(float));
  const bool aligned = aligned16(args.input) && aligned16(args.output);
  // Lanes whose items have few bytes process several items.
  const uint64_t least = std::max(from, to) < 4 ? 4 : std::min(from, to) < 4 ? 2 : 1;
  const uint64_t run = device.cpu ? device.items_each(args.n / 4, 128) : least;
  KernelRequest kernel = shaders::Cast::request({.run = device.fixed_run(run),
                                                 .source = args.from,
                                                 .source_bytes = from,
                                                 .target = args.to,
                                                 .target_bytes = to,
                                                 .unroll = !device.cpu && least > 1 ? 2 : 1,
                                                 .vector = aligned});
  kernel.streaming().constant(0, device.workgroup);
  // StreamDevice::piece counts elements of four bytes; halved, it suits those of eight too.
  const uint64_t piece = device.piece / 2 / 64 * 64;
  for (uint64_t begin = 0; begin < args.n; begin += piece) {
    const uint64_t count = std::min(piece, args.n - begin), items = count / 4 + count % 4;
    Dispatch dispatch("cast");
    dispatch.operand(args.input, begin * from, count * from, Access::read)
        .operand(args.output, begin * to, count * to, Access::write)
        .push(shaders::Cast::Push{static_cast<uint32_t>(count), static_cast<uint32_t>(run)})
        .groups_linear(ceil_div(items, device.workgroup * run), traits)
        .work(static_cast<double>(count * (from + to)), 10.0 * static_cast<double>(count));
    log(TUFF_LOG_DISPATCH, "cast {} to {} n={}: {} lanes, {} times four each", dtype_name(args.from),
        dtype_name(args.to), count, device.workgroup, run);
    recorder.dispatch(kernel, dispatch);
  }
}

}  // namespace tuff
