// ln |gamma(x)| and its derivative on vec4. Polynomials: minimax fits of the quotients that the comments give, to 2^-25
// of the results or better. Where a negative x has a zero of a function nearby, terms cancel that are as large as the
// function of |x|, so the error is bounded in terms of that (docs/accuracy.md).
#include "kernels/elementwise/log_pair.glsl"

// With a = |x|: about the zeros at 1 and 2 polynomials, from 5/2 on Stirling's formula as (a - 1/2) (ln a - 1) + (ln(2
// pi) - 1) / 2 + P(a^-2) / a. Smaller arguments use gamma(1 + a) = a gamma(a), and negative ones gamma(x) gamma(1 - x)
// = pi / sin(pi x).
vec4 tuff_lgamma(vec4 x) {
  precise vec4 a = tuff_abs(x);
  bvec4 negative = greaterThanEqual(floatBitsToUint(x), uvec4(0x80000000u));
  bvec4 next = lessThan(a, mix(vec4(0.7), vec4(1.0), negative));  // uses lgamma(1 + a)
  precise vec4 t = mix(a - 1.0, a, next), u = t - 1.0;
  // lgamma(1 + t) / t and lgamma(2 + u) / u, whose first two coefficients are sums of two floats
  precise vec4 p = TUFF_FMA(vec4(-0.0858677253), t, vec4(0.121555679));
  p = TUFF_FMA(p, t, vec4(-0.115137063));
  p = TUFF_FMA(p, t, vec4(0.123769373));
  p = TUFF_FMA(p, t, vec4(-0.143697664));
  p = TUFF_FMA(p, t, vec4(0.169609934));
  p = TUFF_FMA(p, t, vec4(-0.20739685));
  p = TUFF_FMA(p, t, vec4(0.270580471));
  p = TUFF_FMA(p, t, vec4(-0.400685519));
  p = 0.000201404 + p * t;
  precise vec4 q = TUFF_FMA(vec4(0.000186865334), u, vec4(-0.000250132609));
  q = TUFF_FMA(q, u, vec4(0.00045480454));
  q = TUFF_FMA(q, u, vec4(-0.00118908682));
  q = TUFF_FMA(q, u, vec4(0.0029029788));
  q = TUFF_FMA(q, u, vec4(-0.00738542713));
  q = TUFF_FMA(q, u, vec4(0.0205797311));
  q = TUFF_FMA(q, u, vec4(-0.0673523322));
  q = 7.93636875e-05 + q * u;
  bvec4 about_2 = greaterThan(t, vec4(0.35));
  vec4 v = mix(t, u, about_2);
  precise vec4 v_head = tuff_head(v);
  precise vec4 v_rest = v - v_head;
  TuffPair slope = tuff_pair(mix(vec4(0.822265625), vec4(0.3223876953125), about_2), mix(p, q, about_2));
  TuffPair change = tuff_pair_product(slope, TuffPair(v_head, v_rest));
  slope = tuff_pair(mix(vec4(-0.5771484375), vec4(0.4227294921875), about_2), change.head);
  precise vec4 small = (change.tail + mix(vec4(-6.72277019e-05), vec4(5.48433163e-05), about_2)) + slope.tail;
  precise vec4 base = tuff_pair_times(TuffPair(slope.head, small), v);

  TuffPair logarithm = tuff_log_pair(min(floatBitsToUint(a), uvec4(0x7f7fffffu)));
  precise vec4 less = logarithm.head - 1.0;
  slope = tuff_pair(less, logarithm.tail);
  precise vec4 inverse = 1.0 / a;
  precise vec4 w = inverse * inverse;
  precise vec4 r = TUFF_FMA(vec4(0.000877358834), w, vec4(-0.000695493713));
  r = TUFF_FMA(r, w, vec4(0.000806269934));
  r = TUFF_FMA(r, w, vec4(-0.00277822884));
  r = TUFF_FMA(r, w, vec4(0.0833333358));
  precise vec4 half_less = a - 0.5;
  precise vec4 product = tuff_pair_times(slope, half_less);
  precise vec4 stirling = product + (0.418938547 + (r * inverse - 1.37476e-8));
  base = mix(base, stirling, not(lessThan(t, vec4(1.5))));

  // |sin(pi a)| / pi = |f| S(f^2), where f is the distance of a from an integer.
  precise vec4 f = a - roundEven(a);
  precise vec4 z = f * f;
  precise vec4 s = TUFF_FMA(vec4(-0.00221547997), z, vec4(0.0261047427));
  s = TUFF_FMA(s, z, vec4(-0.190745384));
  s = TUFF_FMA(s, z, vec4(0.811742008));
  s = TUFF_FMA(s, z, vec4(-1.64493406));
  s = TUFF_FMA(s, z, vec4(1));
  precise vec4 reflected = tuff_abs(f) * s;
  reflected = reflected * mix(a, vec4(1.0), next);
  vec4 factor = mix(x, reflected, negative);
  vec4 k;
  precise vec4 parts = tuff_log_parts(factor, k);
  vec4 added = mix(-base, vec4(0.0), negative);
  precise vec4 of_factor = -tuff_log_ends(tuff_log_and(parts, k, added), factor);
  precise vec4 y = mix(mix(base, of_factor, next), of_factor - base, negative);
  bvec4 pole = bvec4(uvec4(negative) & uvec4(equal(f, vec4(0.0))));
  y = mix(y, vec4(TUFF_INFINITY), pole);
  y = mix(y, vec4(TUFF_INFINITY), greaterThan(a, vec4(4.0850034e36)));
  return mix(y, x, tuff_nans(x));
}

