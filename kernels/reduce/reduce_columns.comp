// Reduces the middle axis of [outer][length][inner]. Lanes are along inner with TUFF_WIDTH elements each, and each
// walks down the axis. With segments > 1, row r of the axis belongs to segment r % segments, and the result is
// [outer][segments][inner], for another stage. Neighbouring lanes then read neighbouring rows, so that even narrow
// tensors are read in whole cache lines.
//
//   TUFF_SPAN 0   lane t reduces block t % columns of segment (t / columns) % segments of outer index
//                 t / columns / segments; t is also the index of its result. For few columns
//   TUFF_SPAN s   a workgroup has s * lanes neighbouring columns of one slice (an outer index and a segment); each lane
//                 has s of them, `lanes` apart. Reads longer pieces of each row, and divides once per workgroup
//
//# TUFF_SPAN : 0..4 : see above
//# TUFF_WIDTH : 1|4|8 : elements of a lane; 4 or 8: TUFF_ELEMENTS, a divisor of inner; 1: inner has no such divisor
//# TUFF_UNROLL : 1|4 : rows in flight, with TUFF_SPAN 0
//# TUFF_CUT : 0|1 : 1: segments > 1
//# TUFF_RUN : 0.. : results that a lane computes one after another; 0: push.run says
#include "kernels/reduce/values.glsl"
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
#if TUFF_CENTERED
  TUFF_BASES(3)
#else
  TUFF_BASES(2)
#endif
  uint results;   // outer * segments * columns
  uint extent;
  uint columns;   // inner / TUFF_WIDTH
  uint segments;
  uint run;
  uint from_plane, to_plane;  // from a value of partial results to the next, of the input and of the output
  float divisor;
  uint divisor_low, divisor_high;  // the same as f64
} push;

TUFF_BLOCKS_READ(0, X, TUFF_X_TYPE)
TUFF_BLOCKS_WRITE(1, Y, TUFF_Y_TYPE)
#if TUFF_CENTERED
TUFF_READ(2, Center, TUFF_VALUE, TUFF_VALUE_BYTES)  // [outer][inner]
#endif

#include "kernels/reduce/reduce.glsl"

#if TUFF_MERGES
#if TUFF_WIDTH == 1
#define LOAD_VALUE(i, k) tuff_block(X_load(i + k * TUFF_INDEX(push.from_plane)))
#else
#define LOAD_VALUE(i, k) X_load_block(i + k * TUFF_INDEX(push.from_plane / TUFF_WIDTH))
#endif
#define LOAD_ROW(i, center) partial_of(LOAD_VALUE(i, 0), LOAD_VALUE(i, 1), LOAD_VALUE(i, 2))
#elif TUFF_SPLIT
#define LOAD_ROW(i, center) load_block(i)
#elif TUFF_WIDTH == 1
#define LOAD_ROW(i, center) TUFF_PREPARED(tuff_block(X_load(i)), center)
#else
#define LOAD_ROW(i, center) TUFF_PREPARED(X_load_block(i), center)
#endif

// The centers of a lane's columns.
TuffBlock load_center(uint slice, uint column) {
  TuffBlock block = tuff_block(TUFF_ZERO);
#if TUFF_CENTERED
#if TUFF_CUT
  slice /= push.segments;
#endif
  const TUFF_INDEX first = (TUFF_INDEX(slice) * push.columns + column) * TUFF_WIDTH;
  [[unroll]] for (uint c = 0; c < TUFF_WIDTH; ++c) block.part[c / 4][c % 4] = center_at(first + c);
#elif TUFF_PREPARE == 4
  // The first element of each column is the base of its moments.
#if TUFF_CUT
  slice /= push.segments;
#endif
  const TUFF_INDEX first = TUFF_INDEX(slice) * push.extent * push.columns + column;
#if TUFF_WIDTH == 1
  block = tuff_block(X_load(first));
#else
  block = X_load_block(first);
#endif
  [[unroll]] for (uint k = 0; k < TUFF_PARTS; ++k) block.part[k] = base_of(block.part[k]);
#endif
  return block;
}

