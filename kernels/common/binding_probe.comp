// A plain stream through memory, for measuring which way of binding this driver is faster with: each
// invocation reads RUN vec4 and writes them scaled.
layout(local_size_x_id = 0) in;

const uint RUN = 4;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint vectors;
  float scale;
} push;
TUFF_READ(0, X, vec4, 16)
TUFF_WRITE(1, Y, vec4, 16)

void main() {
  const uint first = tuff_group() * (gl_WorkGroupSize.x * RUN) + gl_LocalInvocationID.x;
  [[unroll]] for (uint step = 0; step < RUN; ++step) {
    const uint i = first + step * gl_WorkGroupSize.x;
    if (i < push.vectors) TUFF_AT(Y, i) = TUFF_AT(X, i) * push.scale;
  }
}
