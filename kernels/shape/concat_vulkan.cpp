// Planner of concat on GPUs. Several inputs share one dispatch (concat.comp). In separate dispatches each would wait
// for the one before it, as their parts of the output interleave.
#include <algorithm>
#include <array>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/division.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/shape/shape.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/concat.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxUnits = 1u << 30;  // of the output
constexpr size_t kAtOnce = 4;

// The largest unit, in bytes, that divides all operands' offsets and rows.
uint64_t unit_of(const ConcatArgs& args, uint64_t inner_bytes) {
  uint64_t all = args.output->offset;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    if (args.sizes[i] != 0) all |= args.inputs[i]->offset | (args.sizes[i] * inner_bytes);
  }
  return std::min<uint64_t>(all & (~all + 1), 16);
}

}  // namespace

bool record_concat_at_once(Recorder& recorder, const ConcatArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_SHAPE_VARIANT">(), sizeof(float));
  if (device.cpu || view.outer * view.axis * view.inner == 0) return false;
  const uint64_t inner = view.inner * dtype_size(args.dtype), unit = unit_of(args, inner);
  if ((unit == 1 && !traits.storage8) || (unit == 2 && !traits.storage16)) return false;
  const uint64_t pitch = view.axis * inner / unit;
  if (view.outer * pitch > kMaxUnits) return false;
  const uint64_t run = unit < 16 ? 4 : 1;
  KernelRequest kernel = shaders::Concat::request({.long_ = traits.cpu && traits.addresses && unit >= 8, .unit = unit});
  kernel.streaming().constant(0, device.workgroup).constant(1, static_cast<uint32_t>(run));
  uint64_t first = 0;
  for (size_t next = 0; next < args.inputs.size();) {
    shaders::Concat::Push push;
    push.pitch = static_cast<uint32_t>(pitch);
    std::array<const Buffer*, kAtOnce> inputs{};
    const uint64_t begin = first;
    uint64_t groups = 0;
    for (size_t k = 0; k < kAtOnce; ++k) {
      while (next < args.inputs.size() && args.sizes[next] == 0) ++next;
      if (next < args.inputs.size()) {
        const uint64_t width = args.sizes[next] * inner / unit;
        const Divider by = divider(static_cast<uint32_t>(width));
        inputs[k] = args.inputs[next++];
        push.n[k] = static_cast<uint32_t>(view.outer * width);
        push.widths[k] = static_cast<uint32_t>(width);
        push.multipliers[k] = by.multiplier;
        push.shifts |= by.shift << (8 * k);
        push.first[k] = static_cast<uint32_t>(first - begin);
        groups += ceil_div(push.n[k], device.workgroup * run);
        first += width;
      }
      push.ends[k] = static_cast<uint32_t>(groups);
    }
    if (groups == 0) break;
    const uint64_t span = (view.outer - 1) * pitch + (first - begin);
    Dispatch dispatch("concat");
    for (size_t k = 0; k < kAtOnce; ++k) dispatch.operand(inputs[k], 0, push.n[k] * unit, Access::read);
    dispatch.operand(args.output, begin * unit, span * unit, Access::write)
        .push(push)
        .groups_linear(groups, traits)
        .work(2.0 * static_cast<double>(view.outer * (first - begin) * unit), 0);
    log(TUFF_LOG_DISPATCH, "concat of {} rows: units of {} bytes, {} of {} in a row, {} lanes, {} each", view.outer,
        unit, first - begin, pitch, device.workgroup, run);
    recorder.dispatch(kernel, dispatch);
  }
  return true;
}

}  // namespace tuff