// ln(y) + w P(w) with w = y^-2 for the derivative at y + 1/2, from 2 on; in [1, 2) a polynomial about the zero. Smaller
// arguments use the value at 1 + a less 1 / a, negative ones the value at 1 + a plus pi cot(pi a).
vec4 tuff_digamma(vec4 x) {
  precise vec4 a = tuff_abs(x);
  bvec4 negative = lessThan(x, vec4(0.0)), below = lessThan(a, vec4(1.0));
  precise vec4 t = mix(a - 1.0, a, below);
  precise vec4 u = t - 0.5;
  // digamma(3/2 + u) / (3/2 + u - zero), where the zero is a sum of two floats
  precise vec4 p = TUFF_FMA(vec4(0.011093826), u, vec4(-0.0163728222));
  p = TUFF_FMA(p, u, vec4(0.0169963595));
  p = TUFF_FMA(p, u, vec4(-0.02578789));
  p = TUFF_FMA(p, u, vec4(0.0408757329));
  p = TUFF_FMA(p, u, vec4(-0.0620556287));
  p = TUFF_FMA(p, u, vec4(0.0949824154));
  p = TUFF_FMA(p, u, vec4(-0.148398906));
  p = TUFF_FMA(p, u, vec4(0.240542606));
  p = TUFF_FMA(p, u, vec4(-0.423627496));
  p = 0.000128141255 + p * u;
  precise vec4 from_zero = t - 0.46163213253;
  precise vec4 near_part = tuff_pair_times(tuff_pair(vec4(0.950927734375), p), from_zero);
  precise vec4 near = near_part - 1.24381499e-8 * (0.950927734375 + p);
  precise vec4 middle = mix(a - 0.5, a + 0.5, negative);
  precise vec4 inverse = 1.0 / middle;
  precise vec4 w = inverse * inverse;
  precise vec4 q = TUFF_FMA(vec4(0.00222737738), w, vec4(-0.00460499944));
  q = TUFF_FMA(q, w, vec4(0.0046940851));
  q = TUFF_FMA(q, w, vec4(-0.00379863405));
  q = TUFF_FMA(q, w, vec4(0.00382274739));
  q = TUFF_FMA(q, w, vec4(-0.00729110371));
  q = TUFF_FMA(q, w, vec4(0.0416666642));
  precise vec4 more = q * w;
  vec4 k;
  precise vec4 parts = tuff_log_parts(middle, k);
  bvec4 far = not(lessThan(a, mix(vec4(2.0), vec4(1.0), negative)));
  precise vec4 base = mix(near, tuff_log_and(parts, k, more), far);

  // 1 / f as a sum of two floats, and pi cot(pi f) - 1 / f = f C(f^2)
  precise vec4 fraction = a - roundEven(a);
  precise vec4 z = fraction * fraction;
  precise vec4 c = TUFF_FMA(vec4(-8.33158493), z, vec4(1.95826375));
  c = TUFF_FMA(c, z, vec4(-3.12744522));
  c = TUFF_FMA(c, z, vec4(-1.83371091));
  c = TUFF_FMA(c, z, vec4(-2.02141905));
  c = TUFF_FMA(c, z, vec4(-2.0341804));
  c = TUFF_FMA(c, z, vec4(-2.16465378));
  c = TUFF_FMA(c, z, vec4(-3.28986812));
  precise vec4 f = mix(-a, fraction, negative);
  precise vec4 f_inverse = 1.0 / f;
  precise vec4 head = tuff_head(f_inverse), f_head = tuff_head(f);
  precise vec4 left = ((1.0 - head * f_head) - head * (f - f_head)) * f_inverse;
  precise vec4 rest = left + mix(vec4(0.0), fraction * c, negative);
  precise vec4 reflected = head + (rest + base);
  bvec4 reflects = bvec4(uvec4(negative) | uvec4(below));
  vec4 y = mix(base, reflected, reflects);
  y = mix(y, -tuff_divide(vec4(1.0), x), lessThan(a, vec4(1e-20)));
  y = mix(y, x, equal(x, vec4(TUFF_INFINITY)));
  bvec4 pole = bvec4(uvec4(negative) & uvec4(equal(fraction, vec4(0.0))) & uvec4(not(lessThan(a, vec4(1.0)))));
  y = mix(y, vec4(TUFF_NAN), pole);
  return mix(y, x, tuff_nans(x));
}
