// Cross-entropy of rows of logits, and its gradient. The first pass computes a running maximum and sum of exponentials, the
// second, for the gradient, reads the row again. A row may be cut into segments for different workgroups; P then holds what
// the first pass found of each.
//
//# TUFF_MODE : 0..2 : which passes: 0: both, with one segment per row; 1: the first, into P; 2: the second, from all P of the row
//# TUFF_TYPE : types : of logits and gradient, as in tuff.h
//# TUFF_LABEL_BYTES : 4|8 : bytes of a label
//# TUFF_IGNORES : 0|1 : 1: rows with the label push.ignored do not count
//# TUFF_SMOOTHING : 0..2 : 0: the label has all of the weight; 1: all classes share push.smoothing of it; 2: all of it
//# TUFF_LOSS : 0|1 : 1: Loss is written
//# TUFF_GRADIENT : 0|1 : 1: Y is written
//# TUFF_FACTOR : 0|1 : 1: gradients are multiplied by Factor
//# TUFF_ROWS_GIVEN : 0|1 : 1: and by LossGradient, of each row
//
// TUFF_LANES invocations share a segment, the whole workgroup if TUFF_MODE is not 0. In each step lane l reads blocks l,
// l + LANES, … of W = TUFF_ELEMENTS elements, TUFF_UNROLL of them. With TUFF_PEEL it reads single elements instead, which are
// push.inner apart: rows next to each other are then lanes next to each other.
//# TUFF_UNROLL : 2|4 : blocks that a lane reads in a step
//# TUFF_PEEL : 0|1 : 1: elements are read one by one: there are parts of blocks, or inner is not 1
//
// The gradient may take the place of the logits: each element is read, in both passes, by the lane that writes it.
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"
#include "kernels/softmax/softmax.def"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(7)
  uint rows;
  uint extent;    // classes
  uint inner;     // rows that lie side by side
  uint segments;  // of a row
  uint segment;   // classes of a segment, a multiple of W; the last has the rest
  float scale;    // of gradients
  float smoothing;
  uint ignored[2];  // low and high word
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
#if TUFF_LABEL_BYTES == 8
TUFF_READ(1, Labels, uvec2, 8)  // low and high word
#else
TUFF_READ(1, Labels, uint, 4)
#endif
TUFF_READ(2, Factor, float, 4)
TUFF_READ(3, LossGradient, float, 4)
TUFF_WRITE(4, Loss, float, 4)
TUFF_BLOCKS_WRITE(5, Y, TUFF_TYPE)
TUFF_READ_WRITE(6, P, vec4, 16)  // of a segment: maximum, sum of e^(x - maximum), sum of x - maximum, the label's x

#include "kernels/common/lanes.glsl"

float larger(float a, float b) { return b > a ? b : a; }
TUFF_TREE(tree_maximum, larger)

bool is_finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }
// What is subtracted: the maximum, or 0 while all elements are -infinity.
float shift_of(float maximum) { return maximum == TUFF_LOWEST ? 0.0 : maximum; }

// What a lane has found of its segment. NaN of an element is lost in the maximum, and stays in the sum.
struct Found {
  float maximum;
  vec4 sum, above, picked;
};

struct Row {
  TUFF_INDEX first;  // element
  uint label;        // none: beyond the classes
  float pivot;       // of the lane's sum for the mean: its first element, so that the sum stays small
};

#if TUFF_PEEL
#define TUFF_ITEMS (TUFF_ELEMENTS * TUFF_UNROLL * TUFF_LANES)  // elements of a step
#define TUFF_CLASS(i, u, p, c) ((i) + (TUFF_ELEMENTS * (u) + 4 * (p) + (c)) * TUFF_LANES)
#define TUFF_CLASSES(i, u, p) (uvec4(TUFF_CLASS(i, u, p, 0)) + uvec4(0, 1, 2, 3) * TUFF_LANES)
#define TUFF_PLACE(row, class) (row.first + TUFF_INDEX(class) * push.inner)
#else
#define TUFF_ITEMS (TUFF_UNROLL * TUFF_LANES)  // blocks of a step
#define TUFF_BLOCK(i, u) ((i) + (u) * TUFF_LANES)
#define TUFF_CLASSES(i, u, p) (uvec4(TUFF_ELEMENTS * TUFF_BLOCK(i, u) + 4 * (p)) + uvec4(0, 1, 2, 3))
#define TUFF_PLACE(row, block) (row.first / TUFF_ELEMENTS + (block))
#endif

