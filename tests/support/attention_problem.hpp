// Attention with its tensors, solved in f64 with a bound for each element of the output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/tensor.hpp"

namespace tuff_test {

struct AttentionShape {
  uint64_t batch = 1, heads = 1, seq_q = 1, seq_kv = 1, head_dim = 1;
  int32_t causal = TUFF_CAUSAL_NONE;
  double scale = 0;  // 0: 1 / sqrt(head_dim), rounded to f32
  float spread = 1;  // q and k lie in [-spread, spread)
  uint64_t shift = 0;

  float scale_used() const;
  uint64_t queries() const { return batch * heads * seq_q * head_dim; }
  uint64_t keys() const { return batch * heads * seq_kv * head_dim; }
  // Keys that query i may see: the first so many.
  uint64_t visible(uint64_t query) const;
  std::string name() const;
  double work() const;
};

// Output of softmax(scale q k^T + mask) v, and how far an f32 result may be from it.
Expected solve_attention(const AttentionShape& shape, const std::vector<float>& q, const std::vector<float>& k,
                         const std::vector<float>& v);

tuff_status call_attention(tuff_stream stream, const AttentionShape& shape, tuff_buffer q, tuff_buffer k, tuff_buffer v,
                           tuff_buffer o);

void run_attention(tuff_context context, const AttentionShape& shape);

}  // namespace tuff_test
