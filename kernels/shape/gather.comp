// output[i] for i < n is the input's element that an index selects along one axis. If the index is out of range the
// result is zero and nothing is read. Elements are copied as units of 1 to 16 bytes.
//
//# TUFF_ROWS : 0|1 : 1: all units of a row use one index; 0: each unit has its own index
//# TUFF_REPEAT : 1|4 : 4, with TUFF_ROWS: a lane copies four units of a row, a quarter of the row apart
//# TUFF_UNROLL : 1|4 : units that a lane has in flight; divides RUN
//# TUFF_RUN : 0.. : units that a lane copies one after another; 0: push.run says
//# TUFF_INDEX_BYTES : 4|8 : bytes of an index
//# TUFF_NEGATIVE : 0|1 : 1: indices are signed, and negative ones count from the end of the axis, which has `named` elements, below 2^31
//# TUFF_SINGLE : 0|1 : 1, with TUFF_ROWS: rows are single units, and there is one outer index
// With TUFF_ROWS units are stored as [outer][indices][inner], sizes[0] = inner and sizes[1] = indices. With TUFF_REPEAT
// 4 four units count as one, and sizes[0] is a quarter of a row. Without TUFF_ROWS a unit's coordinates outside the
// axis follow from its place in the output.
//
// Each workgroup has RUN * (workgroup size) consecutive units; in step s lane l has unit s * (workgroup size) + l.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint RANK = 1;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint n, run;
  uint named, named_high;  // how many elements of the input's axis indices can select (TUFF_NAMES)
  uint stride;             // of the axis
#if TUFF_ROWS
  uint outer_stride;
  uint sizes[2], multipliers[2], shifts[2];
#else
  uint sizes[6], multipliers[6], shifts[2];
  int strides[7];  // 0 for the axis
#endif
} push;

#include "kernels/shape/units.glsl"
TUFF_READ(0, X, UNIT, TUFF_UNIT)
#if TUFF_INDEX_BYTES == 8
#define NAME uvec2  // low and high word
#else
#define NAME uint
#endif
TUFF_READ(1, I, NAME, TUFF_INDEX_BYTES)
TUFF_WRITE(2, Y, UNIT, TUFF_UNIT)

#include "kernels/common/coordinates.glsl"

// TUFF_NAMES: whether an index of 4 or 8 bytes selects an element. A negative one is as large as an unsigned number, and
// beyond every axis. If indices can select 2^32 elements the kernel is wide.
#if TUFF_WIDE
#define TUFF_NAMED ((uint64_t(push.named_high) << 32) | push.named)
#if TUFF_INDEX_BYTES == 8
#define POSITION(index) ((uint64_t(index.y) << 32) | index.x)
#else
#define POSITION(index) uint64_t(index)
#endif
#define TUFF_NAMES(index) (POSITION(index) < TUFF_NAMED)
#define OFFSET(c, stride) (uint64_t(c) * uint64_t(stride))
#else
#if TUFF_INDEX_BYTES == 8
#define POSITION(index) index.x
#define TUFF_NAMES(index) (index.y == 0u && index.x < push.named)
#else
#define POSITION(index) index
#define TUFF_NAMES(index) ((index) < push.named)
#endif
#define OFFSET(c, stride) ((c) * (stride))
#endif

#if TUFF_NEGATIVE
// Out of range stays out of range: a sum that is still negative is no number below 2^31, and neither is the sum of the low
// words of a number below -2^32.
NAME index_at(TUFF_INDEX i) {
  NAME index = TUFF_AT(I, i);
#if TUFF_INDEX_BYTES == 8
  if (index.y == 0xffffffffu) {
    index.x += push.named;
    index.y = index.x < push.named ? 0u : 1u;
  }
#else
  if (int(index) < 0) index += push.named;
#endif
  return index;
}
#else
#define index_at(i) TUFF_AT(I, i)
#endif

#if TUFF_REPEAT == 4
void gather(uint i) {
  const uint quarter = push.sizes[0], row = tuff_divide(i, push.multipliers[0], push.shifts[0] & 31u);
  const uint outer = tuff_divide(row, push.multipliers[1], (push.shifts[0] >> 8) & 31u);
  const NAME index = index_at(TUFF_INDEX(row - outer * push.sizes[1]));
  const uint place = i - row * quarter;
  const TUFF_INDEX to = TUFF_INDEX(4 * row * quarter + place);
  HELD a = HELD(0), b = HELD(0), c = HELD(0), d = HELD(0);
  if (TUFF_NAMES(index)) {
    const TUFF_INDEX from = TUFF_INDEX(place) + OFFSET(outer, push.outer_stride) + OFFSET(POSITION(index), push.stride);
    a = HELD(TUFF_AT(X, from));
    b = HELD(TUFF_AT(X, from + quarter));
    c = HELD(TUFF_AT(X, from + 2 * quarter));
    d = HELD(TUFF_AT(X, from + 3 * quarter));
  }
  TUFF_AT(Y, to) = UNIT(a);
  TUFF_AT(Y, to + quarter) = UNIT(b);
  TUFF_AT(Y, to + 2 * quarter) = UNIT(c);
  TUFF_AT(Y, to + 3 * quarter) = UNIT(d);
}
#else
HELD gathered(uint i) {
#if TUFF_SINGLE
  const NAME index = index_at(TUFF_INDEX(i));
  const TUFF_INDEX from = TUFF_INDEX(0);
#elif TUFF_ROWS
  const uint row = tuff_divide(i, push.multipliers[0], push.shifts[0] & 31u);
  const uint outer = tuff_divide(row, push.multipliers[1], (push.shifts[0] >> 8) & 31u);
  const NAME index = index_at(TUFF_INDEX(row - outer * push.sizes[1]));
  TUFF_INDEX from = TUFF_INDEX(i - row * push.sizes[0]) + OFFSET(outer, push.outer_stride);
#else
  const NAME index = index_at(TUFF_INDEX(i));
  TUFF_INDEX from = TUFF_INDEX(0);
  uint rest = i;
  for (uint d = 0; d < RANK; ++d) {
    TUFF_NEXT_COORDINATE(rest, c, d)
    from += TUFF_INDEX(TUFF_ALONG(c, push.strides[d]));
  }
#endif
  HELD value = HELD(0);
  if (TUFF_NAMES(index)) value = HELD(TUFF_AT(X, from + OFFSET(POSITION(index), push.stride)));
  return value;
}

void gather(uint i) { TUFF_AT(Y, TUFF_INDEX(i)) = UNIT(gathered(i)); }
#endif

void main() {
  const uint lanes = gl_WorkGroupSize.x, begin = tuff_group() * (lanes * RUN);
  uint i = begin + gl_LocalInvocationID.x;
#if TUFF_UNROLL == 4
  if (begin + lanes * RUN <= push.n) {
    for (uint step = 0; step < RUN; step += 4, i += 4 * lanes) {
      const HELD a = gathered(i), b = gathered(i + lanes), c = gathered(i + 2 * lanes), d = gathered(i + 3 * lanes);
      TUFF_AT(Y, TUFF_INDEX(i)) = UNIT(a);
      TUFF_AT(Y, TUFF_INDEX(i + lanes)) = UNIT(b);
      TUFF_AT(Y, TUFF_INDEX(i + 2 * lanes)) = UNIT(c);
      TUFF_AT(Y, TUFF_INDEX(i + 3 * lanes)) = UNIT(d);
    }
    return;
  }
#endif
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) gather(i);
}
