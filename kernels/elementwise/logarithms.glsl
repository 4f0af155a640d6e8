// Logarithms of f32 on vec4.

// (log2 or log10 of 1 + f) + k_high + k_low for the f and k of tuff_log_parts. ln (1 + f) is a sum of two floats, the
// first of 12 bits, whose product with the factor's first 12 bits is exact.
vec4 tuff_log_to_base(vec4 f, float factor_head, float factor_tail, vec4 k_high, vec4 k_low) {
  precise vec4 z = f * f;
  precise vec4 half_z = 0.5 * z;
  precise vec4 rest = (f * z) * tuff_log_rest(f);
  precise vec4 head = tuff_head(f - half_z);
  precise vec4 tail = ((f - head) - half_z) + rest;
  precise vec4 low = (tail * (factor_head + factor_tail) + head * factor_tail) + k_low;
  precise vec4 y = (head * factor_head + low) + k_high;
  return y;
}

vec4 tuff_log2(vec4 x) {
  vec4 k;
  precise vec4 f = tuff_log_parts(x, k);
  return tuff_log_ends(tuff_log_to_base(f, 1.4423828125, 3.12228389e-4, k, vec4(0.0)), x);
}

vec4 tuff_log10(vec4 x) {
  vec4 k;
  precise vec4 f = tuff_log_parts(x, k);
  // log10 2 in two parts, the first of which times k is exact.
  precise vec4 high = k * 0.301025390625, low = k * 4.60503898e-6;
  return tuff_log_ends(tuff_log_to_base(f, 0.4342041015625, 9.03803408e-5, high, low), x);
}

// 1 + x = 2^k (1 + f) with f = x 2^-k + (2^-k - 1), in which only the sum is rounded.
vec4 tuff_log1p(vec4 x) {
  precise vec4 u = 1.0 + x;
  uvec4 bits = floatBitsToUint(u);
  uvec4 above = bits - 0x3f3504f3u;
  ivec4 exponent = ivec4(above) >> 23;
  precise vec4 k = vec4(exponent);
  precise vec4 scale = intBitsToFloat(0x3f800000 - (min(exponent, ivec4(30)) << 23));
  precise vec4 f = x * scale + (scale - 1.0);
  precise vec4 far = uintBitsToFloat(bits - (above & 0xff800000u)) - 1.0;
  f = mix(f, far, greaterThan(exponent, ivec4(29)));
  vec4 y = tuff_log_ends(tuff_log_reduced(f, k), u);
  y = mix(y, x, lessThan(abs(x), vec4(1e-20)));  // with denormals flushed, products may be 0
  return tuff_with_sign(mix(y, x, tuff_nans(x)), x);
}
