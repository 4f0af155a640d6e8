// Softmax along the middle axis of [outer][extent][inner]. Lanes are along inner with TUFF_WIDTH elements each. Each
// walks down the axis with a running maximum and sum, then once more to write results. Where columns are few, row r of
// the axis belongs to segment r % segments, and P holds the maxima and sums of each segment:
//
//# TUFF_MODE : 0..2 : which walks:
//   0   both walks, with one segment
//   1   first walk: writes P[2 PARTS t] …, the maxima and then the sums
//   2   second walk, after merging the P of all segments of its columns
//
//   Lane t has block t % columns of segment (t / columns) % segments of outer index t / columns / segments.
//
//# TUFF_WIDTH : 1|4|8 : elements of a lane; 4 or 8: TUFF_ELEMENTS, a divisor of inner; 1: inner has no such divisor
//# TUFF_UNROLL : 4|8|16 : rows of a step. Serial additions of a lane: extent / segments / UNROLL, and `segments`
//# TUFF_HELD : 0|1 : 1: TUFF_UNROLL >= extent with TUFF_MODE 0: elements stay in registers and are read once
//# TUFF_RUN : 0.. : items that a lane processes one after another; 0: push.run says
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint lanes;  // outer * segments * columns
  uint extent;
  uint columns;  // inner / TUFF_WIDTH
  uint segments, run;
  float scale;  // from here on: see input.glsl
  uint mask_first;
  uint mask_rows;
  uint mask_repeat;
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
TUFF_BLOCKS_WRITE(1, Y, TUFF_TYPE)
TUFF_READ_WRITE(2, P, TUFF_VALUE4, 4 * TUFF_VALUE_BYTES)

#define TUFF_MASK_SLOT 3
#include "kernels/softmax/input.glsl"

// Row k of a lane; `mask` is added to an index of the input to get that of the mask.
#if TUFF_WIDTH == 1
#define LOAD_ROW(k) tuff_block(z_load(first + (k) * stride, mask + first + (k) * stride))
#define STORE_ROW(k, value) Y_store(first + (k) * stride, (value).part[0].x)
#else
#define LOAD_ROW(k) z_load_block(first + (k) * stride, mask + first + (k) * stride)
#define STORE_ROW(k, value) Y_store_block(first + (k) * stride, value)
#endif

// As in weights.glsl, for the columns of a block.
TUFF_VALUE4 larger(TUFF_VALUE4 a, TUFF_VALUE4 b) { return mix(a, b, greaterThan(b, a)); }
TuffBlock larger(TuffBlock a, TuffBlock b) {
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) a.part[p] = larger(a.part[p], b.part[p]);
  return a;
}
TUFF_VALUE4 finite_shift(TUFF_VALUE4 maximum) {
  return mix(maximum, TUFF_VALUE4(0.0), equal(maximum, TUFF_VALUE4(TUFF_LOWEST)));
}

TuffBlock weighted(TuffBlock x, Weights weights[TUFF_PARTS]) {
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) x.part[p] = weighted(x.part[p], weights[p]);
  return x;
}

// Accumulates one step. Absent rows count as -infinity.
void gather_step(TuffBlock x[TUFF_UNROLL], inout TuffBlock maximum, inout TuffBlock total) {
  TuffBlock next = maximum;
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) next = larger(next, x[u]);
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    TUFF_VALUE4 shift = finite_shift(next.part[p]);
    TUFF_VALUE4 s = TUFF_VALUE4(0.0);
    [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) s += tuff_exp(x[u].part[p] - shift);
    total.part[p] = next.part[p] == maximum.part[p] ? total.part[p] + s
                                                    : total.part[p] * tuff_exp(maximum.part[p] - shift) + s;
  }
  maximum = next;
}

TuffBlock load_partial(uint place) {
  TuffBlock block;
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) block.part[p] = TUFF_AT(P, place + p);
  return block;
}
void store_partial(uint place, TuffBlock block) {
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) TUFF_AT(P, place + p) = block.part[p];
}

void main() {
  for (uint repeat = 0; repeat < RUN; ++repeat) {
    uint t = (tuff_group() * RUN + repeat) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (t >= push.lanes) return;
    uint slice = t / push.columns;
    uint column = t - slice * push.columns;
    uint outer = slice / push.segments;
    uint segment = slice - outer * push.segments;
    uint rows = (push.extent - segment + push.segments - 1) / push.segments;
    TUFF_INDEX first = (TUFF_INDEX(outer) * push.extent + segment) * push.columns + column;
    TUFF_INDEX stride = TUFF_INDEX(push.segments) * push.columns;
#if TUFF_MASK
    TUFF_INDEX mask = (TUFF_INDEX(mask_row(outer)) - TUFF_INDEX(outer)) * push.extent * push.columns;
#else
    const TUFF_INDEX mask = 0;
#endif

    TuffBlock x[TUFF_UNROLL];
    TuffBlock maximum = tuff_block(TUFF_LOWEST);
    TuffBlock total = tuff_block(0.0);
#if TUFF_MODE != 2
    forget_seen();
    uint r = 0;
#if !TUFF_HELD
    for (; r + TUFF_UNROLL <= rows; r += TUFF_UNROLL) {
      [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) x[u] = LOAD_ROW(r + u);
      gather_step(x, maximum, total);
    }
    if (r < rows)
#endif
    {
      [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
        x[u] = tuff_block(TUFF_LOWEST);
        if (r + u < rows) x[u] = LOAD_ROW(r + u);
      }
      gather_step(x, maximum, total);
    }
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
      total.part[p] = sum_of_seen(total.part[p], maximum.part[p], mask_seen[p]);
    }
#else
    const uint pair = 2 * TUFF_PARTS;  // vec4s of a lane in P: maxima and sums
    uint place = pair * (outer * push.segments * push.columns + column);
    for (uint s = 0; s < push.segments; ++s) maximum = larger(maximum, load_partial(place + pair * s * push.columns));
    for (uint s = 0; s < push.segments; ++s) {
      TuffBlock highest = load_partial(place + pair * s * push.columns);
      TuffBlock partial = load_partial(place + pair * s * push.columns + TUFF_PARTS);
      [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
        total.part[p] += partial.part[p] * weight_of_part(highest.part[p], maximum.part[p]);
      }
    }
#endif

#if TUFF_MODE == 1
    store_partial(2 * TUFF_PARTS * t, maximum);
    store_partial(2 * TUFF_PARTS * t + TUFF_PARTS, total);
#else
    Weights weights[TUFF_PARTS];
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) weights[p] = weights_of(maximum.part[p], total.part[p]);
#if TUFF_HELD
    [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
      if (u < rows) STORE_ROW(u, weighted(x[u], weights));
    }
#else
    uint k = 0;
    for (; k + 4 <= rows; k += 4) {
      TuffBlock y[4];
      [[unroll]] for (uint u = 0; u < 4; ++u) y[u] = LOAD_ROW(k + u);
      [[unroll]] for (uint u = 0; u < 4; ++u) STORE_ROW(k + u, weighted(y[u], weights));
    }
    for (; k < rows; ++k) STORE_ROW(k, weighted(LOAD_ROW(k), weights));
#endif
#endif
  }
}
