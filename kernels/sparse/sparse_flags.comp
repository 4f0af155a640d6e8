// F[i] = 1 where an entry of the result begins, otherwise 0. From sorted entries: where a pair of major number K[i] and
// minor number S[P[i]] differs from the one before. From a dense matrix: where the element is not zero, in the order of
// the result.
//
//# TUFF_TYPE : 1..4 : element type, as in tuff.h
//# TUFF_DENSE : 0|1 : 1: from a dense matrix
//# TUFF_RUN : 0.. : flags that a lane computes; 0: push.run says
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  uint n, run;
  uint majors;  // numbers from here on are out of range; TUFF_DENSE 1: unused
  uint minors;  // TUFF_DENSE 1: elements of a line
  uint major_stride, major_stride_high, minor_stride, minor_stride_high;  // TUFF_DENSE 1: in elements
} push;

TUFF_READ(0, K, uint, 4)
TUFF_READ(1, P, uint, 4)
TUFF_READ(2, S, uint, 4)
TUFF_READ(3, D, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(4, F, uint, 4)

#include "kernels/common/joined.glsl"

bool begins(uint i) {
#if TUFF_DENSE
  const uint line = i / push.minors;
  const TUFF_INDEX at = line * JOINED(major_stride) + (i - line * push.minors) * JOINED(minor_stride);
  return TUFF_VALUE(TUFF_NUMBER(TUFF_TYPE, TUFF_LOADED(TUFF_TYPE, TUFF_AT(D, at)))) != TUFF_ZERO;
#else
  const uint key = TUFF_AT(K, TUFF_INDEX(i));
  if (key >= push.majors) return false;
  if (i == 0u || TUFF_AT(K, TUFF_INDEX(i - 1u)) != key) return true;
  return TUFF_AT(S, TUFF_INDEX(TUFF_AT(P, TUFF_INDEX(i)))) != TUFF_AT(S, TUFF_INDEX(TUFF_AT(P, TUFF_INDEX(i - 1u))));
#endif
}

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) TUFF_AT(F, TUFF_INDEX(i)) = begins(i) ? 1u : 0u;
}
