// The grammar and the types of formulas (tuff.h, docs/expressions.md), by precedence climbing.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <locale>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/elementwise/elementwise_ops.hpp"
#include "kernels/expression/complex_functions.hpp"
#include "kernels/expression/expression.hpp"
#include "kernels/expression/formula_text.hpp"
#include "kernels/expression/host_values.hpp"
#include "planning/element_type.hpp"
#include "planning/status.hpp"

namespace tuff::expression {
namespace {

constexpr uint32_t kMaxDepth = 64, kMaxNodes = 4096;

struct Binary {
  std::string_view sign;
  uint32_t precedence;
  const char* function;  // null: && and ||, which convert to bool first
  bool swapped = false;
};
constexpr Binary kBinary[] = {
    {"||", 1, nullptr},        {"&&", 2, nullptr},    {"|", 3, "bitor"}, {"&", 4, "bitand"},
    {"==", 5, "eq"},           {"!=", 5, "ne"},       {"<", 6, "lt"},    {"<=", 6, "le"},
    {">", 6, "lt", true},      {">=", 6, "le", true}, {"<<", 7, "shl"},  {">>", 7, "shr"},
    {"+", 8, "add"},           {"-", 8, "sub"},       {"*", 9, "mul"},   {"/", 9, "div"},
    {"//", 9, "floor_divide"}, {"%", 9, "mod"},
};

class Parser : private FormulaText {
 public:
  explicit Parser(Formula& formula)
      : FormulaText(formula.text), formula_(formula), inputs_(formula.inputs), outputs_(formula.outputs) {
    results_.assign(formula.outputs.size(), kNone);
    formula.reductions.assign(formula.outputs.size(), {});
  }

  void run() {
    next();
    while (token_.kind != Token::end) {
      statement();
      if (is_sign(";")) {
        next();
      } else if (token_.kind != Token::end) {
        wrong(token_.at, "expected an operator or the end, got \"{}\"", token_.text);
      }
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      if (results_[i] == kNone) wrong(text_.size(), "output \"{}\" is not assigned", formula_.outputs[i].name);
    }
    for (const Pending& each : pending_) {
      if (!each.stored)
        wrong(each.reduction.at, "{} has no output: it needs to be one's value", each.reduction.op->name);
    }
    formula_.results = std::move(results_);
  }

 private:
  static constexpr uint32_t kNone = ~0u;

  // The formula of a function, at a call of it in another formula.
  Parser(std::string_view text, const Parser& caller, size_t at)
      : FormulaText(text), formula_(caller.formula_), caller_(&caller), called_at_(at) {}

  struct Depth {
    explicit Depth(Parser& owner) : parser(owner) {
      if (++parser.depth_ > kMaxDepth) {
        parser.stop(TUFF_ERROR_LIMIT_EXCEEDED, parser.token_.at, "more than {} levels of nesting", kMaxDepth);
      }
    }
    ~Depth() { --parser.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    Parser& parser;
  };

  // --- Nodes

  uint32_t add(const Node& node, size_t at) const {
    std::vector<Node>& nodes = formula_.nodes;
    for (uint32_t k = 0; k < node.arg_count; ++k) {
      if (nodes[node.args[k]].kind == Node::reduced) {
        wrong(at, "{} is an output's value, and nothing is done with its result", name_of_reduction(node.args[k]));
      }
    }
    if (nodes.size() >= kMaxNodes && caller_ != nullptr) caller_->add(node, called_at_);
    if (nodes.size() >= kMaxNodes) stop(TUFF_ERROR_LIMIT_EXCEEDED, at, "more than {} operations", kMaxNodes);
    nodes.push_back(node);
    return static_cast<uint32_t>(nodes.size() - 1);
  }
  const Node& node(uint32_t index) const { return formula_.nodes[index]; }
  Value type_of(uint32_t index) const { return node(index).type; }
  static const char* name_of(Value type) { return info(type).name; }

