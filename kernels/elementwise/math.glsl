// Elementary functions of f32 on vec4. The drivers' own are not accurate enough: Vulkan allows exp 3 + 2|x| ULP, log an
// absolute error of 2^-21 near 1, division 2.5 ULP and tanh almost anything.
//
//# TUFF_EXACT_ARITHMETIC : 0|1 : 1: "/" and sqrt are correctly rounded already (CPUs); 0: one step corrects them
// The correction step uses the residual, which fma computes exactly. Where the step is needed (GPUs), rounding and
// conversions between integers and floats cost up to eight additions each, so the code manipulates bits instead;
// denormal results become zero.
//
// NaN is recognised by its bits throughout, because a driver may assume that arithmetic never produces one. Sums whose
// order matters are written with + and *, not fma: `precise` binds only those (Mesa reorders a chain of fma).
// Polynomials: Cephes (S. Moshier), single precision. Measured errors: unary.def.

// a * b + c. Mesa's CPU driver implements fma as a multiplication and an addition that `precise` does not bind, so
// their order may differ from one kernel to the next.
#if TUFF_EXACT_ARITHMETIC
#define TUFF_FMA(a, b, c) ((a) * (b) + (c))
#else
#define TUFF_FMA(a, b, c) fma(a, b, c)
#endif

bvec4 tuff_nans(vec4 x) { return greaterThan(floatBitsToUint(x) & 0x7fffffffu, uvec4(0x7f800000u)); }

vec4 tuff_with_sign(vec4 magnitude, vec4 sign) {
  return uintBitsToFloat((floatBitsToUint(magnitude) & 0x7fffffffu) | (floatBitsToUint(sign) & 0x80000000u));
}

vec4 tuff_add(vec4 a, vec4 b) { return a + b; }
vec4 tuff_sub(vec4 a, vec4 b) { return a - b; }
vec4 tuff_mul(vec4 a, vec4 b) { return a * b; }

// a / b for 1 <= b < 2^126 and finite a.
vec4 tuff_divide_moderate(vec4 a, vec4 b) {
#if TUFF_EXACT_ARITHMETIC
  precise vec4 q = a / b;
  return q;
#else
  precise vec4 inverse = 1.0 / b;
  precise vec4 q = a * inverse;
  precise vec4 r = TUFF_FMA(-q, b, a);
  q = TUFF_FMA(r, inverse, q);
  return q;
#endif
}

// a / b as in IEEE 754, including zeros and infinities.
vec4 tuff_divide(vec4 a, vec4 b) {
#if TUFF_EXACT_ARITHMETIC
  precise vec4 q = a / b;
  return q;
#else
  // The reciprocal of a very large b is denormal and that of a very small b infinite, so scale b to the middle first.
  uvec4 magnitude = floatBitsToUint(b) & 0x7fffffffu;
  vec4 scale = mix(vec4(1.0), vec4(2.3283064365386963e-10), greaterThan(magnitude, uvec4(0x71800000u)));  // 2^-32
  scale = mix(scale, vec4(4294967296.0), lessThan(magnitude, uvec4(0x0d800000u)));
  precise vec4 d = b * scale;
  precise vec4 q = a / d;
  precise vec4 r = TUFF_FMA(-q, d, a);
  precise vec4 corrected = TUFF_FMA(r, 1.0 / d, q);
  // A zero, infinite or NaN q is already right, and its residual may be NaN.
  uvec4 bits = floatBitsToUint(q) & 0x7fffffffu;
  bvec4 keep = bvec4(uvec4(equal(bits, uvec4(0u))) | uvec4(greaterThanEqual(bits, uvec4(0x7f800000u))) |
                     uvec4(tuff_nans(corrected)));
  return mix(corrected, q, keep) * scale;
#endif
}

vec4 tuff_div(vec4 a, vec4 b) { return tuff_divide(a, b); }

