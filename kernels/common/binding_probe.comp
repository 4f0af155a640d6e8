// A plain stream through memory, for measuring which way of binding this driver is faster with: each
// invocation reads RUN times 16 bytes as two 64-bit numbers, as the element-wise kernels do on CPU devices, and
// writes them changed.
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(local_size_x_id = 0) in;

const uint RUN = 4;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint vectors;
  uint mask;
} push;
TUFF_READ(0, X, u64vec2, 16)
TUFF_WRITE(1, Y, u64vec2, 16)

void main() {
  const uint first = tuff_group() * (gl_WorkGroupSize.x * RUN) + gl_LocalInvocationID.x;
  [[unroll]] for (uint step = 0; step < RUN; ++step) {
    const uint i = first + step * gl_WorkGroupSize.x;
    if (i < push.vectors) TUFF_AT(Y, i) = TUFF_AT(X, i) ^ uint64_t(push.mask);
  }
}
