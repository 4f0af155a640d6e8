// Normalises rows too long for registers: mean and squares about it in a first pass, results in a second that reads the
// row again. Rows may be cut into segments for different groups, with (mean, squares, factor) of each in P:
//
//# TUFF_MODE : 0..2 : which pass:
//   0   both passes, one segment for each row
//   1   first pass: P[row * total_segments + s] of segment s
//   2   second pass: gathers the row's P, then writes segment s
//# TUFF_SUM : 0|1 : 1, with TUFF_MODE 1: what is normalised is stored in Y
//
// LANES invocations share a segment; in a step lane l takes blocks l, l + LANES, … of W = TUFF_ELEMENTS elements (16
// bytes), TUFF_UNROLL of them. A step's mean and squares about its own mean are merged into the lane's as (Chan, Golub and
// LeVeque 1979)
//   squares += squares' + (mean' - mean)^2 n n' / (n + n'),   mean += (mean' - mean) n' / (n + n')
// so that a large mean costs the squares no digits. Serial merges of a lane: segment / (W LANES UNROLL), at most 256.
//
// TUFF_LANES is the workgroup here.
//# TUFF_UNROLL : 2|4 : blocks of a lane's step
//# TUFF_PEEL : 0|1 : 1: extent is not a multiple of W, or TUFF_CHANNEL is 2: elements one by one
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(6)
  uint rows;
  uint extent;          // elements of a row, here
  uint segments;        // of a row, here
  uint segment;         // elements of each, a multiple of W; the last has what is left
  uint total_segments;  // of the whole row
  uint last;            // elements of its last segment
  float total;          // elements of the whole row
  uint begin;           // of them, those before what is here
  uint first_row;       // modulo groups
  float epsilon;
  uint inner;
  uint channels;
  uint groups;
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
#if TUFF_RESIDUAL
TUFF_BLOCKS_READ(1, R, TUFF_TYPE)
#endif
TUFF_BLOCKS_WRITE(4, Y, TUFF_TYPE)
TUFF_READ_WRITE(5, P, vec4, 16)

#include "kernels/common/lanes.glsl"
#include "kernels/norm/norm.glsl"

#if TUFF_MODE == 1 && TUFF_SUM
// What a lane has stored in Y, where input and residual may have been. Not read-only, for a driver may read what is earlier
// than what the other view of it stores.
TUFF_BLOCKS_READ_BACK(4, S, TUFF_TYPE)
#endif

#if TUFF_PEEL
#define TUFF_ITEMS (TUFF_ELEMENTS * TUFF_UNROLL * TUFF_LANES)  // elements of a step
#define TUFF_PLACE(u, c) (i + (TUFF_ELEMENTS * (u) + (c)) * TUFF_LANES)
#define TUFF_PRESENT(u, c) (whole || TUFF_PLACE(u, c) < end)
#else
#define TUFF_ITEMS (TUFF_UNROLL * TUFF_LANES)  // blocks of a step
#define TUFF_PLACE(u) (i + (u) * TUFF_LANES)
#define TUFF_PRESENT(u, c) (whole || TUFF_PLACE(u) < end)
#endif

// Step that starts at item i of this lane; items at `end` and beyond are absent: 0.
void load_step(uint i, uint end, bool whole, out TuffBlock x[TUFF_UNROLL]) {
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    x[u] = tuff_block(0.0);
#if TUFF_PEEL
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      if (TUFF_PRESENT(u, c)) x[u].part[c / 4][c % 4] = input_load(TUFF_PLACE(u, c));
    }
#else
    if (TUFF_PRESENT(u, 0)) x[u] = input_load_block(TUFF_PLACE(u));
#endif
  }
}

void store_step(uint i, uint end, bool whole, TuffBlock x[TUFF_UNROLL]) {
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
#if TUFF_PEEL
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      if (TUFF_PRESENT(u, c)) Y_store(TUFF_PLACE(u, c), x[u].part[c / 4][c % 4]);
    }
#else
    if (TUFF_PRESENT(u, 0)) Y_store_block(TUFF_PLACE(u), x[u]);
