// The gradients of attention by q, k, v and the bias.
#pragma once

#include <cstdint>

#include "kernels/attention/attention.hpp"

namespace tuff {

struct AttentionBackwardArgs {
  AttentionArgs forward;  // o and lse are inputs here
  const Buffer* d_o = nullptr;
  const Buffer *dq = nullptr, *dk = nullptr, *dv = nullptr, *dbias = nullptr;  // null: not wanted
  AttentionStrides d_o_strides, dq_strides, dk_strides, dv_strides, dbias_strides;

  uint64_t d_o_elements() const { return forward.span(d_o_strides, forward.heads, forward.seq_q, forward.head_dim_v); }
  uint64_t dq_elements() const { return forward.span(dq_strides, forward.heads, forward.seq_q, forward.head_dim); }
  uint64_t dk_elements() const { return forward.span(dk_strides, forward.kv_heads, forward.seq_kv, forward.head_dim); }
  uint64_t dv_elements() const {
    return forward.span(dv_strides, forward.kv_heads, forward.seq_kv, forward.head_dim_v);
  }
  // dbias has the axes along which elements of the bias are not shared, and 0 as the stride of the others.
  uint64_t bias_batch() const { return forward.bias_strides.batch == 0 ? 1 : forward.batch; }
  uint64_t bias_heads() const { return forward.bias_strides.head == 0 ? 1 : forward.heads; }
  uint64_t bias_rows() const { return forward.bias_strides.row == 0 ? 1 : forward.seq_q; }
  uint64_t dbias_elements() const {
    if (dbias == nullptr || bias_batch() == 0 || bias_heads() == 0) return 0;
    return (bias_batch() - 1) * dbias_strides.batch + (bias_heads() - 1) * dbias_strides.head +
           (bias_rows() - 1) * dbias_strides.row + forward.seq_kv;
  }
};

// Replaces zeros by their defaults, as complete_attention(args, true).
void complete_attention_backward(AttentionBackwardArgs& args);
void check_attention_backward(const AttentionBackwardArgs& args);
void host_attention_backward(const AttentionBackwardArgs& args);
void record_attention_backward(Recorder& recorder, const AttentionBackwardArgs& args);
// With another limit of the memory for sums that are passed from one dispatch to the next, for tests.
void record_attention_backward(Recorder& recorder, const AttentionBackwardArgs& args, uint64_t max_state);

namespace operations {
extern const OperationOf<AttentionBackwardArgs> attention_backward;
}  // namespace operations

}  // namespace tuff
