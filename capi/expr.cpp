// The header's "Expressions" group.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "kernels/common/check.hpp"
#include "kernels/expression/expression.hpp"
#include "planning/status.hpp"

using tuff::Expression;
using tuff::ExpressionOperand;
using tuff::HandleKind;
using tuff::Ref;
using tuff::require;
using tuff::require_reserved;
using tuff::capi::acquire_context;
using tuff::capi::acquire_stream;
using tuff::capi::Context;
using tuff::capi::ExprObject;
using tuff::capi::fail_handle;
using tuff::capi::guarded;
using tuff::capi::read_structure;
using tuff::expression::Formula;
using tuff::expression::Variable;

namespace {

constexpr size_t kMaxFormula = 64 << 10, kMaxName = 64;

Ref<ExprObject> acquire_expr(tuff_expr handle) {
  auto expr = tuff::handle_table().acquire<ExprObject>(handle, HandleKind::expr);
  if (!expr) fail_handle("expr", handle, "expr");
  return expr;
}

bool is_name(const std::string& name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && name.size() <= kMaxName && is_letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

std::vector<Variable> read_variables(const tuff_expr_variable* variables, uint32_t count, uint32_t least, uint32_t most,
                                     const char* kind, bool inputs) {
  if (count > most) tuff::fail(TUFF_ERROR_LIMIT_EXCEEDED, "desc->{}_count is {}, at most {}", kind, count, most);
  require(count >= least, "desc->{}_count is {}, needs at least {}", kind, count, least);
  require(count == 0 || variables != nullptr, "desc->{}s is null, {}_count is {}", kind, kind, count);
  std::vector<Variable> found;
  for (uint32_t i = 0; i < count; ++i) {
    const tuff_expr_variable& given = variables[i];
    require(given.name != nullptr, "desc->{}s[{}].name is null", kind, i);
    Variable variable{std::string(given.name, strnlen(given.name, kMaxName + 1)), given.dtype};
    require(is_name(variable.name), "desc->{}s[{}].name is \"{}\", needs letters, digits and _, at most {}", kind, i,
            variable.name, kMaxName);
    tuff::check_known_type(given.dtype, fmt::format("desc->{}s[{}].dtype", kind, i));
    if (tuff::expression::value_of(given.dtype) == tuff::expression::Value::none) {
      tuff::fail(TUFF_ERROR_UNSUPPORTED, "desc->{}s[{}].dtype is {}, which formulas do not take", kind, i,
                 tuff::dtype_name(given.dtype));
    }
    const uint32_t known = inputs ? TUFF_EXPR_SCALAR : 0;
    require((given.flags & ~known) == 0, "desc->{}s[{}].flags is {:#x}, this version knows {:#x}", kind, i, given.flags,
            known);
    variable.scalar = (given.flags & TUFF_EXPR_SCALAR) != 0;
    if (variable.scalar && tuff::kComplexTypes.has(given.dtype)) {
      tuff::fail(TUFF_ERROR_UNSUPPORTED, "desc->{}s[{}] is a scalar of {}: pass two real ones, and write complex(a, b)",
                 kind, i, tuff::dtype_name(given.dtype));
    }
    found.push_back(std::move(variable));
  }
  return found;
}

void check_names(const Formula& formula) {
  std::vector<const std::string*> names;
  for (const auto* variables : {&formula.inputs, &formula.outputs}) {
    for (const Variable& variable : *variables) {
      for (const std::string* known : names) {
        require(*known != variable.name, "desc has the name \"{}\" twice", variable.name);
      }
      names.push_back(&variable.name);
    }
  }
}

Formula read_formula(const tuff_expr_desc& desc) {
  require_reserved(desc.reserved);
  require(desc.formula != nullptr, "desc->formula is null");
  const size_t length = strnlen(desc.formula, kMaxFormula + 1);
  if (length > kMaxFormula) tuff::fail(TUFF_ERROR_LIMIT_EXCEEDED, "desc->formula is longer than {} bytes", kMaxFormula);
  Formula formula;
  formula.text.assign(desc.formula, length);
  formula.inputs = read_variables(desc.inputs, desc.input_count, 0, TUFF_EXPR_MAX_INPUTS, "input", true);
  formula.outputs = read_variables(desc.outputs, desc.output_count, 1, TUFF_EXPR_MAX_OUTPUTS, "output", false);
  check_names(formula);
  const auto buffers = static_cast<size_t>(std::count_if(formula.inputs.begin(), formula.inputs.end(),
                                                         [](const Variable& input) { return !input.scalar; })) +
                       formula.outputs.size();
  if (buffers > TUFF_EXPR_MAX_BUFFERS) {
    tuff::fail(TUFF_ERROR_LIMIT_EXCEEDED, "desc has {} inputs and outputs in buffers, at most {}", buffers,
               static_cast<int>(TUFF_EXPR_MAX_BUFFERS));
  }
  return formula;
}

void require_features(const Context& context, const Expression& expression) {
  if (expression.needs().f64 && !context.backend().supports("f64")) {
    tuff::fail(TUFF_ERROR_UNSUPPORTED, "desc->formula has f64, which the device does not compute");
  }
  if (expression.needs().int64 && !context.backend().supports("i64")) {
    tuff::fail(TUFF_ERROR_UNSUPPORTED, "desc->formula has 64-bit integers, which the device does not compute");
  }
}

// The operands of one call and the references that keep their buffers.
class Operands {
 public:
  Operands(const Ref<Context>& context, const tuff_expr_operand* operands, uint32_t count, size_t wanted,
           const char* kind) {
    require(count == wanted, "desc->{}_count is {}, the expression has {}", kind, count, wanted);
    require(count == 0 || operands != nullptr, "desc->{}s is null, {}_count is {}", kind, kind, count);
    for (uint32_t i = 0; i < count; ++i) {
      const tuff_expr_operand& given = operands[i];
      require(given.strided == 0 || given.strided == 1, "desc->{}s[{}].strided is {}, needs 0 or 1", kind, i,
              given.strided);
      require(given.reserved == 0, "desc->{}s[{}].reserved is {}, needs 0", kind, i, given.reserved);
      if (given.buffer != TUFF_NULL_HANDLE) {
        held_[i] =
            tuff::capi::acquire_element(context, given.buffer, kind[0] == 'i' ? "desc->inputs" : "desc->outputs", i);
      }
      operands_[i] = {held_[i] ? &held_[i]->buffer() : nullptr, given.first,
                      given.strided != 0 ? given.strides : nullptr, given.value, given.integer};
    }
  }
  const ExpressionOperand* data() const { return operands_.data(); }

 private:
  std::array<Ref<tuff::capi::BufferObject>, TUFF_EXPR_MAX_INPUTS> held_;
  std::array<ExpressionOperand, TUFF_EXPR_MAX_INPUTS> operands_{};
};

}  // namespace

extern "C" {

tuff_status tuff_expr_create(tuff_context context, const tuff_expr_desc* desc, tuff_expr* expr) {
  return guarded("tuff_expr_create", [&] {
    const auto owner = acquire_context(context);
    Formula formula = read_formula(read_structure(desc, "desc"));
    require(expr != nullptr, "expr is null");
    auto expression = std::make_shared<const Expression>(std::move(formula));
    require_features(*owner, *expression);
    Context::NewHandle handle(*owner, HandleKind::expr);
    *expr = handle.give(std::make_unique<ExprObject>(owner, std::move(expression)));
  });
}

tuff_status tuff_expr_run(tuff_stream stream, tuff_expr expr, const tuff_expr_run_desc* desc) {
  return guarded("tuff_expr_run", [&] {
    const auto target = acquire_stream(stream);
    const auto object = acquire_expr(expr);
    if (object->context().get() != target.context().get()) tuff::capi::fail_other_context("expr");
    const tuff_expr_run_desc call = read_structure(desc, "desc");
    const Expression& expression = object->expression();
    const Operands inputs(target.context(), call.inputs, call.input_count, expression.inputs().size(), "input");
    const Operands outputs(target.context(), call.outputs, call.output_count, expression.outputs().size(), "output");
    target->run(tuff::operations::expr({&expression, call.rank, call.shape, inputs.data(), outputs.data()}));
  });
}

tuff_status tuff_expr_destroy(tuff_expr expr) {
  if (expr == TUFF_NULL_HANDLE) return TUFF_OK;
  return guarded("tuff_expr_destroy", [&] {
    const auto object = tuff::handle_table().remove<ExprObject>(expr, HandleKind::expr);
    if (!object) fail_handle("expr", expr, "expr");
    object->context()->forget(expr);
  });
}

}  // extern "C"
