// Plans recurrent layers for NVIDIA's Hopper GPUs: all steps in one launch of a kernel in PTX (rnn_persistent.cpp), and
// in a second one that computes them if the first one's blocks could not run at the same time.
//
// TUFF_RNN_STEPS_VARIANT=separate in the environment forbids it, and "alone" leaves the steps to the second launch, for
// tests.
#include "kernels/common/check.hpp"
#include "kernels/memory/memory.hpp"
#include "kernels/native/refusals.hpp"
#include "kernels/rnn/native/rnn_persistent.hpp"
#include "kernels/rnn/rnn_plan.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"

namespace tuff::rnn {
namespace {

Refusals refusals;
// R is loaded once, and three dispatches take the place of two in each step.
constexpr uint64_t kFewestTogether = 4;
constexpr uint64_t kMaxIndex = 0x7fffffff;

// A kernel of so many sequences, with as few weights in registers as shared memory allows.
bool choose_held(Persistent& kernel) {
  for (kernel.held = 0; kernel.held <= kernel.steps_k; ++kernel.held) {
    if (kernel.legal()) return true;
  }
  return false;
}

Persistent kernel_of(const RnnArgs& args, uint64_t slices) {
  Persistent kernel;
  kernel.type = args.dtype;
  kernel.cell = args.cell;
  kernel.onnx = args.gate_order == TUFF_RNN_GATES_ONNX && args.cell != TUFF_RNN_CELL_TANH;
  kernel.bias = args.bias_w != nullptr || args.bias_r != nullptr;
  kernel.clip = args.clip > 0;
  kernel.peepholes = args.peepholes != nullptr;
  kernel.lengths = args.lengths != nullptr;
  kernel.output = args.y != nullptr;
  kernel.steps_k = narrow(ceil_div(slices, Persistent::kWarps));
  kernel.whole = slices % Persistent::kWarps == 0;
  return kernel;
}

// The groups of sequences that a launch computes, if the kernel takes so many sequences.
bool choose_sequences(Together& plan, const RnnArgs& args, uint64_t cores) {
  const uint64_t most = cores / (args.directions() * plan.slices);  // groups whose blocks have a multiprocessor each
  if (most == 0) return false;
  bool found = false;
  for (const uint32_t eights : {1u, 2u, 4u}) {
    Persistent kernel = plan.kernel;
    kernel.eights = eights;
    if (!choose_held(kernel)) continue;
    const uint64_t wanted = ceil_div(args.batch, kernel.sequences());
    plan.kernel = kernel;
    plan.groups = std::min(wanted, most);
    found = true;
    if (wanted <= most) break;
  }
  return found;
}

uint64_t launches(const Together& plan, const RnnArgs& args) {
  return ceil_div(args.batch, plan.groups * plan.kernel.sequences());
}

// Launches that follow each other wait for memory in each step anew, where a GEMM of many sequences is busy.
// Microseconds of a step, roughly, as an H200 takes them: in a launch; and by two dispatches, with a GEMM in f32 and a
// kernel for the gates, which reads and writes 16 bytes for each sum.
bool gains(const Together& plan, const RnnArgs& args) {
  constexpr double kOfLaunch = 6, kOfDispatches = 12, kOfProduct = 2 / 34e6, kOfSum = 16 / 3e6;
  const double sums = static_cast<double>(args.directions() * args.batch * args.gate_rows());
  const double apart = kOfDispatches + sums * (static_cast<double>(args.hidden_size) * kOfProduct + kOfSum);
  return static_cast<double>(launches(plan, args)) * kOfLaunch <= apart;
}

uint64_t sets(const Layer& layer) { return layer.args.directions() * layer.together->groups; }

Persistent::Push push_of(const Layer& layer, const InputSteps& inputs) {
  const RnnArgs& args = layer.args;
  Persistent::Push push{};
  for (uint64_t direction = 0; direction < args.directions(); ++direction) {
    const uint64_t t = layer.step_of(direction, inputs.done);
    const bool backwards = args.reversed(direction);
    const auto towards = [backwards](uint64_t step) { return backwards ? 0 - step : step; };
    push.x_at[direction] = input_at(layer, inputs, direction, inputs.done);
    push.x_step[direction] = towards(inputs.by_sequence ? inputs.columns : args.batch * inputs.columns);
    if (args.y != nullptr) {
      push.y_at[direction] = t * args.y_strides[0] + direction * args.y_strides[2];
      push.y_step[direction] = towards(args.y_strides[0]);
    }
    push.t[direction] = narrow(t);
    push.backwards |= backwards ? 1u << direction : 0u;
  }
  push.y_batch = args.y != nullptr && args.batch > 1 ? args.y_strides[1] : 0;
  push.x_batch = narrow(inputs.by_sequence ? inputs.count * inputs.columns : inputs.columns);
  push.hidden = narrow(args.hidden_size);
  push.batch = narrow(args.batch);
  push.steps = narrow(inputs.count);
  push.slices = narrow(layer.together->slices);
  push.at_c = narrow(args.h_elements());
  push.clip = static_cast<float>(args.clip);
  return push;
}

// The blocks that wait for each other, or those that do not.
Dispatch dispatch_of(const Layer& layer, const Persistent& kernel, const Persistent::Push& push) {
  const RnnArgs& args = layer.args;
  const uint64_t d = args.directions(), size = dtype_size(args.dtype),
                 weights = d * args.gate_rows() * args.hidden_size;
  const auto scratch = [&](Dispatch& dispatch, const Region& of, Access access) {
    dispatch.operand(of.count != 0 ? &layer.scratch : nullptr, of.first * sizeof(float), of.count * sizeof(float),
                     access);
  };
  Dispatch dispatch("rnn");
  scratch(dispatch, layer.inputs, Access::read);
  dispatch.operand(args.r, 0, weights * size, Access::read);
  scratch(dispatch, layer.state, Access::read_write);
  scratch(dispatch, layer.bias, Access::read);
  dispatch.operand(args.peepholes, 0, d * 3 * args.hidden_size * size, Access::read)
      .operand(args.lengths, 0, args.batch * sizeof(int32_t), Access::read)
      .operand(args.y, 0, args.y != nullptr ? args.y_elements() * size : 0, Access::write);
  scratch(dispatch, layer.shared, Access::read_write);
  const double products = static_cast<double>(push.end - push.first) * static_cast<double>(weights);
  dispatch.push(push)
      .groups(kernel.alone ? narrow(d * push.groups) : push.blocks)
      .work(kernel.alone ? 0 : static_cast<double>(weights * size), kernel.alone ? 0 : 2 * push.steps * products)
      .variant(kernel.alone ? "persistent, alone" : "persistent");
  return dispatch;
}

// Few sequences for each block, as blocks are all that these have at once. Their states need no more memory.
Persistent alone(Persistent kernel) {
  kernel.alone = true;
  kernel.held = 0;
  kernel.eights = 1;
  return kernel;
}

}  // namespace

std::optional<Together> plan_together(const Layer& layer) {
  const RnnArgs& args = layer.args;
  const DeviceTraits& traits = layer.recorder.traits();
  if (!traits.hopper || refusals.has(0) || forced_variant<"TUFF_RNN_STEPS_VARIANT">() == "separate" || layer.wants_rows)
    return {};
  // relu's numbers may exceed f16's, and an LSTM's projection and a GRU's reset state are second products.
  if (args.cell == TUFF_RNN_CELL_RELU || layer.two_parts()) return {};
  if (std::min(args.steps, layer.steps_at_once) < kFewestTogether || args.batch > kMaxIndex ||
      args.hidden_size % 4 != 0)
    return {};
  if (args.r->offset % (4 * dtype_size(args.dtype)) != 0) return {};
  Together plan;
  plan.slices = ceil_div(args.hidden_size, Persistent::kUnits);
  if (plan.slices > uint64_t{Persistent::kWarps} * Persistent::kMaxSteps) return {};
  plan.kernel = kernel_of(args, plan.slices);
  if (!choose_sequences(plan, args, traits.cores) || !gains(plan, args)) return {};
  return plan;
}

uint64_t shared_words(const Layer& layer) {
  const Together& plan = *layer.together;
  const uint64_t states = Persistent::kBuffers * sets(layer) * plan.slices * plan.kernel.piece_bytes();
  return (Persistent::kStatesAt + states) / sizeof(uint32_t);
}

bool accepts_together(const Layer& layer) {
  Persistent::Push push{};
  push.groups = push.blocks = 1;
  try {
    for (const Persistent& kernel : {layer.together->kernel, alone(layer.together->kernel)}) {
      layer.recorder.prepare(kernel.request(), dispatch_of(layer, kernel, push));
    }
  } catch (const Error& error) {
    if (error.code() != TUFF_ERROR_UNSUPPORTED) throw;
    refusals.add(0, "rnn", "persistent", error);
    return false;
  }
  return true;
}

void record_together(const Layer& layer, const InputSteps& inputs) {
  const RnnArgs& args = layer.args;
  const Together& plan = *layer.together;
  Persistent::Push push = push_of(layer, inputs);
  const Buffer shared = layer.region(layer.shared);
  const auto fill = [&](uint64_t offset, uint64_t bytes, uint32_t value) {
    record_fill(layer.recorder, shared, offset, bytes, {value, value, value, value});
  };
  const uint64_t at_once = plan.groups * plan.kernel.sequences();
  for (uint64_t first = 0; first < args.batch; first += at_once) {
    const uint64_t end = std::min(first + at_once, args.batch);
    push.first = narrow(first), push.end = narrow(end);
    push.blocks = narrow(args.directions() * ceil_div(end - first, plan.kernel.sequences()) * plan.slices);
    fill(0, layer.shared.count * sizeof(uint32_t), Persistent::kUnwritten);
    if (forced_variant<"TUFF_RNN_STEPS_VARIANT">() == "alone") {
      fill(Persistent::kDecisionAt, sizeof(uint32_t), Persistent::kRefused);
    }
    for (const Persistent& kernel : {plan.kernel, alone(plan.kernel)}) {
      push.groups = narrow(ceil_div(end - first, kernel.sequences()));
      layer.recorder.dispatch(kernel.request(), dispatch_of(layer, kernel, push));
    }
  }
}

}  // namespace tuff::rnn
