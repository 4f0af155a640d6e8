// Split-KV attention for one query row or a few, which is bound by memory: the keys are cut into parts, and each
// workgroup processes one. The rows of all query heads that share a kv head are one tile, so that keys and values are
// read once for all of them.
//
//            UNROLL loads        A row of keys or values spans LANES neighbouring invocations, each with 16 bytes of it
//   +------+------+--- …         (or several times 16, LANES * 16 apart). A subgroup of WIDTH thus reads WIDTH / LANES
//   | key  | key  |     WIDTH    keys per load, and has UNROLL loads of the next keys in flight while it processes the
//   |      |      |              current ones.
//   +------+------+                scores   partial dot products of an invocation's elements, for all keys and rows;
//   | key  | key  |                         each step of the sum over LANES halves the number of values, so that
//   |      |      |                         invocations end with different scores
//   +------+------+                weights  relative to a reference that is updated only if a score is far above it;
//                                           passed to other invocations through shared memory
//                                  outputs  an invocation sums weight * value of its elements for its keys
//
// At the end the subgroups of a workgroup are added up through shared memory, in order. With PARTS the workgroup writes
// its partial results (outputs, references, sums of weights) to memory for attention_merge.comp; otherwise it writes
// the results.
//
// Sizes, strides and bases are multiples of 16 bytes. If keys or values are quantised, an invocation has eight elements
// of each at a time instead, and sizes, strides and bases are multiples of these.
//# HEAD_DIM_IS : 4..256 : head_dim of q and k
//# HEAD_DIM_V_IS : 4..256 : head_dim of v
//# WIDTH : 1|2|4|8|16|32|64|128 : subgroup size
//# LANES : 1|2|4|8|16|32|64|128 : invocations across a row of keys or values, at most WIDTH
//# SUBGROUPS : 1|4 : subgroups of a workgroup
//# UNROLL : 4 : loads that an invocation has in flight
//# ROWS : 1|2|4|8 : query rows of a tile
#include "kernels/attention/attention_common.glsl"

#define INVOCATIONS (SUBGROUPS * WIDTH)
layout(local_size_x = INVOCATIONS) in;

#define QUANTISED (KEY_FORMAT != 0 || VALUE_FORMAT != 0)
#if QUANTISED
#define PIECE 8
#else
#define PIECE (16 / TUFF_BYTES(TYPE))
#endif
#define K_PIECES (HEAD_DIM_IS / PIECE)
#define V_PIECES (HEAD_DIM_V_IS / PIECE)
#define K_EACH ((K_PIECES + LANES - 1) / LANES)
#define V_EACH ((V_PIECES + LANES - 1) / LANES)
#define AT_ONCE (WIDTH / LANES)        // keys of a load
#define BLOCK (AT_ONCE * UNROLL)       // keys of a subgroup's step
#define STEP (BLOCK * SUBGROUPS)       // keys of a workgroup's step
#define VALUES (UNROLL * ROWS)         // scores of the keys that an invocation has elements of
#define OWN (VALUES > LANES ? VALUES / LANES : 1)  // scores that the invocation has after the sum over LANES

TUFF_READ(0, Query16, uvec4, 16)
#if KEY_FORMAT == 0
TUFF_READ(1, Key16, uvec4, 16)
#define FETCH_KEY(key, piece) TUFF_AT(Key16, key16_base + TUFF_INDEX(key) * key_row + (piece))
#define UNPACK_KEY(out, raw, piece) UNPACK(out, raw)
#else
#define FETCH_KEY(key, piece) key_eight(key_base + TUFF_INDEX(key) * SHAPE.k_row + 8 * (piece), key)
#define UNPACK_KEY(out, raw, piece) out[0] = key_of_eight(0, raw, 8 * (piece)), out[1] = key_of_eight(1, raw, 8 * (piece) + 4);
#endif
#if VALUE_FORMAT == 0
TUFF_READ(2, Value16, uvec4, 16)
#define FETCH_VALUE(key, piece) TUFF_AT(Value16, value16_base + TUFF_INDEX(key) * value_row + (piece))
#define UNPACK_VALUE(out, raw, piece) UNPACK(out, raw)
#else
#define FETCH_VALUE(key, piece) value_eight(value_base + TUFF_INDEX(key) * SHAPE.v_row + 8 * (piece), key)
#define UNPACK_VALUE(out, raw, piece) \
  out[0] = value_of_eight(0, raw, 8 * (piece)), out[1] = value_of_eight(1, raw, 8 * (piece) + 4);
