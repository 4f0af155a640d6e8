// Steps of recurrent layers on CPU devices: many in one dispatch (rnn_rows.comp), where a dispatch costs as much as the
// arithmetic of a step.

#include "kernels/common/loop_limit.hpp"
#include "kernels/rnn/rnn_plan.hpp"
#include "shaders/rnn_pack.hpp"
#include "shaders/rnn_rows.hpp"

namespace tuff::rnn {
namespace {

// The most weights that an invocation keeps. The code has an instruction for each, so that more take long to compile.
constexpr uint64_t kHeld = 512;
// Each dispatch loads all weights anew: that has to pay.
constexpr uint64_t kFewestSteps = 8;

// How rnn_rows.comp divides a layer; subgroups 0: not at all.
struct Shape {
  uint64_t width, units, subgroups, rows, threads;
};

Shape shape_of(const Layer& layer) {
  const RnnArgs& args = layer.args;
  const uint64_t lanes = layer.device.subgroup, hidden = args.hidden_size;
  Shape shape{};
  if (hidden > kHeld) return shape;
  shape.width = round_up(hidden, 4);
  // As many units as there is room for: each subgroup reads all of h. They are loaded as a vector.
  for (const uint64_t units : {4, 2, 1}) {
    const uint64_t subgroups = ceil_div(hidden, units * lanes);
    if (hidden % units != 0 || units * args.gates() * shape.width > kHeld) continue;
    if (subgroups > 64 || subgroups * lanes > max_along_x(layer.recorder.traits())) continue;
    shape.units = units, shape.subgroups = subgroups, shape.threads = subgroups * lanes;
    break;
  }
  // No more sequences for a workgroup than leave one for each core, nor than shared memory has room for.
  shape.rows = few_values(ceil_div(layer.rows(), layer.device.cores), 1, 64);
  while (shape.rows > 0 && 2 * shape.rows * shape.width * sizeof(float) > layer.recorder.traits().shared_bytes) {
    shape.rows /= 2;
  }
  if (shape.rows == 0) shape.subgroups = 0;
  return shape;
}

// For the loops of an invocation.
uint64_t iterations_before(const Shape& shape) {
  return ceil_div(shape.rows * shape.width / 2, shape.threads) + 2 * shape.rows + 2;
}
uint64_t iterations_of_step(const Shape& shape) { return shape.rows + 1; }

}  // namespace

uint64_t packed_numbers(const Layer& layer) {
  const Shape shape = shape_of(layer);
  return layer.args.directions() * shape.units * layer.args.gates() * shape.width * shape.threads;
}

bool takes_rows(const Layer& layer) {
  const DeviceTraits& traits = layer.recorder.traits();
  const RnnArgs& args = layer.args;
  const uint64_t lanes = layer.device.subgroup;
  if (!layer.device.cpu || !traits.subgroup_shuffle || lanes > 64) return false;
  if (args.resets_first() || args.proj_size != 0 || args.steps == 0) return false;
  if (!layer.wants_rows && args.steps < kFewestSteps) return false;
  const Shape shape = shape_of(layer);
  if (shape.subgroups == 0) return false;
  // All indices have 32 bits.
  const uint64_t inputs = layer.steps_at_once * args.batch * args.directions() * args.gate_rows();
  if (needs_wide(std::max({args.y != nullptr ? args.y_elements() : 0, inputs, packed_numbers(layer)}))) return false;
  if (!traits.addresses && packed_numbers(layer) > (traits.max_range - kDescriptorSlack) / sizeof(float)) return false;
  return iterations_before(shape) + iterations_of_step(shape) <= kMaxLoopIterationsCpu;
}

void record_pack(const Layer& layer) {
  const RnnArgs& args = layer.args;
  const Shape shape = shape_of(layer);
  const uint64_t weights = args.directions() * args.gate_rows() * args.hidden_size, items = packed_numbers(layer) / 4;
  const uint32_t workgroup = layer.device.workgroup;
  KernelRequest kernel = shaders::RnnPack::request({.type = args.dtype});
  kernel.streaming().constant(0, workgroup);
  const Buffer packed = layer.region(layer.weights);
  Dispatch dispatch("rnn");
  dispatch.operand(args.r, 0, weights * dtype_size(args.dtype), Access::read)
      .operand(&packed, 0, layer.weights.count * sizeof(float), Access::write)
      .push(shaders::RnnPack::Push{.items = static_cast<uint32_t>(items),
                                   .units = static_cast<uint32_t>(shape.units),
                                   .gates = static_cast<uint32_t>(args.gates()),
                                   .hidden = static_cast<uint32_t>(args.hidden_size),
                                   .blocks = static_cast<uint32_t>(shape.width / 4),
                                   .threads = static_cast<uint32_t>(shape.threads)})
      .groups_linear(ceil_div(items, workgroup), layer.recorder.traits())
      .work(static_cast<double>(32 * items), static_cast<double>(4 * items));
  layer.recorder.dispatch(kernel, dispatch);
}

void record_rows(const Layer& layer, const InputSteps& inputs) {
  const RnnArgs& args = layer.args;
  const DeviceTraits& traits = layer.recorder.traits();
  const Shape shape = shape_of(layer);
  const uint64_t d = args.directions(), size = dtype_size(args.dtype), rows = shape.rows;
  // In vectors of an invocation's units; those of y too, if its type and layout allow that.
  const uint64_t units = shape.units;
  const bool y_vectors = args.y != nullptr && args.dtype == TUFF_F32 && units > 1 &&
                         args.y->offset % (units * sizeof(float)) == 0 && args.y_strides[0] % units == 0 &&
                         args.y_strides[1] % units == 0 && args.y_strides[2] % units == 0;
  const uint64_t y_unit = y_vectors ? units : 1;
  const KernelRequest kernel = shaders::RnnRows::request({.after = args.linear_before_reset,
                                                          .bias = layer.has_bias(),
                                                          .cell = args.cell,
                                                          .clip = args.clip > 0,
                                                          .exact_arithmetic = traits.cpu,
                                                          .lanes = layer.device.subgroup,
                                                          .lengths = args.lengths != nullptr,
                                                          .onnx = args.gate_order == TUFF_RNN_GATES_ONNX,
                                                          .output = args.y != nullptr,
                                                          .peepholes = args.peepholes != nullptr,
                                                          .rows = rows,
                                                          .subgroups = shape.subgroups,
                                                          .type = args.dtype,
                                                          .units = shape.units,
                                                          .width = shape.width,
                                                          .y_vectors = y_vectors});
  const Buffer state = layer.region(layer.state), input = layer.region(layer.inputs), bias = layer.region(layer.bias),
               weights = layer.region(layer.weights);
  const uint64_t most = (kMaxLoopIterationsCpu - iterations_before(shape)) / iterations_of_step(shape);
  const uint64_t end = inputs.done + inputs.count;
  for (uint64_t i = inputs.done; i < end; i += most) {
    const uint64_t steps = std::min(most, end - i);
    shaders::RnnRows::Push push{};
    for (uint64_t direction = 0; direction < d; ++direction) {
      const uint64_t t = layer.step_of(direction, i);
      if (args.y != nullptr) {
        push.y_at[direction] = static_cast<uint32_t>((t * args.y_strides[0] + direction * args.y_strides[2]) / y_unit);
      }
      push.x_at[direction] = static_cast<uint32_t>(input_at(layer, inputs, direction, i) / units);
      push.t[direction] = static_cast<uint32_t>(t);
      push.backwards |= args.reversed(direction) ? 1u << direction : 0u;
    }
    if (args.y != nullptr) {
      push.y_batch = static_cast<uint32_t>(args.batch > 1 ? args.y_strides[1] / y_unit : 0);
      push.y_step = static_cast<uint32_t>(args.steps > 1 ? args.y_strides[0] / y_unit : 0);
    }
    push.x_batch = static_cast<uint32_t>((inputs.by_sequence ? inputs.count * inputs.columns : inputs.columns) / units);
    push.x_step = static_cast<uint32_t>((inputs.by_sequence ? inputs.columns : args.batch * inputs.columns) / units);
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
