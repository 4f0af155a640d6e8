// Checks the arguments of convolutions.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/conv/conv.hpp"
#include "kernels/gemm/gemm.hpp"

namespace tuff {
namespace {

constexpr const char* kInNames[] = {"D", "H", "W"};
constexpr const char* kTapNames[] = {"T", "R", "S"};

// The extents of the caller's dimensions only.
std::span<const uint64_t> given(const ConvArgs& args, const ConvExtents& extents) {
  return std::span(extents).last(args.rank);
}

std::string text(const ConvArgs& args, const ConvExtents& extents) {
  return fmt::format("{}", fmt::join(given(args, extents), "x"));
}

std::string text(const ConvArgs& args, const ConvShape& shape) {
  return fmt::format("{}x{}x{}", shape.outer[0], shape.outer[1], text(args, shape.extents));
}

std::string steps(const ConvArgs& args) {
  std::string result = fmt::format("stride {} padding {}", text(args, args.stride), text(args, args.padding));
  if (args.padding_end != args.padding) result += fmt::format(" padding_end {}", text(args, args.padding_end));
  if (args.transposed) result += fmt::format(" output_padding {}", text(args, args.output_padding));
  return result + fmt::format(" dilation {}", text(args, args.dilation));
}

// Convolution: floor((in + padding + padding_end - span) / stride) + 1. Transposed convolution, the inverse:
// (in - 1) * stride + span + output_padding - padding - padding_end. span = dilation * (taps - 1) + 1.
uint64_t output_extent(const ConvArgs& args, uint32_t axis) {
  const uint64_t in = args.in()[axis], taps = args.taps()[axis];
  const uint64_t stride = args.stride[axis], dilation = args.dilation[axis];
  const uint32_t index = axis - (kConvAxes - args.rank);
  require(taps >= 1, "filter_shape has {}=0, needs at least 1", kTapNames[axis]);
  require(stride >= 1, "stride[{}] is 0, needs at least 1", index);
  require(dilation >= 1, "dilation[{}] is 0, needs at least 1", index);
  const uint64_t around = checked_add(args.padding[axis], args.padding_end[axis], "padding");
  const uint64_t span = checked_add(checked_mul(dilation, taps - 1, "dilation"), 1, "dilation");
  if (args.transposed) {
    const uint64_t further = args.output_padding[axis];
    require(further < std::max(stride, dilation), "output_padding[{}] is {}, must be below stride {} or dilation {}",
            index, further, stride, dilation);
    if (in == 0) return 0;
    const uint64_t whole =
        checked_add(checked_mul(in - 1, stride, "stride"), checked_add(span, further, "in_shape"), "in_shape");
    require(around <= whole, "padding removes {} of the {} computed rows of {} ({}={})", around, whole, kInNames[axis],
            kInNames[axis], in);
    return whole - around;
  }
  const uint64_t padded = checked_add(in, around, "padding");
  require(span <= padded,
          "filter_shape's {}={} spans {} (dilation {}), more than the padded input's {} ({}={} padding {})",
          kTapNames[axis], taps, span, dilation, padded, kInNames[axis], in, around);
  return (padded - span) / stride + 1;
}

// The output's shape that follows from the other arguments.
ConvShape expected_shape(const ConvArgs& args) {
  ConvShape expected;
  expected.outer = {args.batch(), args.transposed ? args.filter_shape.outer[1] : args.filter_shape.outer[0]};
  if (args.transposed) expected.outer[1] = checked_mul(expected.outer[1], args.groups, "filter_shape");
  for (uint32_t axis = 0; axis < kConvAxes; ++axis) expected.extents[axis] = output_extent(args, axis);
  return expected;
}

void check_channels(const ConvArgs& args) {
  const uint64_t channels = args.channels(), groups = args.groups;
  require(channels % groups == 0, "groups is {}, needs a divisor of in_shape's C={}", groups, channels);
  const auto& filter = args.filter_shape.outer;
  if (args.transposed) {
    if (filter[0] == channels) return;
    fail(TUFF_ERROR_INVALID_ARGUMENT, "filter_shape {} has C={}, in_shape {} has C={}: channels must agree",
         text(args, args.filter_shape), filter[0], text(args, args.in_shape), channels);
  }
  require(filter[0] % groups == 0, "groups is {}, needs a divisor of filter_shape's K={}", groups, filter[0]);
  if (filter[1] == channels / groups) return;
  if (groups == 1) {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "filter_shape {} has C={}, in_shape {} has C={}: channels must agree",
         text(args, args.filter_shape), filter[1], text(args, args.in_shape), channels);
  }
  fail(TUFF_ERROR_INVALID_ARGUMENT,
       "filter_shape {} has C={}, needs C={}: the {} channels of in_shape {}, divided by groups={}",
       text(args, args.filter_shape), filter[1], channels / groups, channels, text(args, args.in_shape), groups);
}

uint64_t elements_of(const ConvShape& shape, const char* name) {
  const uint64_t sizes[] = {shape.outer[0], shape.outer[1], shape.extents[0], shape.extents[1], shape.extents[2]};
  return checked_product(sizes, name);
}

}  // namespace

