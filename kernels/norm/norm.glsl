// Shared by the kernels that normalise rows: the inputs, and the formulas applied to them.
//# TUFF_TYPE : types : element type of the tensors, as in tuff.h
//# TUFF_WEIGHT_TYPE : types : type of weight and bias
//# TUFF_CENTRED : 0|1 : 1: the mean is subtracted; 0: RMS norm
//# TUFF_RESIDUAL : 0|1 : 1: X + R, rounded to the type, is normalised instead of X
//# TUFF_WEIGHT : 0|1 : 1: results are multiplied by a weight
//# TUFF_BIAS : 0|1 : 1: a bias is added to results
//# TUFF_CHANNEL : 0..2 : where channels change:
//   0   element j of a row has channel j
//   1   all of a block has the same channel
//   2   channels are looked up element by element
// The shader's push block has epsilon, inner (elements of a channel), channels (of a row) and groups (rows after which
// the channels start again).
#include "kernels/norm/norm.def"

#if TUFF_WEIGHT
TUFF_BLOCKS_READ(2, W, TUFF_WEIGHT_TYPE)
#endif
#if TUFF_BIAS
TUFF_BLOCKS_READ(3, B, TUFF_WEIGHT_TYPE)
#endif

TUFF_VALUE input_load(TUFF_INDEX i) {
  precise TUFF_VALUE x = X_load(i);
#if TUFF_RESIDUAL
  x = x + R_load(i);
  x = TUFF_AS_STORED(TUFF_TYPE, TUFF_VALUE4(x)).x;
#endif
  return x;
}

TuffBlock input_load_block(TUFF_INDEX i) {
  TuffBlock x = X_load_block(i);
#if TUFF_RESIDUAL
  TuffBlock added = R_load_block(i);
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    precise TUFF_VALUE4 s = x.part[p] + added.part[p];
    x.part[p] = TUFF_AS_STORED(TUFF_TYPE, s);
  }
#endif
  return x;
}

// The elements of a row are multiplied by a power of two, the row's factor, where their squares would leave the range
// of f32. The factor is 1 unless the resulting variance + epsilon overflows, or is so small that squares lost at the
// lower end of the range (2^-126 each) could matter. The row is then read again with another factor, so that rows of
// any magnitude are normalised.
//
// Bounds, for at most 2^31 elements below 2^128: if the mean square was infinite it is in fact at least 2^96. With
// elements times 2^-92 it is at least 2^-88, and the squares add up to less than 2^106. If the mean square was below
// 2^-96, all elements are within 2^-32 of their mean; times 2^92 their squares add up to less than 2^120.
#define TUFF_SHRINK 2.0194839173657902e-28  // 2^-92
#define TUFF_GROW 4951760157141521099596496896.0  // 2^92

TUFF_VALUE squared(TUFF_VALUE factor, TUFF_VALUE x) {
  precise TUFF_VALUE once = x * factor;
  precise TUFF_VALUE twice = once * factor;
  return twice;
}

// epsilon for elements multiplied by `factor`. It stays above zero if push.epsilon is, so that a constant row gives
// zero rather than 0 / 0.
TUFF_VALUE scaled_epsilon(TUFF_VALUE factor) {
  TUFF_VALUE epsilon = squared(factor, push.epsilon);
  return push.epsilon > 0.0 ? max(epsilon, 1.17549435e-38) : epsilon;
}

// Infinite, or NaN as a sum of infinities may be. Tests the bits, because a driver may optimise other tests away.
bool beyond(TUFF_VALUE x) { return (floatBitsToUint(x) & 0x7fffffffu) >= 0x7f800000u; }

// The factor that a row needs whose mean and variance were computed with factor 1. Rows of f16 always need 1: their
// squares are below 2^34, and elements that differ do so by at least 2^-24 / n, whose square is above 2^-110.
TUFF_VALUE factor_of(TUFF_VALUE mean, TUFF_VALUE variance) {
#if TUFF_TYPE == TUFF_F16
  return 1.0;
#else
  TUFF_VALUE v = variance + push.epsilon;
  // With a mean of 2^-10 or more, a variance this small means that the elements do not vary at all.
  TUFF_VALUE factor = v < 1.2621774483536189e-29 && abs(mean) < 0.0009765625 ? TUFF_GROW : 1.0;  // 2^-96
  return beyond(v) ? TUFF_SHRINK : factor;
#endif
}

// 1 / sqrt(variance + epsilon) for elements multiplied by `factor`.
TUFF_VALUE reciprocal_deviation(TUFF_VALUE variance, TUFF_VALUE factor) {
  return tuff_divide(TUFF_VALUE4(1.0), tuff_sqrt(TUFF_VALUE4(variance + scaled_epsilon(factor)))).x;
}

// `precise` keeps the compiler from multiplying a sum by the factor instead of summing the scaled elements.
TuffBlock scaled(TuffBlock x, TUFF_VALUE factor) {
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    precise TUFF_VALUE4 v = x.part[p] * factor;
    x.part[p] = v;
  }
  return x;
}

// Normalises a row that has been multiplied by its factor: y = (x - mean) * scale.
struct Normal {
  TUFF_VALUE mean, scale;
};

// The channel of a row's first element.
uint first_channel(uint row) { return row % push.groups * push.channels; }

// A block of a row from element j on: normalised, times weight, plus bias. `first` is the row's first_channel().
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
    precise TUFF_VALUE4 y = (x.part[p] - n.mean) * n.scale;
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

TUFF_VALUE result(TUFF_VALUE x, uint first, uint j, Normal n) {
  precise TUFF_VALUE y = (x - n.mean) * n.scale;
#if TUFF_WEIGHT
  y = y * W_load(first + j / push.inner);
#endif
#if TUFF_BIAS
  y = y + B_load(first + j / push.inner);
#endif
  return y;
}
