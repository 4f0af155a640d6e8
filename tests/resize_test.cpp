// Resizing. Nearest elements must be exact, and so must linear interpolation whose weights are halves and quarters;
// other interpolation must be within the rounding errors of its weights.
#include <array>
#include <cmath>

#include "support/bounds.hpp"
#include "support/stored.hpp"

namespace tuff_test::resize_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
constexpr int32_t kNearest = TUFF_RESIZE_NEAREST, kExact = TUFF_RESIZE_NEAREST_EXACT, kLinear = TUFF_RESIZE_LINEAR;

struct Ratio {
  uint64_t top, bottom;
};

struct ResizeCase {
  int32_t mode = kLinear;
  uint64_t batch, channels;
  std::vector<uint64_t> in, out;
  bool align = false, last = false;
  int32_t dtype = TUFF_F32;
  uint64_t shift = 0;
  std::vector<Ratio> scale{};  // output elements per input element

  uint32_t spatial() const { return static_cast<uint32_t>(in.size()); }
  std::string name() const {
    std::string text = mode == kNearest ? "nearest" : mode == kExact ? "exact" : align ? "aligned" : "linear";
    text += std::string("_") + name_of(dtype) + "_" + std::to_string(batch) + "_" + std::to_string(channels);
    for (const uint64_t size : in) text += "_" + std::to_string(size);
    text += "_to";
    for (const uint64_t size : out) text += "_" + std::to_string(size);
    for (const Ratio& ratio : scale) text += "_by_" + std::to_string(ratio.top) + "_" + std::to_string(ratio.bottom);
    return text + (last ? "_last" : "") + (shift != 0 ? "_shift" + std::to_string(shift) : "");
  }
  double work() const {
    double count = static_cast<double>(batch * channels);
    for (const uint64_t size : out) count *= static_cast<double>(size);
    return count;
  }
};

