// A plain stream through memory, to measure which binding and element width this driver is faster with. Each invocation
// reads RUN times 16 bytes, as the element-wise kernels do on CPU devices, modifies them and writes them.
//# TUFF_WORDS : 0.. : 0: 16 bytes are two 64-bit numbers; 1: four 32-bit numbers
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#if TUFF_WORDS
#define PIECE uvec4
#define NUMBER uint
#else
#define PIECE u64vec2
#define NUMBER uint64_t
#endif

layout(local_size_x_id = 0) in;

const uint RUN = 4;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint vectors;
  uint mask;
} push;
TUFF_READ(0, X, PIECE, 16)
TUFF_WRITE(1, Y, PIECE, 16)

void main() {
  const uint first = tuff_group() * (gl_WorkGroupSize.x * RUN) + gl_LocalInvocationID.x;
  [[unroll]] for (uint step = 0; step < RUN; ++step) {
    const uint i = first + step * gl_WorkGroupSize.x;
    if (i < push.vectors) TUFF_AT(Y, i) = TUFF_AT(X, i) ^ NUMBER(push.mask);
  }
}
