// The loop of unary.comp and binary.comp: output element i = tuff_apply(element i of each input), for i < n.
//
// Elements are taken in blocks of 4. Each group has RUN * (workgroup size) consecutive blocks; in step s its
// lane l has block s * (workgroup size) + l of them, so that neighbours touch neighbouring memory:
//
//   group g:  | lanes 0 1 2 … | lanes 0 1 2 … | … RUN times
//
// The n % 4 elements behind the last whole block are one item each, after the blocks.
//   TUFF_UNROLL   blocks that a lane has in flight; divides RUN
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint RUN = 1;

layout(push_constant, std430) uniform Push { TUFF_BASES(TUFF_INPUTS + 1) uint n; } push;

TUFF_BLOCKS_READ(0, A)
#if TUFF_INPUTS == 2
TUFF_BLOCKS_READ(1, B)
TUFF_BLOCKS_WRITE(2, Y)
#define TUFF_APPLY_BLOCK(i) tuff_apply(TUFF_LOAD4(A, i), TUFF_LOAD4(B, i))
#define TUFF_APPLY_SCALAR(i) tuff_apply(vec4(TUFF_AT(A_scalar, i)), vec4(TUFF_AT(B_scalar, i))).x
#else
TUFF_BLOCKS_WRITE(1, Y)
#define TUFF_APPLY_BLOCK(i) tuff_apply(TUFF_LOAD4(A, i))
#define TUFF_APPLY_SCALAR(i) tuff_apply(vec4(TUFF_AT(A_scalar, i))).x
#endif

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint blocks = push.n / 4;
  uint begin = tuff_group() * (lanes * RUN);
  uint i = begin + gl_LocalInvocationID.x;
  if (begin + lanes * RUN <= blocks) {
    for (uint step = 0; step < RUN; step += TUFF_UNROLL) {
      vec4 value[TUFF_UNROLL];
      [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) value[u] = TUFF_APPLY_BLOCK(i + u * lanes);
      [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) TUFF_STORE4(Y, i + u * lanes, value[u]);
      i += lanes * TUFF_UNROLL;
    }
  } else {
    uint items = blocks + push.n % 4;
    for (uint step = 0; step < RUN && i < items; ++step, i += lanes) {
      if (i < blocks) {
        TUFF_STORE4(Y, i, TUFF_APPLY_BLOCK(i));
      } else {
        uint element = 4 * blocks + (i - blocks);
        TUFF_AT(Y_scalar, element) = TUFF_APPLY_SCALAR(element);
      }
    }
  }
}