// Loads a step that starts at item i of this lane. Items from `end` on are absent, and -infinity.
void load_step(Row row, uint i, uint end, bool whole, out TuffBlock x[TUFF_UNROLL]) {
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    x[u] = tuff_block(TUFF_LOWEST);
#if TUFF_PEEL
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      const uint at = TUFF_CLASS(i, u, 0, c);
      if (whole || at < end) x[u].part[c / 4][c % 4] = X_load(TUFF_PLACE(row, at));
    }
#else
    if (whole || TUFF_BLOCK(i, u) < end) x[u] = X_load_block(TUFF_PLACE(row, TUFF_BLOCK(i, u)));
#endif
  }
}

void gather_step(Row row, uint i, uint end, bool whole, inout Found f) {
  TuffBlock x[TUFF_UNROLL];
  load_step(row, i, end, whole, x);
  vec4 m = vec4(TUFF_LOWEST);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) m = mix(m, x[u].part[p], greaterThan(x[u].part[p], m));
  }
  const float next = larger(f.maximum, larger(larger(m.x, m.y), larger(m.z, m.w)));
  const float shift = shift_of(next);
  vec4 s = vec4(0.0);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
      const uvec4 classes = TUFF_CLASSES(i, u, p);
      s += tuff_exp(x[u].part[p] - shift);
      f.picked += mix(vec4(0.0), x[u].part[p], equal(classes, uvec4(row.label)));
#if TUFF_SMOOTHING
#if TUFF_PEEL
      const bvec4 present = lessThan(classes, uvec4(end));
#else
      const bvec4 present = bvec4(whole || TUFF_BLOCK(i, u) < end);
#endif
      f.above += mix(vec4(0.0), x[u].part[p] - row.pivot, present);
#endif
    }
  }
  // Most steps leave the maximum unchanged, and then nothing is rescaled.
  f.sum = next == f.maximum ? f.sum + s : f.sum * tuff_exp(vec4(f.maximum - shift)) + s;
  f.maximum = next;
}

// The weight of a sum that was computed with `maximum` when it is merged under the maximum `of_all`.
float weight_of(float maximum, float of_all) {
  return maximum == of_all ? 1.0 : tuff_exp(vec4(maximum - of_all)).x;
}

#if TUFF_GRADIENT && TUFF_MODE != 1
struct Slope {
  float shift, inverse, factor;
  float share, rest;  // of the weight: that of every class, and what the label has beside it
  bool counts;
};

void write_step(Row row, uint i, uint end, bool whole, Slope slope) {
  TuffBlock x[TUFF_UNROLL];
  load_step(row, i, end, whole, x);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
      vec4 y = tuff_exp(x[u].part[p] - slope.shift) * slope.inverse - slope.share;
      y -= mix(vec4(0.0), vec4(slope.rest), equal(TUFF_CLASSES(i, u, p), uvec4(row.label)));
      x[u].part[p] = mix(vec4(0.0), y * slope.factor, bvec4(slope.counts));
    }
#if TUFF_PEEL
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      const uint at = TUFF_CLASS(i, u, 0, c);
      if (whole || at < end) Y_store(TUFF_PLACE(row, at), x[u].part[c / 4][c % 4]);
    }
#else
    if (whole || TUFF_BLOCK(i, u) < end) Y_store_block(TUFF_PLACE(row, TUFF_BLOCK(i, u)), x[u]);
#endif
  }
}
#endif

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
  Row row;
#if TUFF_PEEL
  const uint outer = number / push.inner;
  row.first = TUFF_INDEX(outer) * push.extent * push.inner + (number - outer * push.inner);
  const uint begin = start, end = stop;
#else
  row.first = TUFF_INDEX(number) * push.extent;
  const uint begin = start / TUFF_ELEMENTS, end = stop / TUFF_ELEMENTS;
#endif
#if TUFF_LABEL_BYTES == 8
  const uvec2 label = TUFF_AT(Labels, number);
  // Negative numbers, and those beyond 32 bits, name no class.
  row.label = label.y == 0 ? label.x : 0xffffffffu;
#if TUFF_IGNORES
  const bool counts = label.x != push.ignored[0] || label.y != push.ignored[1];
#endif
#else
  row.label = TUFF_AT(Labels, number);
#if TUFF_IGNORES
  const bool counts = row.label != push.ignored[0];
#endif
#endif
#if !TUFF_IGNORES
  const bool counts = true;
#endif
#if TUFF_MODE == 1
  // Absent items of the last step have the numbers of the next segment's classes, and do not count as these.
  row.label = row.label < stop ? row.label : 0xffffffffu;
