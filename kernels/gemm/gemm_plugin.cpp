// A GEMM as plug-ins see it.
#include "kernels/common/plugin_call.hpp"
#include "kernels/gemm/gemm.hpp"

namespace tuff {
namespace {

tuff_batched_gemm_desc call_of(const GemmArgs& args) {
  const GemmEpilogue& epilogue = args.epilogue;
  auto call = new_call<tuff_batched_gemm_desc>();
  call.dtype = call.a_type = args.a_type;
  call.b_type = args.b_type;
  call.c_type = args.c_type;
  call.accumulate = args.accumulate;
  call.precision = args.precision;
  call.ta = args.ta;
  call.tb = args.tb;
  call.m = args.m;
  call.n = args.n;
  call.k = args.k;
  call.alpha = args.alpha;
  call.beta = args.beta;
  call.a = address_of(args.a);
  call.b = address_of(args.b);
  call.c = address_of(args.c);
  call.lda = args.lda;
  call.ldb = args.ldb;
  call.ldc = args.ldc;
  call.stride_a = args.stride_a;
  call.stride_b = args.stride_b;
  call.stride_c = args.stride_c;
  call.batch_count = args.batch_count;
  call.activation = epilogue.activation;
  call.bias_axis = epilogue.bias_axis;
  call.bias = address_of(epilogue.bias);
  call.residual = address_of(epilogue.residual);
  call.ld_residual = epilogue.ld_residual;
  call.stride_bias = epilogue.stride_bias;
  call.stride_residual = epilogue.stride_residual;
  call.scale_a = address_of(epilogue.scale_a);
  call.scale_b = address_of(epilogue.scale_b);
  call.scale_c = address_of(epilogue.scale_c);
  return call;
}

}  // namespace

tuff_status offer_gemm(const PluginFunction& function, const GemmArgs& args) {
  if (args.m == 0 || args.n == 0 || args.batch_count == 0) return TUFF_ERROR_UNSUPPORTED;
  if (args.c_array == nullptr) return function(call_of(args));
  // A plug-in that computes one of the matrices computes all, because they differ in addresses only; Tuff computes
  // those that it leaves.
  for (uint64_t i = 0; i < args.batch_count; ++i) {
    const GemmMatrix matrix(args, i);
    const tuff_status status = function(call_of(matrix.args));
    const bool left = status == TUFF_ERROR_UNSUPPORTED && function.accepts == nullptr;
    if (left) host_gemm(matrix.args);
    if (status != TUFF_OK && !left) return status;
  }
  return TUFF_OK;
}

}  // namespace tuff
