// Transforms a filter for Winograd's minimal filtering, into the order of its GEMMs: [SPAN * SPAN][filters][channels].
//
//# TYPE : 1..3 : TUFF_* type of the filter
//# CHANNELS_LAST : 0|1 : 1: the filter is [filters][3][3][channels], otherwise [filters][channels][3][3]
#include "kernels/conv/conv_winograd.glsl"
#include "kernels/common/pointer.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint items, channels;  // filters * channels
} push;
TUFF_READ(0, Filter, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_WRITE(1, Windows, float, 4)

layout(local_size_x_id = 0) in;

void main() {
  const uint item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (item >= push.items) return;
#if CHANNELS_LAST
  const uint k = quotient(item, push.channels), step = push.channels;
  const uint first = k * 9 * step + (item - k * step);
#else
  const uint first = item * 9, step = 1;
#endif
  TUFF_POINTER(Filter, filter_pointer, first);
  float rows[3][SPAN];
  [[unroll]] for (uint r = 0; r < 3; ++r) {
    float taps[3];
    [[unroll]] for (uint s = 0; s < 3; ++s) {
      taps[s] = TUFF_LOADED(TYPE, TUFF_FROM(Filter, filter_pointer, (r * 3 + s) * step));
    }
    filter_line(taps[0], taps[1], taps[2], rows[r]);
  }
  TUFF_POINTER(Windows, windows_pointer, item);
  [[unroll]] for (uint j = 0; j < SPAN; ++j) {
    float column[SPAN];
    filter_line(rows[0][j], rows[1][j], rows[2][j], column);
    [[unroll]] for (uint i = 0; i < SPAN; ++i) {
      TUFF_FROM(Windows, windows_pointer, (i * SPAN + j) * push.items) = column[i];
    }
  }
}
