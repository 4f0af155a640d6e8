#include <algorithm>
#include <cmath>
#include <numbers>

#include "support/harness.hpp"
#include "support/stored.hpp"

namespace tuff_test::random_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;

class RandomNumbers : public OnBackend {
 protected:
  static tuff_random_desc described(int32_t dtype, int32_t distribution, uint64_t n) {
    tuff_random_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = dtype, desc.distribution = distribution;
    desc.n = n;
    return desc;
  }
  // The elements, between bytes that must stay as they are.
  template <typename T>
  std::vector<T> drawn(tuff_random_desc desc, uint64_t shift = 0) {
    constexpr uint64_t kGuard = 64;
    const uint64_t bytes = desc.n * sizeof(T), first = kGuard + shift * sizeof(T);
    const OwnBuffer memory(context(), first + bytes + kGuard);
    const unsigned char poison = 0xa5;
    EXPECT_OK(tuff_fill(context(), memory, 0, first + bytes + kGuard, &poison, 1));
    tuff_buffer view = 0;
    EXPECT_OK(tuff_view(memory, first, bytes, &view));
    desc.output = view;
    EXPECT_OK(tuff_random(context(), &desc));
    std::vector<unsigned char> all(first + bytes + kGuard);
    EXPECT_OK(tuff_copy_dtoh(context(), all.data(), memory, 0, all.size()));
    EXPECT_OK(tuff_free(view));
    EXPECT_TRUE(std::all_of(all.begin(), all.begin() + static_cast<int64_t>(first), [](int b) { return b == 0xa5; }));
    EXPECT_TRUE(std::all_of(all.end() - kGuard, all.end(), [](int b) { return b == 0xa5; }));
    std::vector<T> result(desc.n);
    std::memcpy(result.data(), all.data() + first, bytes);
    return result;
  }
};

