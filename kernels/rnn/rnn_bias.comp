// Adds the two biases of a recurrent layer, in f32: [direction][gate][hidden]. With TUFF_AFTER the last gate's are kept
// apart: its row has that of the input, and a row more that of the state.
//# TUFF_W : 0|1 : 1: slot 0 has biases of the input
//# TUFF_R : 0|1 : 1: slot 1 has biases of the state
//# TUFF_AFTER : 0|1 : see above
//# TUFF_TYPE : 1..3 : their element type, as in tuff.h
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  TUFF_INDEX stride;  // from one direction to the next
  uint directions, rows, hidden;  // rows: gates * hidden
} push;

#if TUFF_W
TUFF_READ(0, W, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
#endif
#if TUFF_R
TUFF_READ(1, R, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
#endif
TUFF_WRITE(2, Sums, float, 4)

void main() {
  const uint each = push.rows + TUFF_AFTER * push.hidden;
  const uint item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (item >= push.directions * each) return;
  const uint direction = item / each, i = item - direction * each;
  const TUFF_INDEX first = TUFF_INDEX(direction) * push.stride;
  // With TUFF_AFTER the last two rows are of one bias each.
  const bool of_state_only = i >= push.rows, of_input_only = TUFF_AFTER != 0 && !of_state_only && i >= push.rows - push.hidden;
  float sum = 0;
#if TUFF_W
  if (!of_state_only) sum = TUFF_LOADED(TUFF_TYPE, TUFF_AT(W, first + i));
#endif
#if TUFF_R
  if (!of_input_only) sum += TUFF_LOADED(TUFF_TYPE, TUFF_AT(R, first + (of_state_only ? i - push.hidden : i)));
#endif
  TUFF_AT(Sums, item) = sum;
}
