// Pooling: maxima and their indices must be exact, means within the rounding errors of their sums.
#include <cmath>

#include "support/bounds.hpp"
#include "support/stored.hpp"

namespace tuff_test::pool_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;

struct PoolCase {
  bool maximum = true;
  std::vector<uint64_t> shape;  // batch, channels, spatial axes
  std::vector<uint64_t> kernel, stride{}, padding{}, dilation{};
  bool ceil = false, include_pad = false;
  std::vector<uint64_t> adaptive{};  // instead of windows: the output's spatial sizes
  int32_t dtype = TUFF_F32;
  bool indices = false;
  uint64_t shift = 0;

  uint32_t spatial() const { return static_cast<uint32_t>(shape.size() - 2); }
  uint64_t stride_of(uint32_t d) const { return stride.empty() ? kernel[d] : stride[d]; }
  uint64_t padding_of(uint32_t d) const { return padding.empty() ? 0 : padding[d]; }
  uint64_t dilation_of(uint32_t d) const { return dilation.empty() ? 1 : dilation[d]; }
  // The output's spatial sizes, as PyTorch computes them.
  std::vector<uint64_t> result() const {
    if (!adaptive.empty()) return adaptive;
    std::vector<uint64_t> sizes;
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
    const auto add = [&](const char* what, const std::vector<uint64_t>& values) {
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

std::vector<PoolCase> cases() {
  std::vector<PoolCase> all;
  for (const bool maximum : {true, false}) {
    const auto add = [&](PoolCase row) {
      row.maximum = maximum;
      row.indices = row.indices && maximum;
      if (maximum) {
        row.include_pad = false;
      } else {
        row.dilation.clear();
      }
      all.push_back(row);
    };
    add({.shape = {2, 3, 20}, .kernel = {3}, .stride = {2}, .padding = {1}, .indices = true});
    add({.shape = {2, 3, 21}, .kernel = {4}, .ceil = true});
    add({.shape = {2, 3, 13, 17}, .kernel = {2, 2}, .indices = true});
    add({.shape = {2, 3, 13, 17}, .kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 1}, .include_pad = true});
    add({.shape = {2, 3, 13, 17},
         .kernel = {3, 3},
         .stride = {2, 2},
         .padding = {1, 1},
         .ceil = true,
         .include_pad = true});
    add({.shape = {2, 3, 14, 18},
         .kernel = {3, 3},
         .stride = {2, 2},
         .padding = {1, 1},
         .ceil = true,
         .indices = true});
    add({.shape = {2, 3, 23, 40}, .kernel = {5, 4}, .stride = {3, 3}, .padding = {2, 2}, .include_pad = true});
    add({.shape = {2, 3, 23, 40}, .kernel = {2, 3}, .stride = {3, 1}, .padding = {0, 1}});
    add({.shape = {2, 3, 8, 12}, .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}});
    if (maximum)
      add({.shape = {1, 2, 14, 18},
           .kernel = {3, 2},
           .stride = {2, 3},
           .padding = {2, 1},
           .dilation = {3, 2},
           .indices = true});
    add({.shape = {2, 3, 6, 7, 8}, .kernel = {2, 3, 2}, .stride = {2, 1, 3}, .padding = {1, 1, 0}, .indices = true});
    add({.shape = {2, 3, 6, 7, 8}, .kernel = {6, 7, 8}});  // whole planes
    if (maximum) add({.shape = {2, 3, 6, 7, 8}, .kernel = {6, 7, 8}, .indices = true});
    // One window that is not the whole plane: it is smaller, reaches into the padding, or has gaps.
    add({.shape = {2, 3, 5}, .kernel = {3}, .stride = {3}});
    add({.shape = {2, 3, 3, 5}, .kernel = {3, 3}, .stride = {3, 3}});
    add({.shape = {2, 3, 5, 3}, .kernel = {3, 3}, .stride = {3, 3}});
    add({.shape = {2, 3, 3, 3}, .kernel = {3, 3}, .stride = {3, 3}, .padding = {0, 1}});
    if (maximum) add({.shape = {2, 3, 5, 5}, .kernel = {3, 3}, .dilation = {2, 2}});
    add({.shape = {4, 5, 9, 11}, .kernel = {}, .adaptive = {1, 1}, .shift = 1});
    add({.shape = {4, 5, 9, 11}, .kernel = {}, .adaptive = {4, 3}, .indices = true});
    add({.shape = {4, 5, 9, 3}, .kernel = {}, .adaptive = {20, 7}});
    add({.shape = {2, 3, 5, 6, 7}, .kernel = {}, .adaptive = {2, 6, 3}});
    add({.shape = {70'000, 1, 4, 4}, .kernel = {2, 2}});
    add({.shape = {1, 70'000, 6}, .kernel = {6}});
    add({.shape = {3, 8, 224, 224},
         .kernel = {3, 3},
         .stride = {2, 2},
         .padding = {1, 1},
         .indices = true,
         .shift = 1});
    add({.shape = {0, 8, 5, 5}, .kernel = {3, 3}});
    add({.shape = {1, 2, 130, 150}, .kernel = {120, 120}, .stride = {5, 15}});
    for (const int32_t dtype : {int32_t{TUFF_F16}, int32_t{TUFF_BF16}}) {
      add({.shape = {2, 3, 13, 17}, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .dtype = dtype, .shift = 1});
      add({.shape = {2, 40, 7, 7}, .kernel = {7, 7}, .dtype = dtype});
      if (dtype == TUFF_F16) add({.shape = {2, 3, 10, 9}, .kernel = {}, .adaptive = {3, 4}, .dtype = dtype});
    }
  }
  return all;
}

struct Taps {
  uint64_t begin, end;  // positions in the padded axis, `step` apart
  uint64_t step, padding, covered;
};

Taps taps_of(const PoolCase& s, uint32_t d, uint64_t o, uint64_t out) {
  const uint64_t n = s.shape[2 + d];
  if (!s.adaptive.empty()) {
    const uint64_t begin = o * n / out, end = ((o + 1) * n + out - 1) / out;
    return {begin, end, 1, 0, end - begin};
  }
  const uint64_t begin = o * s.stride_of(d), end = begin + (s.kernel[d] - 1) * s.dilation_of(d) + 1;
  return {begin, end, s.dilation_of(d), s.padding_of(d), std::min(end, n + 2 * s.padding_of(d)) - begin};
}

using Pool = Table<PoolCase>;

TEST_P(Pool, Matches) {
  const PoolCase& s = row();
  const std::vector<uint64_t> out = s.result();
  uint64_t inputs = 1, outputs = 1;
  for (uint32_t d = 0; d < s.spatial(); ++d) inputs *= s.shape[2 + d], outputs *= out[d];
  const uint64_t planes = s.shape[0] * s.shape[1];
  const std::vector<float> x =
      rounded(s.dtype, s.maximum ? integers(planes * inputs, 30, 1) : spreads(planes * inputs, 1));
  const StoredTensor input(context(), s.dtype, x, s.shift), output(context(), s.dtype, planes * outputs, s.shift);
  const Tensor indices(context(), s.indices ? planes * outputs : 0);
  tuff_pool_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype;
  desc.input = input, desc.output = output;
  if (s.indices) desc.indices = indices;
  desc.batch = s.shape[0], desc.channels = s.shape[1], desc.spatial = s.spatial();
  std::copy(s.shape.begin() + 2, s.shape.end(), desc.in_shape);
  std::copy(out.begin(), out.end(), desc.out_shape);
  std::copy(s.kernel.begin(), s.kernel.end(), desc.kernel);
  std::copy(s.stride.begin(), s.stride.end(), desc.stride);
  std::copy(s.padding.begin(), s.padding.end(), desc.padding);
  std::copy(s.dilation.begin(), s.dilation.end(), desc.dilation);
  desc.ceil_mode = s.ceil, desc.count_include_pad = s.include_pad, desc.adaptive = s.adaptive.empty() ? 0 : 1;
  ASSERT_OK((s.maximum ? tuff_max_pool : tuff_avg_pool)(context(), &desc));

  Expected expected{std::vector<double>(planes * outputs), std::vector<double>(planes * outputs)};
  std::vector<float> places(s.indices ? planes * outputs : 0);
  // Missing leading axes have size 1.
  std::vector<uint64_t> in3(3 - s.spatial(), 1), out3(3 - s.spatial(), 1);
  in3.insert(in3.end(), s.shape.begin() + 2, s.shape.end());
  out3.insert(out3.end(), out.begin(), out.end());
  for (uint64_t i = 0; i < planes * outputs; ++i) {
    Taps taps[3];
    uint64_t rest = i % outputs;
    for (uint32_t d = 3; d-- > 0; rest /= out3[d]) {
      const uint32_t missing = 3 - s.spatial();
      taps[d] = d < missing ? Taps{0, 1, 1, 0, 1} : taps_of(s, d - missing, rest % out3[d], out3[d]);
    }
    double best = -INFINITY, sum = 0, magnitude = 0;
    uint64_t place = 0, count = 0;
    for (uint64_t z = taps[0].begin; z < taps[0].end; z += taps[0].step) {
      if (z < taps[0].padding || z - taps[0].padding >= in3[0]) continue;
      for (uint64_t y = taps[1].begin; y < taps[1].end; y += taps[1].step) {
        if (y < taps[1].padding || y - taps[1].padding >= in3[1]) continue;
        for (uint64_t c = taps[2].begin; c < taps[2].end; c += taps[2].step) {
          if (c < taps[2].padding || c - taps[2].padding >= in3[2]) continue;
          const uint64_t at = ((z - taps[0].padding) * in3[1] + (y - taps[1].padding)) * in3[2] + (c - taps[2].padding);
          const double value = x[i / outputs * inputs + at];
          if (value > best) best = value, place = at;
          sum += value, magnitude += std::fabs(value), ++count;
        }
      }
    }
    if (s.maximum) {
      expected.value[i] = best;
    } else {
      const double divisor =
          static_cast<double>(s.include_pad ? taps[0].covered * taps[1].covered * taps[2].covered : count);
      expected.value[i] = sum / divisor;
      // A serial sum, the product of sizes in the divisor, and a division to 2.5 ULP.
      expected.bound[i] = (gamma(static_cast<double>(count)) * magnitude + 6 * kU * std::fabs(sum)) / divisor;
    }
    if (s.indices) places[i] = from_bits(static_cast<uint32_t>(place));
  }
  if (!s.maximum) add_storage(expected, s.dtype);
  expect_matches(output.read(), expected);
  if (s.indices) indices.expect_unchanged(places);
  input.expect_unchanged(x);
}
TUFF_TABLE(Pool, PoolCase, cases());

class PoolOnce : public OnBackend {
 protected:
  static tuff_pool_desc desc_of(tuff_buffer input, tuff_buffer output) {
    tuff_pool_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = TUFF_F32;
    desc.input = input, desc.output = output;
    desc.batch = 1, desc.channels = 2, desc.spatial = 1;
    desc.in_shape[0] = 8, desc.out_shape[0] = 4, desc.kernel[0] = 2;
    return desc;
  }
};

TEST_P(PoolOnce, NaNAndInfinity) {
  const std::vector<float> x = {1, NAN, NAN, 3, -INFINITY, -INFINITY, 5, INFINITY, 0, 1, 2, 2, 7, 3, -1, -2};
  const Tensor input(context(), x), output(context(), 8), indices(context(), 8);
  tuff_pool_desc desc = desc_of(input, output);
  desc.indices = indices;
  ASSERT_OK(tuff_max_pool(context(), &desc));
  expect_same_bits(output.read(), {NAN, NAN, -INFINITY, INFINITY, 1, 2, 7, -1});
  std::vector<float> places;
  for (const uint32_t place : {1u, 2u, 4u, 7u, 1u, 2u, 4u, 6u}) places.push_back(from_bits(place));
  indices.expect_unchanged(places);
  desc.indices = 0;
  ASSERT_OK(tuff_avg_pool(context(), &desc));
  expect_same_bits(output.read(), {NAN, NAN, -INFINITY, INFINITY, 0.5f, 2, 5, -1.5f});
}

TEST_P(PoolOnce, BadArguments) {
  const Tensor x(context(), 16), y(context(), 8), z(context(), 8);
  const auto expect_bad = [&](tuff_status status, const char* word, bool maximum, auto spoil) {
    tuff_pool_desc desc = desc_of(x, y);
    spoil(desc);
    EXPECT_FAILS((maximum ? tuff_max_pool : tuff_avg_pool)(context(), &desc), status,
                 maximum ? "tuff_max_pool" : "tuff_avg_pool", word);
  };
  expect_bad(kArgument, "dtype", true, [](auto& d) { d.dtype = 0; });
  expect_bad(TUFF_ERROR_UNSUPPORTED, "dtype", true, [](auto& d) { d.dtype = TUFF_I32; });
  expect_bad(kArgument, "spatial", true, [](auto& d) { d.spatial = 4; });
  expect_bad(kArgument, "spatial", true, [](auto& d) { d.spatial = 0; });
  expect_bad(kArgument, "ceil_mode", true, [](auto& d) { d.ceil_mode = 2; });
  expect_bad(kArgument, "out_shape[0]", true, [](auto& d) { d.out_shape[0] = 5; });
  expect_bad(kArgument, "in_shape[0]", true, [](auto& d) { d.in_shape[0] = 0; });
  expect_bad(kArgument, "kernel[0]", true, [](auto& d) { d.kernel[0] = 0; });
  expect_bad(kArgument, "window", true, [](auto& d) { d.kernel[0] = 9; });
  expect_bad(kArgument, "padding[0]", true, [](auto& d) { d.padding[0] = 2; });
  expect_bad(kArgument, "dilation[0]", false, [](auto& d) { d.dilation[0] = 2; });
  expect_bad(kArgument, "count_include_pad", true, [](auto& d) { d.count_include_pad = 1; });
  expect_bad(kArgument, "indices", false, [&](auto& d) { d.indices = z; });
  expect_bad(kArgument, "kernel", true, [](auto& d) { d.adaptive = 1; });
  expect_bad(kArgument, "channels", true, [](auto& d) { d.batch = d.channels = uint64_t{1} << 40; });
  expect_bad(kArgument, "input", true, [](auto& d) { d.channels = 7; });
  expect_bad(kArgument, "output", true, [&](auto& d) { d.output = x; });
  expect_bad(kArgument, "indices", true, [&](auto& d) { d.indices = y; });
  expect_bad(kArgument, "kernel[0]=18446744073709551615", true, [](auto& d) { d.kernel[0] = ~uint64_t{0}; });
  x.expect_poisoned();
  y.expect_poisoned();
  z.expect_poisoned();
}
TUFF_ON_BACKENDS(PoolOnce);

}  // namespace
}  // namespace tuff_test::pool_test
