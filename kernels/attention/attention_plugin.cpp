// Attention as plug-ins see it.
#include "kernels/attention/attention.hpp"
#include "kernels/common/plugin_call.hpp"

namespace tuff {
namespace {

void copy_strides(const AttentionStrides& from, uint64_t (&to)[3]) {
  to[0] = from.batch;
  to[1] = from.head;
  to[2] = from.row;
}

}  // namespace

tuff_status offer_attention(const PluginFunction& function, const AttentionArgs& args) {
  if (args.batch == 0 || args.heads == 0) return TUFF_ERROR_UNSUPPORTED;
  if (args.quantised()) return TUFF_ERROR_UNSUPPORTED;  // plug-ins do not know these fields
  auto call = new_call<tuff_attention_desc>();
  call.dtype = args.dtype;
  call.q = address_of(args.q);
  call.k = address_of(args.k);
  call.v = address_of(args.v);
  call.o = address_of(args.o);
  call.batch = args.batch;
  call.heads = args.heads;
  call.kv_heads = args.kv_heads;
  call.seq_q = args.seq_q;
  call.seq_kv = args.seq_kv;
  call.head_dim = args.head_dim;
  call.head_dim_v = args.head_dim_v;
  copy_strides(args.q_strides, call.q_strides);
  copy_strides(args.k_strides, call.k_strides);
  copy_strides(args.v_strides, call.v_strides);
  copy_strides(args.o_strides, call.o_strides);
  call.scale = args.scale;
  call.causal = args.causal;
  call.softcap = args.softcap;
  call.bias = address_of(args.bias);
  call.bias_type = args.bias_type;
  copy_strides(args.bias_strides, call.bias_strides);
  call.mask = address_of(args.mask);
  copy_strides(args.mask_strides, call.mask_strides);
  call.window_left = args.window_left;
  call.window_right = args.window_right;
  call.q_lengths = address_of(args.q_lengths);
  call.kv_lengths = address_of(args.kv_lengths);
  call.lse = address_of(args.lse);
  return function(call);
}

}  // namespace tuff