  uint32_t integer(Int128 value, size_t at) {
    Node made{};
    made.kind = Node::literal;
    made.weak = Node::integral;
    made.type = value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max()
                    ? Value::i32
                : value <= std::numeric_limits<int64_t>::max() ? Value::i64
                                                               : Value::u64;
    if (value < std::numeric_limits<int64_t>::min() || value > std::numeric_limits<uint64_t>::max()) {
      wrong(at, "an integer beyond 64 bits");
    }
    made.integer = static_cast<int64_t>(static_cast<uint64_t>(value));
    return add(made, at);
  }
  uint32_t real(double value, size_t at) {
    Node made{};
    made.kind = Node::literal;
    made.weak = Node::real;
    made.type = Value::f32;
    made.number = value;
    return add(made, at);
  }
  uint32_t boolean(bool value, size_t at) {
    Node made{};
    made.kind = Node::literal;
    made.type = Value::boolean;
    made.integer = value ? 1 : 0;
    return add(made, at);
  }

  Int128 whole(const Node& literal) const {
    return literal.type == Value::u64 ? Int128{static_cast<uint64_t>(literal.integer)} : Int128{literal.integer};
  }
  double number_of(const Node& literal) const {
    return literal.weak == Node::real ? literal.number : static_cast<double>(whole(literal));
  }

  uint32_t convert(uint32_t from, Value to, size_t at) {
    const Node source = node(from);
    if (source.kind == Node::literal && source.weak != Node::strong) return typed(source, to, at);
    if (source.type == to) return from;
    if (is_complex(to)) {
      const Value part = part_of(to);
      return source.kind == Node::pair ? pair(convert(source.args[0], part, at), convert(source.args[1], part, at), at)
                                       : pair(convert(from, part, at), typed_number(0, part, at), at);
    }
    if (source.kind == Node::pair) {
      const uint32_t re = convert(source.args[0], to, at);
      return to == Value::boolean ? call(Op::bitor_, {re, convert(source.args[1], to, at)}, at) : re;
    }
    Node made{};
    made.kind = Node::convert;
    made.type = to;
    made.args[0] = from;
    made.arg_count = 1;
    return add(made, at);
  }

  uint32_t typed_number(double value, Value type, size_t at) {
    Node made{};
    made.kind = Node::literal;
    made.type = type;
    made.number = value;
    return add(made, at);
  }
  uint32_t pair(uint32_t re, uint32_t im, size_t at) {
    Node made{};
    made.kind = Node::pair;
    made.type = type_of(re) == Value::f64 ? Value::c128 : Value::c64;
    made.args[0] = re;
    made.args[1] = im;
    made.arg_count = 2;
    return add(made, at);
  }

  // A number without a type as one of this type.
  uint32_t typed(Node literal, Value to, size_t at) {
    if (is_complex(to)) {
      return pair(typed(literal, part_of(to), at), typed_number(0, part_of(to), at), at);
    }
    if (is_float(to)) {
      literal.number = number_of(literal);
      if (to == Value::f32) literal.number = double{static_cast<float>(literal.number)};
      literal.integer = 0;
    } else if (literal.weak == Node::real) {
      const HostValue value = converted(Value::f64, {literal.number, 0}, to);
      literal.integer = value.integer;
      literal.number = 0;
    } else {
      const HostValue value = converted(literal.type, {0, literal.integer}, to);
      const bool same = to == Value::boolean || (literal.type == Value::u64 || to == Value::u64
                                                     ? value.integer == literal.integer && whole(literal) >= 0
                                                     : value.integer == literal.integer);
      if (!same) wrong(at, "{} does not fit {}", text_of(whole(literal)), name_of(to));
      literal.integer = value.integer;
    }
    literal.weak = Node::strong;
    literal.type = to;
    return add(literal, at);
  }

  static std::string text_of(Int128 value) {
    return value < 0 ? fmt::format("-{}", static_cast<uint64_t>(-value))
                     : fmt::format("{}", static_cast<uint64_t>(value));
  }

  // The type that all have in common, of which numbers without a type adopt what they can.
  Value common(std::span<const uint32_t> args, size_t at) const {
    Value type = Value::none;
    bool weak_real = false;
    for (const uint32_t arg : args) {
      if (node(arg).weak != Node::strong) {
        weak_real = weak_real || node(arg).weak == Node::real;
        continue;
      }
      const Value with = type == Value::none ? type_of(arg) : common_type(type, type_of(arg));
      if (with == Value::none) {
        wrong(at, "no type holds both {} and {}: convert one", name_of(type), name_of(type_of(arg)));
      }
      type = with;
    }
    if (type == Value::none || type == Value::boolean) {
      for (const uint32_t arg : args) {
        if (node(arg).weak == Node::integral) {
          type = type == Value::none ? type_of(arg) : common_type(type, type_of(arg));
          if (type == Value::none) type = Value::u64;
        }
      }
    }
    if (weak_real && !is_float(type) && !is_complex(type)) type = Value::f32;
    return type;
  }

