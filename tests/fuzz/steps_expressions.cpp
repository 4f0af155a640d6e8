// Expressions: random formulas over integers, which both backends compute exactly, on operands with strides. Their
// variances, deviations and logarithms of sums of exponentials are rounded, and compared within bounds.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "fuzz/numbers.hpp"

#include "fuzz/world.hpp"

namespace tuff_fuzz {
namespace {

// A value of type i32, u8, i16 or bool. Numbers fit each of them but bool, which gives way to them.
std::string draw_formula(Draw& draw, int depth) {
  const auto inner = [&] { return draw_formula(draw, depth - 1); };
  if (depth == 0 || draw.one_in(6)) {
    switch (draw.below(5)) {
      case 0: return "a";
      case 1: return "b";
      case 2: return "i16(a)";
      case 3: return "bool(b)";
      default: return std::to_string(draw.below(100));
    }
  }
  switch (draw.below(5)) {
    case 0: {
      const char* const functions[] = {"max", "min", "xor", "gcd", "lcm", "fmod", "mod", "floor_divide"};
      return std::string(functions[draw.below(8)]) + "(i32(" + inner() + "), " + inner() + ")";
    }
    case 1: {
      const char* const functions[] = {"-", "~", "abs", "sign", "popcount", "square", "u8", "i16", "!"};
      return std::string(functions[draw.below(9)]) + "(" + inner() + ")";
    }
    case 2: return "where(" + inner() + " <= a, i32(" + inner() + "), " + inner() + ")";
    case 3: {
      const char* const signs[] = {"<", "<=", "==", "!=", ">", ">=", "&&", "||"};
      return "(i32(" + inner() + ") " + signs[draw.below(8)] + " " + inner() + ")";
    }
    default: {
      const char* const signs[] = {"+", "-", "*", "//", "%", "&", "|", "<<", ">>"};
      return "(i32(" + inner() + ") " + signs[draw.below(9)] + " " + inner() + ")";
    }
  }
}

constexpr size_t kMaxOutputs = 2;

// The value of an output, of which half end with a reduction of some of the three axes.
Formula draw_output(Draw& draw, const std::string& elements, tuff_expr_variable& output, std::string& value) {
  using Result = Formula::Result;
  Formula formula;
  value = elements;
  formula.reduced = static_cast<uint32_t>(draw.one_in(2) ? draw.below(8) : 0);
  if (formula.reduced == 0) return formula;
  struct Row {
    const char* name;
    Result result;
  };
  static constexpr Row kRows[] = {
      {"sum", Result::exact},     {"prod", Result::exact},         {"max", Result::exact},
      {"min", Result::exact},     {"l1", Result::exact},           {"sum_squares", Result::exact},
      {"argmax", Result::exact},  {"argmin", Result::exact},       {"var", Result::variance},
      {"std", Result::deviation}, {"logsumexp", Result::logarithm}};
  const Row& row = kRows[draw.below(std::size(kRows))];
  formula.result = row.result;
  std::string options = ", axis=(";
  for (uint32_t d = 0; d < 3; ++d) {
    options += (formula.reduced >> d & 1) != 0 ? std::to_string(static_cast<int>(d) - 3) + "," : "";
  }
  options += ")";
  if (row.name[0] == 'a') output.dtype = TUFF_U32;
  if (row.result == Result::exact) {
    value = std::string(row.name) + "(" + elements + options + ")";
    return formula;
  }
  output.dtype = TUFF_F32;
  if (row.result != Result::logarithm && draw.one_in(2)) {
    formula.correction = 1;
    options += ", correction=1";
  }
  value = std::string(row.name) + "((" + elements + ") % 16" + options + ")";  // 0 to 15
  return formula;
}

void expr_create(Step& s) {
  static constexpr tuff_expr_variable kInputs[] = {
      {"a", TUFF_I32, 0}, {"s", TUFF_I32, TUFF_EXPR_SCALAR}, {"b", TUFF_U8, 0}};
  tuff_expr_variable outputs[kMaxOutputs] = {{"y", TUFF_I32, 0}, {"z", TUFF_I32, 0}};
  std::string formula = "t = " + draw_formula(s.draw, 3), value;
  std::vector<Formula> formulas{draw_output(s.draw, "i32(t) + s * a", outputs[0], value)};
  formula += "; y = " + value;
  if (s.draw.one_in(3)) {
    formulas.push_back(draw_output(s.draw, "a - i32(t)", outputs[1], value));
    formula += "; z = " + value;
  }
  Call call(function_of("tuff_expr_create"));
  call.set("context", reference(0)), call.set("formula", reinterpret_cast<uint64_t>(formula.c_str()));
  call.set("inputs", reinterpret_cast<uint64_t>(kInputs)), call.set("input_count", uint64_t{3});
  call.set("outputs", reinterpret_cast<uint64_t>(outputs)), call.set("output_count", uint64_t{formulas.size()});
  // Other counts read beyond the arrays.
  if (s.spoil && s.draw.one_in(2)) {
    call.set("input_count", uint64_t{17});
    s.spoil = false;
    return s.run(call, {Answer::refusal, bit_of(TUFF_ERROR_LIMIT_EXCEEDED), "input_count"});
  }
  s.spoil = false;
  s.run(call, {}, [&](const std::array<Outcome, 2>& outcomes) {
    Object made{Type::expr, true, 0};
    made.formulas = formulas;
    s.world.add(made, outcomes, 2);
  });
}

// An operand of these sizes in some memory, as a view of its own; negative: there was no room.
struct Placed {
  int view = -1, root = -1;
  uint64_t offset = 0, bytes = 0;
  std::array<int64_t, 3> strides{};  // also where the operand is dense, and says nothing of them
  tuff_expr_operand operand{};
};

Placed place(Step& s, const std::array<uint64_t, 3>& shape, uint64_t size, bool repeats) {
  Placed placed;
  const int buffer = s.world.pick(s.draw, Type::buffer);
  if (buffer < 0) return placed;
  placed.root = s.world.objects[static_cast<size_t>(buffer)].root;
  const Root& root = s.world.roots[static_cast<size_t>(placed.root)];
  if (root.mapped || root.object < 0 || root.context != 0) return placed;
  uint64_t next = 1, first = 0;
  placed.operand.strided = !s.draw.one_in(4);
  for (size_t d = 3; d-- > 0;) {
    int64_t& stride = placed.operand.strides[d];
    if (placed.operand.strided != 0 && repeats && s.draw.one_in(3)) continue;
    stride = placed.strides[d] = static_cast<int64_t>(next);
    next *= shape[d];
    if (placed.operand.strided == 0) continue;
    if (s.draw.one_in(3)) {
      first += static_cast<uint64_t>(stride) * (shape[d] - 1);
      stride = placed.strides[d] = -stride;
    }
    if (s.draw.one_in(4)) next += s.draw.below(4);
  }
  placed.operand.first = first;
  placed.bytes = next * size;
  const uint64_t begin = (root.begin + size - 1) / size;
  if (begin * size + placed.bytes > root.end) return placed;
  placed.offset = (begin + s.draw.below((root.end - placed.bytes) / size - begin + 1)) * size;
  placed.view = s.world.view(root.object, placed.offset, placed.bytes);
  return placed;
}

// How far the backends' results may be apart, of `count` numbers from 0 to 15: docs/accuracy.md for each of them. With
// so few numbers c = gamma(222) is below 2^-16, and the distances from the first number B and from the mean V are at
// most 225 each: (c V + 2 c sqrt(B V) + 2 c^2 B) / (n - correction) is below 4 * 225 c if n is not the correction.
double apart(const Formula& formula, double count, double result) {
  using Result = Formula::Result;
  constexpr double kUnit = 0x1p-24, kGamma = 0x1p-16;
  const double variance = 2 * (4 * 225 * kGamma * count / std::max(count - formula.correction, 1.0) + 4 * kUnit * 225);
  switch (formula.result) {
    case Result::exact: return 0;
    case Result::variance: return variance;
    // For roots that differ in their squares.
    case Result::deviation: return std::min(variance / std::max(result, 1e-30), std::sqrt(variance)) + 24 * kUnit * 15;
    case Result::logarithm: break;
  }
  return 2 * (2 * kGamma + 2 * kUnit * 15 + 6 * kUnit * std::fabs(result));
}

// Compares a rounded result, and gives both backends that of the host.
void compare_rounded(Step& s, const Formula& formula, const Placed& output, const std::array<uint64_t, 3>& kept,
                     double count, int stream) {
  std::vector<uint8_t> bytes;
  s.world.read(1, output.root, bytes);
  const Root& root = s.world.roots[static_cast<size_t>(output.root)];
  std::array<uint64_t, 3> i{};
  for (i[0] = 0; i[0] < kept[0]; ++i[0]) {
    for (i[1] = 0; i[1] < kept[1]; ++i[1]) {
      for (i[2] = 0; i[2] < kept[2]; ++i[2]) {
        auto element = static_cast<int64_t>(output.operand.first);
        for (size_t d = 0; d < 3; ++d) element += static_cast<int64_t>(i[d]) * output.strides[d];
        const uint64_t at = output.offset + 4 * static_cast<uint64_t>(element);
        const double host = decode(TUFF_F32, root.mirror.data() + at);
        const double device = decode(TUFF_F32, bytes.data() + (at - root.begin));
        const bool alike = std::isfinite(host) ? std::fabs(host - device) <= apart(formula, count, host)
                                               : (std::isnan(host) ? std::isnan(device) : host == device);
        if (!alike) {
          s.world.fail("tuff_expr_run: output element " + std::to_string(element) + " of " + std::to_string(count) +
                       " numbers is " + std::to_string(device) + " on the device, and " + std::to_string(host) +
                       " on the host");
        }
      }
    }
  }
  s.world.write(output.root, output.offset, output.bytes, stream);
}

void expr_run(Step& s) {
  const int expr = s.world.pick(s.draw, Type::expr);
  if (expr < 0) return expr_create(s);
  const int other = s.draw.one_in(2) ? s.world.pick(s.draw, Type::stream) : 0, stream = other < 0 ? 0 : other;
  const std::array<uint64_t, 3> shape = {s.draw.between(1, 4), s.draw.between(1, 6),
                                         s.draw.one_in(2) ? 8 : s.draw.between(1, 9)};
  const std::vector<Formula> formulas = s.world.objects[static_cast<size_t>(expr)].formulas;
  std::vector<Placed> placed = {place(s, shape, 4, true), place(s, shape, 1, true)};
  const size_t inputs = placed.size();
  std::array<std::array<uint64_t, 3>, kMaxOutputs> kept;
  std::array<double, kMaxOutputs> counts;  // of numbers that become one
  for (size_t k = 0; k < formulas.size(); ++k) {
    kept[k] = shape;
    counts[k] = 1;
    for (size_t d = 0; d < 3; ++d) {
      if ((formulas[k].reduced >> d & 1) == 0) continue;
      kept[k][d] = 1;
      counts[k] *= static_cast<double>(shape[d]);
    }
    Placed output = place(s, kept[k], 4, false);
    for (size_t d = 0; d < 3; ++d) output.operand.strides[d] *= (formulas[k].reduced >> d & 1) != 0 ? 0 : 1;
    placed.push_back(output);
  }
  bool valid = true;
  for (size_t k = 0; k < placed.size(); ++k) {
    valid = valid && placed[k].view >= 0;
    for (size_t j = std::max(inputs, k + 1); j < placed.size(); ++j) {
      const Placed &one = placed[k], &output = placed[j];
      valid = valid && (one.root != output.root || one.offset >= output.offset + output.bytes ||
                        output.offset >= one.offset + one.bytes);
    }
  }
  if (valid) {
    for (const Placed& each : placed) s.world.order(s.draw, each.root, stream);
    const auto scalar = static_cast<int32_t>(s.draw.next());
    for (size_t side = 0; side < s.world.sides(); ++side) {
      tuff_expr_operand operands[3 + kMaxOutputs] = {placed[0].operand, {}, placed[1].operand};
      operands[0].buffer = s.world.handle(side, placed[0].view);
      operands[1].integer = scalar;
      operands[2].buffer = s.world.handle(side, placed[1].view);
      for (size_t k = 0; k < formulas.size(); ++k) {
        operands[3 + k] = placed[inputs + k].operand;
        operands[3 + k].buffer = s.world.handle(side, placed[inputs + k].view);
      }
      std::memcpy(s.world.scratch(side), operands, sizeof operands);
    }
    Call call(function_of("tuff_expr_run"));
    call.set("stream", reference(stream)), call.set("expr", reference(expr)), call.list("shape", shape);
    call.set("rank", uint64_t{3});
    call.set("inputs", kScratch), call.set("input_count", uint64_t{3});
    call.set("outputs", kScratch + 3 * sizeof(tuff_expr_operand)), call.set("output_count", uint64_t{formulas.size()});
    s.run(call, {}, [&](const std::array<Outcome, 2>&) {
      for (size_t k = inputs; k < placed.size(); ++k) {
        Root& root = s.world.roots[static_cast<size_t>(placed[k].root)];
        std::vector<uint8_t> may_differ(root.bytes);
        for (size_t j = inputs; j < placed.size(); ++j) {
          const auto begin = may_differ.begin() + static_cast<ptrdiff_t>(placed[j].offset);
          if (placed[j].root == placed[k].root) std::fill_n(begin, placed[j].bytes, uint8_t{1});
        }
        s.world.compare_host(placed[k].root, &may_differ, true);
        root.dirty = true;
      }
      for (size_t k = 0; k < formulas.size() && s.world.device(); ++k) {
        if (formulas[k].result == Formula::Result::exact) continue;
        compare_rounded(s, formulas[k], placed[inputs + k], kept[k], counts[k], stream);
      }
    });
  }
  for (const Placed& each : placed) {
    if (each.view >= 0) s.world.free(each.view);
  }
}

void expr_destroy(Step& s) {
  const int expr = s.world.pick(s.draw, Type::expr);
  if (expr < 0) return expr_create(s);
  Call call(function_of("tuff_expr_destroy"));
  call.set("expr", reference(expr));
  s.run(call, {}, [&](const std::array<Outcome, 2>&) { s.world.forget(expr); });
}

constexpr StepOf kExpressionSteps[] = {
    {"tuff_expr_create", expr_create},
    {"tuff_expr_run", expr_run},
    {"tuff_expr_destroy", expr_destroy},
};

}  // namespace

std::span<const StepOf> expression_steps() { return kExpressionSteps; }

}  // namespace tuff_fuzz
