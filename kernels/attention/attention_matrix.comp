// Attention for many query rows by cooperative matrices: 16-bit inputs, sums in f32, one pass with online softmax.
//
//            +---KEYS---+    Each of a workgroup's SUBGROUPS owns ROW_BLOCKS * 16 query rows, whose queries stay in
//            |  keys,   |    registers as matrices. KEYS keys at a time, keys and values are kept in shared memory in
//            |  values  |    the buffers' layout, in pieces of 16 bytes; one padding piece after each row spreads the
//            +----------+    rows over the banks. For every 16 keys a subgroup computes
//   +-------+ +----+----+      scores   16 x 16, by multiplying over head_dim,
//   |queries| | 16 |    |      weights  of the scores relative to the rows' reference, rounded to the inputs' type,
//   |(a sub-| |x 16|    |      output   weights * values, accumulated in registers.
//   | group)| |    |    |
//   +-------+ +----+----+    A row's reference is its largest score so far, or up to 2^SLACK less. The output is
//                            rescaled only if a score is far above the reference, which is rare after the first keys.
//
// Weights are computed from scores element by element: lane l has rows l / 4 and l / 4 + 8 of a block of 16, and of
// each row columns l % 4 * 2, + 1, + 8, + 9. If the cooperative matrices of scores and weights hold their elements in
// exactly this way (QUADS), that is done in registers; otherwise through a patch of shared memory for each subgroup.
//
// NaN and infinities in values would reach rows that may not see them, as 0 * NaN. In tiles that hide a key from some
// row they therefore count as 0, and are added at the end to the rows that do see them.
//
// PARTS is for few query rows, split-KV: a tile holds the rows of all query heads that share a kv head, as in
// attention_split.comp. The keys are cut into parts. A workgroup of one subgroup processes one, and writes partial
// results for attention_merge.comp. There are then one block of rows, one subgroup and 16 keys, whose values replace
// the keys in shared memory.
//
// TYPE is 2 or 3; sizes, strides and bases are multiples of 8 elements.
//# HEAD_DIM_IS : 16|32|48|64|80|96|112|128 : head_dim of q and k
//# HEAD_DIM_V_IS : 16|32|48|64|80|96|112|128 : head_dim of v
//# ROW_BLOCKS : 1|2 : query rows of a subgroup, in units of 16
//# SUBGROUPS : 1|4|8 : subgroups of a workgroup
//# WIDTH : 32 : subgroup size
//# KEYS : 16|32|64 : keys of a step
//# QUADS : 0|1 : 1: weights are computed in registers, see above
//# PREFETCH : 0|1 : 1: the next keys and values are loaded into registers while the current ones are processed
#define MM 16
#define MN 16
#define MK 16
#include "kernels/common/matrix.glsl"
#include "kernels/attention/attention_common.glsl"

#define INVOCATIONS (SUBGROUPS * WIDTH)
#define SUB_ROWS (ROW_BLOCKS * 16)
#define ROWS (SUBGROUPS * SUB_ROWS)
layout(local_size_x = INVOCATIONS) in;

TUFF_READ(0, Query16, uvec4, 16)
TUFF_READ(1, Key16, uvec4, 16)
TUFF_READ(2, Value16, uvec4, 16)
TUFF_WRITE(3, Result16, uvec4, 16)

#define PIECE 8  // elements in 16 bytes
#define K_PIECES (HEAD_DIM_IS / PIECE)
#define V_PIECES (HEAD_DIM_V_IS / PIECE)
#define K_PITCH (K_PIECES + 1)
#define V_PITCH (V_PIECES + 1)
#define K_SIZE (KEYS * K_PITCH)
#define V_SIZE (KEYS * V_PITCH)
#define PATCH_PITCH 5  // 16 sums and a padding piece
#define WEIGHT_PITCH 3  // 16 weights and a padding piece
#define PATCH (16 * PATCH_PITCH)
// With QUADS the patches are needed only before and after the keys and values, and share their memory.
#if PARTS
#define V_AT 0
#define TILE max(K_SIZE, V_SIZE)
#else
#define V_AT K_SIZE
#define TILE (K_SIZE + V_SIZE)
#endif
#define PATCHES_AT (QUADS != 0 ? 0 : TILE)
shared uvec4 pool[max(PATCHES_AT + SUBGROUPS * PATCH, TILE)];
shared uint not_finite;  // set if a NaN or infinite value counted as 0

