// Layer, RMS, group, instance and batch norm, compared with f64.
#include <cfloat>
#include <cmath>
#include <sstream>

#include "support/bounds.hpp"
#include "support/norm_problem.hpp"
#include "support/sample.hpp"
#include "support/stored.hpp"

namespace tuff_test::norm_test {
namespace {

enum class Kind { layer, rms, group, batch };
enum class Sum { none, apart, onto_input, onto_residual };

struct NormCase {
  Kind kind = Kind::layer;
  uint64_t rows = 1, channels = 1, inner = 1, groups = 1;  // layer and RMS: [rows][channels]
  int32_t dtype = TUFF_F32, weight_type = 0;               // 0: dtype
  bool weight = true, bias = true, residual = false, in_place = false;
  Sum sum = Sum::none;
  float offset = 0;    // added to all inputs: a large mean
  uint64_t shift = 0;  // of every operand, in elements

  uint64_t count() const { return rows * channels * inner; }
  int32_t weights() const { return weight_type != 0 ? weight_type : dtype; }
  std::string name() const {
    static const char* const kinds[] = {"layer", "rms", "group", "batch"};
    std::string text = std::string(kinds[static_cast<int>(kind)]) + "_" + name_of(dtype);
    if (weights() != dtype) text += std::string("_") + name_of(weights());
    text += "_" + std::to_string(rows) + "_" + std::to_string(channels);
    if (inner != 1) text += "_inner" + std::to_string(inner);
    if (groups != 1) text += "_groups" + std::to_string(groups);
    text += std::string(weight ? "" : "_noweight") + (bias ? "" : "_nobias") + (in_place ? "_inplace" : "");
    static const char* const sums[] = {"", "_sum", "_sumontoinput", "_sumontoresidual"};
    if (residual) text += std::string("_residual") + sums[static_cast<int>(sum)];
    if (offset != 0) text += "_offset" + std::to_string(static_cast<int>(offset));
    if (shift != 0) text += "_shift" + std::to_string(shift);
    return text;
  }
  double work() const { return static_cast<double>(count()); }
};

std::vector<NormCase> cases() {
  std::vector<NormCase> all;
  const int32_t types[] = {TUFF_F32, TUFF_F16, TUFF_BF16};
  for (uint64_t cols : {1, 3, 4, 8, 33, 100, 128, 129, 257, 1024, 1025, 4097, 20'011, 65'536}) {
    for (const Kind kind : {Kind::layer, Kind::rms}) {
      const uint64_t i = all.size();
      const uint64_t rows = cols < 300 ? 33 : cols < 5000 ? 5 : 2;
      all.push_back({.kind = kind,
                     .rows = rows,
                     .channels = cols,
                     .weight = i % 5 != 0,
                     .bias = i % 3 != 0,
                     .shift = i % 4 == 1 ? i % 3 : 0});
      NormCase row{.kind = kind,
                   .rows = rows,
                   .channels = cols,
                   .dtype = types[1 + i % 2],
                   .residual = i % 3 == 0,
                   .in_place = i % 4 == 1,
                   .shift = i % 3 == 1 ? i % 8 : 0};
      if (i % 4 >= 2) row.weight_type = TUFF_F32;
      if (row.residual) row.sum = row.in_place ? Sum::apart : static_cast<Sum>(i / 3 % 4);
      all.push_back(row);
    }
  }
  for (const Sum sum : {Sum::none, Sum::apart, Sum::onto_input, Sum::onto_residual}) {
    for (uint64_t cols : {96, 333, 40'000, 100'001}) {
      all.push_back({.rows = 3, .channels = cols, .residual = true, .sum = sum});
      all.push_back({.kind = Kind::rms, .rows = 3, .channels = cols, .dtype = TUFF_BF16, .residual = true, .sum = sum});
    }
  }
  // A mean far larger than the deviation.
  for (uint64_t cols : {64, 1000, 40'000}) all.push_back({.rows = 4, .channels = cols, .offset = 4096});
  // Many rows, long rows, and both.
  all.push_back({.rows = 70'000, .channels = 8});
  all.push_back({.rows = 100'001, .channels = 3, .dtype = TUFF_F16});
  all.push_back({.rows = 600, .channels = 4096, .in_place = true});
  all.push_back({.rows = 9, .channels = 131'072});
  all.push_back({.rows = 1, .channels = 1'000'003});
  all.push_back({.kind = Kind::rms, .rows = 1, .channels = 1'000'000, .dtype = TUFF_BF16});
  all.push_back({.rows = 1, .channels = 34'000'000, .weight = false, .bias = false, .in_place = true});
  // Groups and channels; channels that are a multiple of a block, a part of one, and neither.
  for (uint64_t inner : {1, 3, 8, 49, 1024}) {
    for (uint64_t groups : {1, 2, 6}) {
      const uint64_t i = all.size();
      all.push_back({.kind = Kind::group,
                     .rows = 3,
                     .channels = 6,
                     .inner = inner,
                     .groups = groups,
                     .dtype = types[i % 3],
                     .weight_type = i % 2 == 0 ? 0 : TUFF_F32,
                     .bias = i % 4 != 0,
                     .in_place = i % 5 == 0,
                     .shift = i % 3 == 0 ? i % 4 : 0});
    }
  }
  all.push_back({.kind = Kind::group, .rows = 2, .channels = 32, .inner = 3136, .groups = 8});
  all.push_back({.kind = Kind::group, .rows = 1, .channels = 4, .inner = 30'000, .groups = 2, .dtype = TUFF_F16});
  for (uint64_t inner : {1, 5, 8, 3136}) {
    for (uint64_t channels : {1, 3, 64}) {
      const uint64_t i = all.size();
      all.push_back({.kind = Kind::batch,
                     .rows = 5,
                     .channels = channels,
                     .inner = inner,
                     .dtype = types[i % 3],
                     .weight_type = i % 2 == 0 ? 0 : TUFF_F32,
                     .weight = i % 4 != 0,
                     .bias = i % 5 != 0,
                     .in_place = i % 3 == 0,
                     .shift = i % 4 == 0 ? i % 3 : 0});
    }
  }
  all.push_back({.kind = Kind::batch, .rows = 2, .channels = 100, .inner = 200'001});
  return all;
}

constexpr double kEpsilon = 1e-5;

// Solves one row or group of a case.
void solve_row(const NormCase& s, const std::vector<float>& x, uint64_t first, uint64_t n, uint64_t channel,
               const std::vector<float>& weight, const std::vector<float>& bias, Expected& expected) {
  const std::vector<float> none;
  solve_norm({.centred = s.kind != Kind::rms,
              .epsilon = kEpsilon,
              .first = first,
              .n = n,
              .channel = channel,
              .inner = s.inner},
             x, s.weight ? weight : none, s.bias ? bias : none, expected);
}

// Stored statistics: a subtraction, an addition, a square root, a division and two multiplications, each to at most 1
// ULP.
void solve_stored(const NormCase& s, const std::vector<float>& x, const std::vector<float>& mean,
                  const std::vector<float>& variance, const std::vector<float>& weight, const std::vector<float>& bias,
                  Expected& expected) {
  for (uint64_t i = 0; i < s.count(); ++i) {
    const uint64_t c = i / s.inner % s.channels;
    const double w = s.weight ? weight[c] : 1, b = s.bias ? bias[c] : 0;
    const double normal = (x[i] - static_cast<double>(mean[c])) /
                          std::sqrt(static_cast<double>(variance[c]) + static_cast<float>(kEpsilon)) * w;
    expected.value[i] = normal + b;
    expected.bound[i] = 10 * kU * std::fabs(normal) + 2 * kU * (std::fabs(b) + std::fabs(normal + b)) + FLT_MIN;
  }
}

using Norm = Table<NormCase>;

TEST_P(Norm, WithinBound) {
  const NormCase& s = row();
  const uint64_t n = s.count();
  std::vector<float> x = spreads(n, 1), added = rounded(s.dtype, spreads(s.residual ? n : 0, 2));
  for (float& value : x) value += s.offset;
  x = rounded(s.dtype, std::move(x));
  const std::vector<float> weight = rounded(s.weights(), spreads(s.channels, 3)),
                           bias = rounded(s.weights(), spreads(s.channels, 4)),
                           mean = rounded(s.weights(), spreads(s.channels, 5)),
                           variance = rounded(s.weights(), uniforms(s.channels, 0, 4, 6));
  const StoredTensor input(context(), s.dtype, x, s.shift), residual(context(), s.dtype, added, s.shift),
      w(context(), s.weights(), weight, s.shift), b(context(), s.weights(), bias, s.shift),
      m(context(), s.weights(), mean, s.shift), v(context(), s.weights(), variance, s.shift),
      apart(context(), s.dtype, s.in_place ? 0 : n, s.shift),
      stored(context(), s.dtype, s.sum == Sum::apart ? n : 0, s.shift);
  const StoredTensor& output = s.in_place ? input : apart;
  const StoredTensor& sum = s.sum == Sum::onto_input ? input : s.sum == Sum::onto_residual ? residual : stored;
  const auto common = [&](auto desc) {
    desc.struct_size = sizeof desc;
    desc.dtype = s.dtype, desc.weight_type = s.weight_type;
    desc.input = input, desc.output = output;
    desc.epsilon = kEpsilon;
    if (s.weight) desc.weight = w;
    return desc;
  };
  const auto rows = [&](auto desc) {
    desc.rows = s.rows, desc.cols = s.channels;
    if (s.residual) desc.residual = residual;
    if (s.sum != Sum::none) desc.sum = sum;
    return desc;
  };
  const auto channels = [&](auto desc) {
    desc.batch = s.rows, desc.channels = s.channels, desc.inner = s.inner;
    if (s.bias) desc.bias = b;
    return desc;
  };
  NormCase solved = s;
  if (s.kind == Kind::layer) {
    auto desc = rows(common(tuff_layer_norm_desc{}));
    if (s.bias) desc.bias = b;
    ASSERT_OK(tuff_layer_norm_ex(context(), &desc));
  } else if (s.kind == Kind::rms) {
    solved.bias = false;
    auto desc = rows(common(tuff_rms_norm_desc{}));
    ASSERT_OK(tuff_rms_norm_ex(context(), &desc));
  } else if (s.kind == Kind::group) {
    auto desc = channels(common(tuff_group_norm_desc{}));
    desc.groups = s.groups;
    ASSERT_OK(tuff_group_norm_ex(context(), &desc));
  } else {
    auto desc = channels(common(tuff_batch_norm_desc{}));
    desc.mean = m, desc.variance = v;
    ASSERT_OK(tuff_batch_norm_ex(context(), &desc));
  }
  std::vector<float> normalised = x;
  if (s.residual) {
    for (uint64_t i = 0; i < n; ++i) normalised[i] = rounded(s.dtype, static_cast<double>(x[i]) + added[i]);
  }
  Expected expected{std::vector<double>(n), std::vector<double>(n)};
  if (s.kind == Kind::batch) {
    solve_stored(s, x, mean, variance, weight, bias, expected);
  } else {
    const uint64_t per_group = s.channels / s.groups;
    for (uint64_t part = 0; part < s.rows * s.groups; ++part) {
      const uint64_t size = per_group * s.inner;
      solve_row(solved, normalised, part * size, size, part % s.groups * per_group, weight, bias, expected);
    }
  }
  add_storage(expected, s.dtype);
  expect_matches(output.read(), expected);
  if (s.sum != Sum::none) expect_same_bits(sum.read(), normalised);
  if (!s.in_place && s.sum != Sum::onto_input) input.expect_unchanged(x);
  if (s.sum != Sum::onto_residual) residual.expect_unchanged(added);
  w.expect_unchanged(weight);
}
TUFF_TABLE(Norm, NormCase, cases());

class NormOnce : public OnBackend {};

// Each flat function gives the same results as its descriptor form.
TEST_P(NormOnce, FlatFunctions) {
  const std::vector<float> x = spreads(240, 1), w = spreads(40, 2), b = spreads(40, 3), v = uniforms(40, 1, 2, 4);
  const Tensor input(context(), x), weight(context(), w), bias(context(), b), variance(context(), v),
      output(context(), 240);
  const auto expect = [&](NormCase s, uint64_t groups) {
    Expected expected{std::vector<double>(240), std::vector<double>(240)};
    const uint64_t per_group = s.channels / groups, size = per_group * s.inner;
    for (uint64_t part = 0; part < 240 / size; ++part) {
      solve_row(s, x, part * size, size, part % groups * per_group, w, b, expected);
    }
    expect_matches(output.read(), expected);
  };
  ASSERT_OK(tuff_layer_norm(context(), TUFF_F32, input, weight, bias, output, 6, 40, kEpsilon));
  expect({.rows = 6, .channels = 40}, 1);
  ASSERT_OK(tuff_rms_norm(context(), TUFF_F32, input, weight, output, 6, 40, kEpsilon));
  expect({.kind = Kind::rms, .rows = 6, .channels = 40, .bias = false}, 1);
  ASSERT_OK(tuff_group_norm(context(), TUFF_F32, input, weight, bias, output, 2, 40, 3, 8, kEpsilon));
  expect({.kind = Kind::group, .rows = 2, .channels = 40, .inner = 3}, 8);
  // groups = 0 in the descriptor is an instance norm.
  tuff_group_norm_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  desc.input = input, desc.output = output;
  desc.batch = 2, desc.channels = 40, desc.inner = 3, desc.epsilon = kEpsilon;
  ASSERT_OK(tuff_group_norm_ex(context(), &desc));
  expect({.kind = Kind::group, .rows = 2, .channels = 40, .inner = 3, .weight = false, .bias = false}, 40);
  ASSERT_OK(tuff_batch_norm(context(), TUFF_F32, input, bias, variance, weight, 0, output, 2, 40, 3, kEpsilon));
  const NormCase stored{.kind = Kind::batch, .rows = 2, .channels = 40, .inner = 3, .bias = false};
  Expected expected{std::vector<double>(240), std::vector<double>(240)};
  solve_stored(stored, x, b, v, w, b, expected);
  expect_matches(output.read(), expected);
}

// The values differ only by one part in 2^24 of a large mean: exactly representable, and not lost.
TEST_P(NormOnce, ALargeMeanCostsNoDigitsOfTheVariance) {
  for (const uint64_t cols : {64, 4096, 50'000}) {
    std::vector<float> x(2 * cols);
    for (uint64_t i = 0; i < x.size(); ++i) x[i] = 8388608.0f + (i % 2 == 0 ? 0.0f : 2.0f);
    const Tensor input(context(), x), output(context(), x.size());
    ASSERT_OK(tuff_layer_norm(context(), TUFF_F32, input, 0, 0, output, 2, cols, 0));
    // Deviations are 1, with the rounding error of a mean of 2^23: at most one unit in either direction.
    for (const float y : output.read()) EXPECT_TRUE(std::fabs(y) <= 2) << cols << ": " << y;
  }
}

TEST_P(NormOnce, NaNAndInfinityStayInTheirRow) {
  for (const uint64_t cols : {5, 70, 3000, 50'000}) {
    std::vector<float> x = uniforms(4 * cols, -1, 1, cols);
    x[cols + 3] = NAN;
    x[3 * cols + 1] = INFINITY;
    const Tensor input(context(), x), output(context(), x.size()), rms(context(), x.size());
    ASSERT_OK(tuff_layer_norm(context(), TUFF_F32, input, 0, 0, output, 4, cols, kEpsilon));
    ASSERT_OK(tuff_rms_norm(context(), TUFF_F32, input, 0, rms, 4, cols, kEpsilon));
    const std::vector<float> y = output.read(), z = rms.read();
    for (uint64_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(std::isnan(y[i]), i / cols % 2 == 1) << cols << " " << i;
      const bool is_nan = i / cols == 1 || i == 3 * cols + 1;
      EXPECT_TRUE(is_nan ? std::isnan(z[i]) : i / cols != 3 || z[i] == 0) << cols << " " << i;
      if (testing::Test::HasFailure()) return;
    }
  }
}

// Rows of a single value have no deviation, and with epsilon 0 nothing to divide by.
TEST_P(NormOnce, RowsOfOneValue) {
  const std::vector<float> x(3 * 20, 7.0f);
  const Tensor input(context(), x), output(context(), 60);
  ASSERT_OK(tuff_layer_norm(context(), TUFF_F32, input, 0, 0, output, 3, 20, kEpsilon));
  for (const float y : output.read()) EXPECT_EQ(y, 0);
  ASSERT_OK(tuff_layer_norm(context(), TUFF_F32, input, 0, 0, output, 3, 20, 0));
  for (const float y : output.read()) EXPECT_TRUE(std::isnan(y));
  ASSERT_OK(tuff_layer_norm(context(), TUFF_F32, input, 0, 0, output, 60, 1, kEpsilon));
  for (const float y : output.read()) EXPECT_EQ(y, 0);
}

TEST_P(NormOnce, NothingToDo) {
  EXPECT_OK(tuff_layer_norm(context(), TUFF_F32, 0, 0, 0, 0, 0, 5, 0));
  EXPECT_OK(tuff_rms_norm(context(), TUFF_BF16, 0, 0, 0, 0, 5, 0));
  EXPECT_OK(tuff_group_norm(context(), TUFF_F32, 0, 0, 0, 0, 0, 6, 2, 3, 0));
  EXPECT_OK(tuff_batch_norm(context(), TUFF_F32, 0, 0, 0, 0, 0, 0, 4, 6, 0, 0));
}

TEST_P(NormOnce, BadArguments) {
  constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kUnsupported = TUFF_ERROR_UNSUPPORTED;
  const Tensor x(context(), 200), y(context(), 200), z(context(), 200), w(context(), 10);
  const char *layer = "tuff_layer_norm", *layer_ex = "tuff_layer_norm_ex";
  const auto call = [&](int32_t dtype, uint64_t rows, uint64_t cols, double epsilon) {
    return tuff_layer_norm(context(), dtype, x, w, w, y, rows, cols, epsilon);
  };
  EXPECT_FAILS(call(0, 2, 10, 0), kArgument, layer, "dtype");
  EXPECT_FAILS(call(TUFF_I32, 2, 10, 0), kUnsupported, layer, "dtype");
  EXPECT_FAILS(call(TUFF_F32, 2, 0, 0), kArgument, layer, "cols");
  EXPECT_FAILS(call(TUFF_F32, 30, 10, 0), kArgument, layer, "input");
  EXPECT_FAILS(call(TUFF_F32, ~uint64_t{0}, 10, 0), kArgument, layer, "rows");
  EXPECT_FAILS(call(TUFF_F32, 2, 30, 0), kArgument, layer, "weight");
  for (const double epsilon : {-1e-5, static_cast<double>(NAN), static_cast<double>(INFINITY), 1e300}) {
    EXPECT_FAILS(call(TUFF_F32, 2, 10, epsilon), kArgument, layer, "epsilon");
  }
  EXPECT_FAILS(tuff_group_norm(context(), TUFF_F32, x, 0, 0, y, 2, 10, 5, 3, 0), kArgument, "tuff_group_norm",
               "groups");
  EXPECT_FAILS(tuff_group_norm(context(), TUFF_F32, x, 0, 0, y, 2, 10, 5, 0, 0), kArgument, "tuff_group_norm",
               "groups");
  EXPECT_FAILS(tuff_group_norm(context(), TUFF_F32, x, 0, 0, y, 2, 0, 5, 1, 0), kArgument, "tuff_group_norm",
               "channels");
  EXPECT_FAILS(tuff_group_norm(context(), TUFF_F32, x, 0, 0, y, 2, 4, 0, 1, 0), kArgument, "tuff_group_norm", "inner");
  EXPECT_FAILS(tuff_batch_norm(context(), TUFF_F32, x, w, 0, 0, 0, y, 2, 4, 5, 0), TUFF_ERROR_INVALID_HANDLE,
               "tuff_batch_norm", "variance");
  EXPECT_FAILS(tuff_batch_norm(context(), TUFF_F32, x, w, w, 0, w, w, 1, 4, 1, 0), kArgument, "tuff_batch_norm",
               "mean");
  // Handles of optional operands, and overlapping ranges.
  tuff_layer_norm_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32;
  good.input = x, good.output = y;
  good.rows = 20, good.cols = 10;
  const auto expect_bad = [&](tuff_status status, const char* word, auto spoil) {
    tuff_layer_norm_desc desc = good;
    spoil(desc);
    EXPECT_FAILS(tuff_layer_norm_ex(context(), &desc), status, layer_ex, word);
  };
  const tuff_buffer forged = 12'345;
  expect_bad(TUFF_ERROR_INVALID_HANDLE, "weight", [&](auto& d) { d.weight = forged; });
  expect_bad(TUFF_ERROR_INVALID_HANDLE, "bias", [&](auto& d) { d.bias = forged; });
  expect_bad(TUFF_ERROR_INVALID_HANDLE, "residual", [&](auto& d) { d.residual = forged; });
  expect_bad(TUFF_ERROR_INVALID_HANDLE, "sum", [&](auto& d) { d.residual = z, d.sum = forged; });
  expect_bad(kArgument, "residual", [&](auto& d) { d.sum = z; });
  expect_bad(kArgument, "residual", [&](auto& d) { d.residual = w; });
  expect_bad(kArgument, "sum", [&](auto& d) { d.residual = z, d.sum = d.output; });
  expect_bad(kArgument, "weight", [&](auto& d) { d.weight = d.output; });
  expect_bad(kUnsupported, "weight_type", [&](auto& d) { d.weight_type = TUFF_F16; });
  expect_bad(kArgument, "weight_type", [&](auto& d) { d.weight_type = 77; });
  x.expect_poisoned();
  y.expect_poisoned();
  z.expect_poisoned();
}
// The squares of these values are beyond the range of f32 on either side. Rows of every length are normalised all the
// same, without a residual and with one, whose sum may be stored in place.
TEST_P(NormOnce, RowsOfAnyMagnitude) {
  for (const uint64_t cols : {4, 33, 300, 3000, 50'001, 131'072}) {
    for (const float size : {1e-36f, 1e-30f, 1e-23f, 1e-20f, 1e-15f, 1e18f, 1e20f, 1e30f, 1.5e38f}) {
      // Long rows take seconds on a CPU, so they are tested with the ends of the ranges only.
      const bool is_end = size == 1e-36f || size == 1e-20f || size == 1e20f || size == 1.5e38f;
      if (cols > 10'000 && !is_end) continue;
      for (const int32_t dtype : {TUFF_F32, TUFF_BF16}) {
        if (cols > 10'000 && dtype != TUFF_F32 && reduced()) continue;
        const std::string name =
            (std::ostringstream() << cols << " columns, size " << size << ", " << name_of(dtype)).str();
        const bool always = dtype == TUFF_F32 && is_end && (cols == 33 || cols == 3000);
        if (vulkan() && !always && !in_sample(name, 9)) continue;
        SCOPED_TRACE(name);
        const uint64_t rows = cols < 1000 ? 3 : 1, n = rows * cols;
        std::vector<float> x = uniforms(n, 0.5f, 1, cols), added = uniforms(n, 0.25f, 0.5f, cols + 1);
        for (uint64_t i = 0; i < n; ++i) x[i] *= i % 3 == 0 ? -size : size, added[i] *= size;
        x = rounded(dtype, x), added = rounded(dtype, added);
        std::vector<float> sums(n);
        for (uint64_t i = 0; i < n; ++i) sums[i] = rounded(dtype, static_cast<double>(x[i]) + added[i]);
        // An epsilon that matters, where f32 can represent one.
        const double epsilon = size < 1e-18f ? 0.25 * size * size : 1e-5;
        for (const bool centred : {true, false}) {
          const auto expect = [&](const std::vector<float>& values, const StoredTensor& output) {
            Expected expected{std::vector<double>(n), std::vector<double>(n)};
            for (uint64_t row = 0; row < rows; ++row) {
              solve_norm({.centred = centred, .epsilon = epsilon, .first = row * cols, .n = cols}, values, {}, {},
                         expected);
            }
            add_storage(expected, dtype);
            expect_matches(output.read(), expected);
          };
          const StoredTensor input(context(), dtype, x), output(context(), dtype, n);
          const auto call = [&](auto desc, const auto& function, tuff_buffer residual, tuff_buffer sum) {
            desc.struct_size = sizeof desc;
            desc.dtype = dtype;
            desc.input = input, desc.output = output;
            desc.rows = rows, desc.cols = cols, desc.epsilon = epsilon;
            desc.residual = residual, desc.sum = sum;
            return function(context(), &desc);
          };
          const auto norm = [&](tuff_buffer residual, tuff_buffer sum) {
            return centred ? call(tuff_layer_norm_desc{}, tuff_layer_norm_ex, residual, sum)
                           : call(tuff_rms_norm_desc{}, tuff_rms_norm_ex, residual, sum);
          };
          ASSERT_OK(norm(0, 0));
          expect(x, output);
          const StoredTensor residual(context(), dtype, added);
          ASSERT_OK(norm(residual, 0));
          expect(sums, output);
          ASSERT_OK(norm(residual, input));
          expect(sums, output);
          expect_same_bits(input.read(), sums);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Parts of a row that separately need different powers of two, and together a third.
TEST_P(NormOnce, RowsOfPartsOfDifferentMagnitudes) {
  constexpr uint64_t kCols = 120'000;
  const std::pair<float, float> halves[] = {{1e-30f, 1e30f}, {1e30f, 1e-30f}, {0.0005f, 0}, {1e-25f, 0.0005f},
                                            {1e-30f, 1},     {1e18f, -1e18f}, {0, 3e38f},   {1e-30f, 1e-20f}};
  for (const auto& [left, right] : halves) {
    for (const bool even : {true, false}) {  // if not even, spread over [1/2, 1) of it
      SCOPED_TRACE(testing::Message() << left << " and " << right << (even ? ", even" : ""));
      std::vector<float> x = uniforms(kCols, 0.5f, 1, 3);
      for (uint64_t i = 0; i < kCols; ++i) x[i] = (even ? 1 : x[i]) * (i < kCols / 2 ? left : right);
      const Tensor input(context(), x), output(context(), kCols);
      for (const bool centred : {true, false}) {
        Expected expected{std::vector<double>(kCols), std::vector<double>(kCols)};
        solve_norm({.centred = centred, .n = kCols}, x, {}, {}, expected);
        ASSERT_OK(centred ? tuff_layer_norm(context(), TUFF_F32, input, 0, 0, output, 1, kCols, 0)
                          : tuff_rms_norm(context(), TUFF_F32, input, 0, output, 1, kCols, 0));
        expect_matches(output.read(), expected);
      }
    }
  }
}

// The mean of the largest numbers is one of them, and constant rows give zero unless epsilon is zero too.
TEST_P(NormOnce, SumsOfTheLargestNumbersDoNotOverflow) {
  for (const uint64_t cols : {4, 64, 4096, 131'072}) {
    SCOPED_TRACE(cols);
    const std::vector<float> x(cols, 3e38f);
    std::vector<float> signs(cols, 3e38f);
    for (uint64_t i = 0; i < cols; i += 2) signs[i] = -3e38f;
    const Tensor same(context(), x), both(context(), signs), output(context(), cols);
    ASSERT_OK(tuff_layer_norm(context(), TUFF_F32, same, 0, 0, output, 1, cols, kEpsilon));
    expect_same_bits(output.read(), std::vector<float>(cols, 0.0f));
    for (const Tensor* input : {&same, &both}) {
      Expected expected;
      for (const float value : input->read()) {
        expected.value.push_back(value < 0 ? -1 : 1);
        expected.bound.push_back(gamma(sum_depth(cols) + 16));
      }
      ASSERT_OK(tuff_rms_norm(context(), TUFF_F32, *input, 0, output, 1, cols, kEpsilon));
      expect_matches(output.read(), expected);
      if (input == &same) continue;
      ASSERT_OK(tuff_layer_norm(context(), TUFF_F32, *input, 0, 0, output, 1, cols, kEpsilon));
      expect_matches(output.read(), expected);
      ASSERT_OK(tuff_group_norm(context(), TUFF_F32, *input, 0, 0, output, 1, 2, cols / 2, 1, kEpsilon));
      expect_matches(output.read(), expected);
    }
  }
}

// Stored statistics whose differences and sums exceed f32 although the results do not.
TEST_P(NormOnce, StoredStatisticsOfAnyMagnitude) {
  const std::vector<float> mean = {-3e38f, 3e38f, 1e-37f, 0}, variance = {3e38f, 1e30f, 0, 1e-38f};
  for (const uint64_t inner : {1, 3, 8}) {
    for (const double epsilon : {0.0, 1e-30, 3e38}) {
      const uint64_t n = 2 * 4 * inner;
      std::vector<float> x(n);
      for (uint64_t i = 0; i < n; ++i) {
        const float sizes[] = {3e38f, -3e38f, 3e-37f, 1e-19f};
        x[i] = sizes[i / inner % 4] * (i % 2 == 0 ? 1.0f : 0.75f);
      }
      const Tensor input(context(), x), m(context(), mean), v(context(), variance), output(context(), n);
      ASSERT_OK(tuff_batch_norm(context(), TUFF_F32, input, m, v, 0, 0, output, 2, 4, inner, epsilon));
      Expected expected;
      for (uint64_t i = 0; i < n; ++i) {
        const uint64_t c = i / inner % 4;
        const double y = (x[i] - static_cast<double>(mean[c])) /
                         std::sqrt(static_cast<double>(variance[c]) + static_cast<float>(epsilon));
        expected.value.push_back(std::fabs(y) > FLT_MAX ? std::copysign(INFINITY, y) : y);
        expected.bound.push_back(std::isfinite(y) ? 10 * kU * std::fabs(y) + FLT_MIN : 0);
      }
      expect_matches(output.read(), expected);
    }
  }
}
TUFF_ON_BACKENDS(NormOnce);

}  // namespace
}  // namespace tuff_test::norm_test
