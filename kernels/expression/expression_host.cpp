// Interprets a formula, element by element.
#include <cmath>
#include <vector>

#include "kernels/common/elements.hpp"
#include "kernels/expression/expression.hpp"
#include "kernels/expression/host_values.hpp"
#include "kernels/reduce/reduce_reference.hpp"
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
    case Node::pair:
    case Node::reduced: return {};
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

// The values of a call's nodes at one index after another.
class Evaluation {
 public:
  explicit Evaluation(const ExpressionArgs& args)
      : args_(args),
        formula_(args.expression->formula()),
        inputs_(2 * formula_.inputs.size()),
        values_(formula_.nodes.size()) {}

  void at(const uint64_t* index) {
    for (size_t k = 0; k < formula_.inputs.size(); ++k) {
      const expression::Variable& input = formula_.inputs[k];
      const ExpressionOperand& operand = args_.inputs[k];
      if (input.scalar) {
        inputs_[2 * k] = scalar(input.dtype, operand);
        continue;
      }
      auto place = static_cast<int64_t>(operand.first);
      for (uint32_t d = 0; d < args_.rank; ++d) {
        place += static_cast<int64_t>(index[d]) * stride_along(args_, operand, d);
      }
      const std::byte* const element = element_at(operand, place, input.dtype);
      const int32_t part = part_type(input.dtype);
      inputs_[2 * k] = load(part, element);
      if (part != input.dtype) inputs_[2 * k + 1] = load(part, element + part_size(input.dtype));
    }
    for (size_t k = 0; k < values_.size(); ++k) values_[k] = evaluated(formula_, formula_.nodes[k], inputs_, values_);
  }
  const HostValue& value(uint32_t node) const { return values_[node]; }

  static std::byte* element_at(const ExpressionOperand& operand, int64_t place, int32_t dtype) {
    return operand.buffer->host<std::byte>() + place * static_cast<int64_t>(dtype_size(dtype));
  }

 private:
  const ExpressionArgs& args_;
  const expression::Formula& formula_;
  std::vector<HostValue> inputs_, values_;
};

// The index after this one, along some of the axes.
void advance(const ExpressionArgs& args, uint64_t* index, uint32_t axes) {
  for (uint32_t d = args.rank; d-- > 0;) {
    if ((axes >> d & 1) == 0) continue;
    if (++index[d] < args.shape[d]) break;
    index[d] = 0;
  }
}

// The number of the first largest or smallest value, or of the first NaN.
template <typename Next>
uint64_t place_of(const reduce::Op& op, Value type, uint64_t count, const Next& next) {
  const bool largest = op.op == TUFF_REDUCE_ARGMAX, floats = expression::is_float(type);
  const bool is_unsigned = !floats && !expression::info(type).is_signed;
  const auto better = [&](const HostValue& x, const HostValue& than) {
    if (floats) {
      if (std::isnan(than.number)) return false;
      return std::isnan(x.number) || (largest ? x.number > than.number : x.number < than.number);
    }
    const HostValue &more = largest ? x : than, &less = largest ? than : x;
    if (!is_unsigned) return more.integer > less.integer;
    return static_cast<uint64_t>(more.integer) > static_cast<uint64_t>(less.integer);
  };
  HostValue best = next(0);
  uint64_t place = 0;
  for (uint64_t r = 1; r < count; ++r) {
    const HostValue value = next(r);
    if (better(value, best)) best = value, place = r;
  }
  return place;
}

}  // namespace

void host_expression(const ExpressionArgs& args) {
  const expression::Formula& formula = args.expression->formula();
  if (!args.expression->parts().empty()) return for_parts(args, host_expression);
  if (formula.reduction() != nullptr) return host_expression_reduction(args);
  const uint64_t count = element_count(args);
  if (count == 0) return;
  Evaluation evaluation(args);
  uint64_t index[8] = {};
  for (uint64_t i = 0; i < count; ++i) {
    evaluation.at(index);
    for (size_t k = 0; k < formula.outputs.size(); ++k) {
      const int32_t dtype = formula.outputs[k].dtype;
      const Node& result = formula.nodes[formula.results[k]];
      auto place = static_cast<int64_t>(args.outputs[k].first);
      for (uint32_t d = 0; d < args.rank; ++d) {
        place += static_cast<int64_t>(index[d]) * stride_along(args, args.outputs[k], d);
      }
      std::byte* const at = Evaluation::element_at(args.outputs[k], place, dtype);
      if (result.kind != Node::pair) {
        store(dtype, evaluation.value(formula.results[k]), at);
        continue;
      }
      store(part_type(dtype), evaluation.value(result.args[0]), at);
      store(part_type(dtype), evaluation.value(result.args[1]), at + part_size(dtype));
    }
    advance(args, index, ~0u);
  }
}

// As host_reduce() reduces elements: f32 in double precision, f64 in long double, integers modulo 2^64.
void host_expression_reduction(const ExpressionArgs& args) {
  const expression::Formula& formula = args.expression->formula();
  const uint32_t reduced = reduced_axes(args), kept = ~reduced;
  uint64_t results = 1, elements = 1;
  for (uint32_t d = 0; d < args.rank; ++d) ((reduced >> d & 1) != 0 ? elements : results) *= args.shape[d];
  if (results == 0) return;
  // What is done with each element before is part of the formula.
  const expression::Reduction& reduction = *formula.reduction();
  reduce::Op op = *reduction.op;
  if (op.center == 0) op.prepare = reduce::Prepare::plain;
  const bool places = op.result == reduce::Result::place;
  const Value type = expression::value_of(reduction.value);
  const uint32_t node = formula.results[0];
  const ExpressionOperand& output = args.outputs[0];
  const int32_t dtype = formula.outputs[0].dtype;
  Evaluation evaluation(args);
  uint64_t index[8] = {};
  const auto next = [&](uint64_t) -> const HostValue& {
    evaluation.at(index);
    advance(args, index, reduced);
    return evaluation.value(node);
  };
  for (uint64_t i = 0; i < results; ++i) {
    HostValue value;
    if (places) {
      value.integer = static_cast<int64_t>(place_of(op, type, elements, next));
    } else if (type == Value::f64) {
      value.number = static_cast<double>(reduce::reduced_reals<long double>(
          op, elements, reduction.correction, [&](uint64_t r) { return static_cast<long double>(next(r).number); }));
    } else if (type == Value::f32) {
      value.number =
          reduce::reduced_reals<double>(op, elements, reduction.correction, [&](uint64_t r) { return next(r).number; });
    } else {
      value.integer = static_cast<int64_t>(
          reduce::reduced_integers(op, elements, expression::info(type).is_signed,
                                   [&](uint64_t r) { return static_cast<uint64_t>(next(r).integer); }));
    }
    auto place = static_cast<int64_t>(output.first);
    for (uint32_t d = 0; d < args.rank; ++d) {
      place += static_cast<int64_t>(index[d]) * output_stride(args, output, d, reduced);
    }
    store(dtype, value, Evaluation::element_at(output, place, dtype));
    advance(args, index, kept);
  }
}

}  // namespace tuff
