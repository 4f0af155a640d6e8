// What the checks of attention and of its gradients share. Each throws tuff::Error with a message that names the
// argument.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/attention/attention.hpp"

namespace tuff::attention {

struct Extents {
  uint64_t batch, heads, rows, length;
};

// Those of the tensors of a call: q and its gradient, k, v, and o; and of bias and mask.
struct TensorExtents {
  explicit TensorExtents(const AttentionArgs& args)
      : q{args.batch, args.heads, args.seq_q, args.head_dim},
        k{args.batch, args.kv_heads, args.seq_kv, args.head_dim},
        v{args.batch, args.kv_heads, args.seq_kv, args.head_dim_v},
        o{args.batch, args.heads, args.seq_q, args.head_dim_v},
        scores{args.batch, args.heads, args.seq_q, args.seq_kv} {}
  Extents q, k, v, o, scores;
};

// Replaces strides of 0 by those of the dense layout. Error: strides beyond 2^64.
void complete(AttentionStrides& strides, const Extents& extents, std::string_view name);
// Elements from the first one to one past the last.
uint64_t footprint(const AttentionStrides& strides, const Extents& extents, std::string_view name);
// Rows of an output must not overlap.
void check_apart(const AttentionStrides& strides, const Extents& extents, std::string_view name);
// Numbers: causal, scale, softcap, sizes and bias_type.
void check_options(const AttentionArgs& args);
void check_lengths(const AttentionArgs& args);

}  // namespace tuff::attention
