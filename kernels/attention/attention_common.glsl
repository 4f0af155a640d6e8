// Parameters and helpers shared by all attention kernels.
//# TYPE : 1..3 : TUFF_* type of q, k, v and o; sums are f32
//# RANGES : 0|1 : 1: the keys are processed by several dispatches, one range of keys each
//   All but the last dispatch save each invocation's state (its rows' maxima, sums of weights and outputs so far). All
//   but the first resume from it.
//# PARTS : 0|1 : 1: split-KV: the keys are cut into parts, each with workgroups of its own; another kernel merges them
//   key_begin is then the number of keys of a part, and key_end the number of parts.
//# CAUSAL : 0|1 : 1: rows see only keys up to the diagonal; with EXTENDED the shape says so
//# EXTENDED : 0|1 : 1: the shape is read from memory, because it is then too large for push constants
//   It says whether there are a window, lengths and log-sum-exp. The following three need it; they are defines because
//   they cost time:
//# BIAS : 0..3 : TUFF_* type of the bias; 0: none
//# MASK : 0|1 : 1: there is a mask
//# CAP : 0|1 : 1: there is a soft cap
//# group call : BIAS CAP CAUSAL EXTENDED KEY_FORMAT KEY_SCALES MASK TUFF_EXACT_ARITHMETIC TYPE VALUE_FORMAT VALUE_SCALES : the call's options, for each of its kernels
#include "kernels/common/types.glsl"
#if CAP
#include "kernels/elementwise/math.glsl"
#endif

#define ATTENTION_SHAPE                                                                    \
  TUFF_INDEX q_batch, q_head, q_row, k_batch, k_head, k_row; /* strides, in elements */    \
  TUFF_INDEX v_batch, v_head, v_row, o_batch, o_head, o_row;                               \
  uint seq_q, seq_kv;                                                                      \
  uint dims;        /* head_dim of q and k; from bit 16 on head_dim of v */                \
  uint heads;       /* heads of q; from bit 16 on how many of them share a kv head */      \
  float scale_log2; /* scores * scale_log2 are exponents of two; log2(e) alone if SCALED */ \
  int diagonal;     /* row i's position is key i + diagonal: with CAUSAL it sees keys up to there */

#if EXTENDED
//# struct AttentionShape
struct AttentionShape {
  TUFF_INDEX bias_batch, bias_head, bias_row, mask_batch, mask_head, mask_row;
  ATTENTION_SHAPE
  // With KEY_SCALES and VALUE_SCALES: from one batch element, kv head and key to the next.
  TUFF_INDEX k_scale_batch, k_scale_head, k_scale_key, v_scale_batch, v_scale_head, v_scale_key;
  uint left, right;  // keys that a row sees on either side; the one at its position counts in both
  float scale, cap;  // with BIAS or CAP
  uint present;      // bit 0: lse, 1: lengths of q, 2: lengths of k and v, 3: causal mask bottom-right by the lengths
  uint unused;
};
#endif

layout(push_constant, std430) uniform Push {
#if EXTENDED
  TUFF_BASES(11)
#else
#if RANGES || PARTS
  TUFF_BASES(5)
#else
  TUFF_BASES(4)
#endif
  ATTENTION_SHAPE
#endif
  uint groups;       // workgroups over query rows, output columns, heads and batch elements
  uint first_group;  // with RANGES: those that earlier dispatches have computed
  uint key_begin;    // with RANGES: the first key of the range, a multiple of KEYS,
  uint key_end;      // … and the end of the range
} push;

