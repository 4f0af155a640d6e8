// outputs[…] = formula(inputs[…]) for n indices of merged axes, in row-major order. kernels/expression/
// expression_glsl.cpp generates what depends on the formula, in place of the line with TUFF_BODY below:
//
//   expr_scalars()           reads the scalars from the table
//   expr_load(i)             loads elements 4 i … 4 i + 3 of each input; expr_load_one(i) loads element i four times
//   expr_compute()           computes the outputs
//   expr_store(i)            stores them; expr_store_one(i) stores the first
//
// An item is a block of four elements. Each workgroup has RUN * (workgroup size) consecutive items; in step s, lane l
// processes item s * (workgroup size) + l. The last workgroup also has the n % 4 elements after the last block.
//# TUFF_SLOTS : 1..11 : operands in buffers, and the table if there is one
//# TUFF_RUN : 0.. : items that a lane processes one after another; 0: push.run says
//
// Loops with floats must not be [[unroll]]: see kernels/elementwise/map.glsl.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint RANK = 1;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(TUFF_SLOTS)
  uint n, run;
} push;

#define TUFF_PARTS 1
#define EXPR_REDUCES 0
#include "kernels/elementwise/blocks.glsl"
#include "kernels/expression/expression_functions.glsl"
#include "kernels/expression/expression_casts.glsl"
#include "kernels/expression/expression_operands.glsl"

TUFF_BODY

void main() {
  expr_scalars();
  const uint lanes = gl_WorkGroupSize.x, blocks = push.n / 4, begin = tuff_group() * (lanes * RUN);
  uint i = begin + gl_LocalInvocationID.x;
  const uint end = min(begin + lanes * RUN, blocks);
  for (; i < end; i += lanes) {
#if TUFF_GATHERED
    expr_find(uvec4(4 * i) + uvec4(0, 1, 2, 3));
#else
    expr_find(4 * i);
#endif
    expr_load(i);
    expr_compute();
    expr_store(i);
  }
  if (begin <= blocks && blocks < begin + lanes * RUN) {
    for (uint element = 4 * blocks + gl_LocalInvocationID.x; element < push.n; element += lanes) {
      expr_find(EXPR_PLACE(element));
      expr_load_one(element);
      expr_compute();
      expr_store_one(element);
    }
  }
}