  // The type in which a function computes its arguments.
  Value computed_in(const Function& function, std::span<const uint32_t> args, size_t at) const {
    const Value type = common(args, at);
    switch (function.typing) {
      case Typing::numbers: return type == Value::boolean ? Value::i32 : type;
      case Typing::floats: return is_float(type) ? type : Value::f32;
      case Typing::f32:
        if (type == Value::f64) {
          if (function.doubles != 0) return type;
          stop(TUFF_ERROR_UNSUPPORTED, at, "{} does not take f64, only f32", shown(function));
        }
        return Value::f32;
      case Typing::integers:
      case Typing::bits:
        if (is_float(type)) wrong(at, "{} does not take {}", shown(function), name_of(type));
        return type == Value::boolean && function.typing == Typing::integers ? Value::i32 : type;
      case Typing::whole:
      case Typing::compares:
      case Typing::classifies: return type;
    }
    return type;
  }

  static std::string_view shown(const Function& function) {
    switch (function.op) {
      case Op::bitand_: return "&";
      case Op::bitor_: return "|";
      case Op::bitnot: return "~";
      case Op::shl: return "<<";
      case Op::shr: return ">>";
      case Op::lt: return "<";
      case Op::le: return "<=";
      default: return function.name;
    }
  }

  // --- Calls

  // shown_as: the operator, if it is not the function's own.
  uint32_t call(const Function& function, std::span<const uint32_t> given, size_t at, double alpha = 0,
                std::string_view shown_as = {}) {
    if (const uint32_t folded = fold(function, given, at, alpha); folded != kNone) return folded;
    if (is_complex(common(given, at))) {
      return complex_call(function.name, shown_as.empty() ? shown(function) : shown_as, given, at);
    }
    const Value type = computed_in(function, given, at);
    Node made{};
    made.kind = Node::call;
    made.function = &function;
    made.number = alpha;
    made.arg_count = static_cast<uint32_t>(given.size());
    for (size_t i = 0; i < given.size(); ++i) made.args[i] = convert(given[i], type, at);
    made.type = function.typing == Typing::compares || function.typing == Typing::classifies ? Value::boolean : type;
    if (!is_float(type)) {
      if (function.typing == Typing::whole) return made.args[0];
      if (function.typing == Typing::classifies) return classified(function, made.args[0], type, at);
      if (function.op == Op::bitnot && type == Value::boolean) return negated(made.args[0], at);
    }
    return add(made, at);
  }
  uint32_t call(Op op, std::initializer_list<uint32_t> given, size_t at) {
    return call(function_of(op), {given.begin(), given.size()}, at);
  }

  // A function of numbers of which one is complex.
  uint32_t complex_call(std::string_view name, std::string_view shown_as, std::span<const uint32_t> given, size_t at) {
    const Value type = common(given, at);
    const std::string_view text = complex_formula(name);
    if (text.empty()) wrong(at, "{} does not take {}", shown_as, name_of(type));
    const bool wide = type == Value::c128;
    Parser inner(text, *this, at);
    const auto number = [&](std::string_view named, double value) {
      if (text.find(named) == std::string_view::npos) return;
      inner.temporaries_.emplace_back(named, typed_number(value, part_of(type), at));
    };
    number("one", 1);
    number("large", wide ? 0x1p1020 : 0x1p124);
    number("small", wide ? 0x1p-1020 : 0x1p-124);
    number("root", wide ? 0x1p510 : 0x1p62);
    number("down", wide ? 0x1p-510 : 0x1p-62);
    constexpr const char* kNames[2][3] = {{"z", "a", "b"}, {"w", "c", "d"}};
    for (size_t i = 0; i < given.size(); ++i) {
      const uint32_t value = convert(given[i], type, at);
      inner.temporaries_.emplace_back(kNames[i][0], value);
      for (uint32_t part : {0, 1}) inner.temporaries_.emplace_back(kNames[i][1 + part], node(value).args[part]);
    }
    return inner.value();
  }

  // The value of a function's formula: of its last statement.
  uint32_t value() {
    next();
    for (;;) {
      if (token_.kind != Token::name || !assigns()) return expression();
      statement();
      expect(";");
    }
  }

