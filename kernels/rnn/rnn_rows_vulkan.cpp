// Steps of recurrent layers on CPU devices: many in one dispatch (rnn_rows.comp), where a dispatch costs as much as the
// arithmetic of a step.
#include <bit>

#include "kernels/common/loop_limit.hpp"
#include "kernels/rnn/rnn_plan.hpp"
#include "shaders/rnn_pack.hpp"
#include "shaders/rnn_rows.hpp"

namespace tuff::rnn {
namespace {

// With more units, or more sequences than cores, the kernels of GEMM make up for the dispatches that they cost.
constexpr uint64_t kFewUnits = 64;

// Sequences of a workgroup, which share the weights that it loads, but not so many that cores are left without any.
uint64_t rows_of(const Layer& layer) { return few_values(layer.rows() / layer.device.cores, 1, 8); }

uint64_t capacity_of(const Layer& layer) { return std::max<uint64_t>(64, std::bit_ceil(packed_width(layer))); }

// The most sequences, up to `rows`, whose h fits in shared memory; 0: not even one.
uint64_t fitting_rows(const Layer& layer, uint64_t rows) {
  const uint64_t most = layer.recorder.traits().shared_bytes / sizeof(float);
  while (rows > 0 && 2 * rows * capacity_of(layer) > most) rows /= 2;
  return rows;
}

uint64_t iterations(const Layer& layer) {
  const uint64_t lanes = layer.device.subgroup, blocks = ceil_div(layer.args.hidden_size, 4);
  return ceil_div(blocks, lanes) * (packed_width(layer) / lanes + 1) + 1;
}

}  // namespace

uint64_t packed_width(const Layer& layer) { return round_up(layer.args.hidden_size, layer.device.subgroup); }

uint64_t packed_numbers(const Layer& layer) {
  return layer.args.directions() * packed_width(layer) * layer.args.gates() * ceil_div(layer.args.hidden_size, 4) * 4;
}

bool takes_rows(const Layer& layer) {
  const DeviceTraits& traits = layer.recorder.traits();
  const RnnArgs& args = layer.args;
  const uint64_t lanes = layer.device.subgroup;
  if (!layer.device.cpu || !traits.subgroup_shuffle || lanes > 64 || max_along_x(traits) < lanes) return false;
  if (!layer.wants_rows && (layer.rows() > layer.device.cores || args.hidden_size > kFewUnits)) return false;
  if (args.resets_first() || args.proj_size != 0 || args.steps == 0) return false;
  // All indices have 32 bits.
  const uint64_t inputs = layer.steps_at_once * args.batch * args.directions() * args.gate_rows();
  if (needs_wide(std::max({args.y != nullptr ? args.y_elements() : 0, inputs, packed_numbers(layer)}))) return false;
  if (!traits.addresses && packed_numbers(layer) > (traits.max_range - 1024) / sizeof(float)) return false;
  return fitting_rows(layer, rows_of(layer)) != 0 && iterations(layer) <= kMaxLoopIterationsCpu;
}

void record_pack(const Layer& layer) {
  const RnnArgs& args = layer.args;
  const uint64_t d = args.directions(), weights = d * args.gate_rows() * args.hidden_size;
  const uint64_t items = packed_numbers(layer) / 4;
  const uint32_t threads = layer.device.workgroup;
  KernelRequest kernel = shaders::RnnPack::request({.type = args.dtype});
  kernel.streaming().constant(0, threads).wide(needs_wide(weights));
  const Buffer packed = layer.region(layer.weights);
  Dispatch dispatch("rnn");
  dispatch.operand(args.r, 0, weights * dtype_size(args.dtype), Access::read)
      .operand(&packed, 0, layer.weights.count * sizeof(float), Access::write)
      .push(shaders::RnnPack::Push{.directions = static_cast<uint32_t>(d),
                                   .gates = static_cast<uint32_t>(args.gates()),
                                   .hidden = static_cast<uint32_t>(args.hidden_size),
                                   .width = static_cast<uint32_t>(packed_width(layer))})
      .groups_linear(ceil_div(items, threads), layer.recorder.traits())
      .work(static_cast<double>(32 * items), static_cast<double>(4 * items));
  layer.recorder.dispatch(kernel, dispatch);
}

void record_rows(const Layer& layer, const InputSteps& inputs) {
  const RnnArgs& args = layer.args;
  const DeviceTraits& traits = layer.recorder.traits();
  const uint64_t d = args.directions(), size = dtype_size(args.dtype), rows = fitting_rows(layer, rows_of(layer));
  const KernelRequest kernel = shaders::RnnRows::request({.after = args.linear_before_reset,
                                                          .bias = layer.has_bias(),
                                                          .capacity = capacity_of(layer),
                                                          .cell = args.cell,
                                                          .clip = args.clip > 0,
                                                          .exact_arithmetic = traits.cpu,
                                                          .lanes = layer.device.subgroup,
                                                          .lengths = args.lengths != nullptr,
                                                          .onnx = args.gate_order == TUFF_RNN_GATES_ONNX,
                                                          .output = args.y != nullptr,
                                                          .peepholes = args.peepholes != nullptr,
                                                          .rows = rows,
                                                          .type = args.dtype});
  const Buffer state = layer.region(layer.state), input = layer.region(layer.inputs), bias = layer.region(layer.bias),
               weights = layer.region(layer.weights);
  const uint64_t most = std::max<uint64_t>(kMaxLoopIterationsCpu / iterations(layer), 1);
  const uint64_t end = inputs.done + inputs.count;
  for (uint64_t i = inputs.done; i < end; i += most) {
    const uint64_t steps = std::min(most, end - i);
    shaders::RnnRows::Push push{};
    for (uint64_t direction = 0; direction < d; ++direction) {
      const uint64_t t = layer.step_of(direction, i);
      if (args.y != nullptr) {
        push.y_at[direction] = static_cast<uint32_t>(t * args.y_strides[0] + direction * args.y_strides[2]);
      }
      push.x_at[direction] = static_cast<uint32_t>(input_at(layer, inputs, direction, i));
      push.t[direction] = static_cast<uint32_t>(t);
      push.backwards |= args.reversed(direction) ? 1u << direction : 0u;
    }
    if (args.y != nullptr) {
      push.y_batch = static_cast<uint32_t>(args.batch > 1 ? args.y_strides[1] : 0);
      push.y_step = static_cast<uint32_t>(args.steps > 1 ? args.y_strides[0] : 0);
    }
    push.x_batch = static_cast<uint32_t>(inputs.by_sequence ? inputs.count * inputs.columns : inputs.columns);
    push.x_step = static_cast<uint32_t>(inputs.by_sequence ? inputs.columns : args.batch * inputs.columns);
    push.directions = static_cast<uint32_t>(d);
    push.batch = static_cast<uint32_t>(args.batch);
    push.hidden = static_cast<uint32_t>(args.hidden_size);
    push.steps = static_cast<uint32_t>(steps);
    push.clip = static_cast<float>(args.clip);
    Dispatch dispatch("rnn");
    dispatch.operand(&input, 0, layer.inputs.count * sizeof(float), Access::read)
        .operand(&weights, 0, layer.weights.count * sizeof(float), Access::read)
        .operand(&state, 0, layer.state.count * sizeof(float), Access::read_write)
        .operand(layer.has_bias() ? &bias : nullptr, 0, layer.bias.count * sizeof(float), Access::read)
        .operand(args.peepholes, 0, d * 3 * args.hidden_size * size, Access::read)
        .operand(args.lengths, 0, args.batch * sizeof(int32_t), Access::read)
        .operand(args.y, 0, args.y != nullptr ? args.y_elements() * size : 0, Access::write)
        .push(push)
        .groups_linear(d * ceil_div(args.batch, rows), traits)
        .work(static_cast<double>(steps * layer.weights.count) * 4,
              static_cast<double>(steps * args.batch) * 2 * static_cast<double>(layer.weights.count));
    layer.recorder.dispatch(kernel, dispatch);
  }
}

}  // namespace tuff::rnn
