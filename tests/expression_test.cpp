// Expressions: every function and type against C++'s own arithmetic, operands with strides, and calls that fail.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "support/expression.hpp"

namespace tuff_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

template <typename T>
constexpr int32_t type_of() {
  if constexpr (std::is_same_v<T, float>) return TUFF_F32;
  if constexpr (std::is_same_v<T, double>) return TUFF_F64;
  if constexpr (std::is_same_v<T, int8_t>) return TUFF_I8;
  if constexpr (std::is_same_v<T, int16_t>) return TUFF_I16;
  if constexpr (std::is_same_v<T, int32_t>) return TUFF_I32;
  if constexpr (std::is_same_v<T, int64_t>) return TUFF_I64;
  if constexpr (std::is_same_v<T, uint8_t>) return TUFF_U8;
  if constexpr (std::is_same_v<T, uint16_t>) return TUFF_U16;
  if constexpr (std::is_same_v<T, uint32_t>) return TUFF_U32;
  return TUFF_U64;
}

template <typename T>
std::vector<T> integers(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(count);
  constexpr T kMost = std::numeric_limits<T>::max(), kLeast = std::numeric_limits<T>::min();
  const T edges[] = {0, 1, static_cast<T>(-1), kMost, kLeast, static_cast<T>(kMost - 1), static_cast<T>(kLeast + 1),
                     2, 7};
  for (T& value : values) {
    const uint64_t bits = random();
    value = bits % 3 == 0   ? edges[random() % std::size(edges)]
            : bits % 3 == 1 ? static_cast<T>(random() % 13)
                            : static_cast<T>(random());
  }
  return values;
}

std::vector<float> floats(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  const float edges[] = {0.0f,       -0.0f, 1,     -1,     0.5f,   -0.5f,      2.5f, 3.5f, kInfinity,
                         -kInfinity, kNaN,  3e38f, -3e38f, 1e-30f, 8388609.0f, 7,    3};
  std::uniform_real_distribution<float> moderate(-10, 10), exponent(-30, 30);
  std::vector<float> values(count);
  for (float& value : values) {
    const uint64_t kind = random() % 4;
    value = kind == 0   ? edges[random() % std::size(edges)]
            : kind == 1 ? std::exp2(exponent(random)) * (random() % 2 == 0 ? 1.0f : -1.0f)
            : kind == 2 ? std::floor(moderate(random))
                        : moderate(random);
  }
  return values;
}

// The results of each formula. Eight of them are one expression, since a device compiles each.
template <typename In, typename Out>
std::vector<std::vector<Out>> computed(tuff_context context, const std::vector<const char*>& formulas,
                                       const std::vector<In>& a, const std::vector<In>& b,
                                       int32_t output = type_of<Out>()) {
  const char* const names[] = {"y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7"};
  const OwnBuffer x = uploaded(context, a), z = uploaded(context, b);
  std::vector<std::vector<Out>> results;
  for (size_t begin = 0; begin < formulas.size(); begin += 8) {
    const size_t count = std::min<size_t>(8, formulas.size() - begin);
    std::string text;
    std::vector<Named> outputs;
    std::vector<OwnBuffer> buffers;
    std::vector<tuff_expr_operand> operands;
    for (size_t i = 0; i < count; ++i) {
      text += std::string(names[i]) + " = " + formulas[begin + i] + ";\n";
      outputs.push_back({names[i], output});
      buffers.emplace_back(context, a.size() * sizeof(Out));
      operands.push_back(dense(buffers.back()));
    }
    const OwnExpr expr(context, text.c_str(), {{"a", type_of<In>()}, {"b", type_of<In>()}}, outputs);
    EXPECT_OK(expr.run(context, {a.size()}, {dense(x), dense(z)}, operands)) << text;
    for (const OwnBuffer& buffer : buffers) results.push_back(downloaded<Out>(context, buffer, a.size()));
  }
  return results;
}

template <typename Rows>
std::vector<const char*> formulas_of(const Rows& rows) {
  std::vector<const char*> formulas;
  for (const auto& row : rows) {
    if constexpr (requires { row.formula; }) {
      formulas.push_back(row.formula);
    } else {
      formulas.push_back(row.first);
    }
  }
  return formulas;
}

class Expression : public OnBackend {};

// --- Integers

using Big = __int128;

Big quotient(Big a, Big b) { return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }
Big power(Big a, Big b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1;
  // b reaches 2^64: by its bits.
  uint64_t base = static_cast<uint64_t>(a);
  for (auto bits = static_cast<uint64_t>(b); bits != 0; bits /= 2, base *= base) result *= bits % 2 == 1 ? base : 1;
  return static_cast<Big>(result);
}
Big divisor(Big a, Big b) {
  for (a = a < 0 ? -a : a, b = b < 0 ? -b : b; b != 0;) a %= b, std::swap(a, b);
  return a;
}
Big magnitude(Big a) { return a < 0 ? -a : a; }

struct IntegerCase {
  const char* formula;
  std::function<Big(Big, Big, int)> value;  // of a, b and the bits of the type
};

