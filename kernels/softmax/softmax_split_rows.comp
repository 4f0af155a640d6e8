// Softmax of rows that are too long for registers. The first pass computes a running maximum and sum; the second reads
// the row again and writes results. A row may be cut into segments for different workgroups; P then holds (maximum,
// sum) of each, one vec2 per segment:
//
//# TUFF_MODE : 0..2 : which passes:
//   0   both passes, with one segment per row
//   1   first pass: writes P[row * total_segments + s] for segment s
//   2   second pass: merges all P of the row, then writes the results of segment s
//
// TUFF_LANES invocations, the whole workgroup, share a segment. In each step lane l reads blocks l, l + LANES, … of
// W = TUFF_ELEMENTS elements (16 bytes), TUFF_UNROLL of them. Serial additions of a lane: segment / (4 LANES UNROLL),
// at most 256.
//# TUFF_UNROLL : 2|4 : blocks that a lane reads in a step
//# TUFF_PEEL : 0|1 : 1: extent is not a multiple of W: elements are read one by one
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint rows;
  uint extent;          // elements of a row that this dispatch covers
  uint segments;        // of a row in this dispatch
  uint segment;         // elements of a segment, a multiple of W; the last has the rest
  uint total_segments;  // of the whole row
  float scale;  // from here on: see input.glsl
  uint mask_first;
  uint mask_rows;
  uint mask_repeat;
  uint mask_extent;  // elements of a row of the mask
  uint mask_begin;   // where this piece of a row begins in the mask's row
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
TUFF_BLOCKS_WRITE(1, Y, TUFF_TYPE)
TUFF_READ_WRITE(2, P, TUFF_VALUE2, 2 * TUFF_VALUE_BYTES)

#define TUFF_MASK_SLOT 3
#include "kernels/softmax/weights.glsl"

#if TUFF_PEEL
#define TUFF_ITEMS (TUFF_ELEMENTS * TUFF_UNROLL * TUFF_LANES)  // elements of a step
#define TUFF_PLACE(u, c) (i + (TUFF_ELEMENTS * (u) + (c)) * TUFF_LANES)
#else
#define TUFF_ITEMS (TUFF_UNROLL * TUFF_LANES)  // blocks of a step
#define TUFF_PLACE(u) (i + (u) * TUFF_LANES)
#endif

// Loads a step that starts at item i of this lane. Items from `end` on are absent and count as -infinity. `mask` is
// added to an index of the input to get that of the mask.
void load_step(uint i, uint end, bool whole, TUFF_INDEX mask, out TuffBlock x[TUFF_UNROLL]) {
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    x[u] = tuff_block(TUFF_LOWEST);
#if TUFF_PEEL
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      if (whole || TUFF_PLACE(u, c) < end) {
        x[u].part[c / 4][c % 4] = z_load(TUFF_PLACE(u, c), mask + TUFF_PLACE(u, c));
      }
    }
#else
    if (whole || TUFF_PLACE(u) < end) x[u] = z_load_block(TUFF_PLACE(u), mask + TUFF_PLACE(u));
#endif
  }
}

void gather_step(uint i, uint end, bool whole, TUFF_INDEX mask, inout TUFF_VALUE maximum, inout TUFF_VALUE4 total) {
  TuffBlock x[TUFF_UNROLL];
  load_step(i, end, whole, mask, x);
  TUFF_VALUE4 m = TUFF_VALUE4(TUFF_LOWEST);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) m = larger_block(m, x[u]);
  TUFF_VALUE next = larger(maximum, larger4(m));
  TUFF_VALUE shift = finite_shift(next);
  TUFF_VALUE4 s = TUFF_VALUE4(0.0);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) s += tuff_exp(x[u].part[p] - shift);
  }
  // Most steps leave the maximum unchanged, and then nothing is rescaled.
  total = next == maximum ? total + s : total * tuff_exp(TUFF_VALUE4(maximum - shift)) + s;
  maximum = next;
}

void write_step(uint i, uint end, bool whole, TUFF_INDEX mask, Weights weights) {
  TuffBlock x[TUFF_UNROLL];
  load_step(i, end, whole, mask, x);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) x[u].part[p] = weighted(x[u].part[p], weights);
#if TUFF_PEEL
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      if (whole || TUFF_PLACE(u, c) < end) Y_store(TUFF_PLACE(u, c), x[u].part[c / 4][c % 4]);
    }
#else
    if (whole || TUFF_PLACE(u) < end) Y_store_block(TUFF_PLACE(u), x[u]);
#endif
  }
}

void main() {
  uint lane = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  uint piece = tuff_group();
  if (piece >= push.rows * push.segments) return;
  uint row = piece / push.segments;
  uint segment = piece - row * push.segments;
  uint start = segment * push.segment;
  uint begin = row * push.extent + start;
  uint end = begin + min(push.segment, push.extent - start);
#if !TUFF_PEEL
  begin /= TUFF_ELEMENTS;
  end /= TUFF_ELEMENTS;
#endif
#if !TUFF_MASK
  const TUFF_INDEX mask = 0;
#elif TUFF_PEEL
  TUFF_INDEX mask = mask_start(row) - TUFF_INDEX(row * push.extent);
#else
  TUFF_INDEX mask = mask_start(row) - TUFF_INDEX(row * push.extent / TUFF_ELEMENTS);
#endif
  uint whole_steps = (end - begin) / TUFF_ITEMS;
  bool rest = whole_steps * TUFF_ITEMS < end - begin;

#if TUFF_MODE != 2
  forget_seen();
  TUFF_VALUE maximum = TUFF_LOWEST;
  TUFF_VALUE4 sums = TUFF_VALUE4(0.0);
  uint i = begin + lane;
  for (uint step = 0; step < whole_steps; ++step, i += TUFF_ITEMS) gather_step(i, end, true, mask, maximum, sums);
  if (rest) gather_step(i, end, false, mask, maximum, sums);
  TUFF_VALUE row_maximum = tree_maximum(maximum);
  // A lane without elements has a sum of 0.
  TUFF_VALUE mine = sum_of_seen(sum4(sums), maximum) * weight_of_part(TUFF_VALUE4(maximum), TUFF_VALUE4(row_maximum)).x;
  TUFF_VALUE row_total = tree_sum(mine);
#else
  TUFF_VALUE row_maximum = TUFF_LOWEST;
  uint first = row * push.total_segments;
  for (uint s = lane; s < push.total_segments; s += TUFF_LANES) {
    row_maximum = larger(row_maximum, TUFF_AT(P, first + s).x);
  }
  row_maximum = tree_maximum(row_maximum);
  TUFF_VALUE row_total = 0.0;
  for (uint s = lane; s < push.total_segments; s += TUFF_LANES) {
    TUFF_VALUE2 partial = TUFF_AT(P, first + s);
    row_total += partial.y * weight_of_part(TUFF_VALUE4(partial.x), TUFF_VALUE4(row_maximum)).x;
  }
  row_total = tree_sum(row_total);
#endif

#if TUFF_MODE == 1
  if (lane == 0) TUFF_AT(P, row * push.total_segments + segment) = TUFF_VALUE2(row_maximum, row_total);
#else
  Weights weights = weights_of(TUFF_VALUE4(row_maximum), TUFF_VALUE4(row_total));
  uint j = begin + lane;
  for (uint step = 0; step < whole_steps; ++step, j += TUFF_ITEMS) write_step(j, end, true, mask, weights);
  if (rest) write_step(j, end, false, mask, weights);
#endif
}
