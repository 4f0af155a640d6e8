// conv2d by an implicit GEMM in the registers of one subgroup: for devices that run on a processor, where
// shared memory and barriers cost as much as any other memory.
//
// A workgroup is one subgroup. It makes FILTER_BLOCKS * WIDTH filters x PIXEL_BLOCKS * WIDTH columns: lane i
// holds columns i, i + WIDTH, …. For four taps at a time it loads the pixels of its columns and the weights of
// the filters i, i + WIDTH, …, which reach the other lanes by a shuffle from a known lane: one instruction,
// where subgroupBroadcast is a loop over the lanes on Mesa 22.3. A load is a gather and costs as much as a
// dozen products; one of 8 bytes costs no more than one of 4, hence PAIRS.
//
// Defines: WIDTH          the subgroup's size
//          PIXEL_BLOCKS   1 to 8
//          FILTER_BLOCKS  1 to 4
//          TAP_MASK       1: R*S <= 32, so a column keeps one bit for each tap of a channel that lies inside
//          VEC_FILTER     1: filter rows can be read as vec4 (taps % 4 == 0, 16-byte alignment)
//          TAIL           1: taps % 4 != 0
//          PAIRS          1: two elements are loaded as one 64-bit number
//          PIECES         1: see conv2d_params.glsl; a piece is a multiple of 4 taps
#if PAIRS
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#include "kernels/conv/conv2d_params.glsl"
#include "kernels/common/pointer.glsl"
TUFF_READ(0, Input, float, 4)
TUFF_READ(1, Filter, float, 4)
#if PAIRS
TUFF_READ(1, Filter4, u64vec2, 16)
vec4 unpack(u64vec2 pairs) { return vec4(uintBitsToFloat(unpack32(pairs.x)), uintBitsToFloat(unpack32(pairs.y))); }
#else
TUFF_READ(1, Filter4, vec4, 16)
vec4 unpack(vec4 vector) { return vector; }
#endif
TUFF_OUTPUT(2, Output, float, 4)

layout(local_size_x = WIDTH) in;

