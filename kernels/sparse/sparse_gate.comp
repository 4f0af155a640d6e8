// L[i] = 0 for each i if the number Z of 64 bits is above `most`; otherwise nothing is written.
//
//# TUFF_RUN : 0.. : numbers that a lane processes; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint n, run;
  uint most;
} push;

TUFF_READ(0, Z, uvec2, 8)
TUFF_WRITE(1, L, uint, 4)

void main() {
  const uvec2 total = TUFF_AT(Z, 0);
  if (total.y == 0u && total.x <= push.most) return;
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) TUFF_AT(L, TUFF_INDEX(i)) = 0u;
}
