// Operations that move elements as plug-ins see them.
#include <algorithm>

#include "kernels/common/plugin_call.hpp"
#include "kernels/indexing/places.hpp"
#include "kernels/shape/shape.hpp"

namespace tuff {

tuff_status offer_permute(const PluginFunction& function, const PermuteArgs& args) {
  const uint64_t* end = args.shape + args.rank;
  if (std::find(args.shape, end, uint64_t{0}) != end) return TUFF_ERROR_UNSUPPORTED;
  auto call = new_call<tuff_permute_desc>();
  call.dtype = args.dtype;
  call.input = address_of(args.input);
  call.output = address_of(args.output);
  std::copy_n(args.shape, args.rank, call.shape);
  std::copy_n(args.order, args.rank, call.order);
  call.rank = args.rank;
  return function(call);
}

tuff_status offer_cast(const PluginFunction& function, const CastArgs& args) {
  if (args.n == 0) return TUFF_ERROR_UNSUPPORTED;
  auto call = new_call<tuff_cast_desc>();
  call.input_type = args.from;
  call.output_type = args.to;
  call.input = address_of(args.input);
  call.output = address_of(args.output);
  call.n = args.n;
  return function(call);
}

tuff_status offer_gather(const PluginFunction& function, const GatherArgs& args) {
  if (args.index_shape != nullptr || args.coordinates > 1) return TUFF_ERROR_UNSUPPORTED;
  const IndexView view = view_indices(args.index());
  if (view.outer == 0 || view.count == 0 || view.inner == 0) return TUFF_ERROR_UNSUPPORTED;
  auto call = new_call<tuff_backend_gather>();
  call.dtype = args.dtype;
  call.index_type = args.index_type;
  call.negative = args.negative ? 1 : 0;
  call.input = address_of(args.input);
  call.indices = address_of(args.indices);
  call.output = address_of(args.output);
  call.outer = view.outer;
  call.size = view.places;
  call.inner = view.inner;
  call.count = view.count;
  return function(call);
}

}  // namespace tuff