  uint32_t classified(const Function& function, uint32_t arg, Value type, size_t at) {
    if (function.op != Op::signbit) return boolean(function.op == Op::isfinite, at);
    if (!is_integer(type) || !info(type).is_signed) return boolean(false, at);
    return call(Op::lt, {arg, integer(0, at)}, at);
  }

  uint32_t negated(uint32_t arg, size_t at) {
    return call(Op::bitxor, {convert(arg, Value::boolean, at), boolean(true, at)}, at);
  }

  // Functions of numbers without a type give such a number, so that 2 * pi keeps its digits beside an f64.
  uint32_t fold(const Function& function, std::span<const uint32_t> given, size_t at, double alpha) {
    bool integers = true;
    for (const uint32_t arg : given) {
      if (node(arg).weak == Node::strong) return kNone;
      integers = integers && node(arg).weak == Node::integral;
    }
    const double a = number_of(node(given[0])), b = given.size() > 1 ? number_of(node(given[1])) : 0;
    const Int128 i = whole(node(given[0])), j = given.size() > 1 ? whole(node(given[1])) : 0;
    switch (function.op) {
      case Op::add: return integers ? integer(i + j, at) : real(a + b, at);
      case Op::sub: return integers ? integer(i - j, at) : real(a - b, at);
      case Op::mul: {
        if (!integers) return real(a * b, at);
        if (std::fabs(a * b) >= 0x1p65) wrong(at, "an integer beyond 64 bits");
        return integer(i * j, at);
      }
      case Op::neg: return integers ? integer(-i, at) : real(-a, at);
      case Op::div: return real(a / b, at);
      case Op::sqrt: return real(std::sqrt(a), at);
      case Op::shl:
        return integers && j >= 0 && j < 32 && i >= 0 && i < (Int128{1} << 31) ? integer(i << static_cast<int>(j), at)
                                                                               : kNone;
      case Op::unary: return real(elementwise::find(elementwise::kUnaryOps, function.row)->apply(a, alpha), at);
      case Op::binary: return real(elementwise::find(elementwise::kBinaryOps, function.row)->apply(a, b), at);
      default: return kNone;
    }
  }

  uint32_t power(uint32_t base, uint32_t exponent, size_t at) {
    const Node by = node(exponent);
    const bool weak_base = node(base).weak != Node::strong;
    const uint32_t both[] = {base, exponent};
    const Value type = common(both, at);
    if (!weak_base && by.weak != Node::strong && (is_float(type) || is_complex(type))) {
      const double value = number_of(by), most = part_of(type) == Value::f64 ? 16 : 4;
      if (value == 0.5) return call(Op::sqrt, {base}, at);
      if (value >= 1 && value <= most && value == std::floor(value)) {
        return repeated(convert(base, type, at), static_cast<uint32_t>(value), at);
      }
    }
    if (!is_float(part_of(type)) && !(weak_base && by.weak != Node::strong))
      return call(Op::pow_integers, {base, exponent}, at);
    if (weak_base && by.weak == Node::integral && node(base).weak == Node::integral) {
      const double value = std::pow(number_of(node(base)), number_of(by));
      if (number_of(by) >= 0 && std::fabs(value) < 0x1p53) return integer(static_cast<Int128>(value), at);
    }
    return call(*find_function("pow"), both, at);
  }

  uint32_t repeated(uint32_t base, uint32_t times, size_t at) {
    if (times == 1) return base;
    const uint32_t half = repeated(base, times / 2, at), square = call(Op::mul, {half, half}, at);
    return times % 2 == 0 ? square : call(Op::mul, {square, base}, at);
  }

  uint32_t select(uint32_t condition, uint32_t a, uint32_t b, size_t at) {
    const uint32_t both[] = {a, b};
    const Value type = common(both, at);
    if (is_complex(type)) {
      const Node x = node(convert(a, type, at)), y = node(convert(b, type, at));
      return pair(select(condition, x.args[0], y.args[0], at), select(condition, x.args[1], y.args[1], at), at);
    }
    Node made{};
    made.kind = Node::select;
    made.type = type;
    made.arg_count = 3;
    made.args[0] = convert(condition, Value::boolean, at);
    made.args[1] = convert(a, type, at);
    made.args[2] = convert(b, type, at);
    return add(made, at);
  }

