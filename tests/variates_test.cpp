#include <cmath>
#include <limits>

#include "support/harness.hpp"

namespace tuff_test::variates_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;

struct Row {
  int32_t distribution;
  double values[3];
};

class Variates : public OnBackend {
 protected:
  static tuff_variates_desc described(const Row& row, uint64_t n) {
    tuff_variates_desc desc{};
    desc.struct_size = sizeof desc;
    desc.distribution = row.distribution;
    desc.dtype = row.distribution < TUFF_VARIATES_POISSON ? TUFF_F32 : TUFF_I32;
    desc.n = n, desc.seed = 7;
    desc.first_value = row.values[0], desc.second_value = row.values[1], desc.third_value = row.values[2];
    return desc;
  }
  // The bits of the elements, between words that must stay as they are.
  std::vector<uint32_t> drawn(tuff_variates_desc desc) { return drawn(context(), desc); }
  static std::vector<uint32_t> drawn(tuff_context context, tuff_variates_desc desc) {
    constexpr uint32_t kGuard = 16, kPoison = 0xa5a5a5a5;
    const OwnBuffer memory(context, 4 * (desc.n + 2 * kGuard));
    std::vector<uint32_t> all(desc.n + 2 * kGuard, kPoison);
    EXPECT_OK(tuff_copy_htod(context, memory, 0, all.data(), 4 * all.size()));
    EXPECT_OK(tuff_view(memory, 4 * kGuard, 4 * desc.n, &desc.output));
    EXPECT_OK(tuff_variates(context, &desc));
    EXPECT_OK(tuff_copy_dtoh(context, all.data(), memory, 0, 4 * all.size()));
    EXPECT_OK(tuff_free(desc.output));
    for (uint32_t i = 0; i < kGuard; ++i) EXPECT_TRUE(all[i] == kPoison && all[all.size() - 1 - i] == kPoison);
    return {all.begin() + kGuard, all.end() - kGuard};
  }
};

const Row kRows[] = {{TUFF_VARIATES_GAMMA, {1e-3}},
                     {TUFF_VARIATES_GAMMA, {0.5}},
                     {TUFF_VARIATES_GAMMA, {3.5}},
                     {TUFF_VARIATES_GAMMA, {1e9}},
                     {TUFF_VARIATES_LOG_GAMMA, {1e-30}},
                     {TUFF_VARIATES_LOG_GAMMA, {2}},
                     {TUFF_VARIATES_VONMISES, {0}},
                     {TUFF_VARIATES_VONMISES, {4}},
                     {TUFF_VARIATES_VONMISES, {1e8}},
                     {TUFF_VARIATES_POISSON, {0.1}},
                     {TUFF_VARIATES_POISSON, {9.5}},
                     {TUFF_VARIATES_POISSON, {12}},
                     {TUFF_VARIATES_POISSON, {1e9}},
                     {TUFF_VARIATES_BINOMIAL, {10, 0.25}},
                     {TUFF_VARIATES_BINOMIAL, {50, 0.75}},
                     {TUFF_VARIATES_BINOMIAL, {2147483647, 0.5}},
                     {TUFF_VARIATES_HYPERGEOMETRIC, {20, 30, 7}},
                     {TUFF_VARIATES_HYPERGEOMETRIC, {300, 100, 250}},
                     {TUFF_VARIATES_HYPERGEOMETRIC, {1e9, 1.1e9, 1e8}},
                     {TUFF_VARIATES_ZIPF, {1.01}},
                     {TUFF_VARIATES_ZIPF, {3}},
                     {TUFF_VARIATES_ZIPF, {100}}};

