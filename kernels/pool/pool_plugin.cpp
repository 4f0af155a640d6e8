// Pooling as plug-ins see it.
#include <algorithm>

#include "kernels/common/plugin_call.hpp"
#include "kernels/pool/pool.hpp"

namespace tuff {

tuff_status offer_pool(const PluginFunction& function, const PoolArgs& args) {
  const PoolShape shape = pool_shape(args);
  if (shape.planes == 0 || shape.outputs() == 0) return TUFF_ERROR_UNSUPPORTED;
  auto call = new_call<tuff_pool_desc>();
  call.dtype = args.dtype;
  call.input = address_of(args.input);
  call.output = address_of(args.output);
  call.indices = address_of(args.indices);
  call.batch = args.batch;
  call.channels = args.channels;
  std::copy(shape.in.begin(), shape.in.end(), call.in_shape);
  std::copy(shape.out.begin(), shape.out.end(), call.out_shape);
  std::copy(shape.kernel.begin(), shape.kernel.end(), call.kernel);
  std::copy(shape.stride.begin(), shape.stride.end(), call.stride);
  std::copy(shape.padding.begin(), shape.padding.end(), call.padding);
  std::copy(shape.dilation.begin(), shape.dilation.end(), call.dilation);
  call.spatial = 3;
  call.ceil_mode = args.ceil_mode;
  call.count_include_pad = args.count_include_pad;
  call.adaptive = shape.adaptive ? 1 : 0;
  return function(call);
}

}  // namespace tuff
