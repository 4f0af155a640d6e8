// A softmax as plug-ins see it.
#include <algorithm>

#include "kernels/common/check.hpp"
#include "kernels/common/plugin_call.hpp"
#include "kernels/softmax/softmax.hpp"

namespace tuff {

tuff_status offer_softmax(const PluginFunction& function, const SoftmaxArgs& args) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  if (view.outer == 0 || view.axis == 0 || view.inner == 0) return TUFF_ERROR_UNSUPPORTED;
  auto call = new_call<tuff_softmax_desc>();
  call.dtype = args.dtype;
  call.input = address_of(args.input);
  call.output = address_of(args.output);
  std::copy_n(args.shape, args.rank, call.shape);
  call.rank = args.rank;
  call.axis = args.axis;
  call.scale = double{static_cast<float>(args.scale)};
  call.logarithm = args.logarithm;
  call.mask_type = args.mask.type;
  call.mask = address_of(args.mask.buffer);
  if (call.mask != 0) call.mask_rows = args.mask.rows != 0 ? args.mask.rows : view.outer;
  call.mask_repeat = args.mask.repeat;
  return function(call);
}

}  // namespace tuff
