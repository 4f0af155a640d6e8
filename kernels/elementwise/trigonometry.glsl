// sin, cos and tan of any f32, on vec4. The drivers' own may have an absolute error of 2^-11 (Vulkan), with no bound at
// all beyond pi.
//
// x 2/pi is computed modulo 4 in integers, from the 96 bits of 2/pi that matter for x's exponent (Payne and Hanek
// 1983). The two bits above the binary point are the quadrant. The fraction has more than 24 good bits however close x
// is to a multiple of pi/2 (2^-31 for f32). The reduced angle is a sum of two floats, which enter the results
// separately: its rounding would cost half a ULP or, for tan, more. Polynomials: Cephes (S. Moshier), single precision;
// for tan a minimax fit.
#include "kernels/elementwise/pairs.glsl"

// A zero word, then the bits of 2/pi.
const uint tuff_two_over_pi[8] = {0u,          0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                  0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};

uint tuff_bits_of_two_over_pi(uint word, uint shift) {
  return (tuff_two_over_pi[word] << shift) | ((tuff_two_over_pi[word + 1u] >> 1) >> (31u - shift));
}

// Returns r and the quadrant: |x| = quadrant pi/2 + r modulo 2 pi, with |r| <= pi/4.
TuffPair tuff_any_reduced_angle(vec4 x, out uvec4 quadrant) {
  uvec4 magnitude = floatBitsToUint(x) & 0x7fffffffu;
  bvec4 small = lessThan(magnitude, uvec4(0x3f000000u));  // below 1/2: needs no reduction
  uvec4 exponent = max(magnitude >> 23, uvec4(126u));
  exponent = min(exponent, uvec4(254u));
  uvec4 significand = ((magnitude & 0x007fffffu) | 0x00800000u) << 8;
  // The first bit of 2/pi whose product with the significand is below 4, counted from the zero word.
  uvec4 first = exponent - 120u;
  uvec4 w0, w1, w2;
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    uint word = first[c] >> 5, shift = first[c] & 31u;
    w0[c] = tuff_bits_of_two_over_pi(word, shift);
    w1[c] = tuff_bits_of_two_over_pi(word + 1u, shift);
    w2[c] = tuff_bits_of_two_over_pi(word + 2u, shift);
  }
  uvec4 h0, h1, h2, l0, l1, l2, carry, more;
  umulExtended(significand, w2, h2, l2);
  umulExtended(significand, w1, h1, l1);
  umulExtended(significand, w0, h0, l0);
  uvec4 p1 = uaddCarry(h2, l1, carry);
  uvec4 p2 = uaddCarry(h1, carry, more);
  uvec4 p3 = h0 + more;
  p2 = uaddCarry(p2, l0, carry);
  p3 += carry;
  // The binary point precedes bit 5 of p3.
  uvec4 high = (p3 << 26) | (p2 >> 6), low = (p2 << 26) | (p1 >> 6);
  uvec4 above = high >> 31;  // above one half: count down from the next quadrant
  quadrant = mix((p3 >> 6) + above, uvec4(0u), small);
  uvec4 mask = uvec4(0u) - above;
  high ^= mask;
  low ^= mask;
  // Each conversion takes at most 24 bits, so neither rounds.
  precise vec4 first_part = vec4(high & 0xffffff00u);
  precise vec4 second_part = vec4(high & 0xffu) + vec4(low >> 8) * 5.9604644775390625e-8;  // 2^-24
  TuffPair fraction = tuff_pair(first_part, second_part);
  // Times pi/2 and 2^-32. The first part of pi/2 has 12 bits.
  precise vec4 head = fraction.head * 3.65616870e-10;
  precise vec4 tail = fraction.head * 1.12649704e-13 + fraction.tail * 3.65729520e-10;
  bvec4 negative = equal(above, uvec4(1u));
  head = mix(head, -head, negative);
  tail = mix(tail, -tail, negative);
  return TuffPair(mix(head, tuff_abs(x), small), mix(tail, vec4(0.0), small));
}

