// Copies the rows of updates that win to the places that their indices name: unit i of updates [outer][rows][inner] to
// output [outer][places][inner], if W of the place is the row's index. Units have 1 to 16 bytes.
//# TUFF_SINGLE : 0|1 : 1: outer and inner are 1
//# TUFF_RUN : 0.. : units that a lane copies one after another; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint n, run;
  uint none;   // the key of an index out of range
  uint first;  // number of the first row, as in W
  uint sizes[2], multipliers[2], shifts[2];  // inner, rows: kernels/common/division.glsl
  uint from_stride, from_stride_high, to_stride, to_stride_high;  // from one outer index to the next, in units
} push;

#include "kernels/common/division.glsl"
#include "kernels/shape/units.glsl"
TUFF_READ(0, U, UNIT, TUFF_UNIT)
TUFF_READ(1, K, uint, 4)
TUFF_READ(2, W, uint, 4)
TUFF_WRITE(3, Y, UNIT, TUFF_UNIT)

#if TUFF_WIDE
#define STRIDE(name) (uint64_t(push.name##_high) << 32 | uint64_t(push.name))
#else
#define STRIDE(name) push.name
#endif

void write(uint i) {
#if TUFF_SINGLE
  const uint key = TUFF_AT(K, TUFF_INDEX(i));
  if (key < push.none && TUFF_AT(W, TUFF_INDEX(key)) == i + push.first) {
    TUFF_AT(Y, TUFF_INDEX(key)) = TUFF_AT(U, TUFF_INDEX(i));
  }
#else
  const uint row = tuff_divide(i, push.multipliers[0], push.shifts[0]);
  const uint outer = tuff_divide(row, push.multipliers[1], push.shifts[1]);
  const uint j = row - outer * push.sizes[1], place = i - row * push.sizes[0];
  const uint key = TUFF_AT(K, TUFF_INDEX(j));
  if (key < push.none && TUFF_AT(W, TUFF_INDEX(key)) == j + push.first) {
    const TUFF_INDEX to = TUFF_INDEX(outer) * STRIDE(to_stride) + TUFF_INDEX(key) * push.sizes[0] + place;
    TUFF_AT(Y, to) = TUFF_AT(U, TUFF_INDEX(outer) * STRIDE(from_stride) + TUFF_INDEX(j) * push.sizes[0] + place);
  }
#endif
}

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) write(i);
}
