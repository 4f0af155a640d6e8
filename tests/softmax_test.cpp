#include <cfloat>
#include <cmath>

#include "support/axis_shape.hpp"
#include "support/bounds.hpp"
#include "support/stored.hpp"

namespace tuff_test {
namespace {

struct SoftmaxCase {
  AxisShape shape;
  float spread = 4;  // inputs lie in [-spread, spread)
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
  for (const AxisShape& shape : axis_shapes16()) {
    all.push_back({shape, 4, all.size() % 2 == 0 ? TUFF_F16 : TUFF_BF16});
  }
  return all;
}

// y = e^{x - m} / sum e^{x - m}. The argument is rounded (u |x - m|), exp errs by exp_error(), the sum by
// gamma of its depth, the division by 2.5 ULP. A kernel that goes through the row once rescales at most
// once for each element of a lane's run: kSerialAdditions + log2 n factors, whose arguments add up to the
// range. Below FLT_MIN results may be flushed to zero.
Expected solve(const AxisShape& s, const std::vector<float>& x) {
  Expected expected;
  expected.value.assign(x.size(), 0);
  expected.bound.assign(x.size(), 0);
  const double depth = sum_depth(s.length());
  for (uint64_t o = 0; o < s.outer(); ++o) {
    for (uint64_t i = 0; i < s.inner(); ++i) {
      double highest = -INFINITY, lowest = INFINITY, total = 0, worst = 0;
      for (uint64_t r = 0; r < s.length(); ++r) {
        highest = std::max(highest, static_cast<double>(x[s.index(o, r, i)]));
        lowest = std::min(lowest, static_cast<double>(x[s.index(o, r, i)]));
      }
      const double range = highest - lowest;
      const double rescaling = depth * (exp_error(0) + kU) + 5 * kU * range;
      const auto error = [&](double y) { return kU * y + exp_error(y) + rescaling; };
      for (uint64_t r = 0; r < s.length(); ++r) {
        const double weight = std::exp(x[s.index(o, r, i)] - highest);
        total += weight, worst += weight * error(highest - x[s.index(o, r, i)]);
      }
      worst /= total;  // relative error of the sum through its terms
      for (uint64_t r = 0; r < s.length(); ++r) {
        const uint64_t at = s.index(o, r, i);
        const double y = std::exp(x[at] - highest) / total;
        expected.value[at] = y;
        expected.bound[at] = y * std::expm1(error(highest - x[at]) + worst + gamma(depth + 5)) + FLT_MIN;
      }
    }
  }
  return expected;
}

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

class SoftmaxOnce : public OnBackend {};

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
TUFF_ON_BACKENDS(SoftmaxOnce);

}  // namespace
}  // namespace tuff_test
