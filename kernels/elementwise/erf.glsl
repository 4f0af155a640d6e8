#include "kernels/elementwise/pairs.glsl"

// The error function on vec4: x + x P(x^2) below 59/64, and 1 - e^-Q(|x|) from there on, which is 1 from |x| = 4. P and
// Q are minimax polynomials in relative error, fitted to erf(x) / x - 1 and -ln erfc(x) / x in double precision
// (Lawson's iteration); their errors are below 2^-25.9 and 2^-28. The split point is that of W. J. Cody, "Rational
// Chebyshev Approximations for the Error Function", Math. Comp. 23 (1969). The remaining errors are the rounding of the
// final multiplication and addition, and that of e^-Q, which is below 0.2. Over all 2^32 arguments the largest error is
// 1.24 ULP.
vec4 tuff_erf(vec4 x) {
  precise vec4 a = tuff_abs(x);
  precise vec4 z = a * a;
  precise vec4 p = TUFF_FMA(vec4(-0.000598664396), z, vec4(0.00499236537));
  p = TUFF_FMA(p, z, vec4(-0.0267660692));
  p = TUFF_FMA(p, z, vec4(0.11281801));
  p = TUFF_FMA(p, z, vec4(-0.376124918));
  p = TUFF_FMA(p, z, vec4(0.128379151));
  precise vec4 near = TUFF_FMA(p, a, a);

  precise vec4 bounded = mix(a, vec4(4.0), greaterThan(a, vec4(4.0)));
  precise vec4 q = TUFF_FMA(vec4(-0.000213923006), bounded, vec4(0.00321444403));
  q = TUFF_FMA(q, bounded, vec4(-0.0228883214));
  q = TUFF_FMA(q, bounded, vec4(0.105259277));
  q = TUFF_FMA(q, bounded, vec4(0.635720253));
  q = TUFF_FMA(q, bounded, vec4(1.12851381));
  q = q * bounded;
  precise vec4 far = 1.0 - tuff_exp(-q);

  vec4 y = mix(far, near, lessThan(a, vec4(0.921875)));
  // The sign is applied last, to NaN as well: see tuff_tanh.
  return tuff_with_sign(mix(y, a, tuff_nans(x)), x);
}

// e^(-x^2) P(x / (x + 3)) / (1 + 2 x), or 2 minus that for -x. P is a minimax fit over [0, 10.1], to 2^-29. The factors
// and x^2 are kept as sums of two floats.
vec4 tuff_erfc(vec4 x) {
  precise vec4 a = tuff_abs(x);
  a = mix(a, vec4(11.0), greaterThan(a, vec4(11.0)));  // the result reaches 0 before
  precise vec4 shifted = a + 3.0;
  precise vec4 t = tuff_divide_moderate(a, shifted) - 0.25;
  precise vec4 p = TUFF_FMA(vec4(-0.274817854), t, vec4(0.288781285));
  p = TUFF_FMA(p, t, vec4(0.635694861));
  p = TUFF_FMA(p, t, vec4(-1.0772115));
  p = TUFF_FMA(p, t, vec4(-0.903987348));
  p = TUFF_FMA(p, t, vec4(4.32454681));
  p = TUFF_FMA(p, t, vec4(-6.07269669));
  p = TUFF_FMA(p, t, vec4(4.79812336));
  p = TUFF_FMA(p, t, vec4(-2.11702347));
  p = TUFF_FMA(p, t, vec4(0.189499229));
  p = 3.58870639e-05 + p * t;
  precise vec4 twice = a + a;
  TuffPair numerator = tuff_pair(vec4(1.28271484375), p);
  TuffPair factor = tuff_pair_quotient(numerator, tuff_pair(max(twice, vec4(1.0)), min(twice, vec4(1.0))));
  precise vec4 head = tuff_head(a);
  precise vec4 high = -(head * head), low = -((a - head) * (a + head));
  ivec4 n;
  TuffPair power = tuff_exp_pair(high, low, n);
  precise vec4 product = power.head * factor.head +
                         (power.head * factor.tail + power.tail * (factor.head + factor.tail));
  precise vec4 right = tuff_scaled(product, n);
  precise vec4 left = 2.0 - right;
  return mix(mix(right, left, lessThan(x, vec4(0.0))), x, tuff_nans(x));
}
