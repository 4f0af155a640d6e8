// Planner of random numbers with parameters: a lane has one element, or on CPU devices a run of them.
// TUFF_RANDOM_VARIANT forces the shapes of a kind of device, for tests.
#include <algorithm>

#include "kernels/common/check.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/random/variates.hpp"
#include "planning/arithmetic.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/variates.hpp"

namespace tuff {
namespace {

constexpr double kVariateFlops = 300;  // rough operations for each element

}  // namespace

void record_variates(Recorder& recorder, const VariatesArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  if (args.n == 0) return;
  constexpr uint64_t kElement = 4;
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_RANDOM_VARIANT">(), kElement);
  const std::array<uint32_t, 3> values = variates::bits_of(args);
  uint32_t given = 0;
  for (uint32_t p = 0; p < 3; ++p) given |= args.parameters[p] != nullptr ? 1u << p : 0;
  for (uint64_t begin = 0; begin < args.n; begin += device.piece) {
    const uint64_t count = std::min(device.piece, args.n - begin), first = args.offset + begin;
    const uint64_t run = device.cpu ? device.items_each(count, 128) : 1;
    KernelRequest kernel = shaders::Variates::request(
        {.distribution = args.distribution, .given = static_cast<int32_t>(given), .run = device.fixed_run(run)});
    kernel.streaming().constant(0, device.workgroup);
    const shaders::Variates::Push push{.n = static_cast<uint32_t>(count),
                                       .run = static_cast<uint32_t>(run),
                                       .element = {low_word(first), high_word(first)},
                                       .sequence = {low_word(args.sequence), high_word(args.sequence)},
                                       .key = {low_word(args.seed), high_word(args.seed)},
                                       .values = {values[0], values[1], values[2]}};
    Dispatch dispatch("variates");
    dispatch.operand(args.output, begin * kElement, count * kElement, Access::write);
    uint64_t bytes = count * kElement;
    for (const Buffer* parameter : args.parameters) {
      const uint64_t read = parameter != nullptr ? count * kElement : 0;
      dispatch.operand(parameter, read != 0 ? begin * kElement : 0, read, Access::read);
      bytes += read;
    }
    dispatch.push(push)
        .groups_linear(ceil_div(count, device.workgroup * run), traits)
        .work(static_cast<double>(bytes), kVariateFlops * static_cast<double>(count));
    log(TUFF_LOG_DISPATCH, "variates {} n={}: {} lanes, {} elements each", dtype_name(args.dtype), count,
        device.workgroup, run);
    recorder.dispatch(kernel, dispatch);
  }
}

}  // namespace tuff
