// The gradient of softmax, or of its logarithm, by its input, of rows: dx = scale * y * (dy - sum(dy * y)), or
// scale * (dy - exp(y) * sum(dy)). The first pass sums, the second reads the row again. A row may be cut into segments for
// different workgroups; P then holds the sum of each.
//
//# TUFF_MODE : 0..2 : which passes: 0: both, with one segment per row; 1: the first, into P; 2: the second, from all P of the row
//# TUFF_TYPE : types : element type, as in tuff.h
//# TUFF_LOGARITHM : 0|1 : 1: of the logarithm
//
// TUFF_LANES invocations share a segment, the whole workgroup if TUFF_MODE is not 0. In each step lane l reads blocks l,
// l + LANES, … of W = TUFF_ELEMENTS elements, TUFF_UNROLL of them. With TUFF_PEEL it reads single elements instead, which are
// push.inner apart: rows next to each other are then lanes next to each other.
//# TUFF_UNROLL : 2|4 : blocks that a lane reads in a step
//# TUFF_PEEL : 0|1 : 1: elements are read one by one: there are parts of blocks, or inner is not 1
//
// dx may take the place of y or dy: each element is read, in both passes, by the lane that writes it.
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"
#include "kernels/softmax/softmax.def"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint rows;
  uint extent;
  uint inner;     // rows that lie side by side
  uint segments;  // of a row
  uint segment;   // elements of a segment, a multiple of W; the last has the rest
  float scale;
} push;

TUFF_BLOCKS_READ(0, Y, TUFF_TYPE)
TUFF_BLOCKS_READ(1, G, TUFF_TYPE)
TUFF_BLOCKS_WRITE(2, X, TUFF_TYPE)
TUFF_READ_WRITE(3, P, float, 4)

#include "kernels/common/lanes.glsl"

#if TUFF_PEEL
#define TUFF_ITEMS (TUFF_ELEMENTS * TUFF_UNROLL * TUFF_LANES)  // elements of a step
#define TUFF_PLACE(i, u, c) (first + TUFF_INDEX((i) + (TUFF_ELEMENTS * (u) + (c)) * TUFF_LANES) * push.inner)
#define TUFF_IS_THERE(i, u, c) (whole || (i) + (TUFF_ELEMENTS * (u) + (c)) * TUFF_LANES < end)
#else
#define TUFF_ITEMS (TUFF_UNROLL * TUFF_LANES)  // blocks of a step
#define TUFF_PLACE(i, u) (first / TUFF_ELEMENTS + ((i) + (u) * TUFF_LANES))
#define TUFF_IS_THERE(i, u) (whole || (i) + (u) * TUFF_LANES < end)
#endif

struct Step {
  TuffBlock y[TUFF_UNROLL], g[TUFF_UNROLL];
};

// Items from `end` on are absent, and have gradients of 0.
Step load_step(TUFF_INDEX first, uint i, uint end, bool whole) {
  Step s;
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    s.y[u] = tuff_block(0.0);
    s.g[u] = tuff_block(0.0);
#if TUFF_PEEL
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      if (TUFF_IS_THERE(i, u, c)) {
        s.y[u].part[c / 4][c % 4] = Y_load(TUFF_PLACE(i, u, c));
        s.g[u].part[c / 4][c % 4] = G_load(TUFF_PLACE(i, u, c));
      }
    }
#else
    if (TUFF_IS_THERE(i, u)) {
      s.y[u] = Y_load_block(TUFF_PLACE(i, u));
      s.g[u] = G_load_block(TUFF_PLACE(i, u));
    }
#endif
  }
  return s;
}

void gather_step(TUFF_INDEX first, uint i, uint end, bool whole, inout vec4 total) {
  const Step s = load_step(first, i, end, whole);
  vec4 part = vec4(0.0);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
#if TUFF_LOGARITHM
      part += s.g[u].part[p];
#else
      part += s.g[u].part[p] * s.y[u].part[p];
#endif
    }
  }
  total += part;
}

void write_step(TUFF_INDEX first, uint i, uint end, bool whole, float sum) {
  Step s = load_step(first, i, end, whole);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
      const vec4 y = s.y[u].part[p], g = s.g[u].part[p];
#if TUFF_LOGARITHM
      s.g[u].part[p] = push.scale * (g - tuff_exp(y) * sum);
#else
      s.g[u].part[p] = push.scale * (y * (g - sum));
#endif
    }
#if TUFF_PEEL
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      if (TUFF_IS_THERE(i, u, c)) X_store(TUFF_PLACE(i, u, c), s.g[u].part[c / 4][c % 4]);
    }
#else
    if (TUFF_IS_THERE(i, u)) X_store_block(TUFF_PLACE(i, u), s.g[u]);
#endif
  }
}

void main() {
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID, lane = thread % TUFF_LANES;
  uint piece = tuff_group() * (gl_WorkGroupSize.x / TUFF_LANES) + thread / TUFF_LANES;
  const bool live = piece < push.rows * push.segments;
  piece = live ? piece : 0;  // every lane takes part in the shuffles
#if TUFF_MODE == 0
  const uint number = piece, start = 0, stop = push.extent;
#else
  const uint number = piece / push.segments;
  const uint start = (piece - number * push.segments) * push.segment;
  const uint stop = start + min(push.segment, push.extent - start);
#endif
#if TUFF_PEEL
  const uint outer = number / push.inner;
  const TUFF_INDEX first = TUFF_INDEX(outer) * push.extent * push.inner + (number - outer * push.inner);
  const uint begin = start, end = stop;
#else
  const TUFF_INDEX first = TUFF_INDEX(number) * push.extent;
  const uint begin = start / TUFF_ELEMENTS, end = stop / TUFF_ELEMENTS;
#endif
  const uint whole_steps = (end - begin) / TUFF_ITEMS;
  const bool rest = whole_steps * TUFF_ITEMS < end - begin;
#if TUFF_MODE != 2
  // Sums of 32 steps are added to those before, so that chains of additions stay short.
  vec4 all = vec4(0.0), part = vec4(0.0);
  uint i = begin + lane;
  for (uint step = 0; step < whole_steps; ++step, i += TUFF_ITEMS) {
    gather_step(first, i, end, true, part);
    if ((step & 31u) == 31u) {
      all += part;
      part = vec4(0.0);
    }
  }
  if (rest) gather_step(first, i, end, false, part);
  const float sum = tree_sum(sum4(all + part));
#else
  float mine = 0.0;
  for (uint s = lane; s < push.segments; s += TUFF_LANES) mine += TUFF_AT(P, number * push.segments + s);
  const float sum = tree_sum(mine);
#endif
#if TUFF_MODE == 1
  if (live && lane == 0) TUFF_AT(P, piece) = sum;
#else
  if (!live) return;
  uint j = begin + lane;
  for (uint step = 0; step < whole_steps; ++step, j += TUFF_ITEMS) write_step(first, j, end, true, sum);
  if (rest) write_step(first, j, end, false, sum);
#endif
}
