// What the normalisations of rows share: what is read, and what is made of it.
//# TUFF_TYPE : 1..3 : of the tensors, as in tuff.h
//# TUFF_WEIGHT_TYPE : 1..3 : of weight and bias
//# TUFF_CENTRED : 0|1 : 1: the mean is subtracted; 0: rms norm
//# TUFF_RESIDUAL : 0|1 : 1: X + R, rounded to the type, is normalised
//# TUFF_WEIGHT : 0|1 : 1: results are multiplied by a weight
//# TUFF_BIAS : 0|1 : 1: a bias is added to them
//# TUFF_CHANNEL : 0..2 : where channels change:
//   0   element j of a row is of channel j
//   1   a block is of one channel
//   2   channels are looked up element by element
// In push: epsilon, inner (elements of a channel), channels (of a row), groups (rows whose channels follow one another).
#if TUFF_WEIGHT
TUFF_BLOCKS_READ(2, W, TUFF_WEIGHT_TYPE)
#endif
#if TUFF_BIAS
TUFF_BLOCKS_READ(3, B, TUFF_WEIGHT_TYPE)
#endif

float input_load(TUFF_INDEX i) {
  precise float x = X_load(i);
#if TUFF_RESIDUAL
  x = x + R_load(i);
  x = TUFF_AS_STORED(TUFF_TYPE, vec4(x)).x;
#endif
  return x;
}

TuffBlock input_load_block(TUFF_INDEX i) {
  TuffBlock x = X_load_block(i);
#if TUFF_RESIDUAL
  TuffBlock added = R_load_block(i);
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    precise vec4 s = x.part[p] + added.part[p];
    x.part[p] = TUFF_AS_STORED(TUFF_TYPE, s);
  }
#endif
  return x;
}

// A row's numbers are multiplied by a power of two, its factor, where their squares would leave the range of f32: by 1
// unless variance + epsilon so computed is beyond that range or too small to tell what the squares lost at its lower end
// (2^-126 each). Then the row is gathered once more with another factor, so that it is normalised whatever its size.
// Of 2^31 numbers that are below 2^128, and of which the squares' mean was infinite (so at least 2^96), those times 2^-92
// have squares from 2^-88 on that add up to less than 2^106; of those whose squares' mean was below 2^-96, and which so lie
// within 2^-32 of their mean, those times 2^92 have squares that add up to less than 2^120.
#define TUFF_SHRINK 2.0194839173657902e-28  // 2^-92
#define TUFF_GROW 4951760157141521099596496896.0  // 2^92

float squared(float factor, float x) {
  precise float once = x * factor;
  precise float twice = once * factor;
  return twice;
}

// Of numbers times `factor`; above zero if push.epsilon is: then what does not vary is zero, and not zero by zero.
float scaled_epsilon(float factor) {
  float epsilon = squared(factor, push.epsilon);
  return push.epsilon > 0.0 ? max(epsilon, 1.17549435e-38) : epsilon;
}

// Infinite or, as sums of infinities are, NaN: by its bits, which a driver may not think away.
bool beyond(float x) { return (floatBitsToUint(x) & 0x7fffffffu) >= 0x7f800000u; }

// The factor that numbers of this mean and variance need, found with factor 1. Those of f16 never need another: their
// squares are below 2^34, and where they differ, it is by 2^-24 / n or more, whose square is above 2^-110.
float factor_of(float mean, float variance) {
#if TUFF_TYPE == TUFF_F16
  return 1.0;
#else
  float v = variance + push.epsilon;
  // At a mean of 2^-10 or more they do not vary at all if they vary so little.
  float factor = v < 1.2621774483536189e-29 && abs(mean) < 0.0009765625 ? TUFF_GROW : 1.0;  // 2^-96
  return beyond(v) ? TUFF_SHRINK : factor;
#endif
}

// 1 / sqrt(variance + epsilon), of numbers times `factor`.
float reciprocal_deviation(float variance, float factor) {
  return tuff_divide(vec4(1.0), tuff_sqrt(vec4(variance + scaled_epsilon(factor)))).x;
}

// Not a sum times the factor, as a compiler might have it, but a sum of products.
TuffBlock scaled(TuffBlock x, float factor) {
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    precise vec4 v = x.part[p] * factor;
    x.part[p] = v;
  }
  return x;
}

// What normalises a row that has its factor: y = (x - mean) * scale.
struct Normal {
  float mean, scale;
};

// The channel that element j of a row counts from is first_channel(row).
uint first_channel(uint row) { return row % push.groups * push.channels; }

// Elements j … of a row, normalised: times weight, plus bias.
TuffBlock result_block(TuffBlock x, uint first, uint j, Normal n) {
#if TUFF_WEIGHT
#if TUFF_CHANNEL == 0
  TuffBlock w = W_load_block(j / TUFF_ELEMENTS);
#else
  TuffBlock w = tuff_block(W_load(first + j / push.inner));
#endif
#endif
#if TUFF_BIAS
#if TUFF_CHANNEL == 0
  TuffBlock b = B_load_block(j / TUFF_ELEMENTS);
#else
  TuffBlock b = tuff_block(B_load(first + j / push.inner));
#endif
#endif
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    precise vec4 y = (x.part[p] - n.mean) * n.scale;
#if TUFF_WEIGHT
    y = y * w.part[p];
#endif
#if TUFF_BIAS
    y = y + b.part[p];
#endif
    x.part[p] = y;
  }
  return x;
}

float result(float x, uint first, uint j, Normal n) {
  precise float y = (x - n.mean) * n.scale;
#if TUFF_WEIGHT
  y = y * W_load(first + j / push.inner);
#endif
#if TUFF_BIAS
  y = y + B_load(first + j / push.inner);
#endif
  return y;
}
