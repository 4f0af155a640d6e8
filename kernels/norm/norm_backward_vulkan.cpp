// Planner of the gradients of normalisations and of batch norm for training. What is normalised together is a set: a
// row, a group of channels, or a channel.
//
//   1  moments of parts of sets    norm_split_rows, its first pass; norm_columns where a channel is a column
//   2  statistics of the sets      norm_merge
//   3  sums of h and h n           norm_line_sums along rows, or along the channels of images; norm_columns
//   4  means of these for sets, and their sums for weights    norm_finish
//   5  the results                 norm_apply
//
// Where channels are single elements, sums for weights are over columns, and those for sets along rows. Otherwise both
// come from the sums of each channel of each image. TUFF_NORM_VARIANT=gpu or cpu in the environment forces the shapes
// of that class, for tests.
#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/scratch_parts.hpp"
#include "kernels/norm/norm_backward.hpp"
#include "kernels/norm/norm_backward_plan.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/norm_apply.hpp"
#include "shaders/norm_backward_rows.hpp"
#include "shaders/norm_finish.hpp"
#include "shaders/norm_merge.hpp"

namespace tuff {
namespace {

using namespace norm;

// ---- sets ------------------------------------------------------------------------------------------

// What a pass over statistics reads or writes beside them.
struct Statistics {
  int32_t type;                   // of mean and variance
  const Buffer *mean, *variance;  // null: none
  bool given;                     // they are read instead of written
  const Buffer *running_mean, *running_variance;
  double momentum;
};

void record_merge(const Task& task, const Parts& parts, const Buffer* moments, const Buffer& statistics,
                  const Statistics& beside) {
  const StreamDevice& device = task.device;
  uint32_t lanes = 1;
  while (lanes < device.subgroup && parts.of_set > 2 * uint64_t{lanes}) lanes *= 2;
  const bool store_mean = !beside.given && beside.mean != nullptr;
  const bool store_variance = !beside.given && beside.variance != nullptr;
  KernelRequest kernel = shaders::NormMerge::request(
      {.centred = task.centred,
       .exact_arithmetic = task.recorder.traits().cpu,
       .follow = (beside.running_mean != nullptr ? 1 : 0) + (beside.running_variance != nullptr ? 2 : 0),
       .given = beside.given,
       .lanes = lanes,
       .running_type = task.weight_type,
       .shared = false,
       .statistics_type = beside.type,
       .store = (store_mean ? 1 : 0) + (store_variance ? 2 : 0),
       .type = task.dtype});
  kernel.constant(0, device.workgroup);
  const shaders::NormMerge::Push push{.sets = narrow(task.sets()),
                                      .parts = narrow(parts.of_set),
                                      .run = narrow(parts.run),
                                      .stride = narrow(parts.stride),
                                      .cuts = narrow(parts.cuts),
                                      .size = narrow(parts.size),
                                      .last = narrow(parts.last),
                                      .total = static_cast<float>(task.together()),
                                      .epsilon = static_cast<float>(task.epsilon),
                                      .momentum = static_cast<float>(beside.momentum)};
  const uint64_t given_bytes = task.sets() * dtype_size(beside.type);
  const Access access = beside.given ? Access::read : Access::write;
  Dispatch dispatch(task.name);
  dispatch.operand(moments, 0, parts.all * 16, Access::read)
      .operand(&statistics, 0, task.sets() * 16, Access::write)
      .operand(beside.mean, 0, given_bytes, access)
      .operand(beside.variance, 0, given_bytes, access)
      .operand(beside.running_mean, 0, task.weight_bytes(), Access::read_write)
      .operand(beside.running_variance, 0, task.weight_bytes(), Access::read_write)
      .push(push)
      .groups_linear(ceil_div(task.sets() * lanes, device.workgroup), task.recorder.traits())
      .work(16.0 * static_cast<double>(parts.all + task.sets()), 40.0 * static_cast<double>(parts.all + task.sets()));
  log(TUFF_LOG_DISPATCH, "{} {} sets={}: statistics of {} parts each, {} lanes of {}", task.name,
      dtype_name(task.dtype), task.sets(), parts.of_set, lanes, device.workgroup);
  task.recorder.dispatch(kernel, dispatch);
}

// Sums of parts for `sets` sets: the means of each, or the gradients by weight and bias of each channel.
void record_finish(const Task& task, const Parts& parts, uint64_t sets, const Buffer* sums, const Buffer* means,
                   const Buffer* of_weight, const Buffer* of_bias) {
  const StreamDevice& device = task.device;
  const bool weighted = means != nullptr && task.weight != nullptr && (task.planes() || task.by_channel);
  uint32_t columns = std::min(device.cpu ? device.subgroup : 32u, std::min(device.workgroup, 64u)), slices = 1;
  if (!device.cpu && parts.of_set > 4) {
    const uint32_t lanes = parts.of_set > 64 ? device.largest : device.workgroup;
    slices = std::min(std::bit_floor(lanes / columns), 32u);
  }
  KernelRequest kernel = shaders::NormFinish::request({.centred = task.centred,
                                                       .columns = columns,
                                                       .exact_arithmetic = task.recorder.traits().cpu,
                                                       .means = means != nullptr,
                                                       .of_bias = of_bias != nullptr,
                                                       .of_weight = of_weight != nullptr,
                                                       .slices = slices,
                                                       .weight = weighted,
                                                       .weight_type = task.weight_type});
  kernel.constant(0, columns * slices);
  const shaders::NormFinish::Push push{.sets = narrow(sets),
                                       .parts = narrow(parts.of_set),
                                       .run = narrow(parts.run),
                                       .stride = narrow(parts.stride),
                                       .cuts = narrow(parts.cuts),
                                       .channels = narrow(task.channels),
                                       .total = static_cast<float>(task.together())};
  Dispatch dispatch(task.name);
  dispatch.operand(sums, 0, parts.all * 8, Access::read)
      .operand(weighted ? task.weight : nullptr, 0, task.weight_bytes(), Access::read)
      .operand(means, 0, sets * 8, Access::write)
      .operand(of_weight, 0, task.weight_bytes(), Access::write)
      .operand(of_bias, 0, task.weight_bytes(), Access::write)
      .push(push)
      .groups_linear(ceil_div(sets, columns), task.recorder.traits())
      .work(8.0 * static_cast<double>(parts.all), 4.0 * static_cast<double>(parts.all));
  log(TUFF_LOG_DISPATCH, "{} {} sets={}: {} of {} parts each, {} lanes", task.name, dtype_name(task.dtype), sets,
      means != nullptr ? "means" : "gradients by weights", parts.of_set, columns * slices);
  task.recorder.dispatch(kernel, dispatch);
}

// ---- elements --------------------------------------------------------------------------------------

struct Apply {
  bool forward, frozen;
  const Buffer *bias, *means, *output;
};

void record_apply(const Task& task, const Apply& apply, const Buffer& statistics) {
  const DeviceTraits& traits = task.recorder.traits();
  const StreamDevice& device = task.device;
  const uint64_t block = task.block(), element = task.element();
  const uint64_t total = task.elements();
  const bool consecutive =
      task.inner == 1 && task.channels % block == 0 && (task.by_channel || task.together() % block == 0);
  const int channel = consecutive ? 0 : task.inner % block == 0 ? 1 : 2;
  const bool aligned = channel != 2 && aligned16(task.input) && aligned16(task.slope) && aligned16(task.weight) &&
                       aligned16(apply.bias) && aligned16(apply.output);
  // On a GPU, where there are enough of them, a lane takes several blocks of the same channels and reads these
  // channels' numbers once.
  constexpr uint64_t kRun = 8;
  const bool same = !device.cpu && channel == 0 && task.by_channel && device.workgroup % (task.channels / block) == 0 &&
                    total / block >= 2 * kRun * device.workgroup * device.cores;
  const uint64_t run = device.cpu ? device.items_each(total / block, 128) : same ? kRun : 1;
  KernelRequest kernel = shaders::NormApply::request({.bias = apply.bias != nullptr,
                                                      .by_channel = task.by_channel,
                                                      .channel = channel,
                                                      .forward = apply.forward,
                                                      .frozen = apply.frozen,
                                                      .parts = block_parts(task.dtype),
                                                      .run = device.fixed_run(run),
                                                      .same = same,
                                                      .type = task.dtype,
                                                      .vector = vector_mode(traits, aligned),
                                                      .weight = task.weight != nullptr,
                                                      .weight_type = task.weight_type});
  kernel.streaming().constant(0, device.workgroup);
  for (uint64_t begin = 0; begin < total; begin += device.piece) {
    const uint64_t count = std::min(device.piece, total - begin), together = task.by_channel ? 1 : task.together();
    const shaders::NormApply::Push push{.n = narrow(count),
                                        .run = narrow(run),
                                        .first = narrow(begin % task.inner),
                                        .channel = narrow(begin / task.inner % task.channels),
                                        .inner = narrow(task.inner),
                                        .channels = narrow(task.channels),
                                        .set = task.by_channel ? 0 : narrow(begin / together),
                                        .within = narrow(begin % together),
                                        .together = narrow(together)};
    const uint64_t items = count / block + count % block, offset = begin * element, bytes = count * element;
    Dispatch dispatch(task.name);
    dispatch.operand(apply.frozen ? nullptr : task.input, apply.frozen ? 0 : offset, bytes, Access::read)
        .operand(task.slope, task.slope != nullptr ? offset : 0, bytes, Access::read)
        .operand(task.weight, 0, task.weight_bytes(), Access::read)
        .operand(apply.bias, 0, task.weight_bytes(), Access::read)
        .operand(&statistics, 0, task.sets() * 16, Access::read)
        .operand(apply.means, 0, task.sets() * 8, Access::read)
        .operand(apply.output, offset, bytes, Access::write)
        .push(push)
        .groups_linear(ceil_div(items, device.workgroup * run), traits)
        .work((task.slope != nullptr && !apply.frozen ? 3.0 : 2.0) * static_cast<double>(bytes),
              12.0 * static_cast<double>(count));
    log(TUFF_LOG_DISPATCH, "{} {} n={} inner={} channels={}: {} lanes, {} blocks each", task.name,
        dtype_name(task.dtype), count, task.inner, task.channels, device.workgroup, run);
    task.recorder.dispatch(kernel, dispatch);
  }
}

// ---- rows in registers -----------------------------------------------------------------------------

struct Teams {
  uint32_t lanes, blocks;  // of a row; blocks of a lane
  uint64_t count, rows;    // of a dispatch
  uint64_t pieces;         // dispatches
};

// Nothing if rows do not fit, or are not whole blocks. Four numbers of each element of a lane are kept: on a CPU not in
// registers, but in memory that is near.
std::optional<Teams> teams_of(const Task& task) {
  const uint64_t elements = task.device.cpu ? 96 : 32;  // of a lane, at most
  const StreamDevice& device = task.device;
  const uint64_t extent = task.channels, block = task.block(), blocks = extent / block, most = elements / block;
  if (task.by_channel || task.groups != 1 || task.inner != 1 || extent % block != 0) return std::nullopt;
  Teams teams{};
  teams.lanes = device.cpu ? device.subgroup : 1;
  while (teams.lanes < device.subgroup && blocks > 2 * uint64_t{teams.lanes}) teams.lanes *= 2;
  if (blocks > most / 2 * teams.lanes) teams.lanes = device.workgroup;
  if (blocks > most * teams.lanes || extent > device.piece) return std::nullopt;
  teams.blocks = static_cast<uint32_t>(ceil_div(blocks, teams.lanes));
  if (teams.blocks > 8) teams.blocks = teams.blocks <= 12 ? 12 : teams.blocks <= 16 ? 16 : 24;  // few different kernels
  teams.rows = std::min(device.piece / extent, task.batch);
  if (teams.rows >= 8 && teams.rows < task.batch) teams.rows -= teams.rows % 8;  // keeps pieces as aligned as the whole
  teams.pieces = ceil_div(task.batch, teams.rows);
  // As many as keep the device busy; more where chains of additions would become long.
  const uint64_t wanted = 4 * device.cores * (device.workgroup / teams.lanes);
  teams.count = std::min(std::max(wanted, ceil_div(teams.rows, 512)), teams.rows);
  if (teams.count * teams.pieces > kMax / extent) return std::nullopt;  // parts
  return teams;
}

void record_register_rows(const Task& task, const Teams& teams, const Buffer* of_input, const Buffer* sums) {
  const DeviceTraits& traits = task.recorder.traits();
  const uint64_t row_bytes = task.channels * task.element(), sum_bytes = teams.count * task.channels * 8;
  const bool aligned = aligned16(task.input) && aligned16(task.slope) && aligned16(of_input) && aligned16(task.weight);
  KernelRequest kernel = shaders::NormBackwardRows::request({.blocks = teams.blocks,
                                                             .centred = task.centred,
                                                             .exact_arithmetic = traits.cpu,
                                                             .input = of_input != nullptr,
                                                             .lanes = teams.lanes,
                                                             .parts = block_parts(task.dtype),
                                                             .shared = teams.lanes > task.device.subgroup,
                                                             .sums = sums != nullptr,
                                                             .type = task.dtype,
                                                             .vector = vector_mode(traits, aligned),
                                                             .weight = task.weight != nullptr,
                                                             .weight_type = task.weight_type});
  kernel.streaming().constant(0, task.device.workgroup);
  for (uint64_t piece = 0; piece < teams.pieces; ++piece) {
    const uint64_t first = piece * teams.rows, rows = std::min(teams.rows, task.batch - first);
    const uint64_t offset = first * row_bytes, bytes = rows * row_bytes;
    const shaders::NormBackwardRows::Push push{.rows = narrow(rows),
                                               .extent = narrow(task.channels),
                                               .teams = narrow(teams.count),
                                               .each = narrow(ceil_div(rows, teams.count)),
                                               .epsilon = static_cast<float>(task.epsilon)};
    Dispatch dispatch(task.name);
    dispatch.operand(task.input, offset, bytes, Access::read)
        .operand(task.slope, offset, bytes, Access::read)
        .operand(task.weight, 0, task.weight_bytes(), Access::read)
        .operand(of_input, of_input != nullptr ? offset : 0, bytes, Access::write)
        .operand(sums, sums != nullptr ? piece * sum_bytes : 0, sum_bytes, Access::write)
        .push(push)
        .groups_linear(ceil_div(teams.count * teams.lanes, task.device.workgroup), traits)
        .work(3.0 * static_cast<double>(bytes), 20.0 * static_cast<double>(rows * task.channels));
    log(TUFF_LOG_DISPATCH, "{} {} rows={} extent={}: in registers, {} lanes of {}, {} blocks each, {} teams", task.name,
        dtype_name(task.dtype), rows, task.channels, teams.lanes, task.device.workgroup, teams.blocks, teams.count);
    task.recorder.dispatch(kernel, dispatch);
  }
}

// ---- calls -----------------------------------------------------------------------------------------

void require_parts(uint64_t parts) {
  if (parts > kMax) fail(TUFF_ERROR_UNSUPPORTED, "{} parts are summed, at most 2^31 - 1", parts);
}

// Where moments are found, and their parts.
struct MomentPlan {
  bool columns;
  Chunks chunks;
  Lines lines;
  Parts parts;
};

MomentPlan plan_moments(const Task& task) {
  MomentPlan plan{};
  plan.columns = task.by_channel && !task.planes();
  if (plan.columns) {
    plan.chunks = chunks_of(task, true);
    const Chunks& c = plan.chunks;
    plan.parts = parts_of_columns(c.count, task.channels);
    plan.parts.cuts = c.count, plan.parts.size = c.rows, plan.parts.last = task.batch - (c.count - 1) * c.rows;
  } else {
    plan.lines = moment_lines(task);
    const RowSegments& cut = plan.lines.cut;
    plan.parts = parts_of(task.by_channel ? task.batch : 1, cut.count, task.sets(), cut.count, cut.size,
                          plan.lines.extent - (cut.count - 1) * cut.size);
  }
  require_parts(plan.parts.all);
  return plan;
}

void record_moments(const Task& task, const MomentPlan& plan, const Buffer& moments) {
  if (plan.columns) return record_columns(task, plan.chunks, true, nullptr, moments);
  record_line_moments(task, plan.lines, moments);
}

// Sums of h and h n: along lines, for sets, and for weights too if lines are planes; of columns, for weights, and for
// sets too if these are columns.
struct SumPlan {
  bool by_lines, by_columns;
  Lines lines;
  Chunks chunks;
  Parts of_sets, of_weights;
  uint64_t line_parts, column_parts;
};

SumPlan plan_sums(const Task& task, bool of_sets, bool of_weights) {
  SumPlan plan{};
  plan.by_lines = task.planes() ? of_sets || of_weights : of_sets && !task.by_channel;
  plan.by_columns = !task.planes() && (of_weights || (of_sets && task.by_channel));
  if (plan.by_lines) {
    plan.lines = sum_lines(task);
    const uint64_t cuts = plan.lines.cut.count, each = task.planes() ? task.channels / task.groups : 1;
    plan.line_parts = plan.lines.count * cuts;
    plan.of_weights = parts_of(task.batch, cuts, task.channels, cuts, 0, 0);
    plan.of_sets = task.by_channel ? plan.of_weights : parts_of(1, each * cuts, task.sets(), cuts, 0, 0);
  }
  if (plan.by_columns) {
    plan.chunks = chunks_of(task, false);
    plan.of_weights = parts_of_columns(plan.chunks.count, task.channels);
    plan.column_parts = plan.of_weights.all;
    if (task.by_channel) plan.of_sets = plan.of_weights;
  }
  require_parts(std::max(plan.line_parts, plan.column_parts));
  return plan;
}

Task task_of(Recorder& recorder, const NormBackwardArgs& args) {
  Task task(recorder, "norm_backward", args.dtype, args.weight_type);
  task.centred = args.kind != TUFF_NORM_RMS;
  task.by_channel = args.kind == TUFF_NORM_BATCH;
  task.batch = args.batch, task.channels = args.channels, task.inner = args.inner;
  task.groups = args.kind == TUFF_NORM_GROUP ? args.groups : 1;
  task.epsilon = args.epsilon;
  task.input = args.input, task.slope = args.output_gradient, task.weight = args.weight;
  return task;
}

bool wants_weights(const NormBackwardArgs& args) {
  return args.weight_gradient != nullptr || args.bias_gradient != nullptr;
}

void record_in_registers(Task& task, const NormBackwardArgs& args, const Teams& teams) {
  const bool of_weights = wants_weights(args);
  const Parts parts = parts_of_columns(teams.count * teams.pieces, task.channels);
  const Buffer* const sums = of_weights ? &task.recorder.scratch(parts.all * 8) : nullptr;
  record_register_rows(task, teams, args.input_gradient, sums);
  if (of_weights) {
    record_finish(task, parts, task.channels, sums, nullptr, args.weight_gradient, args.bias_gradient);
  }
}

void record_in_passes(Task& task, const NormBackwardArgs& args) {
  const bool of_weights = wants_weights(args), of_sets = args.input_gradient != nullptr && args.frozen == 0,
             given = args.mean != nullptr;
  const MomentPlan moments = given ? MomentPlan{} : plan_moments(task);
  const SumPlan plan = plan_sums(task, of_sets, of_weights);
  Buffer found{}, statistics{}, sums{}, column_sums{}, means{};
  take_scratch(task.recorder, {{&found, moments.parts.all * 16},
                               {&statistics, task.sets() * 16},
                               {&sums, plan.line_parts * 8},
                               {&column_sums, plan.column_parts * 8},
                               {&means, of_sets ? task.sets() * 8 : 0}});
  if (!given) record_moments(task, moments, found);
  record_merge(task, moments.parts, given ? nullptr : &found, statistics,
               {args.statistics_type, args.mean, args.variance, given, nullptr, nullptr, 0});
  if (plan.by_lines) record_line_sums(task, plan.lines, statistics, sums);
  if (plan.by_columns) record_columns(task, plan.chunks, false, &statistics, column_sums);
  if (of_sets) {
    record_finish(task, plan.of_sets, task.sets(), plan.by_lines ? &sums : &column_sums, &means, nullptr, nullptr);
  }
  if (of_weights) {
    record_finish(task, plan.of_weights, task.channels, plan.by_columns ? &column_sums : &sums, nullptr,
                  args.weight_gradient, args.bias_gradient);
  }
  if (args.input_gradient == nullptr) return;
  record_apply(task, {false, args.frozen != 0, nullptr, of_sets ? &means : nullptr, args.input_gradient}, statistics);
}

}  // namespace

void record_norm_backward(Recorder& recorder, const NormBackwardArgs& args) {
  if (args.channels == 0) return;
  Task task = task_of(recorder, args);
  require_storage(recorder.traits(), args.statistics_type);
  task.require_sizes();
  if (task.elements() == 0) {  // sums of nothing
    if (wants_weights(args)) {
      record_finish(task, Parts{}, task.channels, nullptr, nullptr, args.weight_gradient, args.bias_gradient);
    }
    return;
  }
  const std::optional<Teams> teams = teams_of(task);
  teams ? record_in_registers(task, args, *teams) : record_in_passes(task, args);
}

void record_batch_norm_training(Recorder& recorder, const BatchNormTrainingArgs& args) {
  if (args.channels == 0) return;
  Task task(recorder, "batch_norm_training", args.dtype, args.weight_type);
  task.centred = task.by_channel = true;
  task.batch = args.batch, task.channels = args.channels, task.inner = args.inner, task.groups = 1;
  task.epsilon = args.epsilon;
  task.input = args.input, task.slope = nullptr, task.weight = args.weight;
  task.require_sizes();
  const MomentPlan moments = plan_moments(task);
  Buffer found{}, statistics{};
  take_scratch(recorder, {{&found, moments.parts.all * 16}, {&statistics, task.sets() * 16}});
  const Apply apply{true, false, args.bias, nullptr, args.output};
  record_moments(task, moments, found);
  record_merge(task, moments.parts, &found, statistics,
               {TUFF_F32, args.mean, args.variance, false, args.running_mean, args.running_variance, args.momentum});
  if (args.output != nullptr) record_apply(task, apply, statistics);
}

}  // namespace tuff