std::vector<ResizeCase> cases() {
  std::vector<ResizeCase> all;
  const auto modes = [&](ResizeCase row) {
    for (const int32_t mode : {kNearest, kExact, kLinear}) {
      row.mode = mode;
      all.push_back(row);
    }
    row.align = true;
    all.push_back(row);
  };
  modes({.batch = 2, .channels = 3, .in = {13, 16}, .out = {26, 32}});
  modes({.batch = 2, .channels = 3, .in = {23, 41}, .out = {17, 30}, .shift = 1});
  modes({.batch = 2, .channels = 8, .in = {9, 7}, .out = {13, 15}, .last = true});
  modes({.batch = 3, .channels = 5, .in = {50}, .out = {71}});
  modes({.batch = 1, .channels = 2, .in = {4, 5, 6}, .out = {7, 9, 12}});
  modes({.batch = 1, .channels = 1, .in = {99'991}, .out = {150'001}});  // primes
  modes({.batch = 1, .channels = 1, .in = {100'003}, .out = {30'011}});
  const auto add = [&](ResizeCase row) { all.push_back(row); };
  add({.batch = 2, .channels = 3, .in = {10, 12}, .out = {9, 7}, .last = true});
  add({.batch = 2, .channels = 4, .in = {3, 4, 5}, .out = {6, 3, 7}, .last = true, .shift = 1});
  add({.mode = kNearest, .batch = 2, .channels = 3, .in = {5, 6}, .out = {10, 12}, .last = true});
  // Axes that keep their size.
  add({.batch = 2, .channels = 3, .in = {9, 12}, .out = {9, 24}});
  add({.batch = 2, .channels = 3, .in = {9, 12}, .out = {18, 12}});
  add({.batch = 2, .channels = 3, .in = {4, 5, 6}, .out = {8, 5, 12}});
  add({.batch = 2, .channels = 3, .in = {4, 5, 6}, .out = {4, 10, 6}, .last = true});
  add({.batch = 2, .channels = 3, .in = {9, 12}, .out = {9, 12}, .shift = 1});
  add({.batch = 2, .channels = 3, .in = {9, 12}, .out = {9, 12}, .align = true, .last = true});
  // Axes with a single element.
  add({.batch = 2, .channels = 3, .in = {1, 1}, .out = {5, 8}});
  add({.batch = 2, .channels = 3, .in = {1, 6}, .out = {4, 1}, .align = true});
  add({.mode = kNearest, .batch = 2, .channels = 3, .in = {7, 9}, .out = {1, 1}});
  add({.batch = 0, .channels = 3, .in = {7, 9}, .out = {1, 1}});
  // Scales other than the ratio of the sizes.
  for (const int32_t mode : {kNearest, kExact, kLinear}) {
    add({.mode = mode, .batch = 2, .channels = 3, .in = {5, 10}, .out = {9, 15}, .scale = {{2, 1}, {3, 2}}});
    add({.mode = mode, .batch = 1, .channels = 1, .in = {41, 40}, .out = {13, 5}, .scale = {{3, 10}, {7, 55}}});
    add({.mode = mode, .batch = 1, .channels = 1, .in = {6, 6}, .out = {6, 9}, .scale = {{2, 1}, {1, 3}}});
  }
  // Many workgroups, and many planes.
  add({.batch = 1, .channels = 1, .in = {700, 901}, .out = {760, 903}});
  add({.batch = 70, .channels = 1'000, .in = {2, 2}, .out = {3, 4}});
  for (const int32_t dtype : {int32_t{TUFF_F16}, int32_t{TUFF_BF16}}) {
    add({.batch = 2, .channels = 3, .in = {13, 17}, .out = {20, 24}, .dtype = dtype});
    add({.batch = 2, .channels = 8, .in = {9, 7}, .out = {13, 15}, .last = true, .dtype = dtype, .shift = 1});
    add({.mode = kNearest, .batch = 2, .channels = 3, .in = {13, 17}, .out = {20, 25}, .dtype = dtype});
  }
  return all;
}

// The elements around a position: `second` counts by `weight`, `first` by 1 - weight.
struct Taps {
  uint64_t first, second;
  double weight;
};

Taps taps_of(const ResizeCase& s, uint32_t d, uint64_t o) {
  const uint64_t in = s.in[d], out = s.out[d];
  const Ratio scale = s.scale.empty() ? Ratio{out, in} : s.scale[d];
  const auto nearest = [&](uint64_t index) { return Taps{std::min(index, in - 1), std::min(index, in - 1), 0}; };
  if (s.mode == kNearest) return nearest(o * scale.bottom / scale.top);
  if (s.mode == kExact) return nearest((2 * o + 1) * scale.bottom / (2 * scale.top));
  const auto place = static_cast<double>(o);
  double at = (place + 0.5) * static_cast<double>(scale.bottom) / static_cast<double>(scale.top) - 0.5;
  if (s.align) at = out == 1 ? 0 : place * static_cast<double>(in - 1) / static_cast<double>(out - 1);
  at = std::min(std::max(at, 0.0), static_cast<double>(in - 1));
  const double below = std::floor(at);
  const auto first = static_cast<uint64_t>(below);
  return {first, std::min(first + 1, in - 1), at - below};
}

// Whether weights are multiples of 2^-10, so that interpolations of small integers are exact.
bool weights_are_exact(const ResizeCase& s) {
  for (uint32_t d = 0; d < s.spatial(); ++d) {
    for (uint64_t o = 0; o < s.out[d]; ++o) {
      const double scaled = taps_of(s, d, o).weight * 1024;
      if (scaled != std::floor(scaled)) return false;
    }
  }
  return true;
}

using Resize = Table<ResizeCase>;

TEST_P(Resize, Matches) {
  const ResizeCase& s = row();
  const bool exact = weights_are_exact(s);
  uint64_t inputs = 1, outputs = 1;
  for (uint32_t d = 0; d < s.spatial(); ++d) inputs *= s.in[d], outputs *= s.out[d];
  const uint64_t images = s.batch * s.channels;
  const std::vector<float> x = rounded(s.dtype, exact ? integers(images * inputs, 30, 1) : spreads(images * inputs, 1));
  const StoredTensor input(context(), s.dtype, x, s.shift), output(context(), s.dtype, images * outputs, s.shift);
  tuff_resize_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype, desc.mode = s.mode, desc.align_corners = s.align;
  desc.layout = s.last ? TUFF_LAYOUT_NHWC : TUFF_LAYOUT_NCHW;
  desc.input = input, desc.output = output;
  desc.batch = s.batch, desc.channels = s.channels, desc.spatial = s.spatial();
  std::copy(s.in.begin(), s.in.end(), desc.in_shape);
  std::copy(s.out.begin(), s.out.end(), desc.out_shape);
  for (uint32_t d = 0; d < s.scale.size(); ++d) {
    desc.scale[d] = static_cast<double>(s.scale[d].top) / static_cast<double>(s.scale[d].bottom);
  }
  ASSERT_OK(tuff_resize(context(), &desc));

  Expected expected{std::vector<double>(images * outputs), std::vector<double>(images * outputs)};
  std::array<std::vector<Taps>, 3> taps;
  std::array<uint64_t, 3> in3 = {1, 1, 1}, out3 = {1, 1, 1};
  for (uint32_t d = 0; d < 3; ++d) {
    const uint32_t missing = 3 - s.spatial();
    taps[d] = {{0, 0, 0}};
    if (d < missing) continue;
    in3[d] = s.in[d - missing], out3[d] = s.out[d - missing];
    taps[d].clear();
    for (uint64_t o = 0; o < out3[d]; ++o) taps[d].push_back(taps_of(s, d - missing, o));
  }
  for (uint64_t i = 0; i < images * outputs; ++i) {
    const uint64_t channel = s.last ? i % s.channels : i / outputs % s.channels, image = i / outputs / s.channels;
    const uint64_t o = s.last ? i / s.channels % outputs : i % outputs;
    const Taps &z = taps[0][o / out3[2] / out3[1]], &y = taps[1][o / out3[2] % out3[1]], &c = taps[2][o % out3[2]];
    double sum = 0, magnitude = 0;
    for (int corner = 0; corner < 8; ++corner) {
      double weight = 1;
      const auto tap = [&](const Taps& t, int bit) {
        const bool second = ((corner >> bit) & 1) != 0;
        weight *= second ? t.weight : 1 - t.weight;
        return second ? t.second : t.first;
      };
      const uint64_t at = (tap(z, 0) * in3[1] + tap(y, 1)) * in3[2] + tap(c, 2);
      if (weight == 0) continue;
      const double value =
          x[s.last ? (image * inputs + at) * s.channels + channel : (image * s.channels + channel) * inputs + at];
      sum += weight * value;
      magnitude += std::fabs(value);
    }
    expected.value[i] = sum;
    // A weight is a quotient (2.5 ULP) of two rounded numbers, 8 u of it. 1 - weight has the same error and is rounded
    // too. With a product and a sum that is 12 u of either element, along each axis.
    expected.bound[i] = exact ? 0 : gamma(12.0 * s.spatial()) * magnitude;
  }
  if (s.dtype != TUFF_F32) add_storage(expected, s.dtype);
  expect_matches(output.read(), expected);
  input.expect_unchanged(x);
}
TUFF_TABLE(Resize, ResizeCase, cases());

class ResizeOnce : public OnBackend {
 protected:
  static tuff_resize_desc desc_of(tuff_buffer input, tuff_buffer output) {
    tuff_resize_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = TUFF_F32, desc.mode = kLinear;
    desc.input = input, desc.output = output;
    desc.batch = 1, desc.channels = 2, desc.spatial = 1;
    desc.in_shape[0] = 4, desc.out_shape[0] = 8;
    return desc;
  }
};

TEST_P(ResizeOnce, NaNAndInfinityStayWhereTheyCount) {
  const Tensor input(context(), {1, NAN, 2, INFINITY, 3, 4, -INFINITY, 5}), output(context(), 16);
  tuff_resize_desc desc = desc_of(input, output);
  ASSERT_OK(tuff_resize(context(), &desc));
  expect_same_bits(output.read(), {1, NAN, NAN, NAN, NAN, INFINITY, INFINITY, INFINITY,  //
                                   3, 3.25f, 3.75f, -INFINITY, -INFINITY, -INFINITY, -INFINITY, 5});
  // Every second element is an element of the input.
  desc.align_corners = 1, desc.out_shape[0] = 7;
  ASSERT_OK(tuff_resize(context(), &desc));
  std::vector<float> got = output.read();
  got.resize(14);
  expect_same_bits(got, {1, NAN, NAN, NAN, 2, INFINITY, INFINITY, 3, 3.5f, 4, -INFINITY, -INFINITY, -INFINITY, 5});
}

TEST_P(ResizeOnce, BadArguments) {
  const Tensor x(context(), 8), y(context(), 16);
  const auto expect_bad = [&](tuff_status status, const char* word, auto spoil) {
    tuff_resize_desc desc = desc_of(x, y);
    spoil(desc);
    EXPECT_FAILS(tuff_resize(context(), &desc), status, "tuff_resize", word);
  };
  expect_bad(kArgument, "dtype", [](auto& d) { d.dtype = 0; });
  expect_bad(TUFF_ERROR_UNSUPPORTED, "dtype", [](auto& d) { d.dtype = TUFF_I32; });
  expect_bad(kArgument, "mode", [](auto& d) { d.mode = 3; });
  expect_bad(kArgument, "mode", [](auto& d) { d.mode = -1; });
  expect_bad(kArgument, "layout", [](auto& d) { d.layout = 2; });
  expect_bad(kArgument, "align_corners", [](auto& d) { d.align_corners = 2; });
  expect_bad(kArgument, "align_corners", [](auto& d) { d.align_corners = 1, d.mode = kNearest; });
  expect_bad(kArgument, "align_corners", [](auto& d) { d.align_corners = 1, d.scale[0] = 2; });
  expect_bad(kArgument, "spatial", [](auto& d) { d.spatial = 0; });
  expect_bad(kArgument, "spatial", [](auto& d) { d.spatial = 4; });
  expect_bad(kArgument, "in_shape[0]", [](auto& d) { d.in_shape[0] = 0; });
  expect_bad(kArgument, "out_shape[0]", [](auto& d) { d.out_shape[0] = 0; });
  expect_bad(kArgument, "out_shape[0]", [](auto& d) { d.out_shape[0] = uint64_t{1} << 29; });
  for (const double scale : {-1.0, double{NAN}, double{INFINITY}}) {
    expect_bad(kArgument, "scale[0]", [=](auto& d) { d.scale[0] = scale; });
  }
  expect_bad(kArgument, "scale[0]=1e-09", [](auto& d) { d.scale[0] = 1e-9; });
  expect_bad(kArgument, "scale[0]=1000000000", [](auto& d) { d.scale[0] = 1e9; });
  expect_bad(kArgument, "channels", [](auto& d) { d.batch = d.channels = uint64_t{1} << 40; });
  expect_bad(kArgument, "input", [](auto& d) { d.channels = 30; });
  expect_bad(kArgument, "output", [](auto& d) { d.out_shape[0] = 99; });
  expect_bad(TUFF_ERROR_INVALID_HANDLE, "output", [](auto& d) { d.output = 0; });
  expect_bad(kArgument, "output", [&](auto& d) { d.output = x, d.out_shape[0] = 3; });
  EXPECT_FAILS(tuff_resize(context(), nullptr), kArgument, "tuff_resize", "desc");
  x.expect_poisoned();
  y.expect_poisoned();
}
TUFF_ON_BACKENDS(ResizeOnce);

}  // namespace
}  // namespace tuff_test::resize_test
