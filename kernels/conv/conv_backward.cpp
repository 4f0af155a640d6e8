// Checks and references of convolutions' gradients.
#include "kernels/conv/conv_backward.hpp"

#include <vector>

#include "kernels/common/check.hpp"
#include "kernels/common/elements.hpp"

namespace tuff {

ConvArgs transposed_of(const ConvBackwardArgs& args) {
  ConvArgs result = args.conv;
  result.transposed = true;
  result.input = args.doutput;
  result.output = args.dinput;
  result.bias = result.residual = nullptr;
  std::swap(result.in_shape, result.out_shape);
  return result;
}

void check_conv_backward_data(const ConvBackwardArgs& args) {
  const ConvArgs& conv = args.conv;
  const auto [in, filter, out] = check_conv_shapes(conv);
  if (in == 0) return;
  check_conv_tensor(conv, conv.filter, "filter", conv.filter_shape, filter);
  check_conv_tensor(conv, args.doutput, "doutput", conv.out_shape, out);
  check_conv_tensor(conv, args.dinput, "dinput", conv.in_shape, in);
  // The operands hold this many bytes, so the multiplications cannot overflow.
  const uint64_t size = dtype_size(conv.dtype);
  check_overlap(args.dinput, "dinput", in * size, args.doutput, "doutput", out * size, false);
  check_overlap(args.dinput, "dinput", in * size, conv.filter, "filter", filter * size, false);
}

void check_conv_backward_filter(const ConvBackwardArgs& args) {
  const ConvArgs& conv = args.conv;
  const auto [in, filter, out] = check_conv_shapes(conv);
  const uint64_t filters = conv.filters(), size = dtype_size(conv.dtype);
  if (filters == 0) return;
  require(args.dfilter != nullptr || args.dbias != nullptr, "neither dfilter nor dbias is given");
  check_conv_tensor(conv, args.doutput, "doutput", conv.out_shape, out);
  if (args.dfilter != nullptr) {
    check_conv_tensor(conv, conv.input, "input", conv.in_shape, out != 0 ? in : 0);
    check_conv_tensor(conv, args.dfilter, "dfilter", conv.filter_shape, filter);
    check_overlap(args.dfilter, "dfilter", filter * size, args.doutput, "doutput", out * size, false);
    if (out != 0) check_overlap(args.dfilter, "dfilter", filter * size, conv.input, "input", in * size, false);
  }
  if (args.dbias == nullptr) return;
  check_operand(args.dbias, "dbias", filters, conv.dtype, [&] { return fmt::format("K={}", filters); });
  check_overlap(args.dbias, "dbias", filters * size, args.doutput, "doutput", out * size, false);
  if (args.dfilter == nullptr) return;
  check_overlap(args.dbias, "dbias", filters * size, args.dfilter, "dfilter", filter * size, false);
  if (out != 0) check_overlap(args.dbias, "dbias", filters * size, conv.input, "input", in * size, false);
}

void host_conv_backward_data(const ConvBackwardArgs& args) { host_conv(transposed_of(args)); }

namespace {

// A tensor's strides in elements.
struct Strides {
  Strides(const ConvArgs& args, const ConvShape& shape)
      : outer(shape.outer[1] * shape.pixels()),
        channel(args.channels_last() ? 1 : shape.pixels()),
        pixel(args.channels_last() ? shape.outer[1] : 1) {}
  uint64_t outer, channel, pixel;
};

// Calls body(output position, input position) for each position along an axis where a tap is inside the input.
template <typename Body>
void for_each_inside(const ConvArgs& args, uint32_t axis, uint64_t tap, const Body& body) {
  for (uint64_t o = 0; o < args.out()[axis]; ++o) {
    const uint64_t shifted = o * args.stride[axis] + tap * args.dilation[axis], padding = args.padding[axis];
    if (shifted >= padding && shifted - padding < args.in()[axis]) body(o, shifted - padding);
  }
}

// The sum over images and positions of doutput at filter k and the input's channel c at tap (t, r, s).
template <typename T>
double sum_at(const ConvBackwardArgs& args, uint64_t k, uint64_t c, uint64_t t, uint64_t r, uint64_t s) {
  const ConvArgs& conv = args.conv;
  const Strides in(conv, conv.in_shape), out(conv, conv.out_shape);
  double sum = 0;
  for (uint64_t n = 0; n < conv.batch(); ++n) {
    const T* images = conv.input->host<T>() + n * in.outer + c * in.channel;
    const T* slopes = args.doutput->host<T>() + n * out.outer + k * out.channel;
    for_each_inside(conv, 0, t, [&](uint64_t o, uint64_t z) {
      for_each_inside(conv, 1, r, [&](uint64_t p, uint64_t y) {
        for_each_inside(conv, 2, s, [&](uint64_t q, uint64_t x) {
          sum += static_cast<double>(slopes[((o * conv.out()[1] + p) * conv.out()[2] + q) * out.pixel]) *
                 static_cast<double>(images[((z * conv.in()[1] + y) * conv.in()[2] + x) * in.pixel]);
        });
      });
    });
  }
  return sum;
}

template <typename T>
void backward_filter(const ConvBackwardArgs& args) {
  const ConvArgs& conv = args.conv;
  const ConvExtents& taps = conv.taps();
  if (args.dfilter != nullptr && conv.filter_shape.elements() != 0) {
    const Strides weights(conv, conv.filter_shape);
    const bool empty = conv.in_shape.elements() == 0;
    for (uint64_t k = 0; k < conv.filters(); ++k) {
      const uint64_t first = k / conv.group_filters() * conv.group_channels();
      for (uint64_t c = 0; c < conv.group_channels(); ++c) {
        for (uint64_t tap = 0; tap < conv.filter_shape.pixels(); ++tap) {
          const uint64_t row = tap / taps[2];
          const double sum = empty ? 0 : sum_at<T>(args, k, first + c, row / taps[1], row % taps[1], tap % taps[2]);
          args.dfilter->host<T>()[k * weights.outer + c * weights.channel + tap * weights.pixel] = T(sum);
        }
      }
    }
  }
  if (args.dbias == nullptr) return;
  const Strides out(conv, conv.out_shape);
  for (uint64_t k = 0; k < conv.filters(); ++k) {
    double sum = 0;
    for (uint64_t n = 0; n < conv.batch(); ++n) {
      const T* slopes = args.doutput->host<T>() + n * out.outer + k * out.channel;
      for (uint64_t i = 0; i < conv.out_shape.pixels(); ++i) sum += static_cast<double>(slopes[i * out.pixel]);
    }
    args.dbias->host<T>()[k] = T(sum);
  }
}

}  // namespace

void host_conv_backward_filter(const ConvBackwardArgs& args) {
  with_float_type(args.conv.dtype, [&](auto type) { backward_filter<decltype(type)>(args); });
}

}  // namespace tuff
