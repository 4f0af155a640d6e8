// Sums of h and h * n over segments of lines, for the gradients of normalisations: h is the output's gradient G, times the
// weight if there is one, and n the normalised input. T[line * segments + s] gets both for segment s. A line is a row or a
// group whose channels are single elements, or a channel of one image.
//
//# TUFF_TYPE : types : element type of the tensors, as in tuff.h
//# TUFF_WEIGHT_TYPE : types : type of the weight
//# TUFF_WEIGHT : 0|1 : 1: element j of a line is multiplied by weight j of those of the line
//
// TUFF_LANES invocations share a segment. In each step lane l reads blocks l, l + LANES, … of W = TUFF_ELEMENTS elements,
// TUFF_UNROLL of them, or with TUFF_PEEL single elements.
//# TUFF_UNROLL : 2|4 : blocks that a lane reads in a step
//# TUFF_PEEL : 0|1 : 1: lines are not a multiple of W elements: these are read one by one
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/norm/norm.def"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  uint lines;
  uint extent;    // elements of a line
  uint segments;  // of a line
  uint segment;   // elements of a segment, a multiple of W; the last has the rest
  uint first;     // the number of the first line
  uint each;      // lines of a set of statistics …
  uint sets;      // … and how many sets there are before they start again
  uint groups;    // lines after which the weights start again
  uint weights;   // weights of a line
  uint begin;     // elements of the line before those of this dispatch
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
TUFF_BLOCKS_READ(1, G, TUFF_TYPE)
#if TUFF_WEIGHT
TUFF_BLOCKS_READ(2, W, TUFF_WEIGHT_TYPE)
#endif
TUFF_READ(3, S, vec4, 16)
TUFF_WRITE(4, T, vec2, 8)

#include "kernels/common/lanes.glsl"

#if TUFF_PEEL
#define TUFF_ITEMS (TUFF_ELEMENTS * TUFF_UNROLL * TUFF_LANES)  // elements of a step
#define TUFF_PLACE(u, c) ((i) + (TUFF_ELEMENTS * (u) + (c)) * TUFF_LANES)
#else
#define TUFF_ITEMS (TUFF_UNROLL * TUFF_LANES)  // blocks of a step
#define TUFF_PLACE(u) ((i) + (u) * TUFF_LANES)
#endif

struct Line {
  TUFF_INDEX first;  // its first item …
  TUFF_INDEX weight; // … and that of its weights
  vec4 statistics;
};

// A lane's sums of h and of h * n.
struct Sums {
  vec4 level, along;
};

// Adds a step that starts at item i. Items from `end` on are absent, and have gradients of 0.
void gather_step(Line line, uint i, uint end, bool whole, inout Sums sums) {
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    TuffBlock x = tuff_block(0.0), h = tuff_block(0.0);
#if TUFF_PEEL
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      if (whole || TUFF_PLACE(u, c) < end) {
        x.part[c / 4][c % 4] = X_load(line.first + TUFF_PLACE(u, c));
        float g = G_load(line.first + TUFF_PLACE(u, c));
#if TUFF_WEIGHT
        g = g * W_load(line.weight + TUFF_PLACE(u, c));
#endif
        h.part[c / 4][c % 4] = g;
      }
    }
#else
    if (whole || TUFF_PLACE(u) < end) {
      x = X_load_block(line.first + TUFF_PLACE(u));
      h = G_load_block(line.first + TUFF_PLACE(u));
#if TUFF_WEIGHT
      const TuffBlock w = W_load_block(line.weight + TUFF_PLACE(u));
      [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) h.part[p] *= w.part[p];
#endif
    }
#endif
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
      const vec4 n = (x.part[p] * line.statistics.z - line.statistics.x) * line.statistics.y;
      sums.level += h.part[p];
      sums.along += h.part[p] * n;
    }
  }
}

void main() {
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID, lane = thread % TUFF_LANES;
  uint piece = tuff_group() * (gl_WorkGroupSize.x / TUFF_LANES) + thread / TUFF_LANES;
  const bool live = piece < push.lines * push.segments;
  piece = live ? piece : 0;  // every lane takes part in the shuffles
  const uint number = piece / push.segments;
  const uint start = (piece - number * push.segments) * push.segment;
  const uint stop = start + min(push.segment, push.extent - start);
  Line line;
  line.statistics = TUFF_AT(S, (push.first + number) / push.each % push.sets);
  const TUFF_INDEX first = TUFF_INDEX(number) * push.extent;
  const TUFF_INDEX weight = TUFF_INDEX((push.first + number) % push.groups) * push.weights + push.begin;
#if TUFF_PEEL
  line.first = first, line.weight = weight;
  const uint begin = start, end = stop;
#else
  line.first = first / TUFF_ELEMENTS, line.weight = weight / TUFF_ELEMENTS;
  const uint begin = start / TUFF_ELEMENTS, end = stop / TUFF_ELEMENTS;
#endif
  const uint whole_steps = (end - begin) / TUFF_ITEMS;
  // Sums of 32 steps are added to those before, so that chains of additions stay short.
  Sums all = Sums(vec4(0.0), vec4(0.0)), part = all;
  uint i = begin + lane;
  for (uint step = 0; step < whole_steps; ++step, i += TUFF_ITEMS) {
    gather_step(line, i, end, true, part);
    if ((step & 31u) == 31u) {
      all = Sums(all.level + part.level, all.along + part.along);
      part = Sums(vec4(0.0), vec4(0.0));
    }
  }
  if (whole_steps * TUFF_ITEMS < end - begin) gather_step(line, i, end, false, part);
  const float level = tree_sum(sum4(all.level + part.level)), along = tree_sum(sum4(all.along + part.along));
  if (live && lane == 0) TUFF_AT(T, piece) = vec2(level, along);
}
