// A convolution as plug-ins see it.
#include <algorithm>

#include "kernels/common/plugin_call.hpp"
#include "kernels/conv/conv.hpp"

namespace tuff {
namespace {

void copy_shape(const ConvShape& shape, uint64_t (&sizes)[5]) {
  std::copy(shape.outer.begin(), shape.outer.end(), sizes);
  std::copy(shape.extents.begin(), shape.extents.end(), sizes + 2);
}

}  // namespace

tuff_status offer_conv(const PluginFunction& function, const ConvArgs& args) {
  if (args.out_shape.elements() == 0) return TUFF_ERROR_UNSUPPORTED;
  auto call = new_call<tuff_backend_conv>();
  call.dtype = args.dtype;
  call.input = address_of(args.input);
  call.filter = address_of(args.filter);
  call.output = address_of(args.output);
  call.bias = address_of(args.bias);
  call.residual = address_of(args.residual);
  copy_shape(args.in_shape, call.in_shape);
  copy_shape(args.filter_shape, call.filter_shape);
  copy_shape(args.out_shape, call.out_shape);
  std::copy(args.stride.begin(), args.stride.end(), call.stride);
  std::copy(args.dilation.begin(), args.dilation.end(), call.dilation);
  std::copy(args.padding.begin(), args.padding.end(), call.padding);
  std::copy(args.padding_end.begin(), args.padding_end.end(), call.padding_end);
  std::copy(args.output_padding.begin(), args.output_padding.end(), call.output_padding);
  call.groups = args.groups;
  call.layout = args.layout;
  call.activation = args.activation;
  call.precision = args.precision;
  call.transposed = args.transposed ? 1 : 0;
  return function(call);
}

}  // namespace tuff
