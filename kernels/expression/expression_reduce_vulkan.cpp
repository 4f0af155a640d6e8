// Planner of formulas that end with a reduction. The axes are two groups, kept and reduced, each merged by itself and
// ordered by how far apart its elements are. Four neighbours lie along the group whose innermost axis is the closer
// one:
//
//   the reduced one   expression_rows: lanes share the elements of each result
//   the kept one      expression_columns: each lane has four results
//
// The elements of each result are cut into segments as those of tuff_reduce() are (reduce_shape.hpp), so with the bound
// of reduce_vulkan.cpp on serial additions. Where there are several, their results stay in scratch memory, as [segment]
// [kept index], and are reduced again: by the same kernels, whose formula is then the partial result itself. What one
// dispatch cannot address is divided: reduced axes into parts, which are segments too, and kept axes into calls of
// their own. All of this depends only on sizes, strides and device, so results are the same in every run.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <optional>

#include "kernels/common/check.hpp"
#include "kernels/expression/expression_plan.hpp"
#include "kernels/reduce/reduce_shape.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/expression_columns.hpp"
#include "shaders/expression_reduce.hpp"
#include "shaders/expression_rows.hpp"

namespace tuff {
namespace {

using expression::Axes;
using expression::kMax;
using expression::Mode;
using expression::Operand;
using expression::Table;
using expression::Task;

// Indices of kept and of reduced axes, and the element of each operand at the first of both. The output is the last
// operand, and has the stride 0 along reduced axes.
struct Space {
  Axes kept, reduced;
  std::array<int64_t, kMax> first;

  uint64_t results() const { return kept.count(); }
  uint64_t length() const { return reduced.count(); }
};

struct Stage {
  Task& task;
  const expression::Reduction& reduction;
  double divisor;  // of a mean
  bool merges;     // the elements are partial results