#endif
  }
}

// Means and squares of `count` elements.
struct Moments {
  float count, mean, squares;
};

// The same of what gather_step() went through before.
void load_step_again(uint i, uint end, bool whole, out TuffBlock x[TUFF_UNROLL]) {
#if TUFF_MODE == 1 && TUFF_SUM
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    x[u] = tuff_block(0.0);
#if TUFF_PEEL
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      if (TUFF_PRESENT(u, c)) x[u].part[c / 4][c % 4] = S_load(TUFF_PLACE(u, c));
    }
#else
    if (TUFF_PRESENT(u, 0)) x[u] = S_load_block(TUFF_PLACE(u));
#endif
  }
#else
  load_step(i, end, whole, x);
#endif
}

// What means that are so far apart add to the squares: nothing where there are none, whatever the square of delta is.
float apart(float delta, float count) {
  precise float once = count * delta;
  precise float twice = once * delta;
  return twice;
}

// Adds a step's numbers.
void gather(uint i, uint end, bool whole, TuffBlock x[TUFF_UNROLL], inout Moments m) {
  float count = 0.0;
  vec4 s = vec4(0.0), squares = vec4(0.0);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
#if TUFF_CENTRED
      s += x[u].part[p];
#else
      squares += x[u].part[p] * x[u].part[p];
#endif
    }
#if TUFF_PEEL
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) count += TUFF_PRESENT(u, c) ? 1.0 : 0.0;
#else
    count += TUFF_PRESENT(u, 0) ? float(TUFF_ELEMENTS) : 0.0;
#endif
  }
#if TUFF_CENTRED
  float mean = sum4(s) / max(count, 1.0);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
      vec4 d = x[u].part[p] - mean;
#if TUFF_PEEL
      [[unroll]] for (uint c = 0; c < 4; ++c) d[c] = TUFF_PRESENT(u, 4 * p + c) ? d[c] : 0.0;
#else
      d = TUFF_PRESENT(u, 0) ? d : vec4(0.0);
#endif
      squares += d * d;
    }
  }
  float share = count / max(m.count + count, 1.0);
  float delta = mean - m.mean;
  m.mean += delta * share;
  m.squares += sum4(squares) + apart(delta, m.count * share);
#else
  m.squares += sum4(squares);
#endif
  m.count += count;
}

void gather_step(uint i, uint end, bool whole, inout Moments m) {
  TuffBlock x[TUFF_UNROLL];
  load_step(i, end, whole, x);
#if TUFF_MODE == 1 && TUFF_SUM
  store_step(i, end, whole, x);
#endif
  gather(i, end, whole, x, m);
}

void gather_step_again(uint i, uint end, bool whole, float factor, inout Moments m) {
  TuffBlock x[TUFF_UNROLL];
  load_step_again(i, end, whole, x);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) x[u] = scaled(x[u], factor);
  gather(i, end, whole, x, m);
}

float variance_of(Moments m) { return tuff_divide(vec4(m.squares), vec4(m.count)).x; }

#if TUFF_MODE == 2
float least_of(float a, float b) { return b < a ? b : a; }
TUFF_TREE(tree_least, least_of)
#endif

// The moments of all lanes', or of what they stand for, of `count` elements together; the same for every lane.
Moments over_lanes(Moments m, float count) {
  Moments all;
  all.count = count;
  all.mean = 0.0;
#if TUFF_CENTRED
  all.mean = tuff_divide_moderate(vec4(tree_sum(m.count * m.mean)), vec4(count)).x;
#endif
  float delta = m.mean - all.mean;
  all.squares = tree_sum(m.squares + apart(delta, m.count));
  return all;
}

void write_step(uint i, uint end, bool whole, uint row_begin, uint channel, float factor, Normal normal) {
  TuffBlock x[TUFF_UNROLL];
  load_step(i, end, whole, x);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) x[u] = scaled(x[u], factor);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
