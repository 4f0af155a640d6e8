// Formulas of complex numbers, compared with the C++ library's in long double.
//
// Bounds are multiples of the unit roundoff u, relative to the result's magnitude. They follow from the formulas of
// complex_functions.cpp with an error of 8 u (4 ULP) of each real function, and u of each operation: for example exp is
// a product of exp(a / 2) twice and of a cosine or sine, 3 * 8 u + 2 u.
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <random>

#include "support/expression.hpp"
#include "support/sample.hpp"

namespace tuff_test::expression_complex_test {
namespace {

using Wide = std::complex<long double>;

template <typename T>
constexpr int32_t kComplex = sizeof(T) == 4 ? TUFF_C64 : TUFF_C128;
template <typename T>
constexpr int32_t kReal = sizeof(T) == 4 ? TUFF_F32 : TUFF_F64;
template <typename T>
constexpr long double kUnit = std::numeric_limits<T>::epsilon() / 2.0L;

struct Row {
  const char* formula;
  std::function<Wide(Wide, Wide)> exact;
  double bound;         // in units of u
  double per_size = 0;  // and as many for each unit of |b log a|
  double most = 20;     // arguments are up to this
};

Wide divided(Wide a, Wide b) { return a * std::conj(b) / std::norm(b); }

const Row kRows[] = {
    {"a + b", [](Wide a, Wide b) { return a + b; }, 1},
    {"a - b", [](Wide a, Wide b) { return a - b; }, 1},
    {"a * b", [](Wide a, Wide b) { return a * b; }, 3},
    {"a / b", [](Wide a, Wide b) { return divided(a, b); }, 12},
    {"-a", [](Wide a, Wide) { return -a; }, 0},
    {"conj(a)", [](Wide a, Wide) { return std::conj(a); }, 0},
    {"complex(imag(a), real(b))", [](Wide a, Wide b) { return Wide(a.imag(), b.real()); }, 0},
    {"square(a)", [](Wide a, Wide) { return a * a; }, 4},
    {"a ** 3", [](Wide a, Wide) { return a * a * a; }, 6},
    {"reciprocal(a)", [](Wide a, Wide) { return divided(1, a); }, 12},
    {"abs(a)", [](Wide a, Wide) { return Wide(std::abs(a)); }, 8},
    {"arg(a)", [](Wide a, Wide) { return Wide(std::arg(a)); }, 8},
    {"sign(a)", [](Wide a, Wide) { return a / std::abs(a); }, 12},
    {"sqrt(a)", [](Wide a, Wide) { return std::sqrt(a); }, 10},
    {"exp(a)", [](Wide a, Wide) { return std::exp(a); }, 26},
    {"log(a)", [](Wide a, Wide) { return std::log(a); }, 40},
    {"log2(a)", [](Wide a, Wide) { return std::log(a) / std::log(2.0L); }, 44},
    {"log10(a)", [](Wide a, Wide) { return std::log10(a); }, 44},
    {"log1p(a)",
     [](Wide a, Wide) {
       const long double x = a.real(), y = a.imag();
       if (std::abs(a) > 0.5L) return std::log(Wide(1) + a);  // 1 + x is exact near x = -1
       return Wide(std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x));
     },
     48},
    {"expm1(a)",
     [](Wide a, Wide) {
       // std::exp(a) - 1 loses digits that this does not.
       const long double x = std::expm1(a.real()), s = std::sin(a.imag() / 2);
       return Wide(x * std::cos(a.imag()) - 2 * s * s, (x + 1) * std::sin(a.imag()));
     },
     56},
    {"round(a)", [](Wide a, Wide) { return Wide(std::nearbyint(a.real()), std::nearbyint(a.imag())); }, 0},
    {"sinh(a)", [](Wide a, Wide) { return std::sinh(a); }, 18},
    {"cosh(a)", [](Wide a, Wide) { return std::cosh(a); }, 26},
    {"tanh(a)", [](Wide a, Wide) { return std::tanh(a); }, 90},
    {"sin(a)", [](Wide a, Wide) { return std::sin(a); }, 18},
    {"cos(a)", [](Wide a, Wide) { return std::cos(a); }, 26},
    {"tan(a)", [](Wide a, Wide) { return std::tan(a); }, 90},
    {"asin(a)", [](Wide a, Wide) { return std::asin(a); }, 72},
    {"acos(a)", [](Wide a, Wide) { return std::acos(a); }, 72},
    {"asinh(a)", [](Wide a, Wide) { return std::asinh(a); }, 72},
    {"acosh(a)", [](Wide a, Wide) { return std::acosh(a); }, 72},
    {"atanh(a)", [](Wide a, Wide) { return std::atanh(a); }, 32},
    {"atan(a)", [](Wide a, Wide) { return std::atan(a); }, 32},
    {"a ** b", [](Wide a, Wide b) { return std::exp(b * std::log(a)); }, 26, 43, 3},
    {"where(real(a) < real(b), a, b)", [](Wide a, Wide b) { return a.real() < b.real() ? a : b; }, 0},
    {"2 * a + 1.5", [](Wide a, Wide) { return 2.0L * a + 1.5L; }, 2},
};

// Numbers of all sizes up to `most`, and some beside 1, i and the axes.
template <typename T>
std::vector<std::complex<T>> drawn(size_t n, double most, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto part = [&] {
    switch (random() % 4) {
      case 0: return uniform(random) * most;
      case 1: return std::ldexp(uniform(random), -static_cast<int>(random() % 20));
      case 2: return std::copysign(1 + std::ldexp(uniform(random), -static_cast<int>(random() % 20)), uniform(random));
      default: return random() % 8 == 0 ? 0.0 : uniform(random);
    }
  };
  std::vector<std::complex<T>> values;
  while (values.size() < n) {
    const std::complex<T> value(static_cast<T>(part()), static_cast<T>(part()));
    if (value != std::complex<T>(0)) values.push_back(value);
  }
  return values;
}

class ExpressionComplex : public OnBackend {
 protected:
  template <typename T, typename Result = std::complex<T>>
  std::vector<Result> computed(const char* formula, const std::vector<std::complex<T>>& a,
                               const std::vector<std::complex<T>>& b, int32_t dtype = kComplex<T>) {
    const OwnBuffer x = uploaded(context(), a), y = uploaded(context(), b), z(context(), a.size() * sizeof(Result));
    const OwnExpr expr(context(), formula, {{"a", kComplex<T>}, {"b", kComplex<T>}}, {{"z", dtype}});
    EXPECT_OK(expr.run(context(), {a.size()}, {dense(x), dense(y)}, {dense(z)})) << formula;
    return downloaded<Result>(context(), z, a.size());
  }

