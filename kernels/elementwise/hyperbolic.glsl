// sinh and cosh of f32 on vec4. With |x| = n ln 2 + r, |r| <= ln(2) / 2 and s = 4^-n:
//
//   2^(1-n) sinh |x| = (1 - s) + (1 - s) (cosh r - 1) + (1 + s) sinh r
//   2^(1-n) cosh |x| = (1 + s) + (1 + s) (cosh r - 1) + (1 - s) sinh r
//
// which also holds for n = 0, so that small arguments need no other formula.
#include "kernels/elementwise/pairs.glsl"

struct TuffHyperbolic {
  ivec4 n;
  vec4 s;
  vec4 r_head, r_rest;  // their sum is sinh r
  vec4 cosine;          // cosh r - 1
};

// Polynomials: minimax fits of (sinh r / r - 1) / r^2 and (cosh r - 1) / r^2, to 2^-34.
TuffHyperbolic tuff_hyperbolic(vec4 x) {
  TuffHyperbolic h;
  precise vec4 a = abs(x);
  a = mix(a, vec4(91.0), greaterThan(a, vec4(91.0)));  // beyond f32
  precise vec4 exponent = a * 1.44269504088896341;
  precise vec4 whole = tuff_nearest(exponent, h.n);
  precise vec4 r_head = a - whole * 0.693359375;
  precise vec4 r_tail = whole * 2.12194440e-4;
  precise vec4 r = r_head + r_tail;
  precise vec4 z = r * r;
  precise vec4 sine = TUFF_FMA(vec4(1.99740796e-4), z, vec4(8.33317544e-3));
  sine = TUFF_FMA(sine, z, vec4(1.66666672e-1));
  precise vec4 rest = r_tail + (r * z) * sine;
  precise vec4 cosine = TUFF_FMA(vec4(2.50057074e-5), z, vec4(1.38885831e-3));
  cosine = TUFF_FMA(cosine, z, vec4(4.16666679e-2));
  cosine = z * 0.5 + (z * z) * cosine;
  h.r_head = r_head;
  h.r_rest = rest;
  h.cosine = cosine;
  // From n = 20 on s vanishes beside 1.
  h.s = intBitsToFloat(0x3f800000 - (min(h.n, ivec4(20)) << 24));
  return h;
}

vec4 tuff_sinh(vec4 x) {
  TuffHyperbolic h = tuff_hyperbolic(x);
  precise vec4 even = 1.0 - h.s, odd = 1.0 + h.s;
  precise vec4 rest = odd * h.r_rest + even * h.cosine;
  precise vec4 y = (odd * h.r_head + rest) + even;
  y = tuff_scaled(y, h.n - 1);
  y = mix(y, x, lessThan(abs(x), vec4(1e-20)));  // with denormals flushed, products may be 0
  return tuff_with_sign(mix(y, x, tuff_nans(x)), x);
}

vec4 tuff_cosh(vec4 x) {
  TuffHyperbolic h = tuff_hyperbolic(x);
  precise vec4 even = 1.0 + h.s, odd = 1.0 - h.s;
  precise vec4 rest = odd * h.r_rest + even * h.cosine;
  precise vec4 y = (odd * h.r_head + rest) + even;
  return mix(tuff_scaled(y, h.n - 1), x, tuff_nans(x));
}