const std::vector<IntegerCase>& integer_cases() {
  static const std::vector<IntegerCase>& rows = *new std::vector<IntegerCase>{
      {"a + b", [](Big a, Big b, int) { return a + b; }},
      {"a - b", [](Big a, Big b, int) { return a - b; }},
      {"a * b", [](Big a, Big b, int) { return static_cast<Big>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }},
      {"a // b", [](Big a, Big b, int) { return quotient(a, b); }},
      {"a % b", [](Big a, Big b, int) { return b == 0 ? 0 : a - quotient(a, b) * b; }},
      {"fmod(a, b)", [](Big a, Big b, int) { return b == 0 ? 0 : a % b; }},
      {"a ** b", [](Big a, Big b, int) { return power(a, b); }},
      {"-a", [](Big a, Big, int) { return -a; }},
      {"abs(a)", [](Big a, Big, int) { return magnitude(a); }},
      {"sign(a)", [](Big a, Big, int) { return Big{a > 0} - Big{a < 0}; }},
      {"max(a, b)", [](Big a, Big b, int) { return a > b ? a : b; }},
      {"min(a, b)", [](Big a, Big b, int) { return a < b ? a : b; }},
      {"a & b", [](Big a, Big b, int) { return a & b; }},
      {"a | b", [](Big a, Big b, int) { return a | b; }},
      {"xor(a, b)", [](Big a, Big b, int) { return a ^ b; }},
      {"~a", [](Big a, Big, int) { return ~a; }},
      {"a << b", [](Big a, Big b, int bits) { return b < 0 || b >= bits ? Big{0} : a << static_cast<int>(b); }},
      {"a >> b",
       [](Big a, Big b, int bits) { return b < 0 || b >= bits ? Big{a < 0 ? -1 : 0} : a >> static_cast<int>(b); }},
      {"gcd(a, b)", [](Big a, Big b, int) { return divisor(a, b); }},
      {"lcm(a, b)",
       [](Big a, Big b, int) {
         const Big common = divisor(a, b);
         return common == 0 ? Big{0}
                            : static_cast<Big>(static_cast<uint64_t>(magnitude(a) / common) *
                                               static_cast<uint64_t>(magnitude(b)));
       }},
      {"popcount(a)",
       [](Big a, Big, int bits) { return Big{std::popcount(static_cast<uint64_t>(a) << (64 - bits))}; }},
      {"clamp(a, 3, 100)", [](Big a, Big, int) { return std::min(std::max(a, Big{3}), Big{100}); }},
      {"where(a < b, a, b)", [](Big a, Big b, int) { return a < b ? a : b; }},
      {"a >= b ? a : b", [](Big a, Big b, int) { return a >= b ? a : b; }},
      {"square(a) + fma(a, b, 5)",
       [](Big a, Big b, int) {
         return static_cast<Big>(static_cast<uint64_t>(a) * static_cast<uint64_t>(a) +
                                 static_cast<uint64_t>(a) * static_cast<uint64_t>(b) + 5);
       }},
      {"floor(a + b) - 0x10", [](Big a, Big b, int) { return a + b - 16; }},
  };
  return rows;
}

template <typename T>
void test_integers(tuff_context context) {
  const std::vector<T> a = integers<T>(203, 1), b = integers<T>(203, 2);
  const auto results = computed<T, T>(context, formulas_of(integer_cases()), a, b);
  for (size_t k = 0; k < results.size(); ++k) {
    const IntegerCase& row = integer_cases()[k];
    const std::vector<T>& y = results[k];
    for (size_t i = 0; i < a.size(); ++i) {
      const T expected = static_cast<T>(static_cast<uint64_t>(row.value(a[i], b[i], sizeof(T) * 8)));
      ASSERT_EQ(y[i], expected) << row.formula << " of " << +a[i] << " and " << +b[i];
    }
  }
  const std::pair<const char*, bool (*)(T, T)> comparisons[] = {
      {"a == b", [](T x, T z) { return x == z; }},
      {"a != b", [](T x, T z) { return x != z; }},
      {"a < b", [](T x, T z) { return x < z; }},
      {"a <= b", [](T x, T z) { return x <= z; }},
      {"a > b", [](T x, T z) { return x > z; }},
      {"a >= b", [](T x, T z) { return x >= z; }},
      {"a && b", [](T x, T z) { return x != 0 && z != 0; }},
      {"a || b", [](T x, T z) { return x != 0 || z != 0; }},
      {"!a", [](T x, T) { return x == 0; }},
      {"signbit(a)", [](T x, T) { return x < 0; }},
      {"isfinite(a) & !isnan(b)", [](T, T) { return true; }},
  };
  const auto tested = computed<T, uint8_t>(context, formulas_of(comparisons), a, b, TUFF_BOOL);
  for (size_t k = 0; k < tested.size(); ++k) {
    const auto& [formula, value] = comparisons[k];
    const std::vector<uint8_t>& y = tested[k];
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(y[i], value(a[i], b[i]) ? 1 : 0) << formula << " of " << +a[i] << " and " << +b[i];
    }
  }
}

TEST_P(Expression, IntegersOf8Bits) { test_integers<int8_t>(context()), test_integers<uint8_t>(context()); }
TEST_P(Expression, IntegersOf16Bits) { test_integers<int16_t>(context()), test_integers<uint16_t>(context()); }
TEST_P(Expression, IntegersOf32Bits) { test_integers<int32_t>(context()), test_integers<uint32_t>(context()); }
TEST_P(Expression, IntegersOf64Bits) {
  if (!computes_int64(context())) GTEST_SKIP() << "the device has no 64-bit integers";
  test_integers<int64_t>(context()), test_integers<uint64_t>(context());
}

// --- Floats

// Python's rules.
float remainder_of(float a, float b) {
  const float rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0f, b);
  return (rest < 0) != std::signbit(b) ? rest + b : rest;
}
float quotient_of(float a, float b) {
  if (b == 0) return a / b;
  float rest = std::fmod(a, b), y = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) y -= 1;
  if (y == 0) return std::copysign(0.0f, a / b);
  const float down = std::floor(y);
  return y - down > 0.5f ? down + 1 : down;
}

struct FloatCase {
  const char* formula;
  std::function<double(float, float)> value;
  double ulps = 0;  // 0: every bit
  double absolute = 0;
};