  template <typename T>
  void compare() {
    for (const Row& row : kRows) {
      // On a device each is a kernel of its own, of f64 a long one.
      if (vulkan() && !in_sample(row.formula, 8)) continue;
      const auto a = drawn<T>(1003, row.most, 1), b = drawn<T>(1003, row.most, 2);
      const auto got = computed<T>(row.formula, a, b);
      long double worst = 0;
      size_t at = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        const Wide exact = row.exact(a[i], b[i]), error = Wide(got[i]) - exact;
        const long double size = row.per_size == 0 ? 0 : std::abs(Wide(b[i]) * std::log(Wide(a[i])));
        const long double allowed =
            (row.bound + row.per_size * size) * kUnit<T> * std::abs(exact) + 8 * std::numeric_limits<T>::min();
        const long double share = std::abs(error) / allowed;
        if (!(share <= worst)) worst = share, at = i;
        if (!(share == share)) break;
      }
      EXPECT_LE(worst, 1.0L) << row.formula << " of (" << a[at].real() << ", " << a[at].imag() << "), (" << b[at].real()
                             << ", " << b[at].imag() << ") is (" << got[at].real() << ", " << got[at].imag() << ")";
      RecordProperty(row.formula, std::to_string(static_cast<double>(worst)));
    }
  }
  bool has_f64() {
    int32_t yes = 0;
    EXPECT_OK(tuff_supports(context(), "expr.c128", &yes));
    return yes != 0;
  }
};

