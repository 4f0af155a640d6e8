// Attention in one pass with online softmax, in the registers of one subgroup. For CPU devices, where shared memory and
// barriers cost as much as any other memory. The score matrix is never stored.
//
// A workgroup is one subgroup of WIDTH lanes. It owns ROW_BLOCKS * WIDTH query rows of one head and
// COLUMN_BLOCKS * 4 * WIDTH columns of their output, and takes KEY_BLOCKS * WIDTH keys at a time:
//   scores   a lane stands for a key: it has the scores of all rows for its keys; query elements are loaded by
//            lanes that stand for rows, and are passed to the others by a shuffle
//   softmax  maxima and sums across lanes leave row i's result in lane i
//   output   a lane stands for four neighbouring columns; weights come by a shuffle from the lane of their key
// A shuffle from a known lane is one instruction, whereas subgroupBroadcast is a loop over the lanes on Mesa 22.3. A
// load is a gather that costs as much as a dozen multiply-adds; loading 8 bytes costs no more than loading 4, hence
// PAIRS.
//
//# WIDTH : 1|2|4|8|16|32|64|128 : subgroup size
//# ROW_BLOCKS : 1.. : query rows of a workgroup, in units of WIDTH
//# KEY_BLOCKS : 1.. : keys of a step, in units of WIDTH
//# COLUMN_BLOCKS : 1.. : output columns of a workgroup, in units of 4 * WIDTH
//# VEC : 0|1 : 1: rows can be read as vec4: sizes, strides and bases are multiples of four elements
//# PAIRS : 0|1 : 1: elements are loaded as 64-bit integers
#if PAIRS
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#include "kernels/attention/attention_common.glsl"
#include "kernels/common/pointer.glsl"

#if PAIRS
#if TYPE == TUFF_F32
#define FOUR_64 u64vec2
vec4 unpack(u64vec2 pairs) { return vec4(uintBitsToFloat(unpack32(pairs.x)), uintBitsToFloat(unpack32(pairs.y))); }
#else
#define FOUR_64 uint64_t
vec4 unpack(uint64_t bits) { return from_four(unpack32(bits)); }
#endif
#else
#define FOUR_64 FOUR
#define unpack from_four
#endif
TUFF_READ(0, QueryFour, FOUR_64, FOUR_BYTES)
#if KEY_FORMAT == 0
TUFF_READ(1, KeyFour, FOUR_64, FOUR_BYTES)
#endif
#if VALUE_FORMAT == 0
TUFF_READ(2, ValueFour, FOUR_64, FOUR_BYTES)
#endif

layout(local_size_x = WIDTH) in;
#define ROWS (ROW_BLOCKS * WIDTH)
#define KEYS (KEY_BLOCKS * WIDTH)
#define COLUMNS (COLUMN_BLOCKS * 4 * WIDTH)

#if VEC
#define POINTER(name, pointer) TUFF_POINTER(name##Four, pointer, 0)
#define LOAD4(into, name, pointer, at, left) into = unpack(TUFF_FROM(name##Four, pointer, (at) / 4));
#else
#define POINTER(name, pointer) TUFF_POINTER(name, pointer, 0)
// Elements past the row's end read its last one and are replaced by zero.
#define LOAD4(into, name, pointer, at, left)                                               \
  [[unroll]] for (int e_ = 0; e_ < 4; ++e_) {                                              \
    float value_ = TUFF_LOADED(TYPE, TUFF_FROM(name, pointer, (at) + uint(min(e_, max(int(left) - 1, 0))))); \
    into[e_] = e_ < int(left) ? value_ : 0.0;                                              \
  }
#endif

#if KEY_FORMAT != 0
#define LOAD_KEY4(into, at, left, key) into = key_four(at, int(left), key);
#else
#define LOAD_KEY4(into, at, left, key) LOAD4(into, Key, key_pointer, at, left)
#endif
#if VALUE_FORMAT != 0
#define LOAD_VALUE4(into, at, left, key) into = value_four(at, int(left), key);
#else
#define LOAD_VALUE4(into, at, left, key) LOAD4(into, Value, value_pointer, at, left)
#endif

float reduce_pair(bool sum, float a, float b) { return sum ? a + b : max(a, b); }

// Returns in lane i the sum (or maximum) of x[i] over all lanes. Each step exchanges half of the values and halves
// their number: WIDTH - 1 shuffles instead of WIDTH * log2(WIDTH).
float across_lanes(bool sum, float x[WIDTH], uint lane) {
  [[unroll]] for (uint step = WIDTH / 2; step > 0; step /= 2) {
    bool upper = (lane & step) != 0;
    [[unroll]] for (uint i = 0; i < step; ++i) {
      float sent = upper ? x[i] : x[i + step];
      float kept = upper ? x[i + step] : x[i];
      x[i] = reduce_pair(sum, kept, subgroupShuffleXor(sent, step));
    }
  }
  return x[0];
}