TEST_P(Expression, Floats) {
  const FloatCase rows[] = {
      {"a + b", [](float a, float b) { return a + b; }},
      {"a - b", [](float a, float b) { return a - b; }},
      {"a * b", [](float a, float b) { return a * b; }},
      {"a * b + a",
       [](float a, float b) {
         volatile float product = a * b;
         return product + a;
       }},
      {"fma(a, b, a)",
       [](float a, float b) {
         volatile float product = a * b;
         return product + a;
       }},
      {"a / b", [](float a, float b) { return a / b; }, 1.5},
      {"-a", [](float a, float) { return -a; }},
      {"abs(a)", [](float a, float) { return std::fabs(a); }},
      {"sign(a)", [](float a, float) { return a == 0 || std::isnan(a) ? a : std::copysign(1.0f, a); }},
      {"floor(a)", [](float a, float) { return std::floor(a); }},
      {"ceil(a)", [](float a, float) { return std::ceil(a); }},
      {"trunc(a)", [](float a, float) { return std::trunc(a); }},
      {"round(a)", [](float a, float) { return std::nearbyint(a); }},
      {"sqrt(a)", [](float a, float) { return std::sqrt(a); }, 1},
      {"max(a, b)",
       [](float a, float b) {
         return std::isnan(a) || std::isnan(b) ? kNaN : a > b ? a : a == b ? (std::signbit(a) ? b : a) : b;
       }},
      {"min(a, b)",
       [](float a, float b) {
         return std::isnan(a) || std::isnan(b) ? kNaN : a < b ? a : a == b ? (std::signbit(a) ? a : b) : b;
       }},
      {"clamp(a, -2, 3.5)", [](float a, float) { return std::isnan(a) ? a : std::min(std::max(a, -2.0f), 3.5f); }},
      {"copysign(a, b)", [](float a, float b) { return std::copysign(a, b); }},
      {"nextafter(a, b)", [](float a, float b) { return std::nextafter(a, b); }},
      {"fmod(a, b)", [](float a, float b) { return std::fmod(a, b); }},
      {"remainder(a, b)", [](float a, float b) { return std::fmod(a, b); }},
      {"a % b", remainder_of},
      {"mod(a, b)", remainder_of},
      {"atan2(a, b)", [](float a, float b) { return std::atan2(double{a}, double{b}); }, 4},
      {"hypot(a, b)", [](float a, float b) { return std::hypot(double{a}, double{b}); }, 4},
      {"logaddexp(a, b)",
       [](float a, float b) {
         if (a == b) return a + std::log(2.0);
         return std::max(a, b) + std::log1p(std::exp(-std::fabs(double{a} - b)));
       },
       4, 4e-7},
      {"a ** 2", [](float a, float) { return a * a; }},
      {"a ^ 3", [](float a, float) { return (a * a) * a; }},
      {"a ** 0.5", [](float a, float) { return std::sqrt(a); }, 1},
      {"lerp(a, b, 0.25)",
       [](float a, float b) {
         volatile float t = 0.25f * (b - a);
         return a + t;
       }},
      {"where(a < b, a, -b)", [](float a, float b) { return a < b ? a : -b; }},
      {"a != a ? 0 : a", [](float a, float) { return std::isnan(a) ? 0.0f : a; }},
      {"f16(a)", [](float a, float) { return a; }, 0x1p13},
      {"bf16(a)", [](float a, float) { return a; }, 0x1p16},
  };
  const std::vector<float> a = floats(1003, 3), b = floats(1003, 4);
  const auto results = computed<float, float>(context(), formulas_of(rows), a, b);
  for (size_t k = 0; k < results.size(); ++k) {
    const FloatCase& row = rows[k];
    const std::string formula = row.formula;
    const std::vector<float>& y = results[k];
    for (size_t i = 0; i < a.size(); ++i) {
      if (formula == "f16(a)" && std::fabs(a[i]) > 65504) continue;     // overflows; Casts tests that
      if (formula == "f16(a)" && std::fabs(a[i]) < 0x1p-14f) continue;  // denormal
      const double exact = row.value(a[i], b[i]);
      const auto expected = static_cast<float>(exact);
      const std::string what = formula + " of " + std::to_string(a[i]) + " and " + std::to_string(b[i]);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(y[i])) << what << " is " << y[i];
        continue;
      }
      // Devices may flush denormal results.
      if (std::fabs(expected) < std::numeric_limits<float>::min() &&
          std::fabs(y[i]) <= std::numeric_limits<float>::min())
        continue;
      if (row.ulps == 0) {
        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(expected))
            << what << " is " << y[i] << ", needs " << expected;
      } else if (std::isinf(expected)) {
        ASSERT_EQ(y[i], expected) << what;
      } else {
        const double unit = std::ldexp(1.0, std::max(std::ilogb(expected), -126) - 23);
        ASSERT_LE(std::fabs(y[i] - exact), row.ulps * unit + row.absolute) << what << " is " << y[i];
      }
    }
  }
}

TEST_P(Expression, FloorOfAQuotient) {
  const std::vector<float> a = floats(1003, 5), b = floats(1003, 6);
  const std::vector<float> y = computed<float, float>(context(), {"a // b"}, a, b)[0];
  for (size_t i = 0; i < a.size(); ++i) {
    const float expected = quotient_of(a[i], b[i]);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(y[i])) << a[i] << " // " << b[i];
    } else if (vulkan() && std::isfinite(expected)) {  // where division is not exact, one more rounding
      ASSERT_LE(std::fabs(double{y[i]} - expected), std::fabs(expected) * 0x1p-22) << a[i] << " // " << b[i];
    } else {
      ASSERT_EQ(y[i], expected) << a[i] << " // " << b[i];
    }
  }
}

TEST_P(Expression, TestsOfFloats) {
  const std::pair<const char*, bool (*)(float, float)> rows[] = {
      {"isnan(a)", [](float a, float) { return std::isnan(a); }},
      {"isinf(a)", [](float a, float) { return std::isinf(a); }},
      {"isfinite(a)", [](float a, float) { return std::isfinite(a); }},
      {"signbit(a)", [](float a, float) { return std::signbit(a); }},
      {"a == b", [](float a, float b) { return a == b; }},
      {"a != b", [](float a, float b) { return a != b; }},
      {"a < b", [](float a, float b) { return a < b; }},
      {"a <= b", [](float a, float b) { return a <= b; }},
      {"a > b", [](float a, float b) { return a > b; }},
      {"a >= b", [](float a, float b) { return a >= b; }},
      {"a && b", [](float a, float b) { return a != 0 && b != 0; }},
      {"a < 0 || b < 0 && a > 1", [](float a, float b) { return a < 0 || (b < 0 && a > 1); }},
      {"!(a < b)", [](float a, float b) { return !(a < b); }},
      {"(a < b) == (b < 1)", [](float a, float b) { return (a < b) == (b < 1); }},
      {"xor(a < b, true)", [](float a, float b) { return !(a < b); }},
      {"~(a < b)", [](float a, float b) { return !(a < b); }},
      {"bool(a)", [](float a, float) { return a != 0; }},
      {"a == inf || a == -inf", [](float a, float) { return std::isinf(a); }},
  };
  std::vector<float> a = floats(503, 7), b = floats(503, 8);
  for (size_t i = 0; i < a.size(); i += 5) b[i] = a[i];
  a[11] = 1e-42f, b[11] = 0, a[12] = -1e-42f, b[12] = 1e-42f;  // denormals are not zero
  const auto results = computed<float, uint8_t>(context(), formulas_of(rows), a, b, TUFF_BOOL);
  for (size_t k = 0; k < results.size(); ++k) {
    const auto& [formula, value] = rows[k];
    const std::vector<uint8_t>& y = results[k];
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(y[i], value(a[i], b[i]) ? 1 : 0) << formula << " of " << a[i] << " and " << b[i];
    }
  }
}

