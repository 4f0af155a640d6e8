// Entry points of the header's convolutions. A flat function fills in the descriptor of its _ex sibling; both then
// take the same path.
#include <algorithm>
#include <cstddef>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "kernels/conv/conv.hpp"
#include "kernels/conv/conv_backward.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

namespace {

// Two outer sizes, then the caller's spatial extents, right-aligned in the three of ConvShape.
template <size_t rank>
tuff::ConvShape shape_of(const uint64_t (&sizes)[rank]) {
  tuff::ConvShape shape;
  std::copy_n(sizes, 2, shape.outer.begin());
  std::copy_n(sizes + 2, rank - 2, shape.extents.end() - (rank - 2));
  return shape;
}

// In descriptors, zero means the default, `otherwise`.
template <size_t rank>
tuff::ConvExtents extents_of(const uint64_t (&values)[rank], uint64_t otherwise) {
  tuff::ConvExtents extents;
  extents.fill(otherwise);
  std::transform(values, values + rank, extents.end() - rank, [&](uint64_t x) { return x != 0 ? x : otherwise; });
  return extents;
}

// Fields that all descriptors have.
template <typename Desc>
tuff::ConvArgs conv_args(const Desc& desc) {
  tuff::ConvArgs args;
  if constexpr (requires { desc.precision; }) {
    args.precision = desc.precision;
  } else {
    tuff::require_reserved(desc.reserved);
  }
  args.rank = std::size(desc.stride);
  args.dtype = desc.dtype;
  args.layout = desc.layout;
  args.in_shape = shape_of(desc.in_shape);
  args.filter_shape = shape_of(desc.filter_shape);
  args.out_shape = shape_of(desc.out_shape);
  args.stride = extents_of(desc.stride, 1);
  args.dilation = extents_of(desc.dilation, 1);
  args.padding = args.padding_end = extents_of(desc.padding, 0);
  args.groups = desc.groups != 0 ? desc.groups : 1;
  args.activation = desc.activation;
  return args;
}

template <typename Desc>
void set_padding_end(tuff::ConvArgs& args, const Desc& desc) {
  tuff::require_flag(desc.asymmetric, "asymmetric");
  const tuff::ConvExtents end = extents_of(desc.padding_end, 0);
  if (desc.asymmetric == 1) {
    args.padding_end = end;
    return;
  }
  tuff::require(end == tuff::ConvExtents{}, "padding_end is given, and asymmetric is 0");
}

template <typename Desc>
void run(tuff_stream stream, const tuff::OperationOf<tuff::ConvArgs>& operation, const Desc& desc, tuff::ConvArgs& args,
         tuff_buffer residual_handle) {
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), filter(target, desc.filter, "filter"),
      output(target, desc.output, "output"), bias(target, desc.bias, "bias"),
      residual(target, residual_handle, "residual");
  args.input = input;
  args.filter = filter;
  args.output = output;
  args.bias = bias;
  args.residual = residual;
  target->run(operation(args));
}

template <typename Desc>
void convolution(tuff_stream stream, const tuff::OperationOf<tuff::ConvArgs>& operation, const Desc& desc) {
  tuff::ConvArgs args = conv_args(desc);
  set_padding_end(args, desc);
  run(stream, operation, desc, args, desc.residual);
}

void transposed_convolution(tuff_stream stream, const tuff_conv_transpose2d_desc& desc) {
  tuff::ConvArgs args = conv_args(desc);
  args.transposed = true;
  args.output_padding = extents_of(desc.output_padding, 0);
  run(stream, tuff::operations::conv_transpose2d, desc, args, TUFF_NULL_HANDLE);
}

// The shapes of gradients, of which 2 + spatial sizes are used.
tuff::ConvShape shape_of(const uint64_t (&sizes)[5], uint32_t spatial) {
  tuff::ConvShape shape;
  std::copy_n(sizes, 2, shape.outer.begin());
  std::copy_n(sizes + 2, spatial, shape.extents.end() - spatial);
  return shape;
}

