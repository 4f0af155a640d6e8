// Copies units of 1 to 16 bytes between a dense operand and one with strides (kernels/common/coordinates.glsl).
//
// Unit i of the dense operand has the coordinates of index i in axes of sizes[]. Each workgroup has RUN * (workgroup
// size) consecutive units; in step s lane l has unit s * (workgroup size) + l of them.
//# TUFF_UNROLL : 1|4 : units that a lane has in flight; divides RUN
//# TUFF_REPEAT : 1|2|4 : consecutive units in both operands that count as one; the above describes the first
//# TUFF_RUN : 0.. : units that a lane copies one after another; 0: push.run says
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint RANK = 1;
layout(constant_id = 2) const bool SCATTER = false;  // false: the output is dense; true: the input is

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint n, run;
  uint first;  // the strided operand's unit at coordinates 0
  uint sizes[7], multipliers[7], shifts[2];
  int strides[8];
  uint first_high;  // bits 32 and above of `first`, with wide indices
} push;

#include "kernels/shape/units.glsl"
TUFF_READ(0, X, UNIT, TUFF_UNIT)
TUFF_WRITE(1, Y, UNIT, TUFF_UNIT)

#include "kernels/common/coordinates.glsl"

TUFF_INDEX strided(uint n) {
#if TUFF_WIDE
  int64_t index = int64_t(push.first_high) << 32 | int64_t(push.first);
#else
  uint index = push.first;
#endif
  for (uint d = 0; d < RANK; ++d) {
    TUFF_NEXT_COORDINATE(n, c, d)
    index += TUFF_ALONG(c, push.strides[d]);
  }
  return TUFF_INDEX(index);
}

void move(uint i) {
  const TUFF_INDEX at = strided(i), place = TUFF_INDEX(i) * TUFF_REPEAT;
  [[unroll]] for (uint k = 0; k < TUFF_REPEAT; ++k) {
    if (SCATTER) {
      TUFF_AT(Y, at + k) = TUFF_AT(X, place + k);
    } else {
      TUFF_AT(Y, place + k) = TUFF_AT(X, at + k);
    }
  }
}

void main() {
  const uint lanes = gl_WorkGroupSize.x, begin = tuff_group() * (lanes * RUN);
  uint i = begin + gl_LocalInvocationID.x;
#if TUFF_UNROLL == 4
  if (begin + lanes * RUN <= push.n) {
    for (uint step = 0; step < RUN; step += 4, i += 4 * lanes) {
      const uint j = i + lanes, k = j + lanes, l = k + lanes;
      const TUFF_INDEX at_i = strided(i), at_j = strided(j), at_k = strided(k), at_l = strided(l);
      if (SCATTER) {
        TUFF_AT(Y, at_i) = TUFF_AT(X, TUFF_INDEX(i));
        TUFF_AT(Y, at_j) = TUFF_AT(X, TUFF_INDEX(j));
        TUFF_AT(Y, at_k) = TUFF_AT(X, TUFF_INDEX(k));
        TUFF_AT(Y, at_l) = TUFF_AT(X, TUFF_INDEX(l));
      } else {
        const HELD a = HELD(TUFF_AT(X, at_i)), b = HELD(TUFF_AT(X, at_j)), c = HELD(TUFF_AT(X, at_k)),
                   d = HELD(TUFF_AT(X, at_l));
        TUFF_AT(Y, TUFF_INDEX(i)) = UNIT(a);
        TUFF_AT(Y, TUFF_INDEX(j)) = UNIT(b);
        TUFF_AT(Y, TUFF_INDEX(k)) = UNIT(c);
        TUFF_AT(Y, TUFF_INDEX(l)) = UNIT(d);
      }
    }
    return;
  }
#endif
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) move(i);
}
