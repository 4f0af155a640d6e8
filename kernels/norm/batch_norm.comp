// output = (input - mean[c]) / sqrt(variance[c] + epsilon) * weight[c] + bias[c]. Element i has channel
// c = i / inner % channels.
//
// As in map.glsl, elements are processed in blocks of W = TUFF_ELEMENTS (16 bytes), each workgroup has RUN * (workgroup
// size) consecutive blocks, and the n % W elements after the last block are one item each.
//# TUFF_TYPE : types : element type of the tensors, as in tuff.h
//# TUFF_WEIGHT_TYPE : types : type of mean, variance, weight and bias
//# TUFF_WEIGHT : 0|1 : 1: results are multiplied by a weight
//# TUFF_BIAS : 0|1 : 1: a bias is added to results
//# TUFF_CHANNEL : 0..2 : where channels change:
//   0   inner is 1 and channels a multiple of W: a block has W consecutive channels
//   1   inner is a multiple of W: all of a block has the same channel
//   2   neither: channels are looked up element by element
//# TUFF_RUN : 0.. : items that a lane processes one after another; 0: push.run says
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"
#include "kernels/norm/norm.def"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(6)
  uint n, run;
  uint first;    // index of this dispatch's first element within its channel
  uint channel;  // that element's channel
  uint inner;
  uint channels;
  float epsilon;
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
TUFF_BLOCKS_READ(1, M, TUFF_WEIGHT_TYPE)
TUFF_BLOCKS_READ(2, V, TUFF_WEIGHT_TYPE)
#if TUFF_WEIGHT
TUFF_BLOCKS_READ(3, W, TUFF_WEIGHT_TYPE)
#endif
#if TUFF_BIAS
TUFF_BLOCKS_READ(4, B, TUFF_WEIGHT_TYPE)
#endif
TUFF_BLOCKS_WRITE(5, Y, TUFF_TYPE)

// Halves x and mean where their difference could exceed the range of f32, which takes a large mean. Likewise quarters
// the argument of the square root where the variance is large.
TUFF_VALUE4 normal(TUFF_VALUE4 x, TUFF_VALUE4 mean, TUFF_VALUE4 variance) {
  TUFF_VALUE4 halves = mix(TUFF_VALUE4(1.0), TUFF_VALUE4(0.5), greaterThan(abs(mean), TUFF_VALUE4(1e30)));
  bvec4 wide = greaterThan(variance, TUFF_VALUE4(1e30));
  TUFF_VALUE4 root = mix(TUFF_VALUE4(1.0), TUFF_VALUE4(0.5), wide);
  TUFF_VALUE4 quarters = mix(TUFF_VALUE4(1.0), TUFF_VALUE4(0.25), wide);
  precise TUFF_VALUE4 of_variance = variance * quarters;
  precise TUFF_VALUE4 of_epsilon = push.epsilon * quarters;
  precise TUFF_VALUE4 under = of_variance + of_epsilon;
  precise TUFF_VALUE4 scale = tuff_divide(root, tuff_sqrt(under)) / halves;
  precise TUFF_VALUE4 left = x * halves;
  precise TUFF_VALUE4 right = mean * halves;
  precise TUFF_VALUE4 y = (left - right) * scale;
  return y;
}

uint channel_of(uint i) { return (push.channel + (push.first + i) / push.inner) % push.channels; }

TUFF_VALUE result(uint i) {
  uint channel = channel_of(i);
  precise TUFF_VALUE y = normal(TUFF_VALUE4(X_load(i)), TUFF_VALUE4(M_load(channel)), TUFF_VALUE4(V_load(channel))).x;
#if TUFF_WEIGHT
  y = y * W_load(channel);
#endif
#if TUFF_BIAS
  y = y + B_load(channel);
#endif
  return y;
}

#if TUFF_CHANNEL == 0
#define PER_CHANNEL(name) name##_load_block(channel / TUFF_ELEMENTS)
#else
#define PER_CHANNEL(name) tuff_block(name##_load(channel))
#endif

TuffBlock result_block(uint block) {
  TuffBlock x;
#if TUFF_CHANNEL == 2
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    [[unroll]] for (uint c = 0; c < 4; ++c) x.part[p][c] = result(TUFF_ELEMENTS * block + (4 * p + c));
  }
#else
  x = X_load_block(block);
  uint channel = channel_of(TUFF_ELEMENTS * block);
  TuffBlock mean = PER_CHANNEL(M), variance = PER_CHANNEL(V);
#if TUFF_WEIGHT
  TuffBlock w = PER_CHANNEL(W);
#endif
#if TUFF_BIAS
  TuffBlock b = PER_CHANNEL(B);
#endif
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    precise TUFF_VALUE4 y = normal(x.part[p], mean.part[p], variance.part[p]);
#if TUFF_WEIGHT
    y = y * w.part[p];
#endif
#if TUFF_BIAS
    y = y + b.part[p];
#endif
    x.part[p] = y;
  }
#endif
  return x;
}

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint blocks = push.n / TUFF_ELEMENTS;
  uint items = blocks + push.n % TUFF_ELEMENTS;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < items; ++step, i += lanes) {
    if (i < blocks) {
      Y_store_block(i, result_block(i));
    } else {
      uint element = TUFF_ELEMENTS * blocks + (i - blocks);
      Y_store(element, result(element));
    }
  }
}
