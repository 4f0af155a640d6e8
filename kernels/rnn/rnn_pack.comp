// Arranges the weights of h for rnn_rows.comp, in f32: [direction][k][gate][unit], with zeros where k or the unit is
// beyond hidden.
//# TUFF_TYPE : 1..3 : their element type, as in tuff.h
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint directions, gates, hidden, width;  // width: of k, with its zeros
} push;

TUFF_READ(0, R, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(1, Packed, vec4, 16)

void main() {
  const uint item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x, blocks = (push.hidden + 3) / 4;
  if (item >= push.directions * push.width * push.gates * blocks) return;
  const uint block = item % blocks;
  uint rest = item / blocks;
  const uint gate = rest % push.gates;
  rest /= push.gates;
  const uint k = rest % push.width, direction = rest / push.width;
  vec4 packed = vec4(0);
  [[unroll]] for (uint e = 0; e < 4; ++e) {
    const uint j = 4 * block + e;
    if (j < push.hidden && k < push.hidden) {
      const TUFF_INDEX row = TUFF_INDEX(direction * push.gates + gate) * push.hidden + j;
      packed[e] = TUFF_LOADED(TUFF_TYPE, TUFF_AT(R, row * push.hidden + k));
    }
  }
  TUFF_AT(Packed, item) = packed;
}