#define LOADS_K ((KEYS * K_PIECES + INVOCATIONS - 1) / INVOCATIONS)
#define LOADS_V ((KEYS * V_PIECES + INVOCATIONS - 1) / INVOCATIONS)
#define HIDING (CAUSAL || EXTENDED)

// f16 weights cannot represent the headroom, and f16 values need none: they are below 2^16.
#if TYPE == TUFF_F16
const float OF_WEIGHTS = 0.0, OF_WEIGHTS_UNDONE = 1.0;
const uint EXPONENT = 0x7c007c00u;
#else
const float OF_WEIGHTS = HEADROOM, OF_WEIGHTS_UNDONE = HEADROOM_UNDONE;
const uint EXPONENT = 0x7f807f80u;
#endif
// Factor that gives sums the headroom of the other kernels.
const float AS_ELSEWHERE = OF_WEIGHTS_UNDONE / HEADROOM_UNDONE;

uvec4 finite_only(uvec4 piece, inout bool clean) {
  [[unroll]] for (uint w = 0; w < 4; ++w) {
    const uint low = EXPONENT & 0xffffu, high = EXPONENT & 0xffff0000u;
    if ((piece[w] & low) == low) piece[w] &= 0xffff0000u, clean = false;
    if ((piece[w] & high) == high) piece[w] &= 0xffffu, clean = false;
  }
  return piece;
}

#if TYPE == TUFF_BF16
// A row spread over the lanes: a lane's n-th element.
#define SLOW_K ((HEAD_DIM_IS + WIDTH - 1) / WIDTH)
#define SLOW_V ((HEAD_DIM_V_IS + WIDTH - 1) / WIDTH)
#define SLOW_LOAD(name, at, n, count) \
  (lane + (n) * WIDTH < (count) ? TUFF_LOADED(TYPE, TUFF_AT(name, (at) + lane + (n) * WIDTH)) : 0.0)
#endif

