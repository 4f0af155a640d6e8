// C = alpha * op(A) * op(B) + beta * C, one tile of C per workgroup, operands staged in shared memory. For GPUs.
//
// A workgroup computes a BM x BN tile of C in steps of BK along k. For each step it holds A as BK x BM and B as BK x BN
// in shared memory; the next step's elements are loaded into registers while this step is multiplied. The last step
// loads itself again instead of testing whether there is a next one: a branch there costs a tenth of the speed.
//
//                 BN                    An invocation accumulates TM x TN of the tile: TM / 4 groups of 4 rows,
//          +-------------+              BM / (TM / 4) apart, by TN / 4 vectors of columns, BN / (TN / 4) apart.
//       BK |      B      |              Neighbouring invocations thus read neighbouring vectors.
//      BK  +-------------+
//    +----+-------------+
//    |    |             |
// BM | A  |      C      |
//    +----+-------------+               A subgroup of 32 covers eight by four invocations, so that it reads as
//                                       many elements of A as of B at once.
//
//# BM : 32|64|128|256 : rows of the tile
//# BN : 32|64|128|256 : columns of the tile
//# BK : 4|8|16|32|64 : steps of k in shared memory
//# TM : 4|8|16 : rows of an invocation; BM / TM is a multiple of 8
//# TN : 4|8|16 : columns of an invocation; BN / TN is a multiple of 4
//# VECTOR_A : 0|1 : 1: A is read as vec4: base, lda and contiguous extent, k (TRANS_A: m), are multiples of 4 elements
//# VECTOR_B : 0|1 : 1: likewise B; its contiguous extent is n (TRANS_B: k)
//# VECTOR_C : 0|1 : 1: C is read and written as vec4, likewise; its contiguous extent is n
//# UNROLL : 0|1 : 1: the loop over the BK steps is unrolled; a CPU driver takes minutes to compile that
//# PART : 0|1|2 : 1: tiles above C's diagonal are left out; 2: those below it
//# EDGE : 0|1 : 0: m, n, k are multiples of BM, BN, BK, and so is every split-K part
// BM * BK and BN * BK are each a multiple of 4 * invocations.
#define PAIRS 0
#include "kernels/gemm/tile/gemm_common.glsl"

#define INVOCATIONS ((BM / TM) * (BN / TN))
#define LOADS_A (BM * BK / 4 / INVOCATIONS)
#define LOADS_B (BN * BK / 4 / INVOCATIONS)
layout(local_size_x = INVOCATIONS) in;

#if UNROLL
#define UNROLL_HINT [[unroll]]
#else
#define UNROLL_HINT [[dont_unroll]]
#endif

//# constant SHARED_ELEMENTS : the elements in a workgroup's shared memory
const int SHARED_ELEMENTS = BK * (BM + 4 + BN);
shared SCALAR tile_a[BK][BM + 4];  // the padding spreads transposed stores over the banks
shared VECTOR tile_b[BK][BN / 4];

uint id = gl_LocalInvocationIndex;

// The elements that this invocation loads: load l holds four, numbered e. A vector is contiguous in memory; single
// elements of one load are INVOCATIONS apart, so that neighbouring invocations read neighbouring elements.
struct Place {
  uint k, other;  // within the tile; other is a row of A or a column of B
};
Place place_a(uint l, uint e) {
#if VECTOR_A
  uint v = id + l * INVOCATIONS;
  if (TRANS_A != 0) return Place(v / (BM / 4), v % (BM / 4) * 4 + e);
  return Place(v % (BK / 4) * 4 + e, v / (BK / 4));
#else
  uint s = id + (l * 4 + e) * INVOCATIONS;
  if (TRANS_A != 0) return Place(s / BM, s % BM);
  return Place(s % BK, s / BK);
#endif
}
Place place_b(uint l, uint e) {
#if VECTOR_B
  uint v = id + l * INVOCATIONS;
  if (TRANS_B != 0) return Place(v % (BK / 4) * 4 + e, v / (BK / 4));
  return Place(v / (BN / 4), v % (BN / 4) * 4 + e);
#else
  uint s = id + (l * 4 + e) * INVOCATIONS;
  if (TRANS_B != 0) return Place(s % BK, s / BK);
  return Place(s / BN, s % BN);
#endif
}

