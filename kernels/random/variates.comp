// output[i] = a random number for element offset + i of a sequence, of a distribution whose parameters element i of up to
// three buffers, or three words of `push`, hold. variates.glsl has the distributions. A lane computes one element after
// another:
//
//   element    first + s * (workgroup size) + l       of lane l in step s
//
// Each lane reads an element's parameters before it writes the element: the output may be one of the buffers.
//
//# TUFF_DISTRIBUTION : 1..7 : TUFF_VARIATES_* of tuff.h
//# TUFF_GIVEN : 0..7 : bit p: parameter p is in a buffer
//# TUFF_RUN : 0.. : elements that a lane processes one after another; 0: push.run says
#include "kernels/common/types.glsl"
#include "kernels/random/philox.glsl"
#include "kernels/random/formulas.glsl"
#include "kernels/random/variates.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint n, run;
  uint element[2];           // number of the first element
  uint sequence[2], key[2];  // low and high word
  uint values[3];            // parameters of all elements, as bits
} push;

TUFF_WRITE(0, Y, uint, 4)
#if TUFF_GIVEN & 1
TUFF_READ(1, First, uint, 4)
#define FIRST(i) TUFF_AT(First, i)
#else
#define FIRST(i) push.values[0]
#endif
#if TUFF_GIVEN & 2
TUFF_READ(2, Second, uint, 4)
#define SECOND(i) TUFF_AT(Second, i)
#else
#define SECOND(i) push.values[1]
#endif
#if TUFF_GIVEN & 4
TUFF_READ(3, Third, uint, 4)
#define THIRD(i) TUFF_AT(Third, i)
#else
#define THIRD(i) push.values[2]
#endif

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  sequence_low = push.sequence[0], sequence_high = push.sequence[1];
  key_low = push.key[0], key_high = push.key[1];
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) {
    uint carry;
    element_low = uaddCarry(push.element[0], i, carry);
    element_high = push.element[1] + carry;
    TUFF_AT(Y, i) = variate_of(TUFF_DISTRIBUTION, FIRST(i), SECOND(i), THIRD(i));
  }
}
