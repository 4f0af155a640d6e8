// Depthwise convolution: each filter reads one channel; filter k reads channel k / multiplier.
//
// An invocation computes VY x VX neighbouring outputs of one filter, or with VEC of four filters, in registers. If taps
// and stride are known (FIXED), an input row is loaded once for all outputs that read it. Neighbouring invocations are
// adjacent along a row of the image, or with CHANNELS_LAST along the channels.
//
//# CHANNELS_LAST : 0|1 : 1: the tensors are N, H, W, C and the filters K, R, S
//# FIXED : 0|1 : 1: the dilation is 1, and the next three defines give taps and stride
//# TAPS_Y = 0 : 0..7 : R, if FIXED
//# TAPS_X = 0 : 0..7 : S, if FIXED
//# STRIDE = 0 : 0..2 : if FIXED, the horizontal stride and, with VY above 1, the vertical one
//# VX : 1..8 : neighbouring outputs of an invocation along a row
//# VY : 1..8 : neighbouring outputs of an invocation along a column
//# VEC : 0|1 : 1: an invocation takes four filters: CHANNELS_LAST, multiplier 1, channels % 4 == 0, and alignment
#define SUM_TYPE 1
#define SLICED 0
#include "kernels/gemm/common/gemm_stored.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  uint items;             // invocations with work, below 2^31
  uint channels, filters;
  uint P, Q, H, W, R, S;
  uint stride, dilation;  // vertical, and horizontal << 16
  int pad_y, pad_x;
} push;

