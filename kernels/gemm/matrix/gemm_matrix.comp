// C = activation(alpha * op(A) * op(B) + beta * C + bias + residual) by cooperative matrices: 16-bit or 8-bit inputs,
// 32-bit accumulators.
//
// A workgroup computes a BM x BN tile of C in steps of BK along k. Each of its subgroups computes WM x WN of the tile
// as MM x MN matrices in registers:
//
//                    BN                      Each step's part of A and B is kept in shared memory in the buffer's own
//            +----------------+              layout (a transposed operand is read column-major from there). It consists
//        BK  |       B        |              of pieces of 16 bytes; one padding piece after each row spreads the rows
//       BK   +----------------+              over the banks. The next step's part is loaded into registers while this
//     +----+ +--------+-------+              one is multiplied; the last step loads itself again instead of testing
//     |    | |   WN   |       |              whether there is a next one.
//  BM | A  | |WM      |       |
//     |    | +--------+-------+              Two workgroups on a multiprocessor alternate between memory and the tensor
//     |    | |        |   C   |              cores, so a workgroup uses at most half of the shared memory. Double
//     +----+ +--------+-------+              buffering would save a barrier but costs more than it gains.
//
// At the end the sums pass through shared memory, MM rows of each subgroup at a time, so that C is written in whole
// rows and the epilogue is applied.
//
//# BM : 16|32|64|128|256 : rows of a workgroup's tile
//# BN : 16|32|64|128|256 : columns of a workgroup's tile
//# BK : 16|32|64|128 : steps of k at a time
//# WM : 16|32|64 : rows of a subgroup's part of the tile, a multiple of MM
//# WN : 16|32|64 : columns of a subgroup's part, a multiple of MN
//# WIDTH : 1..128 : subgroup size
//# TRANS_A : 0|1 : 1: A is stored as k x m
//# TRANS_B : 0|1 : 1: B is stored as n x k
//# A_BYTES : 1|2|4|16 : bytes of A loaded at once: 16, 4, or one element, see below
//# B_BYTES : 1|2|4|16 : bytes of B loaded at once
//# PADDED_A : 0|1 : 1: A_BYTES is 16, and A's rows are padded to whole pieces whatever their length, see below
//# PADDED_B : 0|1 : 1: likewise B
//# EDGE : 0|1 : 0: m, n, k are multiples of BM, BN, BK, and so is every split-K part
//# WINDOWS : 0..2 : 1: the rows of A (not transposed) are windows of images, see below; 2: those of B (transposed) are
//# WINDOW_VALID : 0.. : with WINDOWS: how many of a tap's channels count; the rest belong to another window. 0: all
//# C_VECTOR : 0|1 : 1: C is written, and C, bias and residual are read, as vec4, see below
//# BETA : 0|1 : with C_VECTOR: 0: beta is 0
//
// Base, leading dimension, stride and the contiguous extent are multiples of what is loaded at once. The extent of
// padded rows need not be: elements past the end are ignored. C_VECTOR needs elements of 2 or 4 bytes, and bases,
// leading dimensions, strides and n that are multiples of 4; an i32 C then has no epilogue and beta 0.
//
// Windows are numbered one after another: window j of an image begins at (j / width) * ld + (j % width) * step. k is
// (tap, channel); the channels of a tap, a multiple of BK, are contiguous. The batch is one: the operand's stride leads
// to the next image, and the other operand's stride holds the number of windows in an image. If C's columns are
// windows, C has one matrix per image, with dense rows.
#include "kernels/common/matrix.glsl"
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
  uint m, n, k;
  uint batch_count, slices, k_slice;  // slices: split-K parts; k_slice: length of one along k
  uint tiles_m, tiles_n;
  NUMBER alpha, beta;
#if WINDOWS
  uint tap_row;     // elements from a row of taps to the next
  uint width_step;  // windows in a row, and elements from one to the next, 16 bits each
  uint taps;        // channels (16 bits), taps in a row (8), pixels from one to the next (8)
#endif
} push;

