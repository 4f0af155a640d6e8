// C = alpha * op(A) * op(B) + beta * C, with a tile of C in the registers of one subgroup. For CPU devices, where
// shared memory and barriers cost as much as any other memory.
//
// A workgroup is one subgroup of WIDTH lanes. Its tile has ROW_BLOCKS * WIDTH rows and COL_BLOCKS * 4 * WIDTH
// columns; each lane accumulates all rows of 4 * COL_BLOCKS columns. For four steps of k at a time, a lane loads
// its columns of B and its ROW_BLOCKS rows of A; each value of A is passed to the other lanes by a shuffle:
//
//              lane  0    1    2   …                 columns of a lane, when B is read as vectors along its rows:
//   B  4 x         [bbbb|bbbb|bbbb|…]                  (block * WIDTH + lane) * 4 + c,
//   A  row 0  lane 0 [aaaa]                          otherwise
//      row 1  lane 1 [aaaa]                            (block * 4 + c) * WIDTH + lane
//
// Measured on Mesa 22.3 and 25.0 (x86, 8 lanes): a load is a gather that costs as much as a dozen multiply-adds, and
// loading 8 bytes per lane costs no more than loading 4, hence PAIRS. subgroupShuffle from a known lane is one
// instruction on both versions; subgroupBroadcast is a loop over the lanes on 22.3. The loop over rows is outermost so
// that an accumulator stays in its register for four multiply-adds. Rows and columns beyond the matrix read the last
// one and are not stored.
//
//# WIDTH : 2..16 : subgroup size
//# ROW_BLOCKS : 1|2|4 : rows of the tile, in units of WIDTH
//# COL_BLOCKS : 1|2 : columns of the tile, in units of 4 * WIDTH
//# VECTOR_A : 0|1 : 1: A is read as vec4 along k, or with TRANS_A as vec2 along m
//# VECTOR_B : 0|1 : 1: B is read as vec4: ldb % 4 = 0, 16-byte alignment, and with TRANS_B 0 n % 4 = 0
//# TRANS_C : 0|1 : 1: C is stored transposed, as COLS x ROWS: computes B transposed by A transposed, for few columns
//# C_TOGETHER : 1|2|4 : elements of C written at once; n, ldc and the alignment are multiples of it. 1 if TRANS_C
//# TAIL : 0|1 : 1: k is not a multiple of 4
//# BETA : 0|1 : 0: beta is 0
// VECTOR_A needs lda % 4 = 0 and 16-byte alignment, or with TRANS_A ROW_BLOCKS, lda and m even and 8-byte alignment.
#if PAIRS
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#include "kernels/gemm/tile/gemm_common.glsl"

TUFF_READ(0, A8, GEMM_TWO, PAIR_BYTES)
TUFF_READ(0, A16, GEMM_FOUR, VECTOR_BYTES)
TUFF_READ(1, B16, GEMM_FOUR, VECTOR_BYTES)

#if C_TOGETHER == 4
TUFF_READ_WRITE(2, Written, GEMM_FOUR, VECTOR_BYTES)
#define TOGETHER VECTOR
#elif C_TOGETHER == 2
TUFF_READ_WRITE(2, Written, GEMM_TWO, PAIR_BYTES)
#define TOGETHER PAIR
#else
TUFF_READ_WRITE(2, Written, SCALAR, SCALAR_BYTES)
#define TOGETHER SCALAR
#endif
#if C_TOGETHER > 1
#define PACK_C(x) gemm_pack(x)
#define UNPACK_C(x) gemm_unpack(x)
#else
#define PACK_C(x) (x)
#define UNPACK_C(x) (x)
#endif

layout(local_size_x = WIDTH) in;

#define ROWS (ROW_BLOCKS * WIDTH)
#define COLS (COL_BLOCKS * 4 * WIDTH)
// A lane's columns are adjacent if B is read, or C written, as vectors along the row.
const bool ADJACENT_COLS = C_TOGETHER > 1 || (VECTOR_B != 0 && TRANS_B == 0);
#define PAIRED_ROWS (VECTOR_A && TRANS_A)

