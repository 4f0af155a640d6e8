// Y[i] = X[P[i]], of numbers of 32 bits.
//# TUFF_RUN : 0.. : numbers that a lane processes; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint n, run;
} push;

TUFF_READ(0, X, uint, 4)
TUFF_READ(1, P, uint, 4)
TUFF_WRITE(2, Y, uint, 4)

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) TUFF_AT(Y, i) = TUFF_AT(X, TUFF_AT(P, i));
}
