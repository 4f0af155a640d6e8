// Copies units of 1 to 16 bytes between two operands with strides, neither of which is dense.
//
// Unit i has the coordinates of index i in the axes of the table. Each workgroup has RUN * (workgroup size) consecutive
// units; in step s lane l has unit s * (workgroup size) + l of them.
//# TUFF_RUN : 0.. : units that a lane copies one after another; 0: push.run says
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint RANK = 1;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint n, run;
  uint input_first, input_first_high, output_first, output_first_high;  // the units at coordinates 0
} push;

#include "kernels/common/division.glsl"
#include "kernels/shape/units.glsl"
TUFF_READ(0, X, UNIT, TUFF_UNIT)
TUFF_WRITE(1, Y, UNIT, TUFF_UNIT)
// For each axis, innermost first: size, multiplier and shift of the division by it, stride of input and output.
TUFF_READ(2, T, uint, 4)

#if TUFF_WIDE
#define FIRST(name) (int64_t(push.name##_high) << 32 | int64_t(push.name))
#define ALONG(c, stride) (int64_t(c) * int64_t(int(stride)))
#else
#define FIRST(name) push.name
#define ALONG(c, stride) ((c) * (stride))
#endif

void move(uint n) {
  TUFF_INDEX from = TUFF_INDEX(FIRST(input_first)), to = TUFF_INDEX(FIRST(output_first));
  for (uint d = 0; d < RANK; ++d) {
    uint c = n;
    if (d + 1 < RANK) {
      n = tuff_divide(n, TUFF_AT(T, 5 * d + 1), TUFF_AT(T, 5 * d + 2));
      c -= n * TUFF_AT(T, 5 * d);
    }
    from += TUFF_INDEX(ALONG(c, TUFF_AT(T, 5 * d + 3)));
    to += TUFF_INDEX(ALONG(c, TUFF_AT(T, 5 * d + 4)));
  }
  TUFF_AT(Y, to) = TUFF_AT(X, from);
}

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) move(i);
}
