#include "support/conv_problem.hpp"

namespace tuff_test::conv2d_test {
namespace {

std::vector<ConvShape> cases() {
  return {
      {},
      {.batch = 0, .channels = 3, .height = 5, .width = 5, .filters = 2, .rows = 3, .cols = 3},
      {.batch = 2, .channels = 3, .height = 5, .width = 5, .filters = 0, .rows = 3, .cols = 3},
      // one pixel, one tap, one channel
      {.batch = 1, .channels = 1, .height = 5, .width = 7, .filters = 1, .rows = 1, .cols = 1},
      {.batch = 1, .channels = 1, .height = 3, .width = 3, .filters = 1, .rows = 3, .cols = 3},
      {.batch = 2, .channels = 3, .height = 4, .width = 5, .filters = 7, .rows = 4, .cols = 5, .shift = 4},
      {.batch = 1, .channels = 64, .height = 1, .width = 1, .filters = 33, .rows = 1, .cols = 1},
      // the usual 3x3, 1x1, 5x5, 7x7
      {.batch = 1, .channels = 3, .height = 16, .width = 16, .filters = 8, .rows = 3, .cols = 3, .padding = {1, 1}},
      {.batch = 2, .channels = 16, .height = 14, .width = 14, .filters = 32, .rows = 3, .cols = 3, .padding = {1, 1}},
      {.batch = 3, .channels = 17, .height = 13, .width = 11, .filters = 19, .rows = 3, .cols = 3, .shift = 4},
      {.batch = 2, .channels = 32, .height = 15, .width = 17, .filters = 64, .rows = 1, .cols = 1},
      {.batch = 1, .channels = 5, .height = 31, .width = 29, .filters = 6, .rows = 5, .cols = 5, .padding = {2, 2}},
      {.batch = 1,
       .channels = 3,
       .height = 56,
       .width = 56,
       .filters = 16,
       .rows = 7,
       .cols = 7,
       .stride = {2, 2},
       .padding = {3, 3}},
      // rectangles, and strides, paddings and dilations that differ between the axes
      {.batch = 2, .channels = 3, .height = 10, .width = 21, .filters = 4, .rows = 1, .cols = 5, .stride = {1, 2}},
      {.batch = 2,
       .channels = 3,
       .height = 21,
       .width = 10,
       .filters = 4,
       .rows = 5,
       .cols = 1,
       .stride = {3, 1},
       .padding = {2, 0}},
      {.batch = 1,
       .channels = 4,
       .height = 12,
       .width = 12,
       .filters = 5,
       .rows = 3,
       .cols = 2,
       .stride = {2, 3},
       .padding = {1, 2},
       .shift = 8},
      {.batch = 1,
       .channels = 4,
       .height = 17,
       .width = 19,
       .filters = 5,
       .rows = 3,
       .cols = 3,
       .padding = {2, 2},
       .dilation = {2, 2}},
      {.batch = 2,
       .channels = 2,
       .height = 20,
       .width = 15,
       .filters = 3,
       .rows = 3,
       .cols = 4,
       .stride = {2, 1},
       .padding = {1, 3},
       .dilation = {3, 2},
       .shift = 4},
      // a stride that leaves pixels at the end unused, a stride larger than the filter, padding larger than the filter
      {.batch = 1, .channels = 2, .height = 8, .width = 8, .filters = 3, .rows = 3, .cols = 3, .stride = {2, 2}},
      {.batch = 1, .channels = 2, .height = 23, .width = 23, .filters = 3, .rows = 2, .cols = 2, .stride = {5, 7}},
      {.batch = 1, .channels = 2, .height = 3, .width = 3, .filters = 3, .rows = 2, .cols = 2, .padding = {4, 5}},
      // long sums, many filters, one wide row
      {.batch = 1, .channels = 512, .height = 6, .width = 6, .filters = 10, .rows = 3, .cols = 3, .padding = {1, 1}},
      {.batch = 1, .channels = 8, .height = 7, .width = 7, .filters = 300, .rows = 3, .cols = 3},
      {.batch = 1, .channels = 1, .height = 1, .width = 4099, .filters = 3, .rows = 1, .cols = 9, .padding = {0, 4}},
      // large
      {.batch = 2, .channels = 64, .height = 28, .width = 28, .filters = 64, .rows = 3, .cols = 3, .padding = {1, 1}},
      {.batch = 1,
       .channels = 96,
       .height = 27,
       .width = 27,
       .filters = 130,
       .rows = 5,
       .cols = 5,
       .padding = {2, 2},
       .shift = 4},
      // more than 65,535 workgroups along any dimension
      {.batch = 70'000, .channels = 2, .height = 1, .width = 2, .filters = 3, .rows = 1, .cols = 1},
      {.batch = 1, .channels = 2, .height = 1, .width = 1, .filters = 140'000, .rows = 1, .cols = 1, .shift = 4},
      {.batch = 1, .channels = 1, .height = 3000, .width = 3000, .filters = 1, .rows = 1, .cols = 1},
      // sums longer than the loops of Mesa 22.3's CPU driver: 65,535 iterations of four taps
      {.batch = 1, .channels = 300'001, .height = 2, .width = 2, .filters = 5, .rows = 1, .cols = 1},
      {.batch = 1, .channels = 30'011, .height = 3, .width = 4, .filters = 3, .rows = 3, .cols = 3, .padding = {1, 1}},
      // an input of 160 MiB
      {.batch = 1, .channels = 40, .height = 1024, .width = 1024, .filters = 1, .rows = 1, .cols = 1},
      {.batch = 5, .channels = 8, .height = 1025, .width = 1024, .filters = 2, .rows = 3, .cols = 3, .stride = {4, 4}},
  };
}

using Conv2d = Table<ConvShape>;
TEST_P(Conv2d, Exact) { run_conv(context(), row(), Tier::exact); }
TUFF_TABLE(Conv2d, ConvShape, cases());

using Conv2dBound = Table<ConvShape>;
TEST_P(Conv2dBound, Holds) { run_conv(context(), row(), Tier::bound); }
TUFF_TABLE(Conv2dBound, ConvShape, without_large_operands(cases()));

class Conv2dSweep : public OnBackend {};

TEST_P(Conv2dSweep, SmallFiltersStridesPaddings) {
  for (uint64_t taps : {1, 2, 3}) {
    for (uint64_t stride : {1, 2, 3}) {
      for (uint64_t padding : {0, 1, 2}) {
        for (uint64_t size : {3, 8, 9}) {
          const ConvShape shape{.batch = 2,
                                .channels = 3,
                                .height = size,
                                .width = size + 1,
                                .filters = 5,
                                .rows = taps,
                                .cols = 4 - taps,
                                .stride = {stride, 4 - stride},
                                .padding = {padding, 2 - padding},
                                .shift = 4 * (size % 4)};
          SCOPED_TRACE(shape.name());
          run_conv(context(), shape, Tier::exact);
          if (HasFailure()) return;
        }
      }
    }
  }
}
TUFF_ON_BACKENDS(Conv2dSweep);

}  // namespace
}  // namespace tuff_test::conv2d_test