// NaN below zero; -0 stays -0.
vec4 tuff_sqrt(vec4 x) {
  uvec4 bits = floatBitsToUint(x);
#if TUFF_EXACT_ARITHMETIC
  vec4 s = sqrt(x);
#else
  // A denormal is bits * 2^-149. Converting the bits as an integer works even where the device flushes denormals. Other
  // numbers below 2^-95 are scaled because their residual may be denormal.
  bvec4 tiny = lessThan(bits, uvec4(0x00800000u)), small = lessThan(bits, uvec4(0x10000000u));
  precise vec4 v = x * mix(vec4(1.0), vec4(18446744073709551616.0), small);  // 2^64
  v = mix(v, vec4(ivec4(bits + bits)), tiny);
  precise vec4 s = sqrt(v);
  precise vec4 r = TUFF_FMA(-s, s, v);
  vec4 scale = mix(vec4(1.0), vec4(2.3283064365386963e-10), small);  // 2^-32
  s = TUFF_FMA(r, 0.5 / s, s) * mix(scale, vec4(2.6469779601696886e-23), tiny);  // 2^-75
  // Zeros, +inf and NaN are kept: their residual is NaN.
  s = mix(s, x, equal(bits & 0x7fffffffu, uvec4(0u)));
  s = mix(s, x, greaterThanEqual(bits, uvec4(0x7f800000u)));
#endif
  return mix(s, vec4(TUFF_NAN), greaterThan(bits, uvec4(0x80000000u)));
}

// e^r - 1 for |r| <= ln(2)/2
vec4 tuff_exp_reduced(vec4 r) {
  precise vec4 p = TUFF_FMA(vec4(1.9875691500e-4), r, vec4(1.3981999507e-3));
  p = TUFF_FMA(p, r, vec4(8.3334519073e-3));
  p = TUFF_FMA(p, r, vec4(4.1665795894e-2));
  p = TUFF_FMA(p, r, vec4(1.6666665459e-1));
  p = TUFF_FMA(p, r, vec4(5.0000001201e-1));
  precise vec4 y = TUFF_FMA(p, r * r, r);
  return y;
}

// Adding TUFF_WHOLE rounds x to an integer, for |x| < 2^22: the last bits of the sum are those of the integer.
#define TUFF_WHOLE 12582912.0  // 1.5 * 2^23

// x * 2^n, as two multiplications: neither factor overflows unless the result does, and a denormal result is rounded
// only once, by the last multiplication.
vec4 tuff_times_power_of_2(vec4 x, vec4 n) {
  ivec4 exponent = ivec4(n);
  ivec4 half_exponent = exponent >> 1;
  precise vec4 y = x * intBitsToFloat((half_exponent + 127) << 23);
  y = y * intBitsToFloat((exponent - half_exponent + 127) << 23);
  return y;
}

// e^x: x = n ln 2 + r with |r| <= ln(2)/2, then a polynomial in r, times 2^n. ln 2 is split into two parts, the first
// of which times n is exact (Cody and Waite).
#if TUFF_EXACT_ARITHMETIC
vec4 tuff_exp(vec4 x) {
  vec4 c = mix(x, vec4(89.0), greaterThan(x, vec4(89.0)));  // e^89 overflows to infinity
  c = mix(c, vec4(-104.0), lessThan(c, vec4(-104.0)));      // e^-104 rounds to zero
  precise vec4 n = roundEven(c * 1.44269504088896341);
  precise vec4 r = (c - n * 0.693359375) + n * 2.12194440e-4;
  precise vec4 y = tuff_exp_reduced(r) + 1.0;
  return mix(tuff_times_power_of_2(y, n), x, tuff_nans(x));
}
#else
// 2^more e^x, if that is neither denormal nor infinite.
vec4 tuff_exp_normal(vec4 x, int more) {
  precise vec4 whole = x * 1.44269504088896341 + TUFF_WHOLE;
  precise vec4 n = whole - TUFF_WHOLE;
  precise vec4 r = (x - n * 0.693359375) + n * 2.12194440e-4;
  precise vec4 y = tuff_exp_reduced(r) + 1.0;
  return uintBitsToFloat(floatBitsToUint(y) + (floatBitsToUint(whole) << 23) + (uint(more) << 23));
}

vec4 tuff_exp(vec4 x) {
  vec4 y = tuff_exp_normal(x, 0);
  y = mix(y, vec4(0.0), lessThan(x, vec4(-87.33654)));
  y = mix(y, vec4(TUFF_INFINITY), greaterThan(x, vec4(88.72283)));
  return mix(y, x, tuff_nans(x));
}
#endif

