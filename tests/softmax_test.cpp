#include <algorithm>
#include <cfloat>
#include <cmath>

#include "support/axis_shape.hpp"
#include "support/bounds.hpp"
#include "support/sample.hpp"
#include "support/stored.hpp"

namespace tuff_test::softmax_test {
namespace {

struct SoftmaxCase {
  AxisShape shape;
  float spread = 4;  // inputs are in [-spread, spread)
  int32_t dtype = TUFF_F32;
  std::string name() const {
    return (dtype == TUFF_F32 ? "" : name_of(dtype) + std::string("_")) + shape.name() +
           (spread == 4 ? "" : "_spread" + std::to_string(static_cast<int>(spread)));
  }
  double work() const { return shape.work(); }
};

std::vector<SoftmaxCase> cases() {
  std::vector<SoftmaxCase> all;
  for (const AxisShape& shape : axis_shapes()) all.push_back({shape});
  all.push_back({{{10, 100}, 1, 0}, 100});  // most weights underflow
  all.push_back({{{100, 10}, 0, 4}, 1000});
  all.push_back({{{3, 5000}, 1, 0}, 50});
  // Rows that just fit the largest workgroups, and longer ones.
  all.push_back({{{3, 20'000}, 1, 0}, 4});
  all.push_back({{{3, 32'768}, 1, 0}, 4, TUFF_F16});
  all.push_back({{{5, 131'072}, 1, 0}, 4, TUFF_BF16});
  // Columns around the lengths that registers hold.
  for (const uint64_t extent : {4, 5, 8, 9, 16, 17, 31, 33}) {
    all.push_back({{{2, extent, 8}, 1, 0}, 4, TUFF_F16});
    all.push_back({{{3, extent, 12}, 1, 0}, 4});
    all.push_back({{{3, extent, 3}, 1, 0}, 4});
  }
  for (const AxisShape& shape : axis_shapes16()) {
    all.push_back({shape, 4, all.size() % 2 == 0 ? TUFF_F16 : TUFF_BF16});
  }
  return all;
}

// The values z = scale x + mask that are exponentiated, and the error that a device may make in them.
struct Scores {
  std::vector<double> z;
  double error = 0;  // the largest error: one rounding of scale x, one of the sum
};

// y = e^{z - m} / sum e^{z - m}, or its logarithm. Errors: the rounding of the argument (u |z - m|), exp_error() of
// exp, gamma of the sum's depth, and 2.5 ULP of the division. A kernel that reads the row once rescales at most once
// for each element of a lane's run: kSerialAdditions + log2 n factors, whose arguments add up to the range. Results
// below FLT_MIN may be flushed to zero.
Expected solve(const AxisShape& s, const Scores& scores, bool logarithm = false) {
  const std::vector<double>& z = scores.z;
  Expected expected;
  expected.value.assign(z.size(), 0);
  expected.bound.assign(z.size(), 0);
  const double depth = sum_depth(s.length());
  for (uint64_t o = 0; o < s.outer(); ++o) {
    for (uint64_t i = 0; i < s.inner(); ++i) {
      double highest = -INFINITY, lowest = INFINITY, total = 0, worst = 0;
      for (uint64_t r = 0; r < s.length(); ++r) {
        const double score = z[s.index(o, r, i)];
        highest = std::max(highest, score);
        if (std::isfinite(score)) lowest = std::min(lowest, score);
      }
      if (!std::isfinite(highest)) {  // everything is masked
        for (uint64_t r = 0; r < s.length(); ++r) expected.value[s.index(o, r, i)] = logarithm ? -INFINITY : 0;
        continue;
      }
      const double range = highest - lowest;
      const double rescaling = depth * (exp_error(0) + kU) + 5 * kU * range + 2 * scores.error;
      const auto error = [&](double y) { return kU * y + exp_error(y) + rescaling; };
      for (uint64_t r = 0; r < s.length(); ++r) {
        const double score = z[s.index(o, r, i)];
        if (!std::isfinite(score)) continue;
        const double weight = std::exp(score - highest);
        total += weight, worst += weight * error(highest - score);
      }
      worst /= total;  // relative error of the sum due to its terms
      for (uint64_t r = 0; r < s.length(); ++r) {
        const uint64_t at = s.index(o, r, i);
        if (!std::isfinite(z[at])) {
          expected.value[at] = logarithm ? -INFINITY : 0;
        } else if (logarithm) {
          // Two subtractions, and a logarithm to within 4 ULP of a sum with its own error.
          const double log_total = std::log(total), y = z[at] - highest - log_total;
          expected.value[at] = y;
          expected.bound[at] = 2 * scores.error + kU * (highest - z[at]) + std::expm1(worst + gamma(depth + 5)) +
                               8 * kU * log_total + 2 * kU * std::fabs(y) + FLT_MIN;
        } else {
          const double y = std::exp(z[at] - highest) / total;
          expected.value[at] = y;
          expected.bound[at] = y * std::expm1(error(highest - z[at]) + worst + gamma(depth + 5)) + FLT_MIN;
        }
      }
    }
  }
  return expected;
}

Expected solve(const AxisShape& s, const std::vector<float>& x) { return solve(s, Scores{{x.begin(), x.end()}, 0}); }

using Softmax = Table<SoftmaxCase>;

TEST_P(Softmax, WithinBound) {
  const AxisShape& s = row().shape;
  const int32_t dtype = row().dtype;
  const std::vector<float> x = rounded(dtype, uniforms(s.count(), -row().spread, row().spread, 5));
  const StoredTensor input(context(), dtype, x, s.shift / 4), output(context(), dtype, s.count(), s.shift / 4);
  ASSERT_OK(tuff_softmax(context(), dtype, input, output, s.shape.data(), s.rank(), s.axis));
  Expected expected = solve(s, x);
  add_storage(expected, dtype);
  expect_matches(output.read(), expected);
  input.expect_unchanged(x);
}
TUFF_TABLE(Softmax, SoftmaxCase, cases());

enum class Mask { none, added, bytes };

struct SoftmaxExCase {
  AxisShape shape;
  double scale = 0;
  bool logarithm = false;
  Mask mask = Mask::none;
  uint64_t mask_rows = 0, mask_repeat = 0;
  int32_t dtype = TUFF_F32;
  std::string name() const {
    static const char* const masks[] = {"", "_added", "_bytes"};
    std::string text = (dtype == TUFF_F32 ? "" : name_of(dtype) + std::string("_")) + shape.name();
    if (scale != 0)
      text += "_scale" + std::to_string(static_cast<int>(std::fabs(scale) * 100)) + (scale < 0 ? "m" : "");
    text += (logarithm ? "_log" : "") + std::string(masks[static_cast<int>(mask)]);
    if (mask_rows != 0) text += "_maskrows" + std::to_string(mask_rows);
    if (mask_repeat != 0) text += "_repeat" + std::to_string(mask_repeat);
    return text;
  }
  double work() const { return shape.work(); }
};

std::vector<SoftmaxExCase> extended_cases() {
  std::vector<SoftmaxExCase> all;
  const int32_t types[] = {TUFF_F32, TUFF_F16, TUFF_BF16};
  const AxisShape shapes[] = {{{5}, 0, 4},        {{33, 100}, 1, 4},    {{3, 20'000}, 1, 0}, {{4, 9, 16}, 1, 0},
                              {{3, 40, 5}, 1, 4}, {{2, 3000, 8}, 1, 0}, {{24, 1}, 1, 0},     {{12, 64, 256}, 2, 0}};
  for (const AxisShape& shape : shapes) {
    const uint64_t i = all.size(), outer = shape.outer();
    all.push_back({.shape = shape, .scale = 0.125, .logarithm = true, .dtype = types[i / 5 % 3]});
    all.push_back({.shape = shape, .scale = i % 2 == 0 ? 0 : -2.5, .mask = Mask::added, .dtype = types[(i + 1) % 3]});
    all.push_back({.shape = shape, .mask = Mask::bytes, .dtype = types[(i + 2) % 3]});
    all.push_back({.shape = shape, .scale = 3, .logarithm = true, .mask = Mask::bytes, .mask_rows = 1});
    all.push_back({.shape = shape,
                   .logarithm = true,
                   .mask = Mask::added,
                   .mask_rows = (outer + 2) / 3,
                   .mask_repeat = 3,
                   .dtype = types[i % 3]});
    all.push_back({.shape = shape, .mask = Mask::bytes, .mask_rows = 2, .mask_repeat = 2});
  }
  return all;
}

using SoftmaxEx = Table<SoftmaxExCase>;

TEST_P(SoftmaxEx, WithinBound) {
  const SoftmaxExCase& c = row();
  const AxisShape& s = c.shape;
  const uint64_t slice = s.length() * s.inner(), rows = c.mask_rows != 0 ? c.mask_rows : s.outer();
  const std::vector<float> x = rounded(c.dtype, uniforms(s.count(), -4, 4, 5));
  std::vector<float> added = rounded(c.dtype, uniforms(c.mask == Mask::added ? rows * slice : 0, -3, 3, 6));
  for (size_t i = 2; i < added.size(); i += 7) added[i] = -INFINITY;  // never a whole slice
  Bytes seen(c.mask == Mask::bytes ? rows * slice : 0);
  for (size_t i = 0; i < seen.size(); ++i) seen[i] = static_cast<unsigned char>(i % 3 == 1 ? 0 : 1 + i % 255);
  // One slice is masked entirely, if there are others.
  if (rows > 1 && !seen.empty()) std::fill_n(seen.begin(), slice, static_cast<unsigned char>(0));
  if (s.length() < 6) std::fill(added.begin(), added.end(), 0.5f);
  const StoredTensor input(context(), c.dtype, x, s.shift / 4), output(context(), c.dtype, s.count(), s.shift / 4),
      mask(context(), c.dtype, added, s.shift / 4);
  const TypedTensor bytes(context(), TUFF_I8, seen, s.shift);
  tuff_softmax_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = c.dtype;
  desc.input = input, desc.output = output;
  std::copy(s.shape.begin(), s.shape.end(), desc.shape);
  desc.rank = s.rank(), desc.axis = s.axis;
  desc.scale = c.scale, desc.logarithm = c.logarithm;
  desc.mask_rows = c.mask_rows, desc.mask_repeat = c.mask_repeat;
  if (c.mask == Mask::added) desc.mask = mask;
  if (c.mask == Mask::bytes) desc.mask = bytes, desc.mask_type = TUFF_U8;
  ASSERT_OK(tuff_softmax_ex(context(), &desc));

  Scores scores;
  const double scale = c.scale != 0 ? static_cast<float>(c.scale) : 1;
  for (uint64_t i = 0; i < s.count(); ++i) {
    const uint64_t mask_row = i / slice / std::max<uint64_t>(c.mask_repeat, 1) % rows,
                   at = mask_row * slice + i % slice;
    const double scaled = scale * x[i], z = scaled + (added.empty() ? 0 : added[at]);
    scores.z.push_back(!seen.empty() && seen[at] == 0 ? -INFINITY : z);
    if (std::isfinite(z)) scores.error = std::max(scores.error, kU * (std::fabs(scaled) + std::fabs(z)));
  }
  Expected expected = solve(s, scores, c.logarithm);
  add_storage(expected, c.dtype);
  expect_matches(output.read(), expected);
  input.expect_unchanged(x);
  mask.expect_unchanged(added);
}
TUFF_TABLE(SoftmaxEx, SoftmaxExCase, extended_cases());

class SoftmaxOnce : public OnBackend {};

TEST_P(SoftmaxOnce, BadMasksAndScales) {
  constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
  const Tensor x(context(), 60), y(context(), 60), small(context(), 10);
  const auto expect_bad = [&](const char* word, tuff_status status, auto spoil) {
    tuff_softmax_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = TUFF_F32;
    desc.input = x, desc.output = y;
    desc.shape[0] = 6, desc.shape[1] = 10, desc.rank = 2, desc.axis = 1;
    spoil(desc);
    EXPECT_FAILS(tuff_softmax_ex(context(), &desc), status, "tuff_softmax_ex", word);
  };
  for (const double scale : {static_cast<double>(NAN), static_cast<double>(INFINITY), 1e300, 1e-300}) {
    expect_bad("scale", kArgument, [&](auto& d) { d.scale = scale; });
  }
  expect_bad("logarithm", kArgument, [](auto& d) { d.logarithm = 2; });
  expect_bad("mask_type", kArgument, [&](auto& d) { d.mask = small, d.mask_rows = 1, d.mask_type = TUFF_F16; });
  expect_bad("mask", kArgument, [&](auto& d) { d.mask = small; });  // six rows are required
  expect_bad("mask_rows", kArgument, [&](auto& d) { d.mask = small, d.mask_rows = ~uint64_t{0}; });
  expect_bad("mask", kArgument, [](auto& d) { d.mask_type = TUFF_U8; });
  expect_bad("mask", kArgument, [](auto& d) { d.mask_rows = 1; });
  expect_bad("mask", TUFF_ERROR_INVALID_HANDLE, [](auto& d) { d.mask = 99; });
  expect_bad("mask", kArgument, [](auto& d) { d.mask = d.output; });
  y.expect_poisoned();
}

TEST_P(SoftmaxOnce, InPlaceIsTheSame) {
  for (const AxisShape& s : {AxisShape{{9, 130}, 1, 4}, AxisShape{{130, 9}, 0, 4}, AxisShape{{2, 5000}, 1, 0}}) {
    SCOPED_TRACE(s.name());
    const std::vector<float> x = uniforms(s.count(), -4, 4, 6);
    const Tensor input(context(), x, s.shift), output(context(), s.count(), s.shift);
    ASSERT_OK(tuff_softmax(context(), TUFF_F32, input, output, s.shape.data(), s.rank(), s.axis));
    ASSERT_OK(tuff_softmax(context(), TUFF_F32, input, input, s.shape.data(), s.rank(), s.axis));
    expect_same_bits(input.read(), output.read());
  }
}

TEST_P(SoftmaxOnce, NaNStaysInItsSlice) {
  for (const uint32_t axis : {0u, 1u}) {
    const AxisShape s{{40, 70}, axis, 0};
    std::vector<float> x = uniforms(s.count(), -4, 4, 7);
    x[13 * 70 + 29] = NAN;
    Expected expected = solve(s, x);
    for (uint64_t r = 0; r < s.length(); ++r) {
      expected.value[axis == 0 ? s.index(0, r, 29) : s.index(13, r, 0)] = NAN;
    }
    const Tensor input(context(), x), output(context(), s.count());
    ASSERT_OK(tuff_softmax(context(), TUFF_F32, input, output, s.shape.data(), 2, axis));
    expect_matches(output.read(), expected);
  }
}

TEST_P(SoftmaxOnce, DescriptorIsTheSame) {
  const AxisShape s{{6, 50, 7}, 1, 0};
  const std::vector<float> x = uniforms(s.count(), -4, 4, 8);
  const Tensor input(context(), x), output(context(), s.count());
  tuff_softmax_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  desc.input = input, desc.output = output;
  std::copy(s.shape.begin(), s.shape.end(), desc.shape);
  desc.rank = 3, desc.axis = 1;
  ASSERT_OK(tuff_softmax_ex(context(), &desc));
  expect_matches(output.read(), solve(s, x));
}
// A slice of scores that are all -infinity gives 0 / 0 = NaN by the formula, even if further elements are masked. A
// slice that is masked entirely gives zeros. The slices are, in turn: ordinary; all -infinity; all masked; one unmasked
// score, which is -infinity; unmasked scores of -infinity except for the last.
TEST_P(SoftmaxOnce, ScoresOfMinusInfinityAreNaNAndNothingSeenIsZero) {
  const AxisShape shapes[] = {{{5, 7}, 1, 4},       {{10, 64}, 1, 0},     {{40, 333}, 1, 4},    {{5, 4096}, 1, 0},
                              {{5, 50'003}, 1, 4},  {{5, 65'536}, 1, 0},  {{5, 9, 3}, 1, 0},    {{5, 100, 16}, 1, 0},
                              {{5, 3000, 8}, 1, 0}, {{5, 3000, 1}, 1, 0}, {{5, 40, 1024}, 1, 0}};
  const int32_t types[] = {TUFF_F32, TUFF_F16, TUFF_BF16};
  uint32_t turn = 0;
  for (const AxisShape& s : shapes) {
    for (const Mask mask : {Mask::none, Mask::added, Mask::bytes}) {
      const int32_t dtype = types[turn++ % 3];
      const bool logarithm = turn % 2 == 0;
      const std::string name = s.name() + " mask " + std::to_string(static_cast<int>(mask)) + " " + name_of(dtype) +
                               (logarithm ? " log" : "");
      if (vulkan() && turn % 7 != 1 && !in_sample(name, 4)) continue;  // each is a kernel of its own
      SCOPED_TRACE(name);
      const uint64_t slice = s.length() * s.inner();
      std::vector<float> x = rounded(dtype, uniforms(s.count(), -4, 4, 5));
      const std::vector<float> zeros(mask == Mask::added ? s.count() : 0, 0.0f);
      Bytes seen(mask == Mask::bytes ? s.count() : 0, 1);
      Scores scores;
      for (uint64_t o = 0; o < s.outer(); ++o) {
        for (uint64_t r = 0; r < s.length(); ++r) {
          for (uint64_t i = 0; i < s.inner(); ++i) {
            const uint64_t at = s.index(o, r, i), last = s.length() - 1;
            if (o % 5 == 0 && r % 3 == 1) x[at] = -INFINITY;
            if (o % 5 == 1 || o % 5 == 3 || (o % 5 == 4 && r < last)) x[at] = -INFINITY;
            if (!seen.empty() && (o % 5 == 2 || (o % 5 == 3 && r != i % s.length()) || (o % 5 == 4 && r % 2 == 1))) {
              seen[at] = r == last && o % 5 == 4 ? 1 : 0;
            }
          }
        }
      }
      for (uint64_t at = 0; at < s.count(); ++at) {
        scores.z.push_back(!seen.empty() && seen[at] == 0 ? -INFINITY : static_cast<double>(x[at]));
      }
      Expected expected = solve(s, scores, logarithm);
      for (uint64_t o = 0; o < s.outer(); ++o) {
        if (o % 5 != 1 && o % 5 != 3) continue;
        std::fill_n(expected.value.begin() + static_cast<ptrdiff_t>(o * slice), slice, NAN);
      }
      add_storage(expected, dtype);
      const StoredTensor input(context(), dtype, x, s.shift / 4), output(context(), dtype, s.count(), s.shift / 4),
          added(context(), dtype, zeros, s.shift / 4);
      const TypedTensor bytes(context(), TUFF_U8, seen, s.shift);
      tuff_softmax_desc desc{};
      desc.struct_size = sizeof desc;
      desc.dtype = dtype;
      desc.input = input, desc.output = output;
      std::copy(s.shape.begin(), s.shape.end(), desc.shape);
      desc.rank = s.rank(), desc.axis = s.axis;
      desc.logarithm = logarithm;
      if (mask == Mask::added) desc.mask = added;
      if (mask == Mask::bytes) desc.mask = bytes, desc.mask_type = TUFF_U8;
      ASSERT_OK(tuff_softmax_ex(context(), &desc));
      expect_matches(output.read(), expected);
    }
  }
}
TUFF_ON_BACKENDS(SoftmaxOnce);

}  // namespace
}  // namespace tuff_test::softmax_test
