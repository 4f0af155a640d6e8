// Reduces a formula along its reduced axes, four neighbours of which a lane takes at once. TUFF_LANES invocations share
// a piece: one segment of one result's elements. They are combined as by reduce_rows.comp:
//
//   piece  | 0 1 2 … LANES-1 | 0 1 2 … LANES-1 | …        the lane of each four
//
//# TUFF_SINGLE : 0|1 : 1: LANES is the workgroup
#define EXPR_ALONG_REDUCED 1
#include "kernels/expression/expression_reduce.glsl"
#include "kernels/reduce/rows.glsl"

Loaded expr_four(uint n) {
#if TUFF_GATHERED
  expr_find(uvec4(4 * n) + uvec4(0, 1, 2, 3));
#else
  expr_find(4 * n);
#endif
  return expr_values();
}

void main() {
  expr_scalars();
  const uint thread = tuff_thread();
  const uint lane = thread % TUFF_LANES;
  for (uint repeat = 0; repeat < RUN; ++repeat) {
    // Lanes without a piece repeat the last one: this avoids a branch, and every lane takes part in the shuffles.
#if TUFF_SINGLE
    uint piece = tuff_group() * RUN + repeat;
#else
    uint piece = (tuff_group() * RUN + repeat) * (gl_WorkGroupSize.x / TUFF_LANES) + thread / TUFF_LANES;
#endif
    piece = min(piece, push.kept * push.segments - 1);
#if TUFF_CUT
    const uint row = piece / push.segments, segment = piece - row * push.segments;
    const uint begin = segment * push.segment, elements = min(push.segment, push.extent - begin);
#else
    const uint row = piece, begin = 0, elements = push.extent;
#endif
    expr_begin(EXPR_PLACE(row));
    expr_choose_origin(false);
    Partial total = empty_partial();
    const uint blocks = elements / 4, whole = blocks / TUFF_LANES;
    uint block = begin / 4 + lane;
    TUFF_GATHER(total, whole, block, TUFF_LANES, expr_four)
    for (uint k = whole * TUFF_LANES + lane; k < blocks; k += TUFF_LANES, block += TUFF_LANES) {
      gather(total, expr_four(block));
    }
    for (uint i = begin + 4 * blocks + lane; i < begin + elements; i += TUFF_LANES) {
      expr_find(EXPR_PLACE(i));
      gather(total, expr_value());
    }
    const TUFF_RESULT result = result_of_lanes(result_of(total));
    if (lane == 0) {
#if TUFF_CUT
      expr_store_partial(segment * push.kept + row, result);
#else
      expr_places = expr_base;
      expr_store_one(expr_final(result));
#endif
    }
  }
}
