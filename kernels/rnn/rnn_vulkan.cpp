// Planner of recurrent layers. The products of the input with W are one GEMM for all steps. Then follow the steps, each
// of which needs the state that the one before leaves:
//
//   the state's products with R, a GEMM of batch rows for each direction, and rnn_gates.comp.
//
// An LSTM with a projection and a GRU whose reset gate multiplies h have a second product in each step.
//
// TUFF_RNN_VARIANT=gpu or cpu in the environment forces the shapes of that kind of device, for tests.
#include "kernels/common/check.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/gemm/panels/gemm_panels.hpp"
#include "kernels/memory/memory.hpp"
#include "kernels/rnn/rnn_plan.hpp"
#include "kernels/shape/shape.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "shaders/rnn_bias.hpp"
#include "shaders/rnn_gates.hpp"

namespace tuff {
namespace rnn {
namespace {

// On a CPU device r is packed if it is used so often, by so many sequences: fewer leave a tile's rows empty.
constexpr uint64_t kPackedSteps = 4, kPackedRows = 6;

// C = A * B^T, for each direction.
struct Product {
  Buffer a, b, c;
  int32_t a_type, b_type;
  uint64_t m, n, k, lda, ldb, ldc;
  uint64_t stride_a = 0, stride_b = 0, stride_c = 0, count = 1;
};

void record(const Layer& layer, const Product& product) {
  GemmArgs args{};
  args.a_type = product.a_type, args.b_type = product.b_type, args.c_type = TUFF_F32;
  args.accumulate = TUFF_F32;
  args.precision = TUFF_PRECISION_DEFAULT;
  args.ta = TUFF_NO_TRANS, args.tb = TUFF_TRANS;
  args.m = product.m, args.n = product.n, args.k = product.k;
  args.alpha = 1, args.beta = 0;
  args.a = &product.a, args.b = &product.b, args.c = &product.c;
  args.lda = product.lda, args.ldb = product.ldb, args.ldc = product.ldc;
  args.stride_a = product.stride_a, args.stride_b = product.stride_b, args.stride_c = product.stride_c;
  args.batch_count = product.count;
  record_gemm(layer.recorder, args);
}

void record_zeros(const Layer& layer, const Buffer& to, uint64_t count) {
  if (count != 0) record_fill(layer.recorder, to, 0, count * sizeof(float), {});
}

// The state, `width` numbers of each sequence and direction, from the caller's type, or zeros.
void record_given(const Layer& layer, const Buffer* given, uint64_t at, uint64_t width) {
  const RnnArgs& args = layer.args;
  const uint64_t d = args.directions(), each = args.batch * width;
  if (given == nullptr) return record_zeros(layer, layer.region({at, d * each}), d * each);
  for (uint64_t direction = 0; direction < d; ++direction) {
    const Buffer from = moved(given, (direction * layer.all + layer.first) * width, args.dtype),
                 to = layer.region({at + direction * each, each});
    record_cast(layer.recorder, {args.dtype, TUFF_F32, &from, &to, each});
  }
}

void record_result(const Layer& layer, uint64_t at, uint64_t width, const Buffer* wanted) {
  if (wanted == nullptr) return;
  const RnnArgs& args = layer.args;
  const uint64_t each = args.batch * width;
  for (uint64_t direction = 0; direction < args.directions(); ++direction) {
    const Buffer from = layer.region({at + direction * each, each}),
                 to = moved(wanted, (direction * layer.all + layer.first) * width, args.dtype);
    record_cast(layer.recorder, {TUFF_F32, args.dtype, &from, &to, each});
  }
}

// The kernel of a step, for its first or second part or both.
void record_gates(const Layer& layer, const InputSteps& inputs, uint64_t i, int part, const Region& sums) {
  const RnnArgs& args = layer.args;
  const uint64_t d = args.directions(), size = dtype_size(args.dtype);
  const bool projected = args.proj_size != 0, output = args.y != nullptr && part != 1;
  const uint64_t y = args.y != nullptr ? args.y_elements() : 0;
  const bool wide = output && needs_wide(y);
  KernelRequest kernel = shaders::RnnGates::request({.after = args.linear_before_reset,
                                                     .bias = layer.has_bias(),
                                                     .cell = args.cell,
                                                     .clip = args.clip > 0,
                                                     .exact_arithmetic = layer.recorder.traits().cpu,
                                                     .lengths = args.lengths != nullptr,
                                                     .onnx = args.gate_order == TUFF_RNN_GATES_ONNX,
                                                     .output = output,
                                                     .part = part,
                                                     .peepholes = args.peepholes != nullptr,
                                                     .projected = projected,
                                                     .type = args.dtype});
  const uint32_t threads = layer.device.workgroup;
  kernel.streaming().constant(0, threads).wide(wide);
  Dispatch dispatch("rnn");
  const Buffer state = layer.region(layer.state), products = layer.region(sums), input = layer.region(layer.inputs),
               bias = layer.region(layer.bias);
  dispatch.operand(&input, 0, layer.inputs.count * 4, Access::read)
      .operand(&products, 0, sums.count * 4, Access::read)
      .operand(&state, 0, layer.state.count * 4, Access::read_write)
      .operand(layer.has_bias() ? &bias : nullptr, 0, layer.bias.count * 4, Access::read)
      .operand(args.peepholes, 0, d * 3 * args.hidden_size * size, Access::read)
      .operand(args.lengths, 0, args.batch * sizeof(int32_t), Access::read)
      .operand(output ? args.y : nullptr, 0, y * size, Access::write);
  const auto fill = [&](auto push) {
    using Index = decltype(push.y_batch);
    for (uint64_t direction = 0; direction < d; ++direction) {
      const uint64_t t = layer.step_of(direction, i);
      push.y_at[direction] = static_cast<Index>(t * args.y_strides[0] + direction * args.y_strides[2]);
      push.x_at[direction] = static_cast<uint32_t>(input_at(layer, inputs, direction, i));
      push.t[direction] = static_cast<uint32_t>(t);
    }
    push.y_batch = static_cast<Index>(args.batch > 1 ? args.y_strides[1] : 0);
    push.x_batch = static_cast<uint32_t>(inputs.by_sequence ? inputs.count * inputs.columns : inputs.columns);
    push.rows = static_cast<uint32_t>(layer.rows());
    push.batch = static_cast<uint32_t>(args.batch);
    push.hidden = static_cast<uint32_t>(args.hidden_size);
    push.width = static_cast<uint32_t>(args.state_size());
    push.clip = static_cast<float>(args.clip);
    dispatch.push(push);
  };
  if (wide) {
    fill(shaders::RnnGates::Push<uint64_t>{});
  } else {
    fill(shaders::RnnGates::Push<uint32_t>{});
  }
  const uint64_t units = projected && part == 2 ? args.proj_size : args.hidden_size;
  const double numbers = static_cast<double>(layer.rows() * units * args.gates());
  dispatch.groups_linear(ceil_div(layer.rows() * ceil_div(units, 4), threads), layer.recorder.traits())
      .work(12 * numbers, 40 * numbers);
  layer.recorder.dispatch(kernel, dispatch);
}

// The i-th step of each direction.
void record_step(const Layer& layer, const InputSteps& inputs, uint64_t i) {
  const RnnArgs& args = layer.args;
  const uint64_t d = args.directions(), batch = args.batch, hidden = args.hidden_size, width = args.state_size(),
                 rows = args.gate_rows();
  const bool cast = args.dtype != TUFF_F32;
  const Buffer weights = cast ? layer.region(layer.weights) : *args.r;
  // For one direction after the other.
  const auto product = [&](const Region& a, const Buffer& b, uint64_t stride_b, const Region& c, uint64_t n,
                           uint64_t k) {
    record(layer, {.a = layer.region(a),
                   .b = b,
                   .c = layer.region(c),
                   .a_type = TUFF_F32,
                   .b_type = TUFF_F32,
                   .m = batch,
                   .n = n,
                   .k = k,
                   .lda = k,
                   .ldb = k,
                   .ldc = n,
                   .stride_a = batch * k,
                   .stride_b = stride_b,
                   .stride_c = batch * n,
                   .count = d});
  };
  if (layer.by_panels) {
    const uint64_t each = layer.packed.count / d;
    for (uint64_t direction = 0; direction < d; ++direction) {
      gemm::record_packed_product(
          layer.recorder, layer.region({layer.state.first + direction * batch * width, batch * width}),
          layer.region({layer.packed.first + direction * each, each}),
          layer.region({layer.sums.first + direction * batch * rows, batch * rows}), batch, rows, width);
    }
  } else {
    product(layer.state, weights, rows * width, layer.sums, layer.first_rows(), width);
  }
  if (!layer.two_parts()) return record_gates(layer, inputs, i, 0, layer.sums);
  record_gates(layer, inputs, i, 1, layer.sums);
  const Region passed{layer.at_c() + args.c_elements(), d * batch * hidden};
  if (args.resets_first()) {
    const Buffer of_new = moved(&weights, layer.first_rows() * width, TUFF_F32);
    product(passed, of_new, rows * width, layer.second, hidden, hidden);
  } else {
    const Buffer projection = cast ? layer.region(layer.projection) : *args.projection;
    product(passed, projection, width * hidden, layer.second, width, hidden);
  }
  record_gates(layer, inputs, i, 2, layer.second);
}

}  // namespace

Layer::Layer(Recorder& to, const RnnArgs& call, uint64_t first_sequence, uint64_t sequences)
    : recorder(to),
      args(call),
      first(first_sequence),
      all(sequences),
      device(stream_device(to.traits(), forced_variant<"TUFF_RNN_VARIANT">(), sizeof(float))),
      wants_rows(forced_variant<"TUFF_RNN_VARIANT">() == "cpu") {}

Buffer Layer::region(const Region& of) const {
  Buffer buffer = scratch;
  buffer.offset += of.first * sizeof(float);
  buffer.bytes = of.count * sizeof(float);
  return buffer;
}

void require_sizes(const RnnArgs& args) {
  const auto require_size = [](uint64_t size, const char* name) {
    if (size > kMaxSize) fail(TUFF_ERROR_UNSUPPORTED, "{} is {}, at most {}", name, size, kMaxSize);
  };
  require_size(args.input_size, "input_size");
  require_size(args.hidden_size, "hidden_size");
  require_size(args.proj_size, "proj_size");
}

void require_range(const DeviceTraits& traits, uint64_t elements, uint64_t bytes, const char* name) {
  if (!traits.addresses && elements > (traits.max_range - kDescriptorSlack) / bytes) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} has {} elements, and the device binds {} bytes", name, elements, traits.max_range);
  }
}

