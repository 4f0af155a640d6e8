// Reference convolution: a sum in double over all taps and channels that contribute to an output; an empty sum is zero.
#include <vector>

#include "kernels/common/elements.hpp"
#include "kernels/conv/conv.hpp"
#include "kernels/gemm/gemm.hpp"

namespace tuff {
namespace {

constexpr uint64_t kOutside = ~uint64_t{0};

// Along one axis: the input position that a tap combines with an output position, or kOutside.
uint64_t source(const ConvArgs& args, uint32_t axis, uint64_t position, uint64_t tap) {
  const uint64_t stride = args.stride[axis], reach = tap * args.dilation[axis];
  // Shifted by the padding, so that no position is negative.
  uint64_t shifted = position * stride + reach;
  uint64_t padding = args.padding[axis];
  if (args.transposed) {  // position + padding = input * stride + reach
    shifted = position + args.padding[axis];
    if (shifted < reach || (shifted - reach) % stride != 0) return kOutside;
    shifted = (shifted - reach) / stride;
    padding = 0;
  }
  return shifted >= padding && shifted - padding < args.in()[axis] ? shifted - padding : kOutside;
}

// Strides of a tensor, in elements.
struct Strides {
  Strides(bool channels_last, const ConvShape& shape)
      : outer(shape.elements() / shape.outer[0]),
        channel(channels_last ? 1 : shape.pixels()),
        pixel(channels_last ? shape.outer[1] : 1) {}
  uint64_t outer, channel, pixel;
};

uint64_t pixel_of(const ConvExtents& extents, uint64_t z, uint64_t y, uint64_t x) {
  return (z * extents[1] + y) * extents[2] + x;
}

template <typename T>
std::vector<float> unpacked(const Buffer* buffer, uint64_t elements) {
  const T* stored = buffer->host<T>();
  std::vector<float> values(elements);
  for (uint64_t i = 0; i < elements; ++i) values[i] = static_cast<float>(static_cast<double>(stored[i]));
  return values;
}

template <typename T>
void convolve(const ConvArgs& args) {
  const ConvExtents& taps = args.taps();
  const bool empty = args.in_shape.elements() == 0;  // then the operands may be absent
  // Input and filter as f32; f32 tensors are used in place.
  std::vector<float> input_copy, filter_copy;
  const float *input = nullptr, *filter = nullptr;
  if (!empty && std::is_same_v<T, float>) {
    input = args.input->host<float>();
    filter = args.filter->host<float>();
  } else if (!empty) {
    input_copy = unpacked<T>(args.input, args.in_shape.elements());
    filter_copy = unpacked<T>(args.filter, args.filter_shape.elements());
    input = input_copy.data();
    filter = filter_copy.data();
  }
  const Strides in(args.channels_last(), empty ? ConvShape{{1, 1}} : args.in_shape);
  const Strides weights(args.channels_last(), empty ? ConvShape{{1, 1}} : args.filter_shape);
  const Strides result(args.channels_last(), args.out_shape);
  const uint64_t group_channels = args.group_channels(), group_filters = args.group_filters();
  const T* bias = args.bias != nullptr ? args.bias->host<T>() : nullptr;
  const T* residual = args.residual != nullptr ? args.residual->host<T>() : nullptr;
  T* output = args.output->host<T>();

  // The stride of weights along input channels, and the index of the first weight of an output channel.
  const uint64_t weight_channel = args.transposed ? weights.outer : weights.channel;
  const auto first_weight = [&](uint64_t group, uint64_t k) {
    return args.transposed ? group * group_channels * weights.outer + k * weights.channel
                           : (group * group_filters + k) * weights.outer;
  };
  const auto sum_at = [&](uint64_t n, uint64_t group, uint64_t k, uint64_t o, uint64_t p, uint64_t q) {
    double sum = 0;
    if (empty) return sum;
    for (uint64_t t = 0; t < taps[0]; ++t) {
      const uint64_t z = source(args, 0, o, t);
      if (z == kOutside) continue;
      for (uint64_t r = 0; r < taps[1]; ++r) {
        const uint64_t y = source(args, 1, p, r);
        if (y == kOutside) continue;
        for (uint64_t s = 0; s < taps[2]; ++s) {
          const uint64_t x = source(args, 2, q, s);
          if (x == kOutside) continue;
          const float* pixel =
              input + n * in.outer + group * group_channels * in.channel + pixel_of(args.in(), z, y, x) * in.pixel;
          const float* weight = filter + first_weight(group, k) + pixel_of(taps, t, r, s) * weights.pixel;
          for (uint64_t c = 0; c < group_channels; ++c) {
            sum += static_cast<double>(pixel[c * in.channel]) * static_cast<double>(weight[c * weight_channel]);
          }
        }
      }
    }
    return sum;
  };

  for (uint64_t n = 0; n < args.batch(); ++n) {
    for (uint64_t k = 0; k < args.filters(); ++k) {
      for (uint64_t pixel = 0; pixel < args.out_shape.pixels(); ++pixel) {
        const uint64_t row = pixel / args.out()[2], o = row / args.out()[1];
        const uint64_t p = row % args.out()[1], q = pixel % args.out()[2];
        const uint64_t at = n * result.outer + k * result.channel + pixel * result.pixel;
        double value = sum_at(n, k / group_filters, k % group_filters, o, p, q);
        if (bias != nullptr) value += static_cast<double>(bias[k]);
        if (residual != nullptr) value += static_cast<double>(residual[at]);
        output[at] = static_cast<T>(activate(args.activation, value));
      }
    }
  }
}

}  // namespace

void host_conv(const ConvArgs& args) {
  if (args.out_shape.elements() == 0) return;
  with_float_type(args.dtype, [&](auto type) { convolve<decltype(type)>(args); });
}

}  // namespace tuff
