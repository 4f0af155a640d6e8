// Transforms a range of an input's tiles for Winograd's minimal filtering, into the order of its GEMMs:
// [SPAN * SPAN][channels][pitch of tiles], or with CHANNELS_LAST [SPAN * SPAN][tiles][channels].
//
//# TYPE : 1..3 : TUFF_* type of the input
//# CHANNELS_LAST : 0|1 : 1: the input is [images][H][W][channels], otherwise [images][channels][H][W]
#include "kernels/conv/conv_winograd.glsl"
#include "kernels/common/pointer.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint items;  // channels * count
  uint channels, H, W;
  uint tiles_y, tiles_x;       // of an image
  uint first, count, pitch;    // tiles
  int pad_y, pad_x;
} push;
TUFF_READ(0, Input, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_WRITE(1, Tiles, float, 4)

layout(local_size_x_id = 0) in;

void main() {
  const uint item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (item >= push.items) return;
#if CHANNELS_LAST
  const uint tile = quotient(item, push.channels), c = item - tile * push.channels;
  const uint to = item, plane = push.items;
#else
  const uint c = quotient(item, push.count), tile = item - c * push.count;
  const uint to = c * push.pitch + tile, plane = push.channels * push.pitch;
#endif
  const Place place = tile_place(push.first + tile, push.tiles_y, push.tiles_x);
  // Negative coordinates wrap around.
  const uint H = push.H, W = push.W, y0 = place.y - uint(push.pad_y), x0 = place.x - uint(push.pad_x);
#if CHANNELS_LAST
  const TUFF_INDEX image = TUFF_INDEX(place.image) * H * W * push.channels + c, step = push.channels;
#else
  const TUFF_INDEX image = (TUFF_INDEX(place.image) * push.channels + c) * H * W, step = 1;
#endif
  TUFF_POINTER(Input, input_pointer, 0);
  float values[SPAN][SPAN];
  [[unroll]] for (uint i = 0; i < SPAN; ++i) {
    const uint y = y0 + i;
    const TUFF_INDEX row = image + TUFF_INDEX(y) * W * step;
    [[unroll]] for (uint j = 0; j < SPAN; ++j) {
      const uint x = x0 + j;
      const bool inside = y < H && x < W;
      const float value = TUFF_LOADED(TYPE, TUFF_FROM(Input, input_pointer, inside ? row + x * step : TUFF_INDEX(0)));
      values[i][j] = inside ? value : 0.0;
    }
    input_line(values[i]);
  }
  TUFF_POINTER(Tiles, tiles_pointer, to);
  [[unroll]] for (uint j = 0; j < SPAN; ++j) {
    float column[SPAN];
    [[unroll]] for (uint i = 0; i < SPAN; ++i) column[i] = values[i][j];
    input_line(column);
    [[unroll]] for (uint i = 0; i < SPAN; ++i) TUFF_FROM(Tiles, tiles_pointer, (i * SPAN + j) * plane) = column[i];
  }
}
