// Writes the part of expression.comp that depends on a formula: its operands, and a statement for each node.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "kernels/elementwise/elementwise_ops.hpp"
#include "kernels/expression/expression.hpp"
#include "planning/element_type.hpp"
#include "planning/status.hpp"

namespace tuff {

using namespace expression;

namespace {

const char* vector_of(Value type) {
  switch (info(type).form) {
    case Form::f32: return "vec4";
    case Form::f64: return "dvec4";
    case Form::i32: return "ivec4";
    case Form::u32: return "uvec4";
    case Form::i64: return "i64vec4";
    default: return "u64vec4";
  }
}

const char* form_name(Value type) {
  switch (info(type).form) {
    case Form::f32: return "f32";
    case Form::f64: return "f64";
    case Form::i32: return "i32";
    case Form::u32: return "u32";
    case Form::i64: return "i64";
    default: return "u64";
  }
}

// A value from its bits, as text: low and high are expressions of type uint.
std::string of_bits(Value type, std::string_view low, std::string_view high) {
  switch (info(type).form) {
    case Form::f32: return fmt::format("vec4(uintBitsToFloat({}))", low);
    case Form::f64: return fmt::format("dvec4(packDouble2x32(uvec2({}, {})))", low, high);
    case Form::i32: return fmt::format("ivec4(int({}))", low);
    case Form::u32: return fmt::format("uvec4({})", low);
    case Form::i64: return fmt::format("i64vec4(int64_t(packUint2x32(uvec2({}, {}))))", low, high);
    default: return fmt::format("u64vec4(packUint2x32(uvec2({}, {})))", low, high);
  }
}

uint64_t bits_of(const Node& literal) {
  if (literal.type == Value::f32) return std::bit_cast<uint32_t>(static_cast<float>(literal.number));
  if (literal.type == Value::f64) return std::bit_cast<uint64_t>(literal.number);
  return static_cast<uint64_t>(literal.integer);
}

std::string of_literal(const Node& node) {
  const uint64_t bits = bits_of(node);
  return of_bits(node.type, fmt::format("{:#x}u", static_cast<uint32_t>(bits)),
                 fmt::format("{:#x}u", static_cast<uint32_t>(bits >> 32)));
}

const char* name_of(Op op) {
  switch (op) {
    case Op::add: return "add";
    case Op::sub: return "sub";
    case Op::mul: return "mul";
    case Op::div: return "div";
    case Op::floor_divide: return "floor_divide";
    case Op::mod: return "mod";
    case Op::fmod: return "fmod";
    case Op::pow_integers: return "pow";
    case Op::neg: return "neg";
    case Op::abs: return "abs";
    case Op::sign: return "sign";
    case Op::max: return "max";
    case Op::min: return "min";
    case Op::sqrt: return "sqrt";
    case Op::floor: return "floor";
    case Op::ceil: return "ceil";
    case Op::trunc: return "trunc";
    case Op::round: return "round";
    case Op::copysign: return "copysign";
    case Op::nextafter: return "nextafter";
    case Op::atan2: return "atan2";
    case Op::hypot: return "hypot";
    case Op::logaddexp: return "logaddexp";
    case Op::isnan: return "isnan";
    case Op::isinf: return "isinf";
    case Op::isfinite: return "isfinite";
    case Op::signbit: return "signbit";
    case Op::eq: return "eq";
    case Op::ne: return "ne";
    case Op::lt: return "lt";
    case Op::le: return "le";
    case Op::bitand_: return "bitand";
    case Op::bitor_: return "bitor";
    case Op::bitxor: return "bitxor";
    case Op::bitnot: return "bitnot";
    case Op::shl: return "shl";
    case Op::shr: return "shr";
    case Op::gcd: return "gcd";
    case Op::lcm: return "lcm";
    case Op::popcount: return "popcount";
    case Op::unary:
    case Op::binary: break;
  }
  fail(TUFF_ERROR_INTERNAL, "function {} has no GLSL", static_cast<int>(op));
}

// Limits of a type that is held in a wider one, for expr_clamp().
std::string clamped(Value to, const std::string& value) {
  const uint32_t bits = info(to).bits;
  if (!is_narrow(to)) return value;
  if (!info(to).is_signed) return fmt::format("expr_clamp({}, {}u)", value, (1u << bits) - 1);
  return fmt::format("expr_clamp({}, {}, {})", value, -(1 << (bits - 1)), (1 << (bits - 1)) - 1);
}

class Writer {
 public:
  Writer(const Formula& formula, Needs& needs) : formula_(formula), needs_(needs) {}

