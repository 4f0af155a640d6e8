// Reduces rows: output[row * segments + s] = op over the elements of the row from s * segment on, `segment` of them but
// none beyond `extent`. With segments > 1 these are partial results for another stage.
//
// TUFF_LANES invocations share one such piece. Lane l reads blocks l, l + LANES, … of W = TUFF_ELEMENTS elements (16
// bytes) and accumulates them in a few independent chains. A tree then combines the lanes' results, by shuffles within
// a subgroup and by shared memory across subgroups:
//
//   piece  | 0 1 2 … LANES-1 | 0 1 2 … LANES-1 | …        the lane of each block
//
//# TUFF_SINGLE : 0|1 : 1: LANES is the workgroup
//# TUFF_CUT : 0|1 : 1: segments > 1
//# TUFF_PEEL : 0|1 : 1: pieces may start anywhere, so up to W - 1 elements before and after the blocks are read singly
//# TUFF_UNROLL : 1|2|4|8|16 : blocks in flight
//# TUFF_RUN : 0.. : pieces that a lane processes one after another, 1 with TUFF_SHARED; 0: push.run says
#include "kernels/reduce/values.glsl"
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
#if TUFF_CENTERED || TUFF_PREPARE == 4
  TUFF_BASES(3)
#else
  TUFF_BASES(2)
#endif
  uint pieces;    // rows * segments
  uint extent;    // elements of a row
  uint segments;  // of each row
  uint segment;   // elements of each, a multiple of W; the last has the rest
  uint run;
  uint from_plane, to_plane;  // from a value of partial results to the next, of the input and of the output
  float divisor;
  uint divisor_low, divisor_high;  // the same as f64
} push;

TUFF_BLOCKS_READ(0, X, TUFF_X_TYPE)
TUFF_BLOCKS_WRITE(1, Y, TUFF_Y_TYPE)
#if TUFF_CENTERED
TUFF_READ(2, Center, TUFF_VALUE, TUFF_VALUE_BYTES)  // of each row
#elif TUFF_PREPARE == 4
// The rows from their beginning: each row's first element is the base of its moments.
TUFF_READ(2, Base, TUFF_STORED(TUFF_X_TYPE), TUFF_BYTES(TUFF_X_TYPE))
#endif

#include "kernels/reduce/reduce.glsl"
#include "kernels/reduce/rows.glsl"

#if TUFF_STATE != 0
// One element, and nothing in the other places.
Partial single(uint i, TuffBlock center) {
#if TUFF_MERGES
  const State4 s = state4(State(X_load(i), X_load(i + push.from_plane), X_load(i + 2 * push.from_plane)));
#else
  const State4 s = state_of(TUFF_PREPARED(TUFF_VALUE4(X_load(i)), center.part[0]));
#endif
  return single_partial(s);
}
#else
// A block of one element, with the identity in the other places.
TuffBlock single(uint i, TuffBlock center) {
  TuffBlock block = tuff_block(TUFF_IDENTITY);
  block.part[0].x = TUFF_PREPARED(TUFF_VALUE4(X_load(i)), center.part[0]).x;
  return block;
}
#endif
#if TUFF_MERGES
Partial load_partial(uint i) {
  const uint plane = push.from_plane / TUFF_ELEMENTS;
  return partial_of(X_load_block(i), X_load_block(i + plane), X_load_block(i + 2 * plane));
}
#define LOAD(i) load_partial(i)
#elif TUFF_SPLIT
#define LOAD(i) load_block(i)
#else
#define LOAD(i) TUFF_PREPARED(X_load_block(i), center)
#endif

void main() {
  uint thread = tuff_thread();
  uint lane = thread % TUFF_LANES;
  for (uint repeat = 0; repeat < RUN; ++repeat) {
    // Lanes without a piece repeat the last one: this avoids a branch, and every lane takes part in the shuffles.
#if TUFF_SINGLE
    uint piece = min(tuff_group() * RUN + repeat, push.pieces - 1);
#else
    uint piece = (tuff_group() * RUN + repeat) * (gl_WorkGroupSize.x / TUFF_LANES) + thread / TUFF_LANES;
    piece = min(piece, push.pieces - 1);
#endif
#if TUFF_CUT
    uint row = piece / push.segments;
    uint start = (piece - row * push.segments) * push.segment;
    uint begin = row * push.extent + start;
    uint elements = min(push.segment, push.extent - start);
#else
    uint row = piece;
    uint begin = piece * push.extent;
    uint elements = push.extent;
#endif
#if TUFF_CENTERED
    const TuffBlock center = tuff_block(center_at(row));
#elif TUFF_PREPARE == 4
    TuffBlock center = tuff_block(TUFF_ZERO);
    if (push.extent != 0) {
      const TUFF_VALUE first = TUFF_AS_VALUE(TUFF_X_TYPE, TUFF_AT(Base, row * push.extent));
      center = tuff_block(base_of(TUFF_VALUE4(first)).x);
    }
#else
    const TuffBlock center = tuff_block(TUFF_ZERO);
#endif

    Partial total = empty_partial();
#if TUFF_PEEL
    uint end = begin + elements;
    uint inner_begin = min((begin + TUFF_ELEMENTS - 1) & ~(TUFF_ELEMENTS - 1u), end);
    uint inner_end = max(end & ~(TUFF_ELEMENTS - 1u), inner_begin);
#if TUFF_STATE != 0
    // Apart, because blocks are gathered into states whose counts are equal.
    Partial singles = empty_partial();
#else
#define singles total
#endif
    for (uint i = begin + lane; i < inner_begin; i += TUFF_LANES) gather(singles, single(i, center));
    for (uint i = inner_end + lane; i < end; i += TUFF_LANES) gather(singles, single(i, center));
    uint blocks = (inner_end - inner_begin) / TUFF_ELEMENTS;
    uint block = inner_begin / TUFF_ELEMENTS + lane;
    // The number of blocks that every lane has, wherever in a block the row begins.
    uint whole = (max(elements, TUFF_ELEMENTS - 1u) - (TUFF_ELEMENTS - 1u)) / TUFF_ELEMENTS / TUFF_LANES;
#else
    uint blocks = elements / TUFF_ELEMENTS;
    uint block = begin / TUFF_ELEMENTS + lane;
    uint whole = blocks / TUFF_LANES;
#endif
    TUFF_GATHER(total, whole, block, TUFF_LANES, LOAD)
    for (uint k = whole * TUFF_LANES + lane; k < blocks; k += TUFF_LANES, block += TUFF_LANES) {
      gather(total, LOAD(block));
    }

#if TUFF_STATE != 0 && TUFF_PEEL
    merge(total, singles);
#endif
    const TUFF_RESULT result = result_of_lanes(result_of(total));
#if TUFF_STATE != 0 && TUFF_CUT
    if (lane == 0) {
      Y_store(piece, result.a);
      Y_store(piece + push.to_plane, result.b);
      Y_store(piece + 2 * push.to_plane, result.c);
    }
#else
    if (lane == 0) Y_store(piece, scaled(TUFF_VALUE4(TUFF_RESULT_VALUE(result)), center.part[0]).x);
#endif
  }
}
