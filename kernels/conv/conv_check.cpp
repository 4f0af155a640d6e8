// What a convolution requires of its arguments.
#include <fmt/format.h>

#include <span>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/conv/conv.hpp"

namespace tuff {
namespace {

std::string shape_text(std::span<const uint64_t> shape) { return fmt::format("{}", fmt::join(shape, "x")); }

// floor((in + 2 * padding - dilation * (taps - 1) - 1) / stride) + 1, checked for overflow.
uint64_t output_extent(const Conv2dArgs& args, int axis) {
  const char* in_name = axis == 0 ? "H" : "W";
  const char* filter_name = axis == 0 ? "R" : "S";
  const uint64_t in = args.in_shape[2 + axis], taps = args.filter_shape[2 + axis];
  const uint64_t stride = args.stride[axis], padding = args.padding[axis], dilation = args.dilation[axis];
  require(taps >= 1, "filter_shape has {}=0, needs at least 1", filter_name);
  require(stride >= 1, "stride[{}] is 0, needs at least 1", axis);
  require(dilation >= 1, "dilation[{}] is 0, needs at least 1", axis);
  const uint64_t padded = checked_add(in, checked_mul(2, padding, "padding"), "padding");
  const uint64_t span = checked_add(checked_mul(dilation, taps - 1, "dilation"), 1, "dilation");
  require(span <= padded,
          "filter_shape's {}={} spans {} (dilation {}), more than the padded input's {} ({}={} padding {})",
          filter_name, taps, span, dilation, padded, in_name, in, padding);
  return (padded - span) / stride + 1;
}

void check_tensor(const Buffer* buffer, const char* name, std::span<const uint64_t> shape, int32_t dtype,
                  uint64_t elements) {
  check_operand(buffer, name, elements, dtype, [&] { return "shape " + shape_text(shape); });
}

}  // namespace

void check_conv2d(const Conv2dArgs& args) {
  check_f32_only(args.dtype);
  const auto& in = args.in_shape;
  const auto& filter = args.filter_shape;
  if (filter[1] != in[1]) {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "filter_shape {} has C={}, in_shape {} has C={}: channels must agree",
         shape_text(filter), filter[1], shape_text(in), in[1]);
  }
  const std::array<uint64_t, 4> expected = {in[0], filter[0], output_extent(args, 0), output_extent(args, 1)};
  if (args.out_shape != expected) {
    fail(TUFF_ERROR_INVALID_ARGUMENT,
         "out_shape is {}, must be {} (in_shape {} filter_shape {} stride {} padding {} dilation {})",
         shape_text(args.out_shape), shape_text(expected), shape_text(in), shape_text(filter), shape_text(args.stride),
         shape_text(args.padding), shape_text(args.dilation));
  }
  const uint64_t in_elements = checked_product(in, "in_shape");
  const uint64_t filter_elements = checked_product(filter, "filter_shape");
  const uint64_t out_elements = checked_product(expected, "out_shape");
  if (out_elements == 0) return;

  check_tensor(args.input, "input", in, args.dtype, in_elements);
  check_tensor(args.filter, "filter", filter, args.dtype, filter_elements);
  check_tensor(args.output, "output", expected, args.dtype, out_elements);
  // The operands hold these many bytes, so the products below cannot wrap.
  const uint64_t size = dtype_size(args.dtype);
  check_overlap(args.output, "output", out_elements * size, args.input, "input", in_elements * size, false);
  check_overlap(args.output, "output", out_elements * size, args.filter, "filter", filter_elements * size, false);
}

}  // namespace tuff
