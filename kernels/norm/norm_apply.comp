// What a normalisation makes of each element, given the statistics of its set: the output, or the gradient by the input,
//   Y = n * weight + bias,   Y = (h - mean(h) - n * mean(h * n)) * scale * factor   with h = G * weight,
// where n = (X * factor - mean) * scale.
//
// As in map.glsl, elements are processed in blocks of W = TUFF_ELEMENTS, each workgroup has RUN * (workgroup size)
// consecutive blocks, and the n % W elements after the last block are one item each. Y may be X or G.
//# TUFF_TYPE : types : element type of the tensors, as in tuff.h
//# TUFF_WEIGHT_TYPE : types : type of weight and bias
//# TUFF_WEIGHT : 0|1 : 1: there is a weight
//# TUFF_BIAS : 0|1 : 1: there is a bias; TUFF_FORWARD only
//# TUFF_FORWARD : 0|1 : 1: the output; 0: the gradient
//# TUFF_FROZEN : 0|1 : 1: statistics are constants: Y = h * scale * factor
//# TUFF_BY_CHANNEL : 0|1 : 1: a set is a channel; 0: `together` consecutive elements
//# TUFF_CHANNEL : 0..2 : where channels change:
//   0   inner is 1, and channels and, without TUFF_BY_CHANNEL, together are a multiple of W: a block has W consecutive channels
//   1   inner is a multiple of W: all of a block has the same channel
//   2   neither: channels are looked up element by element
//# TUFF_SAME : 0|1 : 1: all blocks of a lane have the same channels, whose numbers are read once; TUFF_BY_CHANNEL and TUFF_CHANNEL 0
//# TUFF_RUN : 0.. : items that a lane processes one after another; 0: push.run says
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/norm/norm.def"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(7)
  uint n, run;
  uint first;    // index of this dispatch's first element within its channel
  uint channel;  // that element's channel
  uint inner;
  uint channels;
  uint set;       // the set of that element, without TUFF_BY_CHANNEL …
  uint within;    // … and its index there
  uint together;  // elements of a set
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
#if !TUFF_FORWARD
TUFF_BLOCKS_READ(1, G, TUFF_TYPE)
#endif
#if TUFF_WEIGHT
TUFF_BLOCKS_READ(2, W, TUFF_WEIGHT_TYPE)
#endif
#if TUFF_BIAS
TUFF_BLOCKS_READ(3, B, TUFF_WEIGHT_TYPE)
#endif
TUFF_READ(4, S, vec4, 16)
TUFF_READ(5, C, vec2, 8)
TUFF_BLOCKS_WRITE(6, Y, TUFF_TYPE)

uint channel_of(uint i) { return (push.channel + (push.first + i) / push.inner) % push.channels; }

uint set_of(uint i, uint channel) {
#if TUFF_BY_CHANNEL
  return channel;
#else
  return push.set + (push.within + i) / push.together;
#endif
}

// Statistics and means of the set, for one or for four elements.
#define OF_ELEMENTS(NUMBERS)                                                                                      \
  NUMBERS result_of(NUMBERS x, NUMBERS g, NUMBERS w, NUMBERS b, NUMBERS mean, NUMBERS scale, NUMBERS factor,      \
                    NUMBERS level, NUMBERS along) {                                                               \
    precise NUMBERS scaled = x * factor;                                                                          \
    precise NUMBERS n = (scaled - mean) * scale;                                                                  \
    if (TUFF_FORWARD != 0) {                                                                                      \
      if (TUFF_WEIGHT != 0) n = n * w;                                                                            \
      if (TUFF_BIAS != 0) n = n + b;                                                                              \
      return n;                                                                                                   \
    }                                                                                                             \
    if (TUFF_WEIGHT != 0) g = g * w;                                                                              \
    if (TUFF_FROZEN == 0) g = g - level - n * along;                                                              \
    precise NUMBERS of_scaled = g * scale;                                                                        \
    precise NUMBERS y = of_scaled * factor;                                                                       \
    return y;                                                                                                     \
  }
