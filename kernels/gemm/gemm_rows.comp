// Matrix x vector (or up to 4 vectors) where L's rows lie along k: a subgroup for each ROWS rows.
//
// The lanes of a subgroup read 4 consecutive k each, side by side; every row is summed by each lane, then over
// the lanes. A workgroup covers GROUP_ROWS rows, whatever number of subgroups it turns out to have.
//
// Defines: SHORT, PAIRS
//          LOCAL_SIZE   invocations
//          GROUP_ROWS   rows of a workgroup, a multiple of ROWS
//          ROWS         rows of a subgroup at a time: they share what is read of S
//          VECTOR_L     ld % 4 = 0 and 16-byte alignment
//          VECTOR_S     S lies along k, s_col % 4 = 0 if SHORT > 1, and 16-byte alignment
#include "kernels/gemm/gemm_skinny_common.glsl"

layout(local_size_x = LOCAL_SIZE) in;

void main() {
  Block block = this_block();
  if (!block.exists) return;
  const uint lane = gl_SubgroupInvocationID, width = gl_SubgroupSize;
  const uint rows = push.rows, k_end = block.k_end;
  const uint k_fours = block.k_begin + (k_end - block.k_begin) / 4 * 4;
  const TUFF_INDEX ld = push.ld, s_k = push.s_k, s_col = push.s_col;
  TUFF_POINTER(L, l_pointer, block.l);
  TUFF_POINTER(S, s_pointer, block.s);
#if VECTOR_L
  TUFF_POINTER(L4, l4_pointer, block.l / 4);
#endif
#if VECTOR_S
  TUFF_POINTER(S4, s4_pointer, block.s / 4);
#endif

  for (uint part = gl_SubgroupID * ROWS; part < GROUP_ROWS; part += gl_NumSubgroups * ROWS) {
    const uint row0 = block.row_block * GROUP_ROWS + part;
    TUFF_INDEX l_at[ROWS];
    float sums[ROWS][SHORT];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      l_at[r] = TUFF_INDEX(min(row0 + r, rows - 1)) * ld;  // rows beyond the last are not stored
      [[unroll]] for (uint j = 0; j < SHORT; ++j) sums[r][j] = 0.0;
    }
    [[dont_unroll]] for (uint k = block.k_begin + lane * 4; k < k_fours; k += width * 4) {
      vec4 s[SHORT];
      [[unroll]] for (uint j = 0; j < SHORT; ++j) {
#if VECTOR_S
        s[j] = gemm_unpack(TUFF_FROM(S4, s4_pointer, (j * s_col + k) / 4));
#else
        [[unroll]] for (uint e = 0; e < 4; ++e) s[j][e] = TUFF_FROM(S, s_pointer, TUFF_INDEX(k + e) * s_k + j * s_col);
#endif
      }
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
#if VECTOR_L
        const vec4 l = gemm_unpack(TUFF_FROM(L4, l4_pointer, (l_at[r] + k) / 4));
#else
        vec4 l;
        [[unroll]] for (uint e = 0; e < 4; ++e) l[e] = TUFF_FROM(L, l_pointer, l_at[r] + k + e);
#endif
        [[unroll]] for (uint j = 0; j < SHORT; ++j) {
          sums[r][j] = fma(l.x, s[j].x, fma(l.y, s[j].y, fma(l.z, s[j].z, fma(l.w, s[j].w, sums[r][j]))));
        }
      }
    }
    // At most three are left.
    const uint k = k_fours + lane;
    if (k < k_end) {
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        [[unroll]] for (uint j = 0; j < SHORT; ++j) {
          sums[r][j] = fma(TUFF_FROM(L, l_pointer, l_at[r] + k),
                           TUFF_FROM(S, s_pointer, TUFF_INDEX(k) * s_k + j * s_col), sums[r][j]);
        }
      }
    }
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      [[unroll]] for (uint j = 0; j < SHORT; ++j) {
        const float sum = subgroupAdd(sums[r][j]);
        if (lane == 0 && row0 + r < rows) {
          store(block.out_ + TUFF_INDEX(row0 + r) * push.out_row + j * push.out_col, sum);
        }
      }
    }
  }
}
