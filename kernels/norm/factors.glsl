// Powers of two that keep squares in range. The shader's push block has epsilon.
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
