// asin, acos and atan of f32 on vec4. Polynomials: minimax fits, in relative error, of the quotients that the comments
// give. pi/2 is a sum of two floats.
#define TUFF_HALF_PI 1.57079637
#define TUFF_HALF_PI_REST -4.37113883e-8

// (asin(s) / s - 1) for s^2 = z <= 1/4, to 2^-32
vec4 tuff_asin_rest(vec4 z) {
  precise vec4 p = TUFF_FMA(vec4(3.76001112e-2), z, vec4(1.43739861e-2));
  p = TUFF_FMA(p, z, vec4(3.18264626e-2));
  p = TUFF_FMA(p, z, vec4(4.45144586e-2));
  p = TUFF_FMA(p, z, vec4(7.50051886e-2));
  p = TUFF_FMA(p, z, vec4(1.66666597e-1));
  precise vec4 y = p * z;
  return y;
}

// asin a, or from 1/2 on pi/2 - 2 asin sqrt((1 - a) / 2). Beyond 1 the root is NaN.
vec4 tuff_asin(vec4 x) {
  precise vec4 a = abs(x);
  bvec4 far = greaterThan(a, vec4(0.5));
  precise vec4 z = mix(a * a, 0.5 * (1.0 - a), far);
  precise vec4 s = mix(a, tuff_sqrt(z), far);
  precise vec4 rest = s * tuff_asin_rest(z);
  precise vec4 near = s + rest;
  precise vec4 y = TUFF_HALF_PI - (2.0 * s + (2.0 * rest - TUFF_HALF_PI_REST));
  return tuff_with_sign(mix(mix(near, y, far), a, tuff_nans(x)), x);
}

vec4 tuff_acos(vec4 x) {
  precise vec4 a = abs(x);
  bvec4 far = greaterThan(a, vec4(0.5));
  bvec4 left = lessThan(x, vec4(0.0));
  precise vec4 z = mix(a * a, 0.5 * (1.0 - a), far);
  precise vec4 s = mix(x, tuff_sqrt(z), far);
  precise vec4 rest = s * tuff_asin_rest(z);
  precise vec4 middle = TUFF_HALF_PI - (s - (TUFF_HALF_PI_REST - rest));
  precise vec4 right = 2.0 * (s + rest);
  precise vec4 below = 2.0 * (TUFF_HALF_PI - (s + (rest - TUFF_HALF_PI_REST)));
  vec4 y = mix(middle, mix(right, below, left), far);
  return mix(y, x, tuff_nans(x));
}

// atan a, or beyond 1 pi/2 - atan(1 / a); atan(t) / t - 1 is fitted to 2^-28.7 over [0, 1].
vec4 tuff_atan(vec4 x) {
  precise vec4 a = abs(x);
  bvec4 far = greaterThan(a, vec4(1.0));
  precise vec4 bounded = mix(a, vec4(1e30), greaterThan(a, vec4(1e30)));
  precise vec4 t = mix(a, tuff_divide_moderate(vec4(1.0), bounded), far);
  precise vec4 z = t * t;
  precise vec4 p = TUFF_FMA(vec4(-1.82311598e-3), z, vec4(1.1046255e-2));
  p = TUFF_FMA(p, z, vec4(-3.14221419e-2));
  p = TUFF_FMA(p, z, vec4(5.82012571e-2));
  p = TUFF_FMA(p, z, vec4(-8.41754302e-2));
  p = TUFF_FMA(p, z, vec4(1.09569333e-1));
  p = TUFF_FMA(p, z, vec4(-1.4265126e-1));
  p = TUFF_FMA(p, z, vec4(1.99986279e-1));
  p = TUFF_FMA(p, z, vec4(-3.33333015e-1));
  precise vec4 rest = t * (p * z);
  precise vec4 near = t + rest;
  precise vec4 y = TUFF_HALF_PI - (t + (rest - TUFF_HALF_PI_REST));
  return tuff_with_sign(mix(mix(near, y, far), a, tuff_nans(x)), x);
}
