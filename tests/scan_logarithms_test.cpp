// Cumulative logarithms of sums of exponentials, compared with a loop in long double, within the bound of tuff.h.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/axis_shape.hpp"
#include "support/typed_gemm.hpp"

namespace tuff_test::scan_logarithms_test {
namespace {

enum Values : int { kNormal, kSpread, kRising, kFalling, kEqual, kFar, kEmpty };
constexpr const char* kNames[] = {"normal", "spread", "rising", "falling", "equal", "far", "empty"};

struct LogarithmCase {
  int32_t dtype;
  AxisShape shape;
  int values;
  bool exclusive, reverse;

  std::string name() const {
    return std::string(kNames[values])
        .append("_")
        .append(exclusive ? "exclusive_" : "")
        .append(reverse ? "reverse_" : "")
        .append(name_of(dtype))
        .append("_")
        .append(shape.name());
  }
  double work() const { return 4 * shape.work(); }
};

// Rows and columns, whole blocks and odd lengths, one segment and several, unaligned starts.
std::vector<LogarithmCase> logarithm_cases() {
  const std::vector<AxisShape> shapes = {{{3, 1030}, 1, 4},  {{2, 300, 24}, 1, 0}, {{40'000}, 0, 0},
                                         {{5, 71, 3}, 1, 4}, {{64, 128}, 1, 0},    {{5'000, 7}, 0, 8},
                                         {{1, 9}, 0, 0},     {{3, 40'001}, 1, 4}};
  std::vector<LogarithmCase> all;
  size_t turn = 0;
  for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16, TUFF_F64}) {
    for (int values = kNormal; values <= kEmpty; ++values) {
      for (int repeat = 0; repeat < (dtype == TUFF_F32 ? 4 : 2); ++repeat, ++turn) {
        all.push_back({dtype, shapes[turn % shapes.size()], values, turn % 3 == 0, turn % 4 >= 2});
      }
    }
  }
  return all;
}

double value_of(const LogarithmCase& row, uint64_t at, double unit) {
  switch (row.values) {
    case kNormal: return 4 * unit;
    case kSpread: return 300 * unit;
    case kRising: return 0.01 * static_cast<double>(at % 5'000) + 0.001 * unit;
    case kFalling: return -0.01 * static_cast<double>(at % 5'000) + 0.001 * unit;
    case kEqual: return -7.25;
    case kFar: return 30'000 + unit;                     // e^x is beyond every type but the exponent's range of f64
    default: return unit < 0.5 ? -INFINITY : 20 * unit;  // terms of 0
  }
}

Bytes inputs(const LogarithmCase& row) {
  Bytes bytes(row.shape.count() * size_of(row.dtype));
  Random random(29);
  for (uint64_t i = 0; i < row.shape.count(); ++i) {
    const double unit = static_cast<double>(random.next() >> 11) * 0x1p-52 - 1;
    set_element(row.dtype, bytes, i, value_of(row, i, unit));
  }
  return bytes;
}

tuff_scan_desc described(int32_t dtype, const AxisShape& shape, tuff_buffer input, tuff_buffer output) {
  tuff_scan_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = dtype, desc.input = input, desc.output = output;
  std::copy(shape.shape.begin(), shape.shape.end(), desc.shape);
  desc.rank = shape.rank(), desc.axis = shape.axis;
  return desc;
}

// The first results that are wrong.
std::string compared(const LogarithmCase& row, const Bytes& x, const Bytes& got) {
  const AxisShape& s = row.shape;
  std::string wrong;
  const double unit = row.dtype == TUFF_F64 ? 0x1p-49 : 0x1p-20;
  for (uint64_t o = 0; o < s.outer(); ++o) {
    for (uint64_t i = 0; i < s.inner(); ++i) {
      long double most = -INFINITY, sum = 0;
      for (uint64_t step = 0; step < s.length() && wrong.size() < 300; ++step) {
        const uint64_t at = s.index(o, row.reverse ? s.length() - 1 - step : step, i);
        const long double before = std::isinf(most) ? most : most + std::log(sum), most_before = most;
        const long double next = element(row.dtype, x, at), larger = std::max(most, next);
        if (!std::isinf(larger)) sum = sum * std::exp(most - larger) + std::exp(next - larger);
        most = larger;
        const long double through = std::isinf(most) ? most : most + std::log(sum);
        const auto wanted = static_cast<double>(row.exclusive ? before : through);
        const auto largest = static_cast<double>(row.exclusive ? most_before : most);
        const double result = element(row.dtype, got, at);
        if (result == wanted) continue;
        const double terms = std::min<double>(static_cast<double>(step + 1), 6'000);
        double bound = unit * (terms + std::fabs(wanted) + std::fabs(largest));
        // Rounded to the type, whose smallest numbers are 2^-24 or less apart.
        bound += unit_roundoff(row.dtype) * (std::fabs(wanted) + bound) + (row.dtype == TUFF_F16 ? 0x1p-25 : 0);
        if (std::fabs(result - wanted) <= bound) continue;
        wrong += "[" + std::to_string(at) + "] is " + std::to_string(result) + ", not " + std::to_string(wanted) + "; ";
      }
    }
  }
  return wrong;
}

Bytes poisoned(int32_t dtype, uint64_t count) { return Bytes(count * size_of(dtype), 0xa5); }

using ScanLogarithms = Table<LogarithmCase>;

TEST_P(ScanLogarithms, MatchAndInPlaceIsTheSame) {
  const AxisShape& s = row().shape;
  const Bytes x = inputs(row());
  const TypedTensor input(context(), row().dtype, x, s.shift / 4),
      output(context(), row().dtype, poisoned(row().dtype, s.count()), s.shift / 4);
  tuff_scan_desc desc = described(row().dtype, s, input, output);
  desc.exclusive = row().exclusive, desc.reverse = row().reverse;
  ASSERT_OK(tuff_cumlogsumexp(context(), &desc));
  const Bytes got = output.read();
  EXPECT_EQ(compared(row(), x, got), "");
  EXPECT_EQ(input.read(), x);
  desc.output = desc.input;
  ASSERT_OK(tuff_cumlogsumexp(context(), &desc));
  EXPECT_EQ(input.read(), got);
}
TUFF_TABLE(ScanLogarithms, LogarithmCase, logarithm_cases());

class ScanLogarithmsOnce : public OnBackend {
 protected:
  std::vector<double> run(int32_t dtype, const AxisShape& shape, const std::vector<double>& x, bool exclusive = false) {
    const TypedTensor input(context(), dtype, as_type(dtype, x)), output(context(), dtype, poisoned(dtype, x.size()));
    tuff_scan_desc desc = described(dtype, shape, input, output);
    desc.exclusive = exclusive;
    EXPECT_OK(tuff_cumlogsumexp(context(), &desc));
    return numbers_of(dtype, output.read());
  }
};

TEST_P(ScanLogarithmsOnce, OneTermIsExact) {
  for (const int32_t dtype : {TUFF_F32, TUFF_F64}) {
    const std::vector<double> x = {0, -0.5, 0x1p100, -0x1p100, 88, -200};
    EXPECT_EQ(run(dtype, {{6, 1}, 1, 0}, x), x);
    EXPECT_EQ(run(dtype, {{1, 6}, 0, 0}, x), x);
  }
}

TEST_P(ScanLogarithmsOnce, InfinitiesAndNaN) {
  const double inf = INFINITY, nan = NAN;
  for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_F64}) {
    for (const bool column : {false, true}) {
      const auto of = [&](const std::vector<double>& x, bool exclusive = false) {
        return run(dtype, column ? AxisShape{{x.size(), 1}, 0, 0} : AxisShape{{x.size()}, 0, 0}, x, exclusive);
      };
      EXPECT_EQ(of({-inf, -inf, 2, -inf}), (std::vector<double>{-inf, -inf, 2, 2}));
      EXPECT_EQ(of({-inf, 2, -inf, 7}, true), (std::vector<double>{-inf, -inf, 2, 2}));
      EXPECT_EQ(of({2, inf, 3, -inf, inf}), (std::vector<double>{2, inf, inf, inf, inf}));
      const std::vector<double> y = of({2, nan, inf, 3, -inf});
      EXPECT_EQ(y[0], 2);
      for (int i = 1; i < 5; ++i) EXPECT_TRUE(std::isnan(y[i])) << i << ": " << y[i];
    }
  }
}

TEST_P(ScanLogarithmsOnce, ANaNReachesWhatFollowsInOtherSegmentsToo) {
  for (const uint64_t inner : {1, 4}) {
    for (const uint64_t place : {0, 5, 30'000}) {
      const uint64_t n = 40'000;
      std::vector<double> x(n * inner, 1);
      x[place * inner] = NAN;
      const std::vector<double> y = run(TUFF_F32, {{n, inner}, 0, 0}, x);
      uint64_t wrong = 0;
      for (uint64_t i = 0; i < y.size(); ++i) wrong += std::isnan(y[i]) != (i % inner == 0 && i / inner >= place);
      EXPECT_EQ(wrong, 0u) << inner << " " << place;
    }
  }
}

TEST_P(ScanLogarithmsOnce, ManyEqualTerms) {
  // ln n + x: the sum of exponentials is a whole number, whose logarithm has a few units of error.
  for (const AxisShape& s : std::vector<AxisShape>{{{1'000'000}, 0, 0}, {{300'000, 2}, 0, 0}}) {
    const std::vector<double> y = run(TUFF_F32, s, std::vector<double>(s.count(), 0.5));
    double most = 0;
    for (uint64_t i = 0; i < y.size(); ++i) {
      const double n = static_cast<double>(i / s.inner() + 1);
      most = std::max(most, std::fabs(y[i] - (0.5 + std::log(n))));
    }
    EXPECT_LE(most, 16 * 0x1p-20);
  }
}

TEST_P(ScanLogarithmsOnce, AnEmptyTensorTouchesNothing) {
  const TypedTensor y(context(), TUFF_F32, poisoned(TUFF_F32, 4));
  for (const AxisShape& s : std::vector<AxisShape>{{{0}, 0, 0}, {{3, 0}, 1, 0}, {{3, 0}, 0, 0}, {{0, 4}, 0, 0}}) {
    tuff_scan_desc desc = described(TUFF_F32, s, y, y);
    EXPECT_OK(tuff_cumlogsumexp(context(), &desc));
    desc.input = desc.output = 0;
    EXPECT_OK(tuff_cumlogsumexp(context(), &desc));
  }
  EXPECT_EQ(y.read(), poisoned(TUFF_F32, 4));
}

TEST_P(ScanLogarithmsOnce, BadCallsSayWhatIsWrong) {
  const TypedTensor x(context(), TUFF_F32, poisoned(TUFF_F32, 12)), y(context(), TUFF_F32, poisoned(TUFF_F32, 12));
  const auto status = [&](auto change) {
    tuff_scan_desc desc = described(TUFF_F32, {{3, 4}, 1, 0}, x, y);
    change(desc);
    return tuff_cumlogsumexp(context(), &desc);
  };
  const tuff_status argument = TUFF_ERROR_INVALID_ARGUMENT;
  for (const int32_t dtype : {TUFF_I32, TUFF_BOOL, TUFF_U8, TUFF_F8_E4M3, TUFF_C64}) {
    EXPECT_FAILS(status([&](auto& d) { d.dtype = dtype; }), TUFF_ERROR_UNSUPPORTED, "tuff_cumlogsumexp", "dtype");
  }
  EXPECT_NE(last_error().find("cumlogsumexp takes f32, f16, bf16 or f64"), std::string::npos) << last_error();
  EXPECT_FAILS(status([](auto& d) { d.axis = 2; }), argument, "tuff_cumlogsumexp", "axis");
  EXPECT_FAILS(status([](auto& d) { d.rank = 9; }), argument, "tuff_cumlogsumexp", "rank");
  EXPECT_FAILS(status([](auto& d) { d.shape[0] = 100'000; }), argument, "tuff_cumlogsumexp", "input");
  EXPECT_FAILS(status([](auto& d) { d.output = 0; }), TUFF_ERROR_INVALID_HANDLE, "tuff_cumlogsumexp", "output");
  EXPECT_EQ(y.read(), poisoned(TUFF_F32, 12));
  int32_t yes = -1;
  EXPECT_OK(tuff_supports(context(), "cumlogsumexp.i32", &yes));
  EXPECT_EQ(yes, 0);
  EXPECT_OK(tuff_supports(context(), "cumlogsumexp.f16", &yes));
  EXPECT_EQ(yes, 1);
}
TUFF_ON_BACKENDS(ScanLogarithmsOnce);

}  // namespace
}  // namespace tuff_test::scan_logarithms_test
