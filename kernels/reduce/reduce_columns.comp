// Reduces the middle axis of [outer][length][inner]: lanes lie along inner, TUFF_WIDTH elements each, and
// walk down the axis. With segments > 1, row r of the axis belongs to segment r % segments, and the result
// is [outer][segments][inner], for another stage; neighbouring lanes then read neighbouring rows, so that
// narrow tensors are read in whole lines as well.
//
//   TUFF_SPAN 0   lane t: block t % columns of segment (t / columns) % segments of outer
//                 t / columns / segments, which is also the place of its result: for few columns
//   TUFF_SPAN s   a group has s * lanes neighbouring columns of one slice (outer and segment), each lane s of
//                 them, lanes apart: longer pieces of each row at a time, and divisions once for each group
//
//# TUFF_X_TYPE : types : of the input, as in tuff.h
//# TUFF_Y_TYPE : types : of the output
//# TUFF_SPAN : 0..4 : see above
//# TUFF_WIDTH : 1|4|8 : TUFF_ELEMENTS: inner is a multiple of it; 1: it is not
//# TUFF_UNROLL : 1|4 : rows in flight, without TUFF_SPAN
//# TUFF_CUT : 0|1 : 1: segments > 1
//# TUFF_RUN : 0.. : results of each lane, one after another; 0: push.run says
#define TUFF_VALUE_OF TUFF_X_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint results;   // outer * segments * columns
  uint extent;
  uint columns;   // inner / TUFF_WIDTH
  uint segments;
  uint run;
  float divisor;
} push;

TUFF_BLOCKS_READ(0, X, TUFF_X_TYPE)
TUFF_BLOCKS_WRITE(1, Y, TUFF_Y_TYPE)

#include "kernels/reduce/reduce.glsl"

#if TUFF_WIDTH == 1
#define LOAD_ROW(i) tuff_block(X_load(i))
#else
#define LOAD_ROW(i) X_load_block(i)
#endif

// The block of row `segment` of the axis in slice = outer * segments + segment, and the distance to the next.
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

void main() {
#if TUFF_CUT
  TUFF_INDEX stride = TUFF_INDEX(push.segments) * push.columns;
  uint rows = push.extent / push.segments;  // and one more for the first segments
  uint longer = push.extent - rows * push.segments;
#else
  TUFF_INDEX stride = TUFF_INDEX(push.columns);
  uint rows = push.extent;
  const uint longer = 0;
#endif
  for (uint repeat = 0; repeat < RUN; ++repeat) {
    // Surplus lanes and groups repeat the last result: no branch.
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
    [[unroll]] for (uint j = 0; j < TUFF_SPAN; ++j) {
      columns[j] = min(column + j * gl_WorkGroupSize.x, push.columns - 1);
      place[j] = row + columns[j];
      total[j] = empty_partial();
    }
    uint full = rows;
    while (full > 0) {
      uint steps = min(full, 32u);
      Partial chain[TUFF_SPAN];
      [[unroll]] for (uint j = 0; j < TUFF_SPAN; ++j) chain[j] = empty_partial();
      for (uint step = 0; step < steps; ++step) {
        [[unroll]] for (uint j = 0; j < TUFF_SPAN; ++j) {
          gather(chain[j], LOAD_ROW(place[j]));
          place[j] += stride;
        }
      }
      [[unroll]] for (uint j = 0; j < TUFF_SPAN; ++j) merge(total[j], chain[j]);
      full -= steps;
    }
    [[unroll]] for (uint j = 0; j < TUFF_SPAN; ++j) {
      if (segment < longer) gather(total[j], LOAD_ROW(place[j]));
      store_result(slice * push.columns + columns[j], scaled(finish(total[j])));
    }
#else
    uint t = min((tuff_group() * RUN + repeat) * gl_WorkGroupSize.x + gl_LocalInvocationID.x, push.results - 1);
    uint slice = t / push.columns;
    TUFF_INDEX place = first_row(slice, segment) + (t - slice * push.columns);
    Partial total = empty_partial();
    TUFF_GATHER(total, rows, place, stride, LOAD_ROW)
    if (segment < longer) gather(total, LOAD_ROW(place));
    store_result(t, scaled(finish(total)));
#endif
  }
}
