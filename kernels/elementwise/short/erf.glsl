// Short forms of the error function and of its complement.
#include "kernels/elementwise/short/exponentials.glsl"

// x P(x^2), and beyond 3/4 1 - t Q(t) e^(-x^2) with t = 1 / (1 + |x| / 2). NaN is not beyond.
vec4 tuff_short_erf(vec4 x) {
  vec4 a = abs(x), z = x * x;
  vec4 p = fma(vec4(-0.000183052951), z, vec4(0.00441666972));
  p = fma(p, z, vec4(-0.0264874697));
  p = fma(p, z, vec4(0.112762995));
  p = fma(p, z, vec4(-0.376121104));
  p = fma(p, z, vec4(1.12837911));
  vec4 near = x * p;
  vec4 t = 1.0 / fma(a, vec4(0.5), vec4(1.0));
  vec4 q = fma(vec4(-0.20949094), t, vec4(0.571042359));
  q = fma(q, t, vec4(0.016127361));
  q = fma(q, t, vec4(0.347510457));
  q = fma(q, t, vec4(0.274717212));
  vec4 far = tuff_with_sign(fma(t * q, -exp2(z * -1.44269504088896341), vec4(1.0)), x);
  return mix(near, far, greaterThan(a, vec4(0.75)));
}

// 1 - x Q(x^2), and where |x| is above 1/2 t P(t) e^(-x^2) with t = 1 / (1 + 0.3 |x|), or 2 less that for negative x.
// NaN is not above.
vec4 tuff_short_erfc(vec4 x) {
  vec4 z = x * x;
  vec4 q = fma(vec4(0.00425176974), z, vec4(-0.0264979489));
  q = fma(q, z, vec4(0.112780362));
  q = fma(q, z, vec4(-0.376122832));
  q = fma(q, z, vec4(1.12837911));
  vec4 near = fma(-x, q, vec4(1.0));
  vec4 a = min(abs(x), vec4(10.375));  // the result is 0 before
  vec4 t = 1.0 / fma(a, vec4(0.3), vec4(1.0));
  vec4 p = fma(vec4(-0.129551232), t, vec4(0.485711783));
  p = fma(p, t, vec4(-0.512612164));
  p = fma(p, t, vec4(0.548140109));
  p = fma(p, t, vec4(-0.0949732959));
  p = fma(p, t, vec4(0.215080693));
  p = fma(p, t, vec4(0.148294047));
  p = fma(p, t, vec4(0.170722544));
  p = fma(p, t, vec4(0.169187501));
  vec4 right = (t * p) * tuff_short_power_of_f32(-(a * a));
  return mix(near, mix(right, 2.0 - right, lessThan(x, vec4(0.0))), greaterThan(abs(x), vec4(0.5)));
}