#if TUFF_MATRICES_INT8
#define ELEMENT_BYTES 1
#define STORED uint8_t
#define SUM int
#define AS_SUMS(bits) ivec4(bits)
#else
#define ELEMENT_BYTES 2
#define STORED uint16_t
#define SUM float
#define AS_SUMS(bits) uintBitsToFloat(bits)
#endif
TUFF_READ(0, A16, uvec4, 16)
TUFF_READ(0, A4, uint, 4)
TUFF_READ(0, A1, STORED, ELEMENT_BYTES)
TUFF_READ(1, B16, uvec4, 16)
TUFF_READ(1, B4, uint, 4)
TUFF_READ(1, B1, STORED, ELEMENT_BYTES)
#define C_SLOT 2
#include "kernels/gemm/common/gemm_epilogue.glsl"
#if C_VECTOR
#if C_TYPE == TUFF_F16 || C_TYPE == TUFF_BF16
#define FOUR uvec2
#define FOUR_BYTES 8
#else
#define FOUR uvec4
#define FOUR_BYTES 16
#endif
TUFF_READ_WRITE(2, Four, FOUR, FOUR_BYTES)
#if BIAS_AXIS == 2
TUFF_READ(3, BiasFour, FOUR, FOUR_BYTES)
#endif
#if RESIDUAL
TUFF_READ(4, ResidualFour, FOUR, FOUR_BYTES)
#endif
#define FOUR_NUMBERS(raw) TUFF_UNPACKED(C_TYPE, raw)
#endif
#include "kernels/common/pointer.glsl"
#include "kernels/gemm/common/gemm_place.glsl"

#define PIECE (16 / ELEMENT_BYTES)  // elements
#define PER_WORD (4 / ELEMENT_BYTES)
#define SUBGROUPS ((BM / WM) * (BN / WN))
#define INVOCATIONS (SUBGROUPS * WIDTH)
layout(local_size_x = INVOCATIONS) in;

// The tiles in shared memory: rows as stored, measured in pieces.
#define A_ROW_PIECES ((TRANS_A != 0 ? BM : BK) / PIECE)
#define B_ROW_PIECES ((TRANS_B != 0 ? BK : BN) / PIECE)
#define A_PITCH (A_ROW_PIECES + 1)
#define B_PITCH (B_ROW_PIECES + 1)
#define A_SIZE ((TRANS_A != 0 ? BK : BM) * A_PITCH)
#define B_SIZE ((TRANS_B != 0 ? BN : BK) * B_PITCH)
#define OUT_PITCH (WN / 4 + 1)
#define OUT_SIZE (SUBGROUPS * MM * OUT_PITCH)
shared uvec4 pool[max(A_SIZE + B_SIZE, OUT_SIZE)];
#define LOADS_A (BM * BK / PIECE / INVOCATIONS)
#define LOADS_B (BN * BK / PIECE / INVOCATIONS)

uint id = gl_LocalInvocationIndex;

// The row and column of a tile's v-th piece. Neighbouring invocations read along a row, and eight of them store to
// different banks. With four pieces in a row (a pitch of five) every other group of four therefore takes a row four
// further down.
#define TILE_ROW(v, row_pieces) \
  ((row_pieces) == 4 ? (v) / 32 * 8 + (v) / 4 % 8 / 2 + (v) / 4 % 2 * 4 : (v) / (row_pieces))
#define TILE_PIECE(v, row_pieces) ((v) % (row_pieces))

#if EDGE
#define CLAMPED(x, end, unit) min((x), (end) - (unit))
#else
#define CLAMPED(x, end, unit) (x)
#endif

// A piece that starts at k, with elements beyond k_end set to zero. `along`: it runs along k; otherwise across it.
// `whole`: pieces are entirely inside or outside.
uvec4 kept(uvec4 piece, uint k, uint k_end, bool along, bool whole) {
  if (!along || whole) return k < k_end ? piece : uvec4(0);
  [[unroll]] for (uint e = 0; e < PIECE; ++e) {
    const uint mask = ((1u << (8 * ELEMENT_BYTES)) - 1u) << (e % PER_WORD * 8 * ELEMENT_BYTES);
    if (k + e >= k_end) piece[e / PER_WORD] &= ~mask;
  }
  return piece;
}

// The index of C's or the residual's element (row, col), with leading dimension ld.
#define IMAGE_WINDOWS (WINDOWS == 1 ? push.stride_b : push.stride_a)
TUFF_INDEX place(uint row, uint col, TUFF_INDEX ld) {
#if WINDOWS == 2
  const uint image = col / IMAGE_WINDOWS;
  return TUFF_INDEX(image * push.m + row) * ld + (col - image * IMAGE_WINDOWS);
#else
  return TUFF_INDEX(row) * ld + col;
#endif
}