// The same functions as tuff_unary() and tuff_binary(), to the bit.
TEST_P(Expression, RowsOfTheTables) {
  std::vector<float> a = floats(1000, 9), b = floats(1000, 10);
  const OwnBuffer x = uploaded(context(), a), z = uploaded(context(), b), y(context(), 4000), expected(context(), 4000);
  const auto compare = [&](const char* name) {
    const std::vector<uint32_t> left = downloaded<uint32_t>(context(), y, 1000),
                                right = downloaded<uint32_t>(context(), expected, 1000);
    for (size_t i = 0; i < a.size(); ++i) {
      const bool nans = std::isnan(std::bit_cast<float>(left[i])) && std::isnan(std::bit_cast<float>(right[i]));
      ASSERT_TRUE(nans || left[i] == right[i])
          << name << " of " << a[i] << ", " << b[i] << ": " << std::bit_cast<float>(left[i]) << ", needs "
          << std::bit_cast<float>(right[i]);
    }
  };
#define UNARY(number, NAME, name, ...)                                                \
  {                                                                                   \
    const OwnExpr expr(context(), #name "(a)", {{"a", TUFF_F32}}, {{"y", TUFF_F32}}); \
    ASSERT_OK(expr.run(context(), {1000}, {dense(x)}, {dense(y)}));                   \
    ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_##NAME, x, expected, 1000)); \
    compare(#name);                                                                   \
  }
#include "kernels/elementwise/unary.def"
#define BINARY(number, NAME, name, ...)                                                                   \
  {                                                                                                       \
    const OwnExpr expr(context(), #name "(a, b)", {{"a", TUFF_F32}, {"b", TUFF_F32}}, {{"y", TUFF_F32}}); \
    ASSERT_OK(expr.run(context(), {1000}, {dense(x), dense(z)}, {dense(y)}));                             \
    ASSERT_OK(tuff_binary(context(), TUFF_F32, TUFF_BINARY_##NAME, x, z, expected, 1000));                \
    compare(#name);                                                                                       \
  }
#include "kernels/elementwise/binary.def"
  const OwnExpr leaky(context(), "leaky_relu(a, 0.25) + elu(a, 2)", {{"a", TUFF_F32}}, {{"y", TUFF_F32}});
  ASSERT_OK(leaky.run(context(), {1000}, {dense(x)}, {dense(y)}));
  const std::vector<float> got = downloaded<float>(context(), y, 1000);
  for (size_t i = 0; i < a.size(); ++i) {
    const double value = a[i] < 0 ? 0.25 * a[i] + 2 * std::expm1(double{a[i]}) : double{a[i]} + a[i];
    if (std::isfinite(value) && std::fabs(value) < 1e38) {
      ASSERT_NEAR(got[i], value, 1e-6 * (1 + std::fabs(value))) << a[i];
    }
  }
}

TEST_P(Expression, F64) {
  if (!vulkan() || properties_of(context()).supports_f64 != 0) {
    std::vector<double> a, b;
    for (const float value : floats(503, 11)) a.push_back(value * (1 + 1e-12));
    for (const float value : floats(503, 12)) b.push_back(value * (1 + 3e-13));
    const bool has_int64 = computes_int64(context());
    const std::pair<const char*, double (*)(double, double)> rows[] = {
        {"a + b * a",
         [](double x, double z) {
           volatile double product = z * x;
           return x + product;
         }},
        {"a / b", [](double x, double z) { return x / z; }},
        {"abs(a) - sqrt(abs(b))", [](double x, double z) { return std::fabs(x) - std::sqrt(std::fabs(z)); }},
        {"floor(a) + ceil(b)", [](double x, double z) { return std::floor(x) + std::ceil(z); }},
        {"round(a) - trunc(b)", [](double x, double z) { return std::nearbyint(x) - std::trunc(z); }},
        {"a < b ? a * 0.1 : -1/3 - a", [](double x, double z) { return x < z ? x * 0.1 : -1.0 / 3 - x; }},
        {"(a - b) ** 2", [](double x, double z) { return (x - z) * (x - z); }},
        {"copysign(a, b) + sign(a)",
         [](double x, double z) {
           return std::copysign(x, z) + (x == 0 || std::isnan(x) ? x : std::copysign(1.0, x));
         }},
        {"2 * pi * a", [](double x, double) { return 2 * 3.14159265358979323846 * x; }},
        {"fmod(a, b)", [](double x, double z) { return std::fmod(x, z); }},
    };
    auto formulas = formulas_of(rows);
    if (!has_int64) formulas.pop_back();  // fmod
    const auto results = computed<double, double>(context(), formulas, a, b);
    for (size_t k = 0; k < results.size(); ++k) {
      const auto& [formula, value] = rows[k];
      const std::vector<double>& y = results[k];
      for (size_t i = 0; i < a.size(); ++i) {
        const double expected = value(a[i], b[i]);
        ASSERT_TRUE(y[i] == expected || (std::isnan(y[i]) && std::isnan(expected)))
            << formula << " of " << a[i] << " and " << b[i] << " is " << y[i] << ", needs " << expected;
      }
    }
  } else {
    tuff_expr expr = 0;
    EXPECT_FAILS(create_expr(context(), "a", {{"a", TUFF_F64}}, {{"y", TUFF_F64}}, &expr), TUFF_ERROR_UNSUPPORTED,
                 "tuff_expr_create", "f64");
  }
}

// An assignment converts as tuff_cast() does, to the bit.
TEST_P(Expression, Casts) {
  const char* const names[] = {"y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7"};
  const int32_t dtypes[] = {TUFF_F32, TUFF_F16, TUFF_BF16, TUFF_F64, TUFF_I32, TUFF_U32, TUFF_I8, TUFF_U8};
  std::mt19937_64 random(5);
  std::vector<uint64_t> bits(512);
  for (uint64_t& word : bits) word = random();
  std::vector<double> numbers;
  for (const float value : floats(512, 13)) numbers.push_back(value * (1 + 1e-9));
  for (size_t i = 0; i < 20; ++i)
    numbers[i] = (i % 2 == 0 ? 1 : -1) * std::ldexp(1.0 + std::ldexp(1.0, -12), static_cast<int>(i) - 10);
  OwnBuffer f64 = uploaded(context(), numbers);
  const bool has_f64 = properties_of(context()).supports_f64 != 0;
  for (const int32_t from : dtypes) {
    if (from == TUFF_F64 && !has_f64) continue;
    const std::vector<uint64_t> zeros(512);
    const OwnBuffer raw = uploaded(context(), bits), source = uploaded(context(), zeros);
    const bool is_float = from <= TUFF_F64;
    if (is_float) {
      ASSERT_OK(tuff_cast(context(), TUFF_F64, from, f64, source, 512));
    } else {
      ASSERT_OK(tuff_copy_dtod(context(), source, 0, raw, 0, 4096));
    }
    std::vector<int32_t> targets;
    std::string formula;
    std::vector<Named> outputs;
    std::vector<OwnBuffer> buffers;
    std::vector<tuff_expr_operand> operands;
    for (size_t i = 0; i < std::size(dtypes); ++i) {
      if (dtypes[i] == TUFF_F64 && !has_f64) continue;
      targets.push_back(dtypes[i]);
      formula += std::string(names[i]) + " = a;";
      outputs.push_back({names[i], dtypes[i]});
      buffers.push_back(uploaded(context(), zeros));
      operands.push_back(dense(buffers.back()));
    }
    const OwnExpr expr(context(), formula.c_str(), {{"a", from}}, outputs);
    ASSERT_OK(expr.run(context(), {511}, {dense(source)}, operands));
    for (size_t k = 0; k < targets.size(); ++k) {
      const int32_t to = targets[k];
      const OwnBuffer expected = uploaded(context(), zeros);
      ASSERT_OK(tuff_cast(context(), from, to, source, expected, 511));
      const std::vector<uint8_t> left = downloaded<uint8_t>(context(), buffers[k], 4096),
                                 right = downloaded<uint8_t>(context(), expected, 4096);
      const size_t size = to == TUFF_F64                      ? 8
                          : to == TUFF_F16 || to == TUFF_BF16 ? 2
                          : to == TUFF_I8 || to == TUFF_U8    ? 1
                                                              : 4;
      for (size_t i = 0; i < 511; ++i) {
        if (is_float && to <= TUFF_F64 && std::isnan(numbers[i])) continue;  // payloads
        if (is_float && std::fabs(numbers[i]) < 2e-38) continue;             // a device may flush denormals of f32
        ASSERT_EQ(std::memcmp(&left[i * size], &right[i * size], size), 0)
            << "from " << from << " to " << to << ", element " << i << " of " << numbers[i];
      }
    }
  }
}

TEST_P(Expression, TypesOfMixedOperands) {
  // u8 and i8 give i16: no overflow, and the output saturates.
  const std::vector<uint8_t> a = {200, 255, 0, 7};
  const std::vector<int8_t> b = {-100, 127, -128, -7};
  const OwnBuffer x = uploaded(context(), a), z = uploaded(context(), b), y(context(), 16);
  const OwnExpr sum(context(), "a + b", {{"a", TUFF_U8}, {"b", TUFF_I8}}, {{"y", TUFF_I32}});
  ASSERT_OK(sum.run(context(), {4}, {dense(x), dense(z)}, {dense(y)}));
  EXPECT_EQ(downloaded<int32_t>(context(), y, 4), (std::vector<int32_t>{100, 382, -128, 0}));
  const OwnExpr saturated(context(), "a + b", {{"a", TUFF_U8}, {"b", TUFF_I8}}, {{"y", TUFF_U8}});
  ASSERT_OK(saturated.run(context(), {4}, {dense(x), dense(z)}, {dense(y)}));
  EXPECT_EQ(downloaded<uint8_t>(context(), y, 4), (std::vector<uint8_t>{100, 255, 0, 0}));
  const OwnExpr wraps(context(), "a + a", {{"a", TUFF_U8}}, {{"y", TUFF_I32}});
  ASSERT_OK(wraps.run(context(), {4}, {dense(x)}, {dense(y)}));
  EXPECT_EQ(downloaded<int32_t>(context(), y, 4), (std::vector<int32_t>{144, 254, 0, 14}));
  const OwnExpr ratio(context(), "a / 2", {{"a", TUFF_U8}}, {{"y", TUFF_F32}});
  ASSERT_OK(ratio.run(context(), {4}, {dense(x)}, {dense(y)}));
  EXPECT_EQ(downloaded<float>(context(), y, 4), (std::vector<float>{100, 127.5f, 0, 3.5f}));
}

TEST_P(Expression, ScalarsOfEveryType) {
  const std::vector<int32_t> a = {1, 2, 3, 4, 5};
  const OwnBuffer x = uploaded(context(), a), y(context(), 20), z(context(), 20);
  const OwnExpr expr(context(), "u = s * a + t; v = where(flag, a, c) + h",
                     {{"a", TUFF_I32},
                      {"s", TUFF_F32, TUFF_EXPR_SCALAR},
                      {"t", TUFF_F16, TUFF_EXPR_SCALAR},
                      {"flag", TUFF_BOOL, TUFF_EXPR_SCALAR},
                      {"c", TUFF_I8, TUFF_EXPR_SCALAR},
                      {"h", TUFF_U16, TUFF_EXPR_SCALAR}},
                     {{"u", TUFF_F32}, {"v", TUFF_I32}});
  for (const int64_t flag : {0, 1}) {
    ASSERT_OK(expr.run(context(), {5}, {dense(x), scalar(0.5), scalar(0.25), whole(flag), whole(-3), whole(65535)},
                       {dense(y), dense(z)}));
    EXPECT_EQ(downloaded<float>(context(), y, 5), (std::vector<float>{0.75f, 1.25f, 1.75f, 2.25f, 2.75f}));
    std::vector<int32_t> expected = {65536, 65537, 65538, 65539, 65540};
    if (flag == 0) expected.assign(5, 65532);
    EXPECT_EQ(downloaded<int32_t>(context(), z, 5), expected);
  }
  EXPECT_FAILS(expr.run(context(), {5}, {dense(x), scalar(0.5), scalar(0.25), whole(0), whole(128), whole(0)},
                        {dense(y), dense(z)}),
               TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_run", "i8");
}

// --- Operands with strides

struct Layout {
  uint64_t first;
  std::vector<int64_t> strides;
  uint64_t elements;  // of the buffer
};

// A random layout of these sizes: axes in any order, with gaps, reversed, or (an input's) repeated.
Layout draw_layout(const std::vector<uint64_t>& shape, bool repeats, std::mt19937_64& random) {
  Layout layout{random() % 5, std::vector<int64_t>(shape.size()), 0};
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
  std::reverse(order.begin(), order.end());
  int64_t next = random() % 4 == 0 ? 2 : 1, before = 0;
  for (const size_t axis : order) {
    if (repeats && random() % 4 == 0) continue;
    layout.strides[axis] = next;
    next *= static_cast<int64_t>(shape[axis]);
    if (random() % 5 == 0) next += static_cast<int64_t>(random() % 4);
    if (random() % 4 == 0) {
      before += layout.strides[axis] * (static_cast<int64_t>(shape[axis]) - 1);
      layout.strides[axis] = -layout.strides[axis];
    }
  }
  layout.first += static_cast<uint64_t>(before);
  layout.elements = layout.first + static_cast<uint64_t>(next) + 3;
  return layout;
}

template <typename T>
void test_strides(tuff_context context, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> shape(random() % 9);
  uint64_t count = 1;
  for (uint64_t& size : shape) {
    size = count > 2000 ? 1 : random() % 3 == 0 ? 4 * (1 + random() % 3) : 1 + random() % 6;
    count *= size;
  }
  const Layout la = draw_layout(shape, true, random), lb = draw_layout(shape, true, random),
               ly = draw_layout(shape, false, random);
  const std::vector<T> a = integers<T>(la.elements, seed + 1), b = integers<T>(lb.elements, seed + 2);
  std::vector<T> expected(ly.elements, T{77});
  std::vector<uint64_t> index(shape.size());
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t rest = i;
    auto at_a = static_cast<int64_t>(la.first), at_b = static_cast<int64_t>(lb.first),
         at_y = static_cast<int64_t>(ly.first);
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
      const auto c = static_cast<int64_t>(rest % shape[d]);
      at_a += c * la.strides[d], at_b += c * lb.strides[d], at_y += c * ly.strides[d];
    }
    expected[static_cast<size_t>(at_y)] = static_cast<T>(static_cast<uint64_t>(a[static_cast<size_t>(at_a)]) * 3 +
                                                         static_cast<uint64_t>(b[static_cast<size_t>(at_b)]));
  }
  const OwnExpr expr(context, "a * 3 + b", {{"a", type_of<T>()}, {"b", type_of<T>()}}, {{"y", type_of<T>()}});
  const OwnBuffer x = uploaded(context, a), z = uploaded(context, b),
                  y = uploaded(context, std::vector<T>(ly.elements, T{77}));
  ASSERT_OK(expr.run(context, shape, {strided(x, la.first, la.strides), strided(z, lb.first, lb.strides)},
                     {strided(y, ly.first, ly.strides)}));
  ASSERT_EQ(downloaded<T>(context, y, ly.elements), expected) << "seed " << seed;
}

TEST_P(Expression, Strides) {
  for (uint64_t seed = 0; seed < (vulkan() ? 40 : 100); ++seed) {
    switch (seed % 4) {
      case 0: test_strides<int32_t>(context(), seed); break;
      case 1: test_strides<uint16_t>(context(), seed); break;
      case 2: test_strides<int8_t>(context(), seed); break;
      default:
        if (computes_int64(context())) test_strides<int64_t>(context(), seed);
    }
    if (HasFatalFailure()) return;
  }
}

TEST_P(Expression, InPlaceAndShiftedViews) {
  std::vector<float> a(1001);
  std::iota(a.begin(), a.end(), 1.0f);
  const OwnExpr expr(context(), "a * a + 1", {{"a", TUFF_F32}}, {{"y", TUFF_F32}});
  const OwnBuffer x = uploaded(context(), a);
  // Reversed in place, from an odd element on.
  ASSERT_OK(expr.run(context(), {999}, {strided(x, 999, {-1})}, {strided(x, 999, {-1})}));
  // Odd elements from even ones of the same buffer.
  const OwnExpr copy(context(), "-a", {{"a", TUFF_F32}}, {{"y", TUFF_F32}});
  ASSERT_OK(copy.run(context(), {500}, {strided(x, 0, {2})}, {strided(x, 1, {2})}));
  const std::vector<float> y = downloaded<float>(context(), x, 1001);
  for (size_t i = 0; i < 1000; i += 2) {
    const float expected = i == 0 ? 1.0f : a[i] * a[i] + 1;
    ASSERT_EQ(y[i], expected) << i;
    ASSERT_EQ(y[i + 1], -expected) << i + 1;
  }
  EXPECT_EQ(y[1000], 1001.0f);
  EXPECT_FAILS(copy.run(context(), {500}, {dense(x)}, {dense(x, 1)}), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_run",
               "input");
  EXPECT_FAILS(copy.run(context(), {4, 2}, {dense(x)}, {strided(x, 100, {0, 1})}), TUFF_ERROR_INVALID_ARGUMENT,
               "tuff_expr_run", "itself");
  EXPECT_FAILS(copy.run(context(), {3, 3}, {dense(x)}, {strided(x, 100, {1, 1})}), TUFF_ERROR_INVALID_ARGUMENT,
               "tuff_expr_run", "itself");
}

TEST_P(Expression, SeveralOutputsAndLargeSizes) {
  const size_t count = vulkan() ? 300'007 : 5'003;
  std::vector<float> a(count), b(count);
  for (size_t i = 0; i < count; ++i) a[i] = static_cast<float>(i % 1013), b[i] = static_cast<float>(i % 7) - 3;
  const OwnBuffer x = uploaded(context(), a), z = uploaded(context(), b), sum(context(), 4 * count),
                  product(context(), 4 * count), mask(context(), count);
  const OwnExpr expr(context(), "t = a + b; s = t; p = t * b; m = p > 100;", {{"a", TUFF_F32}, {"b", TUFF_F32}},
                     {{"s", TUFF_F32}, {"p", TUFF_F32}, {"m", TUFF_BOOL}});
  ASSERT_OK(expr.run(context(), {count}, {dense(x), dense(z)}, {dense(sum), dense(product), dense(mask)}));
  const std::vector<float> s = downloaded<float>(context(), sum, count),
                           p = downloaded<float>(context(), product, count);
  const std::vector<uint8_t> m = downloaded<uint8_t>(context(), mask, count);
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(s[i], a[i] + b[i]) << i;
    ASSERT_EQ(p[i], s[i] * b[i]) << i;
    ASSERT_EQ(m[i], p[i] > 100 ? 1 : 0) << i;
  }
}

TEST_P(Expression, SteadyStateCreatesNothing) {
  const OwnExpr expr(context(), "gelu(a * s + 1)", {{"a", TUFF_F32}, {"s", TUFF_F32, TUFF_EXPR_SCALAR}},
                     {{"y", TUFF_F32}});
  const OwnBuffer x = uploaded(context(), std::vector<float>(100, 1)), y(context(), 400);
  ASSERT_OK(expr.run(context(), {100}, {dense(x), scalar(2)}, {dense(y)}));
  ASSERT_OK(tuff_synchronize(context()));
  const tuff_stats before = stats_of(context());
  for (int i = 0; i < 20; ++i) ASSERT_OK(expr.run(context(), {100}, {dense(x), scalar(i)}, {dense(y)}));
  ASSERT_OK(tuff_synchronize(context()));
  const tuff_stats after = stats_of(context());
  EXPECT_EQ(after.vulkan_objects_created, before.vulkan_objects_created);
  EXPECT_EQ(after.shaders_compiled, before.shaders_compiled);
}

TEST_P(Expression, AGraphKeepsItsExpression) {
  if (!vulkan()) GTEST_SKIP() << "the host backend captures no graphs";
  const OwnBuffer x = uploaded(context(), std::vector<float>{1, 2, 3}), y(context(), 12);
  tuff_graph graph = 0;
  {
    const OwnExpr expr(context(), "a * s", {{"a", TUFF_F32}, {"s", TUFF_F32, TUFF_EXPR_SCALAR}}, {{"y", TUFF_F32}});
    ASSERT_OK(tuff_graph_begin(context()));
    EXPECT_OK(expr.run(context(), {3}, {dense(x), scalar(10)}, {dense(y)}));
    ASSERT_OK(tuff_graph_end(context(), &graph));
  }
  ASSERT_OK(tuff_graph_launch(context(), graph));
  EXPECT_EQ(downloaded<float>(context(), y, 3), (std::vector<float>{10, 20, 30}));
  EXPECT_OK(tuff_graph_destroy(graph));
}

// --- Errors

struct Wrong {
  const char* formula;
  tuff_status status;
  const char* message;  // after "tuff_expr_create: formula, "
};

TEST_P(Expression, WrongFormulas) {
  constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
  const Wrong rows[] = {
      {"a + bb * c", kArgument, "character 5: unknown name \"bb\" in \"a + bb * c\""},
      {"a +", kArgument, "character 4: expected a value, got the end in \"a +\""},
      {"(a", kArgument, "character 3: expected \")\", got the end in \"(a\""},
      {"a b", kArgument, "character 3: expected an operator or the end, got \"b\" in \"a b\""},
      {"", kArgument, "character 1: output \"y\" is not assigned in \"\""},
      {"a $ c", kArgument, "character 3: unexpected '$' in \"a $ c\""},
      {"a\xc3\xa4", kArgument, "character 2: unexpected byte 0xc3"},
      {"exp(a, c)", kArgument, "character 1: exp takes 1 argument, got 2 in \"exp(a, c)\""},
      {"where(a, c)", kArgument, "character 1: where takes 3 arguments, got 2"},
      {"1 + what(a)", kArgument, "character 5: unknown function \"what\""},
      {"exp", kArgument, "character 1: \"exp\" is a function: needs (…) behind it"},
      {"~a", kArgument, "character 1: ~ does not take f32 in \"~a\""},
      {"i << a", kArgument, "character 3: << does not take f32"},
      {"b + 300", kArgument, "character 3: 300 does not fit u8"},
      {"i + 1e400", kArgument, "character 5: a number beyond f64"},
      {"99999999999999999999", kArgument, "character 1: an integer beyond 64 bits"},
      {"0x", kArgument, "character 1: 0x without digits"},
      {"1.5e", kArgument, "character 1: a number's exponent has no digits"},
      {"3a", kArgument, "character 2: unexpected 'a' behind a number"},
      {"a = 3", kArgument, "character 1: \"a\" is an input"},
      {"y = a; y = c", kArgument, "character 8: output \"y\" is assigned twice"},
      {"t = a; t = c; t", kArgument, "character 8: \"t\" is assigned twice"},
      {"a ? c", kArgument, "character 6: expected \":\", got the end"},
      {"a; c", kArgument, "character 4: output \"y\" is assigned twice"},
      {"elu(a, c)", kArgument, "character 1: the second argument of elu needs to be a number"},
  };
  for (const Wrong& row : rows) {
    tuff_expr expr = 7;
    EXPECT_EQ(create_expr(context(), row.formula, {{"a", TUFF_F32}, {"b", TUFF_U8}, {"c", TUFF_F32}, {"i", TUFF_I32}},
                          {{"y", TUFF_F32}}, &expr),
              row.status)
        << row.formula;
    EXPECT_TRUE(last_error().starts_with(std::string("tuff_expr_create: formula, ") + row.message))
        << row.formula << ": " << last_error();
    EXPECT_EQ(expr, 7u);
  }
  tuff_expr expr = 0;
  EXPECT_EQ(create_expr(context(), "exp(a)", {{"a", TUFF_F64}}, {{"y", TUFF_F64}}, &expr), TUFF_ERROR_UNSUPPORTED);
  EXPECT_TRUE(last_error().find("exp does not take f64") != std::string::npos) << last_error();
}

TEST_P(Expression, LimitsOfFormulas) {
  tuff_expr expr = 0;
  const auto create = [&](const std::string& formula) {
    return create_expr(context(), formula.c_str(), {{"a", TUFF_F32}}, {{"y", TUFF_F32}}, &expr);
  };
  const std::string deep = std::string(30, '(') + "a" + std::string(30, ')');
  ASSERT_OK(create(deep));
  EXPECT_OK(tuff_expr_destroy(expr));
  constexpr tuff_status kLimit = TUFF_ERROR_LIMIT_EXCEEDED;
  EXPECT_FAILS(create(std::string(60'000, '(')), kLimit, "tuff_expr_create", "nesting");
  EXPECT_FAILS(create(std::string(60'000, '-') + "a"), kLimit, "tuff_expr_create", "nesting");
  std::string power = "a", ternary = "a", sum = "a";
  for (int i = 0; i < 5'000; ++i) power += "^a", ternary += "?a:a", sum += "+a";
  EXPECT_FAILS(create(power), kLimit, "tuff_expr_create", "nesting");
  EXPECT_FAILS(create(ternary), kLimit, "tuff_expr_create", "nesting");
  EXPECT_FAILS(create(sum), kLimit, "tuff_expr_create", "operations");
  EXPECT_FAILS(create(std::string(70'000, ' ')), kLimit, "tuff_expr_create", "longer");
  std::vector<Named> inputs(17, {"a", TUFF_F32}), outputs(9, {"y", TUFF_F32});
  EXPECT_FAILS(create_expr(context(), "1", inputs, {{"y", TUFF_F32}}, &expr), kLimit, "tuff_expr_create",
               "input_count");
  EXPECT_FAILS(create_expr(context(), "1", {}, outputs, &expr), kLimit, "tuff_expr_create", "output_count");
  const char* names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  inputs.clear();
  for (const char* name : names) inputs.push_back({name, TUFF_F32});
  EXPECT_FAILS(create_expr(context(), "1", inputs, {{"y", TUFF_F32}}, &expr), kLimit, "tuff_expr_create", "buffers");
}

TEST_P(Expression, CreateRefuses) {
  constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
  tuff_expr expr = 0;
  const auto create = [&](const std::vector<Named>& inputs, const std::vector<Named>& outputs) {
    return create_expr(context(), "1", inputs, outputs, &expr);
  };
  EXPECT_FAILS(create({{"a", 99}}, {{"y", TUFF_F32}}), kArgument, "tuff_expr_create", "dtype");
  EXPECT_FAILS(create({{"a", TUFF_F8_E4M3}}, {{"y", TUFF_F32}}), TUFF_ERROR_UNSUPPORTED, "tuff_expr_create", "dtype");
  EXPECT_FAILS(create({{"a", TUFF_F32, 2}}, {{"y", TUFF_F32}}), kArgument, "tuff_expr_create", "flags");
  EXPECT_FAILS(create({}, {{"y", TUFF_F32, TUFF_EXPR_SCALAR}}), kArgument, "tuff_expr_create", "flags");
  EXPECT_FAILS(create({}, {}), kArgument, "tuff_expr_create", "output_count");
  EXPECT_FAILS(create({{"y", TUFF_F32}}, {{"y", TUFF_F32}}), kArgument, "tuff_expr_create", "twice");
  EXPECT_FAILS(create({{"1a", TUFF_F32}}, {{"y", TUFF_F32}}), kArgument, "tuff_expr_create", "name");
  EXPECT_FAILS(create({{"", TUFF_F32}}, {{"y", TUFF_F32}}), kArgument, "tuff_expr_create", "name");
  EXPECT_FAILS(create({{nullptr, TUFF_F32}}, {{"y", TUFF_F32}}), kArgument, "tuff_expr_create", "name");
  EXPECT_FAILS(tuff_expr_create(context(), nullptr, &expr), kArgument, "tuff_expr_create", "desc");
  EXPECT_FAILS(create_expr(12345, "1", {}, {{"y", TUFF_F32}}, &expr), TUFF_ERROR_INVALID_HANDLE, "tuff_expr_create",
               "context");
  EXPECT_FAILS(create_expr(context(), nullptr, {}, {{"y", TUFF_F32}}, &expr), kArgument, "tuff_expr_create", "formula");
  EXPECT_FAILS(create_expr(context(), "1", {}, {{"y", TUFF_F32}}, nullptr), kArgument, "tuff_expr_create", "expr");
}

TEST_P(Expression, RunRefuses) {
  constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kHandle = TUFF_ERROR_INVALID_HANDLE;
  const OwnExpr expr(context(), "a + b", {{"a", TUFF_F32}, {"b", TUFF_F32}}, {{"y", TUFF_F32}});
  const OwnBuffer x = uploaded(context(), std::vector<float>(64, 1)), y(context(), 256);
  const auto run = [&](const std::vector<uint64_t>& shape, const tuff_expr_operand& a,
                       const tuff_expr_operand& output) {
    return expr.run(context(), shape, {a, dense(x)}, {output});
  };
  ASSERT_OK(run({64}, dense(x), dense(y)));
  EXPECT_OK(run({0, 3}, dense(TUFF_NULL_HANDLE), dense(TUFF_NULL_HANDLE)));
  EXPECT_FAILS(run({64}, dense(x, 1), dense(y)), kArgument, "tuff_expr_run", "inputs[0]");
  EXPECT_FAILS(run({64}, strided(x, 0, {-1}), dense(y)), kArgument, "tuff_expr_run", "inputs[0]");
  EXPECT_FAILS(run({4}, strided(x, 3, {1ll << 62}), dense(y)), kArgument, "tuff_expr_run", "inputs[0]");
  EXPECT_FAILS(run({4}, strided(x, 3, {INT64_MIN}), dense(y)), kArgument, "tuff_expr_run", "inputs[0]");
  EXPECT_FAILS(run({65}, dense(x), dense(y)), kArgument, "tuff_expr_run", "inputs[0]");
  EXPECT_FAILS(run({32}, dense(x), dense(y, 33)), kArgument, "tuff_expr_run", "outputs[0]");
  EXPECT_FAILS(run({64}, dense(TUFF_NULL_HANDLE), dense(y)), kHandle, "tuff_expr_run", "inputs[0]");
  EXPECT_FAILS(run({64}, dense(12345), dense(y)), kHandle, "tuff_expr_run", "inputs[0]");
  EXPECT_FAILS(run({1ull << 40, 1ull << 40}, dense(x), dense(y)), kArgument, "tuff_expr_run", "shape");
  tuff_expr_operand odd = dense(x);
  odd.strided = 2;
  EXPECT_FAILS(run({64}, odd, dense(y)), kArgument, "tuff_expr_run", "strided");
  tuff_expr_run_desc desc{};
  desc.struct_size = sizeof desc;
  const tuff_expr_operand operands[] = {dense(x), dense(x)}, output = dense(y);
  desc.inputs = operands, desc.outputs = &output, desc.input_count = 1, desc.output_count = 1;
  EXPECT_FAILS(tuff_expr_run(context(), expr, &desc), kArgument, "tuff_expr_run", "input_count");
  desc.input_count = 2, desc.rank = 9;
  EXPECT_FAILS(tuff_expr_run(context(), expr, &desc), kArgument, "tuff_expr_run", "rank");
  desc.rank = 0;
  EXPECT_OK(tuff_expr_run(context(), expr, &desc));
  desc.inputs = nullptr;
  EXPECT_FAILS(tuff_expr_run(context(), expr, &desc), kArgument, "tuff_expr_run", "inputs");
  EXPECT_FAILS(tuff_expr_run(context(), 999, &desc), kHandle, "tuff_expr_run", "expr");
  EXPECT_FAILS(tuff_expr_run(context(), expr, nullptr), kArgument, "tuff_expr_run", "desc");
  EXPECT_FAILS(tuff_expr_destroy(x), kHandle, "tuff_expr_destroy", "expr");
  EXPECT_FAILS(tuff_expr_destroy(999), kHandle, "tuff_expr_destroy", "expr");
  EXPECT_OK(tuff_expr_destroy(TUFF_NULL_HANDLE));
  const OwnContext other(GetParam());
  EXPECT_FAILS(tuff_expr_run(other, expr, &desc), kHandle, "tuff_expr_run", "expr");
}

TUFF_ON_BACKENDS(Expression);

}  // namespace
}  // namespace tuff_test