TUFF_READ(0, Input, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(0, Input4, GEMM_RAW(TYPE), GEMM_RAW_BYTES(TYPE))
TUFF_READ(1, Filter, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
#include "kernels/conv/conv_numbers.glsl"
#include "kernels/conv/conv_store.glsl"

layout(local_size_x_id = 0) in;

#if VEC
#define NUMBERS vec4
#define LANES 4
#else
#define NUMBERS float
#define LANES 1
#endif

void main() {
  const uint item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (item >= push.items) return;
  const uint strips_x = (push.Q + VX - 1) / VX, strips_y = (push.P + VY - 1) / VY;
#if CHANNELS_LAST
  const uint quads = push.filters / LANES;
  uint rest = quotient(item, quads);
  const uint k = (item - rest * quads) * LANES;
  uint row = quotient(rest, strips_x);
  const uint q0 = (rest - row * strips_x) * VX;
  const uint n = quotient(row, strips_y);
#else
  uint row = quotient(item, strips_x);
  const uint q0 = (item - row * strips_x) * VX;
  const uint plane = quotient(row, strips_y);
  const uint n = quotient(plane, push.filters), k = plane - n * push.filters;
  const uint quads = 1;
#endif
#if CHANNELS_LAST
  const uint p0 = (row - n * strips_y) * VY;
#else
  const uint p0 = (row - plane * strips_y) * VY;
#endif
  const uint channel = VEC == 1 ? k : quotient(k, push.filters / push.channels);
  const uint H = push.H, W = push.W;
#if FIXED
  const uint R = TAPS_Y, S = TAPS_X, stride_x = STRIDE;
#else
  const uint R = push.R, S = push.S, stride_x = high(push.stride);
#endif
#if FIXED && VY > 1
  const uint stride_y = STRIDE;
#else
  const uint stride_y = low(push.stride);
#endif
  const uint y0 = p0 * stride_y - uint(push.pad_y), x0 = q0 * stride_x - uint(push.pad_x);
#if CHANNELS_LAST
  const TUFF_INDEX pixel = push.channels, first = TUFF_INDEX(n) * H * W * push.channels + channel;
#else
  const TUFF_INDEX pixel = 1, first = TUFF_INDEX(n * push.channels + channel) * H * W;
#endif
  TUFF_POINTER(Input, input_pointer, 0);
  TUFF_POINTER(Input4, input4_pointer, 0);
  TUFF_POINTER(Filter, filter_pointer, 0);
#if VEC
#define LOAD(at) GEMM_UNPACK(TYPE, TUFF_FROM(Input4, input4_pointer, (at) / 4))
#define WEIGHT(rs)                                                              \
  vec4(TUFF_LOADED(TYPE, TUFF_FROM(Filter, filter_pointer, k * taps + (rs))),       \
       TUFF_LOADED(TYPE, TUFF_FROM(Filter, filter_pointer, (k + 1) * taps + (rs))), \
       TUFF_LOADED(TYPE, TUFF_FROM(Filter, filter_pointer, (k + 2) * taps + (rs))), \
       TUFF_LOADED(TYPE, TUFF_FROM(Filter, filter_pointer, (k + 3) * taps + (rs))))
#else
#define LOAD(at) TUFF_LOADED(TYPE, TUFF_FROM(Input, input_pointer, at))
#define WEIGHT(rs) TUFF_LOADED(TYPE, TUFF_FROM(Filter, filter_pointer, k * taps + (rs)))
#endif
  const TUFF_INDEX taps = R * S;
#define PIXEL(y, x) (first + (TUFF_INDEX(y) * W + (x)) * pixel)

  NUMBERS sums[VY][VX];
  [[unroll]] for (int j = 0; j < VY; ++j) [[unroll]] for (int i = 0; i < VX; ++i) sums[j][i] = NUMBERS(0);
#if FIXED
  const int ROWS = (VY - 1) * STRIDE + TAPS_Y, COLS = (VX - 1) * STRIDE + TAPS_X;
  NUMBERS weights[TAPS_Y * TAPS_X];
  [[unroll]] for (int i = 0; i < TAPS_Y * TAPS_X; ++i) weights[i] = WEIGHT(i);
  [[unroll]] for (int y = 0; y < ROWS; ++y) {
    NUMBERS values[COLS];
    const bool row_exists = y0 + y < H;
    [[unroll]] for (int x = 0; x < COLS; ++x) {
      const bool exists = row_exists && x0 + x < W;
      const NUMBERS value = LOAD(exists ? PIXEL(y0 + y, x0 + x) : first);
      values[x] = exists ? value : NUMBERS(0);
    }
    [[unroll]] for (int j = 0; j < VY; ++j) {
      const int r = y - j * STRIDE;
      if (r >= 0 && r < TAPS_Y) {
        [[unroll]] for (int s = 0; s < TAPS_X; ++s) {
          [[unroll]] for (int i = 0; i < VX; ++i) {
            sums[j][i] = fma(weights[r * TAPS_X + s], values[i * STRIDE + s], sums[j][i]);
          }
        }
      }
    }
  }
#else
  const uint dilation_y = low(push.dilation), dilation_x = high(push.dilation);
  [[dont_unroll]] for (uint r = 0, y = y0, rs = 0; r < R; ++r, y += dilation_y) {
    [[dont_unroll]] for (uint s = 0, x = x0; s < S; ++s, ++rs, x += dilation_x) {
      const NUMBERS weight = WEIGHT(rs);
      [[unroll]] for (int j = 0; j < VY; ++j) [[unroll]] for (int i = 0; i < VX; ++i) {
        const bool exists = y + j * stride_y < H && x + i * stride_x < W;
        const NUMBERS value = LOAD(exists ? PIXEL(y + j * stride_y, x + i * stride_x) : first);
        sums[j][i] = fma(weight, exists ? value : NUMBERS(0), sums[j][i]);
      }
    }
  }
#endif

  TUFF_POINTER(Output, output_pointer, 0);
#if VEC
  const vec4 bias = vec4(bias_of(k), bias_of(k + 1), bias_of(k + 2), bias_of(k + 3));
#else
  const float bias = bias_of(k);
#endif
  [[unroll]] for (int j = 0; j < VY; ++j) [[unroll]] for (int i = 0; i < VX; ++i) {
    const uint p = p0 + j, q = q0 + i;
    if (p < push.P && q < push.Q) {
#if CHANNELS_LAST
      const TUFF_INDEX at = (TUFF_INDEX(n * push.P + p) * push.Q + q) * push.filters + k;
#else
      const TUFF_INDEX at = (TUFF_INDEX(plane) * push.P + p) * push.Q + q;
#endif
#if VEC
      [[unroll]] for (int e = 0; e < 4; ++e) CONV_STORE(output_pointer, at + e, sums[j][i][e], bias[e]);
#else
      CONV_STORE(output_pointer, at, sums[j][i], bias);
#endif
    }
  }
}
