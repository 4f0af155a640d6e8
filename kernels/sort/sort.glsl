// Shared by the kernels that sort: elements as their bits, and keys that order as the elements do.
//
//# TUFF_FORM : 0..3 : the elements are 0: unsigned integers; 1: signed integers; 2: floats; 3: bool
//
// A key is an unsigned number of the element's width. Equal elements have equal keys: -0 and +0, and all NaNs, which have
// the largest key in both directions. Kernels move elements, not keys, so that bits are kept.
#define TUFF_LONG 0
#include "kernels/shape/units.glsl"

#if TUFF_UNIT == 8
#define KEY uvec2  // low and high word
#define LAST_KEY uvec2(0xffffffffu)
#define BEFORE(a, b) (a.y < b.y || (a.y == b.y && a.x < b.x))
#else
#define KEY uint
#define LAST_KEY 0xffffffffu
#define BEFORE(a, b) (a < b)
#endif

#define KEY_BITS (TUFF_UNIT * 8)
const uint SIGN = 1u << ((KEY_BITS - 1) & 31), ALL = 0xffffffffu >> ((32 - KEY_BITS) & 31);

// flip: 0, or ALL for the descending order. infinity: the largest magnitude that is no NaN (its high word).
KEY key_of(HELD bits, uint flip, uint infinity) {
#if TUFF_UNIT == 8
#if TUFF_FORM == 0
  return bits ^ flip;
#elif TUFF_FORM == 1
  return uvec2(bits.x, bits.y ^ SIGN) ^ flip;
#else
  const uint high = bits.y & 0x7fffffffu;
  const bool negative = (bits.y & SIGN) != 0u, zero = (high | bits.x) == 0u;
  uvec2 key = negative ? ~bits : uvec2(bits.x, bits.y | SIGN);
  key = (zero ? uvec2(0u, SIGN) : key) ^ flip;
  return high > infinity || (high == infinity && bits.x != 0u) ? LAST_KEY : key;
#endif
#elif TUFF_FORM == 0
  return bits ^ flip;
#elif TUFF_FORM == 1
  return bits ^ SIGN ^ flip;
#elif TUFF_FORM == 2
  const uint magnitude = bits & (SIGN - 1u);
  uint key = (bits & SIGN) != 0u ? bits ^ ALL : bits | SIGN;
  key = (magnitude == 0u ? SIGN : key) ^ flip;
  return magnitude > infinity ? ALL : key;
#else
  return uint(bits != 0u) ^ flip;
#endif
}

// The first element of row `row` of [outer][length][inner], where rows are numbered along inner first.
TUFF_INDEX first_of(uint row, uint length, uint inner) {
  const uint outer = row / inner;
  return TUFF_INDEX(outer) * length * inner + (row - outer * inner);
}
