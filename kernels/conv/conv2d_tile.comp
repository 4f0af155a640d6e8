// conv2d by an implicit GEMM with shared-memory tiles: for devices whose shared memory is real.
//
//            columns (N*P*Q)                 A workgroup makes BM filters x BN columns; an invocation
//           +---- BN ----+                   makes TM x TN of them, as TM/4 x TN/4 blocks of 4 x 4 that
//   taps BK |   patches  |                   lie BM/(TM/4) rows and BN/(TN/4) columns apart, so that
//    +------+------------+                   every read of shared memory is one vec4 without conflicts.
// BM |filter|   output   |                   BK taps at a time go through shared memory; the next ones are
//    +------+------------+                   fetched into registers meanwhile.
//
// Defines: BM, BN (multiples of 4), BK (a multiple of 4), TM, TN (multiples of 4)
//          TAP_MASK    1: R*S <= 32, so a column keeps one bit for each tap of a channel that lies inside
//          VEC_FILTER  1: filter rows can be read as vec4 (taps % 4 == 0 and 16-byte alignment)
//          PIECES      1: see conv2d_params.glsl; a piece is a multiple of BK taps
// Invocations NT = (BM/TM)*(BN/TN); NT % BN == 0 or BN % NT == 0 is not needed, but (BK*BN) % NT == 0 is,
// with NT >= BN and NT % BN == 0.
#include "kernels/conv/conv2d_params.glsl"
TUFF_READ(0, Input, float, 4)
TUFF_READ(1, Filter, float, 4)
TUFF_READ(1, Filter4, vec4, 16)
TUFF_OUTPUT(2, Output, float, 4)

#define NT ((BM / TM) * (BN / TN))
layout(local_size_x = NT) in;

// Rows are padded by one vec4: transposing stores of the filter then hit different banks.
shared vec4 filter_tile[BK][BM / 4 + 1];
shared vec4 patch_tile[BK][BN / 4];
// For each tap of a tile: its distance from the patch's start, and how to tell whether it is inside the
// input: its bit, or its vertical and horizontal distance. Two tiles' worth, used in turn.
shared TUFF_INDEX tap_offset[2][BK];
#if TAP_MASK
shared uint tap_bit[2][BK];
#else
shared uvec2 tap_yx[2][BK];
#endif

// Beyond every extent, whatever small or negative number is added.
const uint OUTSIDE = 0x60000000u;

void describe_tap(uint slot, uint i, uint tap) {
  uint c = divide(tap, push.rs_multiplier, push.rs_shift);
  uint rs = tap - c * push.RS;
  uint r = divide(rs, push.s_multiplier, push.s_shift);
  uint dy = r * push.dilation_y, dx = (rs - r * push.S) * push.dilation_x;
  bool exists = tap < push.taps;
  tap_offset[slot][i] = (TUFF_INDEX(c) * push.H + dy) * push.W + dx;
#if TAP_MASK
  tap_bit[slot][i] = exists ? 1u << rs : 0u;
#else
  tap_yx[slot][i] = exists ? uvec2(dy, dx) : uvec2(OUTSIDE);
#endif
}

const int FILTER_LOADS = BM * BK / 4 / NT > 0 ? BM * BK / 4 / NT : 1;  // vec4 each
const int PATCH_ROWS = NT / BN;                                        // rows of patches loaded at once
const int PATCH_LOADS = BK / PATCH_ROWS;

