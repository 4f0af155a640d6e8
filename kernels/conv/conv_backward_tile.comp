// The gradient of a convolution by its filter as an implicit GEMM with shared-memory tiles. For devices with fast shared
// memory (GPUs).
//
//              columns (N*O*P*Q)             A workgroup computes BM filters x BN taps of a group for a slice of the
//            +---- BK ----+ ...              columns. BK columns at a time go through shared memory: the outputs'
// BM filters |  doutput   |                  gradients, and the patches of the input that their windows read. An
//            +------------+                  invocation has BM/16 x BN/16 sums: blocks of 4 x 4 that are 64 rows
// BN taps    |  patches   |                  and columns apart, so that each read of shared memory is one vec4.
//            +------------+
//
// The sums of slice i are stored as [slice][filters of all groups][taps], for a second pass that adds up the slices.
//
//# BM : 64|128 : filters of a workgroup
//# BN : 64|128 : taps of a workgroup
//# ADDS : 0|1 : 1: the sums are added to those that are stored
#define PAIRS 0
#define PATCHES 0
#define SLICED 0
#include "kernels/conv/conv_params.glsl"
#include "kernels/conv/conv_walk.glsl"
#if ADDS
TUFF_READ_WRITE(2, Sums, float, 4)
#else
TUFF_WRITE(2, Sums, float, 4)
#endif

#define NT 256
#define BK 16
#define TM (BM / 16)
#define TN (BN / 16)
layout(local_size_x = NT) in;

// Rows are padded by one vec4, so that transposing stores go to different banks.
shared vec4 slope_tile[BK][BM / 4 + 1];
shared vec4 patch_tile[BK][BN / 4 + 1];
// Where each tap of the tile is in a window.
shared TUFF_INDEX tap_offset[BN];
shared TAP tap_place[BN];
// The columns of a step, in two slots that steps use alternately.
shared TUFF_INDEX column_input[2][BK], column_output[2][BK];
shared WINDOW column_window[2][BK];

void describe_column(uint slot, uint i, uint column, uint end, uint group) {
  const bool exists = column < end;
  const Column here = column_at(exists ? column : 0, group);
  column_input[slot][i] = here.input_base;
  column_output[slot][i] = here.output_base;
  column_window[slot][i] = exists ? window_of(here) : NO_WINDOW;
}

// Which elements of a tile an invocation loads: neighbours load neighbouring elements of memory.
#if CHANNELS_LAST
#define LOAD_ROW(id, l, rows) ((id) % (rows))
#define LOAD_COLUMN(id, l, rows) ((id) / (rows) + (l) * (NT / (rows)))
#else
#define LOAD_ROW(id, l, rows) ((id) / BK + (l) * (NT / BK))
#define LOAD_COLUMN(id, l, rows) ((id) % BK)
#endif

void main() {
  const uint taps = push.channels * CONV_T * push.R * push.S, id = gl_LocalInvocationIndex;
  const uint tap_parts = (taps + BN - 1) / BN, filter_parts = (push.filters + BM - 1) / BM;
  uint rest = tuff_group();
  const uint tap0 = rest % tap_parts * BN;
  rest /= tap_parts;
  const uint filter0 = rest % filter_parts * BM;
  rest /= filter_parts;
  const uint group = rest % push.groups, slice = rest / push.groups;
  if (slice >= push.slices) return;
  const uint first = (push.first_slice + slice) * push.slice_taps, end = min(first + push.slice_taps, push.columns);
  const TUFF_INDEX distance = filter_distance();

  if (id < BN) {
    const Walk walk = walk_from(min(tap0 + id, taps - 1));
    tap_offset[id] = walk_offset(walk);
    tap_place[id] = tap0 + id < taps ? tap_of(walk.t, walk.r, walk.s) : NO_TAP;
  }
  if (id < BK) describe_column(0, id, first + id, end, group);
  barrier();

  const uint tx = id % 16, ty = id / 16;
  vec4 sums[TM][TN / 4];
  [[unroll]] for (int i = 0; i < TM; ++i) [[unroll]] for (int j = 0; j < TN / 4; ++j) sums[i][j] = vec4(0);
  uint slot = 0;
  [[dont_unroll]] for (uint column = first; column < end; column += BK) {
    float slopes[BM * BK / NT], patches[BN * BK / NT];
    [[unroll]] for (uint l = 0; l < BM * BK / NT; ++l) {
      const uint row = filter0 + LOAD_ROW(id, l, BM), at = LOAD_COLUMN(id, l, BM);
      slopes[l] = 0.0;
      if (row < push.filters && column + at < end) {
        slopes[l] = TUFF_LOADED(TYPE, TUFF_AT(Filter, column_output[slot][at] + row * distance));
      }
    }
    [[unroll]] for (uint l = 0; l < BN * BK / NT; ++l) {
      const uint row = LOAD_ROW(id, l, BN), at = LOAD_COLUMN(id, l, BN);
      patches[l] = 0.0;
      if (is_inside(column_window[slot][at], tap_place[row])) {
        patches[l] = TUFF_LOADED(TYPE, TUFF_AT(Input, column_input[slot][at] + tap_offset[row]));
      }
    }
    barrier();  // all have multiplied the previous tiles
    [[unroll]] for (uint l = 0; l < BM * BK / NT; ++l) {
      const uint row = LOAD_ROW(id, l, BM);
      slope_tile[LOAD_COLUMN(id, l, BM)][row / 4][row % 4] = slopes[l];
    }
    [[unroll]] for (uint l = 0; l < BN * BK / NT; ++l) {
      const uint row = LOAD_ROW(id, l, BN);
      patch_tile[LOAD_COLUMN(id, l, BN)][row / 4][row % 4] = patches[l];
    }
    slot ^= 1u;
    if (id < BK) describe_column(slot, id, column + BK + id, end, group);
    barrier();
    [[unroll]] for (int k = 0; k < BK; ++k) {
      vec4 a[TM / 4], b[TN / 4];
      [[unroll]] for (int i = 0; i < TM / 4; ++i) a[i] = slope_tile[k][i * 16 + ty];
      [[unroll]] for (int j = 0; j < TN / 4; ++j) b[j] = patch_tile[k][j * 16 + tx];
      [[unroll]] for (int i = 0; i < TM; ++i) [[unroll]] for (int j = 0; j < TN / 4; ++j) {
        sums[i][j] = fma(vec4(a[i / 4][i % 4]), b[j], sums[i][j]);
      }
    }
  }

  [[unroll]] for (int i = 0; i < TM; ++i) {
    const uint k = filter0 + i / 4 * 64 + ty * 4 + i % 4;
    if (k < push.filters) {
      const TUFF_INDEX row = (TUFF_INDEX(slice * push.groups + group) * push.filters + k) * taps;
      [[unroll]] for (int j = 0; j < TN; ++j) {
        const uint tap = tap0 + j / 4 * 64 + tx * 4 + j % 4;
        if (tap < taps) {
#if ADDS
          TUFF_AT(Sums, row + tap) += sums[i][j / 4][j % 4];
#else
          TUFF_AT(Sums, row + tap) = sums[i][j / 4][j % 4];
#endif
        }
      }
    }
  }
}