// The first of the test vectors that its authors publish (Random123, kat_vectors: philox4x32 10), which has counter 0
// and key 0.
TEST_P(RandomNumbers, AreThePublishedVectors) {
  const std::vector<uint32_t> words = drawn<uint32_t>(described(TUFF_U32, TUFF_RANDOM_BITS, 4));
  EXPECT_EQ(words, (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

// Independent of the library's own generator.
std::vector<uint32_t> philox(uint64_t block, uint64_t sequence, uint64_t key) {
  uint32_t c[4] = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(sequence),
                   static_cast<uint32_t>(sequence >> 32)};
  for (uint32_t round = 0; round < 10; ++round) {
    const uint64_t a = c[0] * uint64_t{0xD2511F53}, b = c[2] * uint64_t{0xCD9E8D57};
    const uint32_t k0 = static_cast<uint32_t>(key) + round * 0x9E3779B9u;
    const uint32_t k1 = static_cast<uint32_t>(key >> 32) + round * 0xBB67AE85u;
    const uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
                              static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
    std::copy(next, next + 4, c);
  }
  return {c, c + 4};
}

// The two other published vectors check the reference of the tests that follow.
TEST(RandomReference, IsPhilox) {
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (std::vector<uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822),
            (std::vector<uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST_P(RandomNumbers, BitsOfAnyPartOfASequence) {
  for (const uint64_t offset : std::vector<uint64_t>{0, 1, 2, 3, 4, 0x3fffffffe, 0xfffffffffffffff0}) {
    for (const uint64_t n : {1, 2, 3, 4, 5, 13}) {
      tuff_random_desc desc = described(TUFF_U32, TUFF_RANDOM_BITS, n);
      desc.seed = 0x123456789abcdef0, desc.sequence = 0xfedcba9876543210, desc.offset = offset;
      for (const uint64_t shift : {0, 1, 3}) {
        const std::vector<uint32_t> words = drawn<uint32_t>(desc, shift);
        desc.dtype = TUFF_U8;
        const std::vector<uint8_t> bytes = drawn<uint8_t>(desc, shift);
        desc.dtype = TUFF_U32;
        for (uint64_t i = 0; i < n; ++i) {
          const uint64_t at = offset + i;
          const uint32_t want = philox(at / 4, desc.sequence, desc.seed)[at % 4];
          ASSERT_EQ(words[i], want) << "offset " << offset << " element " << i;
          ASSERT_EQ(bytes[i], static_cast<uint8_t>(want)) << "offset " << offset << " element " << i;
        }
      }
    }
  }
}

TEST_P(RandomNumbers, IntegersAreTheUpperBitsOfAProduct) {
  struct Span {
    int32_t dtype;
    int64_t least, most;
  };
  for (const Span& span : std::vector<Span>{{TUFF_I32, -3, 3},
                                            {TUFF_I32, 7, 7},
                                            {TUFF_I32, INT32_MIN, INT32_MAX},
                                            {TUFF_I32, INT32_MIN, INT32_MAX - 1},
                                            {TUFF_I32, 0, 0x7fffffff}}) {
    tuff_random_desc desc = described(span.dtype, TUFF_RANDOM_INTEGERS, 301);
    desc.least = span.least, desc.most = span.most, desc.seed = 5, desc.offset = 0x1fffffffd;
    const std::vector<int32_t> got = drawn<int32_t>(desc, 1);
    for (uint64_t i = 0; i < desc.n; ++i) {
      const uint64_t at = desc.offset + i;
      const uint64_t high = philox(at / 4, 0, 5)[at % 4], low = philox(at / 4 | uint64_t{1} << 63, 0, 5)[at % 4];
      const auto range = static_cast<uint64_t>(span.most - span.least + 1);  // at most 2^32, so nothing wraps
      ASSERT_EQ(got[i], span.least + static_cast<int64_t>((high * range + (low * range >> 32)) >> 32)) << i;
    }
  }
}

// From the words, in double precision. Errors in f32: the logarithm and the root are within a few units, the direction
// within 2^-23 of 1.
TEST_P(RandomNumbers, NormalsAndExponentialsMatchDoubles) {
  tuff_random_desc desc = described(TUFF_F32, TUFF_RANDOM_NORMAL, 20'001);
  desc.seed = 99;
  const std::vector<float> normals = drawn<float>(desc);
  desc.distribution = TUFF_RANDOM_EXPONENTIAL;
  const std::vector<float> exponentials = drawn<float>(desc);
  const auto minus_log = [](uint32_t w) { return -std::log((2.0 * w + 1) / 0x1p33); };
  for (uint64_t i = 0; i < desc.n; ++i) {
    const std::vector<uint32_t> words = philox(i / 4, 0, 99);
    // Truncating the fraction to 24 bits changes it by 2^-23 at most.
    const double e = minus_log(words[i % 4]);
    ASSERT_NEAR(exponentials[i], e, 0x1p-23 + 4 * 0x1p-24 * e) << i;
    const uint64_t pair = i % 4 / 2 * 2;
    const double l = 2 * minus_log(words[pair]), radius = std::sqrt(l);
    const double angle = 2 * std::numbers::pi * (words[pair + 1] + 0.5) / 0x1p32;
    const double z = radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
    // l is off by 2^-22 + 4 units, the root by half of that relatively; the angle by half a step of 2 pi 2^-26.
    const double root_error = (0x1p-22 + 8 * 0x1p-24 * l) / (2 * radius) + 6 * 0x1p-24 * radius;
    ASSERT_NEAR(normals[i], z, root_error + radius * (std::numbers::pi * 0x1p-26 + 4 * 0x1p-24)) << i;
  }
}

TEST_P(RandomNumbers, UniformsHoldAsManyBitsAsTheTypeAndAreNever1) {
  for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
    const uint64_t n = 50'000;
    tuff_random_desc desc = described(dtype, TUFF_RANDOM_UNIFORM, n);
    const StoredTensor output(context(), dtype, n, 0);
    desc.output = output;
    ASSERT_OK(tuff_random(context(), &desc));
    const std::vector<float> values = output.read();
    const int bits = dtype == TUFF_F32 ? 24 : dtype == TUFF_F16 ? 11 : 8;
    for (uint64_t i = 0; i < n; ++i) {
      const double want = std::floor(std::ldexp(philox(i / 4, 0, 0)[i % 4], bits - 32)) * std::ldexp(1.0, -bits);
      ASSERT_EQ(values[i], want) << name_of(dtype) << " " << i;
      ASSERT_LT(values[i], 1);
    }
  }
}

// Moments and distribution of a million numbers. Bounds are five standard deviations of the estimate; for the
// Kolmogorov-Smirnov distance, 2.7 / sqrt(n), which is exceeded once in a million times.
TEST_P(RandomNumbers, FollowTheirDistributions) {
  const uint64_t n = 1'000'000;
  const auto root = std::sqrt(static_cast<double>(n));
  const auto distance = [&](std::vector<float> x, auto cumulative) {
    std::sort(x.begin(), x.end());
    double most = 0;
    for (uint64_t i = 0; i < n; ++i) {
      const double f = cumulative(static_cast<double>(x[i])), share = static_cast<double>(i) / static_cast<double>(n);
      most = std::max({most, std::fabs(f - share), std::fabs(f - share - 1.0 / static_cast<double>(n))});
    }
    return most;
  };
  tuff_random_desc desc = described(TUFF_F32, TUFF_RANDOM_NORMAL, n);
  desc.seed = 20261125, desc.mean = 3, desc.deviation = 2;
  const std::vector<float> normals = drawn<float>(desc);
  double sum = 0, squares = 0, neighbours = 0;
  for (uint64_t i = 0; i < n; ++i) {
    const double z = (normals[i] - 3.0) / 2;
    sum += z, squares += z * z;
    if (i != 0) neighbours += z * (normals[i - 1] - 3.0) / 2;
  }
  EXPECT_LT(std::fabs(sum), 5 * root);
  EXPECT_LT(std::fabs(squares - static_cast<double>(n)), 5 * std::sqrt(2) * root);
  EXPECT_LT(std::fabs(neighbours), 5 * root);
  EXPECT_LT(distance(normals, [](double x) { return std::erfc(-(x - 3) / 2 / std::sqrt(2)) / 2; }), 2.7 / root);
  desc.distribution = TUFF_RANDOM_EXPONENTIAL, desc.scale = 0.5;
  EXPECT_LT(distance(drawn<float>(desc), [](double x) { return -std::expm1(-2 * x); }), 2.7 / root);
  desc.distribution = TUFF_RANDOM_UNIFORM, desc.low = -1, desc.high = 3;
  EXPECT_LT(distance(drawn<float>(desc), [](double x) { return (x + 1) / 4; }), 2.7 / root);
}

TEST_P(RandomNumbers, BernoulliHasItsProbability) {
  const uint64_t n = 400'000;
  for (const double p : {0.0, 0.3, 1.0}) {
    tuff_random_desc desc = described(TUFF_U8, TUFF_RANDOM_BERNOULLI, n);
    desc.probability = p;
    const std::vector<uint8_t> bytes = drawn<uint8_t>(desc, 1);
    const auto ones = static_cast<double>(std::count(bytes.begin(), bytes.end(), 1));
    EXPECT_EQ(ones + static_cast<double>(std::count(bytes.begin(), bytes.end(), 0)), n);
    EXPECT_NEAR(ones, p * n, 5 * std::sqrt(p * (1 - p) * n));
    desc.dtype = TUFF_F32;
    const std::vector<float> floats = drawn<float>(desc);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), floats.begin()));
  }
}

TEST_P(RandomNumbers, BadArguments) {
  const OwnBuffer memory(context(), 400);
  tuff_random_desc good = described(TUFF_F32, TUFF_RANDOM_NORMAL, 100);
  good.output = memory;
  ASSERT_OK(tuff_random(context(), &good));
  const auto expect_bad = [&](tuff_status status, const char* word, auto spoil) {
    tuff_random_desc desc = good;
    spoil(desc);
    EXPECT_FAILS(tuff_random(context(), &desc), status, "tuff_random", word);
  };
  expect_bad(kArgument, "distribution", [](auto& d) { d.distribution = 0; });
  expect_bad(kArgument, "distribution", [](auto& d) { d.distribution = 7; });
  expect_bad(kArgument, "dtype", [](auto& d) { d.dtype = 0; });
  expect_bad(TUFF_ERROR_UNSUPPORTED, "dtype", [](auto& d) { d.dtype = TUFF_I32; });
  expect_bad(TUFF_ERROR_UNSUPPORTED, "dtype", [](auto& d) { d.distribution = TUFF_RANDOM_BITS; });
  expect_bad(kArgument, "output", [](auto& d) { d.n = 101; });
  expect_bad(kArgument, "output", [](auto& d) { d.n = ~uint64_t{0}; });
  expect_bad(kArgument, "offset", [](auto& d) { d.offset = ~uint64_t{0} - 99; });
  expect_bad(kArgument, "mean", [](auto& d) { d.mean = NAN; });
  expect_bad(kArgument, "mean", [](auto& d) { d.mean = 1e39; });
  expect_bad(kArgument, "deviation", [](auto& d) { d.deviation = -1; });
  expect_bad(kArgument, "scale", [](auto& d) { d.distribution = TUFF_RANDOM_EXPONENTIAL, d.scale = INFINITY; });
  expect_bad(kArgument, "low", [](auto& d) { d.distribution = TUFF_RANDOM_UNIFORM, d.low = 2, d.high = 1; });
  expect_bad(kArgument, "high", [](auto& d) { d.distribution = TUFF_RANDOM_UNIFORM, d.low = -3e38, d.high = 3e38; });
  for (const double p : {-0.1, 1.1, static_cast<double>(NAN)}) {
    expect_bad(kArgument, "probability", [p](auto& d) { d.distribution = TUFF_RANDOM_BERNOULLI, d.probability = p; });
  }
  const auto integers = [](auto& d, int64_t least, int64_t most) {
    d.dtype = TUFF_I8, d.distribution = TUFF_RANDOM_INTEGERS, d.least = least, d.most = most;
  };
  expect_bad(kArgument, "least", [&](auto& d) { integers(d, 3, 2); });
  expect_bad(kArgument, "least", [&](auto& d) { integers(d, -129, 2); });
  expect_bad(kArgument, "most", [&](auto& d) { integers(d, 0, 128); });
  expect_bad(kArgument, "least", [&](auto& d) { integers(d, INT64_MIN, INT64_MAX); });
}
TUFF_ON_BACKENDS(RandomNumbers);

}  // namespace
}  // namespace tuff_test::random_test
