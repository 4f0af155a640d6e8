#include "kernels/expression/host_values.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>
#include <numeric>

#include "kernels/common/elements.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"
#include "planning/status.hpp"

namespace tuff::expression {
namespace {

// Every number of an integer type or bool, of either sign.
using Whole = Int128;

Whole whole_of(Value type, int64_t integer) {
  return type == Value::u64 ? Whole{static_cast<uint64_t>(integer)} : Whole{integer};
}
Whole least(Value type) {
  return type != Value::boolean && info(type).is_signed ? -(Whole{1} << (info(type).bits - 1)) : Whole{0};
}
Whole most(Value type) {
  const bool with_sign = type != Value::boolean && info(type).is_signed;
  return (Whole{1} << (info(type).bits - (with_sign ? 1 : 0))) - 1;
}

Whole saturated(Value type, double number) {
  if (std::isnan(number)) return 0;
  const double whole = std::trunc(number);
  if (whole >= 0x1p64) return most(type);
  if (whole <= -0x1p64) return least(type);
  return std::clamp(static_cast<Whole>(whole), least(type), most(type));
}

// A double that rounds to a float of at most 24 bits as the integer does: its 53 first bits, the last set if any that
// follow are.
double rounded_to_odd(Whole whole) {
  uint64_t magnitude = static_cast<uint64_t>(whole < 0 ? -whole : whole);
  const int down = std::bit_width(magnitude) - 53;
  if (down > 0) {
    const uint64_t rest = magnitude & ((uint64_t{1} << down) - 1);
    magnitude = (magnitude >> down | (rest != 0 ? 1 : 0)) << down;
  }
  const auto number = static_cast<double>(magnitude);
  return whole < 0 ? -number : number;
}

double to_f64(Whole whole) {
  return whole < 0 ? -static_cast<double>(static_cast<uint64_t>(-whole))
                   : static_cast<double>(static_cast<uint64_t>(whole));
}

double as(Value type, double number) { return type == Value::f32 ? double{static_cast<float>(number)} : number; }

double floor_remainder(double a, double b, Value type) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return std::signbit(rest) != std::signbit(b) ? as(type, rest + b) : rest;
}

// The steps of expression_functions.glsl, each rounded to the type.
double floor_quotient(double a, double b, Value type) {
  const double rest = std::fmod(a, b), plain = as(type, a / b);
  if (b == 0) return plain;
  double y = as(type, as(type, a - rest) / b);
  if (rest != 0 && std::signbit(rest) != std::signbit(b)) y = as(type, y - 1);
  if (y == 0) return std::copysign(0.0, plain);
  const double down = std::floor(y);
  return as(type, y - down) > 0.5 ? down + 1 : down;
}

double next_after(double a, double b, Value type) {
  if (type == Value::f64) return std::nextafter(a, b);
  return double{std::nextafterf(static_cast<float>(a), static_cast<float>(b))};
}

double log_add(double a, double b) {
  if (a == b) return a + std::log(2.0);
  return std::isnan(a) || std::isnan(b) ? a + b : std::fmax(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

// Functions whose formula in doubles would lose digits of an f64: activations far below 0, and the circular functions,
// in which glibc 2.36 is up to 14 ULP off beside multiples of pi / 2.
constexpr int32_t kWider[] = {TUFF_UNARY_GELU, TUFF_UNARY_GELU_TANH, TUFF_UNARY_SILU, TUFF_UNARY_MISH,
                              TUFF_UNARY_SIN,  TUFF_UNARY_COS,       TUFF_UNARY_TAN};
double wider_function(int32_t op, double x) {
  const long double wide = x;
  const auto weighted = [wide](long double t) { return static_cast<double>(wide / (1 + std::exp(-t))); };
  if (op == TUFF_UNARY_SIN) return static_cast<double>(std::sin(wide));
  if (op == TUFF_UNARY_COS) return static_cast<double>(std::cos(wide));
  if (op == TUFF_UNARY_TAN) return static_cast<double>(std::tan(wide));
  if (std::isinf(x)) return x < 0 ? -0.0 : x;
  switch (op) {
    case TUFF_UNARY_GELU:
      return static_cast<double>(wide * std::erfc(-wide * std::numbers::sqrt2_v<long double> / 2) / 2);
    case TUFF_UNARY_GELU_TANH:
      return weighted(std::sqrt(8 / std::numbers::pi_v<long double>) * (wide + 0.044715L * wide * wide * wide));
    case TUFF_UNARY_SILU: return weighted(wide);
    default: return static_cast<double>(wide * std::tanh(std::log1p(std::exp(wide))));  // mish
  }
}

double applied_to_floats(const Node& call, Value type, double a, double b) {
  switch (call.function->op) {
    case Op::unary: {
      const int32_t row = call.function->row;
      if (type == Value::f64 && std::find(std::begin(kWider), std::end(kWider), row) != std::end(kWider)) {
        return wider_function(row, a);
      }
      const double alpha = type == Value::f64 ? call.number : double{static_cast<float>(call.number)};
      return elementwise::find(elementwise::kUnaryOps, row)->apply(a, alpha);
    }
    case Op::binary: return elementwise::find(elementwise::kBinaryOps, call.function->row)->apply(a, b);
    case Op::add: return a + b;
    case Op::sub: return a - b;
    case Op::mul: return a * b;
    case Op::div: return a / b;
    case Op::floor_divide: return floor_quotient(a, b, type);
    case Op::mod: return floor_remainder(a, b, type);
    case Op::fmod: return std::fmod(a, b);
    case Op::neg: return -a;
    case Op::abs: return std::fabs(a);
    case Op::sign: return std::isnan(a) ? a : a == 0 ? 0 : std::copysign(1.0, a);  // 0 for -0, too
    case Op::max: return std::isnan(a) || a > b ? a : b;
    case Op::min: return std::isnan(a) || a < b ? a : b;
    case Op::sqrt: return std::sqrt(a);
    case Op::floor: return std::floor(a);
    case Op::ceil: return std::ceil(a);
    case Op::trunc: return std::trunc(a);
    case Op::round: return std::nearbyint(a);
    case Op::copysign: return std::copysign(a, b);
    case Op::nextafter: return next_after(a, b, type);
    case Op::atan2: return std::atan2(a, b);
    case Op::hypot: return std::hypot(a, b);
    case Op::logaddexp: return log_add(a, b);
    default: fail(TUFF_ERROR_INTERNAL, "{} has no function of floats", call.function->name);
  }
}

bool tested(Op op, double a, double b) {
  switch (op) {
    case Op::isnan: return std::isnan(a);
    case Op::isinf: return std::isinf(a);
    case Op::isfinite: return std::isfinite(a);
    case Op::signbit: return std::signbit(a);
    case Op::eq: return a == b;
    case Op::ne: return a != b;
    case Op::lt: return a < b;
    default: return a <= b;
  }
}

bool tested(Op op, Whole a, Whole b) {
  switch (op) {
    case Op::eq: return a == b;
    case Op::ne: return a != b;
    case Op::lt: return a < b;
    default: return a <= b;
  }
}

Whole floor_quotient(Whole a, Whole b) {
  if (b == 0) return 0;
  const Whole quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Whole greatest_divisor(Whole a, Whole b) {
  a = a < 0 ? -a : a;
  b = b < 0 ? -b : b;
  while (b != 0) {
    const Whole rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

Whole multiple(Whole a, Whole b) {
  const Whole divisor = greatest_divisor(a, b);
  if (divisor == 0) return 0;
  const Whole first = a / divisor;  // the product is wrapped, and can be beyond 127 bits
  return static_cast<uint64_t>(first < 0 ? -first : first) * static_cast<uint64_t>(b < 0 ? -b : b);
}

Whole power(Whole a, Whole b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0;
  // Modulo 2^64, of which every integer type is a part.
  uint64_t result = 1, base = static_cast<uint64_t>(a);
  for (auto left = static_cast<uint64_t>(b); left != 0; left >>= 1, base *= base) {
    if ((left & 1) != 0) result *= base;
  }
  return static_cast<int64_t>(result);
}

Whole shifted_right(Whole a, Whole b, Value type) {
  if (b >= 0 && b < Whole{info(type).bits}) return a >> static_cast<int>(b);
  return a < 0 ? -1 : 0;
}

Whole applied_to_integers(const Node& call, Value type, Whole a, Whole b) {
  switch (call.function->op) {
    case Op::add: return a + b;
    case Op::sub: return a - b;
    case Op::mul: return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    case Op::floor_divide: return floor_quotient(a, b);
    case Op::mod: return b == 0 ? 0 : a - floor_quotient(a, b) * b;
    case Op::fmod: return b == 0 ? 0 : a % b;
    case Op::neg: return -a;
    case Op::abs: return a < 0 ? -a : a;
    case Op::sign: return a < 0 ? -1 : a > 0 ? 1 : 0;
    case Op::max: return std::max(a, b);
    case Op::min: return std::min(a, b);
    case Op::bitand_: return a & b;
    case Op::bitor_: return a | b;
    case Op::bitxor: return a ^ b;
    case Op::bitnot: return ~a;
    case Op::shl: return b >= 0 && b < Whole{info(type).bits} ? a << static_cast<int>(b) : 0;
    case Op::shr: return shifted_right(a, b, type);
    case Op::gcd: return greatest_divisor(a, b);
    case Op::lcm: return multiple(a, b);
    case Op::popcount:
      return std::popcount(static_cast<uint64_t>(a) &
                           static_cast<uint64_t>(most(Value::u64) >> (64 - info(type).bits)));
    case Op::pow_integers: return power(a, b);
    default: fail(TUFF_ERROR_INTERNAL, "{} has no function of integers", call.function->name);
  }
}

}  // namespace

int64_t wrapped(Value type, int64_t integer) {
  const uint32_t bits = info(type).bits;
  if (bits == 64 || type == Value::boolean) return integer;
  const auto up = static_cast<uint64_t>(integer) << (64 - bits);
  return info(type).is_signed ? static_cast<int64_t>(up) >> (64 - bits) : static_cast<int64_t>(up >> (64 - bits));
}

HostValue converted(Value from, const HostValue& value, Value to) {
  if (from == to) return value;
  HostValue result;
  if (is_float(from)) {
    if (is_float(to)) {
      result.number = as(to, value.number);
    } else {
      result.integer =
          to == Value::boolean ? (value.number != 0 ? 1 : 0) : static_cast<int64_t>(saturated(to, value.number));
    }
    return result;
  }
  const Whole whole = whole_of(from, value.integer);
  if (to == Value::f32) {
    result.number = double{static_cast<float>(rounded_to_odd(whole))};
  } else if (to == Value::f64) {
    result.number = to_f64(whole);
  } else {
    result.integer =
        to == Value::boolean ? (whole != 0 ? 1 : 0) : static_cast<int64_t>(std::clamp(whole, least(to), most(to)));
  }
  return result;
}

HostValue rounded_to_dtype(Value from, const HostValue& value, int32_t dtype) {
  const double number = is_float(from) ? value.number : rounded_to_odd(whole_of(from, value.integer));
  return {dtype == TUFF_F16 ? double{Half(number)} : double{Bfloat(number)}, 0};
}

HostValue applied(const Node& call, Value of, const HostValue* args) {
  const HostValue second = call.arg_count > 1 ? args[1] : HostValue{};
  HostValue result;
  if (call.type == Value::boolean && of != Value::boolean) {
    result.integer = is_float(of)
                         ? tested(call.function->op, args[0].number, second.number)
                         : tested(call.function->op, whole_of(of, args[0].integer), whole_of(of, second.integer));
  } else if (is_float(of)) {
    result.number = as(of, applied_to_floats(call, of, args[0].number, second.number));
  } else {
    const Whole a = whole_of(of, args[0].integer), b = whole_of(of, second.integer);
    const bool tests = call.function->typing == Typing::compares;
    const Whole whole = tests ? Whole{tested(call.function->op, a, b)} : applied_to_integers(call, of, a, b);
    result.integer = wrapped(of, static_cast<int64_t>(static_cast<uint64_t>(whole)));
  }
  return result;
}

}  // namespace tuff::expression