void main() {
  const uint group = tuff_group();
  if (group >= push.groups) return;
  const uint id = gl_LocalInvocationIndex, lane = gl_SubgroupInvocationID, subgroup = gl_SubgroupID;
  const uint seq_kv = SHAPE.seq_kv;
#if PARTS
  // Row r of the heads that share a kv head is row r / sharing of head r % sharing.
  const uint sharing = SHAPE.heads >> 16, rows = SHAPE.seq_q * sharing;
#define SEQUENCE_ROW(row) ((row) / sharing)
#define QUERY_BASE(row) (query_base + (row) % sharing * SHAPE.q_head + TUFF_INDEX((row) / sharing) * SHAPE.q_row)
#define FIND_HEAD_OF(row) head = first_head + (row) % sharing
  const uint row_tiles = (rows + ROWS - 1) / ROWS, parts = push.key_end, part = group % parts, tile = group / parts;
  const uint row0 = tile % row_tiles * ROWS, row_end = min(row0 + ROWS, rows);
  find_head(tile / row_tiles * sharing);
  const uint first_head = head;
  find_tile_keys(row0 / sharing, (row_end - 1) / sharing - row0 / sharing + 1);
  const uint first = max(tile_first, part * push.key_begin), end = min(tile_end, (part + 1) * push.key_begin);
  const uint sub_row0 = row0, sub_first = first, sub_end = end;
  const uint all_from = tile_all_from, all_to = min(tile_all_to, end), sub_all_from = all_from, sub_all_to = all_to;
#else
  const uint rows = SHAPE.seq_q;
#define SEQUENCE_ROW(row) (row)
#define QUERY_BASE(row) (query_base + TUFF_INDEX(row) * SHAPE.q_row)
#define FIND_HEAD_OF(row)
  const uint row_tiles = (rows + ROWS - 1) / ROWS;
  find_head(group / row_tiles);
  // With a causal mask the last rows see the most keys, so they start first.
  const uint row0 = (row_tiles - 1 - group % row_tiles) * ROWS;
  find_tile_keys(row0, ROWS);
  const uint first = tile_first, end = tile_end;
#endif
#if PARTS
#elif HIDING
  const uint all_from = tile_all_from, all_to = tile_all_to;
  const uint sub_row0 = row0 + subgroup * SUB_ROWS;
  find_tile_keys(min(sub_row0, rows - 1), SUB_ROWS);
  const uint sub_first = tile_first, sub_end = sub_row0 < rows ? tile_end : 0u;
  const uint sub_all_from = tile_all_from, sub_all_to = tile_all_to;
#else
  const uint sub_row0 = row0 + subgroup * SUB_ROWS, sub_all_from = 0, sub_all_to = end;
#endif
  const TUFF_INDEX key_row = SHAPE.k_row / PIECE, value_row = SHAPE.v_row / PIECE;
  const TUFF_INDEX key16_base = key_base / PIECE, value16_base = value_base / PIECE;
  const float scale_log2 = SHAPE.scale_log2;
  const uint own = PATCHES_AT + subgroup * PATCH;
  if (id == 0) not_finite = 0;

  // Lane l has row l / 4 + 8 * h of a block for h = 0, 1, and column COLUMN(e) with row half HALF(e) for e < 8.
#define HALF(e) ((e) >> 2)
#define COLUMN(e) ((lane & 3) * 2 + ((e) & 1) + ((e) >> 1 & 1) * 8)
#define BLOCK_ROW(i, h) (sub_row0 + (i) * 16 + lane / 4 + (h) * 8)

  uvec4 next_key[LOADS_K], next_value[LOADS_V];
  // Keys past the last repeat it; no row sees them.
#define LOAD_KEYS(key0)                                                                                       \
  [[unroll]] for (uint l = 0; l < LOADS_K; ++l) {                                                             \
    const uint v = id + l * INVOCATIONS, key = min((key0) + v / K_PIECES, seq_kv - 1);                        \
    next_key[l] = TUFF_AT(Key16, key16_base + TUFF_INDEX(key) * key_row + v % K_PIECES);                      \
  }
#define LOAD_VALUES(key0)                                                                                     \
  [[unroll]] for (uint l = 0; l < LOADS_V; ++l) {                                                             \
    const uint v = id + l * INVOCATIONS, key = min((key0) + v / V_PIECES, seq_kv - 1);                        \
    next_value[l] = TUFF_AT(Value16, value16_base + TUFF_INDEX(key) * value_row + v % V_PIECES);              \
  }
#define WITHIN(v, count) ((count) % INVOCATIONS == 0 || (v) < (count))
#define STORE_VALUES                                                                                          \
  [[unroll]] for (uint l = 0; l < LOADS_V; ++l) {                                                             \
    const uint v = id + l * INVOCATIONS;                                                                      \
    if (WITHIN(v, KEYS * V_PIECES)) pool[V_AT + v / V_PIECES * V_PITCH + v % V_PIECES] = next_value[l];       \
  }

  const uint begin = first / KEYS * KEYS;
#if PREFETCH
  if (begin < end) {
    LOAD_KEYS(begin)
    LOAD_VALUES(begin)
  }
  const uint last_tile = (max(end, 1u) - 1) / KEYS * KEYS;
#endif

  MATRIX_A query[ROW_BLOCKS][HEAD_DIM_IS / 16];
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
    uvec4 pieces[HEAD_DIM_IS / 16];
    const uint row = min(sub_row0 + i * 16 + lane / 2, rows - 1);
    [[unroll]] for (uint d = 0; d < HEAD_DIM_IS / 16; ++d) {
      pieces[d] = TUFF_AT(Query16, QUERY_BASE(row) / PIECE + d * 2 + lane % 2);
    }
    [[unroll]] for (uint d = 0; d < HEAD_DIM_IS / 16; ++d) {
      pool[own + lane / 2 * WEIGHT_PITCH + lane % 2] = pieces[d];
      subgroupMemoryBarrierShared();
      subgroupBarrier();
      MATRIX_LOAD(query[i][d], pool, own, WEIGHT_PITCH, false);
      subgroupMemoryBarrierShared();
      subgroupBarrier();
    }
  }

  MATRIX_C sums[ROW_BLOCKS][HEAD_DIM_V_IS / 16];
  float reference[ROW_BLOCKS][2], total[ROW_BLOCKS][2];
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
    [[unroll]] for (uint j = 0; j < HEAD_DIM_V_IS / 16; ++j) sums[i][j] = MATRIX_C(0);
    [[unroll]] for (uint h = 0; h < 2; ++h) {
      reference[i][h] = -LARGEST;
      total[i][h] = 0.0;
    }
  }