void Layer::prepare() {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, args.dtype);
  require_sizes(args);
  const uint64_t d = args.directions(), row = d * args.gate_rows();
  const uint64_t most = traits.addresses ? kInputBytes : std::min(kInputBytes, traits.max_range / 2);
  steps_at_once = std::clamp<uint64_t>(most / (args.batch * row * sizeof(float)), 1, std::max<uint64_t>(args.steps, 1));
  // Nothing may be recorded before it is known that all of it can be.
  const uint64_t size = dtype_size(args.dtype);
  const auto require = [&](uint64_t elements, uint64_t bytes, const char* name) {
    require_range(traits, elements, bytes, name);
  };
  if (args.steps != 0) {
    require(args.x_elements(), size, "x");
    require(row * args.input_size, size, "w");
    require(row * args.state_size(), sizeof(float), "r");
    require(args.y != nullptr ? args.y_elements() : 0, size, "y");
    require(has_bias() ? (d - 1) * args.bias_stride + args.gate_rows() : 0, size, "bias_w");
    require(d * args.proj_size * args.hidden_size, sizeof(float), "projection");
    together = plan_together(*this);
  }
  divide_scratch();
  if (together && !accepts_together(*this)) {
    together.reset();
    divide_scratch();
  }
  require(sums.count, sizeof(float), "a step's sums");
  require(state.count, sizeof(float), "the state");
}

