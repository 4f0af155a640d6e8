#include <cmath>

#include "support/axis_shape.hpp"
#include "support/bounds.hpp"
#include "support/integers.hpp"
#include "support/stored.hpp"

namespace tuff_test::scan_test {
namespace {

struct ScanCase {
  AxisShape shape;
  bool product = false, exclusive = false, reverse = false;
  int32_t dtype = TUFF_F32;

  std::string name() const {
    return std::string(product ? "prod_" : "sum_")
               .append(exclusive ? "exclusive_" : "")
               .append(reverse ? "reverse_" : "") +
           name_of(dtype) + "_" + shape.name();
  }
  double work() const { return shape.work(); }
};

std::vector<ScanCase> cases() {
  std::vector<ScanCase> all;
  uint32_t turn = 0;
  const auto add = [&](const AxisShape& shape, int32_t dtype) {
    if (shape.count() > 5'000'000) return;
    ++turn;
    all.push_back({shape, turn % 3 == 0, turn % 2 == 0, turn % 4 >= 2, dtype});
  };
  for (const AxisShape& shape : axis_shapes()) add(shape, TUFF_F32);
  for (const AxisShape& shape : axis_shapes16()) add(shape, turn % 2 == 0 ? TUFF_F16 : TUFF_BF16);
  // Each variant with short, whole and cut rows, and the same for columns.
  for (const AxisShape& shape : std::vector<AxisShape>{{{40, 33}, 1, 0},
                                                       {{3, 40'000}, 1, 0},
                                                       {{3, 40'001}, 1, 4},
                                                       {{9, 20, 12}, 1, 0},
                                                       {{5'000, 7}, 0, 4},
                                                       {{2, 5'000, 16}, 1, 0}}) {
    for (const bool product : {false, true}) {
      for (const bool exclusive : {false, true}) {
        for (const bool reverse : {false, true}) all.push_back({shape, product, exclusive, reverse});
      }
    }
  }
  return all;
}

std::vector<float> inputs(const ScanCase& row) {
  const uint64_t count = row.shape.count();
  if (!row.product) {
    // Keeps running sums in 16 bits in range.
    return row.dtype == TUFF_F16 ? uniforms(count, -0.01f, 0.01f, 2) : spreads(count, 2);
  }
  const float spread = row.shape.length() > 1000 ? 1e-5f : 0.01f;  // keeps a product of a million of them in range
  std::vector<float> values = uniforms(count, 1 - spread, 1 + spread, 3);
  for (uint64_t i = 0; i < count; i += 3) values[i] = -values[i];
  return values;
}

// The header's promise: c roundings, c = min(n, 6000), relative to the sum of magnitudes or to the product.
Expected solve(const ScanCase& row, const std::vector<float>& x) {
  const AxisShape& s = row.shape;
  Expected expected;
  expected.value.resize(s.count()), expected.bound.resize(s.count());
  for (uint64_t o = 0; o < s.outer(); ++o) {
    for (uint64_t i = 0; i < s.inner(); ++i) {
      double value = row.product ? 1 : 0, size = 0;
      for (uint64_t step = 0; step < s.length(); ++step) {
        const uint64_t at = s.index(o, row.reverse ? s.length() - 1 - step : step, i);
        const double before = value, size_before = size;
        value = row.product ? value * x[at] : value + x[at];
        size = row.product ? std::fabs(value) : size + std::fabs(x[at]);
        expected.value[at] = row.exclusive ? before : value;
        expected.bound[at] =
            gamma(row.product ? static_cast<double>(step + 1) : std::min<double>(static_cast<double>(step + 1), 6000)) *
            (row.exclusive ? size_before : size);
      }
    }
  }
  add_storage(expected, row.dtype);
  return expected;
}

tuff_scan_desc described(const ScanCase& row, tuff_buffer input, tuff_buffer output) {
  tuff_scan_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = row.dtype;
  desc.input = input, desc.output = output;
  std::copy(row.shape.shape.begin(), row.shape.shape.end(), desc.shape);
  desc.rank = row.shape.rank(), desc.axis = row.shape.axis;
  desc.exclusive = row.exclusive, desc.reverse = row.reverse;
  return desc;
}

tuff_status run(tuff_context context, const ScanCase& row, tuff_buffer input, tuff_buffer output) {
  const tuff_scan_desc desc = described(row, input, output);
  return row.product ? tuff_cumprod(context, &desc) : tuff_cumsum(context, &desc);
}

using Scan = Table<ScanCase>;

TEST_P(Scan, Matches) {
  const AxisShape& s = row().shape;
  const std::vector<float> x = rounded(row().dtype, inputs(row()));
  const StoredTensor input(context(), row().dtype, x, s.shift / 4),
      output(context(), row().dtype, s.count(), s.shift / 4);
  ASSERT_OK(run(context(), row(), input, output));
  expect_matches(output.read(), solve(row(), x));
  input.expect_unchanged(x);
}
TUFF_TABLE(Scan, ScanCase, cases());

class ScanOnce : public OnBackend {};

// Small integers make every order of additions exact, and reveal elements that are counted twice or not at all.
TEST_P(ScanOnce, SumsOfIntegersAreExactAndInPlaceIsTheSame) {
  for (const AxisShape& s : std::vector<AxisShape>{{{1, 300'007}, 1, 0},
                                                   {{50'001, 3}, 0, 0},
                                                   {{3, 4, 5, 6}, 2, 0},
                                                   {{2, 1, 2, 3, 1, 2, 5, 3}, 6, 0},
                                                   {{100'000}, 0, 0}}) {
    for (const bool reverse : {false, true}) {
      SCOPED_TRACE(s.name());
      const std::vector<float> x = integers(s.count(), 8, 5);
      const ScanCase row{s, false, false, reverse};
      Expected expected = solve(row, x);
      std::fill(expected.bound.begin(), expected.bound.end(), 0);
      const Tensor output(context(), s.count()), both(context(), x);
      ASSERT_OK(run(context(), row, Tensor(context(), x), output));
      expect_matches(output.read(), expected);
      ASSERT_OK(run(context(), row, both, both));
      expect_same_bits(both.read(), output.read());
    }
  }
}

TEST_P(ScanOnce, ANaNReachesWhatFollowsAndNothingElse) {
  for (const uint64_t inner : {1, 4}) {
    for (const uint64_t place : {0, 5, 999, 30'000}) {
      const uint64_t n = 40'000;
      std::vector<float> x(n * inner, 1.0f);
      x[place * inner] = NAN;
      const Tensor input(context(), x), output(context(), n * inner);
      ASSERT_OK(run(context(), {{{n, inner}, 0, 0}}, input, output));
      const std::vector<float> y = output.read();
      for (uint64_t i = 0; i < n * inner; ++i) {
        const bool behind = i % inner == 0 && i / inner >= place;
        ASSERT_EQ(std::isnan(y[i]), behind) << i;
        if (behind) continue;
        ASSERT_EQ(y[i], static_cast<float>(i / inner + 1)) << i;
      }
    }
  }
}

TEST_P(ScanOnce, AnEmptyTensorTouchesNothing) {
  const Tensor x(context(), 4), y(context(), 4);
  for (const AxisShape& s : std::vector<AxisShape>{{{0}, 0, 0}, {{3, 0}, 1, 0}, {{3, 0}, 0, 0}, {{0, 4}, 0, 0}}) {
    EXPECT_OK(run(context(), {s}, x, y));
    EXPECT_OK(run(context(), {s}, 0, 0));
  }
  y.expect_poisoned();
}

TEST_P(ScanOnce, BadCallsSayWhatIsWrong) {
  const Tensor x(context(), 1000), y(context(), 99);
  const auto status = [&](auto change) {
    tuff_scan_desc desc = described({{{10, 10}, 1, 0}}, x, y);
    desc.shape[0] = 9;
    change(desc);
    return tuff_cumsum(context(), &desc);
  };
  EXPECT_OK(status([](auto&) {}));
  EXPECT_FAILS(status([](auto& d) { d.axis = 2; }), TUFF_ERROR_INVALID_ARGUMENT, "tuff_cumsum", "axis");
  EXPECT_FAILS(status([](auto& d) { d.rank = 9; }), TUFF_ERROR_INVALID_ARGUMENT, "tuff_cumsum", "rank");
  EXPECT_FAILS(status([](auto& d) { d.rank = 0; }), TUFF_ERROR_INVALID_ARGUMENT, "tuff_cumsum", "rank");
  EXPECT_FAILS(status([](auto& d) { d.shape[0] = 100; }), TUFF_ERROR_INVALID_ARGUMENT, "tuff_cumsum", "output");
  EXPECT_FAILS(status([](auto& d) { d.shape[0] = uint64_t{1} << 62; }), TUFF_ERROR_INVALID_ARGUMENT, "tuff_cumsum",
               "shape");
  EXPECT_FAILS(status([](auto& d) { d.dtype = TUFF_BOOL; }), TUFF_ERROR_UNSUPPORTED, "tuff_cumsum", "dtype");
  EXPECT_NE(last_error().find("cumsum takes f32, f16, bf16, f64, i32,"), std::string::npos) << last_error();
  EXPECT_FAILS(status([](auto& d) { d.dtype = 77; }), TUFF_ERROR_INVALID_ARGUMENT, "tuff_cumsum", "dtype");
  EXPECT_FAILS(status([](auto& d) { d.struct_size = 96; }), TUFF_ERROR_INVALID_ARGUMENT, "tuff_cumsum", "struct_size");
}
TUFF_ON_BACKENDS(ScanOnce);

// --- integers ----------------------------------------------------------------------------------------------------

// The same shapes and forms as for floats.
std::vector<ScanCase> integer_cases() {
  std::vector<ScanCase> all;
  for (ScanCase row : cases()) {
    if (row.dtype != TUFF_F32) continue;
    row.dtype = TUFF_I32;
    all.push_back(row);
  }
  return all;
}

std::vector<int32_t> scanned(const ScanCase& row, const std::vector<int32_t>& x) {
  const AxisShape& s = row.shape;
  std::vector<int32_t> y(x.size());
  for (uint64_t o = 0; o < s.outer(); ++o) {
    for (uint64_t i = 0; i < s.inner(); ++i) {
      uint32_t value = row.product ? 1 : 0;
      for (uint64_t step = 0; step < s.length(); ++step) {
        const uint64_t at = s.index(o, row.reverse ? s.length() - 1 - step : step, i);
        const auto next = static_cast<uint32_t>(x[at]);
        const uint32_t before = value;
        value = row.product ? value * next : value + next;
        y[at] = static_cast<int32_t>(row.exclusive ? before : value);
      }
    }
  }
  return y;
}

using ScanIntegers = Table<ScanCase>;

// Any 32 bits, so that sums and products wrap; odd ones for products, because zero absorbs.
TEST_P(ScanIntegers, AreExactModulo2To32) {
  const AxisShape& s = row().shape;
  std::vector<int32_t> x(s.count());
  Random random(12);
  for (int32_t& value : x) value = static_cast<int32_t>(random.next() >> 32 | (row().product ? 1 : 0));
  const TypedTensor input(context(), TUFF_I32, bytes_of(x), s.shift / 4),
      output(context(), TUFF_I32, poisoned_integers(s.count()), s.shift / 4);
  ASSERT_OK(run(context(), row(), input, output));
  const std::vector<int32_t> wanted = scanned(row(), x);
  EXPECT_EQ(integers_of(output.read()), wanted);
  EXPECT_EQ(integers_of(input.read()), x);
  ASSERT_OK(run(context(), row(), input, input));
  EXPECT_EQ(integers_of(input.read()), wanted);
}
TUFF_TABLE(ScanIntegers, ScanCase, integer_cases());

class ScanIntegersOnce : public OnBackend {
 protected:
  std::vector<int32_t> scan(bool product, const std::vector<int32_t>& x, bool exclusive = false) {
    const TypedTensor input(context(), TUFF_I32, bytes_of(x)), output(context(), TUFF_I32, poisoned_integers(x.size()));
    EXPECT_OK(run(context(), {{{x.size()}, 0, 0}, product, exclusive, false, TUFF_I32}, input, output));
    return integers_of(output.read());
  }
};

TEST_P(ScanIntegersOnce, EndsOfTheRange) {
  using Integers = std::vector<int32_t>;
  EXPECT_EQ(scan(false, {INT32_MAX, 1, -1}), (Integers{INT32_MAX, INT32_MIN, INT32_MAX}));
  EXPECT_EQ(scan(false, {INT32_MIN, INT32_MIN, 5}), (Integers{INT32_MIN, 0, 5}));
  // What f32 would round.
  EXPECT_EQ(scan(false, {1 << 24, 1, 1}), (Integers{1 << 24, (1 << 24) + 1, (1 << 24) + 2}));
  EXPECT_EQ(scan(true, {INT32_MIN, -1, 3}), (Integers{INT32_MIN, INT32_MIN, INT32_MIN}));
  EXPECT_EQ(scan(true, {65'536, 65'535, 65'536}), (Integers{65'536, -65'536, 0}));
  EXPECT_EQ(scan(true, {7, 9, 11}, true), (Integers{1, 7, 63}));
  EXPECT_EQ(scan(false, {7, 9, 11}, true), (Integers{0, 7, 16}));
  for (const char* feature : {"cumsum.i32", "cumprod.i32"}) {
    int32_t yes = -1;
    EXPECT_OK(tuff_supports(context(), feature, &yes));
    EXPECT_EQ(yes, 1) << feature;
  }
}
TUFF_ON_BACKENDS(ScanIntegersOnce);

}  // namespace
}  // namespace tuff_test::scan_test
