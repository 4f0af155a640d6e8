// C = activation(alpha * op(A) * op(B) + beta * C + bias + residual) for a batch of tiny matrices, several per
// workgroup: a tile of C per workgroup would leave most invocations idle.
//
// ROW_PARTS x COL_PARTS invocations share a matrix; each accumulates ROWS x COLS elements in registers. Inputs are read
// as they are stored, straight from memory: invocations that need the same element are neighbours.
//
//                COL_PARTS = 4, COLS = 1                GPUs: neighbouring lanes of a subgroup take neighbouring
//            +---+---+---+---+                          columns, then rows, then matrices.
//   ROWS = 4 | 0 | 1 | 2 | 3 |   matrix 0               CPU devices, where each lane's load is separate: one matrix
//            +---+---+---+---+                          per lane, so that no lane is idle and every element is
//   ROWS = 4 | 4 | 5 | 6 | 7 |   ROW_PARTS = 2          loaded once.
//            +---+---+---+---+
//
//# LOCAL_SIZE : 1.. : invocations of a workgroup, a multiple of ROW_PARTS * COL_PARTS
//# ROWS : 1..8 : rows of an invocation
//# COLS : 1..8 : columns of an invocation
//# ROW_PARTS : 1|2 : invocations along a matrix's rows; ROWS * ROW_PARTS >= m
//# COL_PARTS : 1|2|4|8|16 : invocations along its columns; COLS * COL_PARTS >= n
//# EXACT : 0|1 : 1: ROWS * ROW_PARTS = m and COLS * COL_PARTS = n
//# DEPTH : 1|4 : steps of k at once; 4 if a vector runs along k
//# TRANS_A : 0|1 : 1: A is stored as k x m
//# TRANS_B : 0|1 : 1: B is stored as n x k
//# VECTOR_A : 0|1 : 1: A is read as vec4: rows are aligned to four elements; with TRANS_A also EXACT, ROWS % 4 = 0
//# VECTOR_B : 0|1 : 1: likewise B; without TRANS_B, EXACT and COLS a multiple of 4
//# BETA : 0|1 : 0: beta is 0
//# A_TYPE : 1..5|7|14..15 : TUFF_* type of A
//# B_TYPE : 1..5|7|14..15 : TUFF_* type of B
//# VECTOR_C : 0|1 : 1: C is written eight bytes at a time, for devices where each lane's store is separate; not f64
// VECTOR_C needs PAIRS, EXACT, every row aligned to eight bytes, and COLS a multiple of the elements in eight bytes.
#include "kernels/gemm/common/gemm_stored.glsl"
#include "kernels/gemm/common/gemm_number.glsl"

layout(push_constant, std430) uniform Push {
#if EPILOGUE
  TUFF_BASES(5)
#else
  TUFF_BASES(3)
#endif
  TUFF_INDEX lda, ldb, ldc;                 // elements from one stored row to the next
  TUFF_INDEX stride_a, stride_b, stride_c;  // elements from one matrix to the next
#if EPILOGUE
  TUFF_INDEX ld_residual, stride_bias, stride_residual;
#endif
  uint m, n, k, batch_count;
  NUMBER alpha, beta;
} push;

#define C_SLOT 2
#include "kernels/gemm/common/gemm_epilogue.glsl"

TUFF_READ(0, A, TUFF_STORED(A_TYPE), TUFF_BYTES(A_TYPE))
TUFF_READ(0, A4, GEMM_RAW(A_TYPE), GEMM_RAW_BYTES(A_TYPE))
TUFF_READ(1, B, TUFF_STORED(B_TYPE), TUFF_BYTES(B_TYPE))
TUFF_READ(1, B4, GEMM_RAW(B_TYPE), GEMM_RAW_BYTES(B_TYPE))

