// The gradients of attention by tiles in shared memory, with the weights computed anew from the rows' log-sum-exps
// (FlashAttention: Dao et al. 2022). Neither scores nor weights are ever stored in memory.
//
// Two kernels in one. With KEYS_SIDE a workgroup owns OWN keys, and passes over the query rows of all heads that share
// them; it adds up dk and dv. Otherwise it owns OWN query rows of a head and passes over the keys; it adds up dq. Each
// result thus has one workgroup that adds to it, in an order that is always the same.
//
//   others         For every OTHER rows of the other side: the products q . k, and v . d_o, of all pairs (over head_dim,
//   +-OTHER--+     DEPTH elements at a time through shared memory); from these the weights p and the slopes ds; then
//   | pairs  | O   each of the two passes through shared memory, and is multiplied with the other side's rows:
//   |        | W     KEYS_SIDE   dv += p d_o,  dk += ds q        otherwise   dq += ds k
//   +--------+ N   The sums stay in registers: COLUMNS columns of each result.
//                  LANES neighbouring invocations share TR own rows: each has OTHER/LANES of their pairs and
//                  COLUMNS/LANES of their results, in blocks of 4 that are 4*LANES apart.
//
//# KEYS_SIDE : 0|1 : 1: a workgroup owns keys; 0: query rows
//# FIRST : 0|1 : 1: dk, or dq, is wanted
//# SECOND : 0|1 : 1: dv is wanted, with KEYS_SIDE
//# OWN : 16.. : rows of a workgroup, a multiple of TR
//# OTHER : 16.. : rows of the other side of a step, a multiple of 4 * LANES and of DEPTH
//# COLUMNS : 16.. : columns of a workgroup, a multiple of 4 * LANES
//# TR : 4|8 : rows of an invocation
//# LANES : 4|8|16 : invocations that share these rows
//# DEPTH : 4|8|16 : elements staged at once
//# VEC : 0|1 : 1: rows can be read as vec4: sizes, strides and bases are multiples of four elements
//# RANGES : 0|1 : 1: the steps are made by several dispatches, one range of them each
//   All but the last dispatch save each invocation's sums. All but the first resume from them.
#include "kernels/attention/attention_backward_common.glsl"

