// Integers of 8 bits without sign as those with sign that are 128 less, for kernels that multiply the latter: rows of X, of
// k integers, as rows of Y that begin at multiples of four. What is left of a row's last four becomes 0.
//
//# TUFF_VECTOR : 0|1 : 1: rows of X begin at multiples of four too
//# TUFF_RUN : 0.. : fours of a lane; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint n, run;       // fours of Y
  uint k, ld;   // integers of a row of X, and from one to the next
} push;

#include "kernels/common/types.glsl"

TUFF_READ(0, X, uint8_t, 1)
TUFF_READ(0, X4, uint, 4)
TUFF_WRITE(1, Y4, uint, 4)

uint four_at(TUFF_INDEX from, uint count) {
  uint word = 0u;
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    const uint byte = uint(TUFF_AT(X, from + min(c, count - 1u)));
    word |= (c < count ? byte ^ 0x80u : 0u) << (8u * c);
  }
  return word;
}

void main() {
  const uint fours = (push.k + 3u) / 4u;
  uint i = (tuff_group() * RUN) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += gl_WorkGroupSize.x) {
    const uint row = i / fours, at = 4u * (i - row * fours), count = min(push.k - at, 4u);
    const TUFF_INDEX from = TUFF_INDEX(row) * push.ld + at;
#if TUFF_VECTOR
    const uint word = count == 4u ? TUFF_AT(X4, from / 4) ^ 0x80808080u : four_at(from, count);
#else
    const uint word = four_at(from, count);
#endif
    TUFF_AT(Y4, TUFF_INDEX(i)) = word;
  }
}
