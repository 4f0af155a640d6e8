// Functions of f32 on vec4 whose results are exact. A zero result has the sign of x, which drivers do not ensure; the
// sign is applied last, to NaN as well: see tuff_tanh.

// As in NumPy: +0 for both zeros.
vec4 tuff_sign(vec4 x) {
  uvec4 bits = floatBitsToUint(x), magnitude = bits & 0x7fffffffu;
  vec4 one = uintBitsToFloat((bits & 0x80000000u) | 0x3f800000u);
  return mix(mix(one, vec4(0.0), equal(magnitude, uvec4(0u))), x, tuff_nans(x));
}

vec4 tuff_floor(vec4 x) { return tuff_with_sign(mix(floor(x), x, tuff_nans(x)), x); }
vec4 tuff_ceil(vec4 x) { return tuff_with_sign(mix(ceil(x), x, tuff_nans(x)), x); }
vec4 tuff_round(vec4 x) { return tuff_with_sign(mix(roundEven(x), x, tuff_nans(x)), x); }
vec4 tuff_trunc(vec4 x) { return tuff_with_sign(mix(trunc(x), x, tuff_nans(x)), x); }