  const reduce::Op& op() const { return *reduction.op; }
  expression::State state() const { return expression::state_of(op()); }
  // Strides lead to the index of an element too, as those of an operand behind all others.
  bool indexed() const { return state() == expression::State::place && !merges; }
  uint64_t partial_values() const { return expression::partial_types(reduction).size(); }
  uint64_t partial_size() const { return dtype_size(expression::partial_types(reduction)[0]); }
};

// Where a stage stores partial results: of `total` segments those from `segment` on. Without a buffer it stores
// results.
struct Partials {
  const Buffer* buffer = nullptr;
  uint64_t segment = 0, total = 1;
};

// Elements between the values of partial results: a multiple of 64, so that each value's are as aligned as the first's.
uint64_t plane_of(uint64_t partials) { return round_up(partials, 64); }

bool along_reduced(const Task& task, const Space& space) {
  if (space.kept.rank == 0) return true;
  if (space.reduced.rank == 0) return false;
  uint64_t kept = 0, reduced = 0;
  for (uint32_t slot = 0; slot + 1 < task.operands; ++slot) {
    const auto bytes = [&](const Axes& axes) {
      return std::min<uint64_t>(static_cast<uint64_t>(std::llabs(axes.inner_stride(slot))), 64) *
             task.operand[slot].size;
    };
    kept += bytes(space.kept);
    reduced += bytes(space.reduced);
  }
  return reduced <= kept;
}

uint64_t lanes_of(const Space& space) { return ceil_div(space.results(), 4); }

uint64_t segments_of(const Task& task, const Space& space, bool rows) {
  if (!rows) return reduce::column_segments(task.device, lanes_of(space), space.length());
  const uint64_t segment = reduce::row_segment(task.device, space.results(), space.length());
  return segment == 0 ? 1 : ceil_div(space.length(), segment);
}

// --- One dispatch

struct Access4 {
  int64_t modes;
  bool gathers;
};

Access4 access_of(const Task& task, const Space& space, bool rows, bool cut) {
  const Axes& along = rows ? space.reduced : space.kept;
  const Axes& across = rows ? space.kept : space.reduced;
  // Along a single reduced axis, elements behind the last four are read one by one.
  const bool gathers = (!rows || along.rank > 1) && along.inner_size() % 4 != 0;
  Access4 access{0, gathers};
  for (uint32_t slot = 0; slot < task.operands; ++slot) {
    const bool output = slot + 1 == task.operands;
    if (output && cut) continue;
    const auto divides = [&](const Axes& axes, uint32_t first) {
      bool all = true;
      for (uint32_t d = first; d < axes.rank; ++d) all = all && axes.strides[axes.rank - 1 - d][slot] % 4 == 0;
      return all;
    };
    bool still = !output;
    for (uint32_t d = 0; d < along.rank; ++d) still = still && along.strides[d][slot] == 0;
    Mode mode = gathers ? expression::gathered : expression::stepped;
    if (still || (!gathers && !output && along.inner_stride(slot) == 0)) {
      mode = expression::repeated;
    } else if (!gathers && along.rank != 0 && along.inner_stride(slot) == 1 && divides(along, 1) &&
               divides(across, 0) &&
               expression::is_aligned(task.operand[slot], static_cast<uint64_t>(space.first[slot]))) {
      mode = expression::blocks;
    }
    access.modes |= static_cast<int64_t>(mode) << (expression::mode_bits * slot);
  }
  return access;
}

template <typename Shader>
void dispatch_stage(const Stage& stage, const Space& space, bool rows, uint64_t segments, const Partials& to,
                    const typename Shader::Defines& defines, const reduce::RowShape& shape) {
  const Task& task = stage.task;
  const DeviceTraits& traits = task.recorder.traits();
  const bool cut = to.buffer != nullptr;
  KernelRequest kernel = Shader::request(defines);
  kernel.streaming()
      .constant(0, shape.workgroup)
      .constant(1, std::max(space.kept.rank, 1u))
      .constant(2, std::max(space.reduced.rank, 1u))
      .body(task.expression.body());

  Table table;
  for (uint32_t i = 0; i < task.scalar_words; ++i) table.add(task.scalars[i]);
  table.add_sizes(space.kept);
  table.add_sizes(space.reduced);
  const uint64_t results = space.results(), length = space.length();
  Dispatch dispatch(stage.op().name);
  double bytes = 0;
  for (uint32_t slot = 0; slot < task.operands; ++slot) {
    const Operand& operand = task.operand[slot];
    const bool output = slot + 1 == task.operands;
    if (output && cut) {
      const uint64_t size = stage.partial_size(), values = stage.partial_values(), count = results * segments;
      const uint64_t reach = (values - 1) * plane_of(results * to.total) + count;
      table.add(0);
      dispatch.operand(to.buffer, to.segment * results * size, reach * size, Access::write);
      bytes += static_cast<double>(values * count * size);
      continue;
    }
    if (length == 0 && !output) {
      table.add(0);
      dispatch.operand(nullptr, 0, 0, Access::read);
      continue;
    }
    const Axes::Span kept = space.kept.span(slot);
    const Axes::Span reduced = length == 0 ? Axes::Span{1, 0} : space.reduced.span(slot);
    const uint64_t before = kept.first + reduced.first, elements = kept.elements + reduced.elements - 1;
    table.add(static_cast<uint32_t>(before));
    dispatch.operand(operand.buffer, (static_cast<uint64_t>(space.first[slot]) - before) * operand.size,
                     elements * operand.size, output ? Access::write : Access::read);
    bytes += static_cast<double>(std::min(elements, results * std::max<uint64_t>(length, 1)) * operand.size);
  }
  const uint32_t walked = task.operands + (stage.indexed() ? 1 : 0);
  if (stage.indexed()) table.add(static_cast<uint32_t>(space.first[task.operands]));
  table.add_strides(space.kept, walked);
  table.add_strides(space.reduced, walked);
  const uint32_t size = table.count * 4;
  dispatch.operand(&task.recorder.parameters(table.words.data(), size), 0, size, Access::read);

  const uint64_t segment = rows && segments > 1 ? reduce::row_segment(task.device, results, length) : 0;
  typename Shader::Push push{.kept = static_cast<uint32_t>(results),
                             .extent = static_cast<uint32_t>(length),
                             .segments = static_cast<uint32_t>(segments),
                             .segment = static_cast<uint32_t>(segment != 0 ? segment : length),
                             .run = shape.run,
                             .plane = static_cast<uint32_t>(plane_of(results * to.total))};
  reduce::set_divisor(push, stage.divisor);
  const uint64_t lanes = rows ? results * segments * shape.lanes : lanes_of(space) * segments;
  const double elements = static_cast<double>(results) * static_cast<double>(length);
  dispatch.push(push)
      .groups_linear(ceil_div(lanes, uint64_t{shape.workgroup} * shape.run), traits)
      .work(bytes, elements * (task.expression.needs().flops + 1));
  log(TUFF_LOG_DISPATCH,
      "expr {} results={} length={} segments={}: by {}, {}+{} axes, modes {:o}, {} lanes of {}, {} in flight, {} each",
      stage.op().name, results, length, segments, rows ? "rows" : "columns", space.kept.rank, space.reduced.rank,
      defines.formula.modes.value, shape.lanes, shape.workgroup, defines.formula.unroll.value, shape.run);
  task.recorder.dispatch(kernel, dispatch);
}

void record_segments(const Stage& stage, const Space& space, bool rows, uint64_t segments, const Partials& to) {
  const Task& task = stage.task;
  const DeviceTraits& traits = task.recorder.traits();
  const bool cut = to.buffer != nullptr;
  const Access4 access = access_of(task, space, rows, cut);
  const expression::Needs& needs = task.expression.needs();
  // Several copies of a long formula would take drivers long to compile.
  const bool is_short = task.expression.formula().nodes.size() <= 32;
  // With a state of several values no single one is accumulated.
  const int32_t gathers = stage.op().gathers;
  const auto formula = [&](const reduce::RowShape& shape) {
    return shaders::ExpressionReduce{.computes_f64 = needs.f64,
                                     .computes_int64 = needs.int64,
                                     .cut = cut,
                                     .doubles = needs.doubles,
                                     .exact_arithmetic = traits.cpu,
                                     .files = needs.files,
                                     .finish = cut ? 0 : reduce::finish_of(stage.op().result),
                                     .gathered = access.gathers,
                                     .key_minimum = stage.op().op == TUFF_REDUCE_ARGMIN,
                                     .merges = stage.merges && stage.state() != expression::State::value,
                                     .modes = access.modes,
                                     .op = gathers != 0 ? gathers : int32_t{TUFF_REDUCE_MAX},
                                     .operands = task.operands,
                                     .own = needs.own,
                                     .run = task.device.fixed_run(shape.run),
                                     .scalars = task.scalar_words / 2,
                                     .slots = task.operands + 1,
                                     .state = static_cast<int>(stage.state()),
                                     .unroll = is_short && shape.unroll >= 4 ? 4 : 1,
                                     .v_type = stage.reduction.value,
                                     .vector = vector_mode(traits, true)};
  };
  const uint64_t results = space.results(), length = space.length();
  if (rows) {
    const uint64_t each = segments > 1 ? reduce::row_segment(task.device, results, length) : length;
    // On a CPU a second chain of states spills: 0.6 to 0.8 of the rate.
    const uint64_t most = task.device.cpu && stage.state() != expression::State::value ? 1 : 8;
    const reduce::RowShape shape =
        reduce::row_shape(task.device, results * segments, std::max<uint64_t>(each, 1), 1, most);
    const shaders::ExpressionRows::Defines defines{.formula = formula(shape),
                                                   .lanes = shape.lanes,
                                                   .shared = shape.shared,
                                                   .single = shape.lanes == shape.workgroup};
    return dispatch_stage<shaders::ExpressionRows>(stage, space, rows, segments, to, defines, shape);
  }
  const uint64_t each = ceil_div(length, segments);
  const uint32_t workgroup = task.device.cpu ? task.device.subgroup : std::min(task.device.workgroup, 128u);
  const uint64_t taken = ceil_div(lanes_of(space) * segments, workgroup);
  const uint64_t run =
      task.device.cpu ? few_values(std::min(taken / (8 * task.device.cores), 256 / std::max<uint64_t>(each, 1)), 1, 64)
                      : 1;
  const reduce::RowShape shape{1, workgroup, each >= 4 ? 4u : 1u, static_cast<uint32_t>(run), false};
  dispatch_stage<shaders::ExpressionColumns>(stage, space, rows, segments, to, {.formula = formula(shape)}, shape);
}

// --- What one dispatch can address

// More would keep a device for days: their operands are larger than its memory, or repeated.
constexpr uint64_t kMaxDispatches = 1u << 16;

// Halves the axis along which an operand beyond `most` elements reaches furthest, and calls use(axes, first) with each
// part. So is the longest axis, where there are more than `most_indices` indices.
template <typename Use>
void divided(const Task& task, const Axes& axes, const std::array<int64_t, kMax>& first,
             const std::array<uint64_t, kMax>& most, uint64_t most_indices, const Use& use) {
  constexpr uint32_t kNone = 8;
  uint32_t cut = kNone;
  if (axes.count() > most_indices) {
    cut = 0;
    for (uint32_t d = 1; d < axes.rank; ++d) cut = axes.sizes[d] > axes.sizes[cut] ? d : cut;
  }
  for (uint32_t slot = 0; slot < task.operands && cut == kNone; ++slot) {
    if (axes.rank == 0 || axes.span(slot).elements <= most[slot]) continue;
    const auto reach = [&](uint32_t d) {
      return (axes.sizes[d] - 1) * static_cast<uint64_t>(std::llabs(axes.strides[d][slot]));
    };
    cut = 0;
    for (uint32_t d = 1; d < axes.rank; ++d) cut = reach(d) > reach(cut) ? d : cut;
    if (reach(cut) == 0) cut = kNone;
  }
  if (cut == kNone) return use(axes, first);
  // Multiples of 64, so that the second part is aligned as the first is.
  const uint64_t size = axes.sizes[cut], half = size >= 128 ? size / 2 / 64 * 64 : size / 2;
  for (const bool second : {false, true}) {
    Axes part;
    std::array<int64_t, kMax> begin = first;
    for (uint32_t d = 0; d < axes.rank; ++d) {
      part.append(d != cut ? axes.sizes[d] : second ? size - half : half, axes.strides[d]);
    }
    for (uint32_t slot = 0; second && slot < task.operands; ++slot) {
      begin[slot] += static_cast<int64_t>(half) * axes.strides[cut][slot];
    }
    divided(task, part, begin, most, most_indices, use);
  }
}

void record_space(const Stage& stage, const Space& space, std::optional<Scratch> place);

// All results of a space whose kept axes fit, with any part of the reduced ones.
template <typename Parts>
void record_parts(const Stage& stage, const Space& space, const Parts& parts, Scratch place) {
  Task& task = stage.task;
  uint64_t total = 0;
  parts(space.first, [&](const Axes& reduced, const std::array<int64_t, kMax>& first) {
    const Space part{space.kept, reduced, first};
    total += segments_of(task, part, along_reduced(task, part));
  });
  const uint64_t results = space.results(), size = stage.partial_size(), values = stage.partial_values();
  const uint64_t plane = plane_of(results * total);
  const Buffer* const partials = total > 1 ? &task.recorder.scratch(values * plane * size, place) : nullptr;
  uint64_t segment = 0;
  parts(space.first, [&](const Axes& reduced, const std::array<int64_t, kMax>& first) {
    const Space part{space.kept, reduced, first};
    const bool rows = along_reduced(task, part);
    const uint64_t segments = segments_of(task, part, rows);
    record_segments(stage, part, rows, segments, {partials, segment, total});
    segment += segments;
  });
  if (partials == nullptr) return;

  const uint32_t output = task.operands - 1;
  Task next{task.recorder, task.expression.combining(), task.device, static_cast<uint32_t>(values) + 1, {}, {}, 0};
  Space combined{};
  for (uint64_t i = 0; i < values; ++i) {
    next.operand[i] = {partials, size, false};
    combined.first[i] = static_cast<int64_t>(i * plane);
  }
  next.operand[values] = task.operand[output];
  combined.first[values] = space.first[output];
  const auto strides = [&](int64_t each, int64_t of_output) {
    Axes::Strides made{};
    for (uint64_t i = 0; i < values; ++i) made[i] = each;
    made[values] = of_output;
    return made;
  };
  auto stride = static_cast<int64_t>(results);
  for (uint32_t d = 0; d < space.kept.rank; ++d) {
    stride /= static_cast<int64_t>(space.kept.sizes[d]);
    combined.kept.append(space.kept.sizes[d], strides(stride, space.kept.strides[d][output]));
  }
  combined.reduced.append(total, strides(static_cast<int64_t>(results), 0));
  record_space({next, stage.reduction, stage.divisor, true}, combined,
               place == Scratch::inner ? Scratch::outer : Scratch::inner);
}

// Without a place for partial results, only counts the dispatches.
void record_space(const Stage& stage, const Space& space, std::optional<Scratch> place) {
  const Task& task = stage.task;
  std::array<uint64_t, kMax> most_reduced{}, most_kept{};
  for (uint32_t slot = 0; slot < task.operands; ++slot) {
    const uint64_t kept = space.kept.span(slot).elements;
    most_reduced[slot] = task.device.piece - std::min(kept, task.device.piece / 2);
    most_kept[slot] = task.device.piece;
  }
  const uint64_t most_partials = task.device.piece / stage.partial_values();
  // All of them are counted before the first is recorded.
  uint64_t parts_of_each = 0, dispatches = 0, most_results = task.device.piece;
  const auto count = [&](uint64_t& counted, uint64_t each) {
    counted += each;
    if (counted > kMaxDispatches) {
      fail(TUFF_ERROR_UNSUPPORTED, "{} results of {} elements need more than {} dispatches", space.results(),
           space.length(), kMaxDispatches);
    }
  };
  const auto parts = [&](const std::array<int64_t, kMax>& first, const auto& use) {
    if (space.length() == 0) return use(space.reduced, first);
    divided(task, space.reduced, first, most_reduced, task.device.piece, use);
  };
  if (space.length() != 0) {
    parts(space.first, [&](const Axes& reduced, const std::array<int64_t, kMax>&) {
      count(parts_of_each, 1);
      // Results have as many partial ones as segments, which an axis of 2^12 elements may be cut into.
      most_results = std::min(most_results, std::max<uint64_t>(most_partials / ceil_div(reduced.count(), 1u << 12), 1));
      for (uint32_t slot = 0; slot < task.operands; ++slot) {
        most_kept[slot] = std::min(most_kept[slot], task.device.piece - reduced.span(slot).elements + 1);
      }
    });
  }
  const auto pieces = [&](const auto& use) { divided(task, space.kept, space.first, most_kept, most_results, use); };
  pieces(
      [&](const Axes&, const std::array<int64_t, kMax>&) { count(dispatches, std::max<uint64_t>(parts_of_each, 1)); });
  if (!place.has_value()) return;
  pieces([&](const Axes& kept, const std::array<int64_t, kMax>& first) {
    record_parts(stage, {kept, space.reduced, first}, parts, *place);
  });
}

// From one index of a reduced axis to the next, in the shape of the reduced axes.
int64_t place_stride(const ExpressionArgs& args, uint32_t axis, uint32_t reduced) {
  int64_t stride = 1;
  for (uint32_t d = axis + 1; d < args.rank; ++d) {
    if ((reduced >> d & 1) != 0) stride *= static_cast<int64_t>(args.shape[d]);
  }
  return stride;
}

// The axes of one group, those with distant elements outside.
Axes ordered(const Task& task, const ExpressionArgs& args, const std::array<const ExpressionOperand*, kMax>& operands,
             uint32_t reduced, bool of_reduced, bool indexed) {
  struct Axis {
    uint64_t size, distance;
    Axes::Strides strides;
  };
  std::array<Axis, 8> found{};
  uint32_t count = 0;
  for (uint32_t d = 0; d < args.rank; ++d) {
    if (((reduced >> d & 1) != 0) != of_reduced || args.shape[d] == 1) continue;
    Axis axis{args.shape[d], 0, {}};
    for (uint32_t slot = 0; slot < task.operands; ++slot) {
      const bool output = slot + 1 == task.operands;
      axis.strides[slot] =
          output ? output_stride(args, *operands[slot], d, reduced) : stride_along(args, *operands[slot], d);
      if (!output) axis.distance += static_cast<uint64_t>(std::llabs(axis.strides[slot])) * task.operand[slot].size;
    }
    if (of_reduced && indexed) axis.strides[task.operands] = place_stride(args, d, reduced);
    uint32_t at = count++;
    for (; at > 0 && found[at - 1].distance < axis.distance; --at) found[at] = found[at - 1];
    found[at] = axis;
  }
  Axes axes;
  for (uint32_t i = 0; i < count; ++i) axes.append(found[i].size, found[i].strides);
  return axes;
}

void record(Recorder& recorder, const ExpressionArgs& args, std::optional<Scratch> place) {
  const expression::Reduction& reduction = *args.expression->reduction();
  expression::require_device(recorder.traits(), *args.expression);
  const uint32_t reduced = reduced_axes(args);
  uint64_t results = 1, length = 1;
  for (uint32_t d = 0; d < args.rank; ++d) ((reduced >> d & 1) != 0 ? length : results) *= args.shape[d];
  if (results == 0) return;
  if (reduction.value == TUFF_U32 && reduction.op->output == reduce::Output::count && length > 0xffffffffu) {
    fail(TUFF_ERROR_UNSUPPORTED, "the reduced axes have {} elements: at most 2^32 - 1 are counted", length);
  }
  std::array<const ExpressionOperand*, kMax> operands{};
  Task task = expression::task_of(recorder, args, operands);
  const Stage stage{task, reduction, std::max(static_cast<double>(length) - reduction.correction, 0.0), false};
  Space space{ordered(task, args, operands, reduced, false, false), {}, {}};
  if (length != 0) {
    space.reduced = ordered(task, args, operands, reduced, true, stage.indexed());
  } else {
    space.reduced.append(0, {});
  }
  for (uint32_t slot = 0; slot < task.operands; ++slot) space.first[slot] = static_cast<int64_t>(operands[slot]->first);
  record_space(stage, space, place);
}

}  // namespace

void record_expression_reduction(Recorder& recorder, const ExpressionArgs& args) {
  record(recorder, args, Scratch::inner);
}

void check_expression_reduction(Recorder& recorder, const ExpressionArgs& args) {
  record(recorder, args, std::nullopt);
}

}  // namespace tuff
