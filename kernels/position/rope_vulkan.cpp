// Planner of the rotary position embedding: a lane has four pairs, in as many heads as still leave the device full.
//
// TUFF_ROPE_VARIANT=gpu or cpu in the environment forces the shapes of that kind of device, for tests.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/position/rope.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/rope.hpp"

namespace tuff {
namespace {

uint64_t span_of(const RopeArgs& args, const std::array<uint64_t, 3>& strides) {
  return (args.batch - 1) * strides[0] + (args.heads - 1) * strides[1] + (args.seq - 1) * strides[2] + args.head_dim;
}

// base^(-2 / rotary) as a 64-bit fraction.
uint64_t factor_of(const RopeArgs& args) {
  const long double factor =
      std::pow(static_cast<long double>(args.base), -2.0L / static_cast<long double>(args.rotary_dim));
  return static_cast<uint64_t>(std::fmin(std::ldexp(factor, 64), std::ldexp(1.0L, 64) - 2048));
}

}  // namespace

void record_rope(Recorder& recorder, const RopeArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, args.dtype);
  if (args.batch * args.heads * args.seq * args.head_dim == 0) return;
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_ROPE_VARIANT">(), sizeof(float));
  const uint64_t pairs = args.rotary_dim / 2, rest = args.head_dim - args.rotary_dim;
  const bool in_place = args.input->allocation == args.output->allocation && args.input->offset == args.output->offset;
  bool single = pairs % 4 != 0 || rest % 4 != 0;
  uint64_t largest = std::max({args.heads, args.seq, args.head_dim, args.positions_stride});
  for (int i = 0; i < 3; ++i) {
    single = single || args.input_strides[i] % 4 != 0 || args.output_strides[i] % 4 != 0;
    if (i != 0) largest = std::max({largest, args.input_strides[i], args.output_strides[i]});
  }
  const uint64_t pair_blocks = ceil_div(pairs, 4), blocks = pair_blocks + (in_place ? 0 : ceil_div(rest, 4));
  if (blocks == 0) return;
  if (largest > 0x7fffffffu) fail(TUFF_ERROR_UNSUPPORTED, "a size or stride is {}, at most 2^31 - 1", largest);
  // Fewer heads per lane while there are few lanes.
  const uint64_t lanes = args.batch * args.heads * args.seq * blocks, wanted = device.cores * (device.cpu ? 64 : 2048);
  const uint64_t heads = few_values(lanes / wanted, 1, std::min<uint64_t>(args.heads, device.cpu ? 64 : 8));
  const uint64_t head_groups = ceil_div(args.heads, heads);
  const uint64_t items = head_groups * args.seq * blocks;  // of one batch
  if (items > 0x7fffffffu) fail(TUFF_ERROR_UNSUPPORTED, "{} blocks of one batch, at most 2^31 - 1", items);
  const uint64_t factor = pairs == 0 ? 0 : factor_of(args), element = dtype_size(args.dtype);
  const bool aligned = !single && aligned16(args.input) && aligned16(args.output);
  KernelRequest kernel = shaders::Rope::request({.exact_arithmetic = traits.cpu,
                                                 .interleaved = args.interleaved,
                                                 .parts = 1,
                                                 .positions = args.positions != nullptr,
                                                 .single = single,
                                                 .type = args.dtype,
                                                 .vector = vector_mode(traits, aligned)});
  kernel.streaming().constant(0, device.workgroup).constant(1, static_cast<uint32_t>(heads));
  const bool strides_fit = std::max(args.input_strides[0], args.output_strides[0]) <= 0x7fffffffu;
  const uint64_t step = strides_fit ? std::max<uint64_t>((1u << 30) / items, 1) : 1;
  for (uint64_t begin = 0; begin < args.batch; begin += step) {
    RopeArgs part = args;
    part.batch = std::min(step, args.batch - begin);
    const uint64_t input = span_of(part, args.input_strides), output = span_of(part, args.output_strides);
    shaders::Rope::Push push{};
    push.items = static_cast<uint32_t>(items * part.batch);
    push.seq = static_cast<uint32_t>(args.seq);
    push.heads = static_cast<uint32_t>(args.heads);
    push.head_groups = static_cast<uint32_t>(head_groups);
    push.blocks = static_cast<uint32_t>(blocks);
    push.pair_blocks = static_cast<uint32_t>(pair_blocks);
    push.pairs = static_cast<uint32_t>(pairs);
    push.head_dim = static_cast<uint32_t>(args.head_dim);
    for (int i = part.batch > 1 ? 0 : 1; i < 3; ++i) {
      push.input_strides[i] = static_cast<uint32_t>(args.input_strides[i]);
      push.output_strides[i] = static_cast<uint32_t>(args.output_strides[i]);
    }
    push.positions_stride = static_cast<uint32_t>(args.positions_stride);
    push.offset = static_cast<int32_t>(args.offset);
    push.factor_low = static_cast<uint32_t>(factor & 0xffffffffu);
    push.factor_high = static_cast<uint32_t>(factor >> 32);
    const uint64_t positions = args.positions ? (part.batch - 1) * args.positions_stride + args.seq : 0;
    KernelRequest piece = kernel;
    piece.wide(needs_wide(std::max({input, output, positions})));
    Dispatch dispatch("rope");
    dispatch.operand(args.input, begin * args.input_strides[0] * element, input * element, Access::read)
        .operand(args.output, begin * args.output_strides[0] * element, output * element, Access::write)
        .operand(args.positions, args.positions ? begin * args.positions_stride * 4 : 0, positions * 4, Access::read)
        .push(push)
        .groups_linear(ceil_div(push.items, device.workgroup), traits)
        .work(2.0 * static_cast<double>(part.batch * args.heads * args.seq * args.head_dim * element),
              10.0 * static_cast<double>(part.batch * args.heads * args.seq * args.head_dim));
    log(TUFF_LOG_DISPATCH, "rope {} batch={} heads={} seq={} head_dim={}: {} lanes, {} heads each{}",
        dtype_name(args.dtype), part.batch, args.heads, args.seq, args.head_dim, device.workgroup, heads,
        single ? ", element by element" : "");
    recorder.dispatch(piece, dispatch);
  }
}

}  // namespace tuff
