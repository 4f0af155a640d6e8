// Reduces a formula along its reduced axes. Each lane takes four neighbours of the kept axes and walks along the reduced
// ones. With segments > 1, index r of the reduced axes belongs to segment r % segments, for another stage.
#define EXPR_ALONG_REDUCED 0
#include "kernels/expression/expression_reduce.glsl"

Loaded expr_four(uint n) {
  expr_find(EXPR_PLACE(n));
  return expr_values();
}

void main() {
  expr_scalars();
  const uint columns = (push.kept + 3) / 4;
  const uint rows = push.extent / push.segments, longer = push.extent - rows * push.segments;
  for (uint repeat = 0; repeat < RUN; ++repeat) {
    // Surplus lanes and workgroups repeat the last result, which avoids a branch.
    const uint t = min((tuff_group() * RUN + repeat) * gl_WorkGroupSize.x + gl_LocalInvocationID.x,
                       columns * push.segments - 1);
    const uint segment = t / columns, n = 4 * (t - segment * columns);
#if TUFF_GATHERED
    // Beyond the last result, that one again.
    expr_begin(min(uvec4(n) + uvec4(0, 1, 2, 3), uvec4(push.kept - 1)));
#else
    expr_begin(n);
#endif
    expr_choose_origin(true);
    Partial total = empty_partial();
    uint place = segment;
    TUFF_GATHER(total, rows, place, push.segments, expr_four)
    if (segment < longer) gather(total, expr_four(place));
#if TUFF_STATE == 0
    const TUFF_VALUE4 result = finish(total).part[0];
#define RESULT(c) result[c]
#define FINAL scaled(result, TUFF_VALUE4(TUFF_ZERO))
#else
#define RESULT(c) state_at(total.part[0], c)
#define FINAL expr_finals(total.part[0])
#endif
#if TUFF_CUT
    for (uint c = 0; c < min(push.kept - n, 4u); ++c) {
      expr_store_partial(segment * push.kept + n + c, RESULT(c));
    }
#else
    expr_places = expr_base;
    expr_store(FINAL);
#endif
  }
}