TEST_P(Variates, AreTheHostsBits) {
  const OwnContext host("host");
  for (const Row& row : kRows) {
    SCOPED_TRACE(testing::Message() << row.distribution << " of " << row.values[0]);
    const tuff_variates_desc desc = described(row, 20'001);
    EXPECT_EQ(drawn(desc), drawn(host, desc));
  }
}

TEST_P(Variates, OfAnyPartOfASequence) {
  for (const Row& row : {kRows[2], kRows[11], kRows[17]}) {
    for (const uint64_t offset : std::vector<uint64_t>{0, 5, 0xfffffff0, (uint64_t{1} << 56) - 100}) {
      tuff_variates_desc desc = described(row, 100);
      desc.offset = offset, desc.sequence = 3;
      const std::vector<uint32_t> whole = drawn(desc);
      desc.offset += 37, desc.n = 50;
      EXPECT_EQ(drawn(desc), std::vector<uint32_t>(whole.begin() + 37, whole.begin() + 87)) << offset;
    }
  }
}

// Parameters in buffers give what the same values give. The output may be one of the buffers.
TEST_P(Variates, ParametersOfEachElement) {
  const uint64_t n = 1000;
  for (const Row& row : kRows) {
    SCOPED_TRACE(testing::Message() << row.distribution << " of " << row.values[0]);
    tuff_variates_desc desc = described(row, n);
    const std::vector<uint32_t> want = drawn(desc);
    const bool whole = row.distribution == TUFF_VARIATES_HYPERGEOMETRIC;
    const bool binomial = row.distribution == TUFF_VARIATES_BINOMIAL;
    const size_t count = whole ? 3 : binomial ? 2 : 1;
    std::vector<OwnBuffer> buffers;
    for (size_t p = 0; p < count; ++p) {
      const bool integers = whole || (binomial && p == 0);
      const uint32_t bits =
          integers ? static_cast<uint32_t>(row.values[p]) : std::bit_cast<uint32_t>(static_cast<float>(row.values[p]));
      const std::vector<uint32_t> words(n, bits);
      buffers.emplace_back(context(), 4 * n);
      ASSERT_OK(tuff_copy_htod(context(), buffers.back(), 0, words.data(), 4 * n));
    }
    desc.first = buffers[0], desc.first_value = -5;
    if (count > 1) desc.second = buffers[1], desc.second_value = NAN;
    if (count > 2) desc.third = buffers[2], desc.third_value = 1e300;
    EXPECT_EQ(drawn(desc), want);
    desc.output = buffers[count - 1];
    ASSERT_OK(tuff_variates(context(), &desc));
    std::vector<uint32_t> got(n);
    ASSERT_OK(tuff_copy_dtoh(context(), got.data(), buffers[count - 1], 0, 4 * n));
    EXPECT_EQ(got, want);
  }
}

TEST_P(Variates, ParametersOutOfRange) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  struct Case {
    int32_t distribution;
    std::vector<float> wrong;
  };
  for (const Case& one : std::vector<Case>{{TUFF_VARIATES_GAMMA, {-1, kNaN, kInfinity}},
                                           {TUFF_VARIATES_LOG_GAMMA, {-1e-30f, kNaN, kInfinity}},
                                           {TUFF_VARIATES_VONMISES, {-1, kNaN, kInfinity}},
                                           {TUFF_VARIATES_POISSON, {-1, kNaN, 2147483648.0f, kInfinity}},
                                           {TUFF_VARIATES_ZIPF, {1, 0, -3, kNaN, -kInfinity}},
                                           {TUFF_VARIATES_BINOMIAL, {-0.1f, 1.0000001f, kNaN}}}) {
    const OwnBuffer wrong(context(), 4 * one.wrong.size());
    ASSERT_OK(tuff_copy_htod(context(), wrong, 0, one.wrong.data(), 4 * one.wrong.size()));
    tuff_variates_desc desc = described({one.distribution, {5}}, one.wrong.size());
    (one.distribution == TUFF_VARIATES_BINOMIAL ? desc.second : desc.first) = wrong;
    for (const uint32_t bits : drawn(desc)) {
      EXPECT_EQ(bits, desc.dtype == TUFF_F32 ? 0x7fc00000u : 0xffffffffu) << one.distribution;
    }
  }
  const std::vector<int32_t> draws = {-1, 8, 7, 0, INT32_MAX, INT32_MIN};
  const OwnBuffer third(context(), 4 * draws.size());
  ASSERT_OK(tuff_copy_htod(context(), third, 0, draws.data(), 4 * draws.size()));
  tuff_variates_desc desc = described({TUFF_VARIATES_HYPERGEOMETRIC, {3, 4}}, draws.size());
  desc.third = third;
  EXPECT_EQ(drawn(desc), (std::vector<uint32_t>{~0u, ~0u, 3, 0, ~0u, ~0u}));
  desc.first_value = desc.second_value = INT32_MAX;
  EXPECT_EQ(drawn(desc)[3], ~0u) << "good + bad is 2^32 - 2";
}

