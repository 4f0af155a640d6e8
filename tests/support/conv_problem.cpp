#include "support/conv_problem.hpp"

#include <algorithm>
#include <cmath>

#include "support/activation.hpp"
#include "support/bounds.hpp"
#include "support/stored.hpp"
#include "support/winograd.hpp"

namespace tuff_test {
namespace {

// Depth, height, width.
using Triple = std::array<uint64_t, 3>;

struct Axes {
  explicit Axes(const ConvShape& s)
      : in{s.depth, s.height, s.width},
        taps{s.planes, s.rows, s.cols},
        out{s.out_depth(), s.extent(0), s.extent(1)},
        stride{s.depth_stride, s.stride[0], s.stride[1]},
        padding{s.depth_padding, s.padding[0], s.padding[1]},
        dilation{s.depth_dilation, s.dilation[0], s.dilation[1]} {}
  Triple in, taps, out, stride, padding, dilation;
};

uint64_t volume(const Triple& extents) { return extents[0] * extents[1] * extents[2]; }

// Element (outer, inner, pixel) of a tensor.
uint64_t place(int32_t layout, uint64_t outer, uint64_t inner, uint64_t inners, uint64_t pixel, uint64_t pixels) {
  return layout == TUFF_LAYOUT_NHWC ? (outer * pixels + pixel) * inners + inner
                                    : (outer * inners + inner) * pixels + pixel;
}

// Calls body(in pixel, tap, out pixel) for each combination of input, tap and output that the convolution multiplies,
// in either direction.
template <typename Body>
void for_each_meeting(const ConvShape& s, const Axes& a, const Body& body) {
  const bool back = s.kind == Conv::transposed;
  // near * stride + tap * dilation - padding = far: near is the output's position, or the input's if transposed.
  const Triple &near = back ? a.in : a.out, &far = back ? a.out : a.in;
  const auto at = [&](int axis, uint64_t position, uint64_t tap, uint64_t& result) {
    result = position * a.stride[axis] + tap * a.dilation[axis] - a.padding[axis];  // wraps if negative
    return result < far[axis];
  };
  for (uint64_t t = 0; t < a.taps[0]; ++t) {
    for (uint64_t r = 0; r < a.taps[1]; ++r) {
      for (uint64_t u = 0; u < a.taps[2]; ++u) {
        const uint64_t tap = (t * a.taps[1] + r) * a.taps[2] + u;
        for (uint64_t z = 0, far_z = 0; z < near[0]; ++z) {
          if (!at(0, z, t, far_z)) continue;
          for (uint64_t y = 0, far_y = 0; y < near[1]; ++y) {
            if (!at(1, y, r, far_y)) continue;
            for (uint64_t x = 0, far_x = 0; x < near[2]; ++x) {
              if (!at(2, x, u, far_x)) continue;
              const uint64_t first = (z * near[1] + y) * near[2] + x,
                             second = (far_z * far[1] + far_y) * far[2] + far_x;
              body(back ? first : second, tap, back ? second : first);
            }
          }
        }
      }
    }
  }
}

void sum_products(ConvProblem& problem, std::vector<double>& sums, std::vector<double>& sizes) {
  const ConvShape& s = problem.shape;
  const Axes a(s);
  const uint64_t in_pixels = volume(a.in), out_pixels = volume(a.out), taps = volume(a.taps);
  const uint64_t group_channels = s.channels / s.groups, group_filters = s.filters / s.groups;
  const bool back = s.kind == Conv::transposed;
  for (uint64_t n = 0; n < s.batch; ++n) {
    for (uint64_t k = 0; k < s.filters; ++k) {
      for (uint64_t c = 0; c < group_channels; ++c) {
        const uint64_t channel = k / group_filters * group_channels + c;
        // The first element of each, and the distance between pixels or taps.
        const uint64_t in0 = place(s.layout, n, channel, s.channels, 0, in_pixels),
                       in_step = s.layout == TUFF_LAYOUT_NHWC ? s.channels : 1;
        const uint64_t w0 = back ? place(s.layout, channel, k % group_filters, group_filters, 0, taps)
                                 : place(s.layout, k, c, group_channels, 0, taps),
                       w_step = s.layout != TUFF_LAYOUT_NHWC ? 1
                                : back                       ? group_filters
                                                             : group_channels;
        const uint64_t out0 = place(s.layout, n, k, s.filters, 0, out_pixels),
                       out_step = s.layout == TUFF_LAYOUT_NHWC ? s.filters : 1;
        for_each_meeting(s, a, [&](uint64_t in, uint64_t tap, uint64_t out) {
          const double term = static_cast<double>(problem.filter[w0 + tap * w_step]) *
                              static_cast<double>(problem.input[in0 + in * in_step]);
          sums[out0 + out * out_step] += term;
          sizes[out0 + out * out_step] += std::fabs(term);
        });
      }
    }
  }
}

std::vector<float> values(const ConvShape& s, Tier tier, uint64_t count, uint64_t seed) {
  if (tier == Tier::exact) return integers(count, 3, seed);
  return rounded(s.dtype, spreads(count, seed));
}

template <typename Desc>
Desc described(const ConvShape& s, tuff_buffer input, tuff_buffer filter, tuff_buffer output, tuff_buffer bias) {
  Desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype;
  desc.input = input, desc.filter = filter, desc.output = output, desc.bias = bias;
  const Axes a(s);
  const uint64_t in[] = {s.batch, s.channels}, out[] = {s.batch, s.filters};
  constexpr size_t rank = std::size(Desc{}.stride);
  std::copy_n(in, 2, desc.in_shape);
  std::copy_n(s.filter_shape().begin(), 2, desc.filter_shape);
  std::copy_n(out, 2, desc.out_shape);
  std::copy(a.in.end() - rank, a.in.end(), desc.in_shape + 2);
  std::copy(a.taps.end() - rank, a.taps.end(), desc.filter_shape + 2);
  std::copy(a.out.end() - rank, a.out.end(), desc.out_shape + 2);
  std::copy(a.stride.end() - rank, a.stride.end(), desc.stride);
  std::copy(a.padding.end() - rank, a.padding.end(), desc.padding);
  std::copy(a.dilation.end() - rank, a.dilation.end(), desc.dilation);
  desc.groups = s.groups == 1 ? 0 : s.groups;
  desc.layout = s.layout;
  desc.activation = s.activation;
  if constexpr (requires { desc.precision; }) {
    if (s.winograd) desc.precision = TUFF_PRECISION_ALLOW_WINOGRAD;
  }
  return desc;
}

template <typename Desc>
Desc ordinary(const ConvShape& s, tuff_buffer input, tuff_buffer filter, tuff_buffer output, tuff_buffer bias,
              tuff_buffer residual) {
  auto desc = described<Desc>(s, input, filter, output, bias);
  desc.residual = residual;
  if (s.asymmetric) {
    const Triple end = {s.depth_padding, s.padding_end[0], s.padding_end[1]};
    desc.asymmetric = 1;
    std::copy(end.end() - std::size(desc.stride), end.end(), desc.padding_end);
  }
  return desc;
}

}  // namespace

uint64_t ConvShape::extent(int direction) const {
  const uint64_t size = direction == 0 ? height : width, taps = direction == 0 ? rows : cols;
  const uint64_t span = dilation[direction] * (taps - 1) + 1;
  if (kind == Conv::transposed) {
    return (size - 1) * stride[direction] + span + output_padding[direction] - 2 * padding[direction];
  }
  const uint64_t end = asymmetric ? padding_end[direction] : padding[direction];
  return (size + padding[direction] + end - span) / stride[direction] + 1;
}

uint64_t ConvShape::out_depth() const {
  return (depth + 2 * depth_padding - depth_dilation * (planes - 1) - 1) / depth_stride + 1;
}

std::array<uint64_t, 4> ConvShape::filter_shape() const {
  if (kind == Conv::transposed) return {channels, filters / groups, rows, cols};
  return {filters, channels / groups, rows, cols};
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
  if (kind == Conv::three) result += "_depth" + std::to_string(depth) + "_" + std::to_string(planes);
  add("stride", stride, 1);
  add("pad", padding, 0);
  if (asymmetric) add("end", padding_end, ~uint64_t{0});
  add("more", output_padding, 0);
  add("dilation", dilation, 1);
  if (groups != 1) result += "_groups" + std::to_string(groups);
  if (layout == TUFF_LAYOUT_NHWC) result += "_nhwc";
  if (dtype != TUFF_F32) result += std::string("_") + name_of(dtype);
  if (bias) result += "_bias";
  static const char* const activations[] = {"", "_relu", "_gelu", "_gelutanh", "_silu", "_relu6"};
  result += activations[activation];
  result += residual == Residual::own ? "_residual" : residual == Residual::in_place ? "_inplace" : "";
  if (winograd) result += "_winograd";
  if (shift != 0) result += "_shift" + std::to_string(shift);
  return result;
}

double ConvShape::work() const {
  return static_cast<double>(outputs()) * static_cast<double>(channels / groups * planes * rows * cols) +
         static_cast<double>(inputs());
}

double ConvShape::largest_operand() const { return static_cast<double>(std::max({inputs(), weights(), outputs()})); }

ConvProblem::ConvProblem(const ConvShape& s, Tier tier)
    : shape(s),
      input(values(s, tier, s.inputs(), 1)),
      filter(values(s, tier, s.weights(), 2)),
      bias(values(s, tier, s.bias ? s.filters : 0, 3)),
      residual(values(s, tier, s.residual != Residual::none ? s.outputs() : 0, 4)) {
  expected.value.assign(s.outputs(), 0);
  expected.bound.assign(s.outputs(), 0);
  sum_products(*this, expected.value, expected.bound);
  // k terms, bias, residual, and the second pass over split-K sums.
  double roundings = gamma(static_cast<double>(s.channels / s.groups * s.planes * s.rows * s.cols) + 5);
  if (tier == Tier::bound && s.winograd) {
    const std::vector<double> sizes = winograd_sizes(*this);
    for (uint64_t i = 0; i < s.outputs(); ++i) expected.bound[i] = std::max(expected.bound[i], sizes[i]);
    roundings = std::max(roundings, gamma(static_cast<double>(s.channels) + kWinogradRoundings + 5));
  }
  for (uint64_t i = 0; i < s.outputs(); ++i) {
    double &value = expected.value[i], &bound = expected.bound[i];
    const auto add = [&](double x) {
      value += x;
      bound += std::fabs(x);
    };
    const uint64_t pixels = s.out_depth() * s.extent(0) * s.extent(1);
    if (s.bias) add(bias[s.layout == TUFF_LAYOUT_NHWC ? i % s.filters : i / pixels % s.filters]);
    if (s.residual != Residual::none) add(residual[i]);
    const double before = value;
    value = static_cast<double>(activated(s.activation, value));
    bound = tier == Tier::exact ? 0 : bound * roundings * kSteepest + activation_error(s.activation, before, kU);
  }
  if (tier == Tier::bound) {
    add_storage(expected, s.dtype);
  } else {
    for (double& value : expected.value) value = static_cast<double>(rounded(s.dtype, value));
  }
}

tuff_status call_conv(tuff_stream stream, const ConvShape& s, tuff_buffer input, tuff_buffer filter, tuff_buffer output,
                      tuff_buffer bias, tuff_buffer residual) {
  const bool dilated = s.dilation != std::array<uint64_t, 2>{1, 1} || s.depth_dilation != 1;
  const bool plain = !dilated && s.groups == 1 && !s.asymmetric && s.layout == TUFF_LAYOUT_NCHW && bias == 0 &&
                     residual == 0 && s.activation == TUFF_ACTIVATION_NONE && !s.winograd;
  const auto in = s.in_shape(), weights = s.filter_shape(), out = s.out_shape();
  if (s.kind == Conv::one) {
    const auto desc = ordinary<tuff_conv1d_desc>(s, input, filter, output, bias, residual);
    if (!plain) return tuff_conv1d_ex(stream, &desc);
    return tuff_conv1d(stream, s.dtype, input, desc.in_shape, filter, desc.filter_shape, output, desc.out_shape,
                       s.stride[1], s.padding[1]);
  }
  if (s.kind == Conv::three) {
    const auto desc = ordinary<tuff_conv3d_desc>(s, input, filter, output, bias, residual);
    if (!plain) return tuff_conv3d_ex(stream, &desc);
    return tuff_conv3d(stream, s.dtype, input, desc.in_shape, filter, desc.filter_shape, output, desc.out_shape,
                       desc.stride, desc.padding);
  }
  if (s.kind == Conv::transposed) {
    auto desc = described<tuff_conv_transpose2d_desc>(s, input, filter, output, bias);
    std::ranges::copy(s.output_padding, desc.output_padding);
    if (!plain) return tuff_conv_transpose2d_ex(stream, &desc);
    return tuff_conv_transpose2d(stream, s.dtype, input, in.data(), filter, weights.data(), output, out.data(),
                                 s.stride.data(), s.padding.data(), s.output_padding.data());
  }
  if (plain) {
    return tuff_conv2d(stream, s.dtype, input, in.data(), filter, weights.data(), output, out.data(), s.stride.data(),
                       s.padding.data());
  }
  const auto desc = ordinary<tuff_conv2d_desc>(s, input, filter, output, bias, residual);
  return tuff_conv2d_ex(stream, &desc);
}

void run_conv(tuff_context context, const ConvShape& s, Tier tier) {
  const ConvProblem problem(s, tier);
  const uint64_t shift = s.shift / size_of(s.dtype);
  const StoredTensor input(context, s.dtype, problem.input, shift), filter(context, s.dtype, problem.filter, shift),
      bias(context, s.dtype, problem.bias, shift), residual(context, s.dtype, problem.residual, shift);
  const StoredTensor output = s.residual == Residual::in_place ? StoredTensor(context, s.dtype, problem.residual, shift)
                                                               : StoredTensor(context, s.dtype, s.outputs(), shift);
  tuff_buffer bias_handle = TUFF_NULL_HANDLE, added = TUFF_NULL_HANDLE;
  if (s.bias) bias_handle = bias;
  if (s.residual == Residual::own) added = residual;
  if (s.residual == Residual::in_place) added = output;
  ASSERT_OK(call_conv(context, s, input, filter, output, bias_handle, added));
  expect_matches(output.read(), problem.expected);
  input.expect_unchanged(problem.input);
  filter.expect_unchanged(problem.filter);
  bias.expect_unchanged(problem.bias);
  residual.expect_unchanged(problem.residual);
}

}  // namespace tuff_test
