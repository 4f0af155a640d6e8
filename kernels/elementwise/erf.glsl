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
