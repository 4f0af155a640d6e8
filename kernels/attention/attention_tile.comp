// Attention in one pass with online softmax (Milakov and Gimelshein 2018; Dao et al. 2022), by shared-memory tiles. For
// devices with fast shared memory (GPUs). The score matrix is never stored.
//
//   keys           A workgroup owns ROWS query rows of one head and COLUMNS columns of their output. For every KEYS
//   +--KEYS--+     keys it computes the scores (dot products over head_dim, DEPTH elements at a time through shared
//   | scores | R   memory), turns them into weights relative to the row's running maximum, passes the weights through
//   +--------+ O   shared memory and adds weights * values to its output, which stays in registers.
//   | values | W   LANES neighbouring invocations share TR rows: each has KEYS/LANES of their scores and
//   +--------+ S   COLUMNS/LANES of their outputs, in blocks of 4 that are 4*LANES apart.
//
//# ROWS : 4.. : query rows of a workgroup, a multiple of TR
//# KEYS : 16.. : keys of a step, a multiple of 4 * LANES and of DEPTH
//# COLUMNS : 16.. : output columns of a workgroup, a multiple of 4 * LANES
//# TR : 4|8 : rows of an invocation
//# LANES : 4|8|16 : invocations that share these rows
//# DEPTH : 4|8|16 : elements of head_dim staged at once
//# SHUFFLE : 0|1 : 1: the LANES invocations are in one subgroup, and reduce by shuffles
//# VEC : 0|1 : 1: rows can be read as vec4: sizes, strides and bases are multiples of four elements
#include "kernels/attention/attention_common.glsl"

#define NT (ROWS / TR * LANES)
layout(local_size_x = NT) in;

const int TK = KEYS / LANES, TC = COLUMNS / LANES;
const int ROW_STRIDE = ROWS / 4 + 1, KEY_STRIDE = KEYS / 4 + 1;  // in vec4; padded for transposing stores
const int STAGE_SCORES = DEPTH * (ROW_STRIDE + KEY_STRIDE), STAGE_VALUES = DEPTH * COLUMNS / 4;
const int STAGE_REDUCE = SHUFFLE == 1 ? 0 : ROWS * LANES / 4;
const int STAGE_LARGER = STAGE_SCORES > STAGE_VALUES ? STAGE_SCORES : STAGE_VALUES;
const int STAGE = STAGE_LARGER > STAGE_REDUCE ? STAGE_LARGER : STAGE_REDUCE;

//# constant SHARED_BYTES : the shared memory of a workgroup
const int SHARED_BYTES = 16 * (STAGE + KEYS * (ROWS / 4));

// Staging: queries and keys by head_dim, values by key, or partial results of a row.
shared vec4 stage[STAGE];
// Weights by key, four rows in a vec4. Positions are swizzled so that neighbouring keys are in different banks.
shared vec4 weights[KEYS * (ROWS / 4)];

const uint SWIZZLE = ROWS / 4 < 8 ? ROWS / 4 - 1 : 7;
uint weight_slot(uint key, uint row_block) { return key * (ROWS / 4) + (row_block ^ (key / 4 & SWIZZLE)); }

// Invocation (row_lane, lane) has rows row_of(i) for i < TR, keys key_of(j) for j < TK, columns column_of(j).
uint row_lane, lane;
uint row_block(uint i) { return i / 4 * (ROWS / TR) + row_lane; }
uint row_of(uint i) { return row_block(i) * 4 + i % 4; }
uint key_of(uint j) { return j / 4 * (4 * LANES) + lane * 4 + j % 4; }

const int QUERY_LOADS = (ROWS * DEPTH / 4 + NT - 1) / NT;
const int KEY_LOADS = (KEYS * DEPTH / 4 + NT - 1) / NT;
const int VALUE_LOADS = (DEPTH * COLUMNS / 4 + NT - 1) / NT;

