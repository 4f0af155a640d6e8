// Matrix times one or a few vectors, where L's rows run along k or are few: one subgroup per ROWS rows.
//
// Each lane of a subgroup reads 4 consecutive elements along k. With INTERLEAVED its 4 elements are a subgroup's size
// apart, so that a strided S is read from fewer cache lines. Each lane accumulates every row, and the sums are then
// added over the lanes. A workgroup covers GROUP_ROWS rows, however many subgroups it turns out to have.
//
//# LOCAL_SIZE : 1.. : invocations of a workgroup
//# GROUP_ROWS : 1.. : rows of a workgroup, a multiple of ROWS
//# ROWS : 1|2|4 : rows of a subgroup at a time, which share the elements read of S
//# DEPTH : 1|4 : vec4 of a row that a lane has in flight; 4 keeps enough bytes in flight with small types
//# INTERLEAVED : 0|1 : 1: see above; excludes VECTOR_L and VECTOR_S
//# ALONG_K : 0|1 : 0: L is stored k x rows nevertheless
//# VECTOR_L : 0|1 : 1: L is read as vec4: ALONG_K, ld % 4 = 0 and alignment to 4 elements
//# VECTOR_S : 0|1 : 1: S is read as vec4: s_k is 1, s_col % 4 = 0 if there are several columns, alignment to 4 elements
#include "kernels/gemm/skinny/gemm_skinny_common.glsl"

layout(local_size_x = LOCAL_SIZE) in;

void main() {
  Block block = this_block();
  if (!block.exists) return;
  const uint lane = gl_SubgroupInvocationID, width = gl_SubgroupSize;
  const uint rows = push.rows, k_end = block.k_end;
#if INTERLEAVED
  const uint apart = width, k_vec4s = block.k_begin + (k_end - block.k_begin) / (4 * width) * (4 * width);
#else
  const uint apart = 1, k_vec4s = block.k_begin + (k_end - block.k_begin) / 4 * 4;
#endif
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
    SCALAR sums[ROWS][SHORT];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      l_at[r] = TUFF_INDEX(min(row0 + r, rows - 1)) * (ALONG_K != 0 ? ld : TUFF_INDEX(1));  // rows beyond the last are not stored
      [[unroll]] for (uint j = 0; j < SHORT; ++j) sums[r][j] = SCALAR(0);
    }
    uint k = block.k_begin + lane * (INTERLEAVED != 0 ? 1 : 4);
#define L_STEP (ALONG_K != 0 ? TUFF_INDEX(1) : ld)
#define LOAD_L(l, at)                                                                                             \
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {                                                                    \
    LOAD_ROW(l[r], l_at[r], at)                                                                                   \
  }
#if VECTOR_L
#define LOAD_ROW(l, row, at) l = LOAD_VECTOR_L(l4_pointer, ((row) + (at)) / 4);
#else
#define LOAD_ROW(l, row, at) \
  [[unroll]] for (uint e = 0; e < 4; ++e) l[e] = LOAD_SCALAR_L(l_pointer, (row) + TUFF_INDEX((at) + e * apart) * L_STEP);
#endif
#if VECTOR_S
#define LOAD_S(s, j, at) const VECTOR s = LOAD_VECTOR_S(s4_pointer, (COLUMN(j) * s_col + (at)) / 4);
#else
#define LOAD_S(s, j, at) \
  VECTOR s;              \
  [[unroll]] for (uint e = 0; e < 4; ++e) s[e] = LOAD_SCALAR_S(s_pointer, TUFF_INDEX((at) + e * apart) * s_k + COLUMN(j) * s_col);
#endif
#define SUM(l, s, r, j) \
  sums[r][j] = FMA(l.x, s.x, FMA(l.y, s.y, FMA(l.z, s.z, FMA(l.w, s.w, sums[r][j]))));
// One step of k, for all rows and columns.
#if DEPTH == 1 && SHORT <= 4
#define STEP(at)                                       \
  VECTOR s[SHORT];                                     \
  [[unroll]] for (uint j = 0; j < SHORT; ++j) {        \
    LOAD_S(s_j, j, at)                                 \
    s[j] = s_j;                                        \
  }                                                    \
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {         \
    VECTOR l;                                          \
    LOAD_ROW(l, l_at[r], at)                           \
    [[unroll]] for (uint j = 0; j < SHORT; ++j) {      \
      SUM(l, s[j], r, j)                               \
    }                                                  \
  }
#else
#define MULTIPLY(l, at)                                \
  [[unroll]] for (uint j = 0; j < SHORT; ++j) {        \
    LOAD_S(s, j, at)                                   \
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {       \
      SUM(l[r], s, r, j)                               \
    }                                                  \
  }
#define STEP(at)                                       \
  VECTOR l[ROWS];                                      \
  LOAD_L(l, at)                                        \
  MULTIPLY(l, at)
#endif
#if DEPTH > 1
    [[dont_unroll]] for (; k + (DEPTH - 1) * width * 4 < k_vec4s; k += DEPTH * width * 4) {
      VECTOR l[DEPTH][ROWS];
      [[unroll]] for (uint d = 0; d < DEPTH; ++d) {
        LOAD_L(l[d], k + d * width * 4)
      }
      [[unroll]] for (uint d = 0; d < DEPTH; ++d) {
        MULTIPLY(l[d], k + d * width * 4)
      }
    }
#endif
    [[dont_unroll]] for (; k < k_vec4s; k += width * 4) {
      STEP(k)
    }
    // Fewer than four steps of k are left, or with INTERLEAVED fewer than four per lane. (A branch is used where it
    // suffices: a loop costs up to a third.)
#if INTERLEAVED
    [[dont_unroll]] for (uint k_left = k_vec4s + lane; k_left < k_end; k_left += width) {
#else
    const uint k_left = k_vec4s + lane;
    if (k_left < k_end) {
#endif
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        [[unroll]] for (uint j = 0; j < SHORT; ++j) {
          sums[r][j] = FMA(LOAD_SCALAR_L(l_pointer, l_at[r] + TUFF_INDEX(k_left) * L_STEP),
                           LOAD_SCALAR_S(s_pointer, TUFF_INDEX(k_left) * s_k + COLUMN(j) * s_col), sums[r][j]);
        }
      }
    }
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      [[unroll]] for (uint j = 0; j < SHORT; ++j) {
        const SCALAR sum = subgroupAdd(sums[r][j]);
        if (lane == 0 && row0 + r < rows && HAS_COLUMN(j)) store(block, row0 + r, j, sum);
      }
    }
  }
}