// What has one possible value.
TEST_P(Variates, EndsOfParameters) {
  const auto all = [&](const Row& row, uint32_t bits) {
    EXPECT_EQ(drawn(described(row, 300)), std::vector<uint32_t>(300, bits)) << row.distribution;
  };
  all({TUFF_VARIATES_GAMMA, {0}}, 0), all({TUFF_VARIATES_GAMMA, {-0.0}}, 0);
  all({TUFF_VARIATES_LOG_GAMMA, {0}}, 0xff800000);
  all({TUFF_VARIATES_GAMMA, {0x1p127}}, std::bit_cast<uint32_t>(0x1p127f));
  all({TUFF_VARIATES_POISSON, {0}}, 0), all({TUFF_VARIATES_POISSON, {-0.0}}, 0);
  all({TUFF_VARIATES_BINOMIAL, {0, 0.5}}, 0), all({TUFF_VARIATES_BINOMIAL, {5, 0}}, 0);
  all({TUFF_VARIATES_BINOMIAL, {2147483647, 1}}, INT32_MAX);
  all({TUFF_VARIATES_HYPERGEOMETRIC, {0, 0, 0}}, 0), all({TUFF_VARIATES_HYPERGEOMETRIC, {0, 90, 50}}, 0);
  all({TUFF_VARIATES_HYPERGEOMETRIC, {90, 0, 50}}, 50), all({TUFF_VARIATES_HYPERGEOMETRIC, {60, 50, 110}}, 60);
  all({TUFF_VARIATES_HYPERGEOMETRIC, {2147483647, 0, 2147483647}}, INT32_MAX);
}

TEST_P(Variates, BadArguments) {
  const OwnBuffer memory(context(), 400), other(context(), 800);
  tuff_variates_desc good = described({TUFF_VARIATES_BINOMIAL, {5, 0.5}}, 100);
  good.output = memory;
  ASSERT_OK(tuff_variates(context(), &good));
  const auto expect_bad = [&](tuff_status status, const char* word, auto spoil) {
    tuff_variates_desc desc = good;
    spoil(desc);
    EXPECT_FAILS(tuff_variates(context(), &desc), status, "tuff_variates", word);
  };
  expect_bad(kArgument, "distribution", [](auto& d) { d.distribution = 0; });
  expect_bad(kArgument, "distribution", [](auto& d) { d.distribution = 8; });
  expect_bad(TUFF_ERROR_UNSUPPORTED, "dtype", [](auto& d) { d.dtype = TUFF_F32; });
  expect_bad(TUFF_ERROR_UNSUPPORTED, "dtype", [](auto& d) { d.distribution = TUFF_VARIATES_GAMMA; });
  expect_bad(kArgument, "output", [](auto& d) { d.n = 101; });
  expect_bad(kArgument, "offset", [](auto& d) { d.offset = (uint64_t{1} << 56) - 99; });
  expect_bad(kArgument, "offset", [](auto& d) { d.offset = ~uint64_t{0}; });
  expect_bad(kArgument, "first_value", [](auto& d) { d.first_value = 2.5; });
  expect_bad(kArgument, "first_value", [](auto& d) { d.first_value = -1; });
  expect_bad(kArgument, "first_value", [](auto& d) { d.first_value = NAN; });
  expect_bad(kArgument, "first_value", [](auto& d) { d.first_value = 0x1p31; });
  expect_bad(kArgument, "second_value", [](auto& d) { d.second_value = INFINITY; });
  expect_bad(kArgument, "third", [&](auto& d) { d.third = other; });
  tuff_buffer shifted = 0;
  ASSERT_OK(tuff_view(other, 4, 400, &shifted));
  expect_bad(kArgument, "first", [&](auto& d) { d.output = other, d.first = shifted; });
  ASSERT_OK(tuff_free(shifted));
}
TUFF_ON_BACKENDS(Variates);

}  // namespace
}  // namespace tuff_test::variates_test
