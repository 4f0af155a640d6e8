#ifndef TUFF_SHORT_EXPONENTIALS_GLSL
#define TUFF_SHORT_EXPONENTIALS_GLSL
// Short forms of exponential functions: see docs/accuracy.md. Polynomials are minimax fits of the quotients that the
// comments give, in relative error of the result.

// What rounding changed in x log2(e), which would cost up to |x| ULP. The first part of log2(e) has 13 bits, so that its
// product with a number of 11 is exact even where fma rounds twice.
vec4 tuff_short_exponent_rest(vec4 x, vec4 exponent) {
  precise vec4 rest = fma(x, vec4(1.442626953125), -exponent);
  rest = fma(x, vec4(6.80877638e-5), rest);
  return rest;
}

// e^x for -110 <= x <= 90
vec4 tuff_short_power(vec4 x) {
  precise vec4 exponent = x * 1.44269504088896341;
  return exp2(exponent) * fma(tuff_short_exponent_rest(x, exponent), vec4(0.69314718055994531), vec4(1.0));
}

vec4 tuff_short_exp(vec4 x) {
  return mix(tuff_short_power(clamp(x, vec4(-104.0), vec4(89.0))), x, tuff_nans(x));
}

vec4 tuff_short_exp2(vec4 x) {
  return mix(exp2(clamp(x, vec4(-151.0), vec4(129.0))), x, tuff_nans(x));
}

// x + x^2 P(x) for small x. NaN is not large.
vec4 tuff_short_expm1(vec4 x) {
  vec4 p = fma(vec4(0.000198357418), x, vec4(0.00140527275));
  p = fma(p, x, vec4(0.00833403599));
  p = fma(p, x, vec4(0.0416636951));
  p = fma(p, x, vec4(0.166666552));
  p = fma(p, x, vec4(0.500000119));
  vec4 near = x * fma(x, p, vec4(1.0));
  vec4 far = tuff_short_power(clamp(x, vec4(-104.0), vec4(89.0))) - 1.0;
  return mix(near, far, greaterThan(abs(x), vec4(0.625)));
}

vec4 tuff_short_sigmoid(vec4 x) {
  vec4 y = 1.0 / (1.0 + tuff_short_power(clamp(-x, vec4(-89.0), vec4(89.0))));
  return mix(y, x, tuff_nans(x));
}

// x + x^3 P(x^2), and 1 - 2 / (e^2|x| + 1) where |x| is larger. NaN is not.
vec4 tuff_short_tanh(vec4 x) {
  vec4 a = abs(x), z = x * x;
  vec4 p = fma(vec4(0.0162305143), z, vec4(-0.0525637865));
  p = fma(p, z, vec4(0.133190572));
  p = fma(p, z, vec4(-0.333328754));
  vec4 near = x * fma(z, p, vec4(1.0));
  vec4 inverse = 1.0 / (1.0 + exp2(a * 2.88539008177792681));  // its error vanishes beside 1
  vec4 far = tuff_with_sign(fma(inverse, vec4(-2.0), vec4(1.0)), x);
  return mix(near, far, greaterThan(a, vec4(0.5625)));
}

// e^|x| / 2, infinite only if the result is.
vec4 tuff_short_half_power(vec4 x) {
  vec4 a = min(abs(x), vec4(91.0));
  precise vec4 exponent = a * 1.44269504088896341;
  return exp2(exponent - 1.0) * fma(tuff_short_exponent_rest(a, exponent), vec4(0.69314718055994531), vec4(1.0));
}

// x + x^3 P(x^2) up to 1. NaN is not larger.
vec4 tuff_short_sinh(vec4 x) {
  vec4 z = x * x;
  vec4 p = fma(vec4(2.78232119e-06), z, vec4(0.000198428868));
  p = fma(p, z, vec4(0.00833331048));
  p = fma(p, z, vec4(0.166666672));
  vec4 near = x * fma(z, p, vec4(1.0));
  vec4 power = tuff_short_half_power(x);
  vec4 far = tuff_with_sign(fma(1.0 / power, vec4(-0.25), power), x);
  return mix(near, far, greaterThan(abs(x), vec4(1.0)));
}

vec4 tuff_short_cosh(vec4 x) {
  vec4 power = tuff_short_half_power(x);
  return mix(fma(1.0 / power, vec4(0.25), power), x, tuff_nans(x));
}
#endif
