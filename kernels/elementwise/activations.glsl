// Activation functions of neural networks on vec4, built on math.glsl. At -infinity each returns its limit.

#include "kernels/elementwise/pairs.glsl"

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
  // x + 3 is exact up to -3/2. From there on x / 2 + x^2 / 6 has an exact first term.
  bvec4 near = greaterThan(x, vec4(-1.5));
  precise vec4 numerator = x * mix(x + 3.0, x, near);
  precise vec4 y = tuff_divide_moderate(numerator, vec4(6.0));
  y = mix(y, 0.5 * x + y, near);
  y = tuff_with_sign(y, x);  // x^2 / 6 is +0 for -0; for |x| >= 3 y is replaced below
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

// ln(1 / (1 + e^-x)), with the error of softplus.
vec4 tuff_log_sigmoid(vec4 x) { return -tuff_softplus(-x); }

// scale x, and below zero scale alpha (e^x - 1) as 2^n (e^r - 1) + (2^n - 1), with a product of two sums of two floats.
vec4 tuff_selu(vec4 x) {
  vec4 c = mix(x, vec4(-30.0), lessThan(x, vec4(-30.0)));
  c = mix(c, vec4(0.0), greaterThan(c, vec4(0.0)));
  ivec4 n;
  precise vec4 exponent = c * 1.44269504088896341;
  precise vec4 whole = tuff_nearest(exponent, n);
  precise vec4 r_head = c - whole * 0.693359375;
  precise vec4 r_tail = whole * 2.12194440e-4;
  precise vec4 r = r_head + r_tail;
  precise vec4 power = intBitsToFloat((n << 23) + 0x3f800000);
  precise vec4 rest = power * (r_tail + (r * r) * tuff_exp_rest(r));
  precise vec4 first = power * r_head, second = power - 1.0;
  precise vec4 head = tuff_head((first + rest) + second);
  precise vec4 tail = ((second - head) + first) + rest;
  precise vec4 below = head * 1.7578125 + (head * 0.000286840847 + tail * 1.75809934);
  precise vec4 above = tuff_pair_times(TuffPair(vec4(1.05029297), vec4(0.000408018605)), x);
  bvec4 left = lessThan(x, vec4(0.0));
  vec4 y = mix(above, below, left);
  // With denormals flushed, parts of products would be lost.
  precise vec4 tiny = x * mix(vec4(1.05070099), vec4(1.75809934), left);
  y = mix(y, tiny, lessThan(tuff_abs(x), vec4(1e-20)));
  y = mix(y, x, equal(x, vec4(TUFF_INFINITY)));
  return mix(y, x, tuff_nans(x));
}

vec4 tuff_softsign(vec4 x) {
  precise vec4 a = tuff_abs(x);
  a = mix(a, vec4(1e30), greaterThan(a, vec4(1e30)));
  precise vec4 head = tuff_head(a);
  precise vec4 tail = a - head;
  TuffPair q = tuff_pair_quotient(TuffPair(head, tail), tuff_pair(max(a, vec4(1.0)), min(a, vec4(1.0))));
  precise vec4 y = q.head + q.tail;
  y = mix(y, a, lessThan(a, vec4(1e-20)));  // with denormals flushed, digits would be lost
  return tuff_with_sign(mix(y, tuff_abs(x), tuff_nans(x)), x);
}

vec4 tuff_hardsigmoid(vec4 x) {
  precise vec4 above = x + 3.0;
  vec4 y = tuff_divide_moderate(above, vec4(6.0));
  y = mix(y, vec4(1.0), greaterThanEqual(x, vec4(3.0)));
  y = mix(y, vec4(0.0), lessThanEqual(x, vec4(-3.0)));
  return mix(y, x, tuff_nans(x));
}

// x tanh(ln(1 + e^x)). With q = e^-|x| that is x (1 + 2 q) / (1 + 2 q + 2 q^2), or x q (2 + q) / (2 + 2 q + q^2) for
// negative x.
vec4 tuff_mish(vec4 x) {
  bvec4 left = lessThan(x, vec4(0.0));
  precise vec4 high = -tuff_abs(x);
  high = mix(high, vec4(-120.0), lessThan(high, vec4(-120.0)));
  ivec4 n;
  TuffPair e = tuff_exp_pair(high, vec4(0.0), n);
  precise vec4 scale = intBitsToFloat((max(n, ivec4(-60)) << 23) + 0x3f800000);
  precise vec4 head = e.head * scale, tail = e.tail * scale;
  precise vec4 square = (head + tail) * (head + tail);
  precise vec4 twice = 2.0 * head, twice_tail = 2.0 * tail;
  // 1 + 2 q, or 2 + q
  TuffPair upper = tuff_pair(mix(max(vec4(1.0), twice), vec4(2.0), left), mix(min(vec4(1.0), twice), head, left));
  precise vec4 upper_tail = upper.tail + mix(twice_tail, tail, left);
  // more: 2 q^2, or q + q^2
  precise vec4 more_head = mix(vec4(0.0), head, left), more_tail = mix(2.0 * square, square + tail, left);
  TuffPair sum = tuff_pair(upper.head, more_head);
  precise vec4 rest = (sum.tail + upper_tail) + more_tail;
  TuffPair lower = tuff_pair(sum.head, rest);
  TuffPair q = tuff_pair_quotient(TuffPair(upper.head, upper_tail), lower);
  q = tuff_pair_mix(q, tuff_pair_product(q, e), left);
  vec4 bounded = mix(x, tuff_with_sign(vec4(200.0), x), greaterThan(tuff_abs(x), vec4(200.0)));
  precise vec4 y = tuff_scaled(tuff_pair_times(q, bounded), mix(ivec4(0), n, left));
  y = mix(y, x, greaterThan(x, vec4(200.0)));
  y = mix(y, 0.6 * x, lessThan(tuff_abs(x), vec4(1e-20)));  // with denormals flushed, digits would be lost
  return mix(y, x, tuff_nans(x));
}