  uint32_t rounded(uint32_t from, int32_t dtype, size_t at) {
    Node made{};
    made.kind = Node::rounded;
    made.type = Value::f32;
    made.index = static_cast<uint32_t>(dtype);
    const bool number = node(from).weak != Node::strong;
    made.args[0] = convert(from, number ? Value::f32 : part_of(type_of(from)), at);
    made.arg_count = 1;
    return add(made, at);
  }

  // As an element of this dtype: the value that is stored, or that a cast gives.
  uint32_t as_element(uint32_t from, int32_t dtype, size_t at) {
    if (dtype == TUFF_F16 || dtype == TUFF_BF16) return rounded(from, dtype, at);
    const Node source = node(from);
    const Value to = value_of(dtype);
    // A number without a type saturates too.
    if (source.weak != Node::strong && is_integer(to)) {
      Node made{};
      made.kind = Node::literal;
      made.type = to;
      const bool real_number = source.weak == Node::real;
      made.integer = converted(real_number ? Value::f64 : source.type, {source.number, source.integer}, to).integer;
      return add(made, at);
    }
    return convert(from, to, at);
  }

  // --- Grammar

  uint32_t find_output(std::string_view name) const {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].name == name) return static_cast<uint32_t>(i);
    }
    return kNone;
  }

  void statement() {
    const size_t at = token_.at;
    if (token_.kind == Token::name && assigns()) {
      const std::string_view name = token_.text;
      next();
      next();
      assign(name, expression(), at);
      return;
    }
    const uint32_t value = expression();
    if (results_.size() != 1) {
      wrong(at, "a value without a name, and there are {} outputs: needs name = value", results_.size());
    }
    store(0, value, at);
  }

  void store(uint32_t output, uint32_t value, size_t at) {
    if (results_[output] != kNone) wrong(at, "output \"{}\" is assigned twice", formula_.outputs[output].name);
    results_[output] = node(value).kind == Node::reduced ? reduced(output, value)
                                                         : as_element(value, formula_.outputs[output].dtype, at);
  }

  void assign(std::string_view name, uint32_t value, size_t at) {
    for (const Variable& input : inputs_) {
      if (input.name == name) wrong(at, "\"{}\" is an input", name);
    }
    if (find_output(name) == kNone) {
      for (const auto& [known, index] : temporaries_) {
        if (known == name) wrong(at, "\"{}\" is assigned twice", name);
      }
    } else {
      store(find_output(name), value, at);
    }
    temporaries_.emplace_back(name, value);
  }

  uint32_t expression() {
    const Depth depth(*this);
    const uint32_t condition = binary(1);
    if (!is_sign("?")) return condition;
    const size_t at = token_.at;
    next();
    const uint32_t a = expression();
    expect(":");
    return select(condition, a, expression(), at);
  }

  uint32_t binary(uint32_t least) {
    uint32_t left = unary();
    while (token_.kind == Token::sign) {
      const auto* found = std::find_if(std::begin(kBinary), std::end(kBinary),
                                       [&](const Binary& row) { return row.sign == token_.text; });
      if (found == std::end(kBinary) || found->precedence < least) break;
      const size_t at = token_.at;
      next();
      const uint32_t right = binary(found->precedence + 1);
      if (found->function == nullptr) {
        left = call(found->sign == "&&" ? Op::bitand_ : Op::bitor_,
                    {convert(left, Value::boolean, at), convert(right, Value::boolean, at)}, at);
      } else {
        const uint32_t both[] = {found->swapped ? right : left, found->swapped ? left : right};
        left = call(*find_function(found->function), both, at, 0, found->sign);
      }
    }
    return left;
  }

  uint32_t unary() {
    const Depth depth(*this);
    const size_t at = token_.at;
    if (is_sign("+")) {
      next();
      return unary();
    }
    if (is_sign("-")) {
      next();
      return call(Op::neg, {unary()}, at);
    }
    if (is_sign("!")) {
      next();
      return negated(unary(), at);
    }
    if (is_sign("~")) {
      next();
      return call(Op::bitnot, {unary()}, at);
    }
    const uint32_t base = primary();
    if (!is_sign("**") && !is_sign("^")) return base;
    const size_t sign = token_.at;
    next();
    return power(base, unary(), sign);
  }