#endif

shared float weights[SUBGROUPS * BLOCK * ROWS];
shared float references[SUBGROUPS * ROWS], totals[SUBGROUPS * ROWS];
// One subgroup's outputs at a time.
shared float outputs[ROWS * HEAD_DIM_V_IS];

#if TYPE == TUFF_F32
#define UNPACK(out, piece) out[0] = uintBitsToFloat(piece);
#else
#define UNPACK(out, piece) out[0] = from_four(piece.xy), out[1] = from_four(piece.zw);
#endif
#define FOURS (PIECE / 4)
#if SUBGROUPS > 1
#define GROUP_BARRIER barrier()
#else
#define GROUP_BARRIER subgroupMemoryBarrierShared(), subgroupBarrier()
#endif

void main() {
  const uint group = tuff_group();
  if (group >= push.groups) return;
  const uint lane = gl_SubgroupInvocationID, subgroup = gl_SubgroupID, id = subgroup * WIDTH + lane;
  const uint seq_q = SHAPE.seq_q, seq_kv = SHAPE.seq_kv, heads = SHAPE.heads & 0xffffu, sharing = SHAPE.heads >> 16;
  const uint all_rows = seq_q * sharing, tiles = (all_rows + ROWS - 1) / ROWS, kv_heads = heads / sharing;
#if PARTS
  const uint parts = push.key_end, part = group % parts, tile = group / parts;
#else
  const uint part = 0, tile = group;
#endif
  const uint kv_head = tile / tiles, row0 = tile % tiles * ROWS;
  // Row r of the heads that share a kv head is row r / sharing of head r % sharing.
  find_head(kv_head * sharing);
  const uint first_head = head;
  find_tile_keys(row0 / sharing, (min(row0 + ROWS, all_rows) - 1) / sharing - row0 / sharing + 1);
#if PARTS
  const uint begin = max(part * push.key_begin, tile_first / STEP * STEP);
  const uint end = min((part + 1) * push.key_begin, tile_end);
#else
  const uint begin = tile_first / STEP * STEP, end = tile_end;
#endif
  const float scale_log2 = SHAPE.scale_log2;
  const uint lane_of_row = lane % LANES, row_of_load = lane / LANES;
  const TUFF_INDEX key_row = SHAPE.k_row / PIECE, value_row = SHAPE.v_row / PIECE;
  const TUFF_INDEX key16_base = key_base / PIECE, value16_base = value_base / PIECE;
#define K_PIECE(p) (lane_of_row + (p) * LANES)
// Invocations past the last piece load the last piece and treat it as 0.
#define CLAMPED(piece, count) ((count) % LANES == 0 ? (piece) : min(piece, (count) - 1))
#define WITHIN(piece, count) ((count) % LANES == 0 || (piece) < (count))

  vec4 query[ROWS][K_EACH][FOURS];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    const uint row = min(row0 + r, all_rows - 1);
    const TUFF_INDEX at = query_base + row % sharing * SHAPE.q_head + TUFF_INDEX(row / sharing) * SHAPE.q_row;
    [[unroll]] for (uint p = 0; p < K_EACH; ++p) {
#if QUANTISED && TYPE == TUFF_F32
      [[unroll]] for (uint f = 0; f < FOURS; ++f) {
        query[r][p][f] = TUFF_AT(Query4, at / 4 + CLAMPED(K_PIECE(p), K_PIECES) * FOURS + f);
      }
#else
      const uvec4 piece = TUFF_AT(Query16, at / PIECE + CLAMPED(K_PIECE(p), K_PIECES));
      UNPACK(query[r][p], piece)
#endif
      [[unroll]] for (uint f = 0; f < FOURS; ++f) {
        if (!WITHIN(K_PIECE(p), K_PIECES)) query[r][p][f] = vec4(0);
      }
    }
  }

  vec4 sums[ROWS][V_EACH][FOURS];
  float reference[ROWS], total[OWN];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    reference[r] = -LARGEST;
    [[unroll]] for (uint p = 0; p < V_EACH; ++p) {
      [[unroll]] for (uint f = 0; f < FOURS; ++f) sums[r][p][f] = vec4(0);
    }
  }
  [[unroll]] for (uint i = 0; i < OWN; ++i) total[i] = 0.0;

  // The scores that this invocation ends with start at value own_first; value u * ROWS + r is of load u and row r.
  uint own_first = 0;
  [[unroll]] for (uint step = LANES / 2; step > 0; step /= 2) {
    if (VALUES * step >= LANES && (lane & step) != 0) own_first += VALUES * step / LANES;
  }
  // If there are more lanes than values, several lanes have the same one; the first of them counts it.
  const bool counts = VALUES >= LANES || lane_of_row % max(LANES / VALUES, 1) == 0;

  uvec4 next_key[UNROLL][K_EACH], next_value[UNROLL][V_EACH];
