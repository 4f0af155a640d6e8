#include <cfloat>
#include <cmath>

#include "support/bounds.hpp"
#include "support/sample.hpp"
#include "support/stored.hpp"
#include "support/unary16.hpp"
#include "support/unary_operations.hpp"

namespace tuff_test::unary_test {
namespace {

// Whether a result is within the promised error. A denormal argument or result may have been flushed to a zero of its
// sign.
bool acceptable(const Operation& operation, float x, float got) {
  if (bits(got) == kPoison) return false;
  const auto close = [&](double argument) {
    const double want = operation.reference(argument);
    if (std::isnan(want)) return std::isnan(got);
    if (bits(got) == bits(static_cast<float>(want))) return true;
    if (denormal(want) && got == 0 && std::signbit(got) == std::signbit(want)) return true;
    if (operation.ulps == 0) return operation.op == TUFF_UNARY_RELU && want == 0 && got == 0;  // of either sign
    return error_in_ulp(want, got) <= operation.allowed(argument);
  };
  return close(x) || (denormal(x) && close(std::copysign(0.0, x)));
}

void expect_acceptable(const Operation& operation, const std::vector<float>& x, const std::vector<float>& got,
                       int32_t dtype = TUFF_F32) {
  ASSERT_EQ(x.size(), got.size());
  uint64_t wrong = 0;
  std::string text;
  for (size_t i = 0; i < x.size(); ++i) {
    if (dtype == TUFF_F32 ? acceptable(operation, x[i], got[i])
                          : bits(got[i]) != kPoison && acceptable16(operation, dtype, x[i], got[i])) {
      continue;
    }
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
  uint64_t shift;  // in elements
  bool in_place;
  int32_t dtype = TUFF_F32;
  std::string name() const {
    return std::string(operation.name) + (dtype == TUFF_F32 ? "" : std::string("_") + name_of(dtype)) + "_" +
           std::to_string(n) + (shift != 0 ? "_shift" + std::to_string(shift) : "") + (in_place ? "_inplace" : "");
  }
  double work() const { return static_cast<double>(n); }
};

std::vector<UnaryCase> cases() {
  std::vector<UnaryCase> all;
  for (uint64_t n :
       {0,   1,   2,   3,   4,   5,    7,    8,    9,    15,   16,     17,     31,     33,      63,      64,       65,
        127, 129, 255, 256, 257, 1000, 1023, 1025, 4095, 4097, 16'383, 16'385, 65'537, 100'003, 262'144, 1'000'003}) {
    for (const Operation& operation : kOperations) {
      // Lengths differ only in how they are cut up, the same for all operations, so the first eight operations cover
      // all lengths.
      if (operation.op > TUFF_UNARY_NEG && n != 1 && n != 65 && n != 4097 && n != 100'003) continue;
      const uint64_t i = all.size();
      all.push_back({operation, n, i % 5, i % 4 == 3});
    }
  }
  // 160 MiB; exceeds 65,535 workgroups of up to 512 elements each
  all.push_back({kOperations[0], 41'943'041, 0, false});
  all.push_back({kOperations[6], 41'943'043, 1, false});
  all.push_back({kOperations[7], 35'000'000, 2, true});
  all.push_back({kOperations[3], 20'000'000, 0, true});
  // Lengths around a block of eight, and starts at each element of a block.
  for (const int32_t dtype : {int32_t{TUFF_F16}, int32_t{TUFF_BF16}}) {
    uint32_t turn = 0;  // a third of the operations for each length; AllNumbersOf16Bits covers every operation
    for (uint64_t n : {0, 1, 7, 8, 9, 64, 2049, 300'003}) {
      for (const Operation& operation : kOperations) {
        if (turn++ % 3 != 0) continue;
        const uint64_t i = all.size();
        all.push_back({operation, n, i % 3 == 0 ? 0 : i % 8, i % 4 == 3, dtype});
      }
    }
    all.push_back({kOperations[0], 2'100'001, 8, false, dtype});
    all.push_back({kOperations[1], 4'300'003, 8, false, dtype});  // so many that lanes of GPUs have two blocks
  }
  return all;
}

using Unary = Table<UnaryCase>;

TEST_P(Unary, Matches) {
  const int32_t dtype = row().dtype;
  const std::vector<float> x = rounded(dtype, uniforms(row().n, -12, 12, 9));
  const StoredTensor input(context(), dtype, x, row().shift);
  if (row().in_place) {
    ASSERT_OK(tuff_unary(context(), dtype, row().operation.op, input, input, row().n));
    expect_acceptable(row().operation, x, input.read(), dtype);
    return;
  }
  const StoredTensor output(context(), dtype, row().n, row().shift);
  ASSERT_OK(tuff_unary(context(), dtype, row().operation.op, input, output, row().n));
  expect_acceptable(row().operation, x, output.read(), dtype);
  input.expect_unchanged(x);
}
TUFF_TABLE(Unary, UnaryCase, cases());

class UnaryOnce : public OnBackend {};

// Samples all of f32: every exponent, sign and special value, and many significands.
TEST_P(UnaryOnce, AllMagnitudes) {
  std::vector<float> x;
  const uint64_t step = reduced() ? 65'521 : 4'093;  // primes: significands differ between exponents
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

// Errors in ULP do not distinguish the two zeros. If the result for a zero is itself zero, it must have the sign of the
// definition, except for relu, where either sign is allowed.
TEST_P(UnaryOnce, ZerosHaveTheirSign) {
  const std::vector<float> zeros = {0.0f, -0.0f, 0.0f, -0.0f, 0.0f};  // a block and an element after it
  const Tensor input(context(), zeros), output(context(), zeros.size());
  for (const Operation& operation : kOperations) {
    ASSERT_OK(tuff_unary(context(), TUFF_F32, operation.op, input, output, zeros.size()));
    const std::vector<float> got = output.read();
    for (size_t i = 0; i < zeros.size(); ++i) {
      const double want = operation.reference(zeros[i]);
      if (want != 0 || operation.op == TUFF_UNARY_RELU) continue;
      EXPECT_EQ(std::signbit(got[i]), std::signbit(want)) << operation.name << " of " << zeros[i];
    }
  }
}

// Every 16-bit number, including denormals, infinities and NaN.
TEST_P(UnaryOnce, AllNumbersOf16Bits) {
  for (const int32_t dtype : {int32_t{TUFF_F16}, int32_t{TUFF_BF16}}) {
    Bytes patterns(2 << 16);
    std::vector<float> x(1 << 16);
    for (uint32_t i = 0; i < x.size(); ++i) {
      const auto pattern = static_cast<uint16_t>(i);
      std::memcpy(patterns.data() + 2 * i, &pattern, 2);
      x[i] = static_cast<float>(element(dtype, patterns, i));
    }
    const TypedTensor input(context(), dtype, patterns);
    for (const Operation& operation : kOperations) {
      const std::string name = std::string(operation.name) + " " + name_of(dtype);
      if (vulkan() && !in_sample(name, 6)) continue;  // each is a kernel of its own
      SCOPED_TRACE(name);
      const StoredTensor output(context(), dtype, x.size());
      ASSERT_OK(tuff_unary(context(), dtype, operation.op, input, output, x.size()));
      std::vector<float> got = output.read();
      // One of the inputs is the poison pattern, and operations that only change the sign return it.
      for (size_t i = 0; i < got.size(); ++i) got[i] = std::isnan(x[i]) && std::isnan(got[i]) ? NAN : got[i];
      expect_acceptable(operation, x, got, dtype);
    }
  }
}

// The descriptor's alpha, both given and by default.
TEST_P(UnaryOnce, AlphaIsWhatTheDescriptorSays) {
  const std::vector<float> x = {-2, -0.5f, -0.0f, 0, 1.5f, -1e30f};
  const Tensor input(context(), x), output(context(), x.size());
  const auto call = [&](int32_t op, double alpha) {
    tuff_unary_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = TUFF_F32;
    desc.op = op;
    desc.input = input, desc.output = output;
    desc.n = x.size();
    desc.alpha = alpha;
    return tuff_unary_ex(context(), &desc);
  };
  for (const double alpha : {-1.5, 0.25, 3.0}) {
    ASSERT_OK(call(TUFF_UNARY_LEAKY_RELU, alpha));
    Expected leaky, elu;
    for (const float value : x) {
      const double below = alpha * std::expm1(static_cast<double>(value));
      leaky.value.push_back(static_cast<float>(value < 0 ? alpha * value : value));
      elu.value.push_back(value < 0 ? below : value);
      elu.bound.push_back(value < 0 ? kOperations[TUFF_UNARY_ELU - 1].ulps * ulp(below) : 0);
    }
    expect_matches(output.read(), leaky);
    ASSERT_OK(call(TUFF_UNARY_ELU, alpha));
    expect_matches(output.read(), elu);
  }
  ASSERT_OK(call(TUFF_UNARY_LEAKY_RELU, 0));
  const std::vector<float> by_default = output.read();
  ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_LEAKY_RELU, input, output, x.size()));
  expect_same_bits(output.read(), by_default);
  EXPECT_FLOAT_EQ(by_default[0], -0.02f);
  for (const auto& [op, alpha] : {std::pair{TUFF_UNARY_NEG, 1.0},
                                  {TUFF_UNARY_ELU, static_cast<double>(INFINITY)},
                                  {TUFF_UNARY_ELU, static_cast<double>(NAN)},
                                  {TUFF_UNARY_LEAKY_RELU, 1e300}}) {
    EXPECT_FAILS(call(op, alpha), TUFF_ERROR_INVALID_ARGUMENT, "tuff_unary_ex", "alpha");
  }
  expect_same_bits(output.read(), by_default);
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
}  // namespace tuff_test::unary_test
