// K[i] = the place that index first + i names, for i < n, counted from the place `window`; or `none` if an index is out
// of range or the place is not among the `none` places from there. Places are numbers of elements or rows
// (kernels/indexing/places.hpp).
//
//# TUFF_FORM : 0..2 : 0: an index is the place; 1: element-wise; 2: a place has RANK numbers
//# TUFF_INDEX_BYTES : 4|8 : bytes of an index
//# TUFF_SIGN : 0|1 : 1: indices are signed
//# TUFF_NEGATIVE : 0|1 : 1: negative indices count from the end of their axis
//# TUFF_KEY_BYTES : 4|8 : bytes of a place; 8: `none` is the largest number
//# TUFF_CLAIM : 0|1 : 1: W[place] = i; of several i for one place, any
//# TUFF_RUN : 0.. : indices that a lane processes one after another; 0: push.run says
//
// Each workgroup has RUN * (workgroup size) consecutive indices; in step s lane l has index s * (workgroup size) + l.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint RANK = 1;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint n, run;
  uint first, first_high;
  uint window, window_high;
  uint none;
  uint axis;  // TUFF_FORM 1: of the indices, in the table's order
} push;

#if TUFF_INDEX_BYTES == 8
#define NAME uvec2  // low and high word
#else
#define NAME uint
#endif
TUFF_READ(0, I, NAME, TUFF_INDEX_BYTES)
// For each axis: size, divider, high word of the size (TUFF_FORM 1: of the indices' shape), and the extent and stride of what is indexed, low
// and high word. TUFF_FORM 1: all axes, innermost first; otherwise those that are indexed, outermost first.
TUFF_READ(1, T, uint, 4)
#define EXTENT(d) NUMBER(8 * (d) + 4)
#define STRIDE(d) NUMBER(8 * (d) + 6)
#if TUFF_KEY_BYTES == 8
TUFF_WRITE(2, K, uvec2, 8)
#else
TUFF_WRITE(2, K, uint, 4)
#endif
TUFF_WRITE(3, W, uint, 4)

#include "kernels/common/division.glsl"

#if TUFF_WIDE
#define PLACE uint64_t
#define JOINED(low, high) (uint64_t(high) << 32 | uint64_t(low))
#define NUMBER(at) JOINED(TUFF_AT(T, at), TUFF_AT(T, (at) + 1))
#define SIZE(d) JOINED(TUFF_AT(T, 8 * (d)), TUFF_AT(T, 8 * (d) + 3))
#else
#define PLACE uint
#define JOINED(low, high) (low)
#define NUMBER(at) TUFF_AT(T, at)
#define SIZE(d) TUFF_AT(T, 8 * (d))
#endif

// The position along an axis; false if it is out of range.
bool names(NAME index, PLACE extent, out PLACE at) {
#if TUFF_WIDE
#if TUFF_INDEX_BYTES == 8
  at = JOINED(index.x, index.y);
#elif TUFF_SIGN
  at = uint64_t(int64_t(int(index)));
#else
  at = uint64_t(index);
#endif
#if TUFF_NEGATIVE
  if (int64_t(at) < 0) at += extent;
#endif
  return at < extent;  // a negative number is beyond every axis
#else
  // The extent is below 2^31, and a negative number of 32 bits beyond it.
#if TUFF_INDEX_BYTES == 8
  at = index.x;
#if TUFF_NEGATIVE
  // Below -2^32 nothing is in range. Above, the lower words add up to less than the extent only where the sum is not
  // negative.
  if (index.y == 0xffffffffu) {
    at += extent;
    return at < extent;
  }
#endif
  return index.y == 0u && at < extent;
#else
  at = index;
#if TUFF_NEGATIVE
  if (int(index) < 0) at += extent;
#endif
  return at < extent;
#endif
#endif
}

bool find(uint i, out PLACE place) {
#if TUFF_FORM == 0
  return names(TUFF_AT(I, TUFF_INDEX(i)), EXTENT(0), place);
#elif TUFF_FORM == 1
  place = PLACE(0);
  PLACE rest = JOINED(push.first, push.first_high) + i;
  for (uint d = 0; d < RANK; ++d) {
    PLACE c = rest;
    if (d + 1 < RANK) {
#if TUFF_WIDE
      rest /= SIZE(d);
#else
      rest = tuff_divide(rest, TUFF_AT(T, 8 * d + 1), TUFF_AT(T, 8 * d + 2));
#endif
      c -= rest * SIZE(d);
    }
    if (d == push.axis) {
      if (!names(TUFF_AT(I, TUFF_INDEX(i)), EXTENT(d), c)) return false;
    }
    place += c * STRIDE(d);
  }
  return true;
#else
  place = PLACE(0);
  for (uint c = 0; c < RANK; ++c) {
    PLACE at;
    if (!names(TUFF_AT(I, TUFF_INDEX(i) * RANK + c), EXTENT(c), at)) return false;
    place += at * STRIDE(c);
  }
  return true;
#endif
}

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) {
    PLACE place;
    bool found = find(i, place);
#if TUFF_KEY_BYTES == 8
    TUFF_AT(K, TUFF_INDEX(i)) = found ? uvec2(uint(place), uint(place >> 32)) : uvec2(0xffffffffu);
#else
    place -= JOINED(push.window, push.window_high);
    found = found && place < push.none;
    const uint key = found ? uint(place) : push.none;
    TUFF_AT(K, TUFF_INDEX(i)) = key;
#if TUFF_CLAIM
    if (found) TUFF_AT(W, key) = i;
#endif
#endif
  }
}
