// Scaled dot-product attention over [batch, heads, sequence, head_dim].
#pragma once

#include <cstdint>

#include "runtime/buffer.hpp"

namespace tuff {

class Recorder;

struct AttentionArgs {
  int32_t dtype;
  const Buffer *q, *k, *v, *o;
  uint64_t batch, heads, seq_q, seq_kv, head_dim;
  double scale;
  int32_t causal;  // TUFF_CAUSAL_*
};

void check_attention(const AttentionArgs& args);
void host_attention(const AttentionArgs& args);
void record_attention(Recorder& recorder, const AttentionArgs& args);

}  // namespace tuff
