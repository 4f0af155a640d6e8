// Arranges the weights of h for rnn_rows.comp, in f32: [direction][u][gate][k / 4][thread][4 k], of unit
// thread * units + u, with zeros where k or the unit is beyond hidden.
//# TUFF_TYPE : 1..3 : their element type, as in tuff.h
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint items;                            // vectors of four
  uint units, gates, hidden, blocks, threads;  // blocks: vectors along k
} push;

TUFF_READ(0, R, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(1, Packed, vec4, 16)

void main() {
  const uint item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (item >= push.items) return;
  uint rest = item / push.threads;
  const uint thread = item - rest * push.threads, block = rest % push.blocks;
  rest /= push.blocks;
  const uint gate = rest % push.gates;
  rest /= push.gates;
  const uint direction = rest / push.units, j = thread * push.units + rest - direction * push.units;
  vec4 packed = vec4(0);
  [[unroll]] for (uint e = 0; e < 4; ++e) {
    const uint k = 4 * block + e;
    if (j < push.hidden && k < push.hidden) {
      const uint row = (direction * push.gates + gate) * push.hidden + j;
      packed[e] = TUFF_LOADED(TUFF_TYPE, TUFF_AT(R, row * push.hidden + k));
    }
  }
  TUFF_AT(Packed, item) = packed;
}