  std::string write() {
    mark();
    operands();
    text_ += "void expr_compute() {\n";
    for (uint32_t i = 0; i < formula_.nodes.size(); ++i) {
      if (used_[i] && formula_.nodes[i].kind != Node::pair) statement(i);
    }
    for (size_t i = 0; i < formula_.results.size(); ++i) {
      const Node& node = formula_.nodes[formula_.results[i]];
      text_ += node.kind == Node::pair ? fmt::format("  y{0} = v{1};\n  z{0} = v{2};\n", i, node.args[0], node.args[1])
                                       : fmt::format("  y{} = v{};\n", i, formula_.results[i]);
    }
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  // Finds the nodes that outputs depend on.
  void mark() {
    used_.assign(formula_.nodes.size(), false);
    for (const uint32_t result : formula_.results) used_[result] = true;
    for (size_t i = formula_.nodes.size(); i-- > 0;) {
      const Node& node = formula_.nodes[i];
      if (!used_[i]) continue;
      for (uint32_t k = 0; k < node.arg_count; ++k) used_[node.args[k]] = true;
      need(node.type);
    }
    for (const Variable& input : formula_.inputs) need(value_of(input.dtype));
    for (const Variable& output : formula_.outputs) need(value_of(output.dtype));
    for (const Reduction& reduction : formula_.reductions) need(value_of(reduction.value));
    if (const Reduction* const reduction = formula_.reduction(); reduction != nullptr) functions_of(*reduction);
  }

  // What kernels/reduce/states.glsl calls.
  void functions_of(const Reduction& reduction) {
    if (state_of(*reduction.op) != State::exponentials) return;
    needs_.flops += 20;
    if (reduction.value == TUFF_F64) needs_.doubles |= find_function("exp")->doubles | find_function("log")->doubles;
  }

  void need(Value type) {
    needs_.f64 = needs_.f64 || part_of(type) == Value::f64;
    needs_.int64 = needs_.int64 || type == Value::i64 || type == Value::u64;
  }

  // Globals, and the functions that read and write them: x… and y…; w… and z… are the imaginary parts of complex ones.
  void operands() {
    std::string load, load_one, store, store_one, scalars;
    uint32_t slot = 0, scalar = 0;
    for (size_t i = 0; i < formula_.inputs.size(); ++i) {
      const Variable& input = formula_.inputs[i];
      const Value type = value_of(input.dtype);
      text_ += fmt::format("{} x{}{};\n", vector_of(type), i, is_complex(type) ? fmt::format(", w{}", i) : "");
      if (input.scalar) {
        scalars += fmt::format(
            "  x{} = {};\n", i,
            of_bits(type, fmt::format("TUFF_AT(T, {})", 2 * scalar), fmt::format("TUFF_AT(T, {})", 2 * scalar + 1)));
        ++scalar;
        continue;
      }
      text_ += fmt::format("EXPR_INPUT({}, X{}, {})\n", slot++, i, dtype_size(input.dtype));
      const char* const decode =
          is_complex(type) ? "  expr_decode_{1}({2}, x{0}, w{0});\n" : "  x{0} = expr_decode_{1}({2});\n";
      load += fmt::format(fmt::runtime(decode), i, input.dtype, fmt::format("X{}_words(i)", i));
      load_one += fmt::format(fmt::runtime(decode), i, input.dtype, fmt::format("X{}_word(i)", i));
    }
    if (formula_.reduction() != nullptr) {
      result(slot, *formula_.reduction());
      text_ += fmt::format(
          "void expr_scalars() {{\n{}}}\nvoid expr_load(uint i) {{\n{}}}\nvoid expr_load_one(uint i) {{\n{}}}\n",
          scalars, load, load_one);
      return;
    }
    for (size_t i = 0; i < formula_.outputs.size(); ++i) {
      const Variable& output = formula_.outputs[i];
      const Value type = value_of(output.dtype);
      const std::string imaginary = is_complex(type) ? fmt::format(", z{}", i) : "";
      text_ += fmt::format("{} y{}{};\nEXPR_OUTPUT({}, Y{}, {})\n", vector_of(type), i, imaginary, slot++, i,
                           dtype_size(output.dtype));
      store += fmt::format("  Y{0}_store(i, expr_encode_{1}(y{0}{2}));\n", i, output.dtype, imaginary);
      store_one += fmt::format("  Y{0}_store_one(i, expr_encode_{1}(y{0}{2}));\n", i, output.dtype, imaginary);
    }
    text_ += fmt::format(
        "void expr_scalars() {{\n{}}}\nvoid expr_load(uint i) {{\n{}}}\nvoid expr_load_one(uint i) {{\n{}}}\n"
        "void expr_store(uint i) {{\n{}}}\nvoid expr_store_one(uint i) {{\n{}}}\n",
        scalars, load, load_one, store, store_one);
  }

  // The values that a reduction accumulates, and the functions that store its results.
  void result(uint32_t slot, const Reduction& reduction) {
    const Variable& output = formula_.outputs[0];
    const Value from = value_of(reduction.stored), to = value_of(output.dtype);
    for (size_t i = 0; i < formula_.results.size(); ++i) {
      text_ += fmt::format("{} y{};\n", vector_of(type_of(formula_.results[i])), i);
    }
    std::string stored = info(from).form == info(to).form ? "v" : fmt::format("{}(v)", vector_of(to));
    if (is_narrow(to)) stored = fmt::format("expr_wrap_{}({})", info(to).bits, stored);
    text_ += fmt::format(
        "#if !TUFF_CUT\nEXPR_OUTPUT({1}, Y0, {2})\n"
        "void expr_store({0} v) {{ Y0_store(0u, expr_encode_{3}({4})); }}\n"
        "void expr_store_one({0} v) {{ Y0_store_one(0u, expr_encode_{3}({4})); }}\n#endif\n",
        vector_of(from), slot, dtype_size(output.dtype), output.dtype, stored);
  }

  Value type_of(uint32_t node) const { return formula_.nodes[node].type; }

  void statement(uint32_t index) {
    const Node& node = formula_.nodes[index];
    text_ += fmt::format("  const {} v{} = {};\n", vector_of(node.type), index, value(node));
  }

  std::string value(const Node& node) {
    switch (node.kind) {
      case Node::input: return fmt::format("{}{}", node.part == 0 ? 'x' : 'w', node.index);
      case Node::literal: return of_literal(node);
      case Node::select: return fmt::format("expr_where(v{}, v{}, v{})", node.args[0], node.args[1], node.args[2]);
      case Node::convert: return conversion(node);
      case Node::rounded: return fmt::format("tuff_as_stored_{}(expr_odd(v{}))", node.index, node.args[0]);
      case Node::call: return call(node);
      case Node::pair:
      case Node::reduced: break;
    }
    fail(TUFF_ERROR_INTERNAL, "a node of kind {}", static_cast<int>(node.kind));
  }

  std::string conversion(const Node& node) {
    const Value from = formula_.nodes[node.args[0]].type, to = node.type;
    const std::string source = fmt::format("v{}", node.args[0]);
    if (to == Value::boolean) return fmt::format("expr_to_bool({})", source);
    const bool same_form = info(from).form == info(to).form;
    const std::string value = same_form ? source : fmt::format("expr_to_{}({})", form_name(to), source);
    return clamped(to, value);
  }

  std::string call(const Node& node) {
    const Function& function = *node.function;
    const Value of = formula_.nodes[node.args[0]].type;
    needs_.flops += function.flops;
    if (of == Value::f64) {
      needs_.doubles |= function.doubles;
    } else {
      needs_.files |= file_bit(function.file);
    }
    const bool by_integers = !is_float(of);
    const bool by_doubles = of == Value::f64 && function.doubles != 0;
    if ((function.own != kOwnRemainders || !by_integers) && !by_doubles) needs_.own |= function.own;
    if (function.own == kOwnLogaddexp) needs_.files |= file_bit(find_function("softplus")->file);
    const bool by_bits = function.own == kOwnRemainders || function.op == Op::nextafter;
    if (by_bits && of == Value::f64) needs_.int64 = true;
    std::string args = fmt::format("v{}", node.args[0]);
    if (node.arg_count > 1) args += fmt::format(", v{}", node.args[1]);
    if (function.op == Op::unary && function.alpha != 0) {
      const auto bits = std::bit_cast<uint64_t>(node.number);
      args += of == Value::f64
                  ? fmt::format(", packDouble2x32(uvec2({:#x}u, {:#x}u))", static_cast<uint32_t>(bits), bits >> 32)
                  : fmt::format(", uintBitsToFloat({:#x}u)", std::bit_cast<uint32_t>(static_cast<float>(node.number)));
    }
    if (function.op == Op::unary || function.op == Op::binary) return fmt::format("tuff_{}({})", function.name, args);
    if (function.op == Op::popcount && is_narrow(of)) {
      args = fmt::format("{} & {}({:#x})", args, vector_of(of), (1u << info(of).bits) - 1);
    }
    const std::string value = fmt::format("expr_{}({})", name_of(function.op), args);
    return function.wraps && is_narrow(of) ? fmt::format("expr_wrap_{}({})", info(of).bits, value) : value;
  }

  const Formula& formula_;
  Needs& needs_;
  std::vector<bool> used_;
  std::string text_;
};

}  // namespace

namespace expression {

bool Formula::reduces() const {
  return std::any_of(reductions.begin(), reductions.end(), [](const Reduction& each) { return each.op != nullptr; });
}

State state_of(const reduce::Op& op) {
  switch (op.result) {
    case reduce::Result::variance:
    case reduce::Result::deviation: return State::moments;
    case reduce::Result::place: return State::place;
    case reduce::Result::logarithm: return State::exponentials;
    default: return State::value;
  }
}

std::vector<int32_t> partial_types(const Reduction& reduction) {
  const int32_t type = reduction.value;
  switch (state_of(*reduction.op)) {
    case State::value: return {type};
    case State::moments: return {type, type, type};
    case State::exponentials: return {type, type};
    case State::place: break;
  }
  if (dtype_size(type) == 8) return {TUFF_I32, TUFF_U32, TUFF_U32};
  return {TUFF_I32, TUFF_U32};
}

}  // namespace expression

Expression::Expression(Formula formula) : Expression((parse(formula), std::move(formula)), Parsed{}) {}

Expression::Expression(Formula formula, Parsed) : formula_(std::move(formula)) {
  for (const Variable& input : formula_.inputs) scalars_ += input.scalar ? 1 : 0;
  const size_t outputs = formula_.outputs.size();
  if (outputs > 1 && formula_.reduces()) {
    std::vector<uint32_t> others;
    for (uint32_t i = 0; i < outputs; ++i) {
      if (formula_.reductions[i].op == nullptr) {
        others.push_back(i);
      } else {
        parts_.push_back(part_of({i}));
      }
    }
    if (!others.empty()) parts_.push_back(part_of(others));
    for (const Part& part : parts_) {
      needs_.f64 = needs_.f64 || part.expression->needs().f64;
      needs_.int64 = needs_.int64 || part.expression->needs().int64;
    }
    return;
  }
  body_ = std::make_shared<const KernelBody>(Writer(formula_, needs_).write());
  program_ = plugin_program(formula_);
  if (reduction() == nullptr || formula_.merges) return;
  Formula combining;
  combining.outputs = formula_.outputs;
  for (const int32_t dtype : partial_types(*reduction())) {
    const auto index = static_cast<uint32_t>(combining.inputs.size());
    combining.inputs.push_back({fmt::format("partial{}", index), dtype});
    combining.nodes.push_back({.kind = Node::input, .type = value_of(dtype), .index = index});
    combining.results.push_back(index);
  }
  combining.reductions = formula_.reductions;
  combining.merges = true;
  combining_.reset(new Expression(std::move(combining), Parsed{}));
}

// These outputs, and what they depend on.
Expression::Part Expression::part_of(const std::vector<uint32_t>& outputs) const {
  constexpr uint32_t kUnused = ~0u;
  Formula formula;
  formula.text = formula_.text;
  for (const uint32_t output : outputs) {
    formula.outputs.push_back(formula_.outputs[output]);
    formula.results.push_back(formula_.results[output]);
    formula.reductions.push_back(formula_.reductions[output]);
  }
  std::vector<bool> used(formula_.nodes.size(), false);
  for (const uint32_t result : formula.results) used[result] = true;
  for (size_t i = used.size(); i-- > 0;) {
    const Node& node = formula_.nodes[i];
    for (uint32_t k = 0; used[i] && k < node.arg_count; ++k) used[node.args[k]] = true;
  }
  Part part;
  part.outputs = outputs;
  std::vector<uint32_t> node_at(formula_.nodes.size(), kUnused), input_at(formula_.inputs.size(), kUnused);
  for (uint32_t i = 0; i < formula_.nodes.size(); ++i) {
    if (!used[i]) continue;
    Node node = formula_.nodes[i];
    for (uint32_t k = 0; k < node.arg_count; ++k) node.args[k] = node_at[node.args[k]];
    if (node.kind == Node::input) {
      uint32_t& at = input_at[node.index];
      if (at == kUnused) {
        at = static_cast<uint32_t>(part.inputs.size());
        part.inputs.push_back(node.index);
        formula.inputs.push_back(formula_.inputs[node.index]);
      }
      node.index = at;
    }
    node_at[i] = static_cast<uint32_t>(formula.nodes.size());
    formula.nodes.push_back(node);
  }
  for (uint32_t& result : formula.results) result = node_at[result];
  part.expression.reset(new Expression(std::move(formula), Parsed{}));
  return part;
}

}  // namespace tuff
