// A convolution with its tensors, solved in f64.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "support/gemm_problem.hpp"

namespace tuff_test {

struct ConvShape {
  uint64_t batch = 1, channels = 1, height = 1, width = 1;  // N, C, H, W
  uint64_t filters = 1, rows = 1, cols = 1;                 // K, R, S
  std::array<uint64_t, 2> stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};
  uint64_t shift = 0;

  uint64_t extent(int direction) const;  // P for 0, Q for 1
  std::array<uint64_t, 4> in_shape() const { return {batch, channels, height, width}; }
  std::array<uint64_t, 4> filter_shape() const { return {filters, channels, rows, cols}; }
  std::array<uint64_t, 4> out_shape() const { return {batch, filters, extent(0), extent(1)}; }
  std::string name() const;
  double work() const;
  double largest_operand() const;  // elements
};

struct ConvProblem {
  ConvProblem(const ConvShape& shape, Tier tier);

  ConvShape shape;
  std::vector<float> input, filter;
  Expected expected;
};

// tuff_conv2d, or its descriptor's form where taps are apart.
tuff_status call_conv2d(tuff_stream stream, const ConvShape& shape, tuff_buffer input, tuff_buffer filter,
                        tuff_buffer output);

void run_conv2d(tuff_context context, const ConvShape& shape, Tier tier);

}  // namespace tuff_test
