#include "kernels/expression/functions.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "planning/status.hpp"

namespace tuff::expression {
namespace {

// The files of kernels/elementwise/doubles/, as bits of TUFF_DOUBLES, each with those that it needs.
constexpr uint32_t kExponentials = 1, kLogarithms = 2, kTrigonometry = 4, kInverseTrigonometry = 8,
                   kErrors = 16 | kExponentials | kLogarithms, kActivations = 32 | kExponentials | kLogarithms,
                   kPower = 64 | kExponentials | kLogarithms;

// The rows of unary.def and binary.def that have a function of f64.
struct OfDoubles {
  std::string_view name;
  uint32_t files;
};
constexpr OfDoubles kOfDoubles[] = {
    {"relu", kActivations},
    {"sigmoid", kExponentials},
    {"tanh", kExponentials},
    {"exp", kExponentials},
    {"log", kLogarithms},
    {"gelu", kErrors},
    {"gelu_tanh", kActivations},
    {"silu", kActivations},
    {"leaky_relu", kActivations},
    {"elu", kActivations},
    {"hardswish", kActivations},
    {"softplus", kActivations},
    {"log_sigmoid", kActivations},
    {"sin", kTrigonometry},
    {"cos", kTrigonometry},
    {"erf", kErrors},
    {"square", kActivations},
    {"cube", kActivations},
    {"reciprocal", kActivations},
    {"rsqrt", kActivations},
    {"cbrt", kActivations},
    {"exp2", kExponentials},
    {"expm1", kExponentials},
    {"log2", kLogarithms},
    {"log10", kLogarithms},
    {"log1p", kLogarithms},
    {"tan", kTrigonometry},
    {"asin", kInverseTrigonometry},
    {"acos", kInverseTrigonometry},
    {"atan", kInverseTrigonometry},
    {"sinh", kExponentials},
    {"cosh", kExponentials},
    {"asinh", kLogarithms},
    {"acosh", kLogarithms},
    {"atanh", kLogarithms},
    {"erfc", kErrors},
    {"selu", kActivations},
    {"softsign", kActivations},
    {"hardsigmoid", kActivations},
    {"mish", kActivations},
    {"erfinv", kErrors},
    {"pow", kPower},
};
constexpr uint32_t doubles_of(std::string_view name) {
  for (const OfDoubles& row : kOfDoubles) {
    if (row.name == name) return row.files;
  }
  return 0;
}

constexpr Function kOwn[] = {
    {"add", Op::add, 2, Typing::numbers, 1, true},
    {"sub", Op::sub, 2, Typing::numbers, 1, true},
    {"mul", Op::mul, 2, Typing::numbers, 1, true},
    {"div", Op::div, 2, Typing::floats, 8},
    {"floor_divide", Op::floor_divide, 2, Typing::numbers, 60, true, kOwnRemainders},
    {"mod", Op::mod, 2, Typing::numbers, 60, false, kOwnRemainders},
    {"fmod", Op::fmod, 2, Typing::numbers, 60, false, kOwnRemainders},
    {"remainder", Op::fmod, 2, Typing::numbers, 60, false, kOwnRemainders},
    {"neg", Op::neg, 1, Typing::numbers, 1, true},
    {"abs", Op::abs, 1, Typing::numbers, 1, true},
    {"sign", Op::sign, 1, Typing::numbers, 2},
    {"max", Op::max, 2, Typing::numbers, 1},
    {"min", Op::min, 2, Typing::numbers, 1},
    {"sqrt", Op::sqrt, 1, Typing::floats, 4},
    {"floor", Op::floor, 1, Typing::whole, 4},
    {"ceil", Op::ceil, 1, Typing::whole, 4},
    {"trunc", Op::trunc, 1, Typing::whole, 4},
    {"round", Op::round, 1, Typing::whole, 4},
    {"copysign", Op::copysign, 2, Typing::floats, 2},
    {"nextafter", Op::nextafter, 2, Typing::floats, 10},
    {"atan2", Op::atan2, 2, Typing::f32, 40, false, kOwnAtan2, 0, 0, "", kInverseTrigonometry},
    {"hypot", Op::hypot, 2, Typing::f32, 20, false, kOwnHypot, 0, 0, "", kPower},
    {"logaddexp", Op::logaddexp, 2, Typing::f32, 60, false, kOwnLogaddexp},
    {"isnan", Op::isnan, 1, Typing::classifies, 1},
    {"isinf", Op::isinf, 1, Typing::classifies, 1},
    {"isfinite", Op::isfinite, 1, Typing::classifies, 1},
    {"signbit", Op::signbit, 1, Typing::classifies, 1},
    {"eq", Op::eq, 2, Typing::compares, 4},
    {"ne", Op::ne, 2, Typing::compares, 4},
    {"lt", Op::lt, 2, Typing::compares, 4},
    {"le", Op::le, 2, Typing::compares, 4},
    {"bitand", Op::bitand_, 2, Typing::bits, 1},
    {"bitor", Op::bitor_, 2, Typing::bits, 1},
    {"xor", Op::bitxor, 2, Typing::bits, 1},
    {"bitnot", Op::bitnot, 1, Typing::bits, 1, true},
    {"shl", Op::shl, 2, Typing::integers, 4, true},
    {"shr", Op::shr, 2, Typing::integers, 4},
    {"gcd", Op::gcd, 2, Typing::integers, 200, true},
    {"lcm", Op::lcm, 2, Typing::integers, 200, true},
    {"popcount", Op::popcount, 1, Typing::integers, 8},
    // pow() of integers; floats have a row of binary.def.
    {"", Op::pow_integers, 2, Typing::integers, 40, true},
};

constexpr Function kRows[] = {
#define UNARY(number, NAME, name, file, ulps, measured, measured_gpu, flops, alpha, low, high, y, dy) \
  {#name, Op::unary, 1, Typing::f32, flops, false, 0, number, alpha, #file, doubles_of(#name)},
#include "kernels/elementwise/unary.def"
#define BINARY(number, NAME, name, python, file, ulps, measured, measured_gpu, flops, integers, low, high, y) \
  {#name, Op::binary, 2, Typing::f32, flops, false, 0, number, 0, #file, doubles_of(#name)},
#include "kernels/elementwise/binary.def"
};

}  // namespace

const Function* find_function(std::string_view name) {
  const auto named = [name](const Function& function) { return name == function.name; };
  if (const auto* own = std::find_if(std::begin(kOwn), std::end(kOwn), named); own != std::end(kOwn)) return own;
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), named);
  return row != std::end(kRows) ? row : nullptr;
}

const Function& function_of(Op op) {
  const auto* found = std::find_if(std::begin(kOwn), std::end(kOwn), [op](const Function& f) { return f.op == op; });
  if (found == std::end(kOwn)) fail(TUFF_ERROR_INTERNAL, "function {} has no row", static_cast<int>(op));
  return *found;
}

uint32_t file_bit(std::string_view file) {
  if (file.empty() || file == "math") return 0;
  std::array<std::string_view, std::size(kRows)> seen;
  size_t count = 0;
  for (const Function& row : kRows) {
    const std::string_view name = row.file;
    const auto end = seen.begin() + static_cast<ptrdiff_t>(count);
    if (name == "math" || std::find(seen.begin(), end, name) != end) continue;
    if (name == file) return 1u << count;
    seen[count++] = name;
  }
  fail(TUFF_ERROR_INTERNAL, "no row of unary.def or binary.def is in {}", file);
}

}  // namespace tuff::expression
