// Scaled dot-product attention over batch elements, heads, a sequence and head_dim.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"
#include "tuff/tuff.h"

namespace tuff {

class Recorder;

// Strides in elements from one batch element, head and row to the next.
struct AttentionStrides {
  uint64_t batch = 0, head = 0, row = 0;
};

// How keys or values are stored.
struct AttentionStored {
  int32_t as = 0;                  // 0: dtype; otherwise TUFF_F8_* or TUFF_QUANT_*, which have no number in common
  const Buffer* scales = nullptr;  // f32, with 8-bit floats
  AttentionStrides scale_strides;  // 0: broadcast
};

struct AttentionArgs {
  int32_t dtype = 0;
  const Buffer *q = nullptr, *k = nullptr, *v = nullptr, *o = nullptr;
  uint64_t batch = 0, heads = 0, kv_heads = 0, seq_q = 0, seq_kv = 0, head_dim = 0, head_dim_v = 0;
  AttentionStrides q_strides, k_strides, v_strides, o_strides;
  double scale = 0;
  int32_t causal = 0;  // TUFF_CAUSAL_*

  double softcap = 0;  // 0: none
  const Buffer* bias = nullptr;
  int32_t bias_type = 0;
  AttentionStrides bias_strides;  // 0: broadcast
  const Buffer* mask = nullptr;   // bytes
  AttentionStrides mask_strides;
  uint64_t window_left = 0, window_right = 0;  // keys, including the one at the row's position in both; 0: all
  const Buffer *q_lengths = nullptr, *kv_lengths = nullptr;
  const Buffer* lse = nullptr;

  AttentionStored k_stored, v_stored;

  uint64_t q_elements() const { return span(q_strides, heads, seq_q, head_dim); }
  uint64_t k_elements() const { return span(k_strides, kv_heads, seq_kv, head_dim); }
  uint64_t v_elements() const { return span(v_strides, kv_heads, seq_kv, head_dim_v); }
  uint64_t o_elements() const { return span(o_strides, heads, seq_q, head_dim_v); }
  uint64_t bias_elements() const { return bias == nullptr ? 0 : span(bias_strides, heads, seq_q, seq_kv); }
  uint64_t mask_elements() const { return mask == nullptr ? 0 : span(mask_strides, heads, seq_q, seq_kv); }
  uint64_t k_bytes() const { return bytes_of(k_stored.as, k_elements()); }
  uint64_t v_bytes() const { return bytes_of(v_stored.as, v_elements()); }
  uint64_t k_scale_elements() const {
    return k_stored.scales == nullptr ? 0 : span(k_stored.scale_strides, kv_heads, seq_kv, 1);
  }
  uint64_t v_scale_elements() const {
    return v_stored.scales == nullptr ? 0 : span(v_stored.scale_strides, kv_heads, seq_kv, 1);
  }
  uint64_t rows() const { return batch * heads * seq_q; }
  bool quantised() const { return k_stored.as != 0 || v_stored.as != 0; }
  // The bytes of so many numbers that are stored in this way: whole blocks, if there are such.
  uint64_t bytes_of(int32_t stored, uint64_t numbers) const;

  // Elements up to the last one used; does not overflow for checked arguments.
  uint64_t span(const AttentionStrides& strides, uint64_t of_heads, uint64_t of_rows, uint64_t length) const {
    return (batch - 1) * strides.batch + (of_heads - 1) * strides.head + (of_rows - 1) * strides.row + length;
  }
};

namespace attention {
// Whether numbers that are stored in this way are in blocks with scales of their own.
inline bool in_blocks(int32_t stored) { return stored == TUFF_QUANT_Q4_0 || stored == TUFF_QUANT_Q8_0; }
inline constexpr uint64_t kStoredBlock = 32;  // numbers of a block
// How keys (`name` is k) or values (v) are stored, given the descriptor's fields.
int32_t stored_as(int32_t dtype, int32_t format, int32_t type, std::string_view name);
}  // namespace attention

// Replaces zeros by their defaults: heads, sizes, strides and, if requested, scale. Errors: strides beyond 2^64.
void complete_attention(AttentionArgs& args, bool default_scale);
void check_attention(const AttentionArgs& args);
void host_attention(const AttentionArgs& args);
tuff_status offer_attention(const PluginFunction& function, const AttentionArgs& args);
// Scratch memory for the state that invocations save between ranges of keys. If all need more, some workgroups are
// computed after others.
inline constexpr uint64_t kMaxAttentionState = uint64_t{1} << 28;

void record_attention(Recorder& recorder, const AttentionArgs& args);
// With another limit, for tests.
void record_attention(Recorder& recorder, const AttentionArgs& args, uint64_t max_state);

// The keys first … end - 1 that a row sees by its position, in a batch element with `rows` rows and `keys` keys: causal
// mask, window and lengths, but not the mask operand.
struct AttentionKeys {
  uint64_t first, end;
};
AttentionKeys attention_keys(const AttentionArgs& args, uint64_t row, uint64_t rows, uint64_t keys);

namespace operations {
extern const OperationOf<AttentionArgs> attention;
}  // namespace operations

}  // namespace tuff