// Rows and columns beyond the matrix read its last ones and are never stored; elements beyond the end of k count as
// zero. Four contiguous elements are all inside or all outside, so clamping leaves room for four.
uint clamped(uint index, uint end, bool four) {
#if EDGE
  return min(index, end - (four ? 4 : 1));
#else
  return index;
#endif
}
TUFF_INDEX index_a(uint row, uint k, TUFF_INDEX lda) {
  return TRANS_A != 0 ? TUFF_INDEX(k) * lda + row : TUFF_INDEX(row) * lda + k;
}
TUFF_INDEX index_b(uint k, uint col, TUFF_INDEX ldb) {
  return TRANS_B != 0 ? TUFF_INDEX(col) * ldb + k : TUFF_INDEX(k) * ldb + col;
}
const bool A_FOUR_K = VECTOR_A != 0 && TRANS_A == 0, A_FOUR_ROWS = VECTOR_A != 0 && TRANS_A != 0;
const bool B_FOUR_K = VECTOR_B != 0 && TRANS_B != 0, B_FOUR_COLS = VECTOR_B != 0 && TRANS_B == 0;

void main() {
  Tile tile = this_tile(8);
  if (!tile.exists) return;
  const uint row0 = tile.row * BM, col0 = tile.col * BN;
#if PART == 1
  if (col0 >= row0 + BM) return;
#elif PART == 2
  if (row0 >= col0 + BN) return;
#endif
  const uint m = push.m, n = push.n, k_end = tile.k_end;
  const TUFF_INDEX lda = push.lda, ldb = push.ldb;
#if VECTOR_A
  TUFF_POINTER(A4, a_pointer, tile.a / 4);
#else
  TUFF_POINTER(A, a_pointer, tile.a);
#endif
#if VECTOR_B
  TUFF_POINTER(B4, b_pointer, tile.b / 4);
#else
  TUFF_POINTER(B, b_pointer, tile.b);
#endif

  VECTOR sums[TM][TN / 4];
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    [[unroll]] for (uint j = 0; j < TN / 4; ++j) sums[i][j] = VECTOR(0);
  }
  const uint part = id / 32, parts_x = BN / TN / 4;
  const uint tx = part % parts_x * 4 + id % 4, ty = part / parts_x * 8 + id % 32 / 4;

  // k_next: the step to load next; next_a, next_b: its elements.
  uint k_next = tile.k_begin;
  const uint k_last = tile.k_begin + (k_end - 1 - tile.k_begin) / BK * BK;
  VECTOR next_a[LOADS_A], next_b[LOADS_B];
#define LOAD_NEXT                                                                                     \
  [[unroll]] for (uint l = 0; l < LOADS_A; ++l) {                                                     \
    LOAD_A(l)                                                                                         \
  }                                                                                                   \
  [[unroll]] for (uint l = 0; l < LOADS_B; ++l) {                                                     \
    LOAD_B(l)                                                                                         \
  }
#if VECTOR_A
#define LOAD_A(l)                                                                                     \
  const Place at = place_a(l, 0);                                                                     \
  const uint row = clamped(row0 + at.other, m, A_FOUR_ROWS), k = clamped(k_next + at.k, k_end, A_FOUR_K); \
  next_a[l] = TUFF_FROM(A4, a_pointer, index_a(row, k, lda) / 4);
#else
#define LOAD_A(l)                                                                                     \
  [[unroll]] for (uint e = 0; e < 4; ++e) {                                                           \
    const Place at = place_a(l, e);                                                                   \
    const uint row = clamped(row0 + at.other, m, false), k = clamped(k_next + at.k, k_end, false);    \
    next_a[l][e] = TUFF_FROM(A, a_pointer, index_a(row, k, lda));                                       \
  }
#endif
#if VECTOR_B
#define LOAD_B(l)                                                                                     \
  const Place at = place_b(l, 0);                                                                     \
  const uint col = clamped(col0 + at.other, n, B_FOUR_COLS), k = clamped(k_next + at.k, k_end, B_FOUR_K); \
  next_b[l] = TUFF_FROM(B4, b_pointer, index_b(k, col, ldb) / 4);
