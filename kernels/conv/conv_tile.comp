// Convolution by implicit GEMM with shared-memory tiles. For devices with fast shared memory (GPUs).
//
//            columns (N*O*P*Q)               A workgroup computes BM filters x BN columns of a group, and an
//           +---- BN ----+                   invocation TM x TN of them: TM/4 x TN/4 blocks of 4 x 4 that are
//   taps BK |   patches  |                   BM/(TM/4) rows and BN/(TN/4) columns apart, so that every read of
//    +------+------------+                   shared memory is one vec4 without bank conflicts. BK taps at a time
// BM |filter|   output   |                   go through shared memory; meanwhile the next ones are loaded into
//    +------+------------+                   registers.
//
//# BM : 16|32|64|128|256 : filters of a workgroup
//# BN : 16|32|64|128|256 : columns of a workgroup
//# BK : 4|8|16|32 : taps at a time
//# TM : 4|8|16 : filters of an invocation
//# TN : 4|8|16 : columns of an invocation
//# VEC_FILTER : 0|1 : 1: filter rows can be read as vec4 of taps (taps % 4 == 0, and alignment)
//# VEC_CHANNELS : 0|1 : 1: the input can be read as vec4 (CHANNELS_LAST, channels of a group % 4 == 0, and alignment)
// With VEC_CHANNELS, BK / 4 neighbouring invocations read neighbouring channels of a column.
// There are NT = (BM/TM)*(BN/TN) invocations: a multiple of BN and of BK / 4, at most BN * BK / 4. BK is a multiple of
// NT / BN.
#define PAIRS 0
#define PATCHES 0
#include "kernels/conv/conv_params.glsl"
#include "kernels/conv/conv_walk.glsl"
#include "kernels/conv/conv_store.glsl"

#define NT ((BM / TM) * (BN / TN))
layout(local_size_x = NT) in;

// Rows are padded by one vec4, so that transposing stores go to different banks.
shared vec4 filter_tile[BK][BM / 4 + 1];
shared vec4 patch_tile[BK][BN / 4 + VEC_CHANNELS];
// For each tap of a tile: its offset from the window's start, and its TAP for is_inside(). There are two slots, which
// tiles use alternately.
shared TUFF_INDEX tap_offset[2][BK];
shared TAP tap_place[2][BK];

void describe_tap(uint slot, uint i, Walk walk, bool exists) {
  tap_offset[slot][i] = walk_offset(walk);
  tap_place[slot][i] = exists ? tap_of(walk.t, walk.r, walk.s) : NO_TAP;
}

const int FILTER_LOADS = BM * BK / 4 / NT > 0 ? BM * BK / 4 / NT : 1;  // vec4 each
#if VEC_CHANNELS
const int QUADS = BK / 4;
const int PATCH_COLUMNS = BN * QUADS / NT;  // columns whose patches an invocation gathers
const int COLUMN_STEP = NT / QUADS;
#else
const int PATCH_ROWS = NT / BN;             // rows of patches loaded at once
const int PATCH_LOADS = BK / PATCH_ROWS;
const int PATCH_COLUMNS = 1, COLUMN_STEP = 0;
#endif