// factor e^(high + low) for |factor| <= 1000, high <= 89 and |low| <= 1/8. The exponent is a sum that one float cannot
// hold. A denormal result is rounded only once, where e^… computed by itself would lose digits.
vec4 tuff_exp_times(vec4 factor, vec4 high, vec4 low) {
  vec4 c = mix(high, vec4(89.0), greaterThan(high, vec4(89.0)));
  c = mix(c, vec4(-120.0), lessThan(c, vec4(-120.0)));
#if TUFF_EXACT_ARITHMETIC
  precise vec4 n = roundEven((c + low) * 1.44269504088896341);
#else
  precise vec4 whole = (c + low) * 1.44269504088896341 + TUFF_WHOLE;
  precise vec4 n = whole - TUFF_WHOLE;
#endif
  precise vec4 r = (c - n * 0.693359375) + (n * 2.12194440e-4 + low);
  precise vec4 y = factor * (tuff_exp_reduced(r) + 1.0);
#if TUFF_EXACT_ARITHMETIC
  y = tuff_times_power_of_2(y, n);
#else
  // 2^(n/2) rounded down, and the rest of the power: neither leaves the range of exponents.
  ivec4 power = floatBitsToInt(whole) - floatBitsToInt(vec4(TUFF_WHOLE));
  ivec4 half_power = power >> 1;
  y = y * intBitsToFloat((half_power << 23) + 0x3f800000);
  y = y * intBitsToFloat(((power - half_power) << 23) + 0x3f800000);
#endif
  return mix(y, high, tuff_nans(high));
}

// x cut to the leading 12 bits of its significand. The product of two such numbers is exact.
vec4 tuff_head(vec4 x) { return uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u); }

// (ln (1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2): a minimax fit of the logarithm's relative error,
// which is 2^-30.
vec4 tuff_log_rest(vec4 f) {
  precise vec4 p = TUFF_FMA(vec4(6.75067306e-2), f, vec4(-1.16715498e-1));
  p = TUFF_FMA(p, f, vec4(1.18837342e-1));
  p = TUFF_FMA(p, f, vec4(-1.24060474e-1));
  p = TUFF_FMA(p, f, vec4(1.42203167e-1));
  p = TUFF_FMA(p, f, vec4(-1.66679949e-1));
  p = TUFF_FMA(p, f, vec4(2.0002073e-1));
  p = TUFF_FMA(p, f, vec4(-2.50000089e-1));
  p = TUFF_FMA(p, f, vec4(3.33333135e-1));
  return p;
}

// ln (1 + f) + k ln 2 + more, for a `more` that is smaller than the rest
vec4 tuff_log_and(vec4 f, vec4 k, vec4 more) {
  precise vec4 z = f * f;
  precise vec4 y = (f * z) * tuff_log_rest(f) + (more - k * 2.12194440e-4);
  y = (f + (y - 0.5 * z)) + k * 0.693359375;
  return y;
}

// ln (1 + f) + k ln 2
vec4 tuff_log_reduced(vec4 f, vec4 k) {
  precise vec4 z = f * f;
  precise vec4 y = (f * z) * tuff_log_rest(f) - k * 2.12194440e-4;
  y = (f + (y - 0.5 * z)) + k * 0.693359375;
  return y;
}

// Returns f and k of x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for finite x > 0. Denormals are scaled by
// converting their bits as integers, so the result is right even on a device that flushes denormals.
vec4 tuff_log_parts(vec4 x, out vec4 k) {
  uvec4 bits = floatBitsToUint(x);
  bvec4 tiny = lessThan(bits, uvec4(0x00800000u));  // x is bits * 2^-149
  uvec4 scaled = mix(bits, floatBitsToUint(vec4(ivec4(bits))), tiny);
  uvec4 above = scaled - 0x3f3504f3u;  // relative to the bits of sqrt(1/2): the exponent field is k, the rest is m's
  ivec4 exponent = (ivec4(above) >> 23) + mix(ivec4(0), ivec4(-149), tiny);
#if TUFF_EXACT_ARITHMETIC
  k = vec4(exponent);
#else
  precise vec4 whole = intBitsToFloat(exponent + floatBitsToInt(vec4(TUFF_WHOLE))) - TUFF_WHOLE;
  k = whole;
#endif
  precise vec4 f = uintBitsToFloat(scaled - (above & 0xff800000u)) - 1.0;
  return f;
}

