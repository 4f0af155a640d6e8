// a^b = e^(b ln a) on vec4. b ln a reaches 89, and its absolute error becomes a relative error of the result, so ln a
// and the product are kept as sums of two floats. The first of each has 12 bits, so that products of firsts are exact.
#include "kernels/elementwise/log_pair.glsl"

vec4 tuff_pow(vec4 a, vec4 b) {
  uvec4 a_bits = floatBitsToUint(a), b_bits = floatBitsToUint(b);
  uvec4 size = a_bits & 0x7fffffffu, power = b_bits & 0x7fffffffu;
  TuffPair logarithm = tuff_log_pair(size);
  precise vec4 log_head = logarithm.head, log_tail = logarithm.tail;
  // |ln a| is at least 2^-25 for every a other than 1, so beyond |b| = 2^40 the result is 0, 1 or infinite regardless
  // of b's value.
  vec4 exponent = tuff_with_sign(uintBitsToFloat(min(power, uvec4(0x53800000u))), b);
  precise vec4 b_head = tuff_head(exponent);
  precise vec4 high = b_head * log_head;
  precise vec4 low = (exponent - b_head) * log_head + exponent * log_tail;
  bvec4 far = greaterThan(abs(high), vec4(104.0));
  low = mix(low, vec4(0.0), far);
  high = mix(high, vec4(89.0), greaterThan(high, vec4(89.0)));  // beyond, the result is infinite
  high = mix(high, vec4(-120.0), lessThan(high, vec4(-120.0)));
  ivec4 n;
  TuffPair exponential = tuff_exp_pair(high, low, n);
  precise vec4 y = exponential.head + exponential.tail;
  y = tuff_scaled(y, n);

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