#define KEY_OF(u) (key0 + subgroup * BLOCK + (u) * AT_ONCE + row_of_load)
#define LOAD_KEYS(step0)                                                                                               \
  [[unroll]] for (uint u = 0; u < UNROLL; ++u) {                                                                       \
    const uint key = min((step0) + subgroup * BLOCK + u * AT_ONCE + row_of_load, seq_kv - 1);                          \
    [[unroll]] for (uint p = 0; p < K_EACH; ++p) {                                                                     \
      next_key[u][p] = FETCH_KEY(key, CLAMPED(K_PIECE(p), K_PIECES));                                                  \
    }                                                                                                                  \
  }
  if (begin < end) {
    LOAD_KEYS(begin)
  }

  [[dont_unroll]] for (uint key0 = begin; key0 < end; key0 += STEP) {
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      const uint key = min(KEY_OF(u), seq_kv - 1);
      [[unroll]] for (uint p = 0; p < V_EACH; ++p) {
        next_value[u][p] = FETCH_VALUE(key, CLAMPED(K_PIECE(p), V_PIECES));
      }
    }

    float x[VALUES];
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      [[unroll]] for (uint r = 0; r < ROWS; ++r) x[u * ROWS + r] = 0.0;
      [[unroll]] for (uint p = 0; p < K_EACH; ++p) {
        vec4 key[FOURS];
        UNPACK_KEY(key, next_key[u][p], CLAMPED(K_PIECE(p), K_PIECES))
        [[unroll]] for (uint f = 0; f < FOURS; ++f) {
          // Keys are zeroed too, because a NaN there must not count.
          if (!WITHIN(K_PIECE(p), K_PIECES)) key[f] = vec4(0);
          [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            [[unroll]] for (uint e = 0; e < 4; ++e) {
              x[u * ROWS + r] = fma(query[r][p][f][e], key[f][e], x[u * ROWS + r]);
            }
          }
        }
      }
    }
    LOAD_KEYS(key0 + STEP)

    // Each step exchanges half of the values, and thereby halves their number; a single value is exchanged whole.
    [[unroll]] for (uint step = LANES / 2; step > 0; step /= 2) {
      if (VALUES * step >= LANES) {
        const bool upper = (lane & step) != 0;
        [[unroll]] for (uint i = 0; i < VALUES * step / LANES; ++i) {
          const float low = x[i], high = x[i + VALUES * step / LANES];
          x[i] = (upper ? high : low) + subgroupShuffleXor(upper ? low : high, step);
        }
      } else {
        x[0] += subgroupShuffleXor(x[0], step);
      }
    }

#define VALUE_OF(i) (own_first + (i))
#define OWN_ROW(i) min(row0 + VALUE_OF(i) % ROWS, all_rows - 1)
#define OWN_KEY(i) KEY_OF(VALUE_OF(i) / ROWS)
#if TYPE != TUFF_F16 || KEY_SCALES
    // Scores that overflowed f32 (or are NaN) are computed again.
    [[unroll]] for (uint i = 0; i < OWN; ++i) {
      if (!(abs(x[i]) <= LARGEST)) {
        const uint row = OWN_ROW(i), key = min(OWN_KEY(i), seq_kv - 1);
        const TUFF_INDEX query_at = query_base + row % sharing * SHAPE.q_head + TUFF_INDEX(row / sharing) * SHAPE.q_row;
        const TUFF_INDEX key_at = key_base + TUFF_INDEX(key) * SHAPE.k_row;
        float shrunk = 0.0;
        [[dont_unroll]] for (uint d = 0; d < HEAD_DIM_IS; ++d) {
          shrunk = fma(TUFF_LOADED(TYPE, TUFF_AT(Query, query_at + d)) * SHRINK, KEY_NUMBER(key_at + d, key) * SHRINK,
                       shrunk);
        }
        x[i] = grown_back(shrunk);
      }
    }
