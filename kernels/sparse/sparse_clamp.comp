// Offsets as numbers of 32 bits from 0 to `most`.
//
//# TUFF_RUN : 0.. : offsets that a lane processes; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint n, run;
  uint most;
} push;

#include "kernels/sparse/numbers.glsl"

TUFF_READ(0, O, NAME, TUFF_INDEX_BYTES)
TUFF_WRITE(1, Y, uint, 4)

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) {
    TUFF_AT(Y, TUFF_INDEX(i)) = uint(clamped(TUFF_AT(O, TUFF_INDEX(i)), TUFF_INDEX(push.most)));
  }
}
