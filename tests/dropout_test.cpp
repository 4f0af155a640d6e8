// Dropout: which elements are dropped, what the others become, and the mask.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/harness.hpp"
#include "support/stored.hpp"

namespace tuff_test::dropout_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;

class RandomDropout : public OnBackend {
 protected:
  static tuff_dropout_desc described(int32_t dtype, tuff_buffer input, tuff_buffer output, uint64_t n) {
    tuff_dropout_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = dtype, desc.input = input, desc.output = output;
    desc.n = n, desc.probability = 0.25, desc.seed = 77, desc.sequence = 3;
    return desc;
  }

  // Where tuff_random() has a 1 for this seed, sequence and offset, which its own tests compare with Philox.
  std::vector<unsigned char> drops(const tuff_dropout_desc& desc) {
    const OwnBuffer memory(context(), std::max<uint64_t>(desc.n, 1));
    tuff_random_desc random{};
    random.struct_size = sizeof random;
    random.dtype = TUFF_U8, random.distribution = TUFF_RANDOM_BERNOULLI;
    random.output = memory, random.n = desc.n;
    random.seed = desc.seed, random.sequence = desc.sequence, random.offset = desc.offset;
    random.probability = desc.probability;
    EXPECT_OK(tuff_random(context(), &random));
    std::vector<unsigned char> found(desc.n);
    EXPECT_OK(tuff_copy_dtoh(context(), found.data(), memory, 0, desc.n));
    return found;
  }

  // One multiplication of f32, and one rounding to the type.
  static std::vector<float> expected(const tuff_dropout_desc& desc, const std::vector<float>& x,
                                     const std::vector<unsigned char>& dropped) {
    const auto factor = static_cast<float>(desc.probability < 1 ? 1 / (1 - desc.probability) : 0);
    std::vector<float> y(x.size());
    for (size_t i = 0; i < x.size(); ++i) y[i] = dropped[i] != 0 ? 0.0f : x[i] * factor;
    return rounded(desc.dtype, y);
  }
};

TEST_P(RandomDropout, DropsWhereRandomNumbersSayAndScalesTheRest) {
  for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
    for (const uint64_t n : {1, 3, 4, 5, 64, 1003, 100'000}) {
      for (const uint64_t offset : std::vector<uint64_t>{0, 1, 7, 0x3fffffffd}) {
        for (const uint64_t shift : {0, 1, 3}) {
          if (n > 2000 && (offset > 1 || shift > 1)) continue;
          SCOPED_TRACE(std::to_string(dtype) + " n " + std::to_string(n) + " offset " + std::to_string(offset) +
                       " shift " + std::to_string(shift));
          const std::vector<float> x = rounded(dtype, uniforms(n, -3, 3, n));
          const StoredTensor input(context(), dtype, x, shift), output(context(), dtype, n, shift);
          const OwnBuffer memory(context(), n + 9);
          const unsigned char poison = 0xa5;
          ASSERT_OK(tuff_fill(context(), memory, 0, n + 9, &poison, 1));
          tuff_buffer mask = 0;
          ASSERT_OK(tuff_view(memory, 4 + shift, n, &mask));
          tuff_dropout_desc desc = described(dtype, input, output, n);
          desc.offset = offset, desc.mask = mask;
          ASSERT_OK(tuff_dropout(context(), &desc));
          std::vector<unsigned char> kept(n + 9);
          ASSERT_OK(tuff_copy_dtoh(context(), kept.data(), memory, 0, kept.size()));
          ASSERT_OK(tuff_free(mask));
          const std::vector<unsigned char> dropped = drops(desc);
          expect_same_bits(output.read(), expected(desc, x, dropped));
          input.expect_unchanged(x);
          for (uint64_t i = 0; i < kept.size(); ++i) {
            const bool inside = i >= 4 + shift && i < 4 + shift + n;
            ASSERT_EQ(kept[i], inside ? 1 - dropped[i - 4 - shift] : 0xa5) << i;
          }
          // The same without a mask, and in place.
          desc.mask = 0;
          const StoredTensor both(context(), dtype, x, shift);
          desc.input = desc.output = both;
          ASSERT_OK(tuff_dropout(context(), &desc));
          expect_same_bits(both.read(), expected(desc, x, dropped));
        }
      }
    }
  }
}

TEST_P(RandomDropout, ProbabilitiesAtTheEnds) {
  const std::vector<float> x = uniforms(1001, -1, 1, 5);
  for (const double probability : {0.0, 1.0, 0x1p-34, 1 - 0x1p-34, 0.5}) {
    const Tensor input(context(), x), output(context(), x.size());
    tuff_dropout_desc desc = described(TUFF_F32, input, output, x.size());
    desc.probability = probability;
    ASSERT_OK(tuff_dropout(context(), &desc));
    const std::vector<unsigned char> dropped = drops(desc);
    const auto count = std::count(dropped.begin(), dropped.end(), 1);
    // Rounded to 0 or 1.
    const bool none = probability<0x1p-33, all = probability> 1 - 0x1p-33;
    EXPECT_TRUE((!none || count == 0) && (!all || count == 1001)) << probability << " " << count;
    expect_same_bits(output.read(), expected(desc, x, dropped));
  }
}