#endif
#if SCALED || MASK
    [[unroll]] for (uint i = 0; i < OWN; ++i) {
      head = first_head + OWN_ROW(i) % sharing;
      x[i] = masked_score(scaled_scores(vec4(x[i])).x, OWN_ROW(i) / sharing, min(OWN_KEY(i), seq_kv - 1));
    }
#endif
    const bool hides = key0 < tile_all_from || key0 + STEP > tile_all_to;
    if (hides) {
      [[unroll]] for (uint i = 0; i < OWN; ++i) {
        const uint row = OWN_ROW(i) / sharing, key = OWN_KEY(i);
        // Keys from the part's end on belong to the next.
        if (key < first_key_of(row) || key >= min(keys_end_of(row), end)) x[i] = -TUFF_INFINITY;
      }
    }

    bool far = false;
    float own_reference[OWN];
    [[unroll]] for (uint i = 0; i < OWN; ++i) {
      own_reference[i] = reference[0];
      [[unroll]] for (uint r = 1; r < ROWS; ++r) {
        if (VALUE_OF(i) % ROWS == r) own_reference[i] = reference[r];
      }
      far = far || !((x[i] - own_reference[i]) * scale_log2 <= SLACK);
    }
    // A loop instead of a branch, for the reason given below.
    [[dont_unroll]] for (bool again = subgroupBallot(far) != uvec4(0); again; again = false) {
      float shrink[ROWS];
      [[unroll]] for (uint i = 0; i < OWN; ++i) x[i] = x[i] > LARGEST ? LARGEST : x[i];
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        float largest = -LARGEST;
        [[unroll]] for (uint i = 0; i < OWN; ++i) {
          if (VALUE_OF(i) % ROWS == r) largest = max(largest, x[i]);
        }
        largest = max(reference[r], subgroupMax(largest));
        shrink[r] = exp2((reference[r] - largest) * scale_log2);
        reference[r] = largest;
        [[unroll]] for (uint i = 0; i < OWN; ++i) {
          if (VALUE_OF(i) % ROWS == r) {
            own_reference[i] = largest;
            total[i] *= shrink[r];
          }
        }
        [[unroll]] for (uint p = 0; p < V_EACH; ++p) {
          [[unroll]] for (uint f = 0; f < FOURS; ++f) sums[r][p][f] *= shrink[r];
        }
      }
    }

    const uint weights_at = subgroup * BLOCK * ROWS;
    [[unroll]] for (uint i = 0; i < OWN; ++i) {
      const float w = exp2(fma(x[i] - own_reference[i], scale_log2, HEADROOM));
      if (counts) total[i] += w;
      const uint u = VALUE_OF(i) / ROWS, r = VALUE_OF(i) % ROWS;
      weights[weights_at + (u * AT_ONCE + row_of_load) * ROWS + r] = w;
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    // With numbers that are dequantised in both, Mesa compiles the two loops below for twice as long.
    const bool guarded = BIAS != 0 || MASK != 0 || (QUANTISED && TUFF_EXACT_ARITHMETIC != 0) || hides;
#define ACCUMULATE(SEEN)                                                                                               \
  [[unroll]] for (uint u = 0; u < UNROLL; ++u) {                                                                       \
    float w[ROWS];                                                                                                     \
    [[unroll]] for (uint r = 0; r < ROWS; ++r) w[r] = weights[weights_at + (u * AT_ONCE + row_of_load) * ROWS + r];    \
    [[unroll]] for (uint p = 0; p < V_EACH; ++p) {                                                                     \
      vec4 value[FOURS];                                                                                               \
      UNPACK_VALUE(value, next_value[u][p], CLAMPED(K_PIECE(p), V_PIECES))                                             \
      [[unroll]] for (uint r = 0; r < ROWS; ++r) [[unroll]] for (uint f = 0; f < FOURS; ++f) {                         \
        sums[r][p][f] = fma(vec4(w[r]), SEEN(w[r], value[f]), sums[r][p][f]);                                          \
      }                                                                                                                \
    }                                                                                                                  \
  }
#define ALL_SEEN(w, v) v
// A masked key's weight is 0, but 0 * NaN would carry its value into rows that may not see it.
#define WEIGHTED_SEEN(w, v) ((w) != 0.0 ? (v) : vec4(0))
    // Loops instead of branches: Mesa 22.3 executes both sides of a branch, but skips a loop that no lane enters.
#if !QUANTISED || !TUFF_EXACT_ARITHMETIC
    [[dont_unroll]] for (bool once = !guarded; once; once = false) {
      ACCUMULATE(ALL_SEEN)
    }
#endif
    [[dont_unroll]] for (bool once = guarded; once; once = false) {
      ACCUMULATE(WEIGHTED_SEEN)
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();
  }

  // Adds up the subgroup's weights of each row, and its outputs over the keys of a load.
  float row_total[ROWS];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    float part_of_total = 0.0;
    [[unroll]] for (uint i = 0; i < OWN; ++i) {
      if (VALUE_OF(i) % ROWS == r) part_of_total += total[i];
    }
    row_total[r] = subgroupAdd(part_of_total);
    [[unroll]] for (uint p = 0; p < V_EACH; ++p) [[unroll]] for (uint f = 0; f < FOURS; ++f) {
      [[unroll]] for (uint step = LANES; step < WIDTH; step *= 2) {
        [[unroll]] for (uint e = 0; e < 4; ++e) sums[r][p][f][e] += subgroupShuffleXor(sums[r][p][f][e], step);
      }
    }
  }
