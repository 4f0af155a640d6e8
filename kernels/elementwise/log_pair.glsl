#ifndef TUFF_LOG_PAIR_GLSL
#define TUFF_LOG_PAIR_GLSL
#include "kernels/elementwise/pairs.glsl"

// ln a = k ln 2 + ln m with m in [sqrt(1/2), sqrt(2)), ln m = 2 s + 2 s^3 (1/3 + s^2/5 + …) with s = (m - 1) / (m + 1),
// |s| < 0.172. Its first two terms are sums of two floats; the others, rounded to one, are below 2^-12 of ln a. The
// error is about 2^-34 of ln a.
//
// `size` are the bits of a, which is positive and finite.
TuffPair tuff_log_pair(uvec4 size) {
  // As in tuff_log.
  bvec4 tiny = lessThan(size, uvec4(0x00800000u));
  uvec4 scaled = mix(size, floatBitsToUint(vec4(ivec4(size))), tiny);
  uvec4 above = scaled - 0x3f3504f3u;
  vec4 k = vec4((ivec4(above) >> 23) + mix(ivec4(0), ivec4(-149), tiny));
  precise vec4 m = uintBitsToFloat(scaled - (above & 0xff800000u));
  precise vec4 f = m - 1.0;
  // m + 1 in two parts: m_head has 11 bits of m, and with 1 added 12. No rounding error is recovered by subtracting
  // back from a sum, because a compiler may assume that it is zero.
  precise vec4 m_head = uintBitsToFloat(floatBitsToUint(m) & 0xffffe000u);
  precise vec4 d = m + 1.0;
  precise vec4 d_head = m_head + 1.0;
  precise vec4 d_tail = m - m_head;
  precise vec4 s_head = tuff_head(tuff_divide_moderate(f, d));
  precise vec4 left = (f - s_head * d_head) - s_head * d_tail;  // `precise` does not extend into function arguments
  precise vec4 s_tail = tuff_divide_moderate(left, d);
  TuffPair s = TuffPair(s_head, s_tail);
  TuffPair square = tuff_pair_product(s, s);
  precise vec4 z = square.head + square.tail;
  TuffPair cube = tuff_pair_product(square, s);
  TuffPair third = tuff_pair_product(cube, TuffPair(vec4(0.6666259765625), vec4(4.06901042e-5)));  // 2/3
  // The Taylor series of atanh(s) / s; the next term is below 2^-33 of it.
  precise vec4 p = fma(vec4(0.0909090909), z, vec4(0.1111111111));
  p = fma(p, z, vec4(0.1428571429));
  p = fma(p, z, vec4(0.2));
  precise vec4 rest = 2.0 * (((cube.head + cube.tail) * z) * p + s_tail) + (third.tail - k * 2.12194440e-4);
  // k ln 2 is a multiple of 2^-9, so `held` is as much of 2 s as their sum represents exactly.
  precise vec4 whole = k * 0.693359375;
  precise vec4 double_head = 2.0 * s_head;
  precise vec4 held = mix(roundEven(double_head * 32768.0) * 0.000030517578125, double_head, equal(k, vec4(0.0)));
  precise vec4 sum = whole + held;
  rest = rest + (double_head - held);
  precise vec4 log_head = tuff_head((sum + third.head) + rest);
  precise vec4 log_tail = ((sum - log_head) + third.head) + rest;
  return TuffPair(log_head, log_tail);
}
#endif