void Layer::divide_scratch() {
  const uint64_t d = args.directions(), row = d * args.gate_rows(), hidden = rows() * args.hidden_size;
  const bool cast = args.dtype != TUFF_F32 && !together;
  Space space;
  const auto take = [&space](uint64_t count) { return space.take(count); };
  state = take(args.h_elements() + args.c_elements() + (two_parts() ? hidden : 0) + (args.resets_first() ? hidden : 0));
  if (args.steps != 0) {
    bias = take(has_bias() ? d * bias_rows() * args.hidden_size : 0);
    by_rows = takes_rows(*this);
    by_panels = !by_rows && !together && device.cpu && !args.resets_first() && args.steps >= kPackedSteps &&
                args.batch >= kPackedRows &&
                gemm::takes_packed(recorder, args.batch, args.gate_rows(), args.state_size());
    packed = take(!by_panels
                      ? 0
                      : d * round_up(gemm::packed_bytes(recorder, args.gate_rows(), args.state_size()) / sizeof(float),
                                     kAligned));
    sums = take(by_rows || together ? 0 : rows() * first_rows());
    second = take(two_parts() ? args.h_elements() : 0);
    weights = take(by_rows ? packed_numbers(*this) : cast ? row * args.state_size() : 0);
    projection = take(cast ? d * args.proj_size * args.hidden_size : 0);
    inputs = take(steps_at_once * args.batch * row);
    shared = take(together ? shared_words(*this) : 0);
  }
  scratch = recorder.scratch(space.used * sizeof(float), Scratch::outer);
}

