// a^b = e^(b ln a) on vec4. b ln a reaches 89, and its absolute error becomes a relative error of the result, so ln a
// and the product are kept as sums of two floats. The first of each has 12 bits, so that products of firsts are exact.
//
// ln a = k ln 2 + ln m with m in [sqrt(1/2), sqrt(2)), ln m = 2 s + 2 s^3 (1/3 + s^2/5 + …) with s = (m - 1) / (m + 1),
// |s| < 0.172. Errors relative to ln a: 2^-35 from s and the sums, and 2^-29 from the series, which is at most a
// hundredth of ln a.
vec4 tuff_pow(vec4 a, vec4 b) {
  uvec4 a_bits = floatBitsToUint(a), b_bits = floatBitsToUint(b);
  uvec4 size = a_bits & 0x7fffffffu, power = b_bits & 0x7fffffffu;
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
  precise vec4 s = s_head + s_tail;
  precise vec4 z = s * s;
  // The Taylor series of atanh(s) / s; the next term is below 2^-33 of it.
  precise vec4 p = fma(vec4(0.0909090909), z, vec4(0.1111111111));
  p = fma(p, z, vec4(0.1428571429));
  p = fma(p, z, vec4(0.2));
  p = fma(p, z, vec4(0.3333333333));
  precise vec4 rest = 2.0 * (s * z * p + s_tail) - k * 2.12194440e-4;
  // k ln 2 is a multiple of 2^-9, so `held` is as much of 2 s as their sum represents exactly.
  precise vec4 whole = k * 0.693359375;
  precise vec4 double_head = 2.0 * s_head;
  precise vec4 held = mix(roundEven(double_head * 32768.0) * 0.000030517578125, double_head, equal(k, vec4(0.0)));
  precise vec4 sum = whole + held;
  rest = rest + (double_head - held);
  precise vec4 log_head = tuff_head(sum + rest);
  precise vec4 log_tail = (sum - log_head) + rest;
  // |ln a| is at least 2^-25 for every a other than 1, so beyond |b| = 2^40 the result is 0, 1 or infinite regardless
  // of b's value.
  vec4 exponent = tuff_with_sign(uintBitsToFloat(min(power, uvec4(0x53800000u))), b);
  precise vec4 b_head = tuff_head(exponent);
  precise vec4 high = b_head * log_head;
  precise vec4 low = (exponent - b_head) * log_head + exponent * log_tail;
  bvec4 far = greaterThan(abs(high), vec4(104.0));
  precise vec4 y = tuff_exp_times(vec4(1.0), high, mix(low, vec4(0.0), far));

  // A zero or infinite a, or an infinite b, gives zero or infinity.
  bvec4 falls = notEqual(lessThan(b_bits, uvec4(0x80000000u)), greaterThan(size, uvec4(0x3f800000u)));
  vec4 end = mix(vec4(TUFF_INFINITY), vec4(0.0), falls);
  y = mix(y, end, equal(size, uvec4(0u)));
  y = mix(y, end, equal(size, uvec4(0x7f800000u)));
  y = mix(y, end, equal(power, uvec4(0x7f800000u)));
  y = mix(y, vec4(1.0), equal(size, uvec4(0x3f800000u)));

  // A negative a allows only integer powers, and odd ones give a negative result. From 2^24 on all floats are even.
  precise vec4 bounded = uintBitsToFloat(min(power, uvec4(0x4b800000u)));
  bvec4 whole_power = equal(floor(bounded), bounded);
  uvec4 odd = mix(uvec4(0u), uvec4(bounded) & 1u, whole_power);
  bvec4 negative = greaterThanEqual(a_bits, uvec4(0x80000000u));
  y = mix(y, uintBitsToFloat(floatBitsToUint(y) | (odd << 31)), negative);
  bvec4 no_root = bvec4(uvec4(negative) & uvec4(not(whole_power)) & uvec4(notEqual(size, uvec4(0u))) &
                        uvec4(notEqual(size, uvec4(0x7f800000u))));
  y = mix(y, vec4(TUFF_NAN), no_root);
  bvec4 undefined = bvec4(uvec4(tuff_nans(a)) | uvec4(tuff_nans(b)));
  y = mix(y, vec4(TUFF_NAN), undefined);
  // a^0 and 1^b are 1 whatever the other operand is.
  y = mix(y, vec4(1.0), equal(power, uvec4(0u)));
  return mix(y, vec4(1.0), equal(a_bits, uvec4(0x3f800000u)));
}
