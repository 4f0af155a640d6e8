// Softmax of rows held in registers: one read, one write.
//
// LANES invocations share a row: lane l holds blocks l, l + LANES, … of four elements, up to TUFF_BLOCKS of
// them; absent elements count as -infinity. Then: maximum over the lanes, exponentials, sum over the lanes,
// division.
//
//   row  | 0 1 2 … LANES-1 | 0 1 2 … LANES-1 | …        blocks and their lanes
//
//   TUFF_LANES    a power of two up to the subgroup's size, or the whole workgroup
//   TUFF_SHARED   1: LANES is the workgroup and larger than a subgroup
//   TUFF_BLOCKS   blocks of a lane: TUFF_LANES * TUFF_BLOCKS * 4 >= extent
//   TUFF_PEEL     1: extent is no multiple of 4: elements one by one, lane l holding l, l + LANES, …
//   TUFF_EXACT    1: every lane has TUFF_BLOCKS blocks, all of them in the row
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint rows;
  uint extent;  // elements of a row
} push;

TUFF_BLOCKS_READ(0, X)
TUFF_BLOCKS_WRITE(1, Y)

#include "kernels/softmax/lanes.glsl"

void main() {
  uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  uint lane = thread % TUFF_LANES;
  uint row = tuff_group() * (gl_WorkGroupSize.x / TUFF_LANES) + thread / TUFF_LANES;
  bool live = row < push.rows;
  row = live ? row : 0;  // every lane has a part in the shuffles

  vec4 x[TUFF_BLOCKS];
#if TUFF_PEEL
  uint first = row * push.extent;
#define TUFF_PLACE(b, c) (lane + (4 * (b) + (c)) * TUFF_LANES)
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      x[b][c] = -TUFF_INFINITY;
      if (TUFF_PLACE(b, c) < push.extent) x[b][c] = TUFF_AT(X_scalar, first + TUFF_PLACE(b, c));
    }
  }
#else
  uint blocks = push.extent / 4;
  uint first = row * blocks;
#if TUFF_EXACT
#define TUFF_PRESENT(b) true
#else
#define TUFF_PRESENT(b) (lane + (b) * TUFF_LANES < blocks)
#endif
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    x[b] = vec4(-TUFF_INFINITY);
    if (TUFF_PRESENT(b)) x[b] = TUFF_LOAD4(X, first + lane + b * TUFF_LANES);
  }
#endif

  vec4 m = x[0];
  [[unroll]] for (uint b = 1; b < TUFF_BLOCKS; ++b) m = mix(m, x[b], greaterThan(x[b], m));
  float maximum = tree_maximum(larger(larger(m.x, m.y), larger(m.z, m.w)));
  float shift = finite_shift(maximum);

  vec4 s = vec4(0.0);
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    x[b] = tuff_exp(x[b] - shift);
    s += x[b];
  }
  float total = tree_sum((s.x + s.y) + (s.z + s.w));
  float scale = reciprocal(total);

#if TUFF_PEEL
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      if (live && TUFF_PLACE(b, c) < push.extent) TUFF_AT(Y_scalar, first + TUFF_PLACE(b, c)) = x[b][c] * scale;
    }
  }
#else
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    if (live && TUFF_PRESENT(b)) TUFF_STORE4(Y, first + lane + b * TUFF_LANES, x[b] * scale);
  }
#endif
}