#else
#define LOAD_B(l)                                                                                     \
  [[unroll]] for (uint e = 0; e < 4; ++e) {                                                           \
    const Place at = place_b(l, e);                                                                   \
    const uint col = clamped(col0 + at.other, n, false), k = clamped(k_next + at.k, k_end, false);    \
    next_b[l][e] = TUFF_FROM(B, b_pointer, index_b(k, col, ldb));                                       \
  }
#endif
  LOAD_NEXT

  [[dont_unroll]] for (uint k0 = tile.k_begin; k0 < k_end; k0 += BK) {
    [[unroll]] for (uint l = 0; l < LOADS_A; ++l) {
      [[unroll]] for (uint e = 0; e < 4; ++e) {
        const Place at = place_a(l, e);
#if EDGE
        tile_a[at.k][at.other] = k0 + at.k < k_end ? next_a[l][e] : SCALAR(0);
#else
        tile_a[at.k][at.other] = next_a[l][e];
#endif
      }
    }
    [[unroll]] for (uint l = 0; l < LOADS_B; ++l) {
#if VECTOR_B && !TRANS_B
      const Place at = place_b(l, 0);
#if EDGE
      tile_b[at.k][at.other / 4] = k0 + at.k < k_end ? next_b[l] : VECTOR(0);
#else
      tile_b[at.k][at.other / 4] = next_b[l];
#endif
#else
      [[unroll]] for (uint e = 0; e < 4; ++e) {
        const Place at = place_b(l, e);
#if EDGE
        tile_b[at.k][at.other / 4][at.other % 4] = k0 + at.k < k_end ? next_b[l][e] : SCALAR(0);
#else
        tile_b[at.k][at.other / 4][at.other % 4] = next_b[l][e];
#endif
      }
#endif
    }
    barrier();
    k_next = min(k0 + BK, k_last);
    LOAD_NEXT
    UNROLL_HINT for (uint k = 0; k < BK; ++k) {
      SCALAR a[TM];
      VECTOR b[TN / 4];
      [[unroll]] for (uint i = 0; i < TM; ++i) a[i] = tile_a[k][i / 4 * (BM / (TM / 4)) + ty * 4 + i % 4];
      [[unroll]] for (uint j = 0; j < TN / 4; ++j) b[j] = tile_b[k][j * (BN / TN) + tx];
      [[unroll]] for (uint i = 0; i < TM; ++i) {
        [[unroll]] for (uint j = 0; j < TN / 4; ++j) sums[i][j] = FMA(VECTOR(a[i]), b[j], sums[i][j]);
      }
    }
    barrier();
  }

  const SCALAR alpha = push.alpha, beta = push.beta;
  const TUFF_INDEX ldc = push.ldc;
#if VECTOR_C
  TUFF_POINTER(C4, c_pointer, tile.c / 4);
#else
  TUFF_POINTER(C, c_pointer, tile.c);
#endif
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    const uint row = row0 + i / 4 * (BM / (TM / 4)) + ty * 4 + i % 4;
    [[unroll]] for (uint j = 0; j < TN / 4; ++j) {
      const uint col = col0 + (j * (BN / TN) + tx) * 4;
      const TUFF_INDEX at = TUFF_INDEX(row) * ldc + col;
#if VECTOR_C
      if (EDGE == 0 || (row < m && col < n)) {
        VECTOR value = alpha * sums[i][j];
        if (beta != SCALAR(0)) value = FMA(VECTOR(beta), TUFF_FROM(C4, c_pointer, at / 4), value);
        TUFF_FROM(C4, c_pointer, at / 4) = value;
      }
#else
      [[unroll]] for (uint e = 0; e < 4; ++e) {
        if (EDGE == 0 || (row < m && col + e < n)) {
          SCALAR value = alpha * sums[i][j][e];
          if (beta != SCALAR(0)) value = FMA(beta, TUFF_FROM(C, c_pointer, at + e), value);
          TUFF_FROM(C, c_pointer, at + e) = value;
        }
      }
#endif
    }
  }
}
