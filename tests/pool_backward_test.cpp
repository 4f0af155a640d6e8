// Gradients of pooling against sums in double over the windows. Those of maxima are sums of few terms; those of means
// are within the rounding errors of their shares.
#include <array>
#include <cmath>

#include "support/bounds.hpp"
#include "support/stored.hpp"

namespace tuff_test::pool_backward_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;

using Sizes = std::vector<uint64_t>;

struct Case {
  bool maximum = true;
  Sizes shape;  // batch, channels, spatial axes
  Sizes kernel, stride{}, padding{}, dilation{};
  bool ceil = false, include_pad = false;
  Sizes adaptive{};  // instead of windows: the output's spatial sizes
  int32_t dtype = TUFF_F32;
  bool indices = false;  // given; otherwise found again
  uint64_t shift = 0;

  uint32_t spatial() const { return static_cast<uint32_t>(shape.size() - 2); }
  uint64_t stride_of(uint32_t d) const { return stride.empty() ? kernel[d] : stride[d]; }
  uint64_t padding_of(uint32_t d) const { return padding.empty() ? 0 : padding[d]; }
  uint64_t dilation_of(uint32_t d) const { return dilation.empty() ? 1 : dilation[d]; }
  Sizes out() const {
    if (!adaptive.empty()) return adaptive;
    Sizes sizes;
    for (uint32_t d = 0; d < spatial(); ++d) {
      const uint64_t free = shape[2 + d] + 2 * padding_of(d) - dilation_of(d) * (kernel[d] - 1) - 1;
      uint64_t size = (free + (ceil ? stride_of(d) - 1 : 0)) / stride_of(d) + 1;
      if (ceil && (size - 1) * stride_of(d) >= shape[2 + d] + padding_of(d)) --size;
      sizes.push_back(size);
    }
    return sizes;
  }
  std::string name() const {
    std::string text = std::string(maximum ? "max_" : "avg_") + name_of(dtype);
    const auto add = [&](const char* what, const Sizes& values) {
      if (!values.empty()) text += what;
      for (const uint64_t value : values) text += "_" + std::to_string(value);
    };
    add("", shape), add("_k", kernel), add("_s", stride), add("_p", padding), add("_d", dilation);
    add("_adaptive", adaptive);
    text += std::string(ceil ? "_ceil" : "") + (include_pad ? "_pads" : "") + (indices ? "_indices" : "");
    return text + (shift != 0 ? "_shift" + std::to_string(shift) : "");
  }
  double work() const {
    double count = 1;
    for (const uint64_t size : shape) count *= static_cast<double>(size);
    return count;
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](Case row) {
    row.maximum = false;
    if (row.dilation.empty()) all.push_back(row);
    row.maximum = true, row.include_pad = false;
    all.push_back(row);
    row.indices = true;
    all.push_back(row);
  };
  add({.shape = {2, 3, 20}, .kernel = {3}, .stride = {2}, .padding = {1}, .include_pad = true});
  add({.shape = {2, 3, 21}, .kernel = {4}, .ceil = true});
  add({.shape = {2, 3, 13, 17}, .kernel = {2, 2}});
  add({.shape = {2, 3, 13, 17}, .kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 1}, .include_pad = true});
  add({.shape = {2, 3, 13, 17}, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .ceil = true});
  add({.shape = {2, 3, 14, 18},
       .kernel = {3, 3},
       .stride = {2, 2},
       .padding = {1, 1},
       .ceil = true,
       .include_pad = true,
       .shift = 1});
  add({.shape = {2, 3, 8, 12}, .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}});
  add({.shape = {2, 3, 12, 11}, .kernel = {2, 3}, .stride = {5, 4}});  // elements in no window
  add({.shape = {1, 2, 14, 18}, .kernel = {3, 2}, .stride = {2, 3}, .padding = {2, 1}, .dilation = {3, 2}});
  add({.shape = {2, 3, 5, 5}, .kernel = {3, 3}, .stride = {1, 1}, .dilation = {2, 1}});
  add({.shape = {1, 2, 2}, .kernel = {2}, .stride = {1}, .padding = {2}, .dilation = {4}});  // windows without taps
  add({.shape = {2, 3, 6, 7, 8}, .kernel = {2, 3, 2}, .stride = {2, 1, 3}, .padding = {1, 1, 0}});
  add({.shape = {2, 3, 6, 7, 8}, .kernel = {6, 7, 8}});
  add({.shape = {4, 5, 9, 11}, .kernel = {}, .adaptive = {1, 1}, .shift = 1});
  add({.shape = {4, 5, 9, 11}, .kernel = {}, .adaptive = {4, 3}});
  add({.shape = {4, 5, 9, 3}, .kernel = {}, .adaptive = {20, 7}});
  add({.shape = {2, 3, 5, 6, 7}, .kernel = {}, .adaptive = {2, 6, 3}});
  add({.shape = {70'000, 1, 4, 4}, .kernel = {2, 2}});
  add({.shape = {3, 8, 112, 112}, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .shift = 1});
  add({.shape = {0, 8, 5, 5}, .kernel = {3, 3}});
  add({.shape = {1, 2, 60, 70}, .kernel = {40, 50}, .stride = {2, 5}});
  for (const int32_t dtype : {int32_t{TUFF_F16}, int32_t{TUFF_BF16}}) {
    add({.shape = {2, 3, 13, 17}, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .dtype = dtype, .shift = 1});
    add({.shape = {2, 3, 10, 9}, .kernel = {}, .adaptive = {3, 4}, .dtype = dtype});
  }
  return all;
}

// The positions of a window along an axis that are in the input, and what a mean counts.
struct Taps {
  Sizes places;
  uint64_t counted = 0;
};

Taps taps_of(const Case& s, uint32_t d, uint64_t o, uint64_t out) {
  const uint64_t n = s.shape[2 + d];
  Taps taps;
  if (!s.adaptive.empty()) {
    for (uint64_t i = o * n / out; i < ((o + 1) * n + out - 1) / out; ++i) taps.places.push_back(i);
    taps.counted = taps.places.size();
    return taps;
  }
  for (uint64_t t = 0; t < s.kernel[d]; ++t) {
    const uint64_t padded = o * s.stride_of(d) + t * s.dilation_of(d);
    if (padded >= s.padding_of(d) && padded - s.padding_of(d) < n) taps.places.push_back(padded - s.padding_of(d));
    if (padded < n + 2 * s.padding_of(d)) ++taps.counted;
  }
  if (!s.include_pad) taps.counted = taps.places.size();
  return taps;
}

tuff_pool_backward_desc desc_of(const Case& s) {
  tuff_pool_backward_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype, desc.maximum = s.maximum;
  desc.batch = s.shape[0], desc.channels = s.shape[1], desc.spatial = s.spatial();
  const Sizes out = s.out();
  std::copy(s.shape.begin() + 2, s.shape.end(), desc.in_shape);
  std::copy(out.begin(), out.end(), desc.out_shape);
  std::copy(s.kernel.begin(), s.kernel.end(), desc.kernel);
  std::copy(s.stride.begin(), s.stride.end(), desc.stride);
  std::copy(s.padding.begin(), s.padding.end(), desc.padding);
  std::copy(s.dilation.begin(), s.dilation.end(), desc.dilation);
  desc.ceil_mode = s.ceil, desc.count_include_pad = s.include_pad, desc.adaptive = s.adaptive.empty() ? 0 : 1;
  return desc;
}

using PoolBackward = Table<Case>;

TEST_P(PoolBackward, Matches) {
  const Case& s = row();
  // Missing leading axes have size 1.
  Sizes in(3 - s.spatial(), 1), out(3 - s.spatial(), 1);
  const Sizes sizes = s.out();
  in.insert(in.end(), s.shape.begin() + 2, s.shape.end());
  out.insert(out.end(), sizes.begin(), sizes.end());
  const uint64_t planes = s.shape[0] * s.shape[1], inputs = in[0] * in[1] * in[2], outputs = out[0] * out[1] * out[2];
  const std::vector<float> x = rounded(s.dtype, integers(planes * inputs, 30, 1)),
                           slopes = rounded(s.dtype, spreads(planes * outputs, 2));
  std::vector<double> sums(planes * inputs), magnitudes(planes * inputs), terms(planes * inputs);
  std::vector<float> places(planes * outputs);
  for (uint64_t i = 0; i < planes * outputs; ++i) {
    Taps taps[3];
    uint64_t rest = i % outputs;
    for (uint32_t d = 3; d-- > 0; rest /= out[d]) {
      const uint32_t missing = 3 - s.spatial();
      taps[d] = d < missing ? Taps{{0}, 1} : taps_of(s, d - missing, rest % out[d], out[d]);
    }
    const uint64_t first = i / outputs * inputs;
    const auto divisor = static_cast<double>(taps[0].counted * taps[1].counted * taps[2].counted);
    const double slope = static_cast<double>(slopes[i]);
    uint64_t best = inputs;
    for (const uint64_t z : taps[0].places) {
      for (const uint64_t y : taps[1].places) {
        for (const uint64_t c : taps[2].places) {
          const uint64_t at = (z * in[1] + y) * in[2] + c;
          if (best == inputs || x[first + at] > x[first + best]) best = at;
          if (s.maximum) continue;
          sums[first + at] += slope / divisor;
          magnitudes[first + at] += std::fabs(slope / divisor), terms[first + at] += 1;
        }
      }
    }
    places[i] = from_bits(static_cast<uint32_t>(best == inputs ? 0 : best));
    if (!s.maximum || best == inputs) continue;
    sums[first + best] += slope, magnitudes[first + best] += std::fabs(slope), terms[first + best] += 1;
  }
  const StoredTensor input(context(), s.dtype, x, s.shift), doutput(context(), s.dtype, slopes, s.shift),
      dinput(context(), s.dtype, planes * inputs, s.shift);
  const Tensor indices(context(), places);
  tuff_pool_backward_desc desc = desc_of(s);
  if (s.indices) desc.indices = indices;
  if (s.maximum && !s.indices) desc.input = input;
  desc.doutput = doutput, desc.dinput = dinput;
  ASSERT_OK(tuff_pool_backward(context(), &desc));
  Expected expected{sums, magnitudes};
  // A share has the product of three sizes in its divisor, exact below 2^24, and a division to 2.5 ULP.
  for (size_t i = 0; i < sums.size(); ++i) expected.bound[i] *= gamma(terms[i] + (s.maximum ? 0 : 6));
  add_storage(expected, s.dtype);
  expect_matches(dinput.read(), expected);
  doutput.expect_unchanged(slopes);
  input.expect_unchanged(x);
}
TUFF_TABLE(PoolBackward, Case, cases());

class PoolBackwardOnce : public OnBackend {
 protected:
  static tuff_pool_backward_desc desc_of(tuff_buffer doutput, tuff_buffer dinput) {
    tuff_pool_backward_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = TUFF_F32, desc.maximum = 1;
    desc.doutput = doutput, desc.dinput = dinput;
    desc.batch = 1, desc.channels = 2, desc.spatial = 1;
    desc.in_shape[0] = 8, desc.out_shape[0] = 4, desc.kernel[0] = 2;
    return desc;
  }
};

// The first NaN of a window is its maximum, and of equal elements the first.
TEST_P(PoolBackwardOnce, NaNAndEqualElements) {
  const std::vector<float> x = {1, NAN, NAN, NAN, -INFINITY, -INFINITY, 5, INFINITY, 0, 0, 2, 2, 7, 3, -1, -2};
  const Tensor input(context(), x), doutput(context(), {1, 2, 3, 4, 5, 6, 7, 8}), dinput(context(), 16);
  tuff_pool_backward_desc desc = desc_of(doutput, dinput);
  desc.input = input;
  ASSERT_OK(tuff_pool_backward(context(), &desc));
  expect_same_bits(dinput.read(), {0, 1, 2, 0, 3, 0, 0, 4, 5, 0, 6, 0, 7, 0, 8, 0});
}

// Indices that name no element of their window have no effect: what is passed may be anything.
TEST_P(PoolBackwardOnce, ForeignIndices) {
  std::vector<float> places;
  for (const uint32_t place : {1u, 0u, 4u, 0xffffffffu, 8u, 3u, 5u, 7u}) places.push_back(from_bits(place));
  const Tensor indices(context(), places), doutput(context(), {1, 2, 3, 4, 5, INFINITY, 7, 8}), dinput(context(), 16);
  tuff_pool_backward_desc desc = desc_of(doutput, dinput);
  desc.indices = indices;
  ASSERT_OK(tuff_pool_backward(context(), &desc));
  expect_same_bits(dinput.read(), {0, 1, 0, 0, 3, 0, 0, 0, 0, 0, 0, INFINITY, 0, 7, 0, 8});
}

TEST_P(PoolBackwardOnce, BadArguments) {
  const Tensor x(context(), 16), y(context(), 8), g(context(), 16), z(context(), 8);
  const auto expect_bad = [&](tuff_status status, const char* word, bool maximum, auto spoil) {
    tuff_pool_backward_desc desc = desc_of(y, g);
    desc.maximum = maximum;
    if (maximum) desc.input = x;
    spoil(desc);
    SCOPED_TRACE(word);
    EXPECT_FAILS(tuff_pool_backward(context(), &desc), status, "tuff_pool_backward", word);
  };
  expect_bad(kArgument, "dtype", true, [](auto& d) { d.dtype = 0; });
  expect_bad(TUFF_ERROR_UNSUPPORTED, "dtype", true, [](auto& d) { d.dtype = TUFF_I32; });
  expect_bad(kArgument, "maximum", true, [](auto& d) { d.maximum = 2; });
  expect_bad(kArgument, "spatial", true, [](auto& d) { d.spatial = 4; });
  expect_bad(kArgument, "reserved", true, [](auto& d) { d.reserved = 1; });
  expect_bad(kArgument, "out_shape[0]", true, [](auto& d) { d.out_shape[0] = 5; });
  expect_bad(kArgument, "kernel[0]", true, [](auto& d) { d.kernel[0] = 0; });
  expect_bad(kArgument, "padding[0]", true, [](auto& d) { d.padding[0] = 2; });
  expect_bad(kArgument, "dilation[0]", false, [](auto& d) { d.dilation[0] = 2; });
  expect_bad(kArgument, "count_include_pad", true, [](auto& d) { d.count_include_pad = 1; });
  expect_bad(kArgument, "kernel", true, [](auto& d) { d.adaptive = 1; });
  expect_bad(kArgument, "channels", true, [](auto& d) { d.batch = d.channels = uint64_t{1} << 40; });
  expect_bad(kArgument, "indices", false, [&](auto& d) { d.indices = z; });
  expect_bad(kArgument, "input", false, [&](auto& d) { d.input = x; });
  expect_bad(kArgument, "neither input nor indices", true, [](auto& d) { d.input = 0; });
  expect_bad(TUFF_ERROR_INVALID_HANDLE, "doutput", true, [](auto& d) { d.doutput = 0; });
  expect_bad(kArgument, "dinput", true, [&](auto& d) { d.dinput = y; });
  expect_bad(kArgument, "dinput", true, [&](auto& d) { d.dinput = x; });
  expect_bad(kArgument, "indices", true, [&](auto& d) { d.indices = g; });
  expect_bad(kArgument, "doutput", true, [](auto& d) { d.channels = 7; });
  for (const Tensor* tensor : {&x, &y, &g, &z}) tensor->expect_poisoned();
}
TUFF_ON_BACKENDS(PoolBackwardOnce);

}  // namespace
}  // namespace tuff_test::pool_backward_test
