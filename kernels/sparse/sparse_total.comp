// Sums of 64 bits, without 64-bit integers: Y[i] is the sum of the numbers i * span to (i + 1) * span - 1 of X.
//
//# TUFF_FIRST : 0|1 : 1: X has numbers of 32 bits; 0: of 64 bits, as low and high word
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint n;     // numbers of X
  uint sums;  // numbers of Y
  uint span;
} push;

#if TUFF_FIRST
TUFF_READ(0, X, uint, 4)
#define TERM(i) uvec2(TUFF_AT(X, i), 0u)
#else
TUFF_READ(0, X, uvec2, 8)
#define TERM(i) TUFF_AT(X, i)
#endif
TUFF_WRITE(1, Y, uvec2, 8)

void main() {
  const uint i = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (i >= push.sums) return;
  const uint begin = i * push.span, count = min(push.span, push.n - begin);
  uvec2 sum = uvec2(0u);
  for (uint k = 0; k < count; ++k) {
    const uvec2 term = TERM(TUFF_INDEX(begin + k));
    uint carry;
    sum.x = uaddCarry(sum.x, term.x, carry);
    sum.y += term.y + carry;
  }
  TUFF_AT(Y, TUFF_INDEX(i)) = sum;
}
