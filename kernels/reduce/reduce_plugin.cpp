// A reduction as plug-ins see it.
#include <algorithm>

#include "kernels/common/plugin_call.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/reduce_ops.hpp"

namespace tuff {

tuff_status offer_reduce(const PluginFunction& function, const ReduceArgs& args) {
  const AxisView view = reduce::view_of(args);
  if (view.outer == 0 || view.inner == 0) return TUFF_ERROR_UNSUPPORTED;
  auto call = new_call<tuff_reduce_desc>();
  call.dtype = args.dtype;
  call.op = args.op;
  call.rank = args.rank;
  call.input = address_of(args.input);
  call.output = address_of(args.output);
  std::copy_n(args.shape, args.rank, call.shape);
  call.axis = args.axis;
  call.axis_count = std::max<uint32_t>(args.axis_count, 1);
  call.output_type = reduce::output_type(*reduce::find(args.op), args.dtype, args.output_type);
  call.correction = args.correction;
  return function(call);
}

}  // namespace tuff
