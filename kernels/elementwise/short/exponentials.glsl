#ifndef TUFF_SHORT_EXPONENTIALS_GLSL
#define TUFF_SHORT_EXPONENTIALS_GLSL
// Short forms of exponential functions: see docs/accuracy.md. Polynomials are minimax fits of the quotients that the
// comments give, in relative error of the result.

// log2(e) in two parts, the first of which times a number of the type is exact: of 11 bits and 13, or 8 and 16. The
// second is multiplied by ln 2.
#if TUFF_TYPE == TUFF_F16
#define TUFF_SHORT_LOG2_E 1.442626953125
#define TUFF_SHORT_REST 4.71948416e-05
#else
#define TUFF_SHORT_LOG2_E 1.44268798828125
#define TUFF_SHORT_REST 4.8884951e-06
#endif

// e^x of any number of the type: the power of an exact exponent, and a factor of almost 1, which stays finite if x is
// infinite.
vec4 tuff_short_power(vec4 x) {
  vec4 factor = clamp(fma(x, vec4(TUFF_SHORT_REST), vec4(1.0)), vec4(0.5), vec4(2.0));
  return exp2(x * TUFF_SHORT_LOG2_E) * factor;
}

// e^x for any f32 from -110 to 90. x log2(e) is a sum of two floats, as its rounding alone would cost up to |x| ULP.
vec4 tuff_short_power_of_f32(vec4 x) {
  precise vec4 exponent = x * 1.44269504088896341;
  precise vec4 rest = fma(x, vec4(1.442626953125), -exponent);
  rest = fma(x, vec4(6.80877638e-5), rest);
  return exp2(exponent) * fma(rest, vec4(0.69314718055994531), vec4(1.0));
}

vec4 tuff_short_exp(vec4 x) { return tuff_short_power(x); }

vec4 tuff_short_exp2(vec4 x) { return exp2(x); }

// x + x^2 P(x) for small x. NaN is not large.
vec4 tuff_short_expm1(vec4 x) {
  vec4 p = fma(vec4(0.000198357418), x, vec4(0.00140527275));
  p = fma(p, x, vec4(0.00833403599));
  p = fma(p, x, vec4(0.0416636951));
  p = fma(p, x, vec4(0.166666552));
  p = fma(p, x, vec4(0.500000119));
  vec4 near = x * fma(x, p, vec4(1.0));
  vec4 far = tuff_short_power(x) - 1.0;
  return mix(near, far, greaterThan(abs(x), vec4(0.625)));
}

vec4 tuff_short_sigmoid(vec4 x) { return 1.0 / (1.0 + tuff_short_power(-x)); }

// x + x^3 P(x^2), and 1 - 2 / (e^2x + 1) where |x| is larger. NaN is not.
vec4 tuff_short_tanh(vec4 x) {
  vec4 z = x * x;
  vec4 p = fma(vec4(0.0162305143), z, vec4(-0.0525637865));
  p = fma(p, z, vec4(0.133190572));
  p = fma(p, z, vec4(-0.333328754));
  vec4 near = x * fma(z, p, vec4(1.0));
  vec4 inverse = 1.0 / (1.0 + exp2(x * 2.88539008177792681));  // the power's error vanishes beside 1
  vec4 far = fma(inverse, vec4(-2.0), vec4(1.0));
  return mix(near, far, greaterThan(abs(x), vec4(0.5625)));
}

// e^|x| / 2, infinite only if the result is.
vec4 tuff_short_half_power(vec4 x) {
  vec4 a = abs(x);
  vec4 factor = min(fma(a, vec4(TUFF_SHORT_REST), vec4(1.0)), vec4(2.0));
  return exp2(fma(a, vec4(TUFF_SHORT_LOG2_E), vec4(-1.0))) * factor;
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
  return fma(1.0 / power, vec4(0.25), power);
}
#endif