// The share of dropped elements is within five standard deviations: a probability of 6e-7 to fail, for this one seed.
TEST_P(RandomDropout, AsManyAreDroppedAsTheProbabilitySays) {
  constexpr uint64_t kCount = 200'000;
  const Tensor input(context(), std::vector<float>(kCount, 1.0f)), output(context(), kCount);
  for (const double probability : {0.1, 0.5, 0.9}) {
    tuff_dropout_desc desc = described(TUFF_F32, input, output, kCount);
    desc.probability = probability;
    ASSERT_OK(tuff_dropout(context(), &desc));
    const std::vector<float> y = output.read();
    const auto dropped = static_cast<double>(std::count(y.begin(), y.end(), 0.0f));
    EXPECT_NEAR(dropped, kCount * probability, 5 * std::sqrt(kCount * probability * (1 - probability)));
    EXPECT_EQ(*std::max_element(y.begin(), y.end()), static_cast<float>(1 / (1 - probability)));
  }
}

TEST_P(RandomDropout, InfinitiesAndNaNAreDroppedToo) {
  std::vector<float> x(4096, INFINITY);
  for (size_t i = 0; i < x.size(); i += 2) x[i] = std::numeric_limits<float>::quiet_NaN();
  const Tensor input(context(), x), output(context(), x.size());
  const tuff_dropout_desc desc = described(TUFF_F32, input, output, x.size());
  ASSERT_OK(tuff_dropout(context(), &desc));
  const std::vector<float> y = output.read();
  const std::vector<unsigned char> dropped = drops(desc);
  for (size_t i = 0; i < y.size(); ++i) {
    if (dropped[i] != 0) {
      ASSERT_EQ(y[i], 0) << i;
    } else {
      ASSERT_TRUE(i % 2 == 0 ? std::isnan(y[i]) : std::isinf(y[i])) << i;
    }
  }
}

TEST_P(RandomDropout, PartsOfASequenceAreTheSameAsTheWhole) {
  const std::vector<float> x = uniforms(3000, -1, 1, 6);
  const Tensor input(context(), x), whole(context(), x.size()), parts(context(), x.size());
  tuff_dropout_desc desc = described(TUFF_F32, input, whole, x.size());
  ASSERT_OK(tuff_dropout(context(), &desc));
  for (const auto& [begin, end] : std::vector<std::pair<uint64_t, uint64_t>>{{0, 1001}, {1001, 1004}, {1004, 3000}}) {
    tuff_buffer from = 0, to = 0;
    ASSERT_OK(tuff_view(input, begin * 4, (end - begin) * 4, &from));
    ASSERT_OK(tuff_view(parts, begin * 4, (end - begin) * 4, &to));
    desc.input = from, desc.output = to, desc.n = end - begin, desc.offset = begin;
    ASSERT_OK(tuff_dropout(context(), &desc));
    ASSERT_OK(tuff_free(from));
    ASSERT_OK(tuff_free(to));
  }
  expect_same_bits(parts.read(), whole.read());
}

TEST_P(RandomDropout, NothingIsTouchedForNoElements) {
  const Tensor x(context(), 4), y(context(), 4);
  tuff_dropout_desc desc = described(TUFF_F32, x, y, 0);
  EXPECT_OK(tuff_dropout(context(), &desc));
  desc.input = desc.output = 0;
  EXPECT_OK(tuff_dropout(context(), &desc));
  y.expect_poisoned();
}

TEST_P(RandomDropout, BadCallsSayWhatIsWrong) {
  const Tensor x(context(), 1000), y(context(), 99);
  const auto status = [&](auto change) {
    tuff_dropout_desc desc = described(TUFF_F32, x, y, 99);
    change(desc);
    return tuff_dropout(context(), &desc);
  };
  EXPECT_OK(status([](auto&) {}));
  EXPECT_FAILS(status([](auto& d) { d.probability = 1.5; }), kArgument, "tuff_dropout", "probability is 1.5");
  EXPECT_FAILS(status([](auto& d) { d.probability = -0.1; }), kArgument, "tuff_dropout", "probability");
  EXPECT_FAILS(status([](auto& d) { d.probability = NAN; }), kArgument, "tuff_dropout", "probability");
  EXPECT_FAILS(status([](auto& d) { d.n = 500; }), kArgument, "tuff_dropout", "output");
  EXPECT_FAILS(status([](auto& d) { d.n = uint64_t{1} << 62; }), kArgument, "tuff_dropout", "input");
  EXPECT_FAILS(status([](auto& d) { d.offset = UINT64_MAX - 98; }), kArgument, "tuff_dropout", "offset");
  EXPECT_FAILS(status([](auto& d) { d.dtype = TUFF_F64; }), TUFF_ERROR_UNSUPPORTED, "tuff_dropout", "dtype");
  EXPECT_FAILS(status([](auto& d) { d.dtype = 77; }), kArgument, "tuff_dropout", "dtype");
  EXPECT_FAILS(status([](auto& d) { d.mask = d.input; }), kArgument, "tuff_dropout", "mask");
  EXPECT_FAILS(status([](auto& d) { d.mask = d.output; }), kArgument, "tuff_dropout", "mask");
  EXPECT_FAILS(status([](auto& d) { d.struct_size = 64; }), kArgument, "tuff_dropout", "struct_size");
  // Overlap, but not the same range.
  tuff_buffer shifted = 0;
  ASSERT_OK(tuff_view(x, 4, 99 * 4, &shifted));
  EXPECT_FAILS(status([&](auto& d) { d.output = shifted; }), kArgument, "tuff_dropout", "output");
  EXPECT_OK(tuff_free(shifted));
}
TUFF_ON_BACKENDS(RandomDropout);

}  // namespace
}  // namespace tuff_test::dropout_test
