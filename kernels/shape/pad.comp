// output[c] = input[c - before], where the input has that element, and otherwise what the mode says. Elements are copied
// as units of 1 to 16 bytes; those of more than one element are along an axis that is not padded.
//
// Unit i has the coordinates of index i in the axes of the table. Each workgroup has RUN * (workgroup size) consecutive
// units; in step s lane l has unit s * (workgroup size) + l of them.
//# TUFF_MODE : 0..4 : TUFF_PAD_* of tuff.h
//# TUFF_RUN : 0.. : units that a lane copies one after another; 0: push.run says
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint RANK = 1;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint n, run;
  uint value[4];  // a unit of the constant
} push;

#include "kernels/common/division.glsl"
#include "kernels/shape/units.glsl"
TUFF_READ(0, X, UNIT, TUFF_UNIT)
TUFF_WRITE(1, Y, UNIT, TUFF_UNIT)
// For each axis, innermost first: size of the output, multiplier and shift of the division by it, 0; low and high word
// of: the input's size; how much is added before; the input's stride; 0.
TUFF_READ(2, T, uint, 4)

#if TUFF_WIDE
#define COUNT uint64_t
#define SIGNED int64_t
#define NUMBER(at) (uint64_t(TUFF_AT(T, (at) + 1)) << 32 | uint64_t(TUFF_AT(T, at)))
#else
#define COUNT uint
#define SIGNED int
#define NUMBER(at) TUFF_AT(T, at)
#endif

#if TUFF_UNIT <= 4
#define CONSTANT HELD(push.value[0])
#elif TUFF_LONG
#define CONSTANT_LOW (uint64_t(push.value[1]) << 32 | uint64_t(push.value[0]))
#if TUFF_UNIT == 8
#define CONSTANT CONSTANT_LOW
#else
#define CONSTANT u64vec2(CONSTANT_LOW, uint64_t(push.value[3]) << 32 | uint64_t(push.value[2]))
#endif
#elif TUFF_UNIT == 8
#define CONSTANT uvec2(push.value[0], push.value[1])
#else
#define CONSTANT uvec4(push.value[0], push.value[1], push.value[2], push.value[3])
#endif

// The position in an axis of n elements that a position outside stands for.
COUNT within(SIGNED at, COUNT n) {
#if TUFF_MODE == 1
  return at < 0 ? COUNT(0) : n - 1;
#elif TUFF_MODE == 2
  const COUNT period = n > 1 ? 2 * (n - 1) : COUNT(1), place = COUNT(abs(at)) % period;
  return place < n ? place : period - place;
#elif TUFF_MODE == 3
  const COUNT period = 2 * n, place = COUNT(at < 0 ? -1 - at : at) % period;
  return place < n ? place : period - 1 - place;
#else
  return at < 0 ? n - 1 - COUNT(-1 - at) % n : COUNT(at) % n;
#endif
}

void pad(uint i) {
  TUFF_INDEX from = TUFF_INDEX(0);
  bool inside = true;
  uint rest = i;
  for (uint d = 0; d < RANK; ++d) {
    uint c = rest;
    if (d + 1 < RANK) {
      rest = tuff_divide(rest, TUFF_AT(T, 12 * d + 1), TUFF_AT(T, 12 * d + 2));
      c -= rest * TUFF_AT(T, 12 * d);
    }
    const COUNT n = NUMBER(12 * d + 4);
    const SIGNED at = SIGNED(c) - SIGNED(NUMBER(12 * d + 6));
    COUNT place = COUNT(at);
    if (place >= n) {
#if TUFF_MODE == 0
      inside = false;
#else
      place = within(at, n);
#endif
    }
    from += TUFF_INDEX(place * NUMBER(12 * d + 8));
  }
  HELD value = HELD(0);
#if TUFF_MODE == 0
  value = CONSTANT;
#endif
  if (inside) value = HELD(TUFF_AT(X, from));
  TUFF_AT(Y, TUFF_INDEX(i)) = UNIT(value);
}

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) pad(i);
}
