// Interprets a formula, element by element.
#include <vector>

#include "kernels/common/elements.hpp"
#include "kernels/expression/expression.hpp"
#include "kernels/expression/host_values.hpp"
#include "planning/element_type.hpp"

namespace tuff {

using expression::HostValue;
using expression::Node;
using expression::Value;

namespace {

template <typename T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

HostValue load(int32_t dtype, const std::byte* at) {
  switch (dtype) {
    case TUFF_F32: return {double{read<float>(at)}, 0};
    case TUFF_F16: return {double{read<Half>(at)}, 0};
    case TUFF_BF16: return {double{read<Bfloat>(at)}, 0};
    case TUFF_F64: return {read<double>(at), 0};
    case TUFF_I8: return {0, read<int8_t>(at)};
    case TUFF_I16: return {0, read<int16_t>(at)};
    case TUFF_I32: return {0, read<int32_t>(at)};
    case TUFF_I64:
    case TUFF_U64: return {0, read<int64_t>(at)};
    case TUFF_U8: return {0, read<uint8_t>(at)};
    case TUFF_U16: return {0, read<uint16_t>(at)};
    case TUFF_U32: return {0, read<uint32_t>(at)};
    default: return {0, read<uint8_t>(at) != 0 ? 1 : 0};
  }
}

template <typename T>
void write(T value, std::byte* at) {
  std::memcpy(at, &value, sizeof value);
}

void store(int32_t dtype, const HostValue& value, std::byte* at) {
  switch (dtype) {
    case TUFF_F32: return write(static_cast<float>(value.number), at);
    case TUFF_F16: return write(Half(value.number), at);
    case TUFF_BF16: return write(Bfloat(value.number), at);
    case TUFF_F64: return write(value.number, at);
    case TUFF_I16:
    case TUFF_U16: return write(static_cast<uint16_t>(value.integer), at);
    case TUFF_I32:
    case TUFF_U32: return write(static_cast<uint32_t>(value.integer), at);
    case TUFF_I64:
    case TUFF_U64: return write(value.integer, at);
    default: return write(static_cast<uint8_t>(value.integer), at);
  }
}

// Bytes of an element's part.
uint64_t part_size(int32_t dtype) { return dtype_size(part_type(dtype)); }

HostValue scalar(int32_t dtype, const ExpressionOperand& operand) {
  if (!expression::is_float(expression::value_of(dtype))) return {0, operand.integer};
  const uint64_t bits = scalar_bits(dtype, operand);
  if (dtype == TUFF_F64) return {operand.value, 0};
  return {double{std::bit_cast<float>(static_cast<uint32_t>(bits))}, 0};
}

HostValue evaluated(const expression::Formula& formula, const Node& node, const std::vector<HostValue>& inputs,
                    const std::vector<HostValue>& values) {
  switch (node.kind) {
    case Node::input: return inputs[2 * node.index + node.part];
    case Node::pair: return {};
    case Node::literal: return {node.number, node.integer};
    case Node::convert: return converted(formula.nodes[node.args[0]].type, values[node.args[0]], node.type);
    case Node::rounded:
      return rounded_to_dtype(formula.nodes[node.args[0]].type, values[node.args[0]], static_cast<int32_t>(node.index));
    case Node::select: return values[values[node.args[0]].integer != 0 ? node.args[1] : node.args[2]];
    case Node::call: break;
  }
  HostValue args[3];
  for (uint32_t k = 0; k < node.arg_count; ++k) args[k] = values[node.args[k]];
  return applied(node, formula.nodes[node.args[0]].type, args);
}

}  // namespace

void host_expression(const ExpressionArgs& args) {
  const uint64_t count = element_count(args);
  if (count == 0) return;
  const expression::Formula& formula = args.expression->formula();
  std::vector<HostValue> inputs(2 * formula.inputs.size()), values(formula.nodes.size());
  const auto place = [&](const ExpressionOperand& operand, int32_t dtype, const uint64_t* index) {
    auto at = static_cast<int64_t>(operand.first);
    for (uint32_t d = 0; d < args.rank; ++d) at += static_cast<int64_t>(index[d]) * stride_along(args, operand, d);
    return operand.buffer->host<std::byte>() + at * static_cast<int64_t>(dtype_size(dtype));
  };
  uint64_t index[8] = {};
  for (uint64_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < formula.inputs.size(); ++k) {
      const expression::Variable& input = formula.inputs[k];
      const ExpressionOperand& operand = args.inputs[k];
      if (input.scalar) {
        inputs[2 * k] = scalar(input.dtype, operand);
        continue;
      }
      const std::byte* const at = place(operand, input.dtype, index);
      const int32_t part = part_type(input.dtype);
      inputs[2 * k] = load(part, at);
      if (part != input.dtype) inputs[2 * k + 1] = load(part, at + part_size(input.dtype));
    }
    for (size_t k = 0; k < values.size(); ++k) values[k] = evaluated(formula, formula.nodes[k], inputs, values);
    for (size_t k = 0; k < formula.outputs.size(); ++k) {
      const int32_t dtype = formula.outputs[k].dtype;
      const Node& result = formula.nodes[formula.results[k]];
      std::byte* const at = place(args.outputs[k], dtype, index);
      if (result.kind != Node::pair) {
        store(dtype, values[formula.results[k]], at);
        continue;
      }
      store(part_type(dtype), values[result.args[0]], at);
      store(part_type(dtype), values[result.args[1]], at + part_size(dtype));
    }
    for (uint32_t d = args.rank; d-- > 0;) {
      if (++index[d] < args.shape[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace tuff
