// asinh, acosh and atanh of f32 on vec4. Polynomials: minimax fits, in relative error, of the quotients that the
// comments give, to 2^-30 of the result.

// sinh's inverse below 1 by a polynomial of x^2, from there on as ln(2 |x|) + w P(w) with w = x^-2.
vec4 tuff_asinh(vec4 x) {
  precise vec4 a = abs(x);
  bvec4 far = greaterThan(a, vec4(1.0));
  precise vec4 bounded = mix(a, vec4(1e9), greaterThan(a, vec4(1e9)));
  precise vec4 square = bounded * bounded;
  // (asinh(a) / a - 1) / a^2
  precise vec4 p = TUFF_FMA(vec4(-3.88501445e-4), square, vec4(2.39969906e-3));
  p = TUFF_FMA(p, square, vec4(-7.02316919e-3));
  p = TUFF_FMA(p, square, vec4(1.35872476e-2));
  p = TUFF_FMA(p, square, vec4(-2.09941585e-2));
  p = TUFF_FMA(p, square, vec4(3.00613791e-2));
  p = TUFF_FMA(p, square, vec4(-4.45993654e-2));
  p = TUFF_FMA(p, square, vec4(7.49970526e-2));
  p = TUFF_FMA(p, square, vec4(-1.66666597e-1));
  precise vec4 near = a + a * (p * square);
  // (asinh(a) - ln(2 a)) / w
  precise vec4 w = 1.0 / square;
  precise vec4 q = TUFF_FMA(vec4(4.17841366e-4), w, vec4(-2.58604367e-3));
  q = TUFF_FMA(q, w, vec4(7.59653375e-3));
  q = TUFF_FMA(q, w, vec4(-1.47967795e-2));
  q = TUFF_FMA(q, w, vec4(2.31430009e-2));
  q = TUFF_FMA(q, w, vec4(-3.38381492e-2));
  q = TUFF_FMA(q, w, vec4(5.20369262e-2));
  q = TUFF_FMA(q, w, vec4(-9.37468484e-2));
  q = TUFF_FMA(q, w, vec4(2.49999925e-1));
  precise vec4 more = q * w;
  vec4 k;
  precise vec4 f = tuff_log_parts(a, k);
  precise vec4 doubled = k + 1.0;
  vec4 y = mix(near, tuff_log_and(f, doubled, more), far);
  y = mix(y, a, equal(a, vec4(TUFF_INFINITY)));
  return tuff_with_sign(mix(y, a, tuff_nans(x)), x);
}

// With d = x - 1, sqrt(2 d) (1 + d P(d)) up to d = 1, from there on ln(2 x) + w Q(w) with w = x^-2.
vec4 tuff_acosh(vec4 x) {
  precise vec4 d = x - 1.0;
  precise vec4 p = TUFF_FMA(vec4(-2.68645417e-5), d, vec4(1.75370325e-4));
  p = TUFF_FMA(p, d, vec4(-6.31510455e-4));
  p = TUFF_FMA(p, d, vec4(1.87078712e-3));
  p = TUFF_FMA(p, d, vec4(-5.57389902e-3));
  p = TUFF_FMA(p, d, vec4(1.87492818e-2));
  p = TUFF_FMA(p, d, vec4(-8.3333306e-2));
  precise vec4 root = tuff_sqrt(d + d);
  precise vec4 near = root + root * (p * d);
  precise vec4 bounded = mix(x, vec4(1e9), greaterThan(x, vec4(1e9)));
  precise vec4 w = 1.0 / (bounded * bounded);
  precise vec4 q = TUFF_FMA(vec4(-4.04036269e-2), w, vec4(-1.60806961e-2));
  q = TUFF_FMA(q, w, vec4(-3.5720095e-2));
  q = TUFF_FMA(q, w, vec4(-5.19463345e-2));
  q = TUFF_FMA(q, w, vec4(-9.37555432e-2));
  q = TUFF_FMA(q, w, vec4(-2.49999925e-1));
  precise vec4 more = q * w;
  vec4 k;
  precise vec4 f = tuff_log_parts(x, k);
  precise vec4 doubled = k + 1.0;
  vec4 y = mix(near, tuff_log_and(f, doubled, more), greaterThan(x, vec4(2.0)));
  y = mix(y, x, equal(x, vec4(TUFF_INFINITY)));
  y = mix(y, vec4(TUFF_NAN), lessThan(x, vec4(1.0)));
  return mix(y, x, tuff_nans(x));
}

// tanh's inverse below 1/2 by a polynomial of x^2, from there on as (ln 2 - ln(1 - |x|) + ln(1 - h)) / 2 with
// h = (1 - |x|) / 2, where the last logarithm is a polynomial of h.
vec4 tuff_atanh(vec4 x) {
  precise vec4 a = abs(x);
  precise vec4 z = a * a;
  // (atanh(a) / a - 1) / a^2
  precise vec4 p = TUFF_FMA(vec4(1.83626354e-1), z, vec4(1.80943012e-2));
  p = TUFF_FMA(p, z, vec4(1.04925931e-1));
  p = TUFF_FMA(p, z, vec4(1.09335132e-1));
  p = TUFF_FMA(p, z, vec4(1.42975792e-1));
  p = TUFF_FMA(p, z, vec4(1.99996263e-1));
  p = TUFF_FMA(p, z, vec4(3.33333373e-1));
  precise vec4 near = a + a * (p * z);
  precise vec4 d = 1.0 - a;
  precise vec4 h = 0.5 * d;
  // (ln(1 - h) + h) / h^2
  precise vec4 q = TUFF_FMA(vec4(-3.69219869e-1), h, vec4(-9.19669867e-3));
  q = TUFF_FMA(q, h, vec4(-2.01872751e-1));
  q = TUFF_FMA(q, h, vec4(-1.94936007e-1));
  q = TUFF_FMA(q, h, vec4(-2.50399888e-1));
  q = TUFF_FMA(q, h, vec4(-3.33317459e-1));
  q = TUFF_FMA(q, h, vec4(-5.00000238e-1));
  precise vec4 more = h - (h * h) * q;
  vec4 k;
  precise vec4 f = tuff_log_parts(d, k);
  precise vec4 halved = k - 1.0;
  precise vec4 far = -0.5 * tuff_log_and(f, halved, more);
  vec4 y = mix(near, far, greaterThan(a, vec4(0.5)));
  y = mix(y, vec4(TUFF_INFINITY), equal(a, vec4(1.0)));
  y = mix(y, vec4(TUFF_NAN), greaterThan(a, vec4(1.0)));
  return tuff_with_sign(mix(y, a, tuff_nans(x)), x);
}