// Adds the dot products of all rows and keys of a step, with both factors times `factor`.
#define ADD_PRODUCTS(into, factor)                                                                           \
  [[dont_unroll]] for (uint d = 0; d < head_dim; d += 4) {                                                   \
    vec4 q[ROW_BLOCKS], k[KEY_BLOCKS];                                                                       \
    [[unroll]] for (int r = 0; r < ROW_BLOCKS; ++r) {                                                        \
      LOAD4(q[r], Query, query_pointer, query_at[r] + d, head_dim - d)                                       \
      q[r] *= factor;                                                                                        \
    }                                                                                                        \
    [[unroll]] for (int b = 0; b < KEY_BLOCKS; ++b) {                                                        \
      LOAD_KEY4(k[b], key_at[b] + d, head_dim - d, min(key0 + b * WIDTH + lane, seq_kv - 1))                 \
      k[b] *= factor;                                                                                        \
    }                                                                                                        \
    [[unroll]] for (int i = 0; i < ROWS; ++i) [[unroll]] for (int e = 0; e < 4; ++e) {                       \
      float x = subgroupShuffle(q[i / WIDTH][e], i % WIDTH);                                                 \
      [[unroll]] for (int b = 0; b < KEY_BLOCKS; ++b) into[i][b] = fma(x, k[b][e], into[i][b]);              \
    }                                                                                                        \
  }

// An invocation's state: maximum and total of each of the rows it stands for, then its output columns of all rows.
//# constant STATE_VALUES : the values of an invocation's state
const int STATE_VALUES = 2 * ROW_BLOCKS + 4 * ROWS * COLUMN_BLOCKS;
#if RANGES
#define STATE_AT(value) STATE(group, STATE_VALUES, value, WIDTH, lane)
#define SUM_AT(i, c, e) STATE_AT(2 * ROW_BLOCKS + ((i) * COLUMN_BLOCKS + (c)) * 4 + (e))
#endif

