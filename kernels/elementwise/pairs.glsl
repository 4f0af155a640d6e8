#ifndef TUFF_PAIRS_GLSL
#define TUFF_PAIRS_GLSL
// Numbers of about 35 bits on vec4, as unevaluated sums of two floats. The head has 12 bits, so that products of heads
// are exact; it is cut off as bits, because a compiler may assume that what is recovered by subtracting back from a sum
// is zero. `precise` does not extend into function arguments, so operands are named.
struct TuffPair {
  vec4 head, tail;
};

// a + b for |a| >= |b|
TuffPair tuff_pair(vec4 a, vec4 b) {
  precise vec4 sum = a + b;
  precise vec4 head = tuff_head(sum);
  precise vec4 tail = (a - head) + b;
  return TuffPair(head, tail);
}

TuffPair tuff_pair_product(TuffPair a, TuffPair b) {
  precise vec4 high = a.head * b.head;
  precise vec4 low = a.head * b.tail + a.tail * (b.head + b.tail);
  return tuff_pair(high, low);
}

// a / b for 1/4 <= b < 2^126
TuffPair tuff_pair_quotient(TuffPair a, TuffPair b) {
  precise vec4 divisor = b.head + b.tail;
  precise vec4 inverse = 1.0 / divisor;
  precise vec4 quotient = (a.head + a.tail) * inverse;
  precise vec4 head = tuff_head(quotient);
  precise vec4 rest = ((a.head - head * b.head) - head * b.tail) + a.tail;
  precise vec4 tail = rest * inverse;
  return TuffPair(head, tail);
}

TuffPair tuff_pair_mix(TuffPair a, TuffPair b, bvec4 second) {
  return TuffPair(mix(a.head, b.head, second), mix(a.tail, b.tail, second));
}

// a * x, rounded once
vec4 tuff_pair_times(TuffPair a, vec4 x) {
  precise vec4 head = tuff_head(x);
  precise vec4 tail = x - head;
  precise vec4 y = head * a.head + (tail * a.head + x * a.tail);
  return y;
}

// x rounded to an integer, for |x| < 2^22.
vec4 tuff_nearest(vec4 x, out ivec4 n) {
#if TUFF_EXACT_ARITHMETIC
  vec4 whole = roundEven(x);
  n = ivec4(whole);
  return whole;
#else
  precise vec4 whole = x + TUFF_WHOLE;
  n = floatBitsToInt(whole) - floatBitsToInt(vec4(TUFF_WHOLE));
  precise vec4 nearest = whole - TUFF_WHOLE;
  return nearest;
#endif
}

// x 2^n for |n| < 250, as two multiplications: only the last one rounds, if the result is denormal.
vec4 tuff_scaled(vec4 x, ivec4 n) {
  ivec4 first = n >> 1;
  precise vec4 y = x * intBitsToFloat((first << 23) + 0x3f800000);
  y = y * intBitsToFloat(((n - first) << 23) + 0x3f800000);
  return y;
}

// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2: a minimax fit of the relative error of e^r - 1, which is 2^-31.
vec4 tuff_exp_rest(vec4 r) {
  precise vec4 p = TUFF_FMA(vec4(1.97617162e-4), r, vec4(1.39323203e-3));
  p = TUFF_FMA(p, r, vec4(8.33354611e-3));
  p = TUFF_FMA(p, r, vec4(4.16664928e-2));
  p = TUFF_FMA(p, r, vec4(1.66666657e-1));
  p = TUFF_FMA(p, r, vec4(0.5));
  return p;
}

// Returns e^(high + low) / 2^n, in [0.7, 1.42], for |high| <= 200 and |low| <= 1/8.
TuffPair tuff_exp_pair(vec4 high, vec4 low, out ivec4 n) {
  precise vec4 exponent = (high + low) * 1.44269504088896341;
  precise vec4 whole = tuff_nearest(exponent, n);
  precise vec4 r_head = high - whole * 0.693359375;
  precise vec4 r_tail = whole * 2.12194440e-4 + low;
  precise vec4 r = r_head + r_tail;
  precise vec4 rest = r_tail + (r * r) * tuff_exp_rest(r);
  precise vec4 head = tuff_head(1.0 + (r_head + rest));
  precise vec4 tail = ((1.0 - head) + r_head) + rest;
  return TuffPair(head, tail);
}
#endif