void main() {
  uint group = tuff_group();
  uint filter0 = (group % push.filter_tiles) * BM;
  TUFF_INDEX column0 = TUFF_INDEX(group / push.filter_tiles) * BN;
  if (column0 >= columns()) return;
  uint id = gl_LocalInvocationIndex;
  uint tx = id % (BN / TN), ty = id / (BN / TN);

  // Every invocation gathers patches of one column.
  uint load_column = id % BN, load_row = id / BN;
  bool column_exists = column0 + load_column < columns();
  Column source = column_at(column_exists ? column0 + load_column : column0);
#if TAP_MASK
  uint inside = 0;
  if (column_exists) {
    uint bit = 1;
    for (uint dy = 0, i = 0; i < push.RS; dy += push.dilation_y) {
      for (uint s = 0, dx = 0; s < push.S; ++s, ++i, dx += push.dilation_x, bit <<= 1) {
        if (source.y + dy < push.H && source.x + dx < push.W) inside |= bit;
      }
    }
  }
#else
  if (!column_exists) source.y = OUTSIDE;
#endif

  vec4 next_filter[FILTER_LOADS];
  float next_patch[PATCH_LOADS];
  vec4 sums[TM][TN / 4];
  [[unroll]] for (int i = 0; i < TM; ++i) [[unroll]] for (int j = 0; j < TN / 4; ++j) sums[i][j] = vec4(0);

  TUFF_INDEX image_pixels = TUFF_INDEX(push.P) * push.Q;
#if PIECES
  if (FIRST_TAP > 0) {
    [[unroll]] for (int j = 0; j < TN; ++j) {
      TUFF_INDEX column = column0 + (j / 4) * (BN / (TN / 4)) + tx * 4 + j % 4;
      if (column < columns()) {
        TUFF_INDEX base = column_at(column).output_base;
        [[unroll]] for (int i = 0; i < TM; ++i) {
          uint row = filter0 + (i / 4) * (BM / (TM / 4)) + ty * 4 + i % 4;
          if (row < push.K) sums[i][j / 4][j % 4] = TUFF_AT(Output, base + row * image_pixels);
        }
      }
    }
  }
#endif

#define FETCH(slot, tap0)                                                                            \
  [[unroll]] for (int l = 0; l < FILTER_LOADS; ++l) {                                                \
    uint i = id + l * NT, row = filter0 + i / (BK / 4), tap = (tap0) + i % (BK / 4) * 4;             \
    next_filter[l] = vec4(0);                                                                        \
    if (row < push.K && i < BM * BK / 4) {                                                           \
      FETCH_FILTER(l, row, tap)                                                                      \
    }                                                                                                \
  }                                                                                                  \
  [[unroll]] for (int l = 0; l < PATCH_LOADS; ++l) {                                                 \
    uint i = load_row + l * PATCH_ROWS;                                                              \
    next_patch[l] = 0.0;                                                                             \
    if (IS_INSIDE(slot, i)) next_patch[l] = TUFF_AT(Input, source.input_base + tap_offset[slot][i]); \
  }
#if VEC_FILTER
#define FETCH_FILTER(l, row, tap) \
  if (tap < push.taps) next_filter[l] = TUFF_AT(Filter4, (TUFF_INDEX(row) * push.taps + tap) / 4u);
#else
#define FETCH_FILTER(l, row, tap)              \
  [[unroll]] for (int e = 0; e < 4; ++e) {     \
    if (tap + e < push.taps) next_filter[l][e] = TUFF_AT(Filter, TUFF_INDEX(row) * push.taps + tap + e); \
  }
#endif
#if TAP_MASK
#define IS_INSIDE(slot, i) (inside & tap_bit[slot][i]) != 0
#else
#define IS_INSIDE(slot, i) source.y + tap_yx[slot][i].x < push.H && source.x + tap_yx[slot][i].y < push.W
#endif

  if (id < BK) {
    describe_tap(0, id, FIRST_TAP + id);
    describe_tap(1, id, FIRST_TAP + BK + id);
  }
  barrier();
  FETCH(0, FIRST_TAP)
  uint slot = 0;
  [[dont_unroll]] for (uint tap0 = FIRST_TAP; tap0 < push.tap_end; tap0 += BK) {
    [[unroll]] for (int l = 0; l < FILTER_LOADS; ++l) {
      uint i = id + l * NT, row = i / (BK / 4), tap = i % (BK / 4) * 4;
      if (i < BM * BK / 4) {
        [[unroll]] for (int e = 0; e < 4; ++e) filter_tile[tap + e][row / 4][row % 4] = next_filter[l][e];
      }
    }
    [[unroll]] for (int l = 0; l < PATCH_LOADS; ++l) {
      patch_tile[load_row + l * PATCH_ROWS][load_column / 4][load_column % 4] = next_patch[l];
    }
    barrier();
    // Taps beyond the last are described as outside, so nothing is read for them.
    FETCH(slot ^ 1u, tap0 + BK)
    if (id < BK) describe_tap(slot, id, tap0 + 2 * BK + id);
    slot ^= 1u;
    [[unroll]] for (int k = 0; k < BK; ++k) {
      vec4 a[TM / 4], b[TN / 4];
      [[unroll]] for (int i = 0; i < TM / 4; ++i) a[i] = filter_tile[k][i * (BM / TM) + ty];
      [[unroll]] for (int j = 0; j < TN / 4; ++j) b[j] = patch_tile[k][j * (BN / TN) + tx];
      [[unroll]] for (int i = 0; i < TM; ++i) [[unroll]] for (int j = 0; j < TN / 4; ++j) {
        sums[i][j] = fma(vec4(a[i / 4][i % 4]), b[j], sums[i][j]);
      }
    }
    barrier();
  }

  [[unroll]] for (int j = 0; j < TN; ++j) {
    TUFF_INDEX column = column0 + (j / 4) * (BN / (TN / 4)) + tx * 4 + j % 4;
    if (column < columns()) {
      TUFF_INDEX base = column_at(column).output_base;
      [[unroll]] for (int i = 0; i < TM; ++i) {
        uint row = filter0 + (i / 4) * (BM / (TM / 4)) + ty * 4 + i % 4;
        if (row < push.K) TUFF_AT(Output, base + row * image_pixels) = sums[i][j / 4][j % 4];
      }
    }
  }
}
