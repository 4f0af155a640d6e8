// The statistics of what is normalised together, a set: merges the moments of its parts, which norm_split_rows or
// norm_columns found, or takes given ones. S gets, of each set, the mean and 1 / sqrt(variance + epsilon) of elements that
// are multiplied by a factor, and that factor: n = (x * factor - mean) * scale.
//
//# TUFF_TYPE : types : element type of the tensor, as in tuff.h
//# TUFF_CENTRED : 0|1 : 1: the mean is subtracted; 0: RMS norm
//# TUFF_GIVEN : 0|1 : 1: mean and variance are given, in Mean and Variance
//# TUFF_STATISTICS_TYPE : types : type of Mean and Variance
//# TUFF_STORE : 0..3 : bits: 1: Mean is written, 2: Variance
//# TUFF_FOLLOW : 0..3 : bits: 1: RunningMean follows the mean, 2: RunningVariance the unbiased variance
//# TUFF_RUNNING_TYPE : types : their type
//
// TUFF_LANES invocations share a set. Its part k is P[k / run * stride + set * run + k % run]: of a channel of many images,
// run parts of each image. Parts have `size` elements, and the last of each line of `cuts` parts has `last`.
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"
#include "kernels/elementwise/math.glsl"
#include "kernels/norm/norm.def"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(6)
  uint sets;
  uint parts;  // of a set
  uint run;
  uint stride;
  uint cuts;
  uint size;
  uint last;
  float total;  // elements of a set
  float epsilon;
  float momentum;
} push;

TUFF_READ(0, P, vec4, 16)
TUFF_WRITE(1, S, vec4, 16)
TUFF_READ_WRITE(2, Mean, TUFF_STORED(TUFF_STATISTICS_TYPE), TUFF_BYTES(TUFF_STATISTICS_TYPE))
TUFF_READ_WRITE(3, Variance, TUFF_STORED(TUFF_STATISTICS_TYPE), TUFF_BYTES(TUFF_STATISTICS_TYPE))
TUFF_READ_WRITE(4, RunningMean, TUFF_STORED(TUFF_RUNNING_TYPE), TUFF_BYTES(TUFF_RUNNING_TYPE))
TUFF_READ_WRITE(5, RunningVariance, TUFF_STORED(TUFF_RUNNING_TYPE), TUFF_BYTES(TUFF_RUNNING_TYPE))

#include "kernels/common/lanes.glsl"
#include "kernels/norm/factors.glsl"

float least_of(float a, float b) { return b < a ? b : a; }
TUFF_TREE(tree_least, least_of)

// count * delta^2: what two means that are delta apart add to the squares. 0 if count is, even where delta^2 overflows.
float apart(float delta, float count) {
  precise float once = count * delta;
  precise float twice = once * delta;
  return twice;
}

struct Moments {
  float count, mean, squares;
};

Moments over_lanes(Moments m, float count) {
  Moments all;
  all.count = count;
  all.mean = 0.0;
#if TUFF_CENTRED
  all.mean = tuff_divide_moderate(vec4(tree_sum(m.count * m.mean)), vec4(count)).x;
#endif
  all.squares = tree_sum(m.squares + apart(m.mean - all.mean, m.count));
  return all;
}

uint place_of(uint set, uint k) {
  const uint outer = k / push.run;
  return outer * push.stride + set * push.run + (k - outer * push.run);
}

float follow(float running, float value) {
  precise float next = running + push.momentum * (value - running);
  return next;
}

void main() {
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID, lane = thread % TUFF_LANES;
  uint set = tuff_group() * (gl_WorkGroupSize.x / TUFF_LANES) + thread / TUFF_LANES;
  const bool live = set < push.sets;
  set = live ? set : 0;  // every lane takes part in the shuffles
#if TUFF_GIVEN
  const float mean = TUFF_LOADED(TUFF_STATISTICS_TYPE, TUFF_AT(Mean, set));
  const float variance = TUFF_LOADED(TUFF_STATISTICS_TYPE, TUFF_AT(Variance, set));
  // Halves where x - mean, or variance + epsilon, could leave the range.
  const float factor = abs(mean) > 1e30 || variance > 1e30 ? 0.5 : 1.0;
  const float scale = reciprocal_deviation(squared(factor, variance), factor);
  if (live && lane == 0) TUFF_AT(S, set) = vec4(mean * factor, scale, factor, 0.0);
#else
  // Merges with the smallest factor of all parts, or with a smaller one if the merged variance overflows.
  float least = TUFF_GROW, used = 1.0;
  for (uint k = lane; k < push.parts; k += TUFF_LANES) least = min(least, TUFF_AT(P, place_of(set, k)).z);
  least = tree_least(least);
  Moments m;
  float variance = 0.0;
  // Sets of the same subgroup that are finished are merged again with the same factor.
  [[dont_unroll]] for (bool again = true; TUFF_ANY_ROW(again);) {
    used = least;
    m = Moments(0.0, 0.0, 0.0);
    for (uint k = lane; k < push.parts; k += TUFF_LANES) {
      const vec4 part = TUFF_AT(P, place_of(set, k));
      const float change = least / part.z;  // a ratio of powers of two; 2^-184 becomes 0
      const float count = float(k % push.cuts + 1 < push.cuts ? push.size : push.last);
      const float share = count / (m.count + count);
      precise float mean = part.x * change;
      const float delta = mean - m.mean;
      m.mean += delta * share;
      m.squares += squared(change, part.y) + apart(delta, m.count * share);
      m.count += count;
    }
    m = over_lanes(m, push.total);
    variance = tuff_divide(vec4(m.squares), vec4(push.total)).x;
    again = again && least != TUFF_SHRINK && beyond(variance + scaled_epsilon(least));
    const float smaller = least == TUFF_GROW ? 1.0 : TUFF_SHRINK;
    least = again ? smaller : least;
  }
  if (live && lane == 0) {
    TUFF_AT(S, set) = vec4(m.mean, reciprocal_deviation(variance, used), used, 0.0);
#if TUFF_STORE || TUFF_FOLLOW
    const float back = used == 1.0 ? 1.0 : used == TUFF_GROW ? TUFF_SHRINK : TUFF_GROW;
    precise float mean = m.mean * back;
#if TUFF_STORE & 1
    TUFF_AT(Mean, set) = TUFF_ROUNDED(TUFF_STATISTICS_TYPE, mean);
#endif
#if TUFF_STORE & 2
    TUFF_AT(Variance, set) = TUFF_ROUNDED(TUFF_STATISTICS_TYPE, squared(back, variance));
#endif
#if TUFF_FOLLOW & 1
    const float old_mean = TUFF_LOADED(TUFF_RUNNING_TYPE, TUFF_AT(RunningMean, set));
    TUFF_AT(RunningMean, set) = TUFF_ROUNDED(TUFF_RUNNING_TYPE, follow(old_mean, mean));
#endif
#if TUFF_FOLLOW & 2
    const float old_variance = TUFF_LOADED(TUFF_RUNNING_TYPE, TUFF_AT(RunningVariance, set));
    const float unbiased = squared(back, tuff_divide(vec4(m.squares), vec4(push.total - 1.0)).x);
    TUFF_AT(RunningVariance, set) = TUFF_ROUNDED(TUFF_RUNNING_TYPE, follow(old_variance, unbiased));
#endif
#endif
  }
#endif
}
