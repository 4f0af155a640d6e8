// Short forms of asin, acos and atan. NaN is not larger than a bound, and passes through the polynomials.

// asin a / a for a <= 1/2, of z = a^2
vec4 tuff_short_asin_quotient(vec4 z) {
  vec4 p = fma(vec4(0.0421583056), z, vec4(0.0241847783));
  p = fma(p, z, vec4(0.0454691499));
  p = fma(p, z, vec4(0.0749530941));
  p = fma(p, z, vec4(0.166667521));
  return fma(z, p, vec4(1.0));
}

// asin s, and z, of s = |x|, or from 1/2 on of s = sqrt((1 - |x|) / 2)
vec4 tuff_short_half_angle(vec4 a, bvec4 far) {
  vec4 z = mix(a * a, fma(a, vec4(-0.5), vec4(0.5)), far);
  return mix(a, sqrt(z), far) * tuff_short_asin_quotient(z);
}

vec4 tuff_short_asin(vec4 x) {
  vec4 a = abs(x);
  bvec4 far = greaterThan(a, vec4(0.5));
  vec4 angle = tuff_short_half_angle(a, far);
  vec4 y = mix(angle, fma(angle, vec4(-2.0), vec4(1.57079632679489662)), far);
  return tuff_with_sign(mix(y, vec4(TUFF_NAN), greaterThan(a, vec4(1.0))), x);
}

vec4 tuff_short_acos(vec4 x) {
  vec4 a = abs(x);
  bvec4 far = greaterThan(a, vec4(0.5));
  vec4 angle = tuff_with_sign(tuff_short_half_angle(a, far), x);
  vec4 end = mix(vec4(0.0), vec4(3.14159265358979324), lessThan(x, vec4(0.0)));
  vec4 y = mix(1.57079632679489662 - angle, fma(angle, vec4(2.0), end), far);
  return mix(y, vec4(TUFF_NAN), greaterThan(a, vec4(1.0)));
}

// pi / 2 - atan(1 / a) beyond 1
vec4 tuff_short_atan(vec4 x) {
  vec4 a = abs(x);
  bvec4 far = greaterThan(a, vec4(1.0));
  vec4 t = mix(a, 1.0 / a, far);
  vec4 z = t * t;
  vec4 p = fma(vec4(0.00291957567), z, vec4(-0.0163636245));
  p = fma(p, z, vec4(0.0432051755));
  p = fma(p, z, vec4(-0.0755167976));
  p = fma(p, z, vec4(0.106657721));
  p = fma(p, z, vec4(-0.14211002));
  p = fma(p, z, vec4(0.199937671));
  p = fma(p, z, vec4(-0.333331525));
  vec4 angle = t * fma(z, p, vec4(1.0));
  return tuff_with_sign(mix(angle, 1.57079632679489662 - angle, far), x);
}
