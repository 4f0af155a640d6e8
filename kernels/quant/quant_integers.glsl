// Reads eight integers of 4 or 8 bits, from a multiple of eight on.
//
//# TUFF_BITS : 4|8 : of an integer
//# TUFF_NEGATIVE : 0|1 : 1: integers are signed, and may be negative
//
// A kernel declares the operand: TUFF_READ(0, X8, EIGHT, TUFF_BITS), and takes eight_of(TUFF_AT(X8, item)).
#include "kernels/common/types.glsl"

#if TUFF_BITS == 8
#define EIGHT uvec2
#else
#define EIGHT uint
#endif

struct Integers {
  ivec4 part[2];
};

Integers eight_of(EIGHT words) {
  Integers q;
#if TUFF_BITS == 8 && TUFF_NEGATIVE
  q.part[0] = tuff_unpack_7(words.x);
  q.part[1] = tuff_unpack_7(words.y);
#elif TUFF_BITS == 8
  q.part[0] = ivec4(tuff_unpack_8(words.x));
  q.part[1] = ivec4(tuff_unpack_8(words.y));
#elif TUFF_NEGATIVE
  q.part[0] = (ivec4(int(words)) << ivec4(28, 24, 20, 16)) >> 28;
  q.part[1] = (ivec4(int(words)) << ivec4(12, 8, 4, 0)) >> 28;
#else
  q.part[0] = ivec4((uvec4(words) >> uvec4(0, 4, 8, 12)) & 15u);
  q.part[1] = ivec4((uvec4(words) >> uvec4(16, 20, 24, 28)) & 15u);
#endif
  return q;
}
