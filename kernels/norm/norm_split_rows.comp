// Normalises rows that are too long for registers. The first pass computes the mean and the sum of squared deviations
// from it; the second reads the row again and writes results. A row may be cut into segments for different workgroups;
// P then holds (mean, squares, factor) of each:
//
//# TUFF_MODE : 0..2 : which passes:
//   0   both passes, with one segment per row
//   1   first pass: writes P[row * total_segments + s] for segment s
//   2   second pass: merges all P of the row, then writes the results of segment s
//# TUFF_SUM : 0|1 : 1, with TUFF_MODE 1: what is normalised (X + R) is stored in Y
//
// TUFF_LANES invocations, the whole workgroup, share a segment. In each step lane l reads blocks l, l + LANES, … of
// W = TUFF_ELEMENTS elements (16 bytes), TUFF_UNROLL of them. It computes the step's mean' and its squares' about that
// mean, and merges them into its own (Chan, Golub and LeVeque 1979):
//   squares += squares' + (mean' - mean)^2 n n' / (n + n'),   mean += (mean' - mean) n' / (n + n')
// A large mean thus costs the squares no digits. A lane merges segment / (W LANES UNROLL) times in sequence, at most
// 256 times.
//
//# TUFF_UNROLL : 2|4 : blocks that a lane reads in a step
//# TUFF_PEEL : 0|1 : 1: extent is not a multiple of W, or TUFF_CHANNEL is 2: elements are read one by one
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(6)
  uint rows;
  uint extent;          // elements of a row that this dispatch covers
  uint segments;        // of a row in this dispatch
  uint segment;         // elements of a segment, a multiple of W; the last has the rest
  uint total_segments;  // of the whole row
  uint last;            // elements of the whole row's last segment
  float total;          // elements of the whole row
  uint begin;           // elements of the whole row before those of this dispatch
  uint first_row;       // the first row of this dispatch, modulo groups
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
TUFF_READ_WRITE(5, P, TUFF_VALUE4, 4 * TUFF_VALUE_BYTES)

#include "kernels/common/lanes.glsl"
#include "kernels/norm/norm.glsl"

#if TUFF_MODE == 1 && TUFF_SUM
// The sums that this lane stored in Y, read back because Y may have overwritten the input or the residual. Not declared
// readonly: a driver could then move these loads before the stores through the other view.
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

// Loads a step that starts at item i of this lane. Items from `end` on are absent and read as 0.
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

// Mean of `count` elements, and the sum of their squared deviations from it.
struct Moments {
  TUFF_VALUE count, mean, squares;
};

// Loads the same elements as an earlier gather_step() did.
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

// count * delta^2: what two means that are delta apart add to the squares. 0 if count is, even where delta^2 overflows.
TUFF_VALUE apart(TUFF_VALUE delta, TUFF_VALUE count) {
  precise TUFF_VALUE once = count * delta;
  precise TUFF_VALUE twice = once * delta;
  return twice;
}

// Adds the elements of a step to m.
void gather(uint i, uint end, bool whole, TuffBlock x[TUFF_UNROLL], inout Moments m) {
  TUFF_VALUE count = 0.0;
  TUFF_VALUE4 s = TUFF_VALUE4(0.0), squares = TUFF_VALUE4(0.0);
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
    count += TUFF_PRESENT(u, 0) ? TUFF_VALUE(TUFF_ELEMENTS) : 0.0;
#endif
  }
#if TUFF_CENTRED
  TUFF_VALUE mean = sum4(s) / max(count, 1.0);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
      TUFF_VALUE4 d = x[u].part[p] - mean;
#if TUFF_PEEL
      [[unroll]] for (uint c = 0; c < 4; ++c) d[c] = TUFF_PRESENT(u, 4 * p + c) ? d[c] : 0.0;
#else
      d = TUFF_PRESENT(u, 0) ? d : TUFF_VALUE4(0.0);
#endif
      squares += d * d;
    }
  }
  TUFF_VALUE share = count / max(m.count + count, 1.0);
  TUFF_VALUE delta = mean - m.mean;
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

void gather_step_again(uint i, uint end, bool whole, TUFF_VALUE factor, inout Moments m) {
  TuffBlock x[TUFF_UNROLL];
  load_step_again(i, end, whole, x);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) x[u] = scaled(x[u], factor);
  gather(i, end, whole, x, m);
}

TUFF_VALUE variance_of(Moments m) { return tuff_divide(TUFF_VALUE4(m.squares), TUFF_VALUE4(m.count)).x; }

#if TUFF_MODE == 2
TUFF_VALUE least_of(TUFF_VALUE a, TUFF_VALUE b) { return b < a ? b : a; }
TUFF_TREE(tree_least, least_of)
#endif

// Merges the moments of all lanes, which stand for `count` elements together. Every lane gets the same result.
Moments over_lanes(Moments m, TUFF_VALUE count) {
  Moments all;
  all.count = count;
  all.mean = 0.0;
#if TUFF_CENTRED
  all.mean = tuff_divide_moderate(TUFF_VALUE4(tree_sum(m.count * m.mean)), TUFF_VALUE4(count)).x;
#endif
  TUFF_VALUE delta = m.mean - all.mean;
  all.squares = tree_sum(m.squares + apart(delta, m.count));
  return all;
}

void write_step(uint i, uint end, bool whole, uint row_begin, uint channel, TUFF_VALUE factor, Normal normal) {
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
  TUFF_VALUE used = 1.0;  // the factor
#if TUFF_MODE != 2
  uint i = begin + lane;
  for (uint step = 0; step < whole_steps; ++step, i += TUFF_ITEMS) gather_step(i, end, true, m);
  if (rest) gather_step(i, end, false, m);
  m = over_lanes(m, TUFF_VALUE(elements));
  // A loop rather than a branch: Mesa 22.3 executes both sides of a branch, but skips a loop that no lane enters.
  [[dont_unroll]] for (TUFF_VALUE factor = factor_of(m.mean, variance_of(m)); TUFF_ANY_ROW(factor != used);) {
    used = factor;
    m = Moments(0.0, 0.0, 0.0);
    uint k = begin + lane;
    for (uint step = 0; step < whole_steps; ++step, k += TUFF_ITEMS) gather_step_again(k, end, true, factor, m);
    if (rest) gather_step_again(k, end, false, factor, m);
    m = over_lanes(m, TUFF_VALUE(elements));
  }
#else
  // Merges with the smallest factor of all segments, or with a smaller one if the merged variance overflows.
  uint first = row * push.total_segments;
  TUFF_VALUE least = TUFF_GROW;
  for (uint s = lane; s < push.total_segments; s += TUFF_LANES) least = min(least, TUFF_AT(P, first + s).z);
  least = tree_least(least);
  [[dont_unroll]] for (bool again = true; TUFF_ANY_ROW(again);) {
    used = least;
    m = Moments(0.0, 0.0, 0.0);
    for (uint s = lane; s < push.total_segments; s += TUFF_LANES) {
      TUFF_VALUE4 partial = TUFF_AT(P, first + s);
      TUFF_VALUE change = least / partial.z;  // a ratio of powers of two; 2^-184 becomes 0
      TUFF_VALUE count = TUFF_VALUE(s + 1 < push.total_segments ? push.segment : push.last);
      TUFF_VALUE share = count / (m.count + count);
      precise TUFF_VALUE mean = partial.x * change;
      TUFF_VALUE delta = mean - m.mean;
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
    TUFF_AT(P, row * push.total_segments + segment) = TUFF_VALUE4(m.mean, m.squares, used, 0.0);
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
