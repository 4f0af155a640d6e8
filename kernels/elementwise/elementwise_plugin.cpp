// Element-wise operations as plug-ins see them.
#include <algorithm>

#include "kernels/common/plugin_call.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"

namespace tuff {

tuff_status offer_unary(const PluginFunction& function, const UnaryArgs& args) {
  if (args.n == 0) return TUFF_ERROR_UNSUPPORTED;
  auto call = new_call<tuff_unary_desc>();
  call.dtype = args.dtype;
  call.op = args.op;
  call.input = address_of(args.input);
  call.output = address_of(args.output);
  call.n = args.n;
  call.alpha = double{elementwise::alpha_of(*elementwise::find(elementwise::kUnaryOps, args.op), args.alpha)};
  return function(call);
}

tuff_status offer_binary(const PluginFunction& function, const BinaryArgs& args) {
  const uint64_t n = result_count(args);
  if (n == 0) return TUFF_ERROR_UNSUPPORTED;
  auto call = new_call<tuff_binary_desc>();
  call.dtype = args.dtype;
  call.op = args.op;
  call.a = address_of(args.a);
  call.b = address_of(args.b);
  call.output = address_of(args.output);
  call.n = n;
  if (repeats_an_operand(args)) {
    call.rank = args.rank;
    std::copy_n(args.a_shape, args.rank, call.a_shape);
    std::copy_n(args.b_shape, args.rank, call.b_shape);
  }
  return function(call);
}

}  // namespace tuff