void main() {
  uint group = tuff_group(), whole = group;
  if (group >= push.groups) return;
#if RANGES
  whole += push.first_group;
#endif
  uint lane = gl_SubgroupInvocationID;
  // Parameters that the loops need, read once.
  const uint head_dim = HEAD_DIM, head_dim_v = HEAD_DIM_V, seq_q = SHAPE.seq_q, seq_kv = SHAPE.seq_kv;
  const uint row_tiles = (seq_q + ROWS - 1) / ROWS, column_tiles = (head_dim_v + COLUMNS - 1) / COLUMNS;
  const TUFF_INDEX query_row = SHAPE.q_row, key_row = SHAPE.k_row, value_row = SHAPE.v_row;
  const float scale_log2 = SHAPE.scale_log2;
  POINTER(Query, query_pointer);
#if KEY_FORMAT == 0
  POINTER(Key, key_pointer);
#endif
#if VALUE_FORMAT == 0
  POINTER(Value, value_pointer);
#endif
#if VEC
  TUFF_POINTER(Result4, result4_pointer, 0);
#else
  TUFF_POINTER(Result, result_pointer, 0);
#endif

  uint column0 = whole % column_tiles * COLUMNS;
  uint tile = whole / column_tiles;
  find_head(tile / row_tiles);
  // With a causal mask the last rows see the most keys, so they start first.
  uint row0 = (row_tiles - 1 - tile % row_tiles) * ROWS;
  find_tile_keys(row0, ROWS);

  // Lane i stands for rows i, i + WIDTH, …; rows beyond the last repeat it and are not stored.
  TUFF_INDEX query_at[ROW_BLOCKS];
  float maximum[ROW_BLOCKS], total[ROW_BLOCKS];
  uint visible_end[ROW_BLOCKS], visible_first[ROW_BLOCKS];
  [[unroll]] for (int r = 0; r < ROW_BLOCKS; ++r) {
    uint row = min(row0 + r * WIDTH + lane, seq_q - 1);
    query_at[r] = query_base + TUFF_INDEX(row) * query_row;
    visible_end[r] = keys_end_of(row);
    visible_first[r] = first_key_of(row);
    maximum[r] = -LARGEST;
    total[r] = 0.0;
  }
  vec4 sums[ROWS][COLUMN_BLOCKS];
  [[unroll]] for (int i = 0; i < ROWS; ++i) {
    [[unroll]] for (int c = 0; c < COLUMN_BLOCKS; ++c) sums[i][c] = vec4(0);
  }
#if RANGES
  if (FIRST_KEY > 0) {
    [[unroll]] for (int r = 0; r < ROW_BLOCKS; ++r) {
      maximum[r] = STATE_AT(2 * r);
      total[r] = STATE_AT(2 * r + 1);
    }
    [[unroll]] for (int i = 0; i < ROWS; ++i) [[unroll]] for (int c = 0; c < COLUMN_BLOCKS; ++c) {
      [[unroll]] for (int e = 0; e < 4; ++e) sums[i][c][e] = SUM_AT(i, c, e);
    }
  }
#endif
  // Columns beyond the last repeat it, so that all lanes load.
  uint column_at[COLUMN_BLOCKS];
  int columns_left[COLUMN_BLOCKS];
  [[unroll]] for (int c = 0; c < COLUMN_BLOCKS; ++c) {
    uint column = column0 + (c * WIDTH + lane) * 4;
    columns_left[c] = int(head_dim_v) - int(column);
    column_at[c] = columns_left[c] > 0 ? column : 0;
  }

  const uint loop_end = LAST_KEYS(tile_end);
  [[dont_unroll]] for (uint key0 = max(FIRST_KEY, tile_first / KEYS * KEYS); key0 < loop_end; key0 += KEYS) {
    TUFF_INDEX key_at[KEY_BLOCKS];
    [[unroll]] for (int b = 0; b < KEY_BLOCKS; ++b) {
      key_at[b] = key_base + TUFF_INDEX(min(key0 + b * WIDTH + lane, seq_kv - 1)) * key_row;
    }
    float scores[ROWS][KEY_BLOCKS];
    [[unroll]] for (int i = 0; i < ROWS; ++i) [[unroll]] for (int b = 0; b < KEY_BLOCKS; ++b) scores[i][b] = 0.0;
    ADD_PRODUCTS(scores, 1.0)

    // Scores that overflowed f32 (or are NaN) are computed again.
    float magnitude = 0.0;
    [[unroll]] for (int i = 0; i < ROWS; ++i) [[unroll]] for (int b = 0; b < KEY_BLOCKS; ++b) {
      magnitude += abs(scores[i][b]);
    }
    if (subgroupBallot(!(magnitude <= LARGEST)) != uvec4(0)) {
      float shrunk[ROWS][KEY_BLOCKS];
      [[unroll]] for (int i = 0; i < ROWS; ++i) [[unroll]] for (int b = 0; b < KEY_BLOCKS; ++b) shrunk[i][b] = 0.0;
      ADD_PRODUCTS(shrunk, SHRINK)
      [[unroll]] for (int i = 0; i < ROWS; ++i) [[unroll]] for (int b = 0; b < KEY_BLOCKS; ++b) {
        scores[i][b] = abs(scores[i][b]) <= LARGEST ? scores[i][b] : grown_back(shrunk[i][b]);
      }
    }
#if SCALED || MASK
    [[unroll]] for (int i = 0; i < ROWS; i += 4) [[unroll]] for (int b = 0; b < KEY_BLOCKS; ++b) {
      const vec4 scaled = scaled_scores(vec4(scores[i][b], scores[i + 1][b], scores[i + 2][b], scores[i + 3][b]));
      [[unroll]] for (int e = 0; e < 4; ++e) {
        const uint row = min(row0 + i + e, seq_q - 1), key = min(key0 + b * WIDTH + lane, seq_kv - 1);
        scores[i + e][b] = masked_score(scaled[e], row, key);
      }
    }
#endif
    bool hides = key0 + KEYS > tile_all_to || key0 < tile_all_from;
    if (hides) {
      [[unroll]] for (int i = 0; i < ROWS; ++i) {
        uint end = subgroupShuffle(visible_end[i / WIDTH], i % WIDTH);
#if EXTENDED
        uint first = subgroupShuffle(visible_first[i / WIDTH], i % WIDTH);
#else
        const uint first = 0;
#endif
        [[unroll]] for (int b = 0; b < KEY_BLOCKS; ++b) {
          const uint key = key0 + b * WIDTH + lane;
          if (key >= end || key < first) scores[i][b] = -TUFF_INFINITY;
        }
      }
    }

    // max() may or may not return a NaN. The NaN score's weight is NaN either way, and so is its row's total.
    [[unroll]] for (int r = 0; r < ROW_BLOCKS; ++r) {
      float partial[WIDTH];
      [[unroll]] for (int i = 0; i < WIDTH; ++i) {
        partial[i] = scores[r * WIDTH + i][0];
        [[unroll]] for (int b = 1; b < KEY_BLOCKS; ++b) partial[i] = max(partial[i], scores[r * WIDTH + i][b]);
      }
      float largest = max(maximum[r], across_lanes(false, partial, lane));
      float shrink = exp2((maximum[r] - largest) * scale_log2);
      maximum[r] = largest;
      [[unroll]] for (int i = 0; i < WIDTH; ++i) {
        float row_maximum = subgroupShuffle(largest, i), row_shrink = subgroupShuffle(shrink, i);
        partial[i] = 0.0;
        [[unroll]] for (int b = 0; b < KEY_BLOCKS; ++b) {
          float w = weight(scores[r * WIDTH + i][b], row_maximum, scale_log2);
          scores[r * WIDTH + i][b] = w;
          partial[i] += w;
        }
        [[unroll]] for (int c = 0; c < COLUMN_BLOCKS; ++c) sums[r * WIDTH + i][c] *= row_shrink;
      }
      total[r] = fma(total[r], shrink, across_lanes(true, partial, lane));
    }

    // Loops instead of branches: Mesa 22.3 executes both sides of a branch, but skips a loop that no lane enters.
    // Masked keys, and keys beyond the last (which repeat it), have weight 0; 0 times infinity or NaN would give NaN.
    const bool guarded = BIAS != 0 || MASK != 0 || hides;
    [[dont_unroll]] for (uint j = guarded ? WIDTH : 0; j < WIDTH; ++j) {
      [[unroll]] for (int b = 0; b < KEY_BLOCKS; ++b) {
        const uint key = min(key0 + b * WIDTH + j, seq_kv - 1);
        TUFF_INDEX at = value_base + TUFF_INDEX(key) * value_row;
        vec4 v[COLUMN_BLOCKS];
        [[unroll]] for (int c = 0; c < COLUMN_BLOCKS; ++c) {
          LOAD_VALUE4(v[c], at + column_at[c], columns_left[c], key)
        }
        [[unroll]] for (int i = 0; i < ROWS; ++i) {
          float w = subgroupShuffle(scores[i][b], j);
          [[unroll]] for (int c = 0; c < COLUMN_BLOCKS; ++c) sums[i][c] = fma(vec4(w), v[c], sums[i][c]);
        }
      }
    }
    [[dont_unroll]] for (uint j = guarded ? 0 : WIDTH; j < WIDTH; ++j) {
      [[unroll]] for (int b = 0; b < KEY_BLOCKS; ++b) {
        const uint key = min(key0 + b * WIDTH + j, seq_kv - 1);
        TUFF_INDEX at = value_base + TUFF_INDEX(key) * value_row;
        vec4 v[COLUMN_BLOCKS];
        [[unroll]] for (int c = 0; c < COLUMN_BLOCKS; ++c) {
          LOAD_VALUE4(v[c], at + column_at[c], columns_left[c], key)
        }
        [[unroll]] for (int i = 0; i < ROWS; ++i) {
          float w = subgroupShuffle(scores[i][b], j);
          [[unroll]] for (int c = 0; c < COLUMN_BLOCKS; ++c) {
            sums[i][c] = w != 0.0 ? fma(vec4(w), v[c], sums[i][c]) : sums[i][c];
          }
        }
      }
    }
  }

#if RANGES
  if (push.key_end < seq_kv) {
    [[unroll]] for (int r = 0; r < ROW_BLOCKS; ++r) {
      STATE_AT(2 * r) = maximum[r];
      STATE_AT(2 * r + 1) = total[r];
    }
    [[unroll]] for (int i = 0; i < ROWS; ++i) [[unroll]] for (int c = 0; c < COLUMN_BLOCKS; ++c) {
      [[unroll]] for (int e = 0; e < 4; ++e) SUM_AT(i, c, e) = sums[i][c][e];
    }
    return;
  }
#endif

#if EXTENDED
  [[unroll]] for (int r = 0; r < ROW_BLOCKS; ++r) {
    const uint row = row0 + r * WIDTH + lane;
    if (column0 == 0 && row < seq_q) store_log_sum_exp(row, maximum[r], total[r], scale_log2);
  }
#endif
  const TUFF_INDEX result_row = SHAPE.o_row;
  [[unroll]] for (int i = 0; i < ROWS; ++i) {
    float row_total = subgroupShuffle(total[i / WIDTH], i % WIDTH);
    if (row0 + i < seq_q) {
      TUFF_INDEX base = result_base + TUFF_INDEX(row0 + i) * result_row;
      [[unroll]] for (int c = 0; c < COLUMN_BLOCKS; ++c) {
        vec4 result;
        [[unroll]] for (int e = 0; e < 4; ++e) result[e] = normalised(sums[i][c][e], row_total);
#if VEC
        if (columns_left[c] > 0) TUFF_FROM(Result4, result4_pointer, (base + column_at[c]) / 4) = TO_FOUR(result);
#else
        [[unroll]] for (int e = 0; e < 4; ++e) {
          if (e < columns_left[c]) {
            TUFF_FROM(Result, result_pointer, base + column_at[c] + e) = TUFF_ROUNDED(TYPE, result[e]);
          }
        }
#endif
      }
    }
  }
}
