// The same as conv_pixels.comp for pixels of four channels: an invocation writes two pixels, 16 bytes.
//
// all_channels is 4, and all_W is even.
#include "kernels/conv/conv_pixels_common.glsl"

void main() {
  const uint group = tuff_group(), image = group / push.pixel_tiles;
  if (image >= push.images) return;
  const uint pair = (group - image * push.pixel_tiles) * 256 + gl_LocalInvocationIndex, pixel = 2 * pair;
  const uint all_pixels = push.all_H * push.all_W, row = pixel / push.all_W, H = push.H, W = push.W;
  if (pixel >= all_pixels) return;
  const uint channels = push.channels, y = row * push.every_y - uint(push.first_y);
  uvec4 words = uvec4(0);
  [[unroll]] for (uint p = 0; p < 2; ++p) {
    const uint x = (pixel - row * push.all_W + p) * push.every_x - uint(push.first_x);
    if (y < H && x < W) {
      const TUFF_INDEX at = CHANNELS_LAST != 0 ? ((TUFF_INDEX(image) * H + y) * W + x) * channels
                                               : (TUFF_INDEX(image) * channels * H + y) * W + x;
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        if (c < channels) {
          const TUFF_INDEX next = CHANNELS_LAST != 0 ? TUFF_INDEX(c) : TUFF_INDEX(c) * H * W;
          words[p * 2 + c / 2] |= uint(TUFF_AT(From, at + next)) << (c % 2 * 16);
        }
      }
    }
  }
  TUFF_AT(To, (TUFF_INDEX(image) * all_pixels + pixel) / 2) = words;
}
