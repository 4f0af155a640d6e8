// Checks a call: where each operand's elements are, and that no output shares any with another operand.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "kernels/common/check.hpp"
#include "kernels/common/elements.hpp"
#include "kernels/common/strided_elements.hpp"
#include "kernels/expression/expression.hpp"
#include "kernels/expression/formula_text.hpp"
#include "kernels/expression/host_values.hpp"

namespace tuff {

using expression::Value;
using expression::Variable;

int64_t stride_along(const ExpressionArgs& args, const ExpressionOperand& operand, uint32_t axis) {
  if (operand.strides != nullptr) return operand.strides[axis];
  int64_t stride = 1;
  for (uint32_t i = args.rank; i-- > axis + 1;) stride *= static_cast<int64_t>(args.shape[i]);
  return stride;
}

uint32_t reduced_axes(const ExpressionArgs& args, size_t output) {
  const expression::Reduction& reduction = args.expression->formula().reductions[output];
  if (reduction.op == nullptr) return 0;
  if (reduction.axes.empty()) return (1u << args.rank) - 1;
  const expression::FormulaText text(args.expression->formula().text);
  const auto rank = static_cast<int64_t>(args.rank);
  uint32_t reduced = 0;
  for (const expression::Reduction::Axis& axis : reduction.axes) {
    const int64_t number = axis.number < 0 ? axis.number + rank : axis.number;
    if (number < 0 || number >= rank) {
      text.wrong(axis.at, "axis {}, and desc->rank is {}", axis.number, args.rank);
    }
    if ((reduced >> number & 1) != 0) text.wrong(axis.at, "axis {} of rank {} a second time", axis.number, args.rank);
    reduced |= 1u << number;
  }
  return reduced;
}

int64_t output_stride(const ExpressionArgs& args, const ExpressionOperand& operand, uint32_t axis, uint32_t reduced) {
  if ((reduced >> axis & 1) != 0) return 0;
  if (operand.strides != nullptr) return operand.strides[axis];
  int64_t stride = 1;
  for (uint32_t i = args.rank; i-- > axis + 1;) {
    if ((reduced >> i & 1) == 0) stride *= static_cast<int64_t>(args.shape[i]);
  }
  return stride;
}

uint64_t element_count(const ExpressionArgs& args) { return checked_product({args.shape, args.rank}, "shape"); }

uint64_t scalar_bits(int32_t dtype, const ExpressionOperand& operand) {
  switch (dtype) {
    case TUFF_F32: return std::bit_cast<uint32_t>(static_cast<float>(operand.value));
    case TUFF_F16: return std::bit_cast<uint32_t>(static_cast<float>(double{Half(operand.value)}));
    case TUFF_BF16: return std::bit_cast<uint32_t>(static_cast<float>(double{Bfloat(operand.value)}));
    case TUFF_F64: return std::bit_cast<uint64_t>(operand.value);
    default: return static_cast<uint64_t>(operand.integer);
  }
}

namespace {

struct Elements : StridedElements {
  const Variable* variable = nullptr;
};

std::string name_of(const char* kind, size_t index) { return fmt::format("desc->{}[{}]", kind, index); }

class Check {
 public:
  explicit Check(const ExpressionArgs& args)
      : args_(args), formula_(args.expression->formula()), reduces_(formula_.reduces()), count_(element_count(args)) {}

