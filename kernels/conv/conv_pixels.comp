// Copies an image so that its channels are contiguous, with its padding around it and zeros after its last channel, for
// implicit GEMM with windows (gemm_matrix.comp): [images][channels][H][W], or with CHANNELS_LAST
// [images][H][W][channels], becomes [images][all_H][all_W][all_channels]. Every every_y-th row and every_x-th pixel of
// the image is copied. A filter, whose images are the output channels and which has no padding, is copied likewise.
//
// A workgroup takes 64 pixels and 64 channels of an image. Channels that are not contiguous pass through shared memory,
// two in a word, so that neighbouring invocations read along a row and write whole pieces of 16 bytes.
//
// all_channels is a multiple of 8.
//# DENSE : 0|1 : 1: all pixels are copied without padding, at most 64 per image, not CHANNELS_LAST (a filter)
// With DENSE a workgroup takes all pixels of an image, so that none of its lanes is idle.
#include "kernels/conv/conv_pixels_common.glsl"

#define PIXELS 64
#define PAIRS 32
#define PITCH (PAIRS + 1)
#if CHANNELS_LAST == 0
shared uint pairs[PIXELS * PITCH];
#endif

void main() {
  const uint group = tuff_group(), tiles = push.pixel_tiles * push.channel_tiles;
  const uint image = group / tiles, within = group - image * tiles;
  if (image >= push.images) return;
  const uint channel_tile = within / push.pixel_tiles;
  const uint pixel0 = (within - channel_tile * push.pixel_tiles) * PIXELS, channel0 = channel_tile * 2 * PAIRS;
  const uint all_pixels = push.all_H * push.all_W, id = gl_LocalInvocationIndex;
  const uint channels = push.channels;
#if DENSE
  for (uint v = id; v < PAIRS * all_pixels; v += 256) {
    const uint pair = v / all_pixels, pixel = v - pair * all_pixels, c = channel0 + 2 * pair;
    const TUFF_INDEX at = (TUFF_INDEX(image) * channels + c) * all_pixels + pixel;
    const uint low = c < channels ? uint(TUFF_AT(From, at)) : 0u;
    const uint high = c + 1 < channels ? uint(TUFF_AT(From, at + all_pixels)) : 0u;
    pairs[pixel * PITCH + pair] = low | high << 16;
  }
  barrier();
#elif CHANNELS_LAST == 0
  {
    const uint pixel = pixel0 + id % PIXELS, row = pixel / push.all_W;
    const int y = int(row * push.every_y) - push.first_y;
    const int x = int((pixel - row * push.all_W) * push.every_x) - push.first_x;
    const bool inside = uint(y) < push.H && uint(x) < push.W;
    const TUFF_INDEX plane = TUFF_INDEX(push.H) * push.W;
    const TUFF_INDEX at = TUFF_INDEX(image) * channels * plane + (inside ? uint(y) * push.W + uint(x) : 0u);
    [[unroll]] for (uint pair = id / PIXELS; pair < PAIRS; pair += 256 / PIXELS) {
      const uint c = channel0 + 2 * pair;
      const uint low = inside && c < channels ? uint(TUFF_AT(From, at + c * plane)) : 0u;
      const uint high = inside && c + 1 < channels ? uint(TUFF_AT(From, at + (c + 1) * plane)) : 0u;
      pairs[id % PIXELS * PITCH + pair] = low | high << 16;
    }
  }
  barrier();
#endif
  [[unroll]] for (uint v = id; v < PIXELS * PAIRS / 4; v += 256) {
    const uint pixel = pixel0 + v / (PAIRS / 4), piece = v % (PAIRS / 4), channel = channel0 + piece * 8;
    if (pixel >= all_pixels || channel >= push.all_channels) continue;
    uvec4 words = uvec4(0);
#if CHANNELS_LAST
    const uint row = pixel / push.all_W;
    const int y = int(row * push.every_y) - push.first_y;
    const int x = int((pixel - row * push.all_W) * push.every_x) - push.first_x;
    if (uint(y) < push.H && uint(x) < push.W) {
      const TUFF_INDEX at = ((TUFF_INDEX(image) * push.H + uint(y)) * push.W + uint(x)) * channels + channel;
      [[unroll]] for (uint e = 0; e < 8; ++e) {
        if (channel + e < channels) words[e / 2] |= uint(TUFF_AT(From, at + e)) << (e % 2 * 16);
      }
    }
#else
    [[unroll]] for (uint w = 0; w < 4; ++w) words[w] = pairs[v / (PAIRS / 4) * PITCH + piece * 4 + w];
#endif
    TUFF_AT(To, ((TUFF_INDEX(image) * all_pixels + pixel) * push.all_channels + channel) / 8) = words;
  }
}