#if TYPE == TUFF_F32
#define FOUR vec4
#define FOUR_BYTES 16
vec4 from_four(vec4 four) { return four; }
#define TO_FOUR(v) (v)
#else
#define FOUR uvec2
#define FOUR_BYTES 8
#define from_four(four) TUFF_UNPACKED(TYPE, four)
#define TO_FOUR(v) TUFF_PACKED(TYPE, v)
#if TYPE == TUFF_F16
#define TO_PAIR(x, y) tuff_f16_pair(vec2(x, y))
#else
#define TO_PAIR(x, y) tuff_bf16_pair(vec2(x, y))
#endif
#endif
TUFF_READ(0, Query, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(0, Query4, FOUR, FOUR_BYTES)
#if KEY_FORMAT == 0
TUFF_READ(1, Key, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(1, Key4, FOUR, FOUR_BYTES)
#endif
#if VALUE_FORMAT == 0
TUFF_READ(2, Value, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(2, Value4, FOUR, FOUR_BYTES)
#endif
TUFF_WRITE(3, Result, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_WRITE(3, Result4, FOUR, FOUR_BYTES)
#if RANGES
TUFF_READ_WRITE(4, State, float, 4)
#define FIRST_KEY push.key_begin
#define LAST_KEYS(keys) min(keys, push.key_end)
// One value of an invocation's state; consecutive values are `invocations` elements apart.
#define STATE(group, values, value, invocations, invocation) \
  TUFF_AT(State, (TUFF_INDEX(group) * (values) + (value)) * (invocations) + (invocation))
#else
#define FIRST_KEY 0u
#define LAST_KEYS(keys) keys
#endif
#if PARTS
// For each part of each tile: its rows' outputs, references and sums of weights, padded so that the next is aligned.
TUFF_READ_WRITE(4, Parts, float, 4)
TUFF_READ_WRITE(4, Parts4, vec4, 16)
#define STATISTICS(rows) ((2 * (rows) + 3) / 4 * 4)
#endif
#if EXTENDED
TUFF_READ(5, Shape, AttentionShape, 16)  // one element; 16 is its alignment
#define SHAPE TUFF_AT(Shape, 0)
#if BIAS
TUFF_READ(6, Bias, TUFF_STORED(BIAS), TUFF_BYTES(BIAS))
#endif
#if MASK
TUFF_READ(7, Mask, uint8_t, 1)
#endif
// Scales may have the slot of an option that is absent.
#define STORES_LSE (KEY_SCALES != 8 && VALUE_SCALES != 8)
#if STORES_LSE
TUFF_WRITE(8, LogSumExp, float, 4)
#endif
TUFF_READ(9, QueryLengths, int, 4)
TUFF_READ(10, KeyLengths, int, 4)
#else
#define SHAPE push
#endif
#define HEAD_DIM (SHAPE.dims & 0xffffu)
#define HEAD_DIM_V (SHAPE.dims >> 16)
#define QUERY_LENGTH(batch) TUFF_AT(QueryLengths, batch)
#define KEY_LENGTH(batch) TUFF_AT(KeyLengths, batch)
#define SCALE SHAPE.scale
#include "kernels/attention/attention_pairs.glsl"
#include "kernels/attention/attention_stored.glsl"

// One element of a key, for scores that overflow.
#if KEY_FORMAT != 0
#define KEY_NUMBER(at, key) key_number(at, key)
#else
#define KEY_NUMBER(at, key) TUFF_LOADED(TYPE, TUFF_AT(Key, at))
#endif

// Weights, and thus their sum, are scaled by this power of two, so that a sum of weight * value stays finite for 2^24
// keys whatever the values are.
const float HEADROOM = -24.0, HEADROOM_UNDONE = 16777216.0;

// Set by find_head(): the base elements of one head of one batch element.
TUFF_INDEX query_base, key_base, value_base, result_base;

// `number` counts the heads of all batch elements.
void find_head(uint number) {
  const uint heads = SHAPE.heads & 0xffffu, sharing = SHAPE.heads >> 16;
  batch_element = number / heads;
  head = number % heads;
  query_base = batch_element * SHAPE.q_batch + head * SHAPE.q_head;
  key_base = batch_element * SHAPE.k_batch + head / sharing * SHAPE.k_head;
  value_base = batch_element * SHAPE.v_batch + head / sharing * SHAPE.v_head;
  result_base = batch_element * SHAPE.o_batch + head * SHAPE.o_head;
#if KEY_SCALES
  key_scale_base = batch_element * SHAPE.k_scale_batch + head / sharing * SHAPE.k_scale_head;
#endif
#if VALUE_SCALES
  value_scale_base = batch_element * SHAPE.v_scale_batch + head / sharing * SHAPE.v_scale_head;
#endif
  find_lengths();
}

// The keys that a tile of rows from row0 on sees: tile_first … tile_end - 1; all rows see tile_all_from … tile_all_to -
// 1.
uint tile_first, tile_end, tile_all_from, tile_all_to;
void find_tile_keys(uint row0, uint rows) {
  const uint last = min(row0 + rows, SHAPE.seq_q) - 1, last_here = min(last, max(rows_here, 1u) - 1);
  tile_first = first_key_of(row0);
  tile_end = row0 < rows_here ? keys_end_of(last_here) : 0u;
  tile_all_from = first_key_of(last);
  tile_all_to = last < rows_here ? keys_end_of(row0) : 0u;
}

// The weight of a score, given its row's maximum. The difference is taken first: it is exact, or nearly so, where it
// matters, and -infinity (a masked key) gives 0.
float weight(float score, float maximum, float scale_log2) {
  return exp2(fma(score - maximum, scale_log2, HEADROOM));
}
// In kernels that do not update a row's maximum in each step, scores may exceed the row's reference by this many powers
// of two.
const float SLACK = 8.0;

// If a score overflows f32 although its inputs are finite, it is computed again at 2^-140 of its size, with both
// factors times SHRINK, and then scaled back with saturation at the largest f32. The result is NaN if an input is NaN;
// it is
// -infinity, which masks the key, only if an input is infinite.
const float SHRINK = 8.470329472543003e-22, GROW = 1180591620717411303424.0;  // 2^-70, 2^70
float grown_back(float shrunk) {
  const float grown = saturate_finite(saturate_finite(shrunk * GROW) * GROW);
  return shrunk == -TUFF_INFINITY ? shrunk : grown;
}

// The largest number of the result's type. Weights that are rounded to it before they multiply values may add up to
// slightly more than their total, so that a mean of values could leave its range.
#if TYPE == TUFF_F16
const float LARGEST_RESULT = 65504.0;
#elif TYPE == TUFF_BF16
const float LARGEST_RESULT = 3.38953139e38;
#else
const float LARGEST_RESULT = LARGEST;
#endif

// The row's result from its sum of weight * value and its sum of weights; 0 if no key was visible.
float normalised(float sum, float total) {
  const float result = total == 0.0 ? 0.0 : sum / total;
  if (!(abs(sum) <= LARGEST) || !(abs(result) > LARGEST_RESULT)) return result;
  return result < 0.0 ? -LARGEST_RESULT : LARGEST_RESULT;
}

#if EXTENDED
// Stores a row's log-sum-exp, given its maximum and its sum of weights.
void store_log_sum_exp(uint row, float maximum, float total, float scale_log2) {
#if STORES_LSE
  if ((SHAPE.present & 1u) == 0) return;
  const float sum = log2(total * HEADROOM_UNDONE);
  float result = saturate_finite((maximum * scale_log2 + sum) * 0.6931471805599453);
  // An infinite score counts as the largest f32, with the scale not yet applied unless SCALED.
  if (maximum >= LARGEST) result = LARGEST;
  if (total == 0.0) result = -TUFF_INFINITY;
  if (tuff_isnan(total)) result = TUFF_NAN;
  const uint heads = SHAPE.heads & 0xffffu;
  TUFF_AT(LogSumExp, (TUFF_INDEX(batch_element) * heads + head) * SHAPE.seq_q + row) = result;
#endif
}
#endif
