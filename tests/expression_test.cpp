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
#include "support/sample.hpp"

namespace tuff_test::expression_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

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

__extension__ typedef __int128 Big;

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
  const std::vector<T> a = edge_integers<T>(203, 1), b = edge_integers<T>(203, 2);
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
      {"sign(a)", [](float a, float) { return std::isnan(a) ? a
                                              : a == 0      ? 0
                                                            : std::copysign(1.0f, a); }},
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
  // On a device each row needs two kernels of its own.
  const auto skipped = [&](const char* name) { return vulkan() && !in_sample(name, 4); };
#define UNARY(number, NAME, name, ...)                                                \
  if (!skipped(#name)) {                                                              \
    const OwnExpr expr(context(), #name "(a)", {{"a", TUFF_F32}}, {{"y", TUFF_F32}}); \
    ASSERT_OK(expr.run(context(), {1000}, {dense(x)}, {dense(y)}));                   \
    ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_##NAME, x, expected, 1000)); \
    compare(#name);                                                                   \
  }
#include "kernels/elementwise/unary.def"
#define BINARY(number, NAME, name, ...)                                                                   \
  if (!skipped(#name)) {                                                                                  \
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

// Integers of more digits than a double has are rounded once: halfway and a little more is up.
TEST_P(Expression, LongIntegersAsFloats) {
  if (vulkan()) GTEST_SKIP() << "Floats and Casts compare devices with the host";
  const std::vector<int64_t> a = {(int64_t{1} << 60) + (int64_t{1} << 36) + 1, (int64_t{1} << 60) + (int64_t{1} << 36)};
  const OwnBuffer x = uploaded(context(), a), y(context(), 8);
  const OwnExpr expr(context(), "f32(a)", {{"a", TUFF_I64}}, {{"y", TUFF_F32}});
  ASSERT_OK(expr.run(context(), {2}, {dense(x)}, {dense(y)}));
  EXPECT_EQ(downloaded<float>(context(), y, 2), (std::vector<float>{0x1p60f + 0x1p37f, 0x1p60f}));
}

// What is computed of numbers alone while a formula is read.
TEST_P(Expression, Numbers) {
  const struct {
    const char* formula;
    float value;
    bool wide = false;  // computes 64-bit integers
  } rows[] = {{"1 + 2", 3},
              {"1.5 + 2", 3.5f},
              {"7 - 2.5", 4.5f},
              {"+3 * -2", -6},
              {"7 / 2", 3.5f},
              {"sqrt(6.25)", 2.5f},
              {"1 << 10", 1024},
              {"abs(-2.5)", 2.5f},
              {"exp(0)", 1},
              {"max(2, 5.5)", 5.5f},
              {"pow(2, 10)", 1024},
              {"pow(0.5, 2)", 0.25f},
              {"i32(2.75)", 2},
              {"where(0.5, 3, 4)", 3},
              {"where(0.0, 3, 4)", 4},
              {"3000000000", 3e9f},
              {"18446744073709551615", 0x1p64f},
              {"f32(9007199254740993)", 0x1p53f},
              {"u16(60000) + i16(-1)", 59999},
              {"u32(4000000000) + i32(-1000)", 3999999000.0f, true}};
  const OwnBuffer x = uploaded<float>(context(), {0, 1}), y(context(), 8);
  int32_t has_wide = 0;
  ASSERT_OK(tuff_supports(context(), "i64", &has_wide));
  for (const auto& row : rows) {
    if (row.wide && has_wide == 0) continue;
    const OwnExpr expr(context(), ("a * (" + std::string(row.formula) + ")").c_str(), {{"a", TUFF_F32}},
                       {{"y", TUFF_F32}});
    ASSERT_OK(expr.run(context(), {2}, {dense(x)}, {dense(y)}));
    EXPECT_EQ(downloaded<float>(context(), y, 2), (std::vector<float>{0, row.value})) << row.formula;
  }
  const OwnExpr cut(context(), "2.75", {{"a", TUFF_F32}}, {{"y", TUFF_I32}});
  ASSERT_OK(cut.run(context(), {2}, {dense(x)}, {dense(y)}));
  EXPECT_EQ(downloaded<int32_t>(context(), y, 2), (std::vector<int32_t>{2, 2}));
}

TUFF_ON_BACKENDS(Expression);

}  // namespace
}  // namespace tuff_test::expression_test