#if VEC
#define FETCH4(into, name, at, left) \
  if ((left) > 0) into = from_four(TUFF_AT(name##4, (at) / 4u));
#else
#define FETCH4(into, name, at, left)       \
  [[unroll]] for (int e = 0; e < 4; ++e) { \
    if ((left) > e) into[e] = TUFF_LOADED(TYPE, TUFF_AT(name, (at) + e)); \
  }
#endif

#if SHUFFLE
#define ACROSS_LANES(operation, x)                                      \
  [[unroll]] for (uint step = LANES / 2; step > 0; step /= 2) {         \
    [[unroll]] for (int i = 0; i < TR; ++i) x[i] = operation(x[i], subgroupShuffleXor(x[i], step)); \
  }
#else
#define ACROSS_LANES(operation, x)                                      \
  barrier();                                                            \
  [[unroll]] for (int i = 0; i < TR; ++i) {                             \
    uint at = row_of(i) * LANES + lane;                                 \
    stage[at / 4][at % 4] = x[i];                                       \
  }                                                                     \
  barrier();                                                            \
  [[unroll]] for (int i = 0; i < TR; ++i) {                             \
    [[unroll]] for (uint s = 0; s < LANES; ++s) {                       \
      uint at = row_of(i) * LANES + s;                                  \
      x[i] = s == 0 ? stage[at / 4][0] : operation(x[i], stage[at / 4][s % 4]); \
    }                                                                   \
  }                                                                     \
  barrier();
#endif
float add(float a, float b) { return a + b; }

#if KEY_FORMAT != 0
#define FETCH_KEY4(into, at, left, key) \
  if ((left) > 0) into = key_four(at, left, key);
#else
#define FETCH_KEY4(into, at, left, key) FETCH4(into, Key, at, left)
#endif
#if VALUE_FORMAT != 0
#define FETCH_VALUE4(into, at, left, key) \
  if ((left) > 0) into = value_four(at, left, key);
#else
#define FETCH_VALUE4(into, at, left, key) FETCH4(into, Value, at, left)
#endif

// An invocation's state: for each of its rows the maximum and its part of the total, then its output columns.
//# constant STATE_VALUES : the values of an invocation's state
const int STATE_VALUES = 2 * TR + TR * TC;
#if RANGES
#define STATE_AT(value) STATE(group, STATE_VALUES, value, NT, id)
#define SUM_AT(i, j) STATE_AT(2 * TR + (i) * TC + (j))
#endif

void main() {
  uint group = tuff_group(), whole = group;
  if (group >= push.groups) return;
#if RANGES
  whole += push.first_group;
#endif
  const uint seq_q = SHAPE.seq_q, head_dim = HEAD_DIM, head_dim_v = HEAD_DIM_V;
  const uint row_tiles = (seq_q + ROWS - 1) / ROWS, column_tiles = (head_dim_v + COLUMNS - 1) / COLUMNS;
  uint column0 = whole % column_tiles * COLUMNS;
  uint tile = whole / column_tiles;
  find_head(tile / row_tiles);
  // With a causal mask the last rows see the most keys, so they start first.
  uint row0 = (row_tiles - 1 - tile % row_tiles) * ROWS;
  find_tile_keys(row0, ROWS);
  const TUFF_INDEX query_row = SHAPE.q_row, key_row = SHAPE.k_row, value_row = SHAPE.v_row;
  const float scale_log2 = SHAPE.scale_log2;
#if SHUFFLE
  uint id = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
#else
  uint id = gl_LocalInvocationIndex;
#endif
  row_lane = id / LANES;
  lane = id % LANES;

  vec4 sums[TR][TC / 4];
  float maximum[TR], total[TR];
  [[unroll]] for (int i = 0; i < TR; ++i) {
    maximum[i] = -LARGEST;
    total[i] = 0.0;
    [[unroll]] for (int j = 0; j < TC / 4; ++j) sums[i][j] = vec4(0);
  }

#if RANGES
  if (FIRST_KEY > 0) {
    [[unroll]] for (int i = 0; i < TR; ++i) {
      maximum[i] = STATE_AT(2 * i);
      total[i] = STATE_AT(2 * i + 1);
      [[unroll]] for (int j = 0; j < TC; ++j) sums[i][j / 4][j % 4] = SUM_AT(i, j);
    }
  }
#endif

  const uint keys_end = tile_end;
  vec4 next_query[QUERY_LOADS], next_key[KEY_LOADS], next_value[VALUE_LOADS];

#define FETCH_SCORES(d0)                                                                          \
  [[unroll]] for (int l = 0; l < QUERY_LOADS; ++l) {                                              \
    uint i = id + l * NT, row = row0 + i / (DEPTH / 4), d = (d0) + i % (DEPTH / 4) * 4;           \
    int left = row < seq_q ? int(head_dim - d) : 0;                                               \
    next_query[l] = vec4(0);                                                                      \
    FETCH4(next_query[l], Query, query_base + TUFF_INDEX(row) * query_row + d, left)              \
  }                                                                                               \
  [[unroll]] for (int l = 0; l < KEY_LOADS; ++l) {                                                \
    uint i = id + l * NT, key = key0 + i / (DEPTH / 4), d = (d0) + i % (DEPTH / 4) * 4;           \
    int left = key < keys_end ? int(head_dim - d) : 0;                                            \
    next_key[l] = vec4(0);                                                                        \
    FETCH_KEY4(next_key[l], key_base + TUFF_INDEX(key) * key_row + d, left, key)                  \
  }
#define FETCH_VALUES(k0)                                                                          \
  [[unroll]] for (int l = 0; l < VALUE_LOADS; ++l) {                                              \
    uint i = id + l * NT, k = (k0) + i / (COLUMNS / 4), column = column0 + i % (COLUMNS / 4) * 4; \
    int left = k < KEYS && key0 + k < keys_end ? int(head_dim_v) - int(column) : 0;               \
    next_value[l] = vec4(0);                                                                      \
    FETCH_VALUE4(next_value[l], value_base + TUFF_INDEX(key0 + k) * value_row + column, left, key0 + k) \
  }

  const uint loop_end = LAST_KEYS(keys_end);
  [[dont_unroll]] for (uint key0 = max(FIRST_KEY, tile_first / KEYS * KEYS); key0 < loop_end; key0 += KEYS) {
    vec4 scores[TR][TK / 4];
    [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TK / 4; ++j) scores[i][j] = vec4(0);
    FETCH_SCORES(0)
    [[dont_unroll]] for (uint d0 = 0; d0 < head_dim; d0 += DEPTH) {
      [[unroll]] for (int l = 0; l < QUERY_LOADS; ++l) {
        uint i = id + l * NT, row = i / (DEPTH / 4), d = i % (DEPTH / 4) * 4;
        if (i < ROWS * DEPTH / 4) {
          [[unroll]] for (int e = 0; e < 4; ++e) stage[(d + e) * ROW_STRIDE + row / 4][row % 4] = next_query[l][e];
        }
      }
      [[unroll]] for (int l = 0; l < KEY_LOADS; ++l) {
        uint i = id + l * NT, key = i / (DEPTH / 4), d = i % (DEPTH / 4) * 4;
        if (i < KEYS * DEPTH / 4) {
          [[unroll]] for (int e = 0; e < 4; ++e) {
            stage[DEPTH * ROW_STRIDE + (d + e) * KEY_STRIDE + key / 4][key % 4] = next_key[l][e];
          }
        }
      }
      barrier();
      FETCH_SCORES(d0 + DEPTH)
      [[unroll]] for (int d = 0; d < DEPTH; ++d) {
        vec4 q[TR / 4], k[TK / 4];
        [[unroll]] for (int i = 0; i < TR / 4; ++i) q[i] = stage[d * ROW_STRIDE + row_block(i * 4)];
        [[unroll]] for (int j = 0; j < TK / 4; ++j) {
          k[j] = stage[DEPTH * ROW_STRIDE + d * KEY_STRIDE + j * LANES + lane];
        }
        [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TK / 4; ++j) {
          scores[i][j] = fma(vec4(q[i / 4][i % 4]), k[j], scores[i][j]);
        }
      }
      barrier();
    }
    FETCH_VALUES(0)

    // Scores that overflowed f32 (or are NaN) are computed again, using this invocation's own slots of `weights`:
    // indexing registers with a variable would move them all to memory.
    float magnitude = 0.0;
    [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TK; ++j) {
      magnitude += abs(scores[i][j / 4][j % 4]);
    }
    if (!(magnitude <= LARGEST)) {
      [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TK; ++j) {
        weights[weight_slot(key_of(j), row_block(i))][i % 4] = scores[i][j / 4][j % 4];
      }
      [[dont_unroll]] for (uint j = 0; j < TK; ++j) [[dont_unroll]] for (uint i = 0; i < TR; ++i) {
        uint row = row0 + row_of(i), key = key0 + key_of(j), slot = weight_slot(key_of(j), row_block(i));
        if (row < seq_q && key < keys_end && !(abs(weights[slot][i % 4]) <= LARGEST)) {
          TUFF_INDEX query_at = query_base + TUFF_INDEX(row) * query_row;
          TUFF_INDEX key_at = key_base + TUFF_INDEX(key) * key_row;
          float shrunk = 0.0;
          [[dont_unroll]] for (uint d = 0; d < head_dim; ++d) {
            shrunk = fma(TUFF_LOADED(TYPE, TUFF_AT(Query, query_at + d)) * SHRINK, KEY_NUMBER(key_at + d, key) * SHRINK,
                         shrunk);
          }
          weights[slot][i % 4] = grown_back(shrunk);
        }
      }
      [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TK; ++j) {
        scores[i][j / 4][j % 4] = weights[weight_slot(key_of(j), row_block(i))][i % 4];
      }
    }
#if SCALED || MASK
    [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TK / 4; ++j) {
      scores[i][j] = scaled_scores(scores[i][j]);
      [[unroll]] for (int e = 0; e < 4; ++e) {
        const uint row = min(row0 + row_of(i), seq_q - 1), key = min(key0 + key_of(j * 4 + e), keys_end - 1);
        scores[i][j][e] = masked_score(scores[i][j][e], row, key);
      }
    }
#endif
    const bool hides = key0 < tile_all_from || key0 + KEYS > tile_all_to;
    if (hides) {
      [[unroll]] for (int i = 0; i < TR; ++i) {
        const uint first = first_key_of(row0 + row_of(i)), end = keys_end_of(row0 + row_of(i));
        [[unroll]] for (int j = 0; j < TK; ++j) {
          const uint key = key0 + key_of(j);
          if (key < first || key >= end) scores[i][j / 4][j % 4] = -TUFF_INFINITY;
        }
      }
    }

    // max() may or may not return a NaN. The NaN score's weight is NaN either way, and so is its row's total.
    float largest[TR];
    [[unroll]] for (int i = 0; i < TR; ++i) {
      largest[i] = maximum[i];
      [[unroll]] for (int j = 0; j < TK; ++j) largest[i] = max(largest[i], scores[i][j / 4][j % 4]);
    }
    ACROSS_LANES(max, largest)
    [[unroll]] for (int i = 0; i < TR; ++i) {
      float shrink = exp2((maximum[i] - largest[i]) * scale_log2);
      maximum[i] = largest[i];
      float sum = 0.0;
      [[unroll]] for (int j = 0; j < TK; ++j) {
        float w = weight(scores[i][j / 4][j % 4], largest[i], scale_log2);
        scores[i][j / 4][j % 4] = w;
        sum += w;
      }
      total[i] = fma(total[i], shrink, sum);
      [[unroll]] for (int j = 0; j < TC / 4; ++j) sums[i][j] *= shrink;
    }
    [[unroll]] for (int i = 0; i < TR / 4; ++i) [[unroll]] for (int j = 0; j < TK; ++j) {
      weights[weight_slot(key_of(j), row_block(i * 4))] =
          vec4(scores[i * 4][j / 4][j % 4], scores[i * 4 + 1][j / 4][j % 4], scores[i * 4 + 2][j / 4][j % 4],
               scores[i * 4 + 3][j / 4][j % 4]);
    }

    const bool guarded = BIAS != 0 || MASK != 0 || ((CAUSAL != 0 || EXTENDED != 0) && hides);
    [[dont_unroll]] for (uint k0 = 0; k0 < KEYS; k0 += DEPTH) {
      [[unroll]] for (int l = 0; l < VALUE_LOADS; ++l) {
        uint i = id + l * NT;
        if (i < DEPTH * COLUMNS / 4) stage[i] = next_value[l];
      }
      barrier();
      FETCH_VALUES(k0 + DEPTH)
      if (guarded) {
        // A masked key's weight is 0, but 0 * NaN would carry its value into rows that may not see it.
        [[dont_unroll]] for (uint k = 0; k < DEPTH; ++k) {
          [[unroll]] for (int i = 0; i < TR; ++i) {
            float w = weights[weight_slot(k0 + k, row_block(i))][i % 4];
            [[unroll]] for (int j = 0; j < TC / 4; ++j) {
              vec4 v = stage[k * (COLUMNS / 4) + j * LANES + lane];
              if (w != 0.0) sums[i][j] = fma(vec4(w), v, sums[i][j]);
            }
          }
        }
      } else {
        [[unroll]] for (int k = 0; k < DEPTH; ++k) {
          vec4 w[TR / 4], v[TC / 4];
          [[unroll]] for (int i = 0; i < TR / 4; ++i) w[i] = weights[weight_slot(k0 + k, row_block(i * 4))];
          [[unroll]] for (int j = 0; j < TC / 4; ++j) v[j] = stage[k * (COLUMNS / 4) + j * LANES + lane];
          [[unroll]] for (int i = 0; i < TR; ++i) [[unroll]] for (int j = 0; j < TC / 4; ++j) {
            sums[i][j] = fma(vec4(w[i / 4][i % 4]), v[j], sums[i][j]);
          }
        }
      }
      barrier();
    }
  }

#if RANGES
  if (push.key_end < SHAPE.seq_kv) {
    [[unroll]] for (int i = 0; i < TR; ++i) {
      STATE_AT(2 * i) = maximum[i];
      STATE_AT(2 * i + 1) = total[i];
      [[unroll]] for (int j = 0; j < TC; ++j) SUM_AT(i, j) = sums[i][j / 4][j % 4];
    }
    return;
  }
#endif
  ACROSS_LANES(add, total)
  [[unroll]] for (int i = 0; i < TR; ++i) {
    uint row = row0 + row_of(i);
    if (row < seq_q) {
#if EXTENDED
      if (lane == 0 && column0 == 0) store_log_sum_exp(row, maximum[i], total[i], scale_log2);
#endif
      TUFF_INDEX base = result_base + TUFF_INDEX(row) * SHAPE.o_row;
      [[unroll]] for (int j = 0; j < TC; ++j) {
        uint column = column0 + j / 4 * (4 * LANES) + lane * 4 + j % 4;
        if (column < head_dim_v) {
          TUFF_AT(Result, base + column) = TUFF_ROUNDED(TYPE, normalised(sums[i][j / 4][j % 4], total[i]));
        }
      }
    }
  }
}