  void run() {
    if (count_ > uint64_t{1} << 60) fail(TUFF_ERROR_INVALID_ARGUMENT, "shape has {} elements, at most 2^60", count_);
    const auto& inputs = args_.expression->inputs();
    const auto& outputs = args_.expression->outputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].scalar) {
        scalar(inputs[i], args_.inputs[i], i);
      } else if (count_ != 0) {
        found_[input_count_++] = elements(inputs[i], args_.inputs[i], "inputs", i);
      }
    }
    size_t found = input_count_;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!choose(i)) continue;
      const Elements output = result(outputs[i], args_.outputs[i], i);
      distinct(output, i);
      for (size_t k = 0; k < found; ++k) apart(output, found_[k], k < input_count_);
      found_[found++] = output;
    }
  }

 private:
  void scalar(const Variable& variable, const ExpressionOperand& operand, size_t index) const {
    require(operand.buffer == nullptr, "{} (\"{}\") has a buffer, and is a scalar", name_of("inputs", index),
            variable.name);
    const Value type = expression::value_of(variable.dtype);
    if (expression::is_float(type) || type == Value::u64) return;
    require(type == Value::boolean ? operand.integer == 0 || operand.integer == 1
                                   : expression::wrapped(type, operand.integer) == operand.integer,
            "{}.integer (\"{}\") is {}, which does not fit {}", name_of("inputs", index), variable.name,
            operand.integer, dtype_name(variable.dtype));
  }

  // The axes and the shape of an output. Returns whether it has elements.
  bool choose(size_t output) {
    const expression::Reduction& reduction = formula_.reductions[output];
    reduced_ = reduced_axes(args_, output);
    uint64_t length = 1;
    for (uint32_t d = 0; d < args_.rank; ++d) {
      const bool reduced = (reduced_ >> d & 1) != 0;
      output_shape_[d] = reduced ? 1 : args_.shape[d];
      if (reduced) length *= args_.shape[d];
    }
    result_count_ = checked_product(output_shape(), "shape without the axes");
    if (result_count_ == 0) return false;
    if (reduction.op == nullptr) return count_ != 0;
    const expression::FormulaText text(formula_.text);
    if (count_ == 0 && !reduction.op->empty) {
      uint32_t axis = 0;
      while ((reduced_ >> axis & 1) == 0 || args_.shape[axis] != 0) ++axis;
      text.wrong(reduction.at, "{} of an empty axis (axis {} has size 0)", reduction.op->name, axis);
    }
    if (reduction.op->result == reduce::Result::place && length > 0xffffffffu) {
      text.stop(TUFF_ERROR_UNSUPPORTED, reduction.at, "{} of {} elements: places are numbers of 32 bits",
                reduction.op->name, length);
    }
    return true;
  }

  Elements elements(const Variable& variable, const ExpressionOperand& operand, const char* kind, size_t index) const {
    std::array<int64_t, 8> strides{};
    for (uint32_t d = 0; d < args_.rank; ++d) strides[d] = stride_along(args_, operand, d);
    return elements(variable, operand, kind, index, strides, {args_.shape, args_.rank}, count_);
  }

  Elements result(const Variable& variable, const ExpressionOperand& operand, size_t index) const {
    std::array<int64_t, 8> strides{};
    for (uint32_t d = 0; d < args_.rank; ++d) {
      strides[d] = output_stride(args_, operand, d, reduced_);
      require(operand.strides == nullptr || (reduced_ >> d & 1) == 0 || operand.strides[d] == 0,
              "{} (\"{}\") has the stride {} along axis {}, which is reduced: needs 0", name_of("outputs", index),
              variable.name, operand.strides != nullptr ? operand.strides[d] : 0, d);
    }
    return elements(variable, operand, "outputs", index, strides, output_shape(), result_count_);
  }

  Elements elements(const Variable& variable, const ExpressionOperand& operand, const char* kind, size_t index,
                    const std::array<int64_t, 8>& strides, std::span<const uint64_t> shape, uint64_t count) const {
    const auto name = [&] { return fmt::format("{} (\"{}\")", name_of(kind, index), variable.name); };
    if (operand.buffer == nullptr) {
      fail(TUFF_ERROR_INVALID_HANDLE, "{} is TUFF_NULL_HANDLE, needs {} elements", name(), count);
    }
    return {strided_elements(*operand.buffer, operand.first, {strides.data(), args_.rank}, shape, variable.dtype, name),
            &variable};
  }

  // No two indices are the same element.
  void distinct(const Elements& output, size_t index) const {
    const std::optional<uint32_t> axis = repeated_axis(output, output_shape());
    require(!axis.has_value(), "{} (\"{}\") has the stride {} along axis {}, and overlaps itself",
            name_of("outputs", index), output.variable->name,
            output.strides[axis.value_or(0)] / static_cast<int64_t>(output.size), axis.value_or(0));
  }

  void apart(const Elements& output, const Elements& other, bool is_input) const {
    const bool may_be_input = is_input && !reduces_;
    if (!may_overlap(output, other) || (may_be_input && same_elements(output, other))) return;
    fail(TUFF_ERROR_INVALID_ARGUMENT, "output \"{}\" overlaps {} \"{}\" (bytes {}..{} and {}..{} of one allocation){}",
         output.variable->name, is_input ? "input" : "output", other.variable->name, output.begin, output.end,
         other.begin, other.end, may_be_input ? "; the elements may be identical or disjoint" : "");
  }

  std::span<const uint64_t> output_shape() const { return {output_shape_.data(), args_.rank}; }

  const ExpressionArgs& args_;
  const expression::Formula& formula_;
  const bool reduces_;
  const uint64_t count_;
  // For an output: its reduced axes, elements and shape.
  uint32_t reduced_ = 0;
  uint64_t result_count_ = 0;
  std::array<uint64_t, 8> output_shape_{};
  std::array<Elements, TUFF_EXPR_MAX_BUFFERS> found_{};
  size_t input_count_ = 0;
};

}  // namespace

void check_expression(const ExpressionArgs& args) {
  require(args.rank <= 8, "rank is {}, needs 0 to 8", args.rank);
  Check(args).run();
}

}  // namespace tuff
