// Functions of f64 in formulas, against references with more digits than a double.
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/expression.hpp"

namespace tuff_test::expression_f64_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A formula, its reference, the promise in ULP, and the range that arguments are drawn from.
struct FunctionOfF64 {
  const char* formula;
  long double (*value)(long double, long double);
  double ulps, low, high;
  double work() const { return 1; }
  std::string name() const { return std::string(formula, std::string_view(formula).find('(')); }
};
using Long = long double;
constexpr Long kPi = 3.141592653589793238462643383279502884L, kRootHalf = 0.707106781186547524400844362104849039L;
Long long_sigmoid(Long x) { return 1 / (1 + std::exp(-x)); }
Long long_weighted(Long x, Long weight) { return weight == 0 && x < 0 ? Long{-0.0} : x * weight; }
Long long_erfinv(Long x) {
  const Long a = std::fabs(x), left = 1 - a;
  if (!(a < 1)) return a == 1 ? x * std::numeric_limits<Long>::infinity() : std::numeric_limits<Long>::quiet_NaN();
  Long y = a < 0.9L ? a : std::sqrt(-std::log(left));
  for (int step = 0; step < 30; ++step) {
    const Long miss = a < 0.5L ? std::erf(y) - a : left - std::erfc(y), e = miss * std::sqrt(kPi) / 2 * std::exp(y * y);
    y -= e / (1 + y * e);
  }
  return std::copysign(y, x);
}
const std::vector<FunctionOfF64> kFunctionsOfF64 = {
    {"exp(a)", [](Long a, Long) { return std::exp(a); }, 4, -750, 712},
    {"exp2(a)", [](Long a, Long) { return std::exp2(a); }, 4, -1080, 1026},
    {"expm1(a)", [](Long a, Long) { return std::expm1(a); }, 4, -40, 712},
    {"sigmoid(a)", [](Long a, Long) { return long_sigmoid(a); }, 4, -700, 40},
    {"tanh(a)", [](Long a, Long) { return std::tanh(a); }, 4, -23, 23},
    {"sinh(a)", [](Long a, Long) { return std::sinh(a); }, 4, -711, 711},
    {"cosh(a)", [](Long a, Long) { return std::cosh(a); }, 4, -711, 711},
    {"log(a)", [](Long a, Long) { return std::log(a); }, 4, 0, 4},
    {"log2(a)", [](Long a, Long) { return std::log2(a); }, 4, 0, 4},
    {"log10(a)", [](Long a, Long) { return std::log10(a); }, 4, 0, 4},
    {"log1p(a)", [](Long a, Long) { return std::log1p(a); }, 4, -1, 4},
    {"asinh(a)", [](Long a, Long) { return std::asinh(a); }, 4, -4, 4},
    {"acosh(a)", [](Long a, Long) { return std::acosh(a); }, 4, 1, 4},
    {"atanh(a)", [](Long a, Long) { return std::atanh(a); }, 4, -1, 1},
    {"sin(a)", [](Long a, Long) { return std::sin(a); }, 4, -10, 10},
    {"cos(a)", [](Long a, Long) { return std::cos(a); }, 4, -1e7, 1e7},
    {"tan(a)", [](Long a, Long) { return std::tan(a); }, 4, -10, 10},
    {"asin(a)", [](Long a, Long) { return std::asin(a); }, 4, -1, 1},
    {"acos(a)", [](Long a, Long) { return std::acos(a); }, 4, -1, 1},
    {"atan(a)", [](Long a, Long) { return std::atan(a); }, 4, -4, 4},
    {"erf(a)", [](Long a, Long) { return std::erf(a); }, 4, -6, 6},
    {"erfc(a)", [](Long a, Long) { return std::erfc(a); }, 4, -6, 26},
    {"erfinv(a)", [](Long a, Long) { return long_erfinv(a); }, 4, -1, 1},
    {"gelu(a)", [](Long a, Long) { return long_weighted(a, std::erfc(-a * kRootHalf) / 2); }, 8, -38, 10},
    {"gelu_tanh(a)",
     [](Long a, Long) { return long_weighted(a, long_sigmoid(std::sqrt(8 / kPi) * (a + 0.044715L * a * a * a))); }, 8,
     -22, 10},
    {"silu(a)", [](Long a, Long) { return long_weighted(a, long_sigmoid(a)); }, 8, -750, 40},
    {"mish(a)", [](Long a, Long) { return long_weighted(a, std::tanh(std::log1p(std::exp(a)))); }, 4, -750, 40},
    {"softplus(a)",
     [](Long a, Long) { return std::isnan(a) ? a : std::fmax(a, Long{0}) + std::log1p(std::exp(-std::fabs(a))); }, 4,
     -700, 40},
    {"log_sigmoid(a)",
     [](Long a, Long) { return std::isnan(a) ? a : -std::fmax(-a, Long{0}) - std::log1p(std::exp(-std::fabs(a))); }, 4,
     -40, 700},
    {"selu(a)",
     [](Long a, Long) { return a < 0 ? Long{1.7580993408473768} * std::expm1(a) : Long{1.0507009873554805} * a; }, 4,
     -40, 4},
    {"softsign(a)", [](Long a, Long) { return std::isinf(a) ? std::copysign(Long{1}, a) : a / (1 + std::fabs(a)); }, 4,
     -4, 4},
    {"hardswish(a)", [](Long a, Long) { return a <= -3  ? 0
                                               : a >= 3 ? a
                                                        : a * (a + 3) / 6; }, 4, -4, 4},
    {"hardsigmoid(a)", [](Long a, Long) { return a <= -3  ? 0
                                                 : a >= 3 ? 1
                                                          : (a + 3) / 6; }, 4, -4, 4},
    {"relu(a)", [](Long a, Long) { return a < 0 ? 0 : a; }, 0, -4, 4},
    {"square(a)", [](Long a, Long) { return a * a; }, 0.5, -4, 4},
    {"cube(a)", [](Long a, Long) { return a * a * a; }, 4, -4, 4},
    {"reciprocal(a)", [](Long a, Long) { return 1 / a; }, 4, -4, 4},
    {"rsqrt(a)", [](Long a, Long) { return 1 / std::sqrt(a); }, 4, 0, 4},
    {"cbrt(a)", [](Long a, Long) { return std::cbrt(a); }, 4, -10, 10},
    {"leaky_relu(a, 0.3)", [](Long a, Long) { return a < 0 ? Long{0.3} * a : a; }, 0.5, -4, 4},
    {"elu(a, 0.3)", [](Long a, Long) { return a < 0 ? Long{0.3} * std::expm1(a) : a; }, 4, -40, 4},
    {"pow(a, b)", [](Long a, Long b) { return std::pow(a, b); }, 4, 0, 6},
    {"atan2(a, b)", [](Long a, Long b) { return std::atan2(a, b); }, 4, -4, 4},
    {"hypot(a, b)", [](Long a, Long b) { return std::hypot(a, b); }, 4, -4, 4},
};

