#include "support/conv_problem.hpp"

#include <algorithm>
#include <cmath>

#include "support/bounds.hpp"

namespace tuff_test {
namespace {

uint64_t product(const std::array<uint64_t, 4>& shape) { return shape[0] * shape[1] * shape[2] * shape[3]; }

}  // namespace

uint64_t ConvShape::extent(int direction) const {
  const uint64_t size = direction == 0 ? height : width, taps = direction == 0 ? rows : cols;
  return (size + 2 * padding[direction] - dilation[direction] * (taps - 1) - 1) / stride[direction] + 1;
}

std::string ConvShape::name() const {
  std::string result = "in";
  for (uint64_t size : in_shape()) result += "_" + std::to_string(size);
  result += "_filter";
  for (uint64_t size : {filters, rows, cols}) result += "_" + std::to_string(size);
  const auto add = [&](const char* label, const std::array<uint64_t, 2>& pair, uint64_t usual) {
    if (pair[0] != usual || pair[1] != usual) {
      result += "_" + std::string(label) + std::to_string(pair[0]) + "_" + std::to_string(pair[1]);
    }
  };
  add("stride", stride, 1);
  add("pad", padding, 0);
  add("dilation", dilation, 1);
  if (shift != 0) result += "_shift" + std::to_string(shift);
  return result;
}

double ConvShape::work() const {
  return static_cast<double>(product(out_shape())) * static_cast<double>(channels * rows * cols) +
         static_cast<double>(product(in_shape()));
}

double ConvShape::largest_operand() const {
  return static_cast<double>(std::max({product(in_shape()), product(filter_shape()), product(out_shape())}));
}

ConvProblem::ConvProblem(const ConvShape& s, Tier tier) : shape(s) {
  const uint64_t inputs = product(s.in_shape()), weights = product(s.filter_shape());
  input = tier == Tier::exact ? integers(inputs, 3, 1) : spreads(inputs, 1);
  filter = tier == Tier::exact ? integers(weights, 3, 2) : spreads(weights, 2);

  const uint64_t height_out = s.extent(0), width_out = s.extent(1);
  const double allowed = tier == Tier::exact ? 0 : gamma(static_cast<double>(s.channels * s.rows * s.cols) + 3);
  expected.value.assign(product(s.out_shape()), 0);
  expected.bound.assign(expected.value.size(), 0);
  for (uint64_t n = 0; n < s.batch; ++n) {
    for (uint64_t k = 0; k < s.filters; ++k) {
      double* const plane = &expected.value[(n * s.filters + k) * height_out * width_out];
      double* const sizes = &expected.bound[(n * s.filters + k) * height_out * width_out];
      for (uint64_t c = 0; c < s.channels; ++c) {
        const float* const image = &input[(n * s.channels + c) * s.height * s.width];
        for (uint64_t r = 0; r < s.rows; ++r) {
          for (uint64_t t = 0; t < s.cols; ++t) {
            const double weight = filter[((k * s.channels + c) * s.rows + r) * s.cols + t];
            for (uint64_t p = 0; p < height_out; ++p) {
              const int64_t y =
                  static_cast<int64_t>(p * s.stride[0] + r * s.dilation[0]) - static_cast<int64_t>(s.padding[0]);
              if (y < 0 || y >= static_cast<int64_t>(s.height)) continue;
              for (uint64_t q = 0; q < width_out; ++q) {
                const int64_t x =
                    static_cast<int64_t>(q * s.stride[1] + t * s.dilation[1]) - static_cast<int64_t>(s.padding[1]);
                if (x < 0 || x >= static_cast<int64_t>(s.width)) continue;
                const double term = weight * image[static_cast<uint64_t>(y) * s.width + static_cast<uint64_t>(x)];
                plane[p * width_out + q] += term;
                sizes[p * width_out + q] += std::fabs(term);
              }
            }
          }
        }
      }
    }
  }
  for (double& bound : expected.bound) bound *= allowed;
}

tuff_status call_conv2d(tuff_stream stream, const ConvShape& s, tuff_buffer input, tuff_buffer filter,
                        tuff_buffer output) {
  if (s.dilation == std::array<uint64_t, 2>{1, 1}) {
    return tuff_conv2d(stream, TUFF_F32, input, s.in_shape().data(), filter, s.filter_shape().data(), output,
                       s.out_shape().data(), s.stride.data(), s.padding.data());
  }
  tuff_conv2d_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  desc.input = input, desc.filter = filter, desc.output = output;
  std::ranges::copy(s.in_shape(), desc.in_shape);
  std::ranges::copy(s.filter_shape(), desc.filter_shape);
  std::ranges::copy(s.out_shape(), desc.out_shape);
  std::ranges::copy(s.stride, desc.stride);
  std::ranges::copy(s.padding, desc.padding);
  std::ranges::copy(s.dilation, desc.dilation);
  return tuff_conv2d_ex(stream, &desc);
}

void run_conv2d(tuff_context context, const ConvShape& shape, Tier tier) {
  const ConvProblem problem(shape, tier);
  const Tensor input(context, problem.input, shape.shift), filter(context, problem.filter, shape.shift),
      output(context, problem.expected.value.size(), shape.shift);
  ASSERT_OK(call_conv2d(context, shape, input, filter, output));
  expect_matches(output.read(), problem.expected);
  input.expect_unchanged(problem.input);
  filter.expect_unchanged(problem.filter);
}

}  // namespace tuff_test