#if SUBGROUPS > 1
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    if (lane == 0) {
      references[subgroup * ROWS + r] = reference[r];
      totals[subgroup * ROWS + r] = row_total[r];
    }
  }
  GROUP_BARRIER;
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    float largest = references[r];
    [[unroll]] for (uint s = 1; s < SUBGROUPS; ++s) largest = max(largest, references[s * ROWS + r]);
    row_total[r] = 0.0;
    [[unroll]] for (uint s = 0; s < SUBGROUPS; ++s) {
      row_total[r] = fma(totals[s * ROWS + r], exp2((references[s * ROWS + r] - largest) * scale_log2), row_total[r]);
    }
    const float shrink = exp2((reference[r] - largest) * scale_log2);
    reference[r] = largest;
    [[unroll]] for (uint p = 0; p < V_EACH; ++p) [[unroll]] for (uint f = 0; f < FOURS; ++f) sums[r][p][f] *= shrink;
  }
#endif
  [[unroll]] for (uint s = 0; s < SUBGROUPS; ++s) {
    if (subgroup == s && row_of_load == 0) {
      [[unroll]] for (uint r = 0; r < ROWS; ++r) [[unroll]] for (uint p = 0; p < V_EACH; ++p) {
        if (WITHIN(K_PIECE(p), V_PIECES)) {
          [[unroll]] for (uint e = 0; e < PIECE; ++e) {
            const uint at = r * HEAD_DIM_V_IS + K_PIECE(p) * PIECE + e;
            const float sum = sums[r][p][e / 4][e % 4];
            outputs[at] = s == 0 ? sum : outputs[at] + sum;
          }
        }
      }
    }
    GROUP_BARRIER;
  }

#if PARTS
  const TUFF_INDEX base = TUFF_INDEX(group) * (ROWS * HEAD_DIM_V_IS + STATISTICS(ROWS));
  for (uint i = id; i < ROWS * HEAD_DIM_V_IS; i += INVOCATIONS) TUFF_AT(Parts, base + i) = outputs[i];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    if (id == r % INVOCATIONS) {
      TUFF_AT(Parts, base + ROWS * HEAD_DIM_V_IS + r) = reference[r];
      TUFF_AT(Parts, base + ROWS * HEAD_DIM_V_IS + ROWS + r) = row_total[r];
    }
  }
#else
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    const uint row = row0 + r;
    if (row < all_rows) {
      const TUFF_INDEX at = result_base + row % sharing * SHAPE.o_head + TUFF_INDEX(row / sharing) * SHAPE.o_row;
      for (uint i = id; i < HEAD_DIM_V_IS; i += INVOCATIONS) {
        TUFF_AT(Result, at + i) = TUFF_ROUNDED(TYPE, normalised(outputs[r * HEAD_DIM_V_IS + i], row_total[r]));
      }
#if EXTENDED
      head = first_head + row % sharing;
      if (id == 0) store_log_sum_exp(row / sharing, reference[r], row_total[r], scale_log2);
#endif
    }
  }
#endif
}
