// Planner of optimisers' steps: each part of the list (tensor_list.hpp) is one dispatch, or three for LAMB:
//
//   optimizer_state   what buffers say of the step: its number, factors and whether to skip it; only if there are such
//   optimizer_step    all of SGD, Adam and AdamW; of LAMB m, v and sums of squares, then the parameters
//   optimizer_ratio   LAMB: |w| / |u| of each tensor
//
// TUFF_OPTIMIZER_VARIANT=gpu or cpu in the environment forces the shapes of that class, for tests.
#include <cmath>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/scratch_parts.hpp"
#include "kernels/optimizer/optimizer.hpp"
#include "kernels/optimizer/tensor_list.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "shaders/optimizer_ratio.hpp"
#include "shaders/optimizer_state.hpp"
#include "shaders/optimizer_step.hpp"

namespace tuff {
namespace {

using optimizer::Part;
using optimizer::Piece;
using optimizer::TensorList;

constexpr uint64_t kStateBytes = 20, kSumBytes = 6 * sizeof(float);
constexpr double kFlops = 40;  // rough operations for each element

enum class Pass : uint8_t { all, moments, parameters };

// The numbers that change from step to step, unless a buffer has them.
struct Numbers {
  float scale, rate, correction1, correction2;
};

Numbers numbers_of(const OptimizerArgs& args) {
  Numbers numbers{static_cast<float>(args.gradient_scale), static_cast<float>(args.rate), 1, 1};
  if (!args.adaptive() || args.steps != nullptr) return numbers;
  const auto t = static_cast<double>(args.step);
  numbers.correction1 = static_cast<float>(1 / (1 - std::pow(args.beta1, t)));
  numbers.correction2 = static_cast<float>(1 / std::sqrt(1 - std::pow(args.beta2, t)));
  return numbers;
}

struct Task {
  Recorder& recorder;
  const OptimizerArgs& args;
  StreamDevice device;
  TensorList list;
  Numbers numbers;
  bool has_state;
  Buffer state = {}, sums = {}, ratios = {};  // parts of scratch memory
};

void record_state(const Task& task) {
  const OptimizerArgs& args = task.args;
  KernelRequest kernel = shaders::OptimizerState::request({.exact_arithmetic = task.recorder.traits().cpu,
                                                           .gradient_factor = args.gradient_factor != nullptr,
                                                           .rate_factor = args.rate_factor != nullptr,
                                                           .skip = args.skip != nullptr,
                                                           .steps = args.steps != nullptr});
  kernel.streaming().constant(0, task.device.subgroup);
  const shaders::OptimizerState::Push push{.scale = task.numbers.scale,
                                           .rate = task.numbers.rate,
                                           .correction1 = task.numbers.correction1,
                                           .correction2 = task.numbers.correction2,
                                           .log1 = static_cast<float>(std::log(args.beta1)),
                                           .log2 = static_cast<float>(std::log(args.beta2))};
  Dispatch dispatch("optimizer_step");
  optimizer::add_number(dispatch, args.steps, Access::read_write);
  optimizer::add_number(dispatch, args.rate_factor, Access::read);
  optimizer::add_number(dispatch, args.gradient_factor, Access::read);
  optimizer::add_number(dispatch, args.skip, Access::read);
  dispatch.operand(&task.state, 0, kStateBytes, Access::write).push(push).groups(1).work(kStateBytes, kFlops);
  task.recorder.dispatch(kernel, dispatch);
}

void record_step(const Task& task, const Piece& piece, Pass pass) {
  const OptimizerArgs& args = task.args;
  const Part& part = piece.part;
  const bool listed = piece.listed(), masters = !args.masters.empty();
  KernelRequest kernel = shaders::OptimizerStep::request({.algorithm = args.algorithm,
                                                          .decay = args.weight_decay != 0,
                                                          .exact_arithmetic = task.recorder.traits().cpu,
                                                          .gradient_type = args.gradient_type,
                                                          .lanes = task.device.workgroup,
                                                          .list = listed,
                                                          .master = masters,
                                                          .momentum = args.momentum == 0 ? 0 : 1 + args.nesterov,
                                                          .parts = block_parts(args.dtype),
                                                          .pass = static_cast<int>(pass),
                                                          .shared = task.device.workgroup > task.device.subgroup,
                                                          .state = task.has_state,
                                                          .type = args.dtype,
                                                          .vector = vector_mode(task.recorder.traits(), part.aligned)});
  kernel.streaming().constant(0, task.device.workgroup);
  const shaders::OptimizerStep::Push push{
      .n = narrow(listed ? part.count : piece.elements),
      .groups = narrow(piece.groups),
      .run = narrow(task.list.run()),
      .place = narrow(pass == Pass::parameters ? part.first : 0),
      .scale = task.numbers.scale,
      .rate = task.numbers.rate,
      .correction1 = task.numbers.correction1,
      .correction2 = task.numbers.correction2,
      .momentum = static_cast<float>(args.adaptive() ? 1 - args.beta1 : args.momentum),
      .beta2 = static_cast<float>(args.beta2),
      .rest2 = static_cast<float>(1 - args.beta2),
      .epsilon = static_cast<float>(args.epsilon),
      .decay = static_cast<float>(args.weight_decay)};
  Dispatch dispatch("optimizer_step");
  TensorList::Arrays arrays;
  const uint64_t element = dtype_size(args.dtype), gradient = dtype_size(args.gradient_type);
  const auto add = [&](std::span<const Buffer* const> buffers, uint64_t bytes, Access access) {
    arrays.add(dispatch, task.list, piece, buffers, bytes, access);
  };
  const std::span<const Buffer* const> none;
  const bool stores = pass != Pass::moments;
  add(masters && !stores ? none : args.parameters, element,
      masters  ? Access::write
      : stores ? Access::read_write
               : Access::read);
  add(pass == Pass::parameters ? none : args.gradients, gradient, Access::read);
  const Access moments = pass == Pass::parameters ? Access::read : Access::read_write;
  add(args.first_moments, sizeof(float), moments);
  add(args.second_moments, sizeof(float), moments);
  add(args.masters, sizeof(float), stores ? Access::read_write : Access::read);
  task.list.add_table(dispatch, task.recorder, part);
  dispatch.operand(task.has_state ? &task.state : nullptr, 0, task.has_state ? kStateBytes : 0, Access::read);
  switch (pass) {
    case Pass::all: dispatch.operand(nullptr, 0, 0, Access::read); break;
    case Pass::moments:
      dispatch.operand(&task.sums, piece.first_group * kSumBytes, piece.groups * kSumBytes, Access::write);
      break;
    case Pass::parameters: dispatch.operand(&task.ratios, 0, task.ratios.bytes, Access::read); break;
  }
  const auto elements = static_cast<double>(task.list.elements(piece));
  // Bytes for each element: what is read, then what is written.
  const uint64_t weight = masters ? sizeof(float) : element,
                 moment = sizeof(float) * (args.has_moments() + args.adaptive());
  uint64_t moved = weight + moment + (pass == Pass::parameters ? 0 : gradient);
  moved += (pass == Pass::parameters ? 0 : moment) + (stores ? weight + (masters ? element : 0) : 0);
  dispatch.push(push)
      .groups_linear(piece.groups, task.recorder.traits())
      .work(elements * static_cast<double>(moved), elements * kFlops);
  define_each(kernel, dispatch);
  log(TUFF_LOG_DISPATCH, "optimizer_step {}: {} tensors of {} elements, {} workgroups of {} lanes, {} blocks each",
      dtype_name(args.dtype), part.count, task.list.elements(piece), piece.groups, task.device.workgroup,
      task.list.run());
  task.recorder.dispatch(kernel, dispatch);
}

// The ratios of a part's tensors.
void record_ratio(const Task& task, const Part& part) {
  const bool listed = part.count > 1;
  KernelRequest kernel = shaders::OptimizerRatio::request({.exact_arithmetic = task.recorder.traits().cpu,
                                                           .lanes = task.device.workgroup,
                                                           .list = listed,
                                                           .shared = task.device.workgroup > task.device.subgroup});
  kernel.streaming().constant(0, task.device.workgroup);
  const shaders::OptimizerRatio::Push push{.n = narrow(listed ? part.count : part.groups),
                                           .groups = narrow(part.count)};
  const uint64_t bytes = part.groups * kSumBytes;
  Dispatch dispatch("optimizer_step");
  task.list.add_table(dispatch, task.recorder, part);
  dispatch.operand(&task.sums, part.first_group * kSumBytes, bytes, Access::read)
      .operand(&task.ratios, part.first * sizeof(float), part.count * sizeof(float), Access::write)
      .push(push)
      .groups_linear(part.count, task.recorder.traits())
      .work(static_cast<double>(bytes), static_cast<double>(bytes));
  task.recorder.dispatch(kernel, dispatch);
}

}  // namespace

void record_optimizer(Recorder& recorder, const OptimizerArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, args.dtype);
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_OPTIMIZER_VARIANT">(), sizeof(float));
  const auto aligned_in = [](std::span<const Buffer* const> buffers, size_t i) {
    return buffers.empty() || aligned16(buffers[i]);
  };
  const bool has_state =
      args.steps != nullptr || args.rate_factor != nullptr || args.gradient_factor != nullptr || args.skip != nullptr;
  Task task{recorder,
            args,
            device,
            TensorList(traits, device, args.sizes, 4 * block_parts(args.dtype),
                       [&](size_t i) {
                         return aligned_in(args.parameters, i) && aligned_in(args.gradients, i) &&
                                aligned_in(args.masters, i) && aligned_in(args.first_moments, i) &&
                                aligned_in(args.second_moments, i);
                       }),
            numbers_of(args),
            has_state};
  if (task.list.parts().empty()) return;
  const bool lamb = args.algorithm == TUFF_OPTIMIZER_LAMB;
  if (has_state || lamb) {
    ScratchLayout layout;
    const uint64_t sum_bytes = lamb ? task.list.groups() * kSumBytes : 0,
                   ratio_bytes = lamb ? task.list.order().size() * sizeof(float) : 0;
    const uint64_t state = layout.add(kStateBytes), sums = layout.add(sum_bytes), ratios = layout.add(ratio_bytes);
    const Buffer& scratch = recorder.scratch(layout.bytes());
    task.state = part_of(scratch, state, kStateBytes);
    task.sums = part_of(scratch, sums, sum_bytes);
    task.ratios = part_of(scratch, ratios, ratio_bytes);
  }
  if (has_state) record_state(task);
  if (!lamb) {
    task.list.for_each_piece([&](const Piece& piece) { record_step(task, piece, Pass::all); });
    return;
  }
  task.list.for_each_piece([&](const Piece& piece) { record_step(task, piece, Pass::moments); });
  for (const Part& part : task.list.parts()) record_ratio(task, part);
  task.list.for_each_piece([&](const Piece& piece) { record_step(task, piece, Pass::parameters); });
}

}  // namespace tuff
