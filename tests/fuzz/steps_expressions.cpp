// Expressions: random formulas over integers, which both backends compute exactly, on operands with strides.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

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

void expr_create(Step& s) {
  static constexpr tuff_expr_variable kInputs[] = {
      {"a", TUFF_I32, 0}, {"s", TUFF_I32, TUFF_EXPR_SCALAR}, {"b", TUFF_U8, 0}};
  tuff_expr_variable output{"y", TUFF_I32, 0};
  // Half of them end with a reduction of some of the three axes.
  std::string value = "i32(t) + s * a";
  const auto reduced = static_cast<uint32_t>(s.draw.one_in(2) ? s.draw.below(8) : 0);
  if (reduced != 0) {
    const char* const reductions[] = {"sum", "prod", "max", "min", "l1", "sum_squares", "argmax", "argmin"};
    std::string axes;
    for (uint32_t d = 0; d < 3; ++d)
      axes += (reduced >> d & 1) != 0 ? std::to_string(static_cast<int>(d) - 3) + "," : "";
    const char* const name = reductions[s.draw.below(8)];
    if (name[0] == 'a') output.dtype = TUFF_U32;
    value = std::string(name) + "(" + value + ", axis=(" + axes + "))";
  }
  const std::string formula = "t = " + draw_formula(s.draw, 3) + "; " + value;
  Call call(function_of("tuff_expr_create"));
  call.set("context", reference(0)), call.set("formula", reinterpret_cast<uint64_t>(formula.c_str()));
  call.set("inputs", reinterpret_cast<uint64_t>(kInputs)), call.set("input_count", uint64_t{3});
  call.set("outputs", reinterpret_cast<uint64_t>(&output)), call.set("output_count", uint64_t{1});
  // Other counts read beyond the arrays.
  if (s.spoil && s.draw.one_in(2)) {
    call.set("input_count", uint64_t{17});
    s.spoil = false;
    return s.run(call, {Answer::refusal, bit_of(TUFF_ERROR_LIMIT_EXCEEDED), "input_count"});
  }
  s.spoil = false;
  s.run(call, {}, [&](const std::array<Outcome, 2>& outcomes) {
    Object made{Type::expr, true, 0};
    made.reduced = reduced;
    s.world.add(made, outcomes, 2);
  });
}

// An operand of these sizes in some memory, as a view of its own; negative: there was no room.
struct Placed {
  int view = -1, root = -1;
  uint64_t offset = 0, bytes = 0;
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
    stride = static_cast<int64_t>(next);
    next *= shape[d];
    if (placed.operand.strided == 0) continue;
    if (s.draw.one_in(3)) {
      first += static_cast<uint64_t>(stride) * (shape[d] - 1);
      stride = -stride;
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

void expr_run(Step& s) {
  const int expr = s.world.pick(s.draw, Type::expr);
  if (expr < 0) return expr_create(s);
  const int other = s.draw.one_in(2) ? s.world.pick(s.draw, Type::stream) : 0, stream = other < 0 ? 0 : other;
  const std::array<uint64_t, 3> shape = {s.draw.between(1, 4), s.draw.between(1, 6),
                                         s.draw.one_in(2) ? 8 : s.draw.between(1, 9)};
  std::array<uint64_t, 3> kept = shape;
  const uint32_t reduced = s.world.objects[static_cast<size_t>(expr)].reduced;
  for (size_t d = 0; d < 3; ++d) kept[d] = (reduced >> d & 1) != 0 ? 1 : shape[d];
  std::array<Placed, 3> placed = {place(s, shape, 4, true), place(s, shape, 1, true), place(s, kept, 4, false)};
  for (size_t d = 0; d < 3; ++d) placed[2].operand.strides[d] *= (reduced >> d & 1) != 0 ? 0 : 1;
  const Placed& output = placed[2];
  bool valid = true;
  for (const Placed& each : placed) {
    valid = valid && each.view >= 0;
    valid = valid && (&each == &output || each.root != output.root || each.offset >= output.offset + output.bytes ||
                      output.offset >= each.offset + each.bytes);
  }
  if (valid) {
    for (const Placed& each : placed) s.world.order(s.draw, each.root, stream);
    const auto scalar = static_cast<int32_t>(s.draw.next());
    for (size_t side = 0; side < s.world.sides(); ++side) {
      tuff_expr_operand operands[4] = {placed[0].operand, {}, placed[1].operand, output.operand};
      operands[0].buffer = s.world.handle(side, placed[0].view);
      operands[1].integer = scalar;
      operands[2].buffer = s.world.handle(side, placed[1].view);
      operands[3].buffer = s.world.handle(side, output.view);
      std::memcpy(s.world.scratch(side), operands, sizeof operands);
    }
    Call call(function_of("tuff_expr_run"));
    call.set("stream", reference(stream)), call.set("expr", reference(expr)), call.list("shape", shape);
    call.set("rank", uint64_t{3});
    call.set("inputs", kScratch), call.set("input_count", uint64_t{3});
    call.set("outputs", kScratch + 3 * sizeof(tuff_expr_operand)), call.set("output_count", uint64_t{1});
    s.run(call, {}, [&](const std::array<Outcome, 2>&) {
      Root& root = s.world.roots[static_cast<size_t>(output.root)];
      std::vector<uint8_t> may_differ(root.bytes);
      std::fill_n(may_differ.begin() + static_cast<ptrdiff_t>(output.offset), output.bytes, uint8_t{1});
      s.world.compare_host(output.root, &may_differ, true);
      root.dirty = true;
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