void Layer::record_bias() const {
  if (!has_bias()) return;
  const uint64_t d = args.directions(), count = (d - 1) * args.bias_stride + args.gate_rows(),
                 bytes = count * dtype_size(args.dtype), items = d * bias_rows() * args.hidden_size;
  const bool wide = needs_wide(count);
  KernelRequest kernel = shaders::RnnBias::request({.after = args.linear_before_reset,
                                                    .r = args.bias_r != nullptr,
                                                    .type = args.dtype,
                                                    .w = args.bias_w != nullptr});
  kernel.streaming().constant(0, device.workgroup).wide(wide);
  const Buffer sums_of_biases = region(bias);
  Dispatch dispatch("rnn");
  dispatch.operand(args.bias_w, 0, bytes, Access::read)
      .operand(args.bias_r, 0, bytes, Access::read)
      .operand(&sums_of_biases, 0, bias.count * sizeof(float), Access::write);
  const auto fill = [&](auto push) {
    push.stride = static_cast<decltype(push.stride)>(d > 1 ? args.bias_stride : 0);
    push.directions = static_cast<uint32_t>(d);
    push.rows = static_cast<uint32_t>(args.gate_rows());
    push.hidden = static_cast<uint32_t>(args.hidden_size);
    dispatch.push(push);
  };
  if (wide) {
    fill(shaders::RnnBias::Push<uint64_t>{});
  } else {
    fill(shaders::RnnBias::Push<uint32_t>{});
  }
  dispatch.groups_linear(ceil_div(items, device.workgroup), recorder.traits())
      .work(static_cast<double>(12 * items), static_cast<double>(items));
  recorder.dispatch(kernel, dispatch);
}

void Layer::record_packed_weights() const {
  const uint64_t d = args.directions(), each = packed.count / d, numbers = args.gate_rows() * args.state_size();
  const Buffer all_weights = args.dtype != TUFF_F32 ? region(weights) : *args.r;
  for (uint64_t direction = 0; direction < d; ++direction) {
    gemm::record_packing(recorder, moved(&all_weights, direction * numbers, TUFF_F32), args.gate_rows(),
                         args.state_size(), region({packed.first + direction * each, each}));
  }
}

void Layer::record_initial_state() const {
  record_given(*this, args.h0, state.first, args.state_size());
  if (args.cell == TUFF_RNN_CELL_LSTM) record_given(*this, args.c0, at_c(), args.hidden_size);
}

void Layer::record_final_state() const {
  record_result(*this, state.first, args.state_size(), args.hn);
  record_result(*this, at_c(), args.hidden_size, args.cn);
}

InputSteps Layer::record_inputs(uint64_t done) const {
  const uint64_t d = args.directions(), count = std::min(steps_at_once, args.steps - done), batch = args.batch,
                 step = args.x_strides[0], sequence = args.x_strides[1], rows = args.gate_rows();
  // The rows of x are one matrix if they follow each other at one distance, which GEMM finds out. Otherwise the shorter
  // of the two axes is a batch.
  const bool steps_first = batch == 1                 ? false
                           : step == batch * sequence ? true
                           : sequence == count * step ? false
                                                      : batch > count;
  InputSteps made{done, count, !steps_first, 0};
  // All steps, and both directions' weights: one product. Otherwise the directions need different steps.
  const uint64_t products = count == args.steps ? 1 : d;
  made.columns = d / products * rows;
  const uint64_t each = count * batch * made.columns;
  for (uint64_t i = 0; i < products; ++i) {
    const uint64_t earliest = args.reversed(i) && products == d ? args.steps - done - count : done;
    const uint64_t outer = steps_first ? count : batch, inner = steps_first ? batch : count;
    record(*this, {.a = moved(args.x, earliest * step, args.dtype),
                   .b = moved(args.w, i * rows * args.input_size, args.dtype),
                   .c = region({inputs.first + i * each, each}),
                   .a_type = args.dtype,
                   .b_type = args.dtype,
                   .m = inner,
                   .n = made.columns,
                   .k = args.input_size,
                   .lda = std::max(steps_first ? sequence : step, args.input_size),
                   .ldb = args.input_size,
                   .ldc = made.columns,
                   .stride_a = steps_first ? step : sequence,
                   .stride_c = inner * made.columns,
                   .count = outer});
  }
  return made;
}