tuff::ConvExtents extents_of(const uint64_t (&values)[3], uint32_t spatial, uint64_t otherwise) {
  tuff::ConvExtents extents;
  extents.fill(otherwise);
  std::transform(values, values + spatial, extents.end() - spatial, [&](uint64_t x) { return x != 0 ? x : otherwise; });
  return extents;
}

void gradient(tuff_stream stream, const tuff::OperationOf<tuff::ConvBackwardArgs>& operation,
              const tuff_conv_backward_desc& desc) {
  tuff::require_reserved(desc.reserved);
  tuff::require(desc.spatial >= 1 && desc.spatial <= 3, "spatial is {}, needs 1 to 3", desc.spatial);
  tuff::require_flag(desc.asymmetric, "asymmetric");
  tuff::ConvBackwardArgs args;
  tuff::ConvArgs& conv = args.conv;
  conv.rank = desc.spatial;
  conv.dtype = desc.dtype;
  conv.layout = desc.layout;
  conv.in_shape = shape_of(desc.in_shape, desc.spatial);
  conv.filter_shape = shape_of(desc.filter_shape, desc.spatial);
  conv.out_shape = shape_of(desc.out_shape, desc.spatial);
  conv.stride = extents_of(desc.stride, desc.spatial, 1);
  conv.dilation = extents_of(desc.dilation, desc.spatial, 1);
  conv.padding = extents_of(desc.padding, desc.spatial, 0);
  conv.padding_end = extents_of(desc.padding_end, desc.spatial, 0);
  if (desc.asymmetric == 0) {
    tuff::require(conv.padding_end == tuff::ConvExtents{}, "padding_end is given, and asymmetric is 0");
    conv.padding_end = conv.padding;
  }
  conv.groups = desc.groups != 0 ? desc.groups : 1;
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), filter(target, desc.filter, "filter"),
      doutput(target, desc.doutput, "doutput"), dinput(target, desc.dinput, "dinput"),
      dfilter(target, desc.dfilter, "dfilter"), dbias(target, desc.dbias, "dbias");
  conv.input = input;
  conv.filter = filter;
  args.doutput = doutput;
  args.dinput = dinput;
  args.dfilter = dfilter;
  args.dbias = dbias;
  target->run(operation(args));
}

// Copies an array of a flat call, where zero does not select a default.
template <size_t rank>
void set_flat(uint64_t (&target)[rank], const uint64_t* values, const char* name, bool positive = false) {
  tuff::require(values != nullptr, "{} is null", name);
  std::copy_n(values, rank, target);
  if (!positive) return;
  for (size_t i = 0; i < rank; ++i) tuff::require(values[i] != 0, "{}[{}] is 0, needs at least 1", name, i);
}

template <typename Desc>
Desc flat(int32_t dtype, tuff_buffer input, const uint64_t* in_shape, tuff_buffer filter, const uint64_t* filter_shape,
          tuff_buffer output, const uint64_t* out_shape) {
  Desc desc{};
  desc.dtype = dtype;
  desc.input = input;
  desc.filter = filter;
  desc.output = output;
  set_flat(desc.in_shape, in_shape, "in_shape");
  set_flat(desc.filter_shape, filter_shape, "filter_shape");
  set_flat(desc.out_shape, out_shape, "out_shape");
  return desc;
}

}  // namespace

