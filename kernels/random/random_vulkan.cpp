// Planner of random numbers: a lane has one block of four elements, or on CPU devices a run of them.
//
// TUFF_RANDOM_VARIANT=gpu or cpu in the environment forces the shapes of that kind of device, for tests.
#include "kernels/common/check.hpp"
#include "kernels/random/random.hpp"
#include "kernels/random/random_plan.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/random.hpp"

namespace tuff {
namespace {

constexpr double kFlops = 40;  // rough operations for each element

}  // namespace

void record_random(Recorder& recorder, const RandomArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, args.dtype);
  if (args.n == 0) return;
  const uint64_t element = dtype_size(args.dtype);
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_RANDOM_VARIANT">(), element);
  const random::Numbers numbers = random::numbers_of(args);
  const auto skipped = static_cast<uint32_t>(args.offset % 4);
  const bool whole = skipped == 0 && args.output->offset % (4 * element) == 0;
  random::for_each_piece(device, args.n, args.offset, [&](const random::Piece& piece) {
    const auto& [begin, count, block, blocks, run] = piece;
    KernelRequest kernel = shaders::Random::request(
        {.distribution = args.distribution, .run = device.fixed_run(run), .type = args.dtype, .whole = whole});
    kernel.streaming().constant(0, device.workgroup);
    const shaders::Random::Push push{.n = static_cast<uint32_t>(count),
                                     .run = static_cast<uint32_t>(run),
                                     .skipped = skipped,
                                     .block = {low_word(block), high_word(block)},
                                     .sequence = {low_word(args.sequence), high_word(args.sequence)},
                                     .key = {low_word(args.seed), high_word(args.seed)},
                                     .offset = numbers.offset,
                                     .factor = numbers.factor,
                                     .least = numbers.least,
                                     .range = numbers.range,
                                     .threshold = numbers.threshold};
    Dispatch dispatch("random");
    dispatch.operand(args.output, begin * element, count * element, Access::write)
        .push(push)
        .groups_linear(ceil_div(blocks, device.workgroup * run), traits)
        .work(static_cast<double>(count * element), kFlops * static_cast<double>(count));
    log(TUFF_LOG_DISPATCH, "random {} n={}: {} lanes, {} blocks each{}", dtype_name(args.dtype), count,
        device.workgroup, run, whole ? "" : ", element by element");
    recorder.dispatch(kernel, dispatch);
  });
}

}  // namespace tuff