layout(push_constant, std430) uniform Push {
#if RANGES
  TUFF_BASES(11)
#else
  TUFF_BASES(10)
#endif
  uint groups;       // workgroups over own rows, columns, heads (of k with KEYS_SIDE) and batch elements
  uint first_group;  // those that earlier dispatches have computed
  uint step_begin, step_end;  // of all steps, which are those of one head after another
} push;
TUFF_READ(0, Query, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(0, Query4, FOUR, FOUR_BYTES)
TUFF_READ(1, Key, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(1, Key4, FOUR, FOUR_BYTES)
TUFF_READ(2, Value, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(2, Value4, FOUR, FOUR_BYTES)
TUFF_READ(3, Slope, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(3, Slope4, FOUR, FOUR_BYTES)
TUFF_READ(4, RowSums, vec2, 8)
TUFF_READ(4, Lengths, ivec2, 8)
TUFF_READ(5, Shape, AttentionBackwardShape, 16)  // one element; 16 is its alignment
#define SHAPE TUFF_AT(Shape, 0)
#if BIAS
TUFF_READ(6, Bias, TUFF_STORED(BIAS), TUFF_BYTES(BIAS))
#endif
#if MASK
TUFF_READ(7, Mask, uint8_t, 1)
#endif
TUFF_WRITE(8, First, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_WRITE(8, First4, FOUR, FOUR_BYTES)
TUFF_WRITE(9, Second, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_WRITE(9, Second4, FOUR, FOUR_BYTES)
#if RANGES
TUFF_READ_WRITE(10, State, float, 4)
#endif
#define ROWS_OF_ALL (TUFF_INDEX(SHAPE.batch) * SHAPE.heads * SHAPE.seq_q)
#define QUERY_LENGTH(batch) TUFF_AT(Lengths, ROWS_OF_ALL + batch).x
#define KEY_LENGTH(batch) TUFF_AT(Lengths, ROWS_OF_ALL + batch).y
#define SCALE SHAPE.scale
#include "kernels/attention/attention_pairs.glsl"

#define NT (OWN / TR * LANES)
layout(local_size_x = NT) in;

const int TK = OTHER / LANES, TC = COLUMNS / LANES;
const int OWN_STRIDE = OWN / 4 + 1, OTHER_STRIDE = OTHER / 4 + 1;  // in vec4; padded for transposing stores
const int STAGE_PRODUCT = DEPTH * (OWN_STRIDE + OTHER_STRIDE), STAGE_ROWS = DEPTH * COLUMNS / 4;
const int STAGE = STAGE_PRODUCT > STAGE_ROWS ? STAGE_PRODUCT : STAGE_ROWS;

//# constant SHARED_BYTES : the shared memory of a workgroup
const int SHARED_BYTES = 16 * (STAGE + OTHER * (OWN / 4));

// Staging: the factors of products by head_dim, or the rows that the pairs' factors are multiplied with.
shared vec4 stage[STAGE];
// The pairs' factors by other row, four own rows in a vec4. Positions are swizzled so that neighbours are in different
// banks.
shared vec4 factors[OTHER * (OWN / 4)];

const uint SWIZZLE = OWN / 4 < 8 ? OWN / 4 - 1 : 7;
uint factor_slot(uint other, uint block) { return other * (OWN / 4) + (block ^ (other / 4 & SWIZZLE)); }

// Invocation (row_lane, lane) has own rows own_of(i) for i < TR, others other_of(j) for j < TK, and the columns of block
// j < TC / 4 from 4 * (j * LANES + lane) on.
uint row_lane, lane;
uint own_block(uint i) { return i / 4 * (OWN / TR) + row_lane; }
uint own_of(uint i) { return own_block(i) * 4 + i % 4; }
uint other_of(uint j) { return j / 4 * (4 * LANES) + lane * 4 + j % 4; }

const int OWN_LOADS = (OWN * DEPTH / 4 + NT - 1) / NT;
const int OTHER_LOADS = (OTHER * DEPTH / 4 + NT - 1) / NT;
const int ROW_LOADS = (DEPTH * COLUMNS / 4 + NT - 1) / NT;

#if VEC
#define FETCH4(into, name, at, left) FETCH4_(into, name, at, left)
#define FETCH4_(into, name, at, left) \
  if ((left) > 0) into = FROM_FOUR(TUFF_AT(name##4, (at) / 4u));
#else
#define FETCH4(into, name, at, left)       \
  [[unroll]] for (int e = 0; e < 4; ++e) { \
    if ((left) > e) into[e] = TUFF_LOADED(TYPE, TUFF_AT(name, (at) + e)); \
  }
#endif

// The products of own rows and others, over `size` elements of each. The last barrier ends the use of `stage`.
#define FETCH_PRODUCT(own, own_base, own_row, other, other_base, other_row, size, d0)             \
  [[unroll]] for (int l = 0; l < OWN_LOADS; ++l) {                                                \
    const uint at = id + l * NT, row = own0 + at / (DEPTH / 4), d = (d0) + at % (DEPTH / 4) * 4;  \
    const int left = at < OWN * DEPTH / 4 && row < own_rows ? int(size) - int(d) : 0;             \
    next_own[l] = vec4(0);                                                                        \
    FETCH4(next_own[l], own, own_base + TUFF_INDEX(row) * own_row + d, left)                      \
  }                                                                                               \
  [[unroll]] for (int l = 0; l < OTHER_LOADS; ++l) {                                              \
    const uint at = id + l * NT, row = other0 + at / (DEPTH / 4), d = (d0) + at % (DEPTH / 4) * 4; \
    const int left = at < OTHER * DEPTH / 4 && row < other_rows ? int(size) - int(d) : 0;         \
    next_other[l] = vec4(0);                                                                      \
    FETCH4(next_other[l], other, other_base + TUFF_INDEX(row) * other_row + d, left)              \
  }
#define PRODUCT(into, own, own_base, own_row, other, other_base, other_row, size)                 \
  [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TK / 4; ++j) into[i][j] = vec4(0); \
  FETCH_PRODUCT(own, own_base, own_row, other, other_base, other_row, size, 0)                    \
  [[dont_unroll]] for (uint d0 = 0; d0 < size; d0 += DEPTH) {                                     \
    [[unroll]] for (int l = 0; l < OWN_LOADS; ++l) {                                              \
      const uint at = id + l * NT, row = at / (DEPTH / 4), d = at % (DEPTH / 4) * 4;              \
      if (at < OWN * DEPTH / 4) {                                                                 \
        [[unroll]] for (int e = 0; e < 4; ++e) stage[(d + e) * OWN_STRIDE + row / 4][row % 4] = next_own[l][e]; \
      }                                                                                           \
    }                                                                                             \
    [[unroll]] for (int l = 0; l < OTHER_LOADS; ++l) {                                            \
      const uint at = id + l * NT, row = at / (DEPTH / 4), d = at % (DEPTH / 4) * 4;              \
      if (at < OTHER * DEPTH / 4) {                                                               \
        [[unroll]] for (int e = 0; e < 4; ++e) {                                                  \
          stage[DEPTH * OWN_STRIDE + (d + e) * OTHER_STRIDE + row / 4][row % 4] = next_other[l][e]; \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
    barrier();                                                                                    \
    FETCH_PRODUCT(own, own_base, own_row, other, other_base, other_row, size, d0 + DEPTH)         \
    [[unroll]] for (int d = 0; d < DEPTH; ++d) {                                                  \
      vec4 x[TR / 4], y[TK / 4];                                                                  \
      [[unroll]] for (int i = 0; i < TR / 4; ++i) x[i] = stage[d * OWN_STRIDE + own_block(i * 4)]; \
      [[unroll]] for (int j = 0; j < TK / 4; ++j) {                                               \
        y[j] = stage[DEPTH * OWN_STRIDE + d * OTHER_STRIDE + j * LANES + lane];                   \
      }                                                                                           \
      [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TK / 4; ++j) {       \
        into[i][j] = fma(vec4(x[i / 4][i % 4]), y[j], into[i][j]);                                \
      }                                                                                           \
    }                                                                                             \
    barrier();                                                                                    \
  }

// Adds the pairs' factors times the others' rows to `sums`. The first barrier also makes `factors` visible, the last one
// ends the use of both arrays.
#define FETCH_ROWS(other, other_base, other_row, size, k0)                                        \
  [[unroll]] for (int l = 0; l < ROW_LOADS; ++l) {                                                \
    const uint at = id + l * NT, k = (k0) + at / (COLUMNS / 4), column = column0 + at % (COLUMNS / 4) * 4; \
    const int left = k < OTHER && at < DEPTH * COLUMNS / 4 && other0 + k < other_rows ? int(size) - int(column) : 0; \
    next_row[l] = vec4(0);                                                                        \
    FETCH4(next_row[l], other, other_base + TUFF_INDEX(other0 + k) * other_row + column, left)    \
  }
#define ACCUMULATE(sums, pairs, other, other_base, other_row, size)                               \
  [[unroll]] for (int i = 0; i < TR / 4; ++i) [[unroll]] for (int j = 0; j < TK; ++j) {           \
    factors[factor_slot(other_of(j), own_block(i * 4))] =                                         \
        vec4(pairs[i * 4][j / 4][j % 4], pairs[i * 4 + 1][j / 4][j % 4], pairs[i * 4 + 2][j / 4][j % 4], \
             pairs[i * 4 + 3][j / 4][j % 4]);                                                     \
  }                                                                                               \
  FETCH_ROWS(other, other_base, other_row, size, 0)                                               \
  [[dont_unroll]] for (uint k0 = 0; k0 < OTHER; k0 += DEPTH) {                                    \
    [[unroll]] for (int l = 0; l < ROW_LOADS; ++l) {                                              \
      if (id + l * NT < DEPTH * COLUMNS / 4) stage[id + l * NT] = next_row[l];                    \
    }                                                                                             \
    barrier();                                                                                    \
    FETCH_ROWS(other, other_base, other_row, size, k0 + DEPTH)                                    \
    if (guarded) {                                                                                \
      /* A masked pair's factor is 0, but 0 * NaN would carry what the row holds into the result. */ \
      [[dont_unroll]] for (uint k = 0; k < DEPTH; ++k) {                                          \
        [[unroll]] for (int i = 0; i < TR; ++i) {                                                 \
          const float w = factors[factor_slot(k0 + k, own_block(i))][i % 4];                      \
          [[unroll]] for (int j = 0; j < TC / 4; ++j) {                                           \
            const vec4 v = stage[k * (COLUMNS / 4) + j * LANES + lane];                           \
            if (w != 0.0) sums[i][j] = fma(vec4(w), v, sums[i][j]);                               \
          }                                                                                       \
        }                                                                                         \
      }                                                                                           \
    } else {                                                                                      \
      [[unroll]] for (int k = 0; k < DEPTH; ++k) {                                                \
        vec4 w[TR / 4], v[TC / 4];                                                                \
        [[unroll]] for (int i = 0; i < TR / 4; ++i) w[i] = factors[factor_slot(k0 + k, own_block(i * 4))]; \
        [[unroll]] for (int j = 0; j < TC / 4; ++j) v[j] = stage[k * (COLUMNS / 4) + j * LANES + lane]; \
        [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TC / 4; ++j) {     \
          sums[i][j] = fma(vec4(w[i / 4][i % 4]), v[j], sums[i][j]);                              \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
    barrier();                                                                                    \
  }

// An invocation's state: its sums.
//# constant STATE_VALUES : the values of an invocation's state
const int STATE_VALUES = (FIRST + SECOND) * TR * TC;
#define STATE_AT(number, i, j) \
  TUFF_AT(State, (TUFF_INDEX(group) * STATE_VALUES + (number) * TR * TC + (i) * TC + (j)) * NT + id)
#define RESUME(sums, number) \
  [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TC; ++j) sums[i][j / 4][j % 4] = STATE_AT(number, i, j);
#define SAVE(sums, number) \
  [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TC; ++j) STATE_AT(number, i, j) = sums[i][j / 4][j % 4];

#if VEC
#define STORE4(name, at, left, result) \
  if ((left) > 0) TUFF_AT(name##4, (at) / 4u) = TO_FOUR(result);
#else
#define STORE4(name, at, left, result)     \
  [[unroll]] for (int e = 0; e < 4; ++e) { \
    if ((left) > e) TUFF_AT(name, (at) + e) = TUFF_ROUNDED(TYPE, result[e]); \
  }
#endif
#define STORE(name, sums, base, row_stride, size, factor)                                         \
  [[unroll]] for (int i = 0; i < TR; ++i) {                                                       \
    const uint row = own0 + own_of(i);                                                            \
    if (row < own_rows) {                                                                         \
      [[unroll]] for (int j = 0; j < TC / 4; ++j) {                                               \
        const uint column = column0 + (j * LANES + lane) * 4;                                     \
        const int left = int(size) - int(column);                                                 \
        const vec4 result = sums[i][j] * factor;                                                  \
        STORE4(name, base + TUFF_INDEX(row) * row_stride + column, left, result)                  \
      }                                                                                           \
    }                                                                                             \
  }

// Of `count` query rows, of which number n is `at`: log-sum-exp and D, and the keys that they see. A row without weights
// sees none.
#define FIND_ROWS(count, at)                                                                      \
  vec2 row_sums[count];                                                                           \
  uint visible_first[count], visible_end[count];                                                  \
  [[unroll]] for (uint n = 0; n < count; ++n) {                                                   \
    const uint row = at;                                                                          \
    row_sums[n] = TUFF_AT(RowSums, sums_base + min(row, seq_q - 1));                              \
    visible_first[n] = first_key_of(row);                                                         \
    visible_end[n] = row_sums[n].x == -TUFF_INFINITY ? 0 : keys_end_of(row);                      \
  }

const float LOG2_E = 1.4426950408889634;

void main() {
  const uint group = tuff_group(), whole = group + push.first_group;
  if (group >= push.groups) return;
  const uint id = gl_LocalInvocationIndex;
  row_lane = id / LANES;
  lane = id % LANES;
  const uint seq_q = SHAPE.seq_q, seq_kv = SHAPE.seq_kv, head_dim = SHAPE.head_dim, head_dim_v = SHAPE.head_dim_v;
  const uint heads = SHAPE.heads, sharing = SHAPE.sharing;
  const uint own_rows = KEYS_SIDE != 0 ? seq_kv : seq_q, other_rows = KEYS_SIDE != 0 ? seq_q : seq_kv;
  const TUFF_INDEX query_row = SHAPE.q_row, key_row = SHAPE.k_row, value_row = SHAPE.v_row, slope_row = SHAPE.d_o_row;
  const float scale = SHAPE.scale;
  const uint columns = max(FIRST != 0 ? head_dim : 0u, SECOND != 0 ? head_dim_v : 0u);
  const uint own_tiles = (own_rows + OWN - 1) / OWN, column_tiles = (columns + COLUMNS - 1) / COLUMNS;
  const uint column0 = whole % column_tiles * COLUMNS, tile = whole / column_tiles;
  // With a causal mask the last rows see the most keys, and the first keys are seen by the most rows: these start first.
  const uint place = tile % own_tiles, own0 = (KEYS_SIDE != 0 ? place : own_tiles - 1 - place) * OWN;
  const uint unit = tile / own_tiles;  // of all batch elements: heads of k and v, or of q
  const uint kv_heads = heads / sharing;
  batch_element = KEYS_SIDE != 0 ? unit / kv_heads : unit / heads;
  const uint kv_head = KEYS_SIDE != 0 ? unit % kv_heads : unit % heads / sharing;
  find_lengths();
  const TUFF_INDEX key_base = batch_element * SHAPE.k_batch + kv_head * SHAPE.k_head;
  const TUFF_INDEX value_base = batch_element * SHAPE.v_batch + kv_head * SHAPE.v_head;

#if FIRST
  vec4 first[TR][TC / 4];
  [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TC / 4; ++j) first[i][j] = vec4(0);
#endif
#if SECOND
  vec4 second[TR][TC / 4];
  [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TC / 4; ++j) second[i][j] = vec4(0);
#endif
#if RANGES
  if (push.step_begin > 0) {
#if FIRST
    RESUME(first, 0)
#endif
#if SECOND
    RESUME(second, FIRST)
#endif
  }
#endif

  vec4 next_own[OWN_LOADS], next_other[OTHER_LOADS], next_row[ROW_LOADS];

#if !KEYS_SIDE
  const TUFF_INDEX sums_base = TUFF_INDEX(unit) * seq_q;
  FIND_ROWS(TR, own0 + own_of(n))
#endif

  // The others that some own row sees, or is seen by; they are the same for all heads.
  uint others_first, others_end;
#if KEYS_SIDE
  // Row i sees keys from i + diagonal - left + 1 to i + diagonal + right - 1.
  const int last_key = int(min(own0 + OWN, keys_here)) - 1;
  others_first = uint(max(int(own0) - diagonal - int(SHAPE.right) + 1, 0));
  others_end = uint(clamp(last_key - diagonal + int(SHAPE.left), 0, int(rows_here)));
  if (own0 >= keys_here) others_end = 0;
#else
  others_first = first_key_of(own0);
  others_end = own0 < rows_here ? keys_end_of(min(own0 + OWN, rows_here) - 1) : 0u;
#endif

  const uint head_steps = (other_rows + OTHER - 1) / OTHER, sharing_here = KEYS_SIDE != 0 ? sharing : 1u;
  [[dont_unroll]] for (uint h = push.step_begin / head_steps; h < sharing_here; ++h) {
    const uint before = h * head_steps;  // steps of earlier heads
    if (before >= push.step_end) break;
    head = KEYS_SIDE != 0 ? kv_head * sharing + h : unit % heads;
    const TUFF_INDEX query_base = batch_element * SHAPE.q_batch + head * SHAPE.q_head;
    const TUFF_INDEX slope_base = batch_element * SHAPE.d_o_batch + head * SHAPE.d_o_head;
#if KEYS_SIDE
    const TUFF_INDEX sums_base = (TUFF_INDEX(batch_element) * heads + head) * seq_q;
#endif
    const uint from = max(others_first / OTHER, push.step_begin > before ? push.step_begin - before : 0u);
    const uint to = min((others_end + OTHER - 1) / OTHER, push.step_end - before);
    [[dont_unroll]] for (uint step = from; step < to; ++step) {
      const uint other0 = step * OTHER;
      vec4 weights[TR][TK / 4];
#if KEYS_SIDE
      PRODUCT(weights, Key, key_base, key_row, Query, query_base, query_row, head_dim)
#else
      PRODUCT(weights, Query, query_base, query_row, Key, key_base, key_row, head_dim)
#endif
#if FIRST
      vec4 slopes[TR][TK / 4];
#if KEYS_SIDE
      PRODUCT(slopes, Value, value_base, value_row, Slope, slope_base, slope_row, head_dim_v)
#else
      PRODUCT(slopes, Slope, slope_base, slope_row, Value, value_base, value_row, head_dim_v)
#endif
#endif

      // For the invocation's query rows: log-sum-exp and D, and which keys they see.
#if KEYS_SIDE
      FIND_ROWS(TK, other0 + other_of(n))
#endif
      [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TK / 4; ++j) {
        const vec4 scores = weights[i][j];
#if SCALED || MASK
        const vec4 scaled = scaled_scores(scores);
#endif
        [[unroll]] for (int e = 0; e < 4; ++e) {
          const uint n = uint(KEYS_SIDE != 0 ? j * 4 + e : i), own = own0 + own_of(i), other = other0 + other_of(j * 4 + e);
          const uint row = KEYS_SIDE != 0 ? other : own, key = KEYS_SIDE != 0 ? own : other;
          const vec2 sums = row_sums[n];
          bool counts = key >= visible_first[n] && key < visible_end[n];
#if SCALED || MASK
          const float masked = masked_score(scaled[e], min(row, seq_q - 1), min(key, seq_kv - 1));
          counts = counts && masked != -TUFF_INFINITY;
#else
          const float masked = scores[e];
#endif
#if SCALED
          const float power = (masked - sums.x) * LOG2_E;
#else
          const float power = fma(masked, scale, -sums.x) * LOG2_E;
#endif
          const float weight = exp2(power);
          weights[i][j][e] = counts ? (weight > 1.0 ? 1.0 : weight) : 0.0;
#if FIRST
          float slope = weights[i][j][e] * (slopes[i][j][e] - sums.y);
#if CAP
          const float ratio = scaled[e] / SHAPE.cap;
          slope *= fma(-ratio, ratio, 1.0);
#endif
          slopes[i][j][e] = counts ? slope : 0.0;
#endif
        }
      }

      // Whether a pair of the tile may not count.
#if KEYS_SIDE
      const uint row_first = other0, row_last = other0 + OTHER - 1, key_first = own0, key_last = own0 + OWN - 1;
#else
      const uint row_first = own0, row_last = own0 + OWN - 1, key_first = other0, key_last = other0 + OTHER - 1;
#endif
      const bool guarded = BIAS != 0 || MASK != 0 || row_last >= rows_here || key_first < first_key_of(row_last) ||
                           key_last >= keys_end_of(row_first);
#if SECOND
      if (column0 < head_dim_v) {
        ACCUMULATE(second, weights, Slope, slope_base, slope_row, head_dim_v)
      }
#endif
#if FIRST
      if (column0 < head_dim) {
#if KEYS_SIDE
        ACCUMULATE(first, slopes, Query, query_base, query_row, head_dim)
#else
        ACCUMULATE(first, slopes, Key, key_base, key_row, head_dim)
#endif
      }
#endif
    }
  }

#if RANGES
  if (push.step_end < head_steps * sharing_here) {
#if FIRST
    SAVE(first, 0)
#endif
#if SECOND
    SAVE(second, FIRST)
#endif
    return;
  }
#endif

#if KEYS_SIDE
#if FIRST
  const TUFF_INDEX first_base = batch_element * SHAPE.dk_batch + kv_head * SHAPE.dk_head, first_row = SHAPE.dk_row;
  STORE(First, first, first_base, first_row, head_dim, scale)
#endif
#if SECOND
  const TUFF_INDEX second_base = batch_element * SHAPE.dv_batch + kv_head * SHAPE.dv_head, second_row = SHAPE.dv_row;
  STORE(Second, second, second_base, second_row, head_dim_v, 1.0)
#endif
#else
  const TUFF_INDEX first_base = batch_element * SHAPE.dq_batch + unit % heads * SHAPE.dq_head, first_row = SHAPE.dq_row;
  STORE(First, first, first_base, first_row, head_dim, scale)
#endif
}