// The first block of a slice (outer * segments + segment): row `segment` of the axis.
TUFF_INDEX first_row(uint slice, out uint segment) {
  uint outer = slice;
  segment = 0;
#if TUFF_CUT
  outer = slice / push.segments;
  segment = slice - outer * push.segments;
#endif
  return (TUFF_INDEX(outer) * push.extent + segment) * push.columns;
}

void store_result(uint t, TuffBlock result) {
#if TUFF_WIDTH == 1
  Y_store(t, result.part[0].x);
#else
  Y_store_block(t, result);
#endif
}

void store_total(uint t, Partial total, TuffBlock center) {
#if TUFF_STATE != 0 && TUFF_CUT
  TuffBlock a, b, c;
  [[unroll]] for (uint k = 0; k < TUFF_PARTS; ++k) {
    a.part[k] = total.part[k].a, b.part[k] = total.part[k].b, c.part[k] = total.part[k].c;
  }
  const uint plane = push.to_plane / TUFF_WIDTH;
  store_result(t, a);
  store_result(t + plane, b);
  store_result(t + 2 * plane, c);
#else
  store_result(t, scaled(finish(total), center));
#endif
}

void main() {
#if TUFF_CUT
  TUFF_INDEX stride = TUFF_INDEX(push.segments) * push.columns;
  uint rows = push.extent / push.segments;  // the first `longer` segments have one more
  uint longer = push.extent - rows * push.segments;
#else
  TUFF_INDEX stride = TUFF_INDEX(push.columns);
  uint rows = push.extent;
  const uint longer = 0;
#endif
  for (uint repeat = 0; repeat < RUN; ++repeat) {
    // Surplus lanes and workgroups repeat the last result, which avoids a branch.
    uint segment;
#if TUFF_SPAN
    uint tiles = (push.columns + gl_WorkGroupSize.x * TUFF_SPAN - 1) / (gl_WorkGroupSize.x * TUFF_SPAN);
    uint slices = push.results / push.columns;
    uint tile = min(tuff_group() * RUN + repeat, tiles * slices - 1);
    uint slice = tile / tiles;
    uint column = (tile - slice * tiles) * (gl_WorkGroupSize.x * TUFF_SPAN) + gl_LocalInvocationID.x;
    TUFF_INDEX row = first_row(slice, segment);
    TUFF_INDEX place[TUFF_SPAN];
    uint columns[TUFF_SPAN];
    Partial total[TUFF_SPAN];
    TuffBlock center[TUFF_SPAN];
    [[unroll]] for (uint j = 0; j < TUFF_SPAN; ++j) {
      columns[j] = min(column + j * gl_WorkGroupSize.x, push.columns - 1);
      place[j] = row + columns[j];
      center[j] = load_center(slice, columns[j]);
      total[j] = empty_partial();
    }
    uint full = rows;
    while (full > 0) {
      uint steps = min(full, 32u);
      Chain chain[TUFF_SPAN];
      [[unroll]] for (uint j = 0; j < TUFF_SPAN; ++j) chain[j] = empty_chain();
      for (uint step = 0; step < steps; ++step) {
        [[unroll]] for (uint j = 0; j < TUFF_SPAN; ++j) {
          gather(chain[j], LOAD_ROW(place[j], center[j]));
          place[j] += stride;
        }
      }
      [[unroll]] for (uint j = 0; j < TUFF_SPAN; ++j) merge(total[j], chain[j]);
      full -= steps;
    }
    [[unroll]] for (uint j = 0; j < TUFF_SPAN; ++j) {
      if (segment < longer) gather(total[j], LOAD_ROW(place[j], center[j]));
      store_total(slice * push.columns + columns[j], total[j], center[j]);
    }
#else
    uint t = min((tuff_group() * RUN + repeat) * gl_WorkGroupSize.x + gl_LocalInvocationID.x, push.results - 1);
    uint slice = t / push.columns;
    TUFF_INDEX place = first_row(slice, segment) + (t - slice * push.columns);
    const TuffBlock center = load_center(slice, t - slice * push.columns);
    Partial total = empty_partial();
#define LOAD(i) LOAD_ROW(i, center)
    TUFF_GATHER(total, rows, place, stride, LOAD)
    if (segment < longer) gather(total, LOAD(place));
    store_total(t, total, center);
#endif
  }
}