extern "C" {

tuff_status tuff_conv2d(tuff_stream stream, int32_t dtype, tuff_buffer input, const uint64_t in_shape[4],
                        tuff_buffer filter, const uint64_t filter_shape[4], tuff_buffer output,
                        const uint64_t out_shape[4], const uint64_t stride[2], const uint64_t padding[2]) {
  return guarded("tuff_conv2d", [&] {
    auto desc = flat<tuff_conv2d_desc>(dtype, input, in_shape, filter, filter_shape, output, out_shape);
    set_flat(desc.stride, stride, "stride", true);
    set_flat(desc.padding, padding, "padding");
    convolution(stream, tuff::operations::conv2d, desc);
  });
}

tuff_status tuff_conv2d_ex(tuff_stream stream, const tuff_conv2d_desc* desc) {
  return guarded("tuff_conv2d_ex",
                 [&] { convolution(stream, tuff::operations::conv2d, read_structure(desc, "desc")); });
}

tuff_status tuff_conv1d(tuff_stream stream, int32_t dtype, tuff_buffer input, const uint64_t in_shape[3],
                        tuff_buffer filter, const uint64_t filter_shape[3], tuff_buffer output,
                        const uint64_t out_shape[3], uint64_t stride, uint64_t padding) {
  return guarded("tuff_conv1d", [&] {
    auto desc = flat<tuff_conv1d_desc>(dtype, input, in_shape, filter, filter_shape, output, out_shape);
    set_flat(desc.stride, &stride, "stride", true);
    set_flat(desc.padding, &padding, "padding");
    convolution(stream, tuff::operations::conv1d, desc);
  });
}

tuff_status tuff_conv1d_ex(tuff_stream stream, const tuff_conv1d_desc* desc) {
  return guarded("tuff_conv1d_ex",
                 [&] { convolution(stream, tuff::operations::conv1d, read_structure(desc, "desc")); });
}

tuff_status tuff_conv3d(tuff_stream stream, int32_t dtype, tuff_buffer input, const uint64_t in_shape[5],
                        tuff_buffer filter, const uint64_t filter_shape[5], tuff_buffer output,
                        const uint64_t out_shape[5], const uint64_t stride[3], const uint64_t padding[3]) {
  return guarded("tuff_conv3d", [&] {
    auto desc = flat<tuff_conv3d_desc>(dtype, input, in_shape, filter, filter_shape, output, out_shape);
    set_flat(desc.stride, stride, "stride", true);
    set_flat(desc.padding, padding, "padding");
    convolution(stream, tuff::operations::conv3d, desc);
  });
}

tuff_status tuff_conv3d_ex(tuff_stream stream, const tuff_conv3d_desc* desc) {
  return guarded("tuff_conv3d_ex",
                 [&] { convolution(stream, tuff::operations::conv3d, read_structure(desc, "desc")); });
}

tuff_status tuff_conv_transpose2d(tuff_stream stream, int32_t dtype, tuff_buffer input, const uint64_t in_shape[4],
                                  tuff_buffer filter, const uint64_t filter_shape[4], tuff_buffer output,
                                  const uint64_t out_shape[4], const uint64_t stride[2], const uint64_t padding[2],
                                  const uint64_t output_padding[2]) {
  return guarded("tuff_conv_transpose2d", [&] {
    auto desc = flat<tuff_conv_transpose2d_desc>(dtype, input, in_shape, filter, filter_shape, output, out_shape);
    set_flat(desc.stride, stride, "stride", true);
    set_flat(desc.padding, padding, "padding");
    set_flat(desc.output_padding, output_padding, "output_padding");
    transposed_convolution(stream, desc);
  });
}

tuff_status tuff_conv_transpose2d_ex(tuff_stream stream, const tuff_conv_transpose2d_desc* desc) {
  return guarded("tuff_conv_transpose2d_ex", [&] { transposed_convolution(stream, read_structure(desc, "desc")); });
}

tuff_status tuff_conv_backward_data(tuff_stream stream, const tuff_conv_backward_desc* desc) {
  return guarded("tuff_conv_backward_data",
                 [&] { gradient(stream, tuff::operations::conv_backward_data, read_structure(desc, "desc")); });
}

tuff_status tuff_conv_backward_filter(tuff_stream stream, const tuff_conv_backward_desc* desc) {
  return guarded("tuff_conv_backward_filter",
                 [&] { gradient(stream, tuff::operations::conv_backward_filter, read_structure(desc, "desc")); });
}

}  // extern "C"