#if TYPE == TUFF_BF16
  bool beyond = false;  // a score overflowed f32, or is NaN
#endif
  [[dont_unroll]] for (uint key0 = begin; key0 < end; key0 += KEYS) {
#if !PREFETCH
    LOAD_KEYS(key0)
    LOAD_VALUES(key0)
#endif
    barrier();
    [[unroll]] for (uint l = 0; l < LOADS_K; ++l) {
      const uint v = id + l * INVOCATIONS;
      if (WITHIN(v, KEYS * K_PIECES)) pool[v / K_PIECES * K_PITCH + v % K_PIECES] = next_key[l];
    }
#if HIDING
    const bool hides = BIAS != 0 || MASK != 0 || key0 < all_from || key0 + KEYS > all_to;
#else
    const bool hides = key0 + KEYS > end;
#endif
    if (hides) {
      bool clean = true;
      [[unroll]] for (uint l = 0; l < LOADS_V; ++l) next_value[l] = finite_only(next_value[l], clean);
      if (!clean) not_finite = 1;
    }
#if !PARTS
    STORE_VALUES
#endif
    barrier();
#if PREFETCH
    const uint key_next = min(key0 + KEYS, last_tile);
    LOAD_KEYS(key_next)
#if !PARTS
    LOAD_VALUES(key_next)
#endif
#endif

    [[unroll]] for (uint b = 0; b < KEYS; b += 16) {
#if HIDING && !PARTS
      if (key0 + b >= sub_end || key0 + b + 16 <= sub_first) continue;
#endif
      MATRIX_C scores[ROW_BLOCKS];
      [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) scores[i] = MATRIX_C(0);
      [[unroll]] for (uint d = 0; d < HEAD_DIM_IS / 16; ++d) {
        MATRIX_B k;
        MATRIX_LOAD(k, pool, b * K_PITCH + d * 2, K_PITCH, true);
        [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) scores[i] = MATRIX_MULTIPLY_ADD(query[i][d], k, scores[i]);
      }

      MATRIX_A weights[ROW_BLOCKS];
      [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
        float s[8];
#if QUADS
        [[unroll]] for (uint e = 0; e < 8; ++e) s[e] = scores[i][e];
#else
        MATRIX_STORE(scores[i], pool, own, PATCH_PITCH);
        subgroupMemoryBarrierShared();
        subgroupBarrier();
        [[unroll]] for (uint e = 0; e < 8; ++e) {
          s[e] = uintBitsToFloat(pool[own + (lane / 4 + HALF(e) * 8) * PATCH_PITCH + COLUMN(e) / 4][COLUMN(e) % 4]);
        }
#endif
#if TYPE == TUFF_BF16
        float magnitude = 0.0;
        [[unroll]] for (uint e = 0; e < 8; ++e) magnitude += abs(s[e]);
        if (!(magnitude <= LARGEST)) {
          [[unroll]] for (uint e = 0; e < 8; ++e) {
            const uint row = SEQUENCE_ROW(BLOCK_ROW(i, HALF(e))), key = key0 + b + COLUMN(e);
            const bool seen = key >= first_key_of(row) && key < keys_end_of(row);
            beyond = beyond || (seen && !(abs(s[e]) <= LARGEST));
          }
        }
#endif
#if SCALED || MASK
        const vec4 low = scaled_scores(vec4(s[0], s[1], s[2], s[3]));
        const vec4 high = scaled_scores(vec4(s[4], s[5], s[6], s[7]));
        [[unroll]] for (uint e = 0; e < 8; ++e) {
          const uint row = min(BLOCK_ROW(i, HALF(e)), rows - 1), key = min(key0 + b + COLUMN(e), seq_kv - 1);
          FIND_HEAD_OF(row);
          s[e] = masked_score(e < 4 ? low[e & 3] : high[e & 3], SEQUENCE_ROW(row), key);
        }
#endif
        if (key0 + b < sub_all_from || key0 + b + 16 > sub_all_to) {
          [[unroll]] for (uint e = 0; e < 8; ++e) {
            const uint row = SEQUENCE_ROW(BLOCK_ROW(i, HALF(e))), key = key0 + b + COLUMN(e);
            if (key < first_key_of(row) || key >= keys_end_of(row)) s[e] = -TUFF_INFINITY;
          }
        }

        bool far = false;
        [[unroll]] for (uint e = 0; e < 8; ++e) far = far || !((s[e] - reference[i][HALF(e)]) * scale_log2 <= SLACK);
        if (subgroupBallot(far).x != 0) {
          float shrink[2];
          [[unroll]] for (uint e = 0; e < 8; ++e) s[e] = s[e] > LARGEST ? LARGEST : s[e];
          [[unroll]] for (uint h = 0; h < 2; ++h) {
            float largest = max(max(s[h * 4], s[h * 4 + 1]), max(s[h * 4 + 2], s[h * 4 + 3]));
            largest = max(largest, subgroupShuffleXor(largest, 1));
            largest = max(largest, subgroupShuffleXor(largest, 2));
            largest = max(largest, reference[i][h]);
            shrink[h] = exp2((reference[i][h] - largest) * scale_log2);
            reference[i][h] = largest;
            total[i][h] *= shrink[h];
          }
          [[unroll]] for (uint j = 0; j < HEAD_DIM_V_IS / 16; ++j) {
#if QUADS
            [[unroll]] for (uint e = 0; e < 8; ++e) sums[i][j][e] = sums[i][j][e] * shrink[HALF(e)];
#else
            subgroupMemoryBarrierShared();
            subgroupBarrier();
            MATRIX_STORE(sums[i][j], pool, own, PATCH_PITCH);
            subgroupMemoryBarrierShared();
            subgroupBarrier();
            [[unroll]] for (uint e = 0; e < 8; ++e) {
              const uint at = own + (lane / 4 + HALF(e) * 8) * PATCH_PITCH + COLUMN(e) / 4;
              pool[at][COLUMN(e) % 4] = floatBitsToUint(uintBitsToFloat(pool[at][COLUMN(e) % 4]) * shrink[HALF(e)]);
            }
            subgroupMemoryBarrierShared();
            subgroupBarrier();
            MATRIX_LOAD(sums[i][j], pool, own, PATCH_PITCH, false);
#endif
          }
        }
        float w[8];
        [[unroll]] for (uint e = 0; e < 8; ++e) {
          w[e] = exp2(fma(s[e] - reference[i][HALF(e)], scale_log2, OF_WEIGHTS));
          total[i][HALF(e)] += w[e];
        }
#if QUADS
#if TYPE == TUFF_BF16
        // Rounded to nearest here, because the device's conversion to bf16 may truncate.
        [[unroll]] for (uint e = 0; e < 8; ++e) w[e] = uintBitsToFloat((floatBitsToUint(w[e]) + 0x8000u) & 0xffff0000u);
#endif
        [[unroll]] for (uint e = 0; e < 8; ++e) weights[i][e] = float16_t(w[e]);
#else
        subgroupMemoryBarrierShared();
        subgroupBarrier();
        [[unroll]] for (uint e = 0; e < 8; e += 2) {
          const uint at = own + (lane / 4 + HALF(e) * 8) * WEIGHT_PITCH + COLUMN(e) / 8;
          pool[at][COLUMN(e) % 8 / 2] = TO_PAIR(w[e], w[e + 1]);
        }
        subgroupMemoryBarrierShared();
        subgroupBarrier();
        MATRIX_LOAD(weights[i], pool, own, WEIGHT_PITCH, false);
        subgroupMemoryBarrierShared();
        subgroupBarrier();
#endif
      }

#if PARTS
      barrier();
      STORE_VALUES
      barrier();
      LOAD_VALUES(key_next)
#endif
      [[unroll]] for (uint j = 0; j < HEAD_DIM_V_IS / 16; ++j) {
        MATRIX_B v;
        MATRIX_LOAD(v, pool, V_AT + b * V_PITCH + j * 2, V_PITCH, false);
        [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) sums[i][j] = MATRIX_MULTIPLY_ADD(weights[i], v, sums[i][j]);
      }
    }
  }

  barrier();
  const bool incomplete = not_finite != 0;
