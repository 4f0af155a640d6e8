// Planner of expressions. Each operand is read or written in one of the modes of expression_operands.glsl. Axes that
// are contiguous in all operands are merged; the cheapest mode that the remaining axes allow is chosen for each.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "kernels/common/check.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/common/strided_axes.hpp"
#include "kernels/expression/expression.hpp"
#include "kernels/expression/expression_plan.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/expression.hpp"

namespace tuff {

namespace expression {

void require_device(const DeviceTraits& traits, const Expression& expression) {
  const expression::Needs& needs = expression.needs();
  if (needs.f64 && !traits.f64) fail(TUFF_ERROR_UNSUPPORTED, "the formula has f64, which the device does not compute");
  if (needs.int64 && !traits.int64) {
    fail(TUFF_ERROR_UNSUPPORTED, "the formula has 64-bit integers, which the device does not compute");
  }
  for (const auto* variables : {&expression.inputs(), &expression.outputs()}) {
    for (const expression::Variable& variable : *variables) {
      if (!variable.scalar) require_storage(traits, variable.dtype);
    }
  }
  // The kernel's source has all sizes of elements.
  if (!traits.storage8 || !traits.storage16) {
    fail(TUFF_ERROR_UNSUPPORTED, "expressions need 8-bit and 16-bit storage, which the device lacks");
  }
}

Task task_of(Recorder& recorder, const ExpressionArgs& args, std::array<const ExpressionOperand*, kMax>& operands) {
  const Expression& expression = *args.expression;
  uint64_t largest = sizeof(uint64_t);
  for (const auto* variables : {&expression.inputs(), &expression.outputs()}) {
    for (const Variable& variable : *variables) largest = std::max(largest, dtype_size(variable.dtype));
  }
  Task task{
      recorder, expression, stream_device(recorder.traits(), forced_variant<"TUFF_EXPRESSION_VARIANT">(), largest),
      0,        {},         {},
      0};
  const auto add = [&](const Variable& variable, const ExpressionOperand& operand, bool output) {
    operands[task.operands] = &operand;
    task.operand[task.operands++] = {operand.buffer, dtype_size(variable.dtype), output};
  };
  for (size_t i = 0; i < expression.inputs().size(); ++i) {
    const Variable& input = expression.inputs()[i];
    if (!input.scalar) {
      add(input, args.inputs[i], false);
      continue;
    }
    const uint64_t bits = scalar_bits(input.dtype, args.inputs[i]);
    task.scalars[task.scalar_words++] = static_cast<uint32_t>(bits);
    task.scalars[task.scalar_words++] = static_cast<uint32_t>(bits >> 32);
  }
  for (size_t i = 0; i < expression.outputs().size(); ++i) add(expression.outputs()[i], args.outputs[i], true);
  return task;
}

}  // namespace expression

namespace {

using expression::Axes;
using expression::Mode;
using expression::Operand;
using expression::Table;
using expression::Task;
using enum expression::Mode;

// Part of the shape, with the element of each operand at its first index.
struct Piece {
  Axes axes;
  std::array<int64_t, expression::kMax> first;
};

Mode mode_of(const Axes& axes, size_t slot, const Operand& operand, int64_t first) {
  const bool aligned = is_aligned(operand, static_cast<uint64_t>(first));
  if (axes.dense(slot)) return aligned ? dense : unaligned;
  if (axes.inner_size() % 4 != 0) return gathered;
  const int64_t inner = axes.inner_stride(slot);
  if (inner == 0 && !operand.output) return repeated;
  bool rows = inner == 1 && aligned;
  for (uint32_t d = 0; d + 1 < axes.rank; ++d) rows = rows && axes.strides[d][slot] % 4 == 0;
  return rows ? blocks : stepped;
}

Table table_of(const Task& task, const Axes& axes, bool places) {
  Table table;
  for (uint32_t i = 0; i < task.scalar_words; ++i) table.add(task.scalars[i]);
  if (!places) return table;
  table.add_sizes(axes);
  for (uint32_t slot = 0; slot < task.operands; ++slot) table.add(static_cast<uint32_t>(axes.span(slot).first));
  table.add_strides(axes, task.operands);
  return table;
}

void record_piece(const Task& task, const Piece& piece) {
  const DeviceTraits& traits = task.recorder.traits();
  const Axes& axes = piece.axes;
  const uint64_t n = axes.count(), vec4s = n / 4;
  int64_t modes = 0;
  bool places = false, gathers = false;
  for (uint32_t slot = 0; slot < task.operands; ++slot) {
    const Mode mode = mode_of(axes, slot, task.operand[slot], piece.first[slot]);
    modes |= static_cast<int64_t>(mode) << (expression::mode_bits * slot);
    gathers = gathers || mode == gathered;
    places = places || mode == blocks || mode == repeated || mode == stepped;
  }
  const expression::Needs& needs = task.expression.needs();
  const Table table = table_of(task, axes, places || gathers);
  const uint64_t run = task.device.cpu ? task.device.items_each(vec4s, needs.flops < 20 ? 32 : 4) : 1;
  KernelRequest kernel = shaders::Expression::request({.computes_f64 = needs.f64,
                                                       .computes_int64 = needs.int64,
                                                       .doubles = needs.doubles,
                                                       .exact_arithmetic = traits.cpu,
                                                       .files = needs.files,
                                                       .gathered = gathers,
                                                       .modes = modes,
                                                       .operands = task.operands,
                                                       .own = needs.own,
                                                       .places = places,
                                                       .run = task.device.fixed_run(run),
                                                       .scalars = task.scalar_words / 2,
                                                       .slots = task.operands + (table.count != 0 ? 1 : 0),
                                                       .vector = vector_mode(traits, true)});
  const uint32_t rank = places || gathers ? std::max(axes.rank, 1u) : 1;
  kernel.streaming().constant(0, task.device.workgroup).constant(1, rank).body(task.expression.body());
  Dispatch dispatch("expr");
  double bytes = 0;
  for (uint32_t slot = 0; slot < task.operands; ++slot) {
    const Operand& operand = task.operand[slot];
    const Axes::Span span = axes.span(slot);
    const uint64_t lowest = static_cast<uint64_t>(piece.first[slot]) - span.first;
    dispatch.operand(operand.buffer, lowest * operand.size, span.elements * operand.size,
                     operand.output ? Access::write : Access::read);
    bytes += static_cast<double>(std::min(span.elements, n) * operand.size);
  }
  if (table.count != 0) {
    const uint32_t size = table.count * 4;
    dispatch.operand(&task.recorder.parameters(table.words.data(), size), 0, size, Access::read);
  }
  dispatch.push(shaders::Expression::Push{.n = static_cast<uint32_t>(n), .run = static_cast<uint32_t>(run)})
      .groups_linear(ceil_div(vec4s + (n % 4 != 0 ? 1 : 0), task.device.workgroup * run), traits)
      .work(bytes, static_cast<double>(n) * (needs.flops + 1));
  log(TUFF_LOG_DISPATCH, "expr n={}: {} axes, modes {:o}, {} lanes, {} times four each", n, axes.rank, modes,
      task.device.workgroup, run);
  task.recorder.dispatch(kernel, dispatch);
}

// Halves an axis until one dispatch can address each part.
void record_pieces(const Task& task, const Piece& piece) {
  const Axes& axes = piece.axes;
  uint32_t cut = 8;
  if (axes.count() > task.device.piece) cut = 0;
  for (uint32_t slot = 0; slot < task.operands; ++slot) {
    if (axes.span(slot).elements <= task.device.piece) continue;
    // The axis along which this operand reaches furthest.
    for (uint32_t d = 0; d < axes.rank; ++d) {
      const auto reach = [&](uint32_t axis) {
        return (axes.sizes[axis] - 1) * static_cast<uint64_t>(std::llabs(axes.strides[axis][slot]));
      };
      if (cut == 8 || reach(d) > reach(cut)) cut = d;
    }
  }
  if (cut == 8) return record_piece(task, piece);
  // Multiples of 64, so that the second part is aligned as the first is.
  const uint64_t size = axes.sizes[cut], half = size >= 128 ? size / 2 / 64 * 64 : size / 2;
  for (const bool second : {false, true}) {
    Piece part{{}, piece.first};
    for (uint32_t d = 0; d < axes.rank; ++d) {
      part.axes.append(d != cut ? axes.sizes[d] : second ? size - half : half, axes.strides[d]);
    }
    for (uint32_t slot = 0; second && slot < task.operands; ++slot) {
      part.first[slot] += static_cast<int64_t>(half) * axes.strides[cut][slot];
    }
    record_pieces(task, part);
  }
}

}  // namespace

void record_expression(Recorder& recorder, const ExpressionArgs& args) {
  const Expression& expression = *args.expression;
  if (!expression.parts().empty()) {
    expression::require_device(recorder.traits(), expression);
    const auto reduces = [](const ExpressionArgs& part) { return part.expression->reduction() != nullptr; };
    for_parts(args, [&](const ExpressionArgs& part) {
      if (reduces(part)) check_expression_reduction(recorder, part);
    });
    return for_parts(args, [&](const ExpressionArgs& part) { record_expression(recorder, part); });
  }
  if (expression.reduction() != nullptr) return record_expression_reduction(recorder, args);
  expression::require_device(recorder.traits(), expression);
  if (element_count(args) == 0) return;
  std::array<const ExpressionOperand*, expression::kMax> operands{};
  const Task task = expression::task_of(recorder, args, operands);
  Piece whole{};
  for (uint32_t d = 0; d < args.rank; ++d) {
    if (args.shape[d] == 1) continue;
    Axes::Strides strides{};
    for (uint32_t slot = 0; slot < task.operands; ++slot) strides[slot] = stride_along(args, *operands[slot], d);
    whole.axes.append(args.shape[d], strides);
  }
  for (uint32_t slot = 0; slot < task.operands; ++slot) whole.first[slot] = static_cast<int64_t>(operands[slot]->first);
  record_pieces(task, whole);
}

}  // namespace tuff
