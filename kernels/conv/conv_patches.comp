// Stores the patches of one group of a convolution as a matrix of f32, or of the input's type: row `tap` holds the input elements of that tap
// for a range of columns, and zeros outside the input. For devices on which GEMM is so much faster than implicit GEMM
// that the round trip through memory pays (conv_patches_vulkan.cpp).
//
// An invocation writes RUN rows of four neighbouring columns.
//
// The group is the one that starts at the input's first channel.
//# VEC_CHANNELS : 0|1 : 1: the input can be read as vec4 of channels
//# STORED16 : 0|1 : 1: the patches are stored in TYPE, which has 16 bits; 0: in f32
#define PATCHES 1
#define SLICED 0
#include "kernels/conv/conv_params.glsl"
#include "kernels/conv/conv_walk.glsl"
#include "kernels/common/pointer.glsl"
#if STORED16
TUFF_WRITE(2, Patches4, GEMM_RAW(TYPE), 8)
#if PAIRS
uint64_t packed_four(vec4 x) { return pack64(TUFF_PACKED(TYPE, x)); }
#else
uvec2 packed_four(vec4 x) { return TUFF_PACKED(TYPE, x); }
#endif
#else
TUFF_WRITE(2, Patches4, GEMM_FOUR, 16)
#if PAIRS
u64vec2 packed_four(vec4 x) { return u64vec2(pack64(floatBitsToUint(x.xy)), pack64(floatBitsToUint(x.zw))); }
#else
vec4 packed_four(vec4 x) { return x; }
#endif
#endif

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint RUN = 4;

void main() {
  const uint lanes = gl_WorkGroupSize.x, vec4s = (push.column_count + 3) / 4;
  const uint parts = (vec4s + lanes - 1) / lanes;
  const uint number = tuff_group(), part = number / parts;
  const uint four = (number - part * parts) * lanes + gl_LocalInvocationID.x;
  const uint taps = push.channels * CONV_T * push.R * push.S;
  const uint tap0 = part * RUN;
  if (four >= vec4s || tap0 >= taps) return;
  TUFF_INDEX base[4];
  WINDOW window[4];
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    const uint column = push.first_column + four * 4 + j;
    const bool exists = column < push.columns;
    const Column source = column_at(exists ? column : 0, 0);
    base[j] = source.input_base;
    window[j] = window_of(source);
    if (!exists) window[j] = NO_WINDOW;
  }
  const uint tap_end = min(tap0 + RUN, taps);
  TUFF_POINTER(Input, input_pointer, 0);
  TUFF_POINTER(Input4, input4_pointer, 0);
  TUFF_POINTER(Patches4, patches_pointer, 0);
  Walk walk = walk_from(tap0);
#if VEC_CHANNELS
  [[dont_unroll]] for (uint tap = tap0; tap < tap_end; tap += 4) {
    const TAP place = tap_of(walk.t, walk.r, walk.s);
    const TUFF_INDEX offset = walk_offset(walk);
    mat4 values;  // a column of the patches in each
    [[unroll]] for (int j = 0; j < 4; ++j) {
      const bool valid = is_inside(window[j], place);
      const vec4 value =
          GEMM_UNPACK(TYPE, TUFF_FROM(Input4, input4_pointer, valid ? (base[j] + offset) / 4 : TUFF_INDEX(0)));
      values[j] = valid ? value : vec4(0);
    }
    [[unroll]] for (int e = 0; e < 4; ++e) {
      TUFF_FROM(Patches4, patches_pointer, TUFF_INDEX(tap + e) * vec4s + four) =
          packed_four(vec4(values[0][e], values[1][e], values[2][e], values[3][e]));
    }
    walk_on(walk, 4);
  }
#else
  [[dont_unroll]] for (uint tap = tap0; tap < tap_end; ++tap) {
    const TAP place = tap_of(walk.t, walk.r, walk.s);
    const TUFF_INDEX offset = walk_offset(walk);
    vec4 values;
    [[unroll]] for (int j = 0; j < 4; ++j) {
      const bool valid = is_inside(window[j], place);
      const float value =
          TUFF_LOADED(TYPE, TUFF_FROM(Input, input_pointer, valid ? base[j] + offset : TUFF_INDEX(0)));
      values[j] = valid ? value : 0.0;
    }
    TUFF_FROM(Patches4, patches_pointer, TUFF_INDEX(tap) * vec4s + four) = packed_four(values);
    walk_on(walk, 1);
  }
#endif
}
