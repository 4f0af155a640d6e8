// Matrix times one or a few vectors, where L is stored k x rows or k is short: an invocation sums 4 * BLOCKS rows.
//
// A workgroup has LANES x DEPTH invocations and covers LANES * 4 * BLOCKS rows. Its DEPTH layers take every DEPTH-th
// step of k each; their sums are added up in shared memory, in order.
//
//# LANES : 1..128 : invocations side by side
//# DEPTH : 1|2|4|8 : layers; if more than one, each keeps LANES * 4 * BLOCKS * SHORT sums in shared memory
//# BLOCKS : 1.. : vec4 of rows per invocation
//# STEPS : 1|4|8|16 : steps of k loaded at once
//# ALONG_K : 0|1 : 1: L is stored rows x k nevertheless
//# VECTOR_L : 0|1 : 1: L is read as vec4: ALONG_K 0, ld % 4 = 0, rows % 4 = 0 and alignment to 4 elements
//# SHUFFLE : 0|1 : 1: LANES is the subgroup size, and each lane reads S for one k and shuffles it to the others
#include "kernels/gemm/skinny/gemm_skinny_common.glsl"

layout(local_size_x = LANES, local_size_y = DEPTH) in;

#if DEPTH > 1
shared VECTOR layers[DEPTH][BLOCKS][SHORT][LANES];
#endif

void main() {
  Block block = this_block();
  if (!block.exists) return;
  const uint lane = gl_LocalInvocationID.x, depth = gl_LocalInvocationID.y;
  const uint rows = push.rows, k_end = block.k_end, row0 = block.row_block * (LANES * 4 * BLOCKS);
  const TUFF_INDEX ld = push.ld, s_k = push.s_k, s_col = push.s_col;
  TUFF_POINTER(S, s_pointer, block.s);
#if VECTOR_L
  TUFF_POINTER(L4, l_pointer, block.l / 4);
#else
  TUFF_POINTER(L, l_pointer, block.l);
#endif

  // Rows beyond the last read the last ones and are not stored.
  VECTOR sums[BLOCKS][SHORT];
  TUFF_INDEX l_at[BLOCKS][4];
  [[unroll]] for (uint i = 0; i < BLOCKS; ++i) {
    [[unroll]] for (uint j = 0; j < SHORT; ++j) sums[i][j] = VECTOR(0);
    [[unroll]] for (uint e = 0; e < 4; ++e) {
#if VECTOR_L
      l_at[i][e] = min(row0 + (i * LANES + lane) * 4 + e, rows - 4 + e);
#else
      l_at[i][e] = TUFF_INDEX(min(row0 + (i * 4 + e) * LANES + lane, rows - 1)) * (ALONG_K != 0 ? ld : TUFF_INDEX(1));
#endif
    }
  }
#if VECTOR_L
#define LOAD_L(i, k) LOAD_VECTOR_L(l_pointer, (TUFF_INDEX(k) * ld + l_at[i][0]) / 4)
#else
#define ELEMENT(i, e, k) LOAD_SCALAR_L(l_pointer, TUFF_INDEX(k) * (ALONG_K != 0 ? TUFF_INDEX(1) : ld) + l_at[i][e])
#define LOAD_L(i, k) VECTOR(ELEMENT(i, 0, k), ELEMENT(i, 1, k), ELEMENT(i, 2, k), ELEMENT(i, 3, k))
#endif
#define LOAD_S(j, k) LOAD_SCALAR_S(s_pointer, TUFF_INDEX(k) * s_k + COLUMN(j) * s_col)
  uint k = block.k_begin + depth;
#if SHUFFLE
  [[dont_unroll]] for (; k + LANES <= k_end; k += LANES) {
    SCALAR s[SHORT];
    [[unroll]] for (uint j = 0; j < SHORT; ++j) s[j] = LOAD_S(j, k + lane);
    [[unroll]] for (uint q = 0; q < LANES; ++q) {
      [[unroll]] for (uint i = 0; i < BLOCKS; ++i) {
        const VECTOR l = LOAD_L(i, k + q);
        [[unroll]] for (uint j = 0; j < SHORT; ++j) sums[i][j] = FMA(l, VECTOR(subgroupShuffle(s[j], q)), sums[i][j]);
      }
    }
  }
#else
  [[dont_unroll]] for (; k + (STEPS - 1) * DEPTH < k_end; k += STEPS * DEPTH) {
    [[unroll]] for (uint q = 0; q < STEPS; ++q) {
      [[unroll]] for (uint i = 0; i < BLOCKS; ++i) {
        const VECTOR l = LOAD_L(i, k + q * DEPTH);
        [[unroll]] for (uint j = 0; j < SHORT; ++j) {
          sums[i][j] = FMA(l, VECTOR(LOAD_S(j, k + q * DEPTH)), sums[i][j]);
        }
      }
    }
  }
#endif
#if SHUFFLE || STEPS > 1
  [[dont_unroll]] for (; k < k_end; k += DEPTH) {
    [[unroll]] for (uint i = 0; i < BLOCKS; ++i) {
      const VECTOR l = LOAD_L(i, k);
      [[unroll]] for (uint j = 0; j < SHORT; ++j) {
        sums[i][j] = FMA(l, VECTOR(LOAD_S(j, k)), sums[i][j]);
      }
    }
  }
#endif

#if DEPTH > 1
  [[unroll]] for (uint i = 0; i < BLOCKS; ++i) {
    [[unroll]] for (uint j = 0; j < SHORT; ++j) layers[depth][i][j][lane] = sums[i][j];
  }
  barrier();
  if (depth > 0) return;
  [[unroll]] for (uint i = 0; i < BLOCKS; ++i) {
    [[unroll]] for (uint j = 0; j < SHORT; ++j) {
      for (uint d = 1; d < DEPTH; ++d) sums[i][j] += layers[d][i][j][lane];
    }
  }
#endif
  [[unroll]] for (uint i = 0; i < BLOCKS; ++i) {
    [[unroll]] for (uint e = 0; e < 4; ++e) {
#if VECTOR_L
      const uint row = row0 + (i * LANES + lane) * 4 + e;
#else
      const uint row = row0 + (i * 4 + e) * LANES + lane;
#endif
      [[unroll]] for (uint j = 0; j < SHORT; ++j) {
        if (row < rows && HAS_COLUMN(j)) store(block, row, j, sums[i][j][e]);
      }
    }
  }
}
