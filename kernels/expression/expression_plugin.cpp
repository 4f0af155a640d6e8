// An expression as plug-ins see it.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "kernels/common/plugin_call.hpp"
#include "kernels/expression/expression.hpp"

namespace tuff {
namespace expression {
namespace {

int32_t kind_of(const Node& node) {
  switch (node.kind) {
    case Node::input: return TUFF_BACKEND_EXPR_INPUT;
    case Node::literal: return TUFF_BACKEND_EXPR_LITERAL;
    case Node::call: return TUFF_BACKEND_EXPR_CALL;
    case Node::convert: return TUFF_BACKEND_EXPR_CONVERT;
    case Node::select: return TUFF_BACKEND_EXPR_SELECT;
    case Node::rounded: return TUFF_BACKEND_EXPR_ROUND;
    case Node::pair:
    case Node::reduced: break;
  }
  return TUFF_BACKEND_EXPR_INVALID;
}

// Of functions with several names, one.
const char* name_of(const Function& function) {
  switch (function.op) {
    case Op::fmod: return "fmod";
    case Op::pow_integers: return "pow";
    default: return function.name;
  }
}

bool is_known(const Variable& variable) { return !is_complex(value_of(variable.dtype)); }

}  // namespace

std::unique_ptr<const PluginProgram> plugin_program(const Formula& formula) {
  static std::atomic<uint64_t> programs{0};
  const auto known = [](const std::vector<Variable>& variables) {
    return std::all_of(variables.begin(), variables.end(), is_known);
  };
  if (formula.reduces() || formula.merges || !known(formula.inputs) || !known(formula.outputs)) return nullptr;
  auto program = std::make_unique<PluginProgram>();
  for (const Node& node : formula.nodes) {
    tuff_backend_expr_node to{};
    to.kind = kind_of(node);
    if (to.kind == TUFF_BACKEND_EXPR_INVALID || is_complex(node.type)) return nullptr;
    to.type = dtype_of(node.type);
    to.function = node.function != nullptr ? name_of(*node.function) : nullptr;
    to.index = node.index;
    to.arg_count = node.arg_count;
    std::copy_n(node.args, 3, to.args);
    to.number = node.type == Value::f64 ? node.number : double{static_cast<float>(node.number)};
    to.integer = node.integer;
    program->nodes.push_back(to);
  }
  program->number = ++programs;
  return program;
}

}  // namespace expression

tuff_status offer_expression(const PluginFunction& function, const ExpressionArgs& args) {
  const expression::PluginProgram* const program = args.expression->program();
  if (program == nullptr || element_count(args) == 0) return TUFF_ERROR_UNSUPPORTED;
  const auto described = [&](const expression::Variable& variable, const ExpressionOperand& operand) {
    tuff_backend_expr_operand to{};
    to.dtype = variable.dtype;
    to.scalar = variable.scalar ? 1 : 0;
    if (variable.scalar) {
      to.number = variable.dtype == TUFF_F64
                      ? operand.value
                      : double{std::bit_cast<float>(static_cast<uint32_t>(scalar_bits(variable.dtype, operand)))};
      to.integer = operand.integer;
      return to;
    }
    to.first = address_of(operand.buffer) + operand.first * dtype_size(variable.dtype);
    for (uint32_t d = 0; d < args.rank; ++d) to.strides[d] = stride_along(args, operand, d);
    return to;
  };
  const auto& inputs = args.expression->inputs();
  const auto& outputs = args.expression->outputs();
  std::array<tuff_backend_expr_operand, TUFF_EXPR_MAX_INPUTS> in;
  std::array<tuff_backend_expr_operand, TUFF_EXPR_MAX_OUTPUTS> out;
  for (size_t i = 0; i < inputs.size(); ++i) in[i] = described(inputs[i], args.inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) out[i] = described(outputs[i], args.outputs[i]);
  auto call = new_call<tuff_backend_expr>();
  call.rank = args.rank;
  std::copy_n(args.shape, args.rank, call.shape);
  call.program = program->number;
  call.nodes = program->nodes.data();
  call.node_count = static_cast<uint32_t>(program->nodes.size());
  call.input_count = static_cast<uint32_t>(inputs.size());
  call.output_count = static_cast<uint32_t>(outputs.size());
  call.inputs = in.data();
  call.outputs = out.data();
  call.results = args.expression->formula().results.data();
  return function(call);
}

}  // namespace tuff
