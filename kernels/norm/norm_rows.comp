// Normalises rows held in registers, with one read and one write of each.
//
// TUFF_LANES invocations share a row. Lane l holds blocks l, l + LANES, … of W = TUFF_ELEMENTS elements (16 bytes), up
// to TUFF_BLOCKS of them. The lanes first compute the mean, then the mean of the squared deviations from it: a large
// mean thus costs only its own rounding, and the variance loses no digits.
//
//   row  | 0 1 2 … LANES-1 | 0 1 2 … LANES-1 | …        the lane of each block
//
//# TUFF_BLOCKS : 1..4|8|12|16 : blocks of a lane; TUFF_LANES * TUFF_BLOCKS * W >= extent
//# TUFF_PEEL : 0|1 : 1: extent is not a multiple of W, or TUFF_CHANNEL is 2: elements are read one by one
//   Lane l then holds elements l, l + LANES, …
//# TUFF_SUM : 0|1 : 1: what is normalised (X + R) is also stored in S
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(6)
  uint rows;
  uint extent;  // elements of a row
  float epsilon;
  uint inner;
  uint channels;
  uint groups;
  uint first_row;  // the first row of this dispatch, modulo groups
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
#if TUFF_RESIDUAL
TUFF_BLOCKS_READ(1, R, TUFF_TYPE)
#endif
TUFF_BLOCKS_WRITE(4, Y, TUFF_TYPE)
#if TUFF_SUM
TUFF_BLOCKS_WRITE(5, S, TUFF_TYPE)
#endif

#include "kernels/common/lanes.glsl"
#include "kernels/norm/norm.glsl"

#if TUFF_PEEL
#define TUFF_PLACE(b, c) (lane + (TUFF_ELEMENTS * (b) + (c)) * TUFF_LANES)
#define TUFF_PRESENT(b, c) (TUFF_PLACE(b, c) < push.extent)
#else
#define TUFF_PLACE(b) (lane + (b) * TUFF_LANES)
#define TUFF_PRESENT(b, c) (TUFF_PLACE(b) < push.extent / TUFF_ELEMENTS)
#endif

// Mean (0 for RMS norm) and variance of the row; absent elements are zeros.
void moments(TuffBlock x[TUFF_BLOCKS], uint lane, out TUFF_VALUE mean, out TUFF_VALUE variance) {
  mean = 0.0;
#if TUFF_CENTRED
  TUFF_VALUE4 s = TUFF_VALUE4(0.0);
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) s += x[b].part[p];
  }
  mean = tuff_divide_moderate(TUFF_VALUE4(tree_sum(sum4(s))), TUFF_VALUE4(TUFF_VALUE(push.extent))).x;
#endif
  TUFF_VALUE4 squares = TUFF_VALUE4(0.0);
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
      TUFF_VALUE4 d = x[b].part[p] - mean;
#if TUFF_CENTRED
#if TUFF_PEEL
      [[unroll]] for (uint c = 0; c < 4; ++c) d[c] = TUFF_PRESENT(b, 4 * p + c) ? d[c] : 0.0;
#else
      d = TUFF_PRESENT(b, 0) ? d : TUFF_VALUE4(0.0);
#endif
#endif
      squares += d * d;
    }
  }
  variance = tuff_divide(TUFF_VALUE4(tree_sum(sum4(squares))), TUFF_VALUE4(TUFF_VALUE(push.extent))).x;
}

void main() {
  uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  uint lane = thread % TUFF_LANES;
  uint row = tuff_group() * (gl_WorkGroupSize.x / TUFF_LANES) + thread / TUFF_LANES;
  bool live = row < push.rows;
  row = live ? row : 0;  // every lane takes part in the shuffles

  TuffBlock x[TUFF_BLOCKS];
#if TUFF_PEEL
  uint first = row * push.extent;
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    x[b] = tuff_block(0.0);
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      if (TUFF_PRESENT(b, c)) {
        x[b].part[c / 4][c % 4] = input_load(first + TUFF_PLACE(b, c));
#if TUFF_SUM
        if (live) S_store(first + TUFF_PLACE(b, c), x[b].part[c / 4][c % 4]);
#endif
      }
    }
  }
#else
  uint blocks = push.extent / TUFF_ELEMENTS;
  uint first = row * blocks;
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    x[b] = tuff_block(0.0);
    if (TUFF_PRESENT(b, 0)) {
      x[b] = input_load_block(first + TUFF_PLACE(b));
#if TUFF_SUM
      if (live) S_store_block(first + TUFF_PLACE(b), x[b]);
#endif
    }
  }
#endif

  Normal normal;
  TUFF_VALUE variance, used = 1.0;
  moments(x, lane, normal.mean, variance);
  // A loop rather than a branch: Mesa 22.3 executes both sides of a branch, but skips a loop that no lane enters.
  // Rows of the same subgroup that need no factor are computed again with 1.
  [[dont_unroll]] for (TUFF_VALUE factor = factor_of(normal.mean, variance); TUFF_ANY_ROW(factor != used);) {
    used = factor;
    [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) x[b] = scaled(x[b], factor);
    moments(x, lane, normal.mean, variance);
  }
  normal.scale = reciprocal_deviation(variance, used);

  uint channel = first_channel(push.first_row + row);
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
#if TUFF_PEEL
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      if (live && TUFF_PRESENT(b, c)) {
        Y_store(first + TUFF_PLACE(b, c), result(x[b].part[c / 4][c % 4], channel, TUFF_PLACE(b, c), normal));
      }
    }
#else
    if (live && TUFF_PRESENT(b, 0)) {
      Y_store_block(first + TUFF_PLACE(b), result_block(x[b], channel, TUFF_PLACE(b) * TUFF_ELEMENTS, normal));
    }
#endif
  }
}