#endif
  const uint whole_steps = (end - begin) / TUFF_ITEMS;
  const bool rest = whole_steps * TUFF_ITEMS < end - begin;
  row.pivot = 0.0;
#if TUFF_SMOOTHING && TUFF_MODE != 2
  if (begin + lane < end) {
#if TUFF_PEEL
    row.pivot = X_load(TUFF_PLACE(row, begin + lane));
#else
    row.pivot = X_load_block(TUFF_PLACE(row, begin + lane)).part[0].x;
#endif
    row.pivot = is_finite(row.pivot) ? row.pivot : 0.0;
  }
#endif

#if TUFF_MODE != 2
  Found f = Found(TUFF_LOWEST, vec4(0.0), vec4(0.0), vec4(0.0));
  uint i = begin + lane;
  for (uint step = 0; step < whole_steps; ++step, i += TUFF_ITEMS) gather_step(row, i, end, true, f);
  if (rest) gather_step(row, i, end, false, f);
  const float maximum = tree_maximum(f.maximum);
  const float total = tree_sum(sum4(f.sum) * weight_of(f.maximum, maximum));
#if TUFF_SMOOTHING
  // From sums about the lanes' pivots to those about the maximum.
  uint items = end - begin > lane ? (end - begin - lane - 1) / TUFF_LANES + 1 : 0;
#if !TUFF_PEEL
  items *= TUFF_ELEMENTS;
#endif
  const float above = tree_sum(sum4(f.above) + float(items) * (row.pivot - shift_of(maximum)));
#else
  const float above = 0.0;
#endif
  const float picked = tree_sum(sum4(f.picked));
#else
  float maximum = TUFF_LOWEST, total = 0.0, above = 0.0, picked = 0.0;
  const uint first = number * push.segments;
  for (uint s = lane; s < push.segments; s += TUFF_LANES) maximum = larger(maximum, TUFF_AT(P, first + s).x);
  maximum = tree_maximum(maximum);
  for (uint s = lane; s < push.segments; s += TUFF_LANES) {
    const vec4 part = TUFF_AT(P, first + s);
    total += part.y * weight_of(part.x, maximum);
    above += part.z + float(min(push.segment, push.extent - s * push.segment)) * (shift_of(part.x) - shift_of(maximum));
    picked += part.w;
  }
  total = tree_sum(total);
  above = tree_sum(above);
  picked = tree_sum(picked);
#endif

#if TUFF_MODE == 1
  if (live && lane == 0) TUFF_AT(P, piece) = vec4(maximum, total, above, picked);
#else
  const bool none = maximum == TUFF_LOWEST;  // all logits are -infinity
  const float shift = shift_of(maximum);
  const bool wrong = none || row.label >= push.extent;
#if TUFF_LOSS
  float loss = tuff_log(vec4(total)).x;
  loss = tuff_isnan(total) ? total : loss;
#if TUFF_SMOOTHING
  loss -= push.smoothing * tuff_divide(vec4(above), vec4(float(push.extent))).x;
#endif
#if TUFF_SMOOTHING != 2
  loss -= (1.0 - push.smoothing) * (picked - shift);
#endif
  loss = wrong ? TUFF_NAN : loss;
  if (live && lane == 0 && start == 0) TUFF_AT(Loss, number) = counts ? loss : 0.0;
#endif
#if TUFF_GRADIENT
  Slope slope;
  slope.shift = shift;
  slope.inverse = tuff_divide_moderate(vec4(1.0), vec4(total)).x;
  slope.inverse = tuff_isnan(total) ? total : slope.inverse;
  slope.factor = push.scale;
#if TUFF_FACTOR
  slope.factor *= TUFF_AT(Factor, 0);
#endif
#if TUFF_ROWS_GIVEN
  slope.factor *= TUFF_AT(LossGradient, number);
#endif
  slope.factor = wrong ? TUFF_NAN : slope.factor;
#if TUFF_SMOOTHING
  slope.share = tuff_divide(vec4(push.smoothing), vec4(float(push.extent))).x;
#else
  slope.share = 0.0;
#endif
  slope.rest = 1.0 - push.smoothing;
  slope.counts = counts;
  if (!live) return;
  uint j = begin + lane;
  for (uint step = 0; step < whole_steps; ++step, j += TUFF_ITEMS) write_step(row, j, end, true, slope);
  if (rest) write_step(row, j, end, false, slope);
#endif
#endif
}