// The logarithm y of x, or what it is at the ends of its range.
vec4 tuff_log_ends(vec4 y, vec4 x) {
  uvec4 bits = floatBitsToUint(x);
  y = mix(y, x, greaterThanEqual(bits, uvec4(0x7f800000u)));           // +inf and NaN are kept
  y = mix(y, vec4(TUFF_NAN), greaterThan(bits, uvec4(0x80000000u)));  // NaN below zero (and for any -NaN)
  return mix(y, vec4(-TUFF_INFINITY), equal(bits & 0x7fffffffu, uvec4(0u)));
}

// ln x: x = 2^k m with m in [sqrt(1/2), sqrt(2)), ln x = k ln 2 + ln m.
vec4 tuff_log(vec4 x) {
  vec4 k;
  precise vec4 f = tuff_log_parts(x, k);
  return tuff_log_ends(tuff_log_reduced(f, k), x);
}

// tanh |x| with the sign put back, so that -0 and odd symmetry are exact: a polynomial near zero, otherwise
// 1 - 2 / (e^2|x| + 1), which is 1 from 9.02 on.
vec4 tuff_tanh(vec4 x) {
  precise vec4 a = abs(x);
  precise vec4 z = a * a;
  precise vec4 p = TUFF_FMA(vec4(-5.70498872745e-3), z, vec4(2.06390887954e-2));
  p = TUFF_FMA(p, z, vec4(-5.37397155531e-2));
  p = TUFF_FMA(p, z, vec4(1.33314422036e-1));
  p = TUFF_FMA(p, z, vec4(-3.33332819422e-1));
  precise vec4 near = TUFF_FMA(p * z, a, a);
  vec4 bounded = mix(a, vec4(10.0), greaterThan(a, vec4(10.0)));
#if TUFF_EXACT_ARITHMETIC
  precise vec4 far = 1.0 - 2.0 / (tuff_exp(bounded + bounded) + 1.0);
#else
  precise vec4 divisor = tuff_exp_normal(bounded + bounded, 0) + 1.0;
  precise vec4 inverse = 1.0 / divisor;
  precise vec4 error = TUFF_FMA(-inverse, divisor, vec4(1.0));
  inverse = TUFF_FMA(error, inverse, inverse);
  precise vec4 far = 1.0 - 2.0 * inverse;  // the quotient is below 0.45
#endif
  vec4 y = mix(far, near, lessThan(a, vec4(0.625)));
  // The sign is applied last, to NaN as well: LLVM 19 miscompiles a selection after it on CPUs with AVX-512.
  return tuff_with_sign(mix(y, a, tuff_nans(x)), x);
}

// 1 / (1 + e^-x), or e^x / (1 + e^x) for negative x, so that the exponential never exceeds 1.
vec4 tuff_sigmoid(vec4 x) {
  precise vec4 e = tuff_exp(-abs(x));
  vec4 numerator = mix(vec4(1.0), e, lessThan(x, vec4(0.0)));
  vec4 y = tuff_divide_moderate(numerator, 1.0 + e);
  return mix(y, x, tuff_nans(x));
}

// Zero for negative x; NaN of either sign and -0 are kept.
vec4 tuff_relu(vec4 x) {
  return mix(x, vec4(0.0), lessThan(floatBitsToUint(x) - 0x80000001u, uvec4(0x7f800000u)));
}

vec4 tuff_abs(vec4 x) { return uintBitsToFloat(floatBitsToUint(x) & 0x7fffffffu); }
vec4 tuff_neg(vec4 x) { return uintBitsToFloat(floatBitsToUint(x) ^ 0x80000000u); }

#include "kernels/common/order.glsl"

// NaN if either operand is NaN, unlike GLSL's max and min.
vec4 tuff_max(vec4 a, vec4 b) {
  vec4 m = mix(b, a, greaterThan(tuff_order(a), tuff_order(b)));
  m = mix(m, b, tuff_nans(b));
  return mix(m, a, tuff_nans(a));
}
vec4 tuff_min(vec4 a, vec4 b) {
  vec4 m = mix(b, a, lessThan(tuff_order(a), tuff_order(b)));
  m = mix(m, b, tuff_nans(b));
  return mix(m, a, tuff_nans(a));
}
