// Concatenates up to four inputs, each [outer][its own width], into [outer][pitch], in units of 1 to 16 bytes.
// Workgroups before ends[0] copy units of the first input, those before ends[1] units of the second, and so on. Each
// copies RUN * (workgroup size) consecutive units; in step s lane l copies unit s * (workgroup size) + l of them.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint RUN = 1;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  uint ends[4];
  uint n[4];  // units of an input
  uint widths[4], multipliers[4], shifts;
  uint first[4];  // where an input starts in the output's rows
  uint pitch;
} push;

#include "kernels/common/division.glsl"
#include "kernels/shape/units.glsl"
TUFF_READ(0, A, UNIT, TUFF_UNIT)
TUFF_READ(1, B, UNIT, TUFF_UNIT)
TUFF_READ(2, C, UNIT, TUFF_UNIT)
TUFF_READ(3, D, UNIT, TUFF_UNIT)
TUFF_WRITE(4, Y, UNIT, TUFF_UNIT)

TUFF_INDEX place(uint i, uint k) {
  const uint row = tuff_divide(i, push.multipliers[k], (push.shifts >> (8 * k)) & 31u);
  return TUFF_INDEX(row * push.pitch + push.first[k] + (i - row * push.widths[k]));
}

#define MOVE(X, k, group)                                                      \
  uint i = (group) * (lanes * RUN) + gl_LocalInvocationID.x;                   \
  for (uint step = 0; step < RUN && i < push.n[k]; ++step, i += lanes) {       \
    TUFF_AT(Y, place(i, k)) = TUFF_AT(X, TUFF_INDEX(i));                       \
  }

void main() {
  const uint group = tuff_group(), lanes = gl_WorkGroupSize.x;
  if (group < push.ends[0]) {
    MOVE(A, 0, group)
  } else if (group < push.ends[1]) {
    MOVE(B, 1, group - push.ends[0])
  } else if (group < push.ends[2]) {
    MOVE(C, 2, group - push.ends[1])
  } else if (group < push.ends[3]) {
    MOVE(D, 3, group - push.ends[2])
  }
}
