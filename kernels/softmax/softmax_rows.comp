// Softmax of rows held in registers, with one read and one write of each.
//
// TUFF_LANES invocations share a row. Lane l holds blocks l, l + LANES, … of W = TUFF_ELEMENTS elements (16 bytes), up
// to TUFF_BLOCKS of them; absent elements count as -infinity. The lanes compute the maximum, exponentials and their
// sum, then divide.
//
//   row  | 0 1 2 … LANES-1 | 0 1 2 … LANES-1 | …        the lane of each block
//
//# TUFF_BLOCKS : 1..4|8|12|16 : blocks of a lane; TUFF_LANES * TUFF_BLOCKS * W >= extent
//# TUFF_PEEL : 0|1 : 1: extent is not a multiple of W: elements are read one by one, and lane l has l, l + LANES, …
//# TUFF_EXACT : 0|1 : 1: every lane has TUFF_BLOCKS blocks, all within the row
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint rows;
  uint extent;  // elements of a row
  float scale;  // from here on: see input.glsl
  uint mask_first;
  uint mask_rows;
  uint mask_repeat;
  uint mask_extent;  // elements of a row of the mask
  uint mask_begin;   // where this piece of a row begins in the mask's row
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
TUFF_BLOCKS_WRITE(1, Y, TUFF_TYPE)

#define TUFF_MASK_SLOT 2
#include "kernels/softmax/weights.glsl"

void main() {
  uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  uint lane = thread % TUFF_LANES;
  uint row = tuff_group() * (gl_WorkGroupSize.x / TUFF_LANES) + thread / TUFF_LANES;
  bool live = row < push.rows;
  row = live ? row : 0;  // every lane takes part in the shuffles

#if TUFF_MASK
  TUFF_INDEX mask = mask_start(row);
#else
  const TUFF_INDEX mask = 0;
#endif
  forget_seen();
  TuffBlock x[TUFF_BLOCKS];
#if TUFF_PEEL
  uint first = row * push.extent;
#define TUFF_PLACE(b, c) (lane + (TUFF_ELEMENTS * (b) + (c)) * TUFF_LANES)
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    x[b] = tuff_block(TUFF_LOWEST);
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      if (TUFF_PLACE(b, c) < push.extent) {
        x[b].part[c / 4][c % 4] = z_load(first + TUFF_PLACE(b, c), mask + TUFF_PLACE(b, c));
      }
    }
  }
#else
  uint blocks = push.extent / TUFF_ELEMENTS;
  uint first = row * blocks;
#if TUFF_EXACT
#define TUFF_PRESENT(b) true
#else
#define TUFF_PRESENT(b) (lane + (b) * TUFF_LANES < blocks)
#endif
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    x[b] = tuff_block(TUFF_LOWEST);
    if (TUFF_PRESENT(b)) {
      x[b] = z_load_block(first + lane + b * TUFF_LANES, mask + lane + b * TUFF_LANES);
    }
  }
#endif

  TUFF_VALUE4 m = TUFF_VALUE4(TUFF_LOWEST);
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) m = larger_block(m, x[b]);
  TUFF_VALUE maximum = tree_maximum(larger4(m));
  TUFF_VALUE shift = finite_shift(maximum);

  TUFF_VALUE4 s = TUFF_VALUE4(0.0);
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
#if TUFF_LOGARITHM
      s += tuff_exp(x[b].part[p] - shift);
#else
      x[b].part[p] = tuff_exp(x[b].part[p] - shift);
      s += x[b].part[p];
#endif
    }
  }
  Weights weights = weights_of(TUFF_VALUE4(maximum), TUFF_VALUE4(tree_sum(sum_of_seen(sum4(s), maximum))));

  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
#if TUFF_LOGARITHM
      x[b].part[p] = weighted(x[b].part[p], weights);
#else
      x[b].part[p] *= weights.scale;
#endif
    }
#if TUFF_PEEL
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      if (live && TUFF_PLACE(b, c) < push.extent) Y_store(first + TUFF_PLACE(b, c), x[b].part[c / 4][c % 4]);
    }
#else
    if (live && TUFF_PRESENT(b)) Y_store_block(first + lane + b * TUFF_LANES, x[b]);
#endif
  }
}
