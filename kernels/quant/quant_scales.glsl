// Scales and zero points of integers, in slots 1 and 2. Included after the push block, which has first_zero.
//
//# TUFF_ZEROS : 0|1 : 1: there are zero points
//# TUFF_BITS : 4|8 : of an integer
//# TUFF_NEGATIVE : 0|1 : 1: integers are signed, and may be negative
//# TUFF_SCALE : 1..3 : type of the scales, as in tuff.h
#include "kernels/common/types.glsl"

TUFF_READ(1, Scales, TUFF_STORED(TUFF_SCALE), TUFF_BYTES(TUFF_SCALE))
#if TUFF_ZEROS
TUFF_READ(2, Zeros, uint8_t, 1)
#endif

float scale_at(TUFF_INDEX i) { return TUFF_LOADED(TUFF_SCALE, TUFF_AT(Scales, i)); }

int zero_at(TUFF_INDEX i) {
#if !TUFF_ZEROS
  return 0;
#elif TUFF_BITS == 8
#if TUFF_NEGATIVE
  return (int(uint(TUFF_AT(Zeros, i))) << 24) >> 24;
#else
  return int(uint(TUFF_AT(Zeros, i)));
#endif
#else
  // Four-bit zero points of a dispatch that begins within a byte have one more before them.
  const TUFF_INDEX place = i + push.first_zero;
  const uint half_byte = (uint(TUFF_AT(Zeros, place / 2)) >> (4 * uint(place & 1))) & 15u;
#if TUFF_NEGATIVE
  return (int(half_byte) << 28) >> 28;
#else
  return int(half_byte);
#endif
#endif
}