#if TUFF_EXACT_ARITHMETIC
#define tuff_reduced_angle tuff_any_reduced_angle
#else
// For most arguments pi/2 in four parts suffices (Cody and Waite). The first three parts have 11 bits and n has 13, so
// the products are exact whether or not the device fuses them. The differences are exact too, or are rounded to nearby
// values. No f32 below 8192 is close enough to a multiple of pi/2 to need more.
TuffPair tuff_reduced_angle(vec4 x, out uvec4 quadrant) {
  vec4 a = tuff_abs(x);
  if (any(not(lessThan(a, vec4(8192.0))))) return tuff_any_reduced_angle(x, quadrant);
  precise vec4 whole = a * 0.63661977236758134 + TUFF_WHOLE;
  precise vec4 n = whole - TUFF_WHOLE;
  quadrant = floatBitsToUint(whole);
  precise vec4 r = (a - n * 1.5703125) - n * 0.0004837512969970703;
  precise vec4 third = n * 7.549533620476723e-08;
  precise vec4 head = tuff_head(r - third);
  precise vec4 tail = ((r - head) - third) - n * 2.563344151594519e-12;
  bvec4 small = lessThan(a, vec4(0.5));  // n is 0, and the tail may be denormal
  return TuffPair(mix(head, a, small), mix(tail, vec4(0.0), small));
}
#endif

// In these functions r = head + tail, with a tail of at most 2^-10 of r.
vec4 tuff_sine_of(vec4 head, vec4 tail) {
  precise vec4 r = head + tail;
  precise vec4 z = r * r;
  precise vec4 p = fma(vec4(-1.9515295891e-4), z, vec4(8.3321608736e-3));
  p = fma(p, z, vec4(-1.6666654611e-1));
  precise vec4 y = head + (tail + (p * z) * r);
  return y;
}

vec4 tuff_cosine_of(vec4 r) {
  precise vec4 z = r * r;
  precise vec4 p = fma(vec4(2.443315711809948e-5), z, vec4(-1.388731625493765e-3));
  p = fma(p, z, vec4(4.166664568298827e-2));
  precise vec4 y = fma(p, z * z, 1.0 - 0.5 * z);
  return y;
}

vec4 tuff_quarter(vec4 head, vec4 tail, uvec4 quadrant) {
  precise vec4 r = head + tail;
  vec4 y = mix(tuff_sine_of(head, tail), tuff_cosine_of(r), equal(quadrant & 1u, uvec4(1u)));
  return uintBitsToFloat(floatBitsToUint(y) ^ ((quadrant & 2u) << 30));
}

vec4 tuff_quarter(vec4 r, uvec4 quadrant) { return tuff_quarter(r, vec4(0.0), quadrant); }

bvec4 tuff_not_finite(vec4 x) { return greaterThanEqual(floatBitsToUint(x) & 0x7fffffffu, uvec4(0x7f800000u)); }

vec4 tuff_sin(vec4 x) {
  uvec4 quadrant;
  TuffPair r = tuff_reduced_angle(x, quadrant);
  vec4 y = tuff_quarter(r.head, r.tail, quadrant);
  y = uintBitsToFloat(floatBitsToUint(y) ^ (floatBitsToUint(x) & 0x80000000u));
  return mix(y, vec4(TUFF_NAN), tuff_not_finite(x));
}

vec4 tuff_cos(vec4 x) {
  uvec4 quadrant;
  TuffPair r = tuff_reduced_angle(x, quadrant);
  return mix(tuff_quarter(r.head, r.tail, quadrant + 1u), vec4(TUFF_NAN), tuff_not_finite(x));
}

// tan r, or -1 / tan r in odd quadrants; (tan(r) / r - 1) / r^2 is fitted to 2^-29.5 of the result.
vec4 tuff_tan(vec4 x) {
  uvec4 quadrant;
  TuffPair angle = tuff_reduced_angle(x, quadrant);
  precise vec4 r = angle.head + angle.tail;
  precise vec4 z = r * r;
  precise vec4 p = fma(vec4(4.37229732e-3), z, vec4(9.88984248e-5));
  p = fma(p, z, vec4(1.08270645e-2));
  p = fma(p, z, vec4(2.12862995e-2));
  p = fma(p, z, vec4(5.40589057e-2));
  p = fma(p, z, vec4(1.33326754e-1));
  p = fma(p, z, vec4(3.33333492e-1));
  precise vec4 rest = angle.tail + r * (z * p);
  precise vec4 even = angle.head + rest;
  TuffPair tangent = tuff_pair(angle.head, rest);
  precise vec4 inverse = 1.0 / even;
  precise vec4 head = tuff_head(inverse);
  precise vec4 left = (1.0 - head * tangent.head) - head * tangent.tail;
  precise vec4 odd = -(head + left * inverse);
  vec4 y = mix(even, odd, equal(quadrant & 1u, uvec4(1u)));
  y = uintBitsToFloat(floatBitsToUint(y) ^ (floatBitsToUint(x) & 0x80000000u));
  return mix(y, vec4(TUFF_NAN), tuff_not_finite(x));
}
