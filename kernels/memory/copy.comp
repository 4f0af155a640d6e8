// Copies a range. Each invocation copies RUN elements, LOCAL_SIZE apart.
//# VECTORS : 0|1 : 1: elements are vec4 (both ranges are aligned to 16 bytes), 0: elements are words
layout(local_size_x_id = 0) in;  // LOCAL_SIZE

const uint RUN = 4;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint elements;
} push;
#if VECTORS
TUFF_READ(0, source, uvec4, 16)
TUFF_WRITE(1, target, uvec4, 16)
#else
TUFF_READ(0, source, uint, 4)
TUFF_WRITE(1, target, uint, 4)
#endif

void main() {
  const uint first = tuff_group() * (gl_WorkGroupSize.x * RUN) + gl_LocalInvocationID.x;
  [[unroll]] for (uint step = 0; step < RUN; ++step) {
    const uint i = first + step * gl_WorkGroupSize.x;
    if (i < push.elements) TUFF_AT(target, i) = TUFF_AT(source, i);
  }
}
