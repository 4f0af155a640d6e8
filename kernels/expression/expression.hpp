// A formula over named operands that one kernel computes (docs/expressions.md).
//
// parse.cpp turns the text into typed nodes, each after those that it uses; expression_glsl.cpp turns these into the
// part of expression.comp that depends on the formula, and expression_host.cpp interprets them. The value of an output
// may be a reduction (expression_reduce.glsl).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/expression/functions.hpp"
#include "kernels/expression/value_type.hpp"
#include "kernels/reduce/reduce_ops.hpp"
#include "planning/buffer.hpp"
#include "planning/kernel_request.hpp"
#include "planning/operation.hpp"
#include "tuff/backend.h"

namespace tuff {

class Recorder;

namespace expression {

struct Variable {
  std::string name;
  int32_t dtype;
  bool scalar = false;
};

struct Node {
  enum Kind : uint8_t {
    input,    // of number `index`
    literal,  // `number` or `integer`, by its type
    call,     // function(args)
    convert,  // args[0] as `type`
    select,   // args[0] ? args[1] : args[2]
    rounded,  // args[0] rounded to dtype `index`, f16 or bf16
    pair,     // a complex number of the parts args[0] and args[1]: every value of a complex type, and no other
    reduced,  // the reduction of args[0], which is an output's value; `index` is its number in the parser
  };
  Kind kind;
  Value type;
  // For a literal: what it may still become. A literal that is used as it is has type i32, i64, u64 or f32.
  enum Weak : uint8_t { strong, integral, real } weak = strong;
  uint32_t index = 0;
  uint32_t part = 0;  // of an input of a complex type: 0 its real part, 1 its imaginary one
  const Function* function = nullptr;
  uint32_t args[3] = {0, 0, 0};
  uint32_t arg_count = 0;
  double number = 0;    // a literal of a float type; the alpha of a function that takes one
  int64_t integer = 0;  // a literal of an integer type or bool
};

// A reduction that is the value of an output: "sum(x * y, axis=1)".
struct Reduction {
  struct Axis {
    int64_t number;  // negative: from the last
    size_t at;       // position in the text
  };
  const reduce::Op* op = nullptr;  // null: the output has one element for each index
  size_t at = 0;
  int32_t value = 0;       // the dtype of elements, in which they are accumulated
  int32_t stored = 0;      // that of the result before it is converted to the output's: value, or u32 of an index
  double correction = 0;   // of var and std
  bool corrected = false;  // it is written
  std::vector<Axis> axes;  // none: all
};

struct Formula {
  std::vector<Variable> inputs, outputs;
  std::string text;
  std::vector<Node> nodes;
  // For each output the node with its value, of type value_of(its dtype). With a reduction what it accumulates, of type
  // value_of(reduction.value).
  std::vector<uint32_t> results;
  std::vector<Reduction> reductions;  // of each output
  // The results are the values of partial results of the only output's reduction (expression_reduce.glsl).
  bool merges = false;

  bool reduces() const;
  // For a formula with one output.
  const Reduction* reduction() const {
    return reductions.size() == 1 && reductions[0].op != nullptr ? reductions.data() : nullptr;
  }
};

// TUFF_STATE (kernels/reduce/states.glsl).
enum class State : uint8_t { value, moments, place, exponentials };
State state_of(const reduce::Op& op);
// The dtypes of a partial result's values.
std::vector<int32_t> partial_types(const Reduction& reduction);

// Throws INVALID_ARGUMENT, LIMIT_EXCEEDED or UNSUPPORTED, with the position in the text.
void parse(Formula& formula);

// A formula as plug-ins see it, and a number that no other formula has.
struct PluginProgram {
  uint64_t number = 0;
  std::vector<tuff_backend_expr_node> nodes;
};
// Null if plug-ins are not asked for it: reductions and complex numbers.
std::unique_ptr<const PluginProgram> plugin_program(const Formula& formula);

// What a kernel needs of a device, and what its source needs (the defines of expression_functions.glsl).
struct Needs {
  bool f64 = false, int64 = false;
  uint32_t files = 0, own = 0, doubles = 0;
  double flops = 0;  // per element
};

}  // namespace expression

// Owned by shared pointers, so that calls that are kept share it.
class Expression : public std::enable_shared_from_this<Expression> {
 public:
  explicit Expression(expression::Formula formula);

