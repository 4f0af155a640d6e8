// Convolutions whose two (or three) axes differ in everything: filter sizes, strides, dilations, and padding before and
// after. Integers, compared bit for bit. The compiled variants vary little here (layouts, and the windows of depthwise
// convolutions); their parameters vary much.
#include "support/conv_problem.hpp"

namespace tuff_test::conv_sweep_test {
namespace {

using Pair = std::array<uint64_t, 2>;

constexpr uint64_t kTaps[] = {1, 2, 3, 5, 7}, kStrides[] = {1, 2, 3};
struct Around {
  Pair dilation, padding, padding_end;
};
constexpr Around kArounds[] = {
    {{1, 1}, {0, 0}, {0, 0}}, {{1, 1}, {1, 3}, {2, 0}}, {{2, 1}, {0, 2}, {1, 1}}, {{1, 3}, {3, 0}, {0, 2}}};

class ConvFormsSweep : public OnBackend {
 protected:
  // All windows and strides, each with some of the dilations and paddings: with all of them for the smallest sizes.
  template <typename Make>
  void sweep(uint64_t all_up_to, const Make& make) {
    uint64_t turn = 0;
    for (const uint64_t rows : kTaps) {
      for (const uint64_t cols : kTaps) {
        for (const uint64_t down : kStrides) {
          for (const uint64_t across : kStrides) {
            ++turn;
            for (size_t i = 0; i < std::size(kArounds); ++i) {
              if (rows * cols > all_up_to && (turn + i) % std::size(kArounds) != 0) continue;
              const Around& around = kArounds[i];
              ConvShape shape{.rows = rows,
                              .cols = cols,
                              .stride = {down, across},
                              .padding = around.padding,
                              .dilation = around.dilation,
                              .asymmetric = around.padding != around.padding_end,
                              .padding_end = around.padding_end};
              // Several outputs along either axis, a different number along each.
              const auto least = [&](int d, uint64_t taps) {
                const uint64_t span = around.dilation[d] * (taps - 1) + 1,
                               padded = around.padding[d] + around.padding_end[d];
                return span > padded ? span - padded : 1;
              };
              shape.height = least(0, rows) + 2 * down + 1;
              shape.width = least(1, cols) + 5 * across;
              make(shape);
              SCOPED_TRACE(shape.name());
              run_conv(context(), shape, Tier::exact);
              if (HasFailure()) return;
            }
          }
        }
      }
    }
  }
};

// A filter of one row used to take the stride along rows for the one across them.
TEST_P(ConvFormsSweep, DepthwiseStridesThatDiffer) {
  sweep(7, [](ConvShape& s) { s.channels = s.filters = s.groups = 3; });
  sweep(7, [](ConvShape& s) { s.channels = s.filters = s.groups = 4, s.layout = TUFF_LAYOUT_NHWC; });
}

TEST_P(ConvFormsSweep, DepthwiseOfSeveralFiltersForAChannel) {
  sweep(1, [](ConvShape& s) { s.channels = s.groups = 2, s.filters = 6; });
}

TEST_P(ConvFormsSweep, Grouped) {
  sweep(3, [](ConvShape& s) { s.batch = 2, s.channels = 4, s.filters = 6, s.groups = 2; });
}

TEST_P(ConvFormsSweep, ChannelsLast) {
  sweep(3, [](ConvShape& s) { s.channels = 3, s.filters = 2, s.layout = TUFF_LAYOUT_NHWC; });
}

TEST_P(ConvFormsSweep, Transposed) {
  sweep(3, [](ConvShape& s) {
    s.kind = Conv::transposed;
    s.asymmetric = false;
    s.channels = 2, s.filters = 3;
    s.output_padding = {s.stride[0] - 1, s.stride[1] / 2};
    s.height = 3, s.width = 5;
    for (int d = 0; d < 2; ++d) {
      const uint64_t taps = d == 0 ? s.rows : s.cols, span = s.dilation[d] * (taps - 1) + 1;
      s.padding[d] = std::min(s.padding[d], span / 2);
    }
  });
}

TEST_P(ConvFormsSweep, OneDimension) {
  for (const bool depthwise : {false, true}) {
    sweep(1, [depthwise](ConvShape& s) {
      s.kind = Conv::one;
      s.height = s.rows = s.stride[0] = s.dilation[0] = 1;
      s.padding[0] = s.padding_end[0] = 0;
      s.asymmetric = s.padding != s.padding_end;
      s.channels = s.filters = 3;
      s.groups = depthwise ? 3 : 1;
    });
  }
}

// Each pair of the three axes differs in turn.
TEST_P(ConvFormsSweep, ThreeDimensions) {
  uint64_t turn = 0;
  for (const int32_t layout : {TUFF_LAYOUT_NCHW, TUFF_LAYOUT_NHWC}) {
    for (const uint64_t planes : {1, 2, 3}) {
      for (const uint64_t stride : kStrides) {
        sweep(0, [&](ConvShape& s) {
          s.kind = Conv::three;
          s.channels = 2, s.filters = 2, s.layout = layout;
          s.planes = planes, s.depth_stride = stride, s.depth_dilation = 1 + turn % 2, s.depth_padding = turn % 3;
          s.depth = s.depth_dilation * (planes - 1) + 1 + stride;
          ++turn;
        });
        if (HasFailure()) return;
      }
    }
  }
}

// A padding that needs more than 32 bits, with a stride that no output uses, must not be taken for a smaller one.
TEST_P(ConvFormsSweep, DepthwisePaddingBeyond32Bits) {
  const Tensor input(context(), {5, 6, 7, 8}), filter(context(), {1, 1}), output(context(), 2);
  tuff_conv2d_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  desc.input = input, desc.filter = filter, desc.output = output;
  const uint64_t in[4] = {1, 2, 1, 1}, taps[4] = {2, 1, 1, 1}, out[4] = {1, 2, 1, 1};
  std::ranges::copy(in, desc.in_shape), std::ranges::copy(taps, desc.filter_shape),
      std::ranges::copy(out, desc.out_shape);
  desc.groups = 2;
  desc.padding[1] = uint64_t{1} << 32, desc.stride[1] = uint64_t{1} << 40;
  desc.asymmetric = 1;
  const tuff_status status = tuff_conv2d_ex(context(), &desc);
  if (vulkan()) {
    EXPECT_EQ(status, TUFF_ERROR_UNSUPPORTED) << last_error();
    output.expect_poisoned();
  } else {
    EXPECT_OK(status);
    expect_same_bits(output.read(), {0, 0});
  }
}
TUFF_ON_BACKENDS(ConvFormsSweep);

}  // namespace
}  // namespace tuff_test::conv_sweep_test
