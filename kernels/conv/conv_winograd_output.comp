// Computes outputs from the sums of Winograd's GEMMs, which are [SPAN * SPAN][filters][pitch of tiles], or with
// CHANNELS_LAST [SPAN * SPAN][tiles][filters].
//
//# CHANNELS_LAST : 0|1 : 1: the output is [images][P][Q][filters], otherwise [images][filters][P][Q]
#define SLICED 0
#include "kernels/conv/conv_winograd.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  uint items;  // filters * count
  uint filters, P, Q;
  uint tiles_y, tiles_x;     // of an image
  uint first, count, pitch;  // tiles
} push;
TUFF_READ(0, Sums, float, 4)
#include "kernels/conv/conv_store.glsl"

layout(local_size_x_id = 0) in;

void main() {
  const uint item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (item >= push.items) return;
#if CHANNELS_LAST
  const uint tile = quotient(item, push.filters), k = item - tile * push.filters;
  const uint from = item, plane = push.items;
#else
  const uint k = quotient(item, push.count), tile = item - k * push.count;
  const uint from = k * push.pitch + tile, plane = push.filters * push.pitch;
#endif
  TUFF_POINTER(Sums, sums_pointer, from);
  float columns[SPAN][TILE];
  [[unroll]] for (uint j = 0; j < SPAN; ++j) {
    float sums[SPAN];
    [[unroll]] for (uint i = 0; i < SPAN; ++i) sums[i] = TUFF_FROM(Sums, sums_pointer, (i * SPAN + j) * plane);
    output_line(sums, columns[j]);
  }
  const Place place = tile_place(push.first + tile, push.tiles_y, push.tiles_x);
  const uint P = push.P, Q = push.Q;
#if CHANNELS_LAST
  const TUFF_INDEX image = TUFF_INDEX(place.image) * P * Q * push.filters + k, step = push.filters;
#else
  const TUFF_INDEX image = (TUFF_INDEX(place.image) * push.filters + k) * P * Q, step = 1;
#endif
  const float bias = bias_of(k);
  TUFF_POINTER(Output, output_pointer, 0);
  [[unroll]] for (uint i = 0; i < TILE; ++i) {
    float row[SPAN], outputs[TILE];
    [[unroll]] for (uint j = 0; j < SPAN; ++j) row[j] = columns[j][i];
    output_line(row, outputs);
    const uint y = place.y + i;
    [[unroll]] for (uint j = 0; j < TILE; ++j) {
      const uint x = place.x + j;
      if (y < P && x < Q) {
        const TUFF_INDEX at = image + (TUFF_INDEX(y) * Q + x) * step;
        CONV_STORE(output_pointer, at, outputs[j], bias);
      }
    }
  }
}
