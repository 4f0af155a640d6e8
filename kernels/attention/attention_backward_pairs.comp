// Weights and slopes of pairs of rows and keys, for the products of attention_backward_products_vulkan.cpp. A block has `rows` rows
// and `keys` keys of each of several heads that share no keys; an invocation has four neighbouring keys of a row.
//
//   scores   in: scale * q . k   out: p = exp(s - log-sum-exp), where s is the score with soft cap and bias; 0 if hidden
//   slopes   in: d_o . v         out: p * (d_o . v - D), times the slope of the cap; 0 if hidden
//   biased                       out: the same without the slope of the cap
//
//# BIASED : 0|1 : 1: that is wanted
//# SLOPES : 0|1 : 1: slopes are wanted
#include "kernels/attention/attention_backward_common.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(10)
  uint items;       // fours of keys, of all rows and heads
  uint first_head;  // the first kv head of all batch elements,
  uint sharer;      // and which of the heads that share it
  uint row0, rows;  // the block's rows, and
  uint key0, keys;  // its keys
} push;
TUFF_READ_WRITE(0, Scores, float, 4)
TUFF_READ_WRITE(1, Slopes, float, 4)
TUFF_READ(2, Numbers, vec2, 8)  // of each row of this part: log-sum-exp and D
TUFF_READ(3, Marks, float, 4)   // of each key of this part: 0 or NaN
TUFF_READ(4, Shape, AttentionBackwardShape, 16)  // one element; 16 is its alignment
#define SHAPE TUFF_AT(Shape, 0)
#if BIAS
TUFF_READ(5, Bias, TUFF_STORED(BIAS), TUFF_BYTES(BIAS))
#endif
#if MASK
TUFF_READ(6, Mask, uint8_t, 1)
#endif
TUFF_READ(7, QueryLengths, int, 4)
TUFF_READ(8, KeyLengths, int, 4)
#if BIASED
TUFF_WRITE(9, Biased, float, 4)
#endif
#define QUERY_LENGTH(batch) TUFF_AT(QueryLengths, batch)
#define KEY_LENGTH(batch) TUFF_AT(KeyLengths, batch)
// Scores are scaled when they get here.
#define SCALE 1.0
#include "kernels/attention/attention_pairs.glsl"

layout(local_size_x_id = 0) in;

const float LOG2_E = 1.4426950408889634;

void main() {
  const uint item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
  if (item >= push.items) return;
  const uint fours = (push.keys + 3) / 4, of_row = item / fours, key_in_block = item % fours * 4;
  const uint unit = of_row / push.rows, row = push.row0 + of_row % push.rows;
  const uint sharing = SHAPE.sharing, seq_q = SHAPE.seq_q, seq_kv = SHAPE.seq_kv;
  const uint kv_heads = SHAPE.heads / sharing, number = push.first_head + unit;
  batch_element = number / kv_heads;
  head = number % kv_heads * sharing + push.sharer;
  find_lengths();
  const vec2 numbers = TUFF_AT(Numbers, (unit * sharing + push.sharer) * seq_q + row);
  const uint visible_first = first_key_of(row), visible_end = numbers.x == -TUFF_INFINITY ? 0u : keys_end_of(row);
  const uint at = of_row * push.keys + key_in_block;
  const uint count = min(push.keys - key_in_block, 4u);
  vec4 scores = vec4(0);
  [[unroll]] for (uint e = 0; e < 4; ++e) {
    scores[e] = TUFF_AT(Scores, at + min(e, count - 1));
  }
#if SCALED || MASK
  const vec4 scaled = scaled_scores(scores);
#endif
  [[unroll]] for (uint e = 0; e < 4; ++e) {
    const uint key = min(push.key0 + key_in_block + e, seq_kv - 1);
    bool counts = key >= visible_first && key < visible_end;
#if SCALED || MASK
    const float score = masked_score(scaled[e], row, key);
    counts = counts && score != -TUFF_INFINITY;
#else
    const float score = scores[e];
#endif
    const float power = exp2((score - numbers.x + TUFF_AT(Marks, unit * seq_kv + key)) * LOG2_E);
    const float weight = counts ? (power > 1.0 ? 1.0 : power) : 0.0;
#if SLOPES
    float slope = weight * (TUFF_AT(Slopes, at + min(e, count - 1)) - numbers.y);
#if BIASED
    if (e < count) TUFF_AT(Biased, at + e) = counts ? slope : 0.0;
#endif
#if CAP
    const float ratio = scaled[e] / SHAPE.cap;
    slope *= fma(-ratio, ratio, 1.0);
#endif
    if (e < count) TUFF_AT(Slopes, at + e) = counts ? slope : 0.0;
#endif
    if (e < count) TUFF_AT(Scores, at + e) = weight;
  }
}