TEST_P(ExpressionComplex, FunctionsOfC64) { compare<float>(); }
TEST_P(ExpressionComplex, FunctionsOfC128) {
  if (!has_f64()) GTEST_SKIP() << "no f64";
  compare<double>();
}

// Parts of the largest and smallest sizes: nothing overflows or vanishes on the way.
template <typename T>
std::vector<std::complex<T>> extremes() {
  using Limits = std::numeric_limits<T>;
  const T big = Limits::max(), tiny = Limits::min() * 8, one = 1;
  std::vector<std::complex<T>> all;
  for (const T x : {big, big / 3, one, tiny, 5 * tiny, T(0)}) {
    for (const T y : {big, big / 5, -one, tiny, -7 * tiny, T(0)}) {
      if (x != 0 || y != 0) all.emplace_back(x, y);
    }
  }
  return all;
}

template <typename T>
void test_extremes(const char* formula, const std::vector<std::complex<T>>& a, const std::vector<std::complex<T>>& b,
                   const std::vector<std::complex<T>>& got, const std::function<Wide(Wide, Wide)>& exact,
                   double bound) {
  using Limits = std::numeric_limits<T>;
  for (size_t i = 0; i < a.size(); ++i) {
    const Wide wanted = exact(a[i], b[i]);
    // Results near the ends of the range may be rounded beyond them.
    const long double size = std::max(std::fabs(wanted.real()), std::fabs(wanted.imag()));
    if (size > Limits::max() / 4.0L || std::abs(wanted) < Limits::min() * 16.0L) continue;
    const long double error = std::abs(Wide(got[i]) - wanted);
    EXPECT_LE(error, bound * kUnit<T> * std::abs(wanted) + 4.0L * Limits::min())
        << formula << " of " << a[i] << ", " << b[i] << " is " << got[i];
  }
}

TEST_P(ExpressionComplex, NoOverflowOnTheWay) {
  const auto check = [&]<typename T>(T) {
    const auto all = extremes<T>();
    std::vector<std::complex<T>> a, b;
    for (const auto& x : all) {
      for (const auto& y : all) a.push_back(x), b.push_back(y);
    }
    const Row rows[] = {{"a / b", [](Wide x, Wide y) { return divided(x, y); }, 12},
                        {"sqrt(a)", [](Wide x, Wide) { return std::sqrt(x); }, 10},
                        {"log(a)", [](Wide x, Wide) { return std::log(x); }, 40},
                        {"abs(a)", [](Wide x, Wide) { return Wide(std::abs(x)); }, 8},
                        {"sign(a)", [](Wide x, Wide) { return x / std::abs(x); }, 12},
                        {"asin(a)", [](Wide x, Wide) { return std::asin(x); }, 72},
                        {"acosh(a)", [](Wide x, Wide) { return std::acosh(x); }, 72},
                        {"atanh(a)", [](Wide x, Wide) { return std::atanh(x); }, 32}};
    for (const Row& row : rows) {
      const std::string name = std::string("extremes of ") + (sizeof(T) == 4 ? "c64 " : "c128 ") + row.formula;
      if (vulkan() && !in_sample(name, 3)) continue;
      test_extremes<T>(row.formula, a, b, computed<T>(row.formula, a, b), row.exact, row.bound);
    }
  };
  check(float{});
  if (has_f64()) check(double{});
}