#if PARTS
  const TUFF_INDEX part_base = TUFF_INDEX(group) * (ROWS * HEAD_DIM_V_IS + STATISTICS(ROWS));
  const TUFF_INDEX statistics = part_base + ROWS * HEAD_DIM_V_IS;
#endif
#if TYPE == TUFF_BF16
  // Products of finite bf16 numbers may overflow f32. Such rows are computed again, key by key, which is slow and very
  // rare. (Recomputing single scores in the loop above would make the whole kernel eight times slower on an H200, even
  // if that code is never executed.)
  if (subgroupBallot(beyond) != uvec4(0)) {
    [[dont_unroll]] for (uint row = sub_row0; row < min(sub_row0 + SUB_ROWS, rows); ++row) {
      const TUFF_INDEX query_at = QUERY_BASE(row);
      FIND_HEAD_OF(row);
      float x[SLOW_K], sum[SLOW_V], row_reference = -LARGEST, row_total = 0.0;
      [[unroll]] for (uint n = 0; n < SLOW_K; ++n) x[n] = SLOW_LOAD(Query, query_at, n, HEAD_DIM_IS);
      [[unroll]] for (uint n = 0; n < SLOW_V; ++n) sum[n] = 0.0;
      const uint keys_to = min(keys_end_of(SEQUENCE_ROW(row)), end);
      [[dont_unroll]] for (uint key = max(first_key_of(SEQUENCE_ROW(row)), first); key < keys_to; ++key) {
        float plain = 0.0, shrunk = 0.0;
        [[unroll]] for (uint n = 0; n < SLOW_K; ++n) {
          const float k = SLOW_LOAD(Key, key_base + TUFF_INDEX(key) * SHAPE.k_row, n, HEAD_DIM_IS);
          plain = fma(x[n], k, plain);
          shrunk = fma(x[n] * SHRINK, k * SHRINK, shrunk);
        }
        float score = subgroupAdd(plain);
        shrunk = subgroupAdd(shrunk);
        if (!(abs(score) <= LARGEST)) score = grown_back(shrunk);
#if SCALED || MASK
        score = masked_score(scaled_scores(vec4(score)).x, SEQUENCE_ROW(row), key);
        if (score == -TUFF_INFINITY) continue;
#endif
        score = score > LARGEST ? LARGEST : score;
        const float larger = score > row_reference ? score : row_reference;
        const float shrink = exp2((row_reference - larger) * scale_log2);
        const float w = exp2(fma(score - larger, scale_log2, OF_WEIGHTS));
        row_reference = larger;
        row_total = fma(row_total, shrink, w);
        [[unroll]] for (uint n = 0; n < SLOW_V; ++n) {
          sum[n] = fma(w, SLOW_LOAD(Value, value_base + TUFF_INDEX(key) * SHAPE.v_row, n, HEAD_DIM_V_IS), sum[n] * shrink);
        }
      }
      [[unroll]] for (uint n = 0; n < SLOW_V; ++n) {
        const uint column = lane + n * WIDTH;
        if (column < HEAD_DIM_V_IS) {
#if PARTS
          TUFF_AT(Parts, part_base + (row - row0) * HEAD_DIM_V_IS + column) = sum[n];
#else
          TUFF_AT(Result, result_base + TUFF_INDEX(row) * SHAPE.o_row + column) =
              TUFF_ROUNDED(TYPE, normalised(sum[n], row_total));
#endif
        }
      }
      if (lane == 0) {
#if PARTS
        TUFF_AT(Parts, statistics + row - row0) = row_reference;
        TUFF_AT(Parts, statistics + ROWS + row - row0) = row_total;
#elif EXTENDED
        store_log_sum_exp(row, row_reference, row_total, scale_log2);
#endif
      }
    }
    return;
  }
