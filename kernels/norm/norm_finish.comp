// Adds the partial sums of h and h * n of sets (norm_line_sums, norm_columns): into the means that the gradients by elements
// need, or into the gradients by weights and biases.
//
//# TUFF_MEANS : 0|1 : 1: C gets the means of each set; 0: WeightGradient and BiasGradient get the sums
//# TUFF_CENTRED : 0|1 : 0: RMS norm, which has no mean of h
//# TUFF_WEIGHT : 0|1 : 1: partial sums are without the weight of their channel
//# TUFF_WEIGHT_TYPE : types : type of weight and of the gradients by it
//# TUFF_OF_WEIGHT : 0|1 : 1: WeightGradient is wanted
//# TUFF_OF_BIAS : 0|1 : 1: BiasGradient is wanted
//
// A workgroup has TUFF_COLUMNS lanes with a set each, times TUFF_SLICES, which take its parts in turn. Part k of a set is
// T[k / run * stride + set * run + k % run], of channel (that place) / cuts % channels.
//# TUFF_COLUMNS : 1..64 : lanes along the sets
//# TUFF_SLICES : 1|2|4|8|16|32 : lanes that share a set
#include "kernels/common/types.glsl"
#include "kernels/elementwise/math.glsl"
#include "kernels/norm/norm.def"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  uint sets;
  uint parts;  // of a set
  uint run;
  uint stride;
  uint cuts;
  uint channels;
  float total;  // elements of a set
} push;

TUFF_READ(0, T, vec2, 8)
TUFF_READ(1, W, TUFF_STORED(TUFF_WEIGHT_TYPE), TUFF_BYTES(TUFF_WEIGHT_TYPE))
TUFF_WRITE(2, C, vec2, 8)
TUFF_WRITE(3, WeightGradient, TUFF_STORED(TUFF_WEIGHT_TYPE), TUFF_BYTES(TUFF_WEIGHT_TYPE))
TUFF_WRITE(4, BiasGradient, TUFF_STORED(TUFF_WEIGHT_TYPE), TUFF_BYTES(TUFF_WEIGHT_TYPE))

vec2 part_of(uint set, uint k) {
  const uint outer = k / push.run;
  const uint place = outer * push.stride + set * push.run + (k - outer * push.run);
  vec2 part = TUFF_AT(T, place);
#if TUFF_WEIGHT
  part *= TUFF_LOADED(TUFF_WEIGHT_TYPE, TUFF_AT(W, place / push.cuts % push.channels));
#endif
  return part;
}

#if TUFF_SLICES > 1
shared vec2 slices[TUFF_SLICES * TUFF_COLUMNS];
#endif

void main() {
  const uint thread = gl_LocalInvocationID.x, slice = thread / TUFF_COLUMNS;
  uint set = tuff_group() * TUFF_COLUMNS + thread % TUFF_COLUMNS;
  const bool live = set < push.sets;
  set = live ? set : 0;
  // Four sums at a time: their loads do not wait for each other.
  vec2 sums[4] = vec2[4](vec2(0.0), vec2(0.0), vec2(0.0), vec2(0.0));
  uint k = slice;
  for (; k + 3 * TUFF_SLICES < push.parts; k += 4 * TUFF_SLICES) {
    [[unroll]] for (uint u = 0; u < 4; ++u) sums[u] += part_of(set, k + u * TUFF_SLICES);
  }
  for (; k < push.parts; k += TUFF_SLICES) sums[0] += part_of(set, k);
  vec2 sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
#if TUFF_SLICES > 1
  slices[thread] = sum;
  barrier();
  [[unroll]] for (uint width = TUFF_SLICES / 2; width > 0; width /= 2) {
    if (slice < width) slices[thread] += slices[thread + width * TUFF_COLUMNS];
    barrier();
  }
  sum = slices[thread % TUFF_COLUMNS];
#endif
  if (!live || slice != 0) return;
#if TUFF_MEANS
  sum = tuff_divide(vec4(sum, 0.0, 0.0), vec4(push.total)).xy;
#if !TUFF_CENTRED
  sum.x = 0.0;
#endif
  TUFF_AT(C, set) = sum;
#else
#if TUFF_OF_WEIGHT
  TUFF_AT(WeightGradient, set) = TUFF_ROUNDED(TUFF_WEIGHT_TYPE, sum.y);
#endif
#if TUFF_OF_BIAS
  TUFF_AT(BiasGradient, set) = TUFF_ROUNDED(TUFF_WEIGHT_TYPE, sum.x);
#endif
#endif
}