#if TUFF_PEEL
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      if (TUFF_PRESENT(u, c)) {
        uint j = push.begin + (TUFF_PLACE(u, c) - row_begin);
        x[u].part[c / 4][c % 4] = result(x[u].part[c / 4][c % 4], channel, j, normal);
      }
    }
#else
    uint j = push.begin + (TUFF_PLACE(u) - row_begin) * TUFF_ELEMENTS;
    if (TUFF_PRESENT(u, 0)) x[u] = result_block(x[u], channel, j, normal);
#endif
  }
  store_step(i, end, whole, x);
}

void main() {
  uint lane = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  uint piece = tuff_group();
  if (piece >= push.rows * push.segments) return;
  uint row = piece / push.segments;
  uint segment = piece - row * push.segments;
  uint start = segment * push.segment;
  uint row_begin = row * push.extent;
  uint begin = row_begin + start;
  uint elements = min(push.segment, push.extent - start);
  uint end = begin + elements;
#if !TUFF_PEEL
  row_begin /= TUFF_ELEMENTS;
  begin /= TUFF_ELEMENTS;
  end /= TUFF_ELEMENTS;
#endif
  uint whole_steps = (end - begin) / TUFF_ITEMS;
  bool rest = whole_steps * TUFF_ITEMS < end - begin;

  Moments m = Moments(0.0, 0.0, 0.0);
  Normal normal;
  float used = 1.0;  // the factor
#if TUFF_MODE != 2
  uint i = begin + lane;
  for (uint step = 0; step < whole_steps; ++step, i += TUFF_ITEMS) gather_step(i, end, true, m);
  if (rest) gather_step(i, end, false, m);
  m = over_lanes(m, float(elements));
  // A loop, which a driver leaves when no lane enters it: Mesa 22.3 runs both sides of a branch.
  [[dont_unroll]] for (float factor = factor_of(m.mean, variance_of(m)); factor != used;) {
    used = factor;
    m = Moments(0.0, 0.0, 0.0);
    uint k = begin + lane;
    for (uint step = 0; step < whole_steps; ++step, k += TUFF_ITEMS) gather_step_again(k, end, true, factor, m);
    if (rest) gather_step_again(k, end, false, factor, m);
    m = over_lanes(m, float(elements));
  }
#else
  // By the smallest factor of all segments, or a smaller one still if what they make together asks for it.
  uint first = row * push.total_segments;
  float least = TUFF_GROW;
  for (uint s = lane; s < push.total_segments; s += TUFF_LANES) least = min(least, TUFF_AT(P, first + s).z);
  least = tree_least(least);
  [[dont_unroll]] for (bool again = true; again;) {
    used = least;
    m = Moments(0.0, 0.0, 0.0);
    for (uint s = lane; s < push.total_segments; s += TUFF_LANES) {
      vec4 partial = TUFF_AT(P, first + s);
      float change = least / partial.z;  // of powers of two; 0 for 2^-184
      float count = float(s + 1 < push.total_segments ? push.segment : push.last);
      float share = count / (m.count + count);
      precise float mean = partial.x * change;
      float delta = mean - m.mean;
      m.mean += delta * share;
      m.squares += squared(change, partial.y) + apart(delta, m.count * share);
      m.count += count;
    }
    m = over_lanes(m, push.total);
    again = least != TUFF_SHRINK && beyond(variance_of(m) + scaled_epsilon(least));
    least = least == TUFF_GROW ? 1.0 : TUFF_SHRINK;
  }
#endif

#if TUFF_MODE == 1
  if (lane == 0) {
    TUFF_AT(P, row * push.total_segments + segment) = vec4(m.mean, m.squares, used, 0.0);
  }
#else
  normal.mean = m.mean;
  normal.scale = reciprocal_deviation(variance_of(m), used);
  uint channel = first_channel(push.first_row + row);
  uint k = begin + lane;
  for (uint step = 0; step < whole_steps; ++step, k += TUFF_ITEMS) {
    write_step(k, end, true, row_begin, channel, used, normal);
  }
  if (rest) write_step(k, end, false, row_begin, channel, used, normal);
#endif
}