#endif
  // Store the output through the patches: lane l has eight neighbouring columns of row l / 2.
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
    [[unroll]] for (uint h = 0; h < 2; ++h) {
      total[i][h] += subgroupShuffleXor(total[i][h], 1);
      total[i][h] += subgroupShuffleXor(total[i][h], 2);
#if PARTS
      if (lane % 4 == 0) {
        const TUFF_INDEX at = statistics + lane / 4 + h * 8;
        TUFF_AT(Parts, at) = reference[i][h];
        TUFF_AT(Parts, at + ROWS) = total[i][h] * AS_ELSEWHERE;
      }
#elif EXTENDED
      if (lane % 4 == 0 && BLOCK_ROW(i, h) < rows) {
        const float as_elsewhere = total[i][h] * AS_ELSEWHERE;
        store_log_sum_exp(BLOCK_ROW(i, h), reference[i][h], as_elsewhere, scale_log2);
      }
#endif
    }
    const float low = subgroupShuffle(total[i][0], lane / 2 % 8 * 4);
    const float high = subgroupShuffle(total[i][1], lane / 2 % 8 * 4);
    const float row_total = lane / 2 < 8 ? low : high;
    const uint row = sub_row0 + i * 16 + lane / 2;
    [[unroll]] for (uint j = 0; j < HEAD_DIM_V_IS / 16; ++j) {
      MATRIX_STORE(sums[i][j], pool, own, PATCH_PITCH);
      subgroupMemoryBarrierShared();
      subgroupBarrier();
      float result[8];
      [[unroll]] for (uint e = 0; e < 8; ++e) {
        const float sum = uintBitsToFloat(pool[own + lane / 2 * PATCH_PITCH + lane % 2 * 2 + e / 4][e % 4]);
#if PARTS
        result[e] = sum * AS_ELSEWHERE;
#else
        result[e] = normalised(sum, row_total);
#endif
      }
      if (row < rows) {
        const uint column = j * 16 + lane % 2 * 8;
        if (incomplete) {
          const uint keys_from = max(first_key_of(SEQUENCE_ROW(row)), first),
                     keys_to = min(keys_end_of(SEQUENCE_ROW(row)), end);
          [[dont_unroll]] for (uint key = keys_from; key < keys_to; ++key) {
#if SCALED || MASK
            FIND_HEAD_OF(row);
            if (masked_score(0.0, SEQUENCE_ROW(row), key) == -TUFF_INFINITY) continue;
#endif
            [[unroll]] for (uint e = 0; e < 8; ++e) {
              const TUFF_INDEX at = value_base + TUFF_INDEX(key) * SHAPE.v_row + column + e;
              const float value = TUFF_LOADED(TYPE, TUFF_AT(Value, at));
              if (!(abs(value) <= LARGEST)) result[e] += value;
            }
          }
        }
#if PARTS
        const TUFF_INDEX at = (part_base + (row - row0) * HEAD_DIM_V_IS + column) / 4;
        TUFF_AT(Parts4, at) = vec4(result[0], result[1], result[2], result[3]);
        TUFF_AT(Parts4, at + 1) = vec4(result[4], result[5], result[6], result[7]);
#else
        uvec4 piece;
        [[unroll]] for (uint e = 0; e < 4; ++e) piece[e] = TO_PAIR(result[e * 2], result[e * 2 + 1]);
        TUFF_AT(Result16, (result_base + TUFF_INDEX(row) * SHAPE.o_row + column) / PIECE) = piece;
#endif
      }
      subgroupMemoryBarrierShared();
      subgroupBarrier();
    }
  }
}
