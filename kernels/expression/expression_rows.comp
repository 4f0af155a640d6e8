// Reduces a formula along its reduced axes, four neighbours of which a lane takes at once. TUFF_LANES invocations share
// a piece: one segment of one result's elements. They are combined as by reduce_rows.comp:
//
//   piece  | 0 1 2 … LANES-1 | 0 1 2 … LANES-1 | …        the lane of each four
//
//# TUFF_LANES : 1..1024 : lanes of a piece: a power of two up to the subgroup's size, or the whole workgroup
//# TUFF_SHARED : 0|1 : 1: LANES is the workgroup and larger than a subgroup
//# TUFF_SINGLE : 0|1 : 1: LANES is the workgroup
#define EXPR_ALONG_REDUCED 1
#include "kernels/expression/expression_reduce.glsl"

#if TUFF_SHARED
shared EXPR_RESULT parts[TUFF_LANES];
#endif

EXPR_ELEMENTS expr_four(uint n) {
#if TUFF_GATHERED
  expr_find(uvec4(4 * n) + uvec4(0, 1, 2, 3));
#else
  expr_find(4 * n);
#endif
  return expr_values();
}

void gather_single(inout EXPR_TOTAL total, uint n) {
  expr_find(EXPR_PLACE(n));
#if TUFF_STATE == 0
  gather(total, expr_value());
#else
  merge(total, expr_value());
#endif
}

void main() {
  expr_scalars();
  // Computed from the subgroup's own numbering, because shuffles use it.
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
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
    EXPR_TOTAL total = expr_nothing();
    const uint blocks = elements / 4, whole = blocks / TUFF_LANES;
    uint block = begin / 4 + lane;
    TUFF_GATHER(total, whole, block, TUFF_LANES, expr_four)
    for (uint k = whole * TUFF_LANES + lane; k < blocks; k += TUFF_LANES, block += TUFF_LANES) {
      gather(total, expr_four(block));
    }
    for (uint i = begin + 4 * blocks + lane; i < begin + elements; i += TUFF_LANES) gather_single(total, i);

    EXPR_RESULT result = expr_result_of(total);
#if TUFF_SHARED
    for (uint mask = 1; mask < gl_SubgroupSize; mask *= 2) result = combine(result, expr_shuffled(result, mask));
    if (gl_SubgroupInvocationID == 0) parts[gl_SubgroupID] = result;
    barrier();
    for (uint width = gl_NumSubgroups / 2; width > 0; width /= 2) {
      if (thread < width) parts[thread] = combine(parts[thread], parts[thread + width]);
      barrier();
    }
    result = parts[0];
#else
    [[unroll]] for (uint mask = 1; mask < TUFF_LANES; mask *= 2) {
      result = combine(result, expr_shuffled(result, mask));
    }
#endif
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
