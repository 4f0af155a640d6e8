// A convolution with its tensors, solved in f64.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "support/gemm_problem.hpp"
#include "support/typed_gemm.hpp"

namespace tuff_test {

enum class Conv { one, two, three, transposed };  // tuff_conv1d, …, tuff_conv_transpose2d

struct ConvShape {
  uint64_t batch = 1, channels = 1, height = 1, width = 1;  // N, C, H, W
  uint64_t filters = 1, rows = 1, cols = 1;                 // K, R, S
  std::array<uint64_t, 2> stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};
  uint64_t shift = 0;  // bytes
  Conv kind = Conv::two;
  uint64_t groups = 1;
  bool asymmetric = false;
  std::array<uint64_t, 2> padding_end = {0, 0};     // if asymmetric
  std::array<uint64_t, 2> output_padding = {0, 0};  // for the transposed convolution
  // Depth D, filter planes T, and their parameters.
  uint64_t depth = 1, planes = 1, depth_stride = 1, depth_padding = 0, depth_dilation = 1;
  int32_t layout = TUFF_LAYOUT_NCHW;
  int32_t dtype = TUFF_F32;
  bool bias = false;
  Residual residual = Residual::none;
  int32_t activation = TUFF_ACTIVATION_NONE;
  bool winograd = false;  // allowed

  uint64_t extent(int direction) const;  // P for 0, Q for 1
  uint64_t out_depth() const;            // O
  std::array<uint64_t, 4> in_shape() const { return {batch, channels, height, width}; }
  std::array<uint64_t, 4> filter_shape() const;
  std::array<uint64_t, 4> out_shape() const { return {batch, filters, extent(0), extent(1)}; }
  uint64_t inputs() const { return batch * channels * depth * height * width; }
  uint64_t weights() const { return filters * (channels / groups) * planes * rows * cols; }
  uint64_t outputs() const { return batch * filters * out_depth() * extent(0) * extent(1); }
  std::string name() const;
  double work() const;
  double largest_operand() const;  // elements
};

struct ConvProblem {
  ConvProblem(const ConvShape& shape, Tier tier);

  ConvShape shape;
  std::vector<float> input, filter, bias, residual;  // as stored
  Expected expected;                                 // the bounds include the rounding to the stored type
};

// Calls the flat function, or the one with a descriptor where that is needed.
tuff_status call_conv(tuff_stream stream, const ConvShape& shape, tuff_buffer input, tuff_buffer filter,
                      tuff_buffer output, tuff_buffer bias = 0, tuff_buffer residual = 0);

void run_conv(tuff_context context, const ConvShape& shape, Tier tier);

}  // namespace tuff_test