ConvElements check_conv_shapes(const ConvArgs& args) {
  check_float_type(args.dtype);
  require(args.layout == TUFF_LAYOUT_NCHW || args.layout == TUFF_LAYOUT_NHWC,
          "layout is {}, must be TUFF_LAYOUT_NCHW or TUFF_LAYOUT_NHWC", args.layout);
  check_channels(args);
  const ConvShape expected = expected_shape(args);
  if (args.out_shape != expected) {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "out_shape is {}, must be {} (in_shape {} filter_shape {} groups {} {})",
         text(args, args.out_shape), text(args, expected), text(args, args.in_shape), text(args, args.filter_shape),
         args.groups, steps(args));
  }
  return {elements_of(args.in_shape, "in_shape"), elements_of(args.filter_shape, "filter_shape"),
          elements_of(expected, "out_shape")};
}

void check_conv_tensor(const ConvArgs& args, const Buffer* buffer, const char* name, const ConvShape& shape,
                       uint64_t elements) {
  check_operand(buffer, name, elements, args.dtype, [&] { return "shape " + text(args, shape); });
}

void check_conv(const ConvArgs& args) {
  check_activation(args.activation);
  require(args.precision == TUFF_PRECISION_DEFAULT || args.precision == TUFF_PRECISION_ALLOW_WINOGRAD,
          "precision is {}, must be TUFF_PRECISION_DEFAULT or _ALLOW_WINOGRAD", args.precision);
  const auto [in_elements, filter_elements, out_elements] = check_conv_shapes(args);
  if (out_elements == 0) return;

  check_conv_tensor(args, args.input, "input", args.in_shape, in_elements);
  check_conv_tensor(args, args.filter, "filter", args.filter_shape, filter_elements);
  check_conv_tensor(args, args.output, "output", args.out_shape, out_elements);
  // The operands hold this many bytes, so the multiplications below cannot overflow.
  const uint64_t size = dtype_size(args.dtype), out_bytes = out_elements * size;
  check_overlap(args.output, "output", out_bytes, args.input, "input", in_elements * size, false);
  check_overlap(args.output, "output", out_bytes, args.filter, "filter", filter_elements * size, false);
  if (args.bias != nullptr) {
    check_operand(args.bias, "bias", args.filters(), args.dtype, [&] { return fmt::format("K={}", args.filters()); });
    check_overlap(args.output, "output", out_bytes, args.bias, "bias", args.filters() * size, false);
  }
  if (args.residual != nullptr) {
    check_conv_tensor(args, args.residual, "residual", args.out_shape, out_elements);
    check_overlap(args.output, "output", out_bytes, args.residual, "residual", out_bytes, true);
  }
}

}  // namespace tuff
