// Short forms of asinh, acosh and atanh: polynomials where the result is small, otherwise by the device's log2. NaN is
// not larger than a bound, and passes through the polynomials.

// ln(x + root) for a root of almost x beyond 4096, where x^2 may be infinite
vec4 tuff_short_log_of_sum(vec4 x, vec4 root) {
  bvec4 large = greaterThan(x, vec4(4096.0));
  vec4 more = mix(vec4(0.0), vec4(0.69314718055994531), large);
  return fma(log2(mix(x + root, x, large)), vec4(0.69314718055994531), more);
}

// x + x^3 P(x^2) up to 1/2
vec4 tuff_short_asinh(vec4 x) {
  vec4 a = abs(x), z = x * x;
  vec4 p = fma(vec4(-0.0132283997), z, vec4(0.0281634964));
  p = fma(p, z, vec4(-0.0443833172));
  p = fma(p, z, vec4(0.0749864206));
  p = fma(p, z, vec4(-0.166666433));
  vec4 near = x * fma(z, p, vec4(1.0));
  vec4 far = tuff_with_sign(tuff_short_log_of_sum(a, sqrt(z + 1.0)), x);
  return mix(near, far, greaterThan(a, vec4(0.5)));
}

// With d = x - 1, sqrt(2 d) (1 + d P(d)) up to 1/2
vec4 tuff_short_acosh(vec4 x) {
  vec4 d = x - 1.0;
  vec4 p = fma(vec4(-0.000413384667), d, vec4(0.0017602162));
  p = fma(p, d, vec4(-0.00554791419));
  p = fma(p, d, vec4(0.0187466051));
  p = fma(p, d, vec4(-0.0833332166));
  vec4 near = sqrt(d + d) * fma(d, p, vec4(1.0));
  vec4 far = tuff_short_log_of_sum(x, sqrt(fma(x, x, vec4(-1.0))));
  return mix(mix(near, far, greaterThan(d, vec4(0.5))), vec4(TUFF_NAN), lessThan(x, vec4(1.0)));
}

// x + x^3 P(x^2) up to 1/2, then ln((1 + |x|) / (1 - |x|)) / 2
vec4 tuff_short_atanh(vec4 x) {
  vec4 a = abs(x), z = x * x;
  vec4 p = fma(vec4(0.176399201), z, vec4(0.0515896492));
  p = fma(p, z, vec4(0.118167616));
  p = fma(p, z, vec4(0.142237455));
  p = fma(p, z, vec4(0.200024545));
  p = fma(p, z, vec4(0.333333015));
  vec4 near = x * fma(z, p, vec4(1.0));
  vec4 far = tuff_with_sign(log2((1.0 + a) * (1.0 / (1.0 - a))) * 0.34657359027997265, x);
  vec4 y = mix(near, far, greaterThan(a, vec4(0.5)));
  y = mix(y, tuff_with_sign(vec4(TUFF_INFINITY), x), equal(a, vec4(1.0)));
  return mix(y, vec4(TUFF_NAN), greaterThan(a, vec4(1.0)));
}