// Infinities, NaN and signed zeros as C99, Annex G, has them. Where it leaves a sign open, only the magnitude counts.
TEST_P(ExpressionComplex, SpecialValues) {
  using C = std::complex<float>;
  constexpr float kInf = INFINITY;
  const float parts[] = {0.0f, -0.0f, 1.5f, -1.5f, kInf, -kInf, NAN};
  std::vector<C> a;
  for (const float x : parts) {
    for (const float y : parts) a.emplace_back(x, y);
  }
  using Function = std::complex<double> (*)(const std::complex<double>&);
  const std::pair<const char*, Function> rows[] = {{"sqrt(a)", std::sqrt<double>}, {"exp(a)", std::exp<double>},
                                                   {"log(a)", std::log<double>},   {"sinh(a)", std::sinh<double>},
                                                   {"cosh(a)", std::cosh<double>}, {"tanh(a)", std::tanh<double>}};
  const auto same = [](double got, double wanted, bool sign) {
    if (std::isnan(wanted)) return std::isnan(got);
    if (sign && std::signbit(got) != std::signbit(wanted)) return false;
    return std::isinf(wanted) ? std::isinf(got) : std::fabs(std::fabs(got) - std::fabs(wanted)) <= 1e-5;
  };
  for (const auto& [formula, exact] : rows) {
    const std::vector<C> got = computed<float>(formula, a, a);
    for (size_t i = 0; i < a.size(); ++i) {
      const std::complex<double> wanted = exact(a[i]);
      // A NaN argument, or a sine of infinity, has no sign to give.
      const bool sign = !std::isnan(wanted.real()) && !std::isnan(wanted.imag()) && std::isfinite(a[i].imag());
      EXPECT_TRUE(same(got[i].real(), wanted.real(), sign) && same(got[i].imag(), wanted.imag(), sign))
          << formula << " of " << a[i] << " is " << got[i] << ", in C " << wanted;
    }
  }
}

TEST_P(ExpressionComplex, Quotients) {
  using C = std::complex<float>;
  constexpr float kInf = INFINITY;
  const std::vector<C> a = {{1, 2}, {1, 2}, {1, -2}, {0, 0}, {kInf, 1}, {3, 4}},
                       b = {{0, 0}, {kInf, 3}, {kInf, -kInf}, {0, 0}, {2, 0}, {NAN, 1}};
  const std::vector<C> y = computed<float>("a / b", a, b);
  EXPECT_TRUE(std::isinf(y[0].real()) && std::isinf(y[0].imag()));
  EXPECT_TRUE(y[1] == C(0) && y[2] == C(0)) << y[1] << y[2];
  EXPECT_TRUE(std::isnan(y[3].real()) && std::isnan(y[3].imag()));
  EXPECT_TRUE(std::isinf(y[4].real())) << y[4];
  EXPECT_TRUE(std::isnan(y[5].real()) && std::isnan(y[5].imag()));
}