double ulps_of_f64(double got, Long exact) {
  const auto rounded = static_cast<double>(exact);
  constexpr double kSmallest = std::numeric_limits<double>::min(), kLargest = std::numeric_limits<double>::max();
  if (got == rounded || (std::isnan(got) && std::isnan(rounded))) return 0;
  // A device may flush denormals; beside the largest double, infinity is one ULP away.
  if (std::fabs(got) <= kSmallest && std::fabs(rounded) <= kSmallest) return 0;
  if (std::isinf(got) && std::fabs(rounded) == kLargest) return 1;
  if (std::isinf(rounded) && std::fabs(got) == kLargest) return 1;
  if (!std::isfinite(got) || !std::isfinite(rounded)) return std::numeric_limits<double>::infinity();
  int exponent = 0;
  std::frexp(rounded, &exponent);
  return static_cast<double>(std::fabs(got - exact) / std::ldexp(Long{1}, exponent - 53));
}

class ExpressionOfF64 : public Table<FunctionOfF64> {};

TEST_P(ExpressionOfF64, MatchesMoreDigits) {
  static_assert(std::numeric_limits<Long>::digits >= 64, "references need more digits than a double");
  if (GetParam().backend == "vulkan" && properties_of(context()).supports_f64 == 0) {
    GTEST_SKIP() << "the device does not compute f64";
  }
  const double special[] = {0.0,
                            -0.0,
                            1,
                            -1,
                            0.5,
                            -0.5,
                            2,
                            3,
                            1e-300,
                            -1e-300,
                            1e300,
                            -1e300,
                            22,
                            -22,
                            709.78,
                            -745.1,
                            710.4,
                            1e-17,
                            1e-8,
                            0x1p20,
                            0x1p53,
                            -0x1p900,
                            kInfinity,
                            -kInfinity,
                            std::nan(""),
                            0x1.921fb54442d18p+0,
                            6381956970095103.0 * 0x1p797,  // nearest to a multiple of pi / 2
                            std::nextafter(1.0, 0.0),
                            std::nextafter(1.0, 2.0),
                            std::numeric_limits<double>::max(),
                            -std::numeric_limits<double>::max(),
                            std::numeric_limits<double>::min()};
  // With --gtest_shuffle --gtest_repeat=N each run draws others.
  std::mt19937_64 random(17 + static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed()));
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<double> a, b;
  for (const double x : special) {
    for (const double y : special) a.push_back(x), b.push_back(y);
  }
  for (int i = 0; i < 1500; ++i) {
    a.push_back(row().low + (row().high - row().low) * unit(random));
    b.push_back(std::ldexp(unit(random) - 0.5, i % 12 - 2));
  }
  for (int i = 0; i < 500; ++i) {  // any bits, any exponent
    a.push_back(std::bit_cast<double>(random())), b.push_back(std::bit_cast<double>(random()));
  }
  const OwnBuffer first = uploaded(context(), a), second = uploaded(context(), b),
                  result = uploaded(context(), std::vector<double>(a.size()));
  const OwnExpr expr(context(), row().formula, {{"a", TUFF_F64}, {"b", TUFF_F64}}, {{"y", TUFF_F64}});
  ASSERT_OK(expr.run(context(), {a.size()}, {dense(first), dense(second)}, {dense(result)}));
  const std::vector<double> y = downloaded<double>(context(), result, a.size());
  double worst = 0, of = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const Long exact = row().value(a[i], b[i]);
    const double error = ulps_of_f64(y[i], exact);
    ASSERT_LE(error, row().ulps) << row().formula << " of " << a[i] << " and " << b[i] << " is " << y[i] << ", needs "
                                 << static_cast<double>(exact);
    if (error > worst) worst = error, of = a[i];
  }
  std::printf("%s: %.2f ULP of %.17g\n", row().formula, worst, of);
}
TUFF_TABLE(ExpressionOfF64, FunctionOfF64, kFunctionsOfF64);

}  // namespace
}  // namespace tuff_test::expression_f64_test