  // For an expression with one output, or null.
  const expression::Reduction* reduction() const { return formula_.reduction(); }
  // For such an expression with a reduction: what reduces its partial results.
  const Expression& combining() const { return combining_ ? *combining_ : *this; }

  // A formula with several outputs of which some are reductions is computed as several: one for each reduction, and
  // then one for all other outputs. Each has some of the inputs and outputs, by their numbers here.
  struct Part {
    std::unique_ptr<const Expression> expression;
    std::vector<uint32_t> inputs, outputs;
  };
  const std::vector<Part>& parts() const { return parts_; }

  const expression::Formula& formula() const { return formula_; }
  const std::vector<expression::Variable>& inputs() const { return formula_.inputs; }
  const std::vector<expression::Variable>& outputs() const { return formula_.outputs; }
  const expression::Needs& needs() const { return needs_; }
  const std::shared_ptr<const KernelBody>& body() const { return body_; }
  uint32_t scalars() const { return scalars_; }
  const expression::PluginProgram* program() const { return program_.get(); }

 private:
  struct Parsed {};
  Expression(expression::Formula formula, Parsed);
  Part part_of(const std::vector<uint32_t>& outputs) const;

  expression::Formula formula_;
  expression::Needs needs_;
  std::shared_ptr<const KernelBody> body_;
  uint32_t scalars_ = 0;
  std::unique_ptr<const expression::PluginProgram> program_;
  std::shared_ptr<const Expression> combining_;
  std::vector<Part> parts_;
};

struct ExpressionOperand {
  const Buffer* buffer;
  uint64_t first;          // the element at index 0 of every axis
  const int64_t* strides;  // in elements; null: dense
  double value;            // of scalars
  int64_t integer;
};

struct ExpressionArgs {
  const Expression* expression;
  uint32_t rank;
  const uint64_t* shape;
  const ExpressionOperand *inputs, *outputs;  // as many as the expression has

  void copy_pointees(CallCopy& copy);  // see planning/call_copy.hpp
};

// The stride of an input along an axis. The arguments must have been checked.
int64_t stride_along(const ExpressionArgs& args, const ExpressionOperand& operand, uint32_t axis);
// The axes that an output's value reduces, as bits. Throws if it names one that the shape lacks, or one twice.
uint32_t reduced_axes(const ExpressionArgs& args, size_t output = 0);
// The stride of an output, which is 0 along reduced axes.
int64_t output_stride(const ExpressionArgs& args, const ExpressionOperand& operand, uint32_t axis, uint32_t reduced);
uint64_t element_count(const ExpressionArgs& args);
// The bits of a scalar of this dtype in its value's form, f32 in the low half.
uint64_t scalar_bits(int32_t dtype, const ExpressionOperand& operand);

void check_expression(const ExpressionArgs& args);
void host_expression(const ExpressionArgs& args);
void record_expression(Recorder& recorder, const ExpressionArgs& args);
tuff_status offer_expression(const PluginFunction& function, const ExpressionArgs& args);
void host_expression_reduction(const ExpressionArgs& args);
void record_expression_reduction(Recorder& recorder, const ExpressionArgs& args);
// Throws what that would throw before it records anything.
void check_expression_reduction(Recorder& recorder, const ExpressionArgs& args);

// Calls use(args) for each part of an expression that has several.
template <typename Use>
void for_parts(const ExpressionArgs& args, const Use& use) {
  std::array<ExpressionOperand, TUFF_EXPR_MAX_INPUTS> inputs;
  std::array<ExpressionOperand, TUFF_EXPR_MAX_OUTPUTS> outputs;
  for (const Expression::Part& part : args.expression->parts()) {
    for (size_t i = 0; i < part.inputs.size(); ++i) inputs[i] = args.inputs[part.inputs[i]];
    for (size_t i = 0; i < part.outputs.size(); ++i) outputs[i] = args.outputs[part.outputs[i]];
    use(ExpressionArgs{part.expression.get(), args.rank, args.shape, inputs.data(), outputs.data()});
  }
}

namespace operations {
extern const OperationOf<ExpressionArgs> expr;
}  // namespace operations

}  // namespace tuff
