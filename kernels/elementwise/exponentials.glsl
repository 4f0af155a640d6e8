// Exponential functions of f32 on vec4.
#include "kernels/elementwise/pairs.glsl"

// x = n + f with |f| <= 1/2; 2^f is a minimax fit of 2^-32.
vec4 tuff_exp2(vec4 x) {
  vec4 c = mix(x, vec4(160.0), greaterThan(x, vec4(160.0)));
  c = mix(c, vec4(-160.0), lessThan(c, vec4(-160.0)));
  ivec4 n;
  precise vec4 f = c - tuff_nearest(c, n);
  precise vec4 p = TUFF_FMA(vec4(1.43228262e-5), f, vec4(1.54521971e-4));
  p = TUFF_FMA(p, f, vec4(1.3337963e-3));
  p = TUFF_FMA(p, f, vec4(9.61808674e-3));
  p = TUFF_FMA(p, f, vec4(5.55040501e-2));
  p = TUFF_FMA(p, f, vec4(2.40226507e-1));
  p = TUFF_FMA(p, f, vec4(6.93147182e-1));
  precise vec4 y = 1.0 + p * f;
  return mix(tuff_scaled(y, n), x, tuff_nans(x));
}

// 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)), so that small results keep their digits.
vec4 tuff_expm1(vec4 x) {
  vec4 c = mix(x, vec4(89.0), greaterThan(x, vec4(89.0)));
  c = mix(c, vec4(-30.0), lessThan(c, vec4(-30.0)));
  ivec4 n;
  precise vec4 exponent = c * 1.44269504088896341;
  precise vec4 whole = tuff_nearest(exponent, n);
  precise vec4 r_head = c - whole * 0.693359375;
  precise vec4 r_tail = whole * 2.12194440e-4;
  precise vec4 r = r_head + r_tail;
  precise vec4 rest = r_tail + (r * r) * tuff_exp_rest(r);
  precise vec4 power = intBitsToFloat((n << 23) + 0x3f000000);
  precise vec4 y = 2.0 * ((power * r_head + power * rest) + (power - 0.5));
  y = mix(y, x, lessThan(abs(x), vec4(1e-20)));  // with denormals flushed, the products may be 0
  return tuff_with_sign(mix(y, x, tuff_nans(x)), x);
}
