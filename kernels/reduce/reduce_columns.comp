// Reduces the middle axis of [outer][length][inner]: lanes lie along inner, TUFF_WIDTH elements each, and
// walk down the axis. With segments > 1, row r of the axis belongs to segment r % segments, and the result
// is [outer][segments][inner], for another stage; neighbouring lanes then read neighbouring rows, so that
// narrow tensors are read in whole lines as well.
//
//   lane t: block t % columns of segment (t / columns) % segments of outer t / columns / segments,
//   which is also the place of its result.
//
//   TUFF_WIDTH    4: inner is a multiple of 4; 1: it is not
//   TUFF_UNROLL   rows in flight
//   TUFF_CUT      1: segments > 1
//   REPEAT        results of each lane, one after another
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint REPEAT = 1;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint results;   // outer * segments * columns
  uint extent;
  uint columns;   // inner / TUFF_WIDTH
  uint segments;
  float divisor;
} push;

TUFF_BLOCKS_READ(0, X)
TUFF_BLOCKS_WRITE(1, Y)

#include "kernels/reduce/reduce.glsl"

#if TUFF_WIDTH == 4
#define LOAD_ROW(i) TUFF_LOAD4(X, i)
#else
#define LOAD_ROW(i) vec4(TUFF_AT(X_scalar, i))
#endif

void main() {
  for (uint repeat = 0; repeat < REPEAT; ++repeat) {
    uint t = (tuff_group() * REPEAT + repeat) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    t = min(t, push.results - 1);  // surplus lanes repeat the last: no branch
    uint slice = t / push.columns;
    uint column = t - slice * push.columns;
    Partial total = empty_partial();
#if TUFF_CUT
    uint outer = slice / push.segments;
    uint segment = slice - outer * push.segments;
    TUFF_INDEX place = (TUFF_INDEX(outer) * push.extent + segment) * push.columns + column;
    TUFF_INDEX stride = TUFF_INDEX(push.segments) * push.columns;
    uint rows = push.extent / push.segments;  // and one more for the first segments
    TUFF_GATHER(total, rows, place, stride, LOAD_ROW)
    if (segment < push.extent - rows * push.segments) gather(total, LOAD_ROW(place));
#else
    TUFF_INDEX place = TUFF_INDEX(slice) * push.extent * push.columns + column;
    TUFF_INDEX stride = TUFF_INDEX(push.columns);
    TUFF_GATHER(total, push.extent, place, stride, LOAD_ROW)
#endif
    vec4 result = scaled(finish(total));
#if TUFF_WIDTH == 4
    TUFF_STORE4(Y, t, result);
#else
    TUFF_AT(Y_scalar, t) = result.x;
#endif
  }
}
