// Short forms of sin, cos and tan below 8192 in magnitude. The device's own have an absolute error, which is large
// beside results near 0. An angle is reduced by three parts of pi. Products of the first two with a number of turns are
// exact.
#include "kernels/elementwise/trigonometry.glsl"

bool tuff_short_large(vec4 x) { return any(not(lessThan(abs(x), vec4(8192.0)))); }

// x - n pi
vec4 tuff_short_angle(vec4 x, vec4 n) {
  precise vec4 first = fma(n, vec4(-3.140625), x);
  precise vec4 second = fma(n, vec4(-0.0009675025939941406), first);
  precise vec4 r = fma(n, vec4(-1.5099579909783765e-07), second);
  return r;
}

// sin r for |r| <= pi / 2, negated for odd whole numbers.
vec4 tuff_short_sine(vec4 r, uvec4 whole) {
  vec4 z = r * r;
  vec4 p = fma(vec4(2.60610295e-06), z, vec4(-0.000198097783));
  p = fma(p, z, vec4(0.00833306927));
  p = fma(p, z, vec4(-0.166666597));
  vec4 y = r * fma(z, p, vec4(1.0));
  return uintBitsToFloat(floatBitsToUint(y) ^ (whole << 31));
}

vec4 tuff_short_sin(vec4 x) {
  if (tuff_short_large(x)) return tuff_sin(x);
  precise vec4 whole = fma(x, vec4(0.31830988618379067), vec4(TUFF_WHOLE));
  precise vec4 n = whole - TUFF_WHOLE;
  return tuff_short_sine(tuff_short_angle(x, n), floatBitsToUint(whole));
}

// -sin(x - (n + 1/2) pi), negated for odd n
vec4 tuff_short_cos(vec4 x) {
  if (tuff_short_large(x)) return tuff_cos(x);
  precise vec4 turns = fma(x, vec4(0.31830988618379067), vec4(-0.5));
  precise vec4 whole = turns + TUFF_WHOLE;
  precise vec4 n = (whole - TUFF_WHOLE) + 0.5;
  return tuff_short_sine(tuff_short_angle(x, n), floatBitsToUint(whole) + 1u);
}

// tan r for |r| <= pi / 4, or -1 / tan r.
vec4 tuff_short_tan(vec4 x) {
  if (tuff_short_large(x)) return tuff_tan(x);
  precise vec4 whole = fma(x, vec4(0.63661977236758134), vec4(TUFF_WHOLE));
  precise vec4 n = whole - TUFF_WHOLE;
  vec4 r = tuff_short_angle(x, 0.5 * n);
  vec4 z = r * r;
  vec4 p = fma(vec4(0.00938981958), z, vec4(0.00311165513));
  p = fma(p, z, vec4(0.02443601));
  p = fma(p, z, vec4(0.053409338));
  p = fma(p, z, vec4(0.133388281));
  p = fma(p, z, vec4(0.333331555));
  vec4 even = r * fma(z, p, vec4(1.0));
  return mix(even, -1.0 / even, equal(floatBitsToUint(whole) & 1u, uvec4(1u)));
}
