// Planner of dropout: a lane has one block of four elements, or on CPU devices a run of them, as of random numbers.
// TUFF_RANDOM_VARIANT forces the shapes of a kind of device, for tests.
#include "kernels/common/check.hpp"
#include "kernels/random/dropout.hpp"
#include "kernels/random/random_plan.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/dropout.hpp"

namespace tuff {
namespace {

constexpr double kFlops = 30;  // rough operations for each element

}  // namespace

void record_dropout(Recorder& recorder, const DropoutArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, args.dtype);
  const bool masked = args.mask != nullptr;
  if (masked) require_storage(traits, TUFF_U8);
  if (args.n == 0) return;
  const uint64_t element = dtype_size(args.dtype);
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_RANDOM_VARIANT">(), element);
  const random::Numbers numbers = random::drops(args);
  const auto skipped = static_cast<uint32_t>(args.offset % 4);
  const bool whole = skipped == 0 && args.input->offset % (4 * element) == 0 &&
                     args.output->offset % (4 * element) == 0 && (!masked || args.mask->offset % 4 == 0);
  random::for_each_piece(device, args.n, args.offset, [&](const random::Piece& piece) {
    const auto& [begin, count, block, blocks, run] = piece;
    KernelRequest kernel =
        shaders::Dropout::request({.mask = masked, .run = device.fixed_run(run), .type = args.dtype, .whole = whole});
    kernel.streaming().constant(0, device.workgroup);
    const shaders::Dropout::Push push{.n = static_cast<uint32_t>(count),
                                      .run = static_cast<uint32_t>(run),
                                      .skipped = skipped,
                                      .block = {low_word(block), high_word(block)},
                                      .sequence = {low_word(args.sequence), high_word(args.sequence)},
                                      .key = {low_word(args.seed), high_word(args.seed)},
                                      .threshold = numbers.threshold,
                                      .all = numbers.range,
                                      .factor = random::factor_of(args)};
    Dispatch dispatch("dropout");
    dispatch.operand(args.input, begin * element, count * element, Access::read)
        .operand(args.output, begin * element, count * element, Access::write)
        .operand(args.mask, masked ? begin : 0, masked ? count : 0, Access::write)
        .push(push)
        .groups_linear(ceil_div(blocks, device.workgroup * run), traits)
        .work(static_cast<double>(count * (2 * element + (masked ? 1 : 0))), kFlops * static_cast<double>(count));
    log(TUFF_LOG_DISPATCH, "dropout {} n={}: {} lanes, {} blocks each{}", dtype_name(args.dtype), count,
        device.workgroup, run, whole ? "" : ", element by element");
    recorder.dispatch(kernel, dispatch);
  });
}

}  // namespace tuff