uint lane = gl_SubgroupInvocationID;

// own_row(i): the tile row that this lane loads as its i-th. LANE_OF(r), BLOCK_OF(r): which lane loaded tile row r, and
// as which of its rows.
#if PAIRED_ROWS
uint own_row(uint i) { return (i / 2 * WIDTH + lane) * 2 + i % 2; }
#define LANE_OF(r) ((r) % (2 * WIDTH) / 2)
#define BLOCK_OF(r) ((r) / (2 * WIDTH) * 2 + (r) % 2)
#else
uint own_row(uint i) { return i * WIDTH + lane; }
#define LANE_OF(r) ((r) % WIDTH)
#define BLOCK_OF(r) ((r) / WIDTH)
#endif
uint own_col(uint j, uint c) { return ADJACENT_COLS ? (j * WIDTH + lane) * 4 + c : (j * 4 + c) * WIDTH + lane; }

VECTOR sums[ROWS][COL_BLOCKS];

void main() {
  Tile tile = this_tile(32);
  if (!tile.exists) return;
  uint row0 = tile.row * ROWS, col0 = tile.col * COLS;
  TUFF_INDEX lda = push.lda, ldb = push.ldb;
  uint k_begin = tile.k_begin, k_end = tile.k_end;

  // Element indices of this lane's rows and columns at the current k.
  TUFF_POINTER(A, a_pointer, tile.a);
  TUFF_POINTER(A8, a8_pointer, tile.a / 2);
  TUFF_POINTER(A16, a16_pointer, tile.a / 4);
  TUFF_POINTER(B, b_pointer, tile.b);
  TUFF_POINTER(B16, b16_pointer, tile.b / 4);
  TUFF_INDEX a_at[ROW_BLOCKS], b_at[COL_BLOCKS][4];
  const TUFF_INDEX a_step = TRANS_A != 0 ? lda : TUFF_INDEX(1), b_step = TRANS_B != 0 ? TUFF_INDEX(1) : ldb;
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
    uint row = min(row0 + own_row(i), push.m - 1);
    a_at[i] = TUFF_INDEX(row) * (TRANS_A != 0 ? TUFF_INDEX(1) : lda) + TUFF_INDEX(k_begin) * a_step;
  }
  [[unroll]] for (uint j = 0; j < COL_BLOCKS; ++j) {
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      uint col = min(col0 + own_col(j, c), push.n - (VECTOR_B != 0 && TRANS_B == 0 ? 4 - c : 1));
      b_at[j][c] = TUFF_INDEX(col) * (TRANS_B != 0 ? ldb : TUFF_INDEX(1)) + TUFF_INDEX(k_begin) * b_step;
    }
  }
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    [[unroll]] for (uint j = 0; j < COL_BLOCKS; ++j) sums[r][j] = VECTOR(0);
  }

  uint k = k_begin;
  [[dont_unroll]] for (; k + 4 <= k_end; k += 4) {
    SCALAR a[ROW_BLOCKS][4];
    [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
#if VECTOR_A && !TRANS_A
      VECTOR vector = gemm_unpack(TUFF_FROM(A16, a16_pointer, a_at[i] / 4));
      [[unroll]] for (uint q = 0; q < 4; ++q) a[i][q] = vector[q];
#elif VECTOR_A
      if (i % 2 == 0) {
        [[unroll]] for (uint q = 0; q < 4; ++q) {
          PAIR pair = gemm_unpack(TUFF_FROM(A8, a8_pointer, (a_at[i] + q * lda) / 2));
          a[i][q] = pair.x;
          a[i + 1][q] = pair.y;
        }
      }
#else
      [[unroll]] for (uint q = 0; q < 4; ++q) a[i][q] = TUFF_FROM(A, a_pointer, a_at[i] + q * a_step);
#endif
      a_at[i] += 4 * a_step;
    }
    VECTOR b[4][COL_BLOCKS];
    [[unroll]] for (uint j = 0; j < COL_BLOCKS; ++j) {
#if VECTOR_B && !TRANS_B
      [[unroll]] for (uint q = 0; q < 4; ++q) {
        b[q][j] = gemm_unpack(TUFF_FROM(B16, b16_pointer, (b_at[j][0] + q * ldb) / 4));
      }
      b_at[j][0] += 4 * b_step;
#else
      [[unroll]] for (uint c = 0; c < 4; ++c) {
#if VECTOR_B
        VECTOR vector = gemm_unpack(TUFF_FROM(B16, b16_pointer, b_at[j][c] / 4));
        [[unroll]] for (uint q = 0; q < 4; ++q) b[q][j][c] = vector[q];
#else
        [[unroll]] for (uint q = 0; q < 4; ++q) b[q][j][c] = TUFF_FROM(B, b_pointer, b_at[j][c] + q * b_step);
#endif
        b_at[j][c] += 4 * b_step;
      }
#endif
    }
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      [[unroll]] for (uint q = 0; q < 4; ++q) {
        SCALAR value = subgroupShuffle(a[BLOCK_OF(r)][q], LANE_OF(r));
        [[unroll]] for (uint j = 0; j < COL_BLOCKS; ++j) sums[r][j] = FMA(VECTOR(value), b[q][j], sums[r][j]);
      }
    }
  }