#if VECTOR_C
TUFF_WRITE(C_SLOT, Result8, uint64_t, 8)
#if C_TYPE == TUFF_F16 || C_TYPE == TUFF_BF16
#define TOGETHER 4
#if C_TYPE == TUFF_F16
#define BITS(x) tuff_f16_bits(x)
#else
#define BITS(x) tuff_bf16_bits(x)
#endif
uint64_t packed(NUMBER x[4]) { return pack64(uvec2(BITS(x[0]) | BITS(x[1]) << 16, BITS(x[2]) | BITS(x[3]) << 16)); }
#else
#define TOGETHER 2
#if C_TYPE == TUFF_I32
uint64_t packed(NUMBER x[2]) { return pack64(uvec2(x[0], x[1])); }
#else
uint64_t packed(NUMBER x[2]) { return pack64(floatBitsToUint(vec2(x[0], x[1]))); }
#endif
#endif
#endif

layout(local_size_x = LOCAL_SIZE) in;

#define PARTS (ROW_PARTS * COL_PARTS)
#define A_ALONG_K (VECTOR_A && !TRANS_A)
#define B_ALONG_K (VECTOR_B && TRANS_B)

void main() {
  const uint id = gl_LocalInvocationIndex, part = id % PARTS;
  const uint matrix = tuff_group() * (LOCAL_SIZE / PARTS) + id / PARTS;
  if (matrix >= push.batch_count) return;
  TUFF_TAKE(matrix)
  const uint m = push.m, n = push.n, k_end = push.k;
  const uint row0 = part / COL_PARTS * ROWS, col0 = part % COL_PARTS * COLS;

  // Rows and columns beyond the matrix read its last ones and are not stored.
  TUFF_POINTER(A, a_pointer, TUFF_INDEX(matrix) * push.stride_a);
  TUFF_POINTER(B, b_pointer, TUFF_INDEX(matrix) * push.stride_b);
#if VECTOR_A
  TUFF_POINTER(A4, a4_pointer, TUFF_INDEX(matrix) * push.stride_a / 4);
#endif
#if VECTOR_B
  TUFF_POINTER(B4, b4_pointer, TUFF_INDEX(matrix) * push.stride_b / 4);
#endif
  const TUFF_INDEX lda = push.lda, ldb = push.ldb;
  const TUFF_INDEX a_step = TRANS_A != 0 ? lda : TUFF_INDEX(1), b_step = TRANS_B != 0 ? TUFF_INDEX(1) : ldb;
  TUFF_INDEX a_at[ROWS], b_at[COLS];
  [[unroll]] for (uint i = 0; i < ROWS; ++i) {
    const uint row = EXACT != 0 ? row0 + i : min(row0 + i, m - 1);
    a_at[i] = TUFF_INDEX(row) * (TRANS_A != 0 ? TUFF_INDEX(1) : lda);
  }
  [[unroll]] for (uint j = 0; j < COLS; ++j) {
    const uint col = EXACT != 0 ? col0 + j : min(col0 + j, n - 1);
    b_at[j] = TUFF_INDEX(col) * (TRANS_B != 0 ? ldb : TUFF_INDEX(1));
  }
  SCALAR sums[ROWS][COLS];
  [[unroll]] for (uint i = 0; i < ROWS; ++i) {
    [[unroll]] for (uint j = 0; j < COLS; ++j) sums[i][j] = SCALAR(0);
  }

// Load this invocation's part of column k of A and of row k of B, one or four elements at a time.
#if VECTOR_A && TRANS_A
#define LOAD_A(a, k)                                                                                        \
  [[unroll]] for (uint i = 0; i < ROWS; i += 4) {                                                           \
    const VECTOR four = GEMM_UNPACK(A_TYPE, TUFF_FROM(A4, a4_pointer, (TUFF_INDEX(k) * lda + a_at[i]) / 4)); \
    [[unroll]] for (uint e = 0; e < 4; ++e) a[i + e] = four[e];                                             \
  }
#else
#define LOAD_A(a, k)                                                                                \
  [[unroll]] for (uint i = 0; i < ROWS; ++i) {                                                      \
    a[i] = TUFF_LOADED(A_TYPE, TUFF_FROM(A, a_pointer, a_at[i] + TUFF_INDEX(k) * a_step));          \
  }
#endif
#if VECTOR_B && !TRANS_B
#define LOAD_B(b, k)                                                                                        \
  [[unroll]] for (uint j = 0; j < COLS; j += 4) {                                                           \
    const VECTOR four = GEMM_UNPACK(B_TYPE, TUFF_FROM(B4, b4_pointer, (TUFF_INDEX(k) * ldb + b_at[j]) / 4)); \
    [[unroll]] for (uint e = 0; e < 4; ++e) b[j + e] = four[e];                                             \
  }
#else
#define LOAD_B(b, k)                                                                                \
  [[unroll]] for (uint j = 0; j < COLS; ++j) {                                                      \
    b[j] = TUFF_LOADED(B_TYPE, TUFF_FROM(B, b_pointer, b_at[j] + TUFF_INDEX(k) * b_step));          \
  }
#endif
#define MULTIPLY(a, b)                                                                               \
  [[unroll]] for (uint i = 0; i < ROWS; ++i) {                                                       \
    [[unroll]] for (uint j = 0; j < COLS; ++j) sums[i][j] = FMA(a[i], b[j], sums[i][j]);             \
  }

  uint k = 0;
#if DEPTH > 1
  [[dont_unroll]] for (; k + DEPTH <= k_end; k += DEPTH) {
    SCALAR a[DEPTH][ROWS], b[DEPTH][COLS];
#if A_ALONG_K
    [[unroll]] for (uint i = 0; i < ROWS; ++i) {
      const VECTOR four = GEMM_UNPACK(A_TYPE, TUFF_FROM(A4, a4_pointer, (a_at[i] + k) / 4));
      [[unroll]] for (uint q = 0; q < 4; ++q) a[q][i] = four[q];
    }
#else
    [[unroll]] for (uint q = 0; q < DEPTH; ++q) {
      LOAD_A(a[q], k + q)
    }
#endif
#if B_ALONG_K
    [[unroll]] for (uint j = 0; j < COLS; ++j) {
      const VECTOR four = GEMM_UNPACK(B_TYPE, TUFF_FROM(B4, b4_pointer, (b_at[j] + k) / 4));
      [[unroll]] for (uint q = 0; q < 4; ++q) b[q][j] = four[q];
    }
#else
    [[unroll]] for (uint q = 0; q < DEPTH; ++q) {
      LOAD_B(b[q], k + q)
    }
#endif
    [[unroll]] for (uint q = 0; q < DEPTH; ++q) {
      MULTIPLY(a[q], b[q])
    }
  }
#endif
  [[dont_unroll]] for (; k < k_end; ++k) {
    SCALAR a[ROWS], b[COLS];
    LOAD_A(a, k)
    LOAD_B(b, k)
    MULTIPLY(a, b)
  }

  const NUMBER alpha = push.alpha, beta = BETA != 0 ? push.beta : NUMBER(0);
  const TUFF_INDEX ldc = push.ldc, c = TUFF_INDEX(matrix) * push.stride_c;
#if EPILOGUE
  const TUFF_INDEX bias = TUFF_INDEX(matrix) * push.stride_bias;
  const TUFF_INDEX residual = TUFF_INDEX(matrix) * push.stride_residual, ld_residual = push.ld_residual;
#else
  const TUFF_INDEX bias = 0, residual = 0, ld_residual = 0;
#endif
  [[unroll]] for (uint i = 0; i < ROWS; ++i) {
    const uint row = row0 + i;
    const TUFF_INDEX c_row = c + TUFF_INDEX(row) * ldc;
    const TUFF_INDEX residual_row = residual + TUFF_INDEX(row) * ld_residual;
#if VECTOR_C
    [[unroll]] for (uint j = 0; j < COLS; j += TOGETHER) {
      NUMBER results[TOGETHER];
      [[unroll]] for (uint e = 0; e < TOGETHER; ++e) {
        const uint col = col0 + j + e;
        results[e] = gemm_result(alpha * NUMBER(sums[i][j + e]), beta, c_row + col, bias + (BIAS_AXIS == 1 ? row : col),
                                 residual_row + col);
      }
      TUFF_AT(Result8, (c_row + col0 + j) / TOGETHER) = packed(results);
    }
#else
    [[unroll]] for (uint j = 0; j < COLS; ++j) {
      const uint col = col0 + j;
      if (EXACT != 0 || (row < m && col < n)) {
        gemm_store(alpha * NUMBER(sums[i][j]), beta, c_row + col, bias + (BIAS_AXIS == 1 ? row : col),
                   residual_row + col);
      }
    }
#endif
  }
}