  uint32_t primary() {
    const Token token = token_;
    if (token.kind == Token::end) wrong(token.at, "expected a value, got the end");
    next();
    switch (token.kind) {
      case Token::integer: return integer_of(token);
      case Token::real: {
        // Not std::from_chars, which LLVM's library lacks for floats; in any locale of the process a point is a point.
        std::istringstream text{std::string(token.text)};
        text.imbue(std::locale::classic());
        double value = 0;
        text >> value;
        if (!std::isfinite(value) || text.fail()) wrong(token.at, "a number beyond f64");
        return real(value, token.at);
      }
      case Token::name: return is_sign("(") && !is_variable(token.text) ? function(token) : named(token);
      default: break;
    }
    if (token.text != "(") wrong(token.at, "expected a value, got \"{}\"", token.text);
    const uint32_t value = expression();
    expect(")");
    return value;
  }

  uint32_t integer_of(const Token& token) {
    std::string_view text = token.text;
    int base = 10;
    if (text.size() >= 2 && (text[1] == 'x' || text[1] == 'X')) {
      text.remove_prefix(2);
      base = 16;
      if (text.empty()) wrong(token.at, "0x without digits");
    }
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc()) wrong(token.at, "an integer beyond 64 bits");
    return integer(value, token.at);
  }

  bool is_variable(std::string_view name) const {
    return std::any_of(inputs_.begin(), inputs_.end(), [&](const Variable& v) { return v.name == name; }) ||
           std::any_of(temporaries_.begin(), temporaries_.end(),
                       [&](const auto& known) { return known.first == name; });
  }

  uint32_t named(const Token& token) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].name != token.text) continue;
      const Value type = value_of(inputs_[i].dtype);
      Node made{};
      made.kind = Node::input;
      made.type = part_of(type);
      made.index = static_cast<uint32_t>(i);
      const uint32_t value = add(made, token.at);
      if (!is_complex(type)) return value;
      made.part = 1;
      return pair(value, add(made, token.at), token.at);
    }
    for (const auto& [name, value] : temporaries_) {
      if (name == token.text) return value;
    }
    if (token.text == "pi") return real(3.14159265358979323846, token.at);
    if (token.text == "inf") return real(std::numeric_limits<double>::infinity(), token.at);
    if (token.text == "nan") return real(std::numeric_limits<double>::quiet_NaN(), token.at);
    if (token.text == "true" || token.text == "false") return boolean(token.text == "true", token.at);
    if (find_function(token.text) != nullptr || find_reduction(token.text) != nullptr)
      wrong(token.at, "\"{}\" is a function: needs (…) behind it", token.text);
    wrong(token.at, "unknown name \"{}\"", token.text);
  }

  uint32_t function(const Token& token) {
    std::vector<uint32_t> args;
    Reduction made;
    bool named = false;
    const reduce::Op* const op = find_reduction(token.text);
    next();
    if (!is_sign(")")) {
      args.push_back(expression());
      while (is_sign(",")) {
        next();
        if (op != nullptr && token_.kind == Token::name && assigns()) {
          named_argument(*op, made);
          named = true;
        } else if (named) {
          wrong(token_.at, "expected a named argument of {}, got \"{}\"", token.text, token_.text);
        } else {
          args.push_back(expression());
        }
      }
    }
    expect(")");
    // max(a, b) and min(a, b) are functions of elements.
    if (op == nullptr || (made.axes.empty() && args.size() != 1 && find_function(token.text) != nullptr)) {
      return called(token.text, args, token.at);
    }
    require_args(token.text, args, 1, token.at);
    made.op = op;
    made.at = token.at;
    return reduction(std::move(made), args[0]);
  }

  // --- Reductions

  static const reduce::Op* find_reduction(std::string_view name) {
    for (const reduce::Op& op : reduce::table::kOps) {
      if (op.name == name) return &op;
    }
    return nullptr;
  }

  // axis=1, axis=-1 or axis=(0, 2); correction=1
  void named_argument(const reduce::Op& op, Reduction& made) {
    const size_t at = token_.at;
    const bool corrects = op.result == reduce::Result::variance || op.result == reduce::Result::deviation;
    if (corrects && token_.text == "correction") {
      if (made.corrected) wrong(at, "correction= a second time");
      made.corrected = true;
      next();
      next();
      const bool negative = is_sign("-");
      if (negative) next();
      const Token number = token_;
      if (number.kind != Token::integer && number.kind != Token::real) {
        wrong(number.at, "expected a number, got \"{}\"", number.text);
      }
      made.correction = number_of(node(primary())) * (negative ? -1 : 1);
      formula_.nodes.pop_back();
      return;
    }
    if (token_.text != "axis")
      wrong(at, "{} takes axis={}, not {}=", op.name, corrects ? " and correction=" : "", token_.text);
    if (!made.axes.empty()) wrong(at, "axis= a second time");
    named_axes(made.axes);
  }

  void named_axes(std::vector<Reduction::Axis>& axes) {
    next();
    next();
    const bool several = is_sign("(");
    if (several) next();
    for (;;) {
      const size_t at = token_.at;
      const bool negative = is_sign("-");
      if (negative) next();
      if (token_.kind != Token::integer) wrong(token_.at, "expected the number of an axis, got \"{}\"", token_.text);
      const Int128 number = whole(node(integer_of(token_)));
      formula_.nodes.pop_back();
      if (number > 8) wrong(token_.at, "axis {}, and there are at most 8", text_of(number));
      axes.push_back({static_cast<int64_t>(negative ? -number : number), at});
      next();
      if (!several || !is_sign(",")) break;
      next();
      if (is_sign(")")) break;
    }
    if (several) expect(")");
  }

  const char* name_of_reduction(uint32_t index) const { return pending_[node(index).index].reduction.op->name; }

  // A reduction as it is written. What it accumulates depends on the type of its output, which is known where it is
  // assigned.
  uint32_t reduction(Reduction made, uint32_t of) {
    const size_t at = made.at;
    if (node(of).kind == Node::reduced) {
      wrong(at, "{} is a second reduction of one value, of which {} is the first", made.op->name,
            name_of_reduction(of));
    }
    if (is_complex(type_of(of)) && made.op->prepare != reduce::Prepare::nonzero) {
      stop(TUFF_ERROR_UNSUPPORTED, at, "{} does not take {}: reduce its real and imaginary part", made.op->name,
           name_of(type_of(of)));
    }
    Node result{};
    result.kind = Node::reduced;
    result.type = part_of(type_of(of));
    result.args[0] = of;
    result.arg_count = 1;
    result.index = static_cast<uint32_t>(pending_.size());
    pending_.push_back({std::move(made), false});
    return add(result, at);
  }

  // What an output's reduction accumulates.
  uint32_t reduced(uint32_t index, uint32_t value) {
    uint32_t of = node(value).args[0];
    Pending& pending = pending_[node(value).index];
    pending.stored = true;
    Reduction made = pending.reduction;
    const reduce::Op& op = *made.op;
    const size_t at = made.at;
    if (node(of).weak != Node::strong) of = convert(of, type_of(of), at);
    const bool truths = op.prepare == reduce::Prepare::nonzero, places = op.result == reduce::Result::place;
    const Value type = truths ? Value::boolean : type_of(of);
    const Variable& output = formula_.outputs[index];
    const int32_t dtype = dtype_of(type);
    // Half the digits are kept as of any f32 result.
    const bool half = output.dtype == TUFF_F16 || output.dtype == TUFF_BF16;
    const ElementTypes types = reduce::output_types(op, dtype).all;
    const bool fits = types.has(half ? int32_t{TUFF_F32} : output.dtype);
    if (!fits) {
      wrong(at, "{} of {} gives {}{}, and output \"{}\" is {}", op.name, name_of(type), names_of(types),
            types.has(TUFF_F32) ? ", f16, bf16" : "", output.name, dtype_name(output.dtype));
    }
    made.stored = reduce::value_type(op, dtype, half ? int32_t{TUFF_F32} : output.dtype);
    made.value = places ? element_type(type) : made.stored;
    if (truths) of = convert(of, Value::boolean, at);
    of = convert(of, value_of(made.value), at);
    if (op.prepare == reduce::Prepare::magnitude) of = call(Op::abs, {of}, at);
    if (op.prepare == reduce::Prepare::square) of = call(Op::mul, {of, of}, at);
    formula_.reductions[index] = std::move(made);
    return of;
  }

  // The type in which elements are compared.
  static int32_t element_type(Value type) {
    switch (info(type).form) {
      case Form::f32: return TUFF_F32;
      case Form::f64: return TUFF_F64;
      case Form::i32: return TUFF_I32;
      case Form::u32: return TUFF_U32;
      case Form::i64: return TUFF_I64;
      default: return TUFF_U64;
    }
  }

  void require_args(std::string_view name, const std::vector<uint32_t>& args, size_t arity, size_t at) const {
    if (args.size() != arity) {
      wrong(at, "{} takes {} argument{}, got {}", name, arity, arity == 1 ? "" : "s", args.size());
    }
  }

  uint32_t called(std::string_view name, const std::vector<uint32_t>& args, size_t at) {
    if (const int32_t dtype = dtype_by_name(name); dtype != 0 && value_of(dtype) != Value::none) {
      require_args(name, args, 1, at);
      return as_element(args[0], dtype, at);
    }
    struct Composed {
      std::string_view name;
      size_t arity;
    };
    constexpr Composed kComposed[] = {{"where", 3},  {"clamp", 3}, {"fma", 3},         {"lerp", 3},
                                      {"square", 1}, {"pow", 2},   {"logical_not", 1}, {"complex", 2},
                                      {"real", 1},   {"imag", 1},  {"conj", 1},        {"arg", 1}};
    for (const Composed& row : kComposed) {
      if (row.name != name) continue;
      require_args(name, args, row.arity, at);
      if (name == "where") return select(args[0], args[1], args[2], at);
      if (name == "clamp") return call(Op::min, {call(Op::max, {args[0], args[1]}, at), args[2]}, at);
      if (name == "fma") return call(Op::add, {call(Op::mul, {args[0], args[1]}, at), args[2]}, at);
      if (name == "square" && !is_complex(type_of(args[0]))) return call(Op::mul, {args[0], args[0]}, at);
      if (name == "pow") return power(args[0], args[1], at);
      if (name == "logical_not") return negated(args[0], at);
      if (name == "lerp") return lerp(args, at);
      if (name == "complex") return complex(args, at);
      return part(name, args, at);
    }
    const Function* found = find_function(name);
    if (found == nullptr) wrong(at, "unknown function \"{}\"", name);
    if (found->op == Op::unary && found->alpha != 0 && args.size() == 2) {
      const Node& alpha = node(args[1]);
      if (alpha.weak == Node::strong) wrong(at, "the second argument of {} needs to be a number", name);
      return call(*found, {args.data(), 1}, at, number_of(alpha));
    }
    require_args(name, args, found->arity, at);
    return call(*found, args, at, found->alpha);
  }

  uint32_t lerp(const std::vector<uint32_t>& args, size_t at) {
    const Value shared = common(args, at), type = is_float(part_of(shared)) ? shared : Value::f32;
    const uint32_t a = convert(args[0], type, at), b = convert(args[1], type, at), t = convert(args[2], type, at);
    return call(Op::add, {a, call(Op::mul, {t, call(Op::sub, {b, a}, at)}, at)}, at);
  }

  uint32_t complex(const std::vector<uint32_t>& args, size_t at) {
    const Value shared = common(args, at), type = is_float(shared) ? shared : Value::f32;
    if (is_complex(shared)) wrong(at, "complex does not take {}", name_of(shared));
    return pair(convert(args[0], type, at), convert(args[1], type, at), at);
  }

  // real, imag, conj, arg and square. Those of real numbers are simpler.
  uint32_t part(std::string_view name, const std::vector<uint32_t>& args, size_t at) {
    if (is_complex(type_of(args[0]))) return complex_call(name, name, args, at);
    if (name == "imag") return convert(integer(0, at), type_of(args[0]), at);
    if (name == "arg") return call(Op::atan2, {integer(0, at), args[0]}, at);
    return args[0];
  }

  Formula& formula_;
  std::span<const Variable> inputs_, outputs_;  // those that have names in this text
  const Parser* caller_ = nullptr;              // whose formula calls this one
  size_t called_at_ = 0;
  uint32_t depth_ = 0;
  std::vector<uint32_t> results_;
  std::vector<std::pair<std::string_view, uint32_t>> temporaries_;
  struct Pending {
    Reduction reduction;
    bool stored;  // it is the value of an output
  };
  std::vector<Pending> pending_;  // by Node::index
};

}  // namespace

void parse(Formula& formula) { Parser(formula).run(); }

}  // namespace tuff::expression