#if TAIL
  [[dont_unroll]] for (; k < k_end; ++k) {
    SCALAR a[ROW_BLOCKS];
    [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
      a[i] = TUFF_FROM(A, a_pointer, a_at[i]);
      a_at[i] += a_step;
    }
    VECTOR b[COL_BLOCKS];
    [[unroll]] for (uint j = 0; j < COL_BLOCKS; ++j) {
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        b[j][c] = TUFF_FROM(B, b_pointer, VECTOR_B != 0 && TRANS_B == 0 ? b_at[j][0] + c : b_at[j][c]);
      }
      [[unroll]] for (uint c = 0; c < 4; ++c) b_at[j][c] += b_step;
    }
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      SCALAR value = subgroupShuffle(a[BLOCK_OF(r)], LANE_OF(r));
      [[unroll]] for (uint j = 0; j < COL_BLOCKS; ++j) sums[r][j] = FMA(VECTOR(value), b[j], sums[r][j]);
    }
  }
#endif

  const SCALAR alpha = push.alpha, beta = push.beta;
  const TUFF_INDEX ldc = push.ldc;
  TUFF_POINTER(Written, c_pointer, tile.c / C_TOGETHER);
#if TRANS_C
#define C_AT(row, col) (TUFF_INDEX(col) * ldc + (row))
#else
#define C_AT(row, col) (TUFF_INDEX(row) * ldc + (col))
#endif
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    if (row0 + r < push.m) {
      [[unroll]] for (uint j = 0; j < COL_BLOCKS; ++j) {
        const VECTOR values = alpha * sums[r][j];
        [[unroll]] for (uint c = 0; c < 4; c += C_TOGETHER) {
          const uint col = col0 + own_col(j, c);
          if (col < push.n) {
            const TUFF_INDEX at = C_AT(row0 + r, col) / C_TOGETHER;
#if C_TOGETHER == 4
            VECTOR value = values;
#elif C_TOGETHER == 2
            PAIR value = PAIR(values[c], values[c + 1]);
#else
            SCALAR value = values[c];
#endif
#if BETA
            value = FMA(TOGETHER(beta), UNPACK_C(TUFF_FROM(Written, c_pointer, at)), value);
#endif
            TUFF_FROM(Written, c_pointer, at) = PACK_C(value);
          }
        }
      }
    }
  }
}
