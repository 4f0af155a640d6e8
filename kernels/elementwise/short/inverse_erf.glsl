// Short form of the inverse of the error function: x P(w) with w = log2(1 - x^2), of which an absolute error is enough.
// No number of 11 bits below 1 has a w below -10.01.
vec4 tuff_short_erfinv(vec4 x) {
  vec4 a = abs(x);
  vec4 w = fma(log2((1.0 - a) * (1.0 + a)), vec4(-0.2), vec4(-1.0));
  vec4 p = fma(vec4(0.000157518996), w, vec4(-0.000182126649));
  p = fma(p, w, vec4(-0.000734384521));
  p = fma(p, w, vec4(0.00207132776));
  p = fma(p, w, vec4(-0.000798776338));
  p = fma(p, w, vec4(-0.00788065419));
  p = fma(p, w, vec4(0.0232600626));
  p = fma(p, w, vec4(-0.0209445711));
  p = fma(p, w, vec4(-0.080071792));
  p = fma(p, w, vec4(0.817279398));
  p = fma(p, w, vec4(1.73475766));
  vec4 y = x * p;
  y = mix(y, tuff_with_sign(vec4(TUFF_INFINITY), x), equal(a, vec4(1.0)));
  return mix(y, vec4(TUFF_NAN), greaterThan(a, vec4(1.0)));
}
