// Convolution by implicit GEMM in the registers of one subgroup. For CPU devices, where shared memory and barriers cost
// as much as any other memory.
//
// A workgroup is one subgroup. It computes FILTER_BLOCKS * WIDTH filters x PIXEL_BLOCKS * WIDTH columns of a group:
// lane i holds columns i, i + WIDTH, …. For four taps at a time it loads the pixels of its columns, and the weights of
// filters i, i + WIDTH, …, which are passed to the other lanes by a shuffle from a known lane. That is one instruction,
// whereas subgroupBroadcast is a loop over the lanes on Mesa 22.3. A load is a gather that costs as much as a dozen
// multiply-adds; loading 8 bytes costs no more than loading 4, hence PAIRS.
//
//# WIDTH : 1..128 : subgroup size
//# PIXEL_BLOCKS : 1..8 : columns of a workgroup, in units of WIDTH
//# FILTER_BLOCKS : 1..4 : filters of a workgroup, in units of WIDTH
//# VEC_FILTER : 0|1 : 1: filter rows can be read as vec4 of taps (taps % 4 == 0, and alignment)
//# VEC_CHANNELS : 0|1 : 1: the input can be read as vec4 (CHANNELS_LAST, channels of a group % 4 == 0, and alignment)
//# TAIL : 0|1 : 1: taps % 4 != 0
#define PATCHES 0
#include "kernels/conv/conv_params.glsl"
#include "kernels/conv/conv_walk.glsl"
#include "kernels/conv/conv_store.glsl"

layout(local_size_x = WIDTH) in;

const uint FILTERS = FILTER_BLOCKS * WIDTH;

void main() {
  const Part part = this_part(FILTERS, PIXEL_BLOCKS * WIDTH);
  if (!part.exists) return;
  uint lane = gl_SubgroupInvocationID;

  // Parameters that the loops need, read once.
  const uint filters = push.filters, taps = push.channels * CONV_T * push.R * push.S, column_count = push.columns;
  TUFF_POINTER(Input, input_pointer, 0);
  TUFF_POINTER(Input4, input4_pointer, 0);
  TUFF_POINTER(Filter, filter_pointer, 0);
  TUFF_POINTER(Filter4, filter4_pointer, 0);

  TUFF_INDEX base[PIXEL_BLOCKS], out_base[PIXEL_BLOCKS];
  WINDOW window[PIXEL_BLOCKS];
  [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) {
    uint column = part.column0 + j * WIDTH + lane;
    bool exists = column < column_count;
    Column source = column_at(exists ? column : part.column0, part.group);
    base[j] = source.input_base;
    out_base[j] = source.output_base;
    window[j] = window_of(source);
    if (!exists) window[j] = NO_WINDOW;
  }
  TUFF_INDEX filter_base[FILTER_BLOCKS];
  [[unroll]] for (int i = 0; i < FILTER_BLOCKS; ++i) {
    filter_base[i] =
        (TUFF_INDEX(part.group) * filters + min(part.filter0 + i * WIDTH + lane, filters - 1)) * taps;
  }

  float sums[FILTERS][PIXEL_BLOCKS];
  [[unroll]] for (int i = 0; i < FILTERS; ++i) {
    [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) sums[i][j] = 0.0;
  }

  Walk walk = walk_from(part.tap_begin);
  [[dont_unroll]] for (uint tap = part.tap_begin; tap < part.tap_end; tap += 4) {
    vec4 weight[FILTER_BLOCKS];
    [[unroll]] for (int i = 0; i < FILTER_BLOCKS; ++i) {
#if VEC_FILTER
      weight[i] = GEMM_UNPACK(TYPE, TUFF_FROM(Filter4, filter4_pointer, (filter_base[i] + tap) / 4));
#else
      [[unroll]] for (uint e = 0; e < 4; ++e) {
#if TAIL
        weight[i][e] = TUFF_LOADED(TYPE, TUFF_FROM(Filter, filter_pointer, filter_base[i] + min(tap + e, taps - 1)));
#else
        weight[i][e] = TUFF_LOADED(TYPE, TUFF_FROM(Filter, filter_pointer, filter_base[i] + tap + e));
#endif
      }
#endif
    }
    vec4 pixel[PIXEL_BLOCKS];
#if VEC_CHANNELS
#define STEPS 1
#else
#define STEPS 4
#endif
    [[unroll]] for (int e = 0; e < STEPS; ++e) {
      const TUFF_INDEX offset = walk_offset(walk);
      const TAP place = tap_of(walk.t, walk.r, walk.s);
      [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) {
        bool valid = is_inside(window[j], place);
#if TAIL
        valid = valid && tap + e < taps;
#endif
#if VEC_CHANNELS
        vec4 value =
            GEMM_UNPACK(TYPE, TUFF_FROM(Input4, input4_pointer, valid ? (base[j] + offset) / 4 : TUFF_INDEX(0)));
        pixel[j] = valid ? value : vec4(0);
#else
        float value = TUFF_LOADED(TYPE, TUFF_FROM(Input, input_pointer, valid ? base[j] + offset : TUFF_INDEX(0)));
        pixel[j][e] = valid ? value : 0.0;
#endif
      }
      walk_on(walk, 4 / STEPS);
    }
    [[unroll]] for (int i = 0; i < FILTERS; ++i) {
      [[unroll]] for (int e = 0; e < 4; ++e) {
        float w = subgroupShuffle(weight[i / WIDTH][e], i % WIDTH);
        [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) sums[i][j] = fma(w, pixel[j][e], sums[i][j]);
      }
    }
  }

  TUFF_POINTER(Output, output_pointer, 0);
  const TUFF_INDEX distance = filter_distance();
  const TUFF_INDEX slice_base = slice_start(part.slice);
  [[unroll]] for (int i = 0; i < FILTERS; ++i) {
    const uint k = part.filter0 + i;
    if (k < filters) {
      const float bias = bias_of(part.group * filters + k);
      [[unroll]] for (int j = 0; j < PIXEL_BLOCKS; ++j) {
        if (part.column0 + j * WIDTH + lane < column_count) {
          const TUFF_INDEX at = slice_base + out_base[j] + k * distance;
          CONV_STORE(output_pointer, at, sums[i][j], bias);
        }
      }
    }
  }
}
