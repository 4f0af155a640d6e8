// Convolution of long rows by filters of one channel, for CPU devices: filter k reads channel k / multiplier of an input
// with one spatial dimension. Stride and dilation are 1.
//
// A workgroup is one subgroup, with outputs of one filter. An invocation computes OUTPUTS neighbouring ones. For TAPS taps at
// a time it holds the inputs that they need in registers, of which the last OUTPUTS - 1 are the first that the next taps
// need, so that a tap costs one load. Each lane loads a weight, and the others take it by a shuffle from a known lane.
//
//   inputs   x0 x1 x2 … x(OUTPUTS + TAPS - 2)
//   output i = w0 x(i) + w1 x(i + 1) + …
//
//# WIDTH : 1..128 : subgroup size
//# OUTPUTS : 8|16 : neighbouring outputs of an invocation
//# LEFT : 0..7 : S % TAPS, the taps of the last, shorter step
#define SUM_TYPE 1
#define SLICED 0
#include "kernels/gemm/common/gemm_stored.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  uint subgroups;  // with work, below 2^31
  uint each;       // subgroups of one filter's outputs of one image
  uint channels, filters;
  uint Q, W, S;
  int pad_x;
} push;

TUFF_READ_TEXELS(0, Input, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(1, Filter, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
#include "kernels/conv/conv_numbers.glsl"
#include "kernels/conv/conv_store.glsl"

// Elements from the first one of a row or of a filter on.
#if TUFF_TEXELS
#define ROW(first) const TUFF_INDEX input_first = first
#define INPUT_AT(i) TUFF_LOADED(TYPE, TUFF_OF_TEXEL(TYPE, TUFF_TEXEL(Input, input_first + (i))))
#else
#define ROW(first) TUFF_POINTER(Input, input_first, first)
#define INPUT_AT(i) TUFF_LOADED(TYPE, TUFF_FROM(Input, input_first, i))
#endif
#define WEIGHT_AT(i) TUFF_LOADED(TYPE, TUFF_FROM(Filter, filter_first, i))

layout(local_size_x = WIDTH) in;

const uint TAPS = 8;
const uint SHARES = (TAPS + WIDTH - 1) / WIDTH;  // weights that a lane loads

void main() {
  const uint subgroup = tuff_group(), lane = gl_SubgroupInvocationID;
  if (subgroup >= push.subgroups) return;
  const uint row = quotient(subgroup, push.each), n = quotient(row, push.filters);
  const uint k = row - n * push.filters, channel = quotient(k, push.filters / push.channels);
  const uint q0 = ((subgroup - row * push.each) * WIDTH + lane) * OUTPUTS;
  const uint W = push.W, S = push.S, whole = S - LEFT;

  ROW(TUFF_INDEX(n * push.channels + channel) * W);
  TUFF_POINTER(Filter, filter_first, TUFF_INDEX(k) * S);

  float inputs[OUTPUTS + TAPS - 1], sums[OUTPUTS];
  uint x = q0 - uint(push.pad_x);  // of the next input; negative ones wrap around
#define NEXT_INPUT(value)                            \
  {                                                  \
    const bool exists = x < W;                       \
    const float loaded = INPUT_AT(exists ? x : 0u);  \
    value = exists ? loaded : 0.0;                   \
    ++x;                                             \
  }
  [[unroll]] for (int i = 0; i < OUTPUTS - 1; ++i) NEXT_INPUT(inputs[i])
  [[unroll]] for (int i = 0; i < OUTPUTS; ++i) sums[i] = 0.0;

  float share[SHARES];
#define ADD_TAPS(count)                                                                          \
  [[unroll]] for (int t = 0; t < count; ++t) NEXT_INPUT(inputs[OUTPUTS - 1 + t])                 \
  [[unroll]] for (uint i = 0; i < SHARES; ++i) {                                                 \
    share[i] = WEIGHT_AT(min(tap + (i * WIDTH + lane) % TAPS, S - 1));                           \
  }                                                                                              \
  [[unroll]] for (int t = 0; t < count; ++t) {                                                   \
    const float weight = subgroupShuffle(share[t / WIDTH], t % WIDTH);                           \
    [[unroll]] for (int i = 0; i < OUTPUTS; ++i) sums[i] = fma(weight, inputs[i + t], sums[i]);  \
  }
  uint tap = 0;
  [[dont_unroll]] for (; tap < whole; tap += TAPS) {
    ADD_TAPS(TAPS)
    [[unroll]] for (int i = 0; i < OUTPUTS - 1; ++i) inputs[i] = inputs[i + TAPS];
  }
#if LEFT
  ADD_TAPS(LEFT)
#endif

  TUFF_POINTER(Output, output_pointer, 0);
  const float bias = bias_of(k);
  const TUFF_INDEX at = TUFF_INDEX(row) * push.Q;
  [[unroll]] for (uint i = 0; i < OUTPUTS; ++i) {
    if (q0 + i < push.Q) CONV_STORE(output_pointer, at + q0 + i, sums[i], bias);
  }
}
