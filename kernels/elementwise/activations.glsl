// Activation functions of neural networks on vec4, built on math.glsl. At -infinity each returns its limit.

// x Phi(x) with Phi(-|x|) = erfc(|x| / sqrt(2)) / 2, which avoids cancellation for negative x. erfc(z) =
// e^(-z^2) P(s) / (1 + 2 z) with s = (z - 2) / (z + 2), where P is a Chebyshev fit in powers of s over all z >= 0
// (Shepherd and Laframboise 1981). x^2 is kept as a sum of two floats, as its rounding alone would cost x^2 / 4 ULP.
vec4 tuff_gelu(vec4 x) {
  vec4 a = abs(x);
  a = mix(a, vec4(100.0), greaterThan(a, vec4(100.0)));  // erfc reaches 0 long before
  vec4 head = tuff_head(a);
  precise vec4 tail = (a - head) * (a + head);
  precise vec4 square = head * head;
  precise vec4 z = a * 0.70710678118654752440;
#if TUFF_EXACT_ARITHMETIC
  precise vec4 s = (z - 2.0) / (z + 2.0);
#else
  // One reciprocal for both quotients.
  precise vec4 last = 1.0 + (z + z);
  precise vec4 inverse = 1.0 / ((z + 2.0) * last);
  precise vec4 s = ((z - 2.0) * last) * inverse;
#endif
  precise vec4 p = TUFF_FMA(vec4(6.33694581e-05), s, vec4(0.000160803582));
  p = TUFF_FMA(p, s, vec4(-0.000357920449));
  p = TUFF_FMA(p, s, vec4(-0.0013957069));
  p = TUFF_FMA(p, s, vec4(0.00121741055));
  p = TUFF_FMA(p, s, vec4(0.00868915953));
  p = TUFF_FMA(p, s, vec4(-0.00801896304));
  p = TUFF_FMA(p, s, vec4(-0.0542119592));
  p = TUFF_FMA(p, s, vec4(0.164049461));
  p = TUFF_FMA(p, s, vec4(-0.166031092));
  p = TUFF_FMA(p, s, vec4(-0.0927637592));
  p = TUFF_FMA(p, s, vec4(1.27697837));
#if TUFF_EXACT_ARITHMETIC
  precise vec4 factor = ((0.5 * a) * p) / (1.0 + (z + z));
#else
  precise vec4 factor = ((0.5 * a) * p) * ((z + 2.0) * inverse);
#endif
  precise vec4 below = tuff_exp_times(factor, -0.5 * square, -0.5 * tail);
  precise vec4 y = mix(x - below, -below, lessThan(x, vec4(0.0)));
  y = mix(y, 0.5 * x, lessThan(a, vec4(1e-20)));  // with denormals flushed, `below` would be 0
  return mix(y, x, tuff_nans(x));
}

// x sigmoid(t). A zero result has the sign of x.
vec4 tuff_times_sigmoid(vec4 x, vec4 t) {
  bvec4 left = lessThan(t, vec4(0.0));
  vec4 bounded = mix(x, vec4(-1000.0), lessThan(x, vec4(-1000.0)));  // e is 0 there; -infinity * 0 would be NaN
#if TUFF_EXACT_ARITHMETIC
  precise vec4 e = tuff_exp(-abs(t));
  precise vec4 below = tuff_exp_times(bounded, -abs(t), vec4(0.0));
#else
  // 2^24 e^-|t|, which stays normal wherever its product with x is normal.
  vec4 power = tuff_exp_normal(-abs(t), 24);
  power = mix(power, vec4(0.0), lessThan(-abs(t), vec4(-103.9)));
  precise vec4 e = power * 5.9604644775390625e-8;
  precise vec4 below = (bounded * power) * 5.9604644775390625e-8;
#endif
  precise vec4 numerator = mix(x, below, left);
  precise vec4 denominator = 1.0 + e;  // `precise` does not extend into function arguments
  precise vec4 y = tuff_divide_moderate(numerator, denominator);
  y = mix(y, x, greaterThan(x, vec4(1e30)));  // e is zero there; covers infinity
  y = tuff_with_sign(y, x);                    // the correction step of the division may turn -0 into +0
  return mix(y, x, tuff_nans(x));
}

vec4 tuff_silu(vec4 x) { return tuff_times_sigmoid(x, x); }

// The sigmoid of t is (1 + tanh(t / 2)) / 2.
vec4 tuff_gelu_tanh(vec4 x) {
  vec4 a = abs(x);
  a = mix(a, vec4(100.0), greaterThan(a, vec4(100.0)));
  precise vec4 t = 1.59576912160573071176 * a * (1.0 + 0.044715 * (a * a));
  return tuff_times_sigmoid(x, tuff_with_sign(t, x));
}

vec4 tuff_leaky_relu(vec4 x, float alpha) {
  precise vec4 y = alpha * x;
  return mix(y, x, not(lessThan(x, vec4(0.0))));
}

// e^x - 1 below zero, computed as 2^n (e^r - 1) + (2^n - 1), so that small results keep their digits.
vec4 tuff_elu(vec4 x, float alpha) {
  vec4 c = mix(x, vec4(-104.0), lessThan(x, vec4(-104.0)));
  c = mix(c, vec4(0.0), greaterThan(c, vec4(0.0)));
#if TUFF_EXACT_ARITHMETIC
  precise vec4 n = roundEven(c * 1.44269504088896341);
  precise vec4 power = tuff_times_power_of_2(vec4(1.0), n);
#else
  precise vec4 whole = c * 1.44269504088896341 + TUFF_WHOLE;
  precise vec4 n = whole - TUFF_WHOLE;
  vec4 power = uintBitsToFloat((floatBitsToUint(whole) << 23) + 0x3f800000u);
  power = mix(power, vec4(0.0), lessThan(n, vec4(-126.0)));
#endif
  precise vec4 r = (c - n * 0.693359375) + n * 2.12194440e-4;
  precise vec4 y = alpha * (power * tuff_exp_reduced(r) + (power - 1.0));
  y = mix(x, y, lessThan(x, vec4(0.0)));
  return mix(y, x, tuff_nans(x));
}

vec4 tuff_hardswish(vec4 x) {
  precise vec4 y = tuff_divide_moderate(x * (x + 3.0), vec4(6.0));
#if !TUFF_EXACT_ARITHMETIC
  y = tuff_with_sign(y, x);  // as in tuff_times_sigmoid; for |x| >= 3 y is replaced below
#endif
  y = mix(y, x, greaterThanEqual(x, vec4(3.0)));
  y = mix(y, vec4(0.0), lessThanEqual(x, vec4(-3.0)));
  return mix(y, x, tuff_nans(x));
}

// max(x, 0) + ln(1 + e^-|x|). Where e = e^-|x| is small, the logarithm is evaluated about e itself.
vec4 tuff_softplus(vec4 x) {
  precise vec4 e = tuff_exp(-abs(x));
  bvec4 large = greaterThan(e, vec4(0.41421356));
  precise vec4 f = mix(e, 0.5 * (e - 1.0), large);
  precise vec4 y = tuff_log_reduced(f, mix(vec4(0.0), vec4(1.0), large));
  y = mix(y, y + x, greaterThan(x, vec4(0.0)));
  return mix(y, x, tuff_nans(x));
}
