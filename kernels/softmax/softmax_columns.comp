// Softmax along the middle axis of [outer][extent][inner]: lanes lie along inner, TUFF_WIDTH elements each,
// and walk down the axis with a running maximum and sum, then once more to write. Where columns are few, row
// r of the axis belongs to segment r % segments, with the maxima and sums of each segment in P:
//
//   TUFF_MODE 0   both walks, one segment
//   TUFF_MODE 1   first walk: P[2 t] the maxima, P[2 t + 1] the sums
//   TUFF_MODE 2   second walk, after gathering the P of all segments of its columns
//
//   lane t: block t % columns of segment (t / columns) % segments of outer t / columns / segments.
//
//   TUFF_WIDTH    4: inner is a multiple of 4; 1: it is not
//   TUFF_UNROLL   rows of a step. Serial additions of a lane: extent / segments / UNROLL, and `segments`
//   TUFF_HELD     1: TUFF_UNROLL >= extent with TUFF_MODE 0: elements stay in registers, read once
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint REPEAT = 1;  // of each lane, one after another

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint lanes;  // outer * segments * columns
  uint extent;
  uint columns;  // inner / TUFF_WIDTH
  uint segments;
} push;

TUFF_BLOCKS_READ(0, X)
TUFF_BLOCKS_WRITE(1, Y)
TUFF_READ_WRITE(2, P, vec4, 16)

#if TUFF_WIDTH == 4
#define LOAD_ROW(k) TUFF_LOAD4(X, first + (k) * stride)
#define STORE_ROW(k, value) TUFF_STORE4(Y, first + (k) * stride, value)
#else
#define LOAD_ROW(k) vec4(TUFF_AT(X_scalar, first + (k) * stride))
#define STORE_ROW(k, value) TUFF_AT(Y_scalar, first + (k) * stride) = (value).x
#endif

// As in lanes.glsl, for four columns.
vec4 larger(vec4 a, vec4 b) { return mix(a, b, greaterThan(b, a)); }
vec4 finite_shift(vec4 maximum) { return mix(maximum, vec4(0.0), equal(maximum, vec4(-TUFF_INFINITY))); }

// One step: rows that are absent count as -infinity.
void gather_step(vec4 x[TUFF_UNROLL], inout vec4 maximum, inout vec4 total) {
  vec4 next = maximum;
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) next = larger(next, x[u]);
  vec4 shift = finite_shift(next);
  vec4 s = vec4(0.0);
  [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) s += tuff_exp(x[u] - shift);
  total = next == maximum ? total + s : total * tuff_exp(maximum - shift) + s;
  maximum = next;
}

void main() {
  for (uint repeat = 0; repeat < REPEAT; ++repeat) {
    uint t = (tuff_group() * REPEAT + repeat) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (t >= push.lanes) return;
    uint slice = t / push.columns;
    uint column = t - slice * push.columns;
    uint outer = slice / push.segments;
    uint segment = slice - outer * push.segments;
    uint rows = (push.extent - segment + push.segments - 1) / push.segments;
    TUFF_INDEX first = (TUFF_INDEX(outer) * push.extent + segment) * push.columns + column;
    TUFF_INDEX stride = TUFF_INDEX(push.segments) * push.columns;

    vec4 x[TUFF_UNROLL];
    vec4 maximum = vec4(-TUFF_INFINITY);
    vec4 total = vec4(0.0);
#if TUFF_MODE != 2
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
        x[u] = vec4(-TUFF_INFINITY);
        if (r + u < rows) x[u] = LOAD_ROW(r + u);
      }
      gather_step(x, maximum, total);
    }
#else
    uint place = 2 * (outer * push.segments * push.columns + column);
    for (uint s = 0; s < push.segments; ++s) maximum = larger(maximum, TUFF_AT(P, place + 2 * s * push.columns));
    for (uint s = 0; s < push.segments; ++s) {
      vec4 partial = TUFF_AT(P, place + 2 * s * push.columns);
      total += TUFF_AT(P, place + 2 * s * push.columns + 1) * tuff_exp(partial - finite_shift(maximum));
    }
#endif

#if TUFF_MODE == 1
    TUFF_AT(P, 2 * t) = maximum;
    TUFF_AT(P, 2 * t + 1) = total;
#else
    vec4 shift = finite_shift(maximum);
    // No element above -infinity: NaN, as 0 / 0 would be.
    vec4 scale = mix(vec4(TUFF_NAN), tuff_divide_moderate(vec4(1.0), total), greaterThan(total, vec4(0.0)));
#if TUFF_HELD
    [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
      if (u < rows) STORE_ROW(u, tuff_exp(x[u] - shift) * scale);
    }
#else
    uint k = 0;
    for (; k + 4 <= rows; k += 4) {
      vec4 y[4];
      [[unroll]] for (uint u = 0; u < 4; ++u) y[u] = LOAD_ROW(k + u);
      [[unroll]] for (uint u = 0; u < 4; ++u) STORE_ROW(k + u, tuff_exp(y[u] - shift) * scale);
    }
    for (; k < rows; ++k) STORE_ROW(k, tuff_exp(LOAD_ROW(k) - shift) * scale);
#endif
#endif
  }
}