uint64_t input_at(const Layer& layer, const InputSteps& inputs, uint64_t direction, uint64_t i) {
  const RnnArgs& args = layer.args;
  const uint64_t d = args.directions(), products = inputs.count == args.steps ? 1 : d;
  // The steps of a product are in the order of time.
  const uint64_t local = args.reversed(direction) ? inputs.count - 1 - (i - inputs.done) : i - inputs.done;
  const uint64_t row = inputs.by_sequence ? local : local * args.batch;
  const uint64_t before =
      products == 1 ? direction * args.gate_rows() : direction * inputs.count * args.batch * inputs.columns;
  return before + row * inputs.columns;
}

namespace {

// The sequences first ... first + count - 1 of a call.
void record_part(Recorder& recorder, const RnnArgs& call, uint64_t first, uint64_t count) {
  const Buffer x = moved(call.x, first * call.x_strides[1], call.dtype),
               y = moved(call.y, first * call.y_strides[1], call.dtype), lengths = moved(call.lengths, first, TUFF_I32);
  RnnArgs args = call;
  args.batch = count;
  args.x = &x;
  if (call.y != nullptr) args.y = &y;
  if (call.lengths != nullptr) args.lengths = &lengths;
  Layer layer(recorder, args, first, call.batch);
  layer.prepare();
  log(TUFF_LOG_DISPATCH,
      "rnn {} batch={} steps={} {}->{}: products of the input for {} steps at once, then {}, groups of {}",
      dtype_name(args.dtype), args.batch, args.steps, args.input_size, args.hidden_size, layer.steps_at_once,
      layer.together  ? "all of them in a launch"
      : layer.by_rows ? "many steps in a dispatch"
                      : "a product for each step",
      layer.device.workgroup);
  layer.record_initial_state();
  if (args.steps != 0) {
    layer.record_bias();
    if (layer.by_rows) {
      record_pack(layer);
    } else if (args.dtype != TUFF_F32 && !layer.together) {
      const Buffer weights = layer.region(layer.weights), projection = layer.region(layer.projection);
      record_cast(recorder, {args.dtype, TUFF_F32, args.r, &weights, layer.weights.count});
      record_cast(recorder, {args.dtype, TUFF_F32, args.projection, &projection, layer.projection.count});
    }
    if (layer.by_panels) layer.record_packed_weights();
    for (uint64_t done = 0; done < args.steps; done += layer.steps_at_once) {
      const InputSteps inputs = layer.record_inputs(done);
      if (layer.together || layer.by_rows) {
        layer.together ? record_together(layer, inputs) : record_rows(layer, inputs);
        continue;
      }
      for (uint64_t i = done; i < done + inputs.count; ++i) record_step(layer, inputs, i);
    }
  }
  layer.record_final_state();
}

}  // namespace
}  // namespace rnn

void record_rnn(Recorder& recorder, const RnnArgs& args) {
  // For a sequence: products of the input and of the state, h, c and what else a step keeps.
  const uint64_t each = args.directions() * 2 * (args.gate_rows() + args.hidden_size + args.state_size());
  const DeviceTraits& traits = recorder.traits();
  const uint64_t numbers =
      traits.addresses ? rnn::kMaxNumbers : std::min(rnn::kMaxNumbers, traits.max_range / sizeof(float));
  const uint64_t most = std::max<uint64_t>(numbers / each, 1);
  for (uint64_t first = 0; first < args.batch; first += most) {
    rnn::record_part(recorder, args, first, std::min(most, args.batch - first));
  }
}

}  // namespace tuff
