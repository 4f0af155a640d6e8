// Short forms of logarithms: by the device's own where the result is not small, which has an absolute error of 2^-21
// about 1 (Vulkan). About 1 as ln(1 + f) = 2 s + s^3 P(s^2) with s = f / (2 + f).
vec4 tuff_short_log_about_1(vec4 f) {
  vec4 s = f * (1.0 / (f + 2.0));
  vec4 z = s * s;
  vec4 p = fma(vec4(0.309901953), z, vec4(0.399237752));
  p = fma(p, z, vec4(0.666673422));
  return s * fma(z, p, vec4(2.0));
}

bvec4 tuff_short_about_1(vec4 f) { return lessThan(abs(f - 0.0625), vec4(0.4375)); }

// log2 of x > 0, infinity or NaN. The bits of an f32's denormals count in units of 2^-149.
vec4 tuff_short_log2_of(vec4 x) {
#if TUFF_TYPE == TUFF_F16
  return log2(x);
#else
  uvec4 bits = floatBitsToUint(x);
  bvec4 tiny = lessThan(bits, uvec4(0x00800000u));
  return log2(mix(x, uintBitsToFloat(bits | 0x4b000000u) - 8388608.0, tiny)) - mix(vec4(0.0), vec4(149.0), tiny);
#endif
}

vec4 tuff_short_log_ends(vec4 y, vec4 x) {
  uvec4 bits = floatBitsToUint(x);
  y = mix(y, vec4(-TUFF_INFINITY), equal(bits & 0x7fffffffu, uvec4(0u)));
  return mix(y, vec4(TUFF_NAN), greaterThan(bits, uvec4(0x80000000u)));
}

// The logarithm to the base b, by 1 / ln(b) and 1 / log2(b).
vec4 tuff_short_log_to_base(vec4 x, float of_ln, float of_log2) {
  precise vec4 f = x - 1.0;
  vec4 y = mix(tuff_short_log2_of(x) * of_log2, tuff_short_log_about_1(f) * of_ln, tuff_short_about_1(f));
  return tuff_short_log_ends(y, x);
}

vec4 tuff_short_log(vec4 x) { return tuff_short_log_to_base(x, 1.0, 0.69314718055994531); }
vec4 tuff_short_log2(vec4 x) { return tuff_short_log_to_base(x, 1.44269504088896341, 1.0); }
vec4 tuff_short_log10(vec4 x) { return tuff_short_log_to_base(x, 0.43429448190325183, 0.30102999566398120); }

vec4 tuff_short_log1p(vec4 x) {
  precise vec4 u = 1.0 + x;
  vec4 far = tuff_short_log_ends(log2(u) * 0.69314718055994531, u);
  return mix(far, tuff_short_log_about_1(x), tuff_short_about_1(x));
}
