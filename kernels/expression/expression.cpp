#include "kernels/expression/expression.hpp"

#include <fmt/format.h>

#include <vector>

#include "kernels/common/check.hpp"
#include "kernels/common/describe.hpp"

namespace tuff {
namespace {

// A formula of several lines is shown as one, and a long one by its beginning.
CallText describe(const ExpressionArgs& args) {
  constexpr size_t kShown = 80;
  const std::string& formula = args.expression->formula().text;
  std::string text = formula.substr(0, kShown);
  for (char& c : text) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  if (formula.size() > kShown) text += "...";
  return {fmt::format("{} {}", text, describe_sizes(args.shape, args.rank)), args.expression->outputs()[0].dtype};
}

}  // namespace

void ExpressionArgs::copy_pointees(CallCopy& copy) {
  copy.keep(expression->shared_from_this());
  shape = copy.array(shape, rank);
  const auto copied = [&](const ExpressionOperand* operands, size_t count) {
    std::vector<ExpressionOperand> own(operands, operands + count);
    for (ExpressionOperand& operand : own) {
      operand.buffer = copy.operand(operand.buffer);
      operand.strides = copy.array(operand.strides, rank);
    }
    return copy.array(own.data(), count);
  };
  inputs = copied(inputs, expression->inputs().size());
  outputs = copied(outputs, expression->outputs().size());
}

namespace operations {
const OperationOf<ExpressionArgs> expr =
    define_operation<ExpressionArgs, check_expression, host_expression, record_expression, describe, nullptr,
                     offer_expression>("expr", kAllTypes - kFloat8Types);
}  // namespace operations

}  // namespace tuff