OF_ELEMENTS(float)
OF_ELEMENTS(vec4)

#if TUFF_FORWARD || TUFF_FROZEN
vec2 means_of(uint set) { return vec2(0.0); }
#else
vec2 means_of(uint set) { return TUFF_AT(C, set); }
#endif

float result(uint i) {
  const uint channel = channel_of(i), set = set_of(i, channel);
  const vec4 s = TUFF_AT(S, set);
  const vec2 m = means_of(set);
  float g = 0.0, w = 1.0, b = 0.0, x = 0.0;
#if TUFF_FORWARD || !TUFF_FROZEN
  x = X_load(i);
#endif
#if !TUFF_FORWARD
  g = G_load(i);
#endif
#if TUFF_WEIGHT
  w = W_load(channel);
#endif
#if TUFF_BIAS
  b = B_load(channel);
#endif
  return result_of(x, g, w, b, s.x, s.y, s.z, m.x, m.y);
}

#if TUFF_CHANNEL == 0
#define PER_CHANNEL(name) name##_load_block(channel / TUFF_ELEMENTS)
#else
#define PER_CHANNEL(name) tuff_block(name##_load(channel))
#endif

// What the channels of a block contribute: weight and bias, statistics and means.
struct Known {
  TuffBlock w, b;
  vec4 mean[TUFF_PARTS], scale[TUFF_PARTS], factor[TUFF_PARTS], level[TUFF_PARTS], along[TUFF_PARTS];
};

#if TUFF_CHANNEL != 2
Known known_of(uint block) {
  const uint channel = channel_of(TUFF_ELEMENTS * block), set = set_of(TUFF_ELEMENTS * block, channel);
  Known known;
  known.w = tuff_block(1.0), known.b = tuff_block(0.0);
#if TUFF_WEIGHT
  known.w = PER_CHANNEL(W);
#endif
#if TUFF_BIAS
  known.b = PER_CHANNEL(B);
#endif
#if TUFF_CHANNEL == 0 && TUFF_BY_CHANNEL
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      const vec4 s = TUFF_AT(S, set + 4 * p + c);
      const vec2 m = means_of(set + 4 * p + c);
      known.mean[p][c] = s.x, known.scale[p][c] = s.y, known.factor[p][c] = s.z;
      known.level[p][c] = m.x, known.along[p][c] = m.y;
    }
  }
#else
  const vec4 s = TUFF_AT(S, set);
  const vec2 m = means_of(set);
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    known.mean[p] = vec4(s.x), known.scale[p] = vec4(s.y), known.factor[p] = vec4(s.z);
    known.level[p] = vec4(m.x), known.along[p] = vec4(m.y);
  }
#endif
  return known;
}
#endif

TuffBlock result_block(uint block, Known known) {
  TuffBlock y;
#if TUFF_CHANNEL == 2
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    [[unroll]] for (uint c = 0; c < 4; ++c) y.part[p][c] = result(TUFF_ELEMENTS * block + (4 * p + c));
  }
#else
  TuffBlock x = tuff_block(0.0), g = x;
#if TUFF_FORWARD || !TUFF_FROZEN
  x = X_load_block(block);
#endif
#if !TUFF_FORWARD
  g = G_load_block(block);
#endif
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    y.part[p] = result_of(x.part[p], g.part[p], known.w.part[p], known.b.part[p], known.mean[p], known.scale[p],
                          known.factor[p], known.level[p], known.along[p]);
  }
#endif
  return y;
}

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  const uint blocks = push.n / TUFF_ELEMENTS;
  const uint items = blocks + push.n % TUFF_ELEMENTS;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  Known known;
#if TUFF_SAME
  known = known_of(i);
#endif
  for (uint step = 0; step < RUN && i < items; ++step, i += lanes) {
    if (i < blocks) {
#if TUFF_CHANNEL != 2 && !TUFF_SAME
      known = known_of(i);
#endif
      Y_store_block(i, result_block(i, known));
    } else {
      const uint element = TUFF_ELEMENTS * blocks + (i - blocks);
      Y_store(element, result(element));
    }
  }
}