void main() {
  uint group = tuff_group();
  uint filter0 = (group % push.filter_tiles) * (FILTER_BLOCKS * WIDTH);
  TUFF_INDEX column0 = TUFF_INDEX(group / push.filter_tiles) * (PIXEL_BLOCKS * WIDTH), column_count = columns();
  if (column0 >= column_count) return;
  uint lane = gl_SubgroupInvocationID;

  // Whatever the loops need, read once.
  const uint filters = push.K, taps = push.taps, tap_end = push.tap_end, height = push.H, width = push.W, S = push.S, RS = push.RS;
  const uint dilation_y = push.dilation_y, dilation_x = push.dilation_x;
  const TUFF_INDEX channel_pixels = TUFF_INDEX(height) * width;
  TUFF_POINTER(Input, input_pointer, 0);
  TUFF_POINTER(Filter, filter_pointer, 0);
  TUFF_POINTER(Filter4, filter4_pointer, 0);

  TUFF_INDEX base[PIXEL_BLOCKS];
#if TAP_MASK
  uint inside[PIXEL_BLOCKS];
#else
  uvec2 yx[PIXEL_BLOCKS];
#endif
  [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) {
    TUFF_INDEX column = column0 + j * WIDTH + lane;
    bool exists = column < column_count;
    Column source = column_at(exists ? column : column0);
    base[j] = source.input_base;
#if TAP_MASK
    uint bits = 0, bit = 1;
    [[dont_unroll]] for (uint dy = 0, i = 0; i < RS; dy += dilation_y) {
      [[dont_unroll]] for (uint s = 0, dx = 0; s < S; ++s, ++i, dx += dilation_x, bit <<= 1) {
        bits |= exists && source.y + dy < height && source.x + dx < width ? bit : 0u;
      }
    }
    inside[j] = bits;
#else
    yx[j] = uvec2(exists ? source.y : 0x60000000u, source.x);  // beyond every extent
#endif
  }
  TUFF_INDEX filter_base[FILTER_BLOCKS];
  [[unroll]] for (int i = 0; i < FILTER_BLOCKS; ++i) {
    filter_base[i] = TUFF_INDEX(min(filter0 + i * WIDTH + lane, filters - 1)) * taps;
  }

  float sums[FILTER_BLOCKS * WIDTH][PIXEL_BLOCKS];
  [[unroll]] for (int i = 0; i < FILTER_BLOCKS * WIDTH; ++i) {
    [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) sums[i][j] = 0.0;
  }

  const TUFF_INDEX image_pixels = TUFF_INDEX(push.P) * push.Q;
  TUFF_POINTER(Output, output_pointer, 0);

  // The current tap: s and its number within the channel; how far from a patch's start it reads.
#if PIECES
  uint c = divide(FIRST_TAP, push.rs_multiplier, push.rs_shift);
  uint rs = FIRST_TAP - c * RS;
  uint r = divide(rs, push.s_multiplier, push.s_shift);
  uint s = rs - r * S;
  uint dy = r * dilation_y, dx = s * dilation_x;
  TUFF_INDEX channel = c * channel_pixels;
  if (FIRST_TAP > 0) {
    [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) {
      TUFF_INDEX column = column0 + j * WIDTH + lane;
      if (column < column_count) {
        TUFF_INDEX at = column_at(column).output_base + filter0 * image_pixels;
        [[unroll]] for (int i = 0; i < FILTER_BLOCKS * WIDTH; ++i) {
          if (filter0 + i < filters) sums[i][j] = TUFF_FROM(Output, output_pointer, at + i * image_pixels);
        }
      }
    }
  }
#else
  uint s = 0, rs = 0, dy = 0, dx = 0;
  TUFF_INDEX channel = 0;
#endif
  [[dont_unroll]] for (uint tap = FIRST_TAP; tap < tap_end; tap += 4) {
    vec4 weight[FILTER_BLOCKS];
    [[unroll]] for (int i = 0; i < FILTER_BLOCKS; ++i) {
#if VEC_FILTER
      weight[i] = unpack(TUFF_FROM(Filter4, filter4_pointer, (filter_base[i] + tap) / 4));
#elif TAIL
      [[unroll]] for (uint e = 0; e < 4; ++e) {
        weight[i][e] = TUFF_FROM(Filter, filter_pointer, filter_base[i] + min(tap + e, taps - 1));
      }
#else
      [[unroll]] for (uint e = 0; e < 4; ++e) weight[i][e] = TUFF_FROM(Filter, filter_pointer, filter_base[i] + tap + e);
#endif
    }
    float pixel[PIXEL_BLOCKS][4];
    [[unroll]] for (int e = 0; e < 4; ++e) {
      TUFF_INDEX offset = channel + TUFF_INDEX(dy) * width + dx;
      [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) {
#if TAP_MASK
        bool valid = (inside[j] & (1u << rs)) != 0;
#else
        bool valid = yx[j].x + dy < height && yx[j].y + dx < width;
#endif
#if TAIL
        valid = valid && tap + e < taps;
#endif
        float value = TUFF_FROM(Input, input_pointer, valid ? base[j] + offset : TUFF_INDEX(0));
        pixel[j][e] = valid ? value : 0.0;
      }
      // The next tap, without branches.
      s += 1;
      rs += 1;
      dx += dilation_x;
      bool row_ends = s == S, channel_ends = rs == RS;
      dy = channel_ends ? 0 : row_ends ? dy + dilation_y : dy;
      dx = row_ends ? 0 : dx;
      s = row_ends ? 0 : s;
      rs = channel_ends ? 0 : rs;
      channel += channel_ends ? channel_pixels : TUFF_INDEX(0);
    }
    [[unroll]] for (int i = 0; i < FILTER_BLOCKS * WIDTH; ++i) {
      [[unroll]] for (int e = 0; e < 4; ++e) {
        float w = subgroupShuffle(weight[i / WIDTH][e], i % WIDTH);
        [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) sums[i][j] = fma(w, pixel[j][e], sums[i][j]);
      }
    }
  }

  [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) {
    TUFF_INDEX column = column0 + j * WIDTH + lane;
    if (column < column_count) {
      TUFF_INDEX at = column_at(column).output_base + filter0 * image_pixels;
      [[unroll]] for (int i = 0; i < FILTER_BLOCKS * WIDTH; ++i) {
        if (filter0 + i < filters) TUFF_FROM(Output, output_pointer, at + i * image_pixels) = sums[i][j];
      }
    }
  }
}
