// Short forms of activations. NaN stays NaN, and -0 stays -0, by the arithmetic itself unless they are selected.
#include "kernels/elementwise/short/exponentials.glsl"

// With q = e^(-|x| / 2), whose square may be denormal where the result is not, x / (1 + q^2) or x q^2 / (1 + q^2) is
// x sigmoid(x).
vec4 tuff_short_silu(vec4 x) {
#if TUFF_TYPE == TUFF_F16
  return max(x, vec4(-1000.0)) * (1.0 / (1.0 + tuff_short_power(-x)));
#else
  vec4 q = tuff_short_power(-0.5 * abs(x));
  vec4 below = (max(x, vec4(-1000.0)) * q) * q;  // q is 0 before; -infinity * 0 would be NaN
  return mix(x, below, lessThan(x, vec4(0.0))) * (1.0 / fma(q, q, vec4(1.0)));
#endif
}

// x sigmoid(t) in the same way.
vec4 tuff_short_gelu_tanh(vec4 x) {
  vec4 t = x * fma(x * x, vec4(0.0713548162726), vec4(1.59576912160573));
  vec4 q = tuff_short_power_of_f32(-0.5 * min(abs(t), vec4(208.0)));
  vec4 below = (max(x, vec4(-1000.0)) * q) * q;
  return mix(x, below, lessThan(t, vec4(0.0))) * (1.0 / fma(q, q, vec4(1.0)));
}

// max(x, 0) - |x| Phi(-|x|), where Phi(-a) e^(a^2 / 2) is a polynomial of t = 1 / (1 + 0.3 a) without constant.
vec4 tuff_short_gelu(vec4 x) {
  vec4 a = abs(x);
  vec4 t = 1.0 / fma(a, vec4(0.3), vec4(1.0));
  vec4 p = fma(vec4(0.0360364355), t, vec4(-0.158714011));
  p = fma(p, t, vec4(0.208965033));
  p = fma(p, t, vec4(-0.0560960807));
  p = fma(p, t, vec4(0.129843429));
  p = fma(p, t, vec4(0.0995230824));
  p = fma(p, t, vec4(0.120816886));
  p = fma(p, t, vec4(0.119625211));  // 1/2 at t = 1, exactly
  vec4 power = exp2((x * x) * -0.72134752044448170);
  vec4 below = ((min(a, vec4(100.0)) * t) * p) * power;  // of infinity the power is 0
  return tuff_with_sign(max(x, vec4(0.0)) - below, x);
}

// x n / (n + 2) with n = e (e + 2) and e = e^x. The square root of e is needed where e is denormal and x e is not.
vec4 tuff_short_mish(vec4 x) {
#if TUFF_TYPE == TUFF_F16
  vec4 e = tuff_short_power(min(x, vec4(20.0)));
  vec4 y = clamp(x, vec4(-1000.0), vec4(20.0)) * e;
#else
  vec4 q = tuff_short_power(min(0.5 * x, vec4(10.0)));
  vec4 e = q * q;
  vec4 y = (clamp(x, vec4(-1000.0), vec4(20.0)) * q) * q;
#endif
  vec4 more = e + 2.0;
  y = (y * more) * (1.0 / fma(e, more, vec4(2.0)));
  y = mix(y, x, greaterThan(x, vec4(20.0)));
  return mix(y, x, tuff_nans(x));
}

// x min(max(x + 3, 0), 6) / 6, but +0 on the left
vec4 tuff_short_hardswish(vec4 x) {
  vec4 y = x * (clamp(x + 3.0, vec4(0.0), vec4(6.0)) * 0.166666666666666667);
  y = mix(y, vec4(0.0), lessThanEqual(x, vec4(-3.0)));
  return mix(y, x, tuff_nans(x));
}

vec4 tuff_short_hardsigmoid(vec4 x) {
  return mix(clamp(x + 3.0, vec4(0.0), vec4(6.0)) * 0.166666666666666667, x, tuff_nans(x));
}

vec4 tuff_short_selu(vec4 x) {
  return mix(x * 1.05070098735548049, tuff_short_expm1(x) * 1.75809934084737685, lessThan(x, vec4(0.0)));
}

// ln(1 + e^-|x|) as 2 s + s^3 P(s^2) with s = e / (2 + e)
vec4 tuff_short_log1p_power(vec4 x) {
  vec4 e = tuff_short_power(-abs(x));
  vec4 s = e * (1.0 / (e + 2.0));
  vec4 z = s * s;
  vec4 p = fma(vec4(0.280067503), z, vec4(0.28003028));
  p = fma(p, z, vec4(0.400214374));
  p = fma(p, z, vec4(0.666664183));
  return s * fma(z, p, vec4(2.0));
}

vec4 tuff_short_softplus(vec4 x) {
  return mix(max(x, vec4(0.0)) + tuff_short_log1p_power(x), x, tuff_nans(x));
}

vec4 tuff_short_log_sigmoid(vec4 x) {
  vec4 y = -abs(min(x, vec4(0.0)) - tuff_short_log1p_power(x));  // -0 where the power is 0
  return mix(y, x, tuff_nans(x));
}
