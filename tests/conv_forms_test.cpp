// Convolutions with groups, layouts, epilogues, element types, more or fewer dimensions, and transposed ones.
#include <cmath>
#include <limits>
#include <thread>

#include "support/conv_problem.hpp"
#include "support/stored.hpp"

namespace tuff_test::conv_forms_test {
namespace {

constexpr int32_t kFirst = TUFF_LAYOUT_NCHW, kLast = TUFF_LAYOUT_NHWC;

// N, C, H, W and K of a 3 x 3 convolution with zero padding around the image.
ConvShape three_by_three(uint64_t batch, uint64_t channels, uint64_t height, uint64_t width, uint64_t filters) {
  return {.batch = batch,
          .channels = channels,
          .height = height,
          .width = width,
          .filters = filters,
          .rows = 3,
          .cols = 3,
          .padding = {1, 1}};
}

std::vector<ConvShape> two_dimensional() {
  std::vector<ConvShape> all;
  // Groups: few and many channels per group, one per group (depthwise), several filters per channel.
  for (const auto& [channels, filters, groups] :
       {std::array<uint64_t, 3>{8, 12, 2}, {32, 32, 8}, {36, 72, 2}, {8, 8, 8}, {6, 18, 6}, {5, 5, 5}}) {
    for (const int32_t layout : {kFirst, kLast}) {
      ConvShape s = three_by_three(2, channels, 9, 14, filters);
      s.groups = groups, s.layout = layout;
      all.push_back(s);
    }
  }
  // Groups of whole pieces of channels, in 16 bits: a kernel of its own on some devices.
  for (const int32_t dtype : {TUFF_F16, TUFF_BF16}) {
    for (const auto& [channels, filters, groups] : {std::array<uint64_t, 3>{64, 128, 2}, {120, 60, 3}, {256, 160, 4}}) {
      ConvShape s = three_by_three(2, channels, 9, 14, filters);
      s.groups = groups, s.layout = kLast, s.dtype = dtype;
      all.push_back(s);
      s.bias = true, s.activation = TUFF_ACTIVATION_RELU, s.stride = {2, 1}, s.residual = Residual::own;
      all.push_back(s);
      s.rows = s.cols = 1, s.padding = {0, 0}, s.residual = Residual::none;
      all.push_back(s);
    }
  }
  ConvShape depthwise = three_by_three(2, 12, 17, 13, 12);
  depthwise.stride = {2, 2}, depthwise.groups = 12;
  for (const int32_t layout : {kFirst, kLast}) {
    ConvShape s = depthwise;
    s.layout = layout;
    all.push_back(s);
    s.bias = true, s.activation = TUFF_ACTIVATION_RELU, s.residual = Residual::own;
    all.push_back(s);
    s.shift = 4;
    all.push_back(s);
    s = depthwise;
    s.layout = layout;
    s.rows = s.cols = 5, s.stride = {1, 1}, s.padding = {2, 0};
    all.push_back(s);
    s.rows = 4, s.cols = 3, s.stride = {3, 1}, s.dilation = {2, 3};
    all.push_back(s);
    s = depthwise;
    s.layout = layout;
    s.rows = 1, s.cols = 7, s.stride = {1, 1}, s.padding = {0, 0}, s.asymmetric = true, s.padding_end = {0, 6};
    all.push_back(s);
    // Channels last without groups: channels as vec4, one by one, and a window too large for a bit mask.
    const ConvShape plain{
        .batch = 2, .height = 11, .width = 10, .rows = 3, .cols = 2, .padding = {1, 1}, .layout = layout};
    s = plain;
    s.channels = 16, s.filters = 33, s.bias = true;
    all.push_back(s);
    s.bias = false, s.residual = Residual::own;  // a residual alone
    all.push_back(s);
    s.bias = true;
    s.residual = Residual::own, s.activation = TUFF_ACTIVATION_RELU, s.stride = {2, 1}, s.dilation = {1, 2};
    all.push_back(s);
    s.residual = Residual::in_place, s.asymmetric = true, s.padding_end = {3, 0};
    all.push_back(s);
    s = plain;
    s.channels = 3, s.filters = 9, s.asymmetric = true, s.padding = {0, 2}, s.padding_end = {2, 1};
    all.push_back(s);
    s = plain;
    s.channels = 4, s.filters = 5, s.height = 40, s.rows = 33;
    all.push_back(s);
    // One pixel, and the whole image: these are GEMMs.
    s = plain;
    s.channels = 20, s.filters = 24, s.rows = s.cols = 1, s.padding = {0, 0};
    all.push_back(s);
    s.bias = true, s.residual = Residual::own, s.activation = TUFF_ACTIVATION_RELU;
    all.push_back(s);
    s.groups = 4;
    all.push_back(s);
    s.batch = 1;
    all.push_back(s);
    s.stride = {2, 2};
    all.push_back(s);
    s = plain;
    s.channels = 6, s.filters = 10, s.rows = 11, s.cols = 10, s.padding = {0, 0}, s.bias = true;
    all.push_back(s);
    // Split-K, with the epilogue in the second pass.
    s = plain;
    s.batch = 1, s.channels = 300, s.filters = 3, s.height = s.width = 3, s.rows = s.cols = 3;
    s.bias = true, s.residual = Residual::in_place, s.activation = TUFF_ACTIVATION_RELU;
    all.push_back(s);
    // 16 bits
    for (const int32_t dtype : {TUFF_F16, TUFF_BF16}) {
      s = plain;
      s.dtype = dtype, s.channels = 8, s.filters = 12, s.bias = true, s.residual = Residual::own;
      all.push_back(s);
      s.channels = 5, s.bias = false, s.residual = Residual::none, s.shift = 2;
      all.push_back(s);
      s = depthwise;
      s.layout = layout, s.dtype = dtype, s.stride = {1, 1}, s.bias = true;
      all.push_back(s);
    }
    s = plain;
    s.batch = 1, s.dtype = TUFF_F16, s.channels = 300, s.filters = 3, s.height = s.width = 3, s.bias = true;
    all.push_back(s);
    // Few channels in 16 bits, where cooperative matrices treat a row of taps as one: padded to four and eight, strides
    // that keep windows aligned or do not, rows of one and of several steps, the last of them full or not.
    for (const auto& [channels, taps, stride] :
         {std::array<uint64_t, 3>{3, 7, 2}, {3, 3, 1}, {4, 8, 2}, {2, 11, 4}, {48, 3, 1}}) {
      s = {.batch = 3, .height = 15, .width = 17, .filters = 19, .padding = {1, 3}, .layout = layout};
      s.dtype = channels == 4 ? TUFF_BF16 : TUFF_F16, s.channels = channels, s.rows = s.cols = taps;
      s.stride = {stride, stride}, s.bias = channels == 3;
      all.push_back(s);
    }
    // One pixel with a stride: the other pixels are never moved.
    s = plain;
    s.dtype = TUFF_F16, s.channels = 20, s.filters = 24, s.rows = s.cols = 1, s.padding = {0, 1}, s.stride = {2, 3};
    all.push_back(s);
  }
  // Few pixels and long sums, where the CPU plug-in multiplies rows of what the filter reads by rows of filters: sums
  // that end within a vector, more filters than pixels and fewer, padding on each side, and pixels that a filter skips.
  for (const uint64_t filters : {70, 6}) {
    ConvShape s{.batch = 2, .channels = 203, .height = 7, .width = 9, .filters = filters};
    all.push_back(s);
    s.stride = {2, 3}, s.bias = true, s.residual = Residual::own, s.activation = TUFF_ACTIVATION_RELU;
    all.push_back(s);
    s.height = 23, s.width = 31, s.residual = Residual::in_place;  // 1 x 1, of every second or third of many pixels
    all.push_back(s);
    s = {.batch = 2, .channels = 37, .height = 6, .width = 7, .filters = filters, .rows = 3, .cols = 2};
    s.asymmetric = true, s.padding = {2, 0}, s.padding_end = {0, 1}, s.bias = true;
    all.push_back(s);
    s.dilation = {1, 3}, s.stride = {2, 1}, s.padding_end = {1, 5}, s.residual = Residual::in_place;
    all.push_back(s);
    s.dtype = TUFF_F16, s.residual = Residual::own, s.activation = TUFF_ACTIVATION_RELU;
    all.push_back(s);
  }
  return all;
}

std::vector<ConvShape> cases() {
  std::vector<ConvShape> all = two_dimensional();
  for (const int32_t layout : {kFirst, kLast}) {
    ConvShape line{.batch = 3,
                   .channels = 8,
                   .width = 50,
                   .filters = 10,
                   .cols = 5,
                   .stride = {1, 2},
                   .padding = {0, 2},
                   .kind = Conv::one,
                   .layout = layout};
    all.push_back(line);
    line.bias = true, line.groups = 2, line.dilation = {1, 3}, line.asymmetric = true, line.padding_end = {0, 9};
    all.push_back(line);

    ConvShape volume{.batch = 2,
                     .channels = 4,
                     .height = 8,
                     .width = 9,
                     .filters = 6,
                     .rows = 3,
                     .cols = 2,
                     .padding = {1, 0},
                     .kind = Conv::three,
                     .depth = 7,
                     .planes = 3,
                     .depth_padding = 1,
                     .layout = layout};
    all.push_back(volume);
    volume.depth_stride = 2, volume.stride = {1, 2}, volume.depth_dilation = 2, volume.groups = 2;
    volume.bias = true, volume.residual = Residual::own, volume.activation = TUFF_ACTIVATION_RELU;
    all.push_back(volume);
    // One plane, and one in the window, with outputs in the padding before and after it: none, all, the only one.
    for (const uint64_t stride : {1, 2, 3}) {
      for (const uint64_t groups : {1, 4}) {
        ConvShape plane = volume;
        plane.depth = plane.planes = plane.depth_dilation = 1, plane.depth_padding = 1, plane.depth_stride = stride;
        plane.groups = groups, plane.filters = 4 * (stride + groups), plane.residual = Residual::none;
        all.push_back(plane);
      }
    }
    volume.groups = 1, volume.channels = 3, volume.height = 20, volume.rows = 20, volume.planes = 6;
    volume.depth_dilation = 1, volume.width = 12, volume.cols = 10;  // a window too large for a bit mask
    all.push_back(volume);
    all.push_back({.batch = 2,
                   .channels = 5,
                   .height = 3,
                   .width = 4,
                   .filters = 7,
                   .kind = Conv::three,
                   .depth = 2,
                   .layout = layout,
                   .bias = true});

    const ConvShape back{.batch = 2,
                         .channels = 6,
                         .height = 7,
                         .width = 5,
                         .filters = 8,
                         .rows = 3,
                         .cols = 3,
                         .kind = Conv::transposed,
                         .layout = layout};
    ConvShape s = back;
    all.push_back(s);
    s.stride = {2, 2}, s.padding = {1, 1}, s.output_padding = {1, 1};
    all.push_back(s);
    s.bias = true, s.activation = TUFF_ACTIVATION_RELU, s.groups = 2;
    all.push_back(s);
    s.shift = 4, s.rows = 4, s.cols = 2, s.stride = {2, 3}, s.padding = {1, 0}, s.output_padding = {0, 2};
    all.push_back(s);
    // Dilations equal to the stride, which leave outputs that nothing contributes to; strides larger than the filter.
    s = back;
    s.stride = {2, 2}, s.dilation = {2, 3}, s.bias = true;
    all.push_back(s);
    s.stride = {4, 5}, s.dilation = {1, 1}, s.rows = 2, s.cols = 3, s.output_padding = {3, 1};
    all.push_back(s);
    s.dilation = {6, 2}, s.padding = {3, 2}, s.output_padding = {0, 0};
    all.push_back(s);
    // One group per channel, padding larger than the filter, long sums.
    s = back;
    s.filters = 6, s.groups = 6, s.rows = s.cols = 4, s.stride = {2, 2}, s.padding = {1, 1};
    all.push_back(s);
    s = back;
    s.stride = {3, 3}, s.padding = {5, 4};
    all.push_back(s);
    s = back;
    s.batch = 1, s.channels = 700, s.height = s.width = 2, s.filters = 3, s.stride = {2, 2}, s.bias = true;
    all.push_back(s);
    s = back;
    s.dtype = TUFF_F16, s.stride = {2, 2}, s.padding = {1, 0}, s.bias = true;
    all.push_back(s);
  }
  return all;
}

// Long rows with one channel for each filter, which have a kernel of their own on CPU devices: all numbers of taps
// beyond a multiple of eight, paddings longer than the filter, several images and filters, epilogues, and the last
// outputs alone in a workgroup.
std::vector<ConvShape> rows() {
  std::vector<ConvShape> all;
  for (uint64_t taps = 1; taps <= 17; ++taps) {
    ConvShape s{.width = 300 + 7 * taps, .cols = taps, .padding = {0, taps - 1}, .kind = Conv::one};
    all.push_back(s);
    s.asymmetric = true, s.padding = {0, taps / 2}, s.padding_end = {0, taps + 3}, s.layout = kLast;
    s.dtype = taps % 2 == 0 ? TUFF_F16 : TUFF_BF16;
    all.push_back(s);
  }
  ConvShape s{.batch = 3, .width = 1029, .filters = 3, .cols = 100, .padding = {0, 150}, .kind = Conv::one};
  for (const int32_t dtype : {TUFF_F32, TUFF_F16}) {
    s.dtype = dtype, s.residual = Residual::none, s.bias = false, s.shift = 0;
    all.push_back(s);
    s.bias = true, s.activation = TUFF_ACTIVATION_RELU;
    all.push_back(s);
    s.residual = Residual::own, s.shift = 4;
    all.push_back(s);
    s.residual = Residual::in_place;
    all.push_back(s);
  }
  s = {.batch = 2, .channels = 5, .width = 600, .filters = 10, .cols = 31, .padding = {0, 15}, .kind = Conv::one};
  s.groups = 5;
  all.push_back(s);
  s.layout = kLast;
  all.push_back(s);
  s = {.width = 128 * 5 + 1, .cols = 8, .padding = {0, 0}, .kind = Conv::one, .bias = true};
  s.width += 7;  // one output more than whole workgroups have
  all.push_back(s);
  s.width = 500, s.cols = 500, s.padding = {0, 499};  // a filter as long as the row
  all.push_back(s);
  s.kind = Conv::two, s.cols = 20, s.padding = {0, 3};  // an image of one row
  all.push_back(s);
  s.padding = {1, 3}, s.rows = 3;  // that reads padding above and below
  all.push_back(s);
  s.kind = Conv::one, s.rows = 1, s.padding = {0, 3}, s.dilation = {1, 2};  // and rows for other kernels
  all.push_back(s);
  s.dilation = {1, 1}, s.stride = {1, 2};
  all.push_back(s);
  return all;
}

// Activations that round, and random numbers.
std::vector<ConvShape> bound_cases() {
  std::vector<ConvShape> all;
  int32_t activation = TUFF_ACTIVATION_NONE;
  for (ConvShape s : cases()) {
    if (s.dtype == TUFF_BF16 || s.shift != 0 || s.stride != std::array<uint64_t, 2>{2, 2}) continue;
    s.bias = true;
    s.activation = activation;
    activation = (activation + 1) % 6;
    all.push_back(s);
  }
  for (const int32_t last :
       {TUFF_ACTIVATION_GELU, TUFF_ACTIVATION_GELU_TANH, TUFF_ACTIVATION_SILU, TUFF_ACTIVATION_RELU6}) {
    ConvShape s = three_by_three(2, 16, 9, 10, 12);
    s.bias = true, s.residual = Residual::own, s.activation = last;
    all.push_back(s);
  }
  return all;
}

using ConvForms = Table<ConvShape>;
TEST_P(ConvForms, Exact) { run_conv(context(), row(), Tier::exact); }
TUFF_TABLE(ConvForms, ConvShape, cases());

using ConvRows = Table<ConvShape>;
TEST_P(ConvRows, Exact) { run_conv(context(), row(), Tier::exact); }
TUFF_TABLE(ConvRows, ConvShape, rows());

using ConvRowsBound = Table<ConvShape>;
TEST_P(ConvRowsBound, Holds) { run_conv(context(), row(), Tier::bound); }
TUFF_TABLE(ConvRowsBound, ConvShape, rows());

using ConvFormsBound = Table<ConvShape>;
TEST_P(ConvFormsBound, Holds) { run_conv(context(), row(), Tier::bound); }
TUFF_TABLE(ConvFormsBound, ConvShape, bound_cases());

// Cases where Winograd's minimal filtering is permitted and applicable.
std::vector<ConvShape> winograd_cases() {
  std::vector<ConvShape> all;
  for (const int32_t layout : {kFirst, kLast}) {
    ConvShape plain = three_by_three(2, 24, 9, 14, 40);
    plain.layout = layout, plain.winograd = true;
    ConvShape s = plain;
    all.push_back(s);
    s.bias = true, s.residual = Residual::own, s.activation = TUFF_ACTIVATION_GELU;
    all.push_back(s);
    s.residual = Residual::in_place, s.activation = TUFF_ACTIVATION_RELU, s.channels = 17, s.filters = 19;
    all.push_back(s);
    s.shift = 4, s.asymmetric = true, s.padding = {2, 0}, s.padding_end = {0, 5};
    all.push_back(s);
    s = plain;
    s.batch = 1, s.height = s.width = 3, s.padding = {0, 0};  // a single output
    all.push_back(s);
    s.batch = 5, s.height = 16, s.width = 16, s.channels = 128, s.padding = {1, 1};
    all.push_back(s);
    for (const int32_t dtype : {TUFF_F16, TUFF_BF16}) {
      s = plain;
      s.dtype = dtype, s.bias = true;
      all.push_back(s);
    }
  }
  // More tiles than are processed at once.
  ConvShape large = three_by_three(1, 1, 3'000, 2'000, 1);
  large.winograd = true;
  all.push_back(large);
  return all;
}

using ConvWinogradBound = Table<ConvShape>;
TEST_P(ConvWinogradBound, Holds) { run_conv(context(), row(), Tier::bound); }
TUFF_TABLE(ConvWinogradBound, ConvShape, winograd_cases());

// Cases that Winograd does not cover are computed in the ordinary way.
std::vector<ConvShape> not_winograd_cases() {
  std::vector<ConvShape> all;
  ConvShape plain = three_by_three(1, 32, 9, 14, 32);
  plain.winograd = true;
  ConvShape s = plain;
  s.stride = {2, 1};
  all.push_back(s);
  s = plain;
  s.dilation = {1, 2};
  all.push_back(s);
  s = plain;
  s.groups = 2;
  all.push_back(s);
  s = plain;
  s.rows = 5;
  all.push_back(s);
  return all;
}

using ConvWinogradExact = Table<ConvShape>;
TEST_P(ConvWinogradExact, Elsewhere) { run_conv(context(), row(), Tier::exact); }
TUFF_TABLE(ConvWinogradExact, ConvShape, not_winograd_cases());

class ConvFormsOnce : public OnBackend {};

// More than 65,535 workgroups, due to groups and due to channels.
TEST_P(ConvFormsOnce, ManyGroups) {
  if (reduced()) GTEST_SKIP() << "large";
  run_conv(context(),
           {.channels = 140'000, .width = 2, .filters = 70'000, .cols = 2, .padding = {0, 1}, .groups = 70'000},
           Tier::exact);
  run_conv(context(), {.channels = 600'000, .filters = 600'000, .cols = 3, .padding = {0, 1}, .groups = 600'000},
           Tier::exact);
}

// What a backend keeps of a convolution's sizes serves every thread: oneDNN's own memory for a primitive belongs to the
// thread that made it.
TEST_P(ConvFormsOnce, TheSameSizesFromAnotherThread) {
  std::vector<ConvShape> shapes;
  for (const uint64_t channels : {2, 3, 16}) {
    for (const int32_t layout : {TUFF_LAYOUT_NCHW, TUFF_LAYOUT_NHWC}) {
      ConvShape s{.batch = 2, .channels = channels, .height = 9, .width = 11, .filters = 2, .rows = 3, .cols = 3};
      s.layout = layout;
      shapes.push_back(s);
      s.groups = channels % 2 + 1, s.channels = s.filters = 2 * s.groups, s.rows = 2, s.padding = {1, 2};
      shapes.push_back(s);
      s.dilation = {2, 3};
      shapes.push_back(s);
      s.kind = Conv::three, s.planes = 2, s.depth = 4;
      shapes.push_back(s);
      s.kind = Conv::transposed, s.planes = s.depth = 1;
      shapes.push_back(s);
    }
  }
  const auto all = [&] {
    for (const ConvShape& shape : shapes) run_conv(context(), shape, Tier::exact);
  };
  all();
  std::thread other(all);
  other.join();
}

TEST_P(ConvFormsOnce, NothingToSum) {
  // Without channels or pixels the result is the bias alone.
  const std::vector<float> b = integers(4, 3, 1);
  const Tensor bias(context(), b), output(context(), 2 * 4 * 9);
  tuff_conv2d_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  desc.output = output, desc.bias = bias;
  const auto set = [](uint64_t(&to)[4], std::array<uint64_t, 4> from) { std::ranges::copy(from, to); };
  set(desc.in_shape, {2, 0, 3, 3}), set(desc.filter_shape, {4, 0, 1, 1}), set(desc.out_shape, {2, 4, 3, 3});
  ASSERT_OK(tuff_conv2d_ex(context(), &desc));
  for (uint64_t i = 0; i < 2 * 4 * 9; ++i) EXPECT_EQ(output.read()[i], b[i / 9 % 4]);
  // An empty image within padding.
  const Tensor filter(context(), integers(16, 3, 2)), third(context(), 2 * 4 * 12);
  set(desc.in_shape, {2, 4, 0, 3}), set(desc.filter_shape, {4, 1, 2, 2}), set(desc.out_shape, {2, 4, 3, 4});
  desc.padding[0] = 2, desc.padding[1] = 1, desc.groups = 4;
  desc.filter = filter, desc.output = third;
  ASSERT_OK(tuff_conv2d_ex(context(), &desc));
  for (uint64_t i = 0; i < 2 * 4 * 12; ++i) EXPECT_EQ(third.read()[i], b[i / 12 % 4]);
  // No outputs.
  set(desc.in_shape, {0, 4, 2, 3}), set(desc.out_shape, {0, 4, 5, 4});
  desc.output = 0;
  EXPECT_OK(tuff_conv2d_ex(context(), &desc));
  tuff_conv_transpose2d_desc back{};
  back.struct_size = sizeof back;
  back.dtype = TUFF_F32;
  set(back.in_shape, {2, 3, 0, 4}), set(back.filter_shape, {3, 5, 2, 2}), set(back.out_shape, {2, 5, 0, 5});
  EXPECT_OK(tuff_conv_transpose2d_ex(context(), &back));
}

// An infinity beside a window does not enter its sum, even where rows of taps are padded with the elements after them,
// nor where sums with infinities are computed in another way.
TEST_P(ConvFormsOnce, InfinityStaysInItsWindows) {
  struct Case {
    int32_t dtype;
    uint64_t batch, channels, filters, taps, stride;
  };
  constexpr Case kCases[] = {{TUFF_F16, 2, 3, 64, 7, 2}, {TUFF_F32, 8, 36, 96, 5, 1}};
  constexpr uint64_t kSize = 40;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr uint64_t kColumns[] = {0, 21, kSize - 1};  // row x / 2 of image 1
  for (uint32_t i = 0; i < 2 * std::size(kCases); ++i) {
    const auto& [dtype, kBatch, kChannels, kFilters, kTaps, kStride] = kCases[i / 2];
    const int32_t layout = i % 2 == 0 ? kFirst : kLast;
    const uint64_t kBefore = kTaps / 2, kOut = kSize / kStride;
    const auto at = [&](uint64_t n, uint64_t c, uint64_t y, uint64_t x, uint64_t channels, uint64_t size) {
      return layout == kFirst ? ((n * channels + c) * size + y) * size + x : ((n * size + y) * size + x) * channels + c;
    };
    std::vector<float> in(kBatch * kChannels * kSize * kSize, 0);
    for (const uint64_t x : kColumns) in[at(1, 1, x / 2, x, kChannels, kSize)] = kInfinity;
    const StoredTensor input(context(), dtype, in), output(context(), dtype, kBatch * kFilters * kOut * kOut);
    const StoredTensor filter(context(), dtype, std::vector<float>(kFilters * kChannels * kTaps * kTaps, 1));
    tuff_conv2d_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = dtype, desc.layout = layout;
    desc.input = input, desc.filter = filter, desc.output = output;
    const auto set = [](auto& to, std::initializer_list<uint64_t> from) { std::ranges::copy(from, to); };
    set(desc.in_shape, {kBatch, kChannels, kSize, kSize}), set(desc.filter_shape, {kFilters, kChannels, kTaps, kTaps});
    set(desc.out_shape, {kBatch, kFilters, kOut, kOut}), set(desc.stride, {kStride, kStride});
    set(desc.padding, {kBefore, kBefore});
    ASSERT_OK(tuff_conv2d_ex(context(), &desc));
    const std::vector<float> out = output.read();
    uint64_t wrong = 0;
    for (uint64_t n = 0; n < kBatch; ++n) {
      for (uint64_t y = 0; y < kOut; ++y) {
        for (uint64_t x = 0; x < kOut; ++x) {
          bool sees = false;
          for (const uint64_t column : kColumns) {
            const uint64_t row_tap = column / 2 + kBefore - kStride * y, tap = column + kBefore - kStride * x;
            sees = sees || (n == 1 && row_tap < kTaps && tap < kTaps);
          }
          for (uint64_t k = 0; k < kFilters; ++k)
            wrong += out[at(n, k, y, x, kFilters, kOut)] != (sees ? kInfinity : 0);
        }
      }
    }
    EXPECT_EQ(wrong, 0u) << "layout " << layout;
  }
}

TEST_P(ConvFormsOnce, SupportsSaysWhichTypes) {
  for (const char* name : {"conv1d", "conv2d.f16", "conv3d.bf16", "conv_transpose2d.f32", "conv_transpose2d"}) {
    int32_t yes = 0;
    EXPECT_OK(tuff_supports(context(), name, &yes));
    EXPECT_EQ(yes, 1) << name;
  }
  int32_t yes = 1;
  EXPECT_OK(tuff_supports(context(), "conv2d.f64", &yes));
  EXPECT_EQ(yes, 0);
}

TEST_P(ConvFormsOnce, BadArguments) {
  constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kHandle = TUFF_ERROR_INVALID_HANDLE;
  const Tensor x(context(), 200), w(context(), 200), y(context(), 200), z(context(), 200), b(context(), 8);
  const auto copy = [](auto& to, std::initializer_list<uint64_t> from) { std::ranges::copy(from, to); };
  tuff_conv2d_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32;
  good.input = x, good.filter = w, good.output = y;
  copy(good.in_shape, {1, 4, 5, 5}), copy(good.filter_shape, {6, 2, 3, 3}), copy(good.out_shape, {1, 6, 3, 3});
  good.groups = 2;
  const auto expect_bad = [&](tuff_status status, const char* word, auto spoil) {
    tuff_conv2d_desc desc = good;
    spoil(desc);
    EXPECT_FAILS(tuff_conv2d_ex(context(), &desc), status, "tuff_conv2d_ex", word);
  };
  expect_bad(kArgument, "groups", [](auto& d) { d.groups = 3; });
  expect_bad(kArgument, "groups", [](auto& d) { d.filter_shape[0] = d.out_shape[1] = 5; });
  expect_bad(kArgument, "filter_shape", [](auto& d) { d.groups = 0; });
  expect_bad(kArgument, "filter_shape", [](auto& d) { d.filter_shape[1] = 4; });
  expect_bad(kArgument, "layout", [](auto& d) { d.layout = 2; });
  expect_bad(kArgument, "activation", [](auto& d) { d.activation = TUFF_ACTIVATION_RELU6 + 1; });
  expect_bad(kArgument, "activation", [](auto& d) { d.activation = -1; });
  expect_bad(kArgument, "asymmetric", [](auto& d) { d.asymmetric = 2; });
  expect_bad(kArgument, "padding_end", [](auto& d) { d.padding_end[1] = 1; });
  expect_bad(kArgument, "out_shape", [](auto& d) { d.asymmetric = 1, d.padding_end[1] = 1; });
  expect_bad(kArgument, "padding", [](auto& d) { d.asymmetric = 1, d.padding[1] = d.padding_end[1] = ~uint64_t{0}; });
  expect_bad(kArgument, "precision", [](auto& d) { d.precision = TUFF_PRECISION_ALLOW_F16; });
  expect_bad(kArgument, "precision", [](auto& d) { d.precision = -1; });
  expect_bad(kArgument, "dtype", [](auto& d) { d.dtype = 0; });
  expect_bad(TUFF_ERROR_UNSUPPORTED, "dtype", [](auto& d) { d.dtype = TUFF_I32; });
  expect_bad(kHandle, "bias", [](auto& d) { d.bias = 12'345; });
  expect_bad(kHandle, "residual", [](auto& d) { d.residual = 12'345; });
  expect_bad(kArgument, "bias", [&](auto& d) { d.bias = y; });
  expect_bad(kArgument, "residual", [&](auto& d) { d.residual = b; });
  tuff_buffer late = 0;
  ASSERT_OK(tuff_view(y, 4, 4 * 100, &late));
  expect_bad(kArgument, "residual", [&](auto& d) { d.residual = late; });
  EXPECT_OK(tuff_free(late));

  tuff_conv_transpose2d_desc back{};
  back.struct_size = sizeof back;
  back.dtype = TUFF_F32;
  back.input = x, back.filter = w, back.output = y;
  copy(back.in_shape, {1, 4, 3, 3}), copy(back.filter_shape, {4, 3, 2, 2}), copy(back.out_shape, {1, 3, 6, 6});
  back.stride[0] = back.stride[1] = 2;
  const auto expect_bad_back = [&](tuff_status status, const char* word, auto spoil) {
    tuff_conv_transpose2d_desc desc = back;
    spoil(desc);
    EXPECT_FAILS(tuff_conv_transpose2d_ex(context(), &desc), status, "tuff_conv_transpose2d_ex", word);
  };
  expect_bad_back(kArgument, "out_shape", [](auto& d) { d.out_shape[2] = 7; });
  expect_bad_back(kArgument, "out_shape", [](auto& d) { d.groups = 2; });
  expect_bad_back(kArgument, "output_padding", [](auto& d) { d.output_padding[0] = 2, d.out_shape[2] = 8; });
  expect_bad_back(kArgument, "padding", [](auto& d) { d.padding[1] = 4; });
  expect_bad_back(kArgument, "filter_shape", [](auto& d) { d.filter_shape[0] = 3; });
  expect_bad_back(kArgument, "filter_shape", [](auto& d) { d.filter_shape[2] = 0; });
  expect_bad_back(kArgument, "in_shape", [](auto& d) { d.in_shape[2] = uint64_t{1} << 62, d.stride[0] = 3; });
  expect_bad_back(kHandle, "bias", [](auto& d) { d.bias = 12'345; });
  expect_bad_back(kArgument, "input", [](auto& d) { d.input = d.output; });
  expect_bad_back(kArgument, "reserved", [](auto& d) { d.reserved = -1; });

  const uint64_t in[3] = {1, 2, 9}, filter[3] = {3, 2, 3}, out[3] = {1, 3, 7}, wrong[3] = {1, 3, 6};
  EXPECT_FAILS(tuff_conv1d(context(), TUFF_F32, x, in, w, filter, y, wrong, 1, 0), kArgument, "tuff_conv1d",
               "out_shape");
  EXPECT_FAILS(tuff_conv1d(context(), TUFF_F32, x, in, w, filter, y, out, 0, 0), kArgument, "tuff_conv1d", "stride");
  EXPECT_FAILS(tuff_conv1d(context(), TUFF_F32, x, nullptr, w, filter, y, out, 1, 0), kArgument, "tuff_conv1d",
               "in_shape");
  const uint64_t ones[3] = {1, 1, 1};
  EXPECT_FAILS(tuff_conv3d(context(), TUFF_F32, x, nullptr, w, nullptr, y, nullptr, ones, ones), kArgument,
               "tuff_conv3d", "in_shape");
  x.expect_poisoned();
  y.expect_poisoned();
  z.expect_poisoned();
}
TUFF_ON_BACKENDS(ConvFormsOnce);

}  // namespace
}  // namespace tuff_test::conv_forms_test
