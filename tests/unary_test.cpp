#include <cfloat>
#include <cmath>

#include "support/bounds.hpp"
#include "support/tensor.hpp"

namespace tuff_test {
namespace {

struct Operation {
  int32_t op;
  const char* name;
  double (*reference)(double);
  double ulps;  // 0: exact; otherwise what the library promises for f32
};

double relu(double x) { return std::isnan(x) ? x : x > 0 ? x : 0; }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double absolute(double x) { return std::fabs(x); }
double negative(double x) { return -x; }

constexpr double kPromised = 4;
constexpr Operation kOperations[] = {
    {TUFF_UNARY_RELU, "relu", relu, 0},
    {TUFF_UNARY_SIGMOID, "sigmoid", sigmoid, kPromised},
    {TUFF_UNARY_TANH, "tanh", [](double x) { return std::tanh(x); }, kPromised},
    {TUFF_UNARY_EXP, "exp", [](double x) { return std::exp(x); }, kPromised},
    {TUFF_UNARY_LOG, "log", [](double x) { return std::log(x); }, kPromised},
    {TUFF_UNARY_SQRT, "sqrt", [](double x) { return std::sqrt(x); }, kPromised},
    {TUFF_UNARY_ABS, "abs", absolute, 0},
    {TUFF_UNARY_NEG, "neg", negative, 0},
};

bool denormal(double x) { return x != 0 && std::fabs(x) < FLT_MIN; }

// Within the promise, where a denormal argument or result may have been flushed to zero with its sign.
bool acceptable(const Operation& operation, float x, float got) {
  if (bits(got) == kPoison) return false;
  const auto close = [&](double argument) {
    const double want = operation.reference(argument);
    if (std::isnan(want)) return std::isnan(got);
    const float rounded = static_cast<float>(want);
    if (bits(got) == bits(rounded)) return true;
    if (denormal(want) && got == 0 && std::signbit(got) == std::signbit(want)) return true;
    if (operation.ulps == 0) return operation.op == TUFF_UNARY_RELU && want == 0 && got == 0;  // of either sign
    if (std::isinf(want)) return false;
    const double limit = std::ldexp(1.0, 128);  // infinity stands one step above the largest number
    return std::fabs((std::isinf(got) ? std::copysign(limit, got) : got) - want) <= operation.ulps * ulp(want);
  };
  return close(x) || (denormal(x) && close(std::copysign(0.0, x)));
}

void expect_acceptable(const Operation& operation, const std::vector<float>& x, const std::vector<float>& got) {
  ASSERT_EQ(x.size(), got.size());
  uint64_t wrong = 0;
  std::string text;
  for (size_t i = 0; i < x.size(); ++i) {
    if (acceptable(operation, x[i], got[i])) continue;
    if (++wrong > 5) continue;
    char line[160];
    std::snprintf(line, sizeof line, "\n  [%zu] %s(%a = %g) is %a = %g, expected %.9g (%.1f ULP)", i, operation.name,
                  x[i], x[i], got[i], got[i], operation.reference(x[i]),
                  std::fabs(got[i] - operation.reference(x[i])) / ulp(operation.reference(x[i])));
    text += line;
  }
  EXPECT_EQ(wrong, 0u) << "of " << x.size() << text;
}

struct UnaryCase {
  Operation operation;
  uint64_t n;
  uint64_t shift;
  bool in_place;
  std::string name() const {
    return std::string(operation.name) + "_" + std::to_string(n) +
           (shift != 0 ? "_shift" + std::to_string(shift) : "") + (in_place ? "_inplace" : "");
  }
  double work() const { return static_cast<double>(n); }
};

std::vector<UnaryCase> cases() {
  std::vector<UnaryCase> all;
  for (uint64_t n :
       {0,   1,   2,   3,   4,   5,    7,    8,    9,    15,   16,     17,     31,     33,      63,      64,       65,
        127, 129, 255, 256, 257, 1000, 1023, 1025, 4095, 4097, 16'383, 16'385, 65'537, 100'003, 262'144, 1'000'003}) {
    for (const Operation& operation : kOperations) {
      const uint64_t i = all.size();
      all.push_back({operation, n, 4 * (i % 5), i % 4 == 3});
    }
  }
  // 160 MiB; more than 65,535 groups whatever their size up to 512 elements
  all.push_back({kOperations[0], 41'943'041, 0, false});
  all.push_back({kOperations[6], 41'943'043, 4, false});
  all.push_back({kOperations[7], 35'000'000, 8, true});
  all.push_back({kOperations[3], 20'000'000, 0, true});
  return all;
}

using Unary = Table<UnaryCase>;

TEST_P(Unary, Matches) {
  const std::vector<float> x = uniforms(row().n, -12, 12, 9);
  const Tensor input(context(), x, row().shift);
  if (row().in_place) {
    ASSERT_OK(tuff_unary(context(), TUFF_F32, row().operation.op, input, input, row().n));
    expect_acceptable(row().operation, x, input.read());
    return;
  }
  const Tensor output(context(), row().n, row().shift);
  ASSERT_OK(tuff_unary(context(), TUFF_F32, row().operation.op, input, output, row().n));
  expect_acceptable(row().operation, x, output.read());
  input.expect_unchanged(x);
}
TUFF_TABLE(Unary, UnaryCase, cases());

class UnaryOnce : public OnBackend {};

// All of f32: every exponent, sign and special value, and a spread of significands.
TEST_P(UnaryOnce, AllMagnitudes) {
  std::vector<float> x;
  const uint64_t step = reduced() ? 65'521 : 4'093;  // primes: no two exponents meet the same significands
  for (uint64_t pattern = 0; pattern < (uint64_t{1} << 32); pattern += step) {
    x.push_back(from_bits(static_cast<uint32_t>(pattern)));
  }
  for (uint32_t exponent = 0; exponent <= 255; ++exponent) {
    for (uint32_t significand : {0u, 1u, 0x3fffffu, 0x400000u, 0x7ffffeu, 0x7fffffu}) {
      for (uint32_t sign : {0u, 0x80000000u}) x.push_back(from_bits(sign | exponent << 23 | significand));
    }
  }
  const Tensor input(context(), x), output(context(), x.size());
  for (const Operation& operation : kOperations) {
    SCOPED_TRACE(operation.name);
    ASSERT_OK(tuff_unary(context(), TUFF_F32, operation.op, input, output, x.size()));
    expect_acceptable(operation, x, output.read());
  }
}

TEST_P(UnaryOnce, DescriptorIsTheSame) {
  const std::vector<float> x = uniforms(100, -2, 2, 10);
  const Tensor input(context(), x), output(context(), x.size());
  tuff_unary_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  desc.op = TUFF_UNARY_NEG;
  desc.input = input, desc.output = output;
  desc.n = 100;
  ASSERT_OK(tuff_unary_ex(context(), &desc));
  expect_acceptable(kOperations[7], x, output.read());
}
TUFF_ON_BACKENDS(UnaryOnce);

}  // namespace
}  // namespace tuff_test