void main() {
  const Tile tile = this_tile(8);
  if (!tile.exists) return;
  const uint row0 = tile.row * BM, col0 = tile.col * BN;
  const uint m = push.m, n = push.n, k_end = tile.k_end;
  const TUFF_INDEX lda = push.lda, ldb = push.ldb;
  TUFF_POINTER(A16, a16_pointer, tile.a / PIECE);
  TUFF_POINTER(A4, a4_pointer, tile.a / PER_WORD);
  TUFF_POINTER(A1, a1_pointer, tile.a);
  TUFF_POINTER(B16, b16_pointer, tile.b / PIECE);
  TUFF_POINTER(B4, b4_pointer, tile.b / PER_WORD);
  TUFF_POINTER(B1, b1_pointer, tile.b);
  const uint subgroup = gl_SubgroupID, lane = gl_SubgroupInvocationID;
  const uint sub_row = subgroup / (BN / WN) * WM, sub_col = subgroup % (BN / WN) * WN;

  MATRIX_C sums[WM / MM][WN / MN];
  [[unroll]] for (uint i = 0; i < WM / MM; ++i) {
    [[unroll]] for (uint j = 0; j < WN / MN; ++j) sums[i][j] = MATRIX_C(0);
  }

  const uint k_last = tile.k_begin + (k_end - 1 - tile.k_begin) / BK * BK;
  uvec4 next_a[LOADS_A], next_b[LOADS_B];

// The l-th piece that this invocation loads: its position in the tile, as stored.
#define ROW_A(l) TILE_ROW(id + (l) * INVOCATIONS, A_ROW_PIECES)
#define COL_A(l) (TILE_PIECE(id + (l) * INVOCATIONS, A_ROW_PIECES) * PIECE)
#define ROW_B(l) TILE_ROW(id + (l) * INVOCATIONS, B_ROW_PIECES)
#define COL_B(l) (TILE_PIECE(id + (l) * INVOCATIONS, B_ROW_PIECES) * PIECE)
// Its position in the matrix, as stored.
#define GLOBAL_ROW_A(l, k0) (TRANS_A != 0 ? (k0) + ROW_A(l) : row0 + ROW_A(l))
#define GLOBAL_COL_A(l, k0) (TRANS_A != 0 ? row0 + COL_A(l) : (k0) + COL_A(l))
#define GLOBAL_ROW_B(l, k0) (TRANS_B != 0 ? col0 + ROW_B(l) : (k0) + ROW_B(l))
#define GLOBAL_COL_B(l, k0) (TRANS_B != 0 ? (k0) + COL_B(l) : col0 + COL_B(l))
#define WHOLE_PIECES(x, padded) ((padded) != 0 ? ((x) + PIECE - 1) / PIECE * PIECE : (x))
#define END_ROW_A (TRANS_A != 0 ? k_end : m)
#define END_COL_A WHOLE_PIECES(TRANS_A != 0 ? m : k_end, PADDED_A)
#define END_ROW_B (TRANS_B != 0 ? n : k_end)
#define END_COL_B WHOLE_PIECES(TRANS_B != 0 ? k_end : n, PADDED_B)
#define K_OF_A(l, k0) ((k0) + (TRANS_A != 0 ? ROW_A(l) : COL_A(l)))
#define K_OF_B(l, k0) ((k0) + (TRANS_B != 0 ? COL_B(l) : ROW_B(l)))

#if WINDOWS
#define LOADS_W (WINDOWS == 1 ? LOADS_A : LOADS_B)
  const TUFF_INDEX image_stride = WINDOWS == 1 ? push.stride_a : push.stride_b;
  const uint width = push.width_step & 0xffffu, step = push.width_step >> 16;
  const uint channels = push.taps & 0xffffu, taps_x = push.taps >> 16 & 0xffu, tap_step = (push.taps >> 24) * channels;
  TUFF_INDEX window_at[LOADS_W];
  [[unroll]] for (uint l = 0; l < LOADS_W; ++l) {
    const uint row = WINDOWS == 1 ? min(row0 + ROW_A(l), m - 1) : min(col0 + ROW_B(l), n - 1);
    const uint image = row / IMAGE_WINDOWS, window = row - image * IMAGE_WINDOWS, y = window / width;
    window_at[l] = TUFF_INDEX(image) * image_stride + TUFF_INDEX(y) * (WINDOWS == 1 ? lda : ldb) +
                   (window - y * width) * step + (WINDOWS == 1 ? COL_A(l) : COL_B(l));
  }
  // The current k as channel, tap in its row of taps, and offset of that row.
  uint tap = tile.k_begin / channels, channel = tile.k_begin - tap * channels;
  TUFF_INDEX tap_row_at = TUFF_INDEX(tap / taps_x) * push.tap_row;
  tap %= taps_x;
#define LOAD_WINDOW(next, X, x, LOADS)                                                                       \
  {                                                                                                          \
    const TUFF_INDEX tap_at = tap_row_at + tap * tap_step + channel;                                         \
    [[unroll]] for (uint l = 0; l < LOADS; ++l) next[l] = TUFF_FROM(X##16, x##16_pointer, (window_at[l] + tap_at) / PIECE); \
  }
#endif

// Loads a piece; BYTES, which selects LOAD_PIECE_16, _4, _2 or _1, is how many bytes are loaded at once.
#define LOAD_PIECE(out, X, x, ld, row, col, end_row, end_col, BYTES)                                        \
  {                                                                                                         \
    const TUFF_INDEX start = TUFF_INDEX(CLAMPED(row, end_row, 1)) * ld;                                     \
    LOAD_PIECE_##BYTES(out, X, x, start, col, end_col)                                                      \
  }
#define LOAD_PIECE_(out, X, x, ld, row, col, end_row, end_col, BYTES) \
  LOAD_PIECE(out, X, x, ld, row, col, end_row, end_col, BYTES)
#define LOAD_PIECE_16(out, X, x, start, col, end_col) \
  out = TUFF_FROM(X##16, x##16_pointer, (start + CLAMPED(col, end_col, PIECE)) / PIECE);
#define LOAD_PIECE_4(out, X, x, start, col, end_col)                                                          \
  [[unroll]] for (uint w = 0; w < 4; ++w) {                                                                   \
    out[w] = TUFF_FROM(X##4, x##4_pointer, (start + CLAMPED((col) + w * PER_WORD, end_col, PER_WORD)) / PER_WORD); \
  }
#define LOAD_PIECE_2(out, X, x, start, col, end_col)                                                          \
  [[unroll]] for (uint w = 0; w < 4; ++w) {                                                                   \
    out[w] = 0;                                                                                               \
    [[unroll]] for (uint e = 0; e < PER_WORD; ++e) {                                                          \
      const uint at = (col) + w * PER_WORD + e;                                                               \
      out[w] |= uint(TUFF_FROM(X##1, x##1_pointer, start + CLAMPED(at, end_col, 1))) << (e * 8 * ELEMENT_BYTES); \
    }                                                                                                         \
  }
#define LOAD_PIECE_1(out, X, x, start, col, end_col) LOAD_PIECE_2(out, X, x, start, col, end_col)

#if WINDOWS == 1
#define LOAD_NEXT_A(k0) LOAD_WINDOW(next_a, A, a, LOADS_A)
#else
#define LOAD_NEXT_A(k0)                                                                                          \
  [[unroll]] for (uint l = 0; l < LOADS_A; ++l) {                                                                \
    LOAD_PIECE_(next_a[l], A, a, lda, GLOBAL_ROW_A(l, k0), GLOBAL_COL_A(l, k0), END_ROW_A, END_COL_A, A_BYTES)   \
  }
#endif
#if WINDOWS == 2
#define LOAD_NEXT_B(k0) LOAD_WINDOW(next_b, B, b, LOADS_B)
#else
#define LOAD_NEXT_B(k0)                                                                                          \
  [[unroll]] for (uint l = 0; l < LOADS_B; ++l) {                                                                \
    LOAD_PIECE_(next_b[l], B, b, ldb, GLOBAL_ROW_B(l, k0), GLOBAL_COL_B(l, k0), END_ROW_B, END_COL_B, B_BYTES)   \
  }
#endif
#define LOAD_NEXT(k0) LOAD_NEXT_A(k0) LOAD_NEXT_B(k0)

#if EDGE
#define KEPT(piece, k, along, whole) kept(piece, k, k_end, along, whole)
#else
#define KEPT(piece, k, along, whole) (piece)
#endif
// A piece of a window: `channel` is still that of the step whose pieces were loaded.
#if WINDOW_VALID
#define KEPT_WINDOW(piece, col) kept(piece, channel + (col), WINDOW_VALID, true, false)
#else
#define KEPT_WINDOW(piece, col) (piece)
#endif
#if WINDOWS == 1
#define KEPT_A(l, k0) KEPT_WINDOW(next_a[l], COL_A(l))
#else
#define KEPT_A(l, k0) KEPT(next_a[l], K_OF_A(l, k0), TRANS_A == 0, A_BYTES == 16 && PADDED_A == 0)
#endif
#if WINDOWS == 2
#define KEPT_B(l, k0) KEPT_WINDOW(next_b[l], COL_B(l))
#else
#define KEPT_B(l, k0) KEPT(next_b[l], K_OF_B(l, k0), TRANS_B != 0, B_BYTES == 16 && PADDED_B == 0)
#endif
#define A_AT(row, kk) (TRANS_A != 0 ? (kk) * A_PITCH + (row) / PIECE : (row) * A_PITCH + (kk) / PIECE)
#define B_AT(kk, col) (A_SIZE + (TRANS_B != 0 ? (col) * B_PITCH + (kk) / PIECE : (kk) * B_PITCH + (col) / PIECE))

  LOAD_NEXT(tile.k_begin)
  [[dont_unroll]] for (uint k0 = tile.k_begin; k0 < k_end; k0 += BK) {
    barrier();
    [[unroll]] for (uint l = 0; l < LOADS_A; ++l) {
      pool[ROW_A(l) * A_PITCH + COL_A(l) / PIECE] = KEPT_A(l, k0);
    }
    [[unroll]] for (uint l = 0; l < LOADS_B; ++l) {
      pool[A_SIZE + ROW_B(l) * B_PITCH + COL_B(l) / PIECE] = KEPT_B(l, k0);
    }
    barrier();
    const uint k_next = min(k0 + BK, k_last);
#if WINDOWS
    channel += k_next - k0;
    const bool tap_ends = channel == channels;
    channel = tap_ends ? 0 : channel;
    tap += tap_ends ? 1 : 0;
    const bool row_ends = tap == taps_x;
    tap = row_ends ? 0 : tap;
    tap_row_at += row_ends ? push.tap_row : 0;
#endif
    LOAD_NEXT(k_next)
    [[unroll]] for (uint kk = 0; kk < BK; kk += MK) {
      MATRIX_A a[WM / MM];
      [[unroll]] for (uint i = 0; i < WM / MM; ++i) {
        MATRIX_LOAD(a[i], pool, A_AT(sub_row + i * MM, kk), A_PITCH, TRANS_A != 0);
      }
      [[unroll]] for (uint j = 0; j < WN / MN; ++j) {
        MATRIX_B b;
        MATRIX_LOAD(b, pool, B_AT(kk, sub_col + j * MN), B_PITCH, TRANS_B != 0);
        [[unroll]] for (uint i = 0; i < WM / MM; ++i) sums[i][j] = MATRIX_MULTIPLY_ADD(a[i], b, sums[i][j]);
      }
    }
  }

  // Store C, MM rows of each subgroup at a time.
  const NUMBER alpha = push.alpha, beta = push.beta;
  const TUFF_INDEX ldc = push.ldc;
  const uint out_at = subgroup * MM * OUT_PITCH;
#if C_VECTOR
#define FOURS (MM * WN / 4 / WIDTH)  // vec4 per invocation
#define FOUR_ROW(u) (first_row + ((u) * WIDTH + lane) / (WN / 4))
#define FOUR_COL(u) (first_col + ((u) * WIDTH + lane) % (WN / 4) * 4)
#if RESIDUAL
// The residual is loaded before the first store, which it would otherwise wait for: 16-bit elements all at once, 32-bit
// ones one group of rows at a time, for lack of registers.
#define GROUPS_AHEAD (FOUR_BYTES == 8 ? WM / MM : 1)
#define LOAD_RESIDUAL(group)                                                                                            \
  {                                                                                                                     \
    const uint first_row = row0 + sub_row + (group) * MM, first_col = col0 + sub_col;                                   \
    [[unroll]] for (uint u = 0; u < FOURS; ++u) {                                                                       \
      const bool exists = FOUR_ROW(u) < m && FOUR_COL(u) < n;                                                           \
      const TUFF_INDEX at = place(FOUR_ROW(u), FOUR_COL(u), push.ld_residual);                                             \
      residual[(group) % GROUPS_AHEAD][u] = TUFF_FROM(ResidualFour, residual_pointer, exists ? at / 4 : TUFF_INDEX(0)); \
    }                                                                                                                   \
  }
  FOUR residual[GROUPS_AHEAD][FOURS];
  TUFF_POINTER(ResidualFour, residual_pointer, tile.batch * push.stride_residual / 4);
  [[unroll]] for (uint i = 0; i < GROUPS_AHEAD; ++i) LOAD_RESIDUAL(i)
#endif
#endif
  barrier();
  [[unroll]] for (uint i = 0; i < WM / MM; ++i) {
    [[unroll]] for (uint j = 0; j < WN / MN; ++j) MATRIX_STORE(sums[i][j], pool, out_at + j * MN / 4, OUT_PITCH);
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    const uint first_row = row0 + sub_row + i * MM, first_col = col0 + sub_col;
#if C_VECTOR
    TUFF_POINTER(Four, c_pointer, tile.c / 4);
#if RESIDUAL
    if (i >= GROUPS_AHEAD) LOAD_RESIDUAL(i)
#endif
#if BETA
    FOUR before[FOURS];
    [[unroll]] for (uint u = 0; u < FOURS; ++u) {
      const bool exists = FOUR_ROW(u) < m && FOUR_COL(u) < n;
      before[u] = TUFF_FROM(Four, c_pointer, exists ? place(FOUR_ROW(u), FOUR_COL(u), ldc) / 4 : TUFF_INDEX(0));
    }
#endif
    [[unroll]] for (uint u = 0; u < FOURS; ++u) {
      const uint v = u * WIDTH + lane, row = FOUR_ROW(u), col = FOUR_COL(u);
      const uvec4 bits = pool[out_at + v / (WN / 4) * OUT_PITCH + v % (WN / 4)];
      if (row < m && col < n) {
        const TUFF_INDEX at = place(row, col, ldc) / 4;
#if C_TYPE == TUFF_I32
        TUFF_FROM(Four, c_pointer, at) = uvec4(alpha * AS_SUMS(bits));
#else
        vec4 value = alpha * vec4(AS_SUMS(bits));
#if BETA
        value = fma(vec4(beta), FOUR_NUMBERS(before[u]), value);
#endif
#if BIAS_AXIS == 1
        value += TUFF_LOADED(C_TYPE, TUFF_AT(Bias, tile.batch * push.stride_bias + row));
#elif BIAS_AXIS == 2
        value += FOUR_NUMBERS(TUFF_AT(BiasFour, (tile.batch * push.stride_bias + col) / 4));
#endif
#if RESIDUAL
        value += FOUR_NUMBERS(residual[i % GROUPS_AHEAD][u]);
#endif
        vec4 result;
        [[unroll]] for (uint e = 0; e < 4; ++e) result[e] = gemm_activation(value[e]);
#if C_TYPE == TUFF_F32
        TUFF_FROM(Four, c_pointer, at) = floatBitsToUint(result);
#else
        TUFF_FROM(Four, c_pointer, at) = TUFF_PACKED(C_TYPE, result);
#endif
#endif
      }
    }
#else
    [[dont_unroll]] for (uint t = 0; t < MM * WN; t += WIDTH) {
      const uint e = t + lane, row = first_row + e / WN, col = first_col + e % WN;
      const SUM sum = AS_SUMS(pool[out_at + e / WN * OUT_PITCH + e % WN / 4])[e % 4];
      if (row < m && col < n) {
#if EPILOGUE
        const TUFF_INDEX bias_at = tile.batch * push.stride_bias + (BIAS_AXIS == 1 ? row : col);
        const TUFF_INDEX residual_at = tile.batch * push.stride_residual + place(row, col, push.ld_residual);
#else
        const TUFF_INDEX bias_at = 0, residual_at = 0;
#endif
        gemm_store(alpha * NUMBER(sum), beta, tile.c + place(row, col, ldc), bias_at, residual_at);
      }
    }
#endif
    subgroupMemoryBarrierShared();
    subgroupBarrier();
  }
}