void main() {
  const Part part = this_part(BM, BN);
  if (!part.exists) return;
  const uint filters = push.filters, taps = push.channels * CONV_T * push.R * push.S;
  uint id = gl_LocalInvocationIndex;
  uint tx = id % (BN / TN), ty = id / (BN / TN);

#if VEC_CHANNELS
  const uint load_column = id / QUADS, load_row = id % QUADS * 4;
#else
  const uint load_column = id % BN, load_row = id / BN;
#endif
  TUFF_INDEX source[PATCH_COLUMNS];
  WINDOW window[PATCH_COLUMNS];
  [[unroll]] for (int l = 0; l < PATCH_COLUMNS; ++l) {
    const uint column = part.column0 + load_column + l * COLUMN_STEP;
    const bool exists = column < push.columns;
    const Column here = column_at(exists ? column : part.column0, part.group);
    source[l] = here.input_base;
    window[l] = window_of(here);
    if (!exists) window[l] = NO_WINDOW;
  }

  vec4 next_filter[FILTER_LOADS];
#if VEC_CHANNELS
  vec4 next_patch[PATCH_COLUMNS];
#else
  float next_patch[PATCH_LOADS];
#endif
  vec4 sums[TM][TN / 4];
  [[unroll]] for (int i = 0; i < TM; ++i) [[unroll]] for (int j = 0; j < TN / 4; ++j) sums[i][j] = vec4(0);

#define FETCH(slot, tap0)                                                                \
  [[unroll]] for (int l = 0; l < FILTER_LOADS; ++l) {                                    \
    uint i = id + l * NT, row = part.filter0 + i / (BK / 4), tap = (tap0) + i % (BK / 4) * 4; \
    next_filter[l] = vec4(0);                                                            \
    if (row < filters && i < BM * BK / 4) {                                              \
      FETCH_FILTER(l, TUFF_INDEX(part.group * filters + row) * taps + tap, tap)          \
    }                                                                                    \
  }                                                                                      \
  FETCH_PATCHES(slot)
#if VEC_FILTER
#define FETCH_FILTER(l, at, tap) \
  if (tap < part.tap_end) next_filter[l] = GEMM_UNPACK(TYPE, TUFF_AT(Filter4, (at) / 4u));
#else
#define FETCH_FILTER(l, at, tap)                                                                         \
  [[unroll]] for (int e = 0; e < 4; ++e) {                                                               \
    if (tap + e < part.tap_end) next_filter[l][e] = TUFF_LOADED(TYPE, TUFF_AT(Filter, (at) + e));        \
  }
#endif
#if VEC_CHANNELS
#define FETCH_PATCHES(slot)                                                                              \
  [[unroll]] for (int l = 0; l < PATCH_COLUMNS; ++l) {                                                   \
    next_patch[l] = vec4(0);                                                                             \
    if (is_inside(window[l], tap_place[slot][load_row])) {                                               \
      next_patch[l] = GEMM_UNPACK(TYPE, TUFF_AT(Input4, (source[l] + tap_offset[slot][load_row]) / 4u)); \
    }                                                                                                    \
  }
#else
#define FETCH_PATCHES(slot)                                                                  \
  [[unroll]] for (int l = 0; l < PATCH_LOADS; ++l) {                                         \
    uint i = load_row + l * PATCH_ROWS;                                                      \
    next_patch[l] = 0.0;                                                                     \
    if (is_inside(window[0], tap_place[slot][i])) {                                          \
      next_patch[l] = TUFF_LOADED(TYPE, TUFF_AT(Input, source[0] + tap_offset[slot][i]));    \
    }                                                                                        \
  }
#endif

  // The first BK invocations each describe one tap of every tile.
  const Walk tile_step = walk_from(BK);
  Walk walk = walk_from(part.tap_begin + id);
  if (id < BK) {
    describe_tap(0, id, walk, part.tap_begin + id < part.tap_end);
    walk_far(walk, tile_step);
    describe_tap(1, id, walk, part.tap_begin + BK + id < part.tap_end);
  }
  barrier();
  FETCH(0, part.tap_begin)
  uint slot = 0;
  [[dont_unroll]] for (uint tap0 = part.tap_begin; tap0 < part.tap_end; tap0 += BK) {
    [[unroll]] for (int l = 0; l < FILTER_LOADS; ++l) {
      uint i = id + l * NT, row = i / (BK / 4), tap = i % (BK / 4) * 4;
      if (i < BM * BK / 4) {
        [[unroll]] for (int e = 0; e < 4; ++e) filter_tile[tap + e][row / 4][row % 4] = next_filter[l][e];
      }
    }
#if VEC_CHANNELS
    [[unroll]] for (int l = 0; l < PATCH_COLUMNS; ++l) {
      const uint column = load_column + l * COLUMN_STEP;
      [[unroll]] for (int e = 0; e < 4; ++e) patch_tile[load_row + e][column / 4][column % 4] = next_patch[l][e];
    }
#else
    [[unroll]] for (int l = 0; l < PATCH_LOADS; ++l) {
      patch_tile[load_row + l * PATCH_ROWS][load_column / 4][load_column % 4] = next_patch[l];
    }
#endif
    barrier();
    // Taps beyond the last are described as outside, so nothing is read for them.
    FETCH(slot ^ 1u, tap0 + BK)
    if (id < BK) {
      walk_far(walk, tile_step);
      describe_tap(slot, id, walk, tap0 + 2 * BK + id < part.tap_end);
    }
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

  TUFF_POINTER(Output, output_pointer, 0);
  const TUFF_INDEX distance = filter_distance();
  const TUFF_INDEX slice_base = slice_start(part.slice);
  [[unroll]] for (int j = 0; j < TN; ++j) {
    const uint column = part.column0 + (j / 4) * (BN / (TN / 4)) + tx * 4 + j % 4;
    if (column < push.columns) {
      const TUFF_INDEX base = slice_base + column_at(column, part.group).output_base;
      [[unroll]] for (int i = 0; i < TM; ++i) {
        const uint k = part.filter0 + (i / 4) * (BM / (TM / 4)) + ty * 4 + i % 4;
        if (k < filters) {
          CONV_STORE(output_pointer, base + k * distance, sums[i][j / 4][j % 4], bias_of(part.group * filters + k));
        }
      }
    }
  }
}
