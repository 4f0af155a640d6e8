// The header's "Pooling" group.
#include <algorithm>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/pool/pool_backward.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

namespace {

// The fields that both descriptors have.
template <typename Desc>
tuff::PoolArgs pool_args(const Desc& desc, bool maximum) {
  tuff::PoolArgs args{};
  args.dtype = desc.dtype;
  args.maximum = maximum;
  args.batch = desc.batch;
  args.channels = desc.channels;
  args.spatial = desc.spatial;
  std::copy_n(desc.in_shape, 3, args.in_shape.begin());
  std::copy_n(desc.out_shape, 3, args.out_shape.begin());
  std::copy_n(desc.kernel, 3, args.kernel.begin());
  std::copy_n(desc.stride, 3, args.stride.begin());
  std::copy_n(desc.padding, 3, args.padding.begin());
  std::copy_n(desc.dilation, 3, args.dilation.begin());
  args.ceil_mode = desc.ceil_mode;
  args.count_include_pad = desc.count_include_pad;
  args.adaptive = desc.adaptive;
  return args;
}

void pool(tuff_stream stream, const tuff_pool_desc& desc, const tuff::OperationOf<tuff::PoolArgs>& operation) {
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), output(target, desc.output, "output"),
      indices(target, desc.indices, "indices");
  tuff::PoolArgs args = pool_args(desc, &operation == &tuff::operations::max_pool);
  args.input = input;
  args.output = output;
  args.indices = indices;
  target->run(operation(args));
}

void gradient(tuff_stream stream, const tuff_pool_backward_desc& desc) {
  tuff::require_reserved(desc.reserved);
  tuff::require_flag(desc.maximum, "maximum");
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), indices(target, desc.indices, "indices"),
      doutput(target, desc.doutput, "doutput"), dinput(target, desc.dinput, "dinput");
  tuff::PoolBackwardArgs args{};
  args.pool = pool_args(desc, desc.maximum != 0);
  args.pool.input = input;
  args.pool.indices = indices;
  args.doutput = doutput;
  args.dinput = dinput;
  target->run(tuff::operations::pool_backward(args));
}

}  // namespace

extern "C" {

tuff_status tuff_max_pool(tuff_stream stream, const tuff_pool_desc* desc) {
  return guarded("tuff_max_pool", [&] { pool(stream, read_structure(desc, "desc"), tuff::operations::max_pool); });
}

tuff_status tuff_avg_pool(tuff_stream stream, const tuff_pool_desc* desc) {
  return guarded("tuff_avg_pool", [&] { pool(stream, read_structure(desc, "desc"), tuff::operations::avg_pool); });
}

tuff_status tuff_pool_backward(tuff_stream stream, const tuff_pool_backward_desc* desc) {
  return guarded("tuff_pool_backward", [&] { gradient(stream, read_structure(desc, "desc")); });
}

}  // extern "C"
