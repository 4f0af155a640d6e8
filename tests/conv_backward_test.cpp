// Gradients of convolutions against sums in double over all combinations of input, tap and output that a convolution
// multiplies. Integers must be exact, which they are in f32 while sums stay below 2^24.
#include <array>
#include <cmath>

#include "support/bounds.hpp"
#include "support/stored.hpp"

namespace tuff_test::conv_backward_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kHandle = TUFF_ERROR_INVALID_HANDLE;

using Sizes = std::vector<uint64_t>;

struct Case {
  uint64_t batch = 2, channels = 3, filters = 4;
  Sizes in, taps;  // as many as there are spatial axes
  Sizes stride{}, padding{}, dilation{}, padding_end{};
  uint64_t groups = 1;
  int32_t layout = TUFF_LAYOUT_NCHW, dtype = TUFF_F32;
  uint64_t shift = 0;  // elements

  uint32_t spatial() const { return static_cast<uint32_t>(in.size()); }
  uint64_t stride_of(uint32_t d) const { return stride.empty() ? 1 : stride[d]; }
  uint64_t padding_of(uint32_t d) const { return padding.empty() ? 0 : padding[d]; }
  uint64_t end_of(uint32_t d) const { return padding_end.empty() ? padding_of(d) : padding_end[d]; }
  uint64_t dilation_of(uint32_t d) const { return dilation.empty() ? 1 : dilation[d]; }
  Sizes out() const {
    Sizes sizes;
    for (uint32_t d = 0; d < spatial(); ++d) {
      const uint64_t span = dilation_of(d) * (taps[d] - 1) + 1;
      sizes.push_back((in[d] + padding_of(d) + end_of(d) - span) / stride_of(d) + 1);
    }
    return sizes;
  }
  static uint64_t product(const Sizes& sizes) {
    uint64_t result = 1;
    for (const uint64_t size : sizes) result *= size;
    return result;
  }
  uint64_t inputs() const { return batch * channels * product(in); }
  uint64_t weights() const { return filters * (channels / groups) * product(taps); }
  uint64_t outputs() const { return batch * filters * product(out()); }
  std::string name() const {
    std::string text = name_of(dtype);
    const auto add = [&](const char* what, const Sizes& values) {
      if (!values.empty()) text += what;
      for (const uint64_t value : values) text += "_" + std::to_string(value);
    };
    add("", {batch, channels, filters}), add("_in", in), add("_k", taps), add("_s", stride), add("_p", padding);
    add("_e", padding_end), add("_d", dilation);
    if (groups != 1) text += "_g" + std::to_string(groups);
    if (layout == TUFF_LAYOUT_NHWC) text += "_last";
    return text + (shift != 0 ? "_shift" + std::to_string(shift) : "");
  }
  double work() const {
    return static_cast<double>(outputs()) * static_cast<double>(channels / groups * product(taps));
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int32_t layout : {int32_t{TUFF_LAYOUT_NCHW}, int32_t{TUFF_LAYOUT_NHWC}}) {
    const auto add = [&](Case row) {
      row.layout = layout;
      all.push_back(row);
    };
    // nothing, and sums of nothing
    add({.batch = 0, .in = {5, 5}, .taps = {3, 3}});
    add({.filters = 0, .in = {5, 5}, .taps = {3, 3}});
    add({.channels = 0, .in = {5, 5}, .taps = {3, 3}});
    add({.in = {0, 5}, .taps = {3, 3}, .padding = {2, 1}});
    // one, two and three axes
    add({.in = {17}, .taps = {5}, .stride = {2}, .padding = {2}, .dilation = {2}});
    add({.in = {13, 11}, .taps = {3, 3}, .padding = {1, 1}});
    add({.in = {13, 11}, .taps = {3, 2}, .stride = {2, 3}, .padding = {1, 0}, .shift = 1});
    add({.in = {5, 6, 7}, .taps = {3, 3, 3}, .padding = {1, 1, 1}});
    add({.in = {6, 5, 7}, .taps = {2, 3, 3}, .stride = {2, 1, 2}, .padding = {1, 1, 0}});
    add({.in = {7, 8, 9}, .taps = {3, 2, 3}, .stride = {3, 2, 2}, .padding = {2, 0, 1}, .dilation = {2, 1, 3}});
    // dilations with and without a common divisor with the stride, which leaves phases without taps
    add({.in = {15, 14}, .taps = {3, 3}, .stride = {2, 3}, .padding = {3, 2}, .dilation = {2, 2}});
    add({.in = {15, 14}, .taps = {3, 2}, .stride = {4, 2}, .padding = {1, 2}, .dilation = {2, 3}});
    // an end that no window reads, strides beyond the window, padding at one side and beyond the window's reach
    add({.in = {12, 10}, .taps = {3, 3}, .stride = {4, 5}});
    add({.in = {9, 8}, .taps = {1, 1}, .stride = {2, 2}});
    add({.in = {9, 8}, .taps = {2, 3}, .padding = {0, 2}, .padding_end = {3, 0}});
    add({.in = {4, 4}, .taps = {2, 2}, .padding = {5, 3}, .padding_end = {0, 4}});
    add({.in = {4, 4}, .taps = {2, 2}, .stride = {3, 2}, .padding = {5, 3}, .padding_end = {1, 4}});
    // one pixel, the whole image, a single window with a stride of any size
    add({.batch = 3, .channels = 20, .filters = 24, .in = {9, 8}, .taps = {1, 1}});
    add({.batch = 1, .channels = 20, .filters = 24, .in = {9, 11}, .taps = {1, 1}, .shift = 3});
    add({.batch = 5, .channels = 6, .filters = 7, .in = {4, 3}, .taps = {4, 3}});
    add({.in = {3, 4}, .taps = {3, 3}, .stride = {70'000, 1}});
    add({.batch = 1, .channels = 100, .filters = 104, .in = {40, 42}, .taps = {1, 1}});
    add({.channels = 8, .filters = 12, .in = {9, 8}, .taps = {1, 1}, .stride = {2, 3}});
    add({.channels = 8, .filters = 12, .in = {9, 8}, .taps = {1, 1}, .stride = {2, 2}, .shift = 1});
    add({.channels = 40, .filters = 36, .in = {9, 8}, .taps = {1, 1}, .stride = {40, 2}});
    // groups, depthwise, depthwise with a multiplier, few channels
    add({.channels = 6, .filters = 4, .in = {9, 8}, .taps = {3, 3}, .padding = {1, 1}, .groups = 2});
    add({.channels = 36, .filters = 48, .in = {7, 6}, .taps = {3, 2}, .padding = {1, 1}, .groups = 3});
    add({.channels = 8, .filters = 8, .in = {11, 12}, .taps = {3, 3}, .padding = {1, 1}, .groups = 8});
    add({.channels = 8,
         .filters = 8,
         .in = {11, 12},
         .taps = {5, 3},
         .stride = {2, 2},
         .padding = {2, 1},
         .groups = 8});
    add({.channels = 4, .filters = 12, .in = {11, 12}, .taps = {3, 3}, .stride = {2, 1}, .groups = 4});
    add({.channels = 6, .filters = 6, .in = {4, 5, 6}, .taps = {3, 3, 3}, .padding = {1, 1, 1}, .groups = 6});
    add({.channels = 1, .filters = 9, .in = {20, 21}, .taps = {7, 7}, .stride = {2, 2}, .padding = {3, 3}});
    add({.channels = 3, .filters = 16, .in = {32, 30}, .taps = {7, 7}, .stride = {2, 2}, .padding = {3, 3}});
    add({.channels = 4, .filters = 12, .in = {8, 9}, .taps = {1, 1}, .groups = 4});
    // many channels, filters and columns: tiles, several pieces and slices
    add({.channels = 70, .filters = 72, .in = {9, 10}, .taps = {3, 3}, .padding = {1, 1}});
    add({.channels = 65, .filters = 130, .in = {8, 9}, .taps = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    add({.batch = 1, .channels = 2, .filters = 3, .in = {300, 410}, .taps = {3, 3}, .padding = {1, 1}});
    add({.batch = 9, .channels = 40, .filters = 20, .in = {48, 50}, .taps = {3, 3}, .padding = {1, 1}});
    add({.batch = 1100, .channels = 1, .filters = 5, .in = {3, 4}, .taps = {2, 2}});
    for (const int32_t dtype : {int32_t{TUFF_F16}, int32_t{TUFF_BF16}}) {
      add({.in = {13, 11}, .taps = {3, 3}, .stride = {2, 1}, .padding = {1, 1}, .dtype = dtype, .shift = 1});
      add({.channels = 32, .filters = 32, .in = {10, 9}, .taps = {3, 3}, .padding = {1, 1}, .dtype = dtype});
      add({.channels = 5, .filters = 5, .in = {7, 8}, .taps = {3, 3}, .groups = 5, .dtype = dtype});
      // sums over windows in place: whole pieces of channels, up to 32 taps, any stride and padding
      const auto windows = [&](uint64_t channels, uint64_t filters, Sizes in, Sizes taps, Sizes stride, Sizes before,
                               Sizes end) {
        add({.batch = 3,
             .channels = channels,
             .filters = filters,
             .in = std::move(in),
             .taps = std::move(taps),
             .stride = std::move(stride),
             .padding = std::move(before),
             .padding_end = std::move(end),
             .dtype = dtype});
      };
      windows(64, 64, {14, 13}, {3, 3}, {1, 1}, {1, 1}, {});
      windows(72, 40, {14, 13}, {3, 3}, {2, 2}, {1, 1}, {0, 2});
      windows(40, 136, {15, 9}, {4, 8}, {1, 2}, {3, 4}, {});
      windows(32, 32, {15, 9}, {4, 9}, {1, 1}, {3, 4}, {});
      windows(64, 72, {15, 16}, {1, 1}, {2, 2}, {}, {});
      windows(8, 64, {25, 26}, {3, 2}, {3, 1}, {0, 7}, {5, 0});
      windows(264, 32, {9, 8}, {2, 2}, {1, 1}, {1, 0}, {});
      windows(64, 32, {3, 64}, {3, 1}, {70'000, 1}, {}, {});
      add({.batch = 3, .channels = 16, .filters = 24, .in = {9, 8}, .taps = {1, 1}, .dtype = dtype});
      add({.in = {5, 6, 7}, .taps = {2, 3, 3}, .stride = {2, 2, 2}, .padding = {1, 1, 1}, .dtype = dtype});
    }
  }
  return all;
}

// Missing leading axes have one element.
std::array<uint64_t, 3> three(const Sizes& sizes) {
  std::array<uint64_t, 3> result = {1, 1, 1};
  std::copy(sizes.begin(), sizes.end(), result.end() - static_cast<ptrdiff_t>(sizes.size()));
  return result;
}

// Element (outer, inner, pixel) of a tensor.
uint64_t place(int32_t layout, uint64_t outer, uint64_t inner, uint64_t inners, uint64_t pixel, uint64_t pixels) {
  return layout == TUFF_LAYOUT_NHWC ? (outer * pixels + pixel) * inners + inner
                                    : (outer * inners + inner) * pixels + pixel;
}

// Calls body(input, weight, output) for the elements of each product of a convolution, and for sums of the bias
// body(none, none, output).
template <typename Body>
void for_each_product(const Case& s, const Body& body) {
  const auto in = three(s.in), taps = three(s.taps), out = three(s.out());
  const uint64_t channels = s.channels / s.groups, filters = s.filters / s.groups;
  const uint64_t pixels = Case::product(s.in), positions = Case::product(s.taps), places = Case::product(s.out());
  const uint32_t missing = 3 - s.spatial();
  // Where tap t of window o is along axis d, or a position outside.
  const auto at = [&](uint32_t d, uint64_t o, uint64_t t) {
    return d < missing ? 0 : o * s.stride_of(d - missing) + t * s.dilation_of(d - missing) - s.padding_of(d - missing);
  };
  for (uint64_t i = 0; i < places * positions; ++i) {
    const uint64_t o = i / positions, t = i % positions;
    const uint64_t z = at(0, o / out[2] / out[1], t / taps[2] / taps[1]),
                   y = at(1, o / out[2] % out[1], t / taps[2] % taps[1]), x = at(2, o % out[2], t % taps[2]);
    if (z >= in[0] || y >= in[1] || x >= in[2]) continue;
    const uint64_t pixel = (z * in[1] + y) * in[2] + x;
    for (uint64_t n = 0; n < s.batch; ++n) {
      for (uint64_t k = 0; k < s.filters; ++k) {
        for (uint64_t c = 0; c < channels; ++c) {
          body(place(s.layout, n, k / filters * channels + c, s.channels, pixel, pixels),
               place(s.layout, k, c, channels, t, positions), place(s.layout, n, k, s.filters, o, places));
        }
      }
    }
  }
}

tuff_conv_backward_desc desc_of(const Case& s) {
  tuff_conv_backward_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype, desc.layout = s.layout, desc.spatial = s.spatial();
  desc.in_shape[0] = desc.out_shape[0] = s.batch;
  desc.in_shape[1] = s.channels, desc.out_shape[1] = desc.filter_shape[0] = s.filters;
  desc.filter_shape[1] = s.channels / s.groups;
  const Sizes out = s.out();
  for (uint32_t d = 0; d < s.spatial(); ++d) {
    desc.in_shape[2 + d] = s.in[d], desc.filter_shape[2 + d] = s.taps[d], desc.out_shape[2 + d] = out[d];
    desc.stride[d] = s.stride_of(d), desc.padding[d] = s.padding_of(d), desc.dilation[d] = s.dilation_of(d);
    if (!s.padding_end.empty()) desc.padding_end[d] = s.padding_end[d];
  }
  desc.asymmetric = s.padding_end.empty() ? 0 : 1;
  desc.groups = s.groups;
  return desc;
}

// A sum of n products in f32, in any order, is wrong by at most gamma of n + 1 of the sum of the magnitudes.
struct Sums {
  explicit Sums(uint64_t count) : value(count), size(count), terms(count) {}
  void add(uint64_t at, double term) { value[at] += term, size[at] += std::fabs(term), terms[at] += 1; }
  Expected expected(int32_t dtype) const {
    Expected result{value, size};
    for (size_t i = 0; i < value.size(); ++i) result.bound[i] *= gamma(terms[i] + 1);
    add_storage(result, dtype);
    return result;
  }
  std::vector<double> value, size, terms;
};

class ConvBackward : public Table<Case> {
 protected:
  std::vector<float> values(uint64_t count, uint64_t seed) { return rounded(row().dtype, spreads(count, seed)); }
};

TEST_P(ConvBackward, Data) {
  const Case& s = row();
  const std::vector<float> filter = values(s.weights(), 1), slopes = values(s.outputs(), 2);
  const StoredTensor weights(context(), s.dtype, filter, s.shift), doutput(context(), s.dtype, slopes, s.shift),
      dinput(context(), s.dtype, s.inputs(), s.shift);
  tuff_conv_backward_desc desc = desc_of(s);
  desc.filter = weights, desc.doutput = doutput, desc.dinput = dinput;
  ASSERT_OK(tuff_conv_backward_data(context(), &desc));
  Sums sums(s.inputs());
  for_each_product(s, [&](uint64_t in, uint64_t weight, uint64_t out) {
    sums.add(in, static_cast<double>(filter[weight]) * static_cast<double>(slopes[out]));
  });
  expect_matches(dinput.read(), sums.expected(s.dtype));
  weights.expect_unchanged(filter);
  doutput.expect_unchanged(slopes);
}

TEST_P(ConvBackward, Filter) {
  const Case& s = row();
  const std::vector<float> x = values(s.inputs(), 1), slopes = values(s.outputs(), 2);
  const StoredTensor input(context(), s.dtype, x, s.shift), doutput(context(), s.dtype, slopes, s.shift),
      dfilter(context(), s.dtype, s.weights(), s.shift), dbias(context(), s.dtype, s.filters, s.shift);
  tuff_conv_backward_desc desc = desc_of(s);
  desc.input = input, desc.doutput = doutput, desc.dfilter = dfilter, desc.dbias = dbias;
  ASSERT_OK(tuff_conv_backward_filter(context(), &desc));
  Sums sums(s.weights()), biases(s.filters);
  for_each_product(s, [&](uint64_t in, uint64_t weight, uint64_t out) {
    sums.add(weight, static_cast<double>(x[in]) * static_cast<double>(slopes[out]));
  });
  const uint64_t places = Case::product(s.out());
  for (uint64_t i = 0; i < s.outputs(); ++i) {
    const uint64_t k = s.layout == TUFF_LAYOUT_NHWC ? i % s.filters : i / places % s.filters;
    biases.add(k, static_cast<double>(slopes[i]));
  }
  expect_matches(dfilter.read(), sums.expected(s.dtype));
  expect_matches(dbias.read(), biases.expected(s.dtype));
  input.expect_unchanged(x);
  doutput.expect_unchanged(slopes);
}
TUFF_TABLE(ConvBackward, Case, cases());

class ConvBackwardOnce : public OnBackend {
 protected:
  Case case_() const { return {.batch = 1, .channels = 2, .filters = 3, .in = {5, 4}, .taps = {3, 2}}; }
};

// Two calls give the same bits, and one of both gradients those of one call for each.
TEST_P(ConvBackwardOnce, GradientsAreTheSameApartAndAgain) {
  const Case s{.batch = 3, .channels = 10, .filters = 12, .in = {17, 16}, .taps = {3, 3}, .padding = {1, 1}};
  const Tensor input(context(), spreads(s.inputs(), 1)), doutput(context(), spreads(s.outputs(), 2));
  std::vector<float> filters[3], biases[3];
  for (int i = 0; i < 3; ++i) {
    const Tensor dfilter(context(), s.weights()), dbias(context(), s.filters);
    tuff_conv_backward_desc desc = desc_of(s);
    desc.input = input, desc.doutput = doutput, desc.dfilter = dfilter;
    if (i != 2) desc.dbias = dbias;
    ASSERT_OK(tuff_conv_backward_filter(context(), &desc));
    if (i == 2) {
      dbias.expect_poisoned();
      desc.dbias = dbias, desc.dfilter = 0, desc.input = 0;
      ASSERT_OK(tuff_conv_backward_filter(context(), &desc));
    }
    filters[i] = dfilter.read(), biases[i] = dbias.read();
  }
  for (int i = 1; i < 3; ++i) {
    expect_same_bits(filters[i], filters[0]);
    expect_same_bits(biases[i], biases[0]);
  }
}

// Elements that no window reads are zeros, whatever the gradient: nothing is multiplied by it.
TEST_P(ConvBackwardOnce, InfiniteGradientsReachOnlyTheirWindows) {
  const Tensor filter(context(), {1, 2}), doutput(context(), {INFINITY, 1}), dinput(context(), 7);
  const Case s{.batch = 1, .channels = 1, .filters = 1, .in = {7}, .taps = {2}, .stride = {4}};
  tuff_conv_backward_desc desc = desc_of(s);
  desc.filter = filter, desc.doutput = doutput, desc.dinput = dinput;
  ASSERT_OK(tuff_conv_backward_data(context(), &desc));
  expect_same_bits(dinput.read(), {INFINITY, INFINITY, 0, 0, 1, 2, 0});
}

TEST_P(ConvBackwardOnce, BadArguments) {
  const Case s = case_();
  const Tensor x(context(), s.inputs()), w(context(), s.weights()), y(context(), s.outputs()), b(context(), s.filters);
  const auto expect_bad = [&](tuff_status status, const char* word, auto spoil, bool data = true, bool filter = true) {
    tuff_conv_backward_desc desc = desc_of(s);
    desc.filter = w, desc.doutput = y, desc.dinput = x;
    spoil(desc);
    if (data) {
      EXPECT_FAILS(tuff_conv_backward_data(context(), &desc), status, "tuff_conv_backward_data", word);
    }
    desc = desc_of(s);
    desc.input = x, desc.doutput = y, desc.dfilter = w, desc.dbias = b;
    spoil(desc);
    if (filter) {
      EXPECT_FAILS(tuff_conv_backward_filter(context(), &desc), status, "tuff_conv_backward_filter", word);
    }
  };
  const auto of_data = [&](const char* word, auto spoil) { expect_bad(kArgument, word, spoil, true, false); };
  const auto of_filter = [&](const char* word, auto spoil) { expect_bad(kArgument, word, spoil, false, true); };
  expect_bad(kArgument, "dtype", [](auto& d) { d.dtype = 0; });
  expect_bad(TUFF_ERROR_UNSUPPORTED, "dtype", [](auto& d) { d.dtype = TUFF_F64; });
  expect_bad(kArgument, "layout", [](auto& d) { d.layout = 2; });
  expect_bad(kArgument, "spatial", [](auto& d) { d.spatial = 0; });
  expect_bad(kArgument, "spatial", [](auto& d) { d.spatial = 4; });
  expect_bad(kArgument, "reserved", [](auto& d) { d.reserved = 1; });
  expect_bad(kArgument, "asymmetric", [](auto& d) { d.asymmetric = 2; });
  expect_bad(kArgument, "padding_end", [](auto& d) { d.padding_end[1] = 1; });
  expect_bad(kArgument, "groups", [](auto& d) { d.groups = 2; });
  expect_bad(kArgument, "channels must agree", [](auto& d) { d.filter_shape[1] = 1; });
  expect_bad(kArgument, "out_shape", [](auto& d) { d.out_shape[2] = 4; });
  expect_bad(kArgument, "out_shape", [](auto& d) { d.stride[1] = 2; });
  expect_bad(kArgument, "filter_shape", [](auto& d) { d.filter_shape[3] = 0; });
  expect_bad(kArgument, "padding", [](auto& d) { d.padding[0] = ~uint64_t{0}; });
  expect_bad(kHandle, "doutput", [](auto& d) { d.doutput = 0; });
  expect_bad(kArgument, "doutput", [&](auto& d) { d.doutput = b; });
  expect_bad(kArgument, "doutput", [](auto& d) { d.in_shape[0] = d.out_shape[0] = 2; });
  // the operands of each
  expect_bad(
      kHandle, "filter", [](auto& d) { d.filter = 0; }, true, false);
  expect_bad(
      kHandle, "dinput", [](auto& d) { d.dinput = 0; }, true, false);
  expect_bad(
      kHandle, "input", [](auto& d) { d.input = 0; }, false, true);
  of_data("dinput", [&](auto& d) { d.dinput = y; });
  of_data("dinput", [&](auto& d) { d.dinput = b; });
  of_filter("neither dfilter nor dbias", [](auto& d) { d.dfilter = d.dbias = 0; });
  of_filter("dfilter", [&](auto& d) { d.dfilter = b; });
  of_filter("dfilter", [&](auto& d) { d.dfilter = x; });
  of_filter("dbias", [&](auto& d) { d.dbias = y; });
  of_filter("dbias", [&](auto& d) { d.dbias = d.dfilter; });
  x.expect_poisoned();
  w.expect_poisoned();
  y.expect_poisoned();
  b.expect_poisoned();
}
TUFF_ON_BACKENDS(ConvBackwardOnce);

}  // namespace
}  // namespace tuff_test::conv_backward_test
