// Short forms of roots and the reciprocal. What Vulkan leaves open is selected: zeros and negative arguments.

// x, or twice a denormal's bits, which count in units of 2^-149: the device may flush it to 0.
vec4 tuff_short_scaled(vec4 x, out bvec4 tiny) {
#if TUFF_TYPE == TUFF_F16
  tiny = bvec4(false);
  return x;
#else
  uvec4 bits = floatBitsToUint(x);
  tiny = lessThan(bits, uvec4(0x00800000u));
  return mix(x, uintBitsToFloat(bits | 0x4b800000u) - 16777216.0, tiny);
#endif
}

vec4 tuff_short_sqrt(vec4 x) {
  bvec4 tiny;
  vec4 s = sqrt(tuff_short_scaled(x, tiny));
  s = mix(s, s * 2.6469779601696886e-23, tiny);  // 2^-75
  uvec4 bits = floatBitsToUint(x);
  s = mix(s, x, equal(bits & 0x7fffffffu, uvec4(0u)));
  return mix(s, vec4(TUFF_NAN), greaterThan(bits, uvec4(0x80000000u)));
}

vec4 tuff_short_rsqrt(vec4 x) {
  bvec4 tiny;
  vec4 y = inversesqrt(tuff_short_scaled(x, tiny));
  y = mix(y, y * 3.7778931862957162e22, tiny);  // 2^75
  uvec4 bits = floatBitsToUint(x);
  y = mix(y, tuff_with_sign(vec4(TUFF_INFINITY), x), equal(bits & 0x7fffffffu, uvec4(0u)));
  return mix(y, vec4(TUFF_NAN), greaterThan(bits, uvec4(0x80000000u)));
}

vec4 tuff_short_reciprocal(vec4 x) {
  bvec4 zero = equal(floatBitsToUint(x) & 0x7fffffffu, uvec4(0u));
  return mix(1.0 / x, tuff_with_sign(vec4(TUFF_INFINITY), x), zero);
}
