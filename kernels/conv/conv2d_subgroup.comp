// conv2d by an implicit GEMM in the registers of one subgroup: for devices that run on a processor, where
// shared memory and barriers cost as much as any other memory, and a broadcast from a known lane is free.
//
// A workgroup is one subgroup. It makes FILTER_BLOCKS * width filters x PIXEL_BLOCKS * width columns
// (width = the subgroup's size): lane i holds columns i, i + width, …; of each tap it loads one value for each
// of its columns and, for the filters i, i + width, …, one filter value, which is broadcast to all.
//
// Defines: WIDTH          the subgroup's size
//          PIXEL_BLOCKS   1 to 8
//          FILTER_BLOCKS  1 to 4
//          TAP_MASK       1: R*S <= 32, so a column keeps one bit for each tap of a channel that lies inside
//          VEC_FILTER     1: four taps at once: filter rows can be read as vec4 (taps % 4 == 0, 16-byte alignment)
#include "kernels/conv/conv2d_params.glsl"
TUFF_READ(0, Input, float, 4)
TUFF_READ(1, Filter, float, 4)
TUFF_READ(1, Filter4, vec4, 16)
TUFF_WRITE(2, Output, float, 4)

layout(local_size_x = WIDTH) in;

#if VEC_FILTER
#define TAPS_AT_ONCE 4
#else
#define TAPS_AT_ONCE 1
#endif

void main() {
  uint group = tuff_group();
  uint filter0 = (group % push.filter_tiles) * (FILTER_BLOCKS * WIDTH);
  TUFF_INDEX column0 = TUFF_INDEX(group / push.filter_tiles) * (PIXEL_BLOCKS * WIDTH);
  if (column0 >= columns()) return;
  uint lane = gl_SubgroupInvocationID;

  TUFF_INDEX base[PIXEL_BLOCKS];
#if TAP_MASK
  uint inside[PIXEL_BLOCKS];
#else
  uvec2 yx[PIXEL_BLOCKS];
#endif
  [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) {
    TUFF_INDEX column = column0 + j * WIDTH + lane;
    bool exists = column < columns();
    Column source = column_at(exists ? column : column0);
    base[j] = source.input_base;
#if TAP_MASK
    uint bits = 0, bit = 1;
    [[dont_unroll]] for (uint dy = 0, i = 0; i < push.RS; dy += push.dilation_y) {
      [[dont_unroll]] for (uint s = 0, dx = 0; s < push.S; ++s, ++i, dx += push.dilation_x, bit <<= 1) {
        bits |= exists && source.y + dy < push.H && source.x + dx < push.W ? bit : 0u;
      }
    }
    inside[j] = bits;
#else
    yx[j] = uvec2(exists ? source.y : 0x60000000u, source.x);  // beyond every extent
#endif
  }
  TUFF_INDEX filter_base[FILTER_BLOCKS];
  [[unroll]] for (int i = 0; i < FILTER_BLOCKS; ++i) {
    filter_base[i] = TUFF_INDEX(min(filter0 + i * WIDTH + lane, push.K - 1)) * push.taps;
  }

  float sums[FILTER_BLOCKS * WIDTH][PIXEL_BLOCKS];
  [[unroll]] for (int i = 0; i < FILTER_BLOCKS * WIDTH; ++i) {
    [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) sums[i][j] = 0.0;
  }

  // The current tap: s and the tap within its channel; where it reads, and whether that is inside.
  uint s = 0, rs = 0, dy = 0, dx = 0;
  TUFF_INDEX channel = 0;
  [[dont_unroll]] for (uint tap = 0; tap < push.taps; tap += TAPS_AT_ONCE) {
#if VEC_FILTER
    vec4 weight[FILTER_BLOCKS];
    [[unroll]] for (int i = 0; i < FILTER_BLOCKS; ++i) weight[i] = TUFF_AT(Filter4, (filter_base[i] + tap) / 4);
#else
    float weight[FILTER_BLOCKS][1];
    [[unroll]] for (int i = 0; i < FILTER_BLOCKS; ++i) weight[i][0] = TUFF_AT(Filter, filter_base[i] + tap);
#endif
    [[unroll]] for (int e = 0; e < TAPS_AT_ONCE; ++e) {
      TUFF_INDEX offset = channel + TUFF_INDEX(dy) * push.W + dx;
      float pixel[PIXEL_BLOCKS];
      [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) {
#if TAP_MASK
        bool valid = (inside[j] >> rs & 1u) != 0;
#else
        bool valid = yx[j].x + dy < push.H && yx[j].y + dx < push.W;
#endif
        float value = TUFF_AT(Input, valid ? base[j] + offset : TUFF_INDEX(0));
        pixel[j] = valid ? value : 0.0;
      }
      [[unroll]] for (int i = 0; i < FILTER_BLOCKS * WIDTH; ++i) {
        float w = subgroupBroadcast(weight[i / WIDTH][e], i % WIDTH);
        [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) sums[i][j] = fma(w, pixel[j], sums[i][j]);
      }
      // The next tap, without branches.
      s += 1;
      rs += 1;
      dx += push.dilation_x;
      bool row_ends = s == push.S, channel_ends = rs == push.RS;
      dy = channel_ends ? 0 : row_ends ? dy + push.dilation_y : dy;
      dx = row_ends ? 0 : dx;
      s = row_ends ? 0 : s;
      rs = channel_ends ? 0 : rs;
      channel += channel_ends ? TUFF_INDEX(push.H) * push.W : TUFF_INDEX(0);
    }
  }

  TUFF_INDEX image_pixels = TUFF_INDEX(push.P) * push.Q;
  [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) {
    TUFF_INDEX column = column0 + j * WIDTH + lane;
    if (column < columns()) {
      TUFF_INDEX at = column_at(column).output_base + filter0 * image_pixels;
      [[unroll]] for (int i = 0; i < FILTER_BLOCKS * WIDTH; ++i) {
        if (filter0 + i < push.K) TUFF_AT(Output, at + i * image_pixels) = sums[i][j];
      }
    }
  }
}