TEST_P(ExpressionComplex, TruthsAndConversions) {
  using C = std::complex<float>;
  const std::vector<C> a = {{1, 2}, {0, 0}, {0, -3}, {NAN, 0}, {-0.0f, 0}, {2.75f, INFINITY}, {-7, 1}},
                       b = {{1, 2}, {-0.0f, 0}, {0, 3}, {NAN, 0}, {1, 0}, {2.75f, INFINITY}, {-7, 2}};
  using Truths = std::vector<uint8_t>;
  const auto truths = [&](const char* formula) { return computed<float, uint8_t>(formula, a, b, TUFF_BOOL); };
  EXPECT_EQ(truths("a == b"), (Truths{1, 1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(truths("a != b"), (Truths{0, 0, 1, 1, 1, 0, 1}));
  EXPECT_EQ(truths("a"), (Truths{1, 0, 1, 1, 0, 1, 1}));
  EXPECT_EQ(truths("!a || b == 1"), (Truths{0, 1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(truths("isnan(a)"), (Truths{0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(truths("isinf(a)"), (Truths{0, 0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(truths("isfinite(a)"), (Truths{1, 1, 1, 0, 1, 0, 1}));
  EXPECT_EQ((computed<float, int32_t>("a", a, b, TUFF_I32)), (std::vector<int32_t>{1, 0, 0, 0, 0, 2, -7}));
  EXPECT_EQ((computed<float, float>("imag(a) + real(b)", a, b, TUFF_F32))[5], INFINITY);
  EXPECT_EQ((computed<float, float>("arg(real(b)) + conj(3) + imag(2)", a, b, TUFF_F32))[0], 3.0f);
}

// With strides, mixed types and several outputs, in blocks and element by element.
TEST_P(ExpressionComplex, StridesAndMixedTypes) {
  using C = std::complex<float>;
  for (const uint64_t columns : {4, 7}) {
    constexpr uint64_t kRowCount = 5;
    const std::vector<C> z = drawn<float>(kRowCount * columns, 4, columns);
    std::vector<float> r(columns);
    std::vector<int32_t> n(kRowCount);
    for (size_t i = 0; i < r.size(); ++i) r[i] = static_cast<float>(i) - 2.5f;
    for (size_t i = 0; i < n.size(); ++i) n[i] = static_cast<int32_t>(i) - 2;
    const OwnBuffer dz = uploaded(context(), z), dr = uploaded(context(), r), dn = uploaded(context(), n),
                    dy(context(), z.size() * sizeof(C)), dx(context(), z.size() * sizeof(float));
    const OwnExpr expr(context(), "y = z * r + n; x = abs(z)", {{"z", TUFF_C64}, {"r", TUFF_F32}, {"n", TUFF_I32}},
                       {{"y", TUFF_C64}, {"x", TUFF_F32}});
    const auto c = static_cast<int64_t>(columns);
    // z and y transposed: element (row, column) is number column * rows + row.
    ASSERT_OK(expr.run(
        context(), {kRowCount, columns},
        {strided(dz, 0, {1, kRowCount}), strided(dr, 0, {0, 1}), strided(dn, 0, {1, 0})},
        {strided(dy, kRowCount * columns - 1, {-1, -static_cast<int64_t>(kRowCount)}), strided(dx, 0, {c, 1})}));
    const std::vector<C> y = downloaded<C>(context(), dy, z.size());
    const std::vector<float> x = downloaded<float>(context(), dx, z.size());
    for (uint64_t i = 0; i < kRowCount; ++i) {
      for (uint64_t j = 0; j < columns; ++j) {
        const C from = z[j * kRowCount + i], wanted = from * r[j] + static_cast<float>(n[i]);
        EXPECT_LE(std::abs(y[z.size() - 1 - (j * kRowCount + i)] - wanted), 1e-5f);
        EXPECT_LE(std::fabs(x[i * columns + j] - std::abs(from)), 1e-5f);
      }
    }
  }
}

TEST_P(ExpressionComplex, WhatDoesNotTakeThem) {
  tuff_expr expr = 0;
  const auto created = [&](const char* formula) {
    return create_expr(context(), formula, {{"z", TUFF_C64}, {"x", TUFF_F32}}, {{"y", TUFF_C64}}, &expr);
  };
  EXPECT_FAILS(created("z < x"), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_create", "< does not take c64");
  EXPECT_FAILS(created("max(x, z)"), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_create", "max does not take c64");
  EXPECT_FAILS(created("floor(z)"), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_create", "floor does not take c64");
  EXPECT_FAILS(created("z & 1"), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_create", "& does not take c64");
  EXPECT_FAILS(created("gelu(z)"), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_create", "gelu does not take c64");
  EXPECT_FAILS(created("complex(z, x)"), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_create", "complex does not take c64");
  EXPECT_FAILS(created("real(z, x)"), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_create", "real takes 1 argument");
  EXPECT_FAILS(create_expr(context(), "z", {{"z", TUFF_C64, TUFF_EXPR_SCALAR}}, {{"y", TUFF_C64}}, &expr),
               TUFF_ERROR_UNSUPPORTED, "tuff_expr_create", "complex(a, b)");
  // Each asin is some 150 operations; the position is that of the call.
  std::string many = "asin(z)";
  for (int i = 0; i < 40; ++i) many += " + asin(z)";
  EXPECT_FAILS(created(many.c_str()), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_expr_create", "more than 4096 operations");
}
TUFF_ON_BACKENDS(ExpressionComplex);

}  // namespace
}  // namespace tuff_test::expression_complex_test
