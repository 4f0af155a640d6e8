// Entry points of the header's attention group. The flat function fills in the descriptor of its _ex sibling.
#include "kernels/attention/attention.hpp"
#include "kernels/attention/attention_backward.hpp"

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

namespace {

tuff::AttentionStrides strides(const uint64_t (&of)[3]) { return {of[0], of[1], of[2]}; }

// The operands that are named alike in both directions.
struct AttentionOperands {
  template <typename Target, typename Desc>
  AttentionOperands(const Target& target, const Desc& desc)
      : q(target, desc.q, "q"),
        k(target, desc.k, "k"),
        v(target, desc.v, "v"),
        o(target, desc.o, "o"),
        bias(target, desc.bias, "bias"),
        mask(target, desc.mask, "mask"),
        q_lengths(target, desc.q_lengths, "q_lengths"),
        kv_lengths(target, desc.kv_lengths, "kv_lengths"),
        lse(target, desc.lse, "lse") {}
  Operand q, k, v, o, bias, mask, q_lengths, kv_lengths, lse;
};

template <typename Desc>
tuff::AttentionArgs attention_of(const Desc& desc, const AttentionOperands& operands) {
  tuff::AttentionArgs args{};
  args.dtype = desc.dtype;
  args.q = operands.q;
  args.k = operands.k;
  args.v = operands.v;
  args.o = operands.o;
  args.batch = desc.batch;
  args.heads = desc.heads;
  args.kv_heads = desc.kv_heads;
  args.seq_q = desc.seq_q;
  args.seq_kv = desc.seq_kv;
  args.head_dim = desc.head_dim;
  args.head_dim_v = desc.head_dim_v;
  args.q_strides = strides(desc.q_strides);
  args.k_strides = strides(desc.k_strides);
  args.v_strides = strides(desc.v_strides);
  args.o_strides = strides(desc.o_strides);
  args.scale = desc.scale;
  args.causal = desc.causal;
  args.softcap = desc.softcap;
  args.bias = operands.bias;
  args.bias_type = desc.bias_type;
  args.bias_strides = strides(desc.bias_strides);
  args.mask = operands.mask;
  args.mask_strides = strides(desc.mask_strides);
  args.window_left = desc.window_left;
  args.window_right = desc.window_right;
  args.q_lengths = operands.q_lengths;
  args.kv_lengths = operands.kv_lengths;
  args.lse = operands.lse;
  return args;
}

// default_scale: a scale of 0 selects the default, which only some callers may rely on.
void attention(tuff_stream stream, const tuff_attention_desc& desc, bool default_scale) {
  const auto target = acquire_stream(stream);
  const AttentionOperands operands(target, desc);
  const Operand k_scales(target, desc.k_scales, "k_scales"), v_scales(target, desc.v_scales, "v_scales");
  tuff::AttentionArgs args = attention_of(desc, operands);
  args.k_stored.as = tuff::attention::stored_as(desc.dtype, desc.k_format, desc.k_type, "k");
  args.v_stored.as = tuff::attention::stored_as(desc.dtype, desc.v_format, desc.v_type, "v");
  args.k_stored.scales = k_scales;
  args.v_stored.scales = v_scales;
  args.k_stored.scale_strides = strides(desc.k_scale_strides);
  args.v_stored.scale_strides = strides(desc.v_scale_strides);
  complete_attention(args, default_scale);
  target->run(tuff::operations::attention(args));
}

}  // namespace

extern "C" {

tuff_status tuff_attention(tuff_stream stream, int32_t dtype, tuff_buffer q, tuff_buffer k, tuff_buffer v,
                           tuff_buffer o, uint64_t batch, uint64_t heads, uint64_t seq_q, uint64_t seq_kv,
                           uint64_t head_dim, double scale, int32_t causal) {
  return guarded("tuff_attention", [&] {
    tuff_attention_desc desc{};
    desc.dtype = dtype;
    desc.q = q;
    desc.k = k;
    desc.v = v;
    desc.o = o;
    desc.batch = batch;
    desc.heads = heads;
    desc.seq_q = seq_q;
    desc.seq_kv = seq_kv;
    desc.head_dim = head_dim;
    desc.scale = scale;
    desc.causal = causal;
    attention(stream, desc, false);
  });
}

tuff_status tuff_attention_ex(tuff_stream stream, const tuff_attention_desc* desc) {
  return guarded("tuff_attention_ex", [&] {
    const tuff_attention_desc wanted = read_structure(desc, "desc");
    tuff::require_reserved(wanted.reserved);
    tuff::require_reserved(wanted.reserved2, "desc->reserved2");
    attention(stream, wanted, true);
  });
}

tuff_status tuff_attention_backward(tuff_stream stream, const tuff_attention_backward_desc* desc) {
  return guarded("tuff_attention_backward", [&] {
    const tuff_attention_backward_desc wanted = read_structure(desc, "desc");
    const auto target = acquire_stream(stream);
    const AttentionOperands operands(target, wanted);
    const Operand d_o(target, wanted.d_o, "d_o"), dq(target, wanted.dq, "dq"), dk(target, wanted.dk, "dk"),
        dv(target, wanted.dv, "dv"), dbias(target, wanted.dbias, "dbias");
    tuff::AttentionBackwardArgs args{};
    args.forward = attention_of(wanted, operands);
    args.d_o = d_o;
    args.dq = dq;
    args.dk = dk;
    args.dv = dv;
    args.dbias = dbias;
    args.d_o_strides = strides(wanted.d_o_strides);
    args.dq_strides = strides(wanted.dq_strides);
    args.dk_strides = strides(wanted.dk_strides);
    args.dv_strides = strides(wanted.dv_strides);
    args.dbias_strides = strides(wanted.dbias_strides);
    complete_attention_backward(args);
    target->run(tuff::operations::attention_backward(args));
  });
}

}  // extern "C"
