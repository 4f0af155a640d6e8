// The functions that generated formulas call (expression_glsl.cpp), on four elements. A value is held as
//
//   vec4     f32 (and what is stored as f16 and bf16)     dvec4     f64
//   ivec4    i8, i16, i32, sign-extended                   i64vec4   i64
//   uvec4    u8, u16, u32, zero-extended; bool as 0 or 1   u64vec4   u64
//
// A function has one overload for each of them that it takes. Results of 8- and 16-bit integers are wrapped by the
// caller. Floats are compared and classified by their bits, because a device may flush denormals, and a driver may
// assume that there is no NaN.
//# TUFF_COMPUTES_F64 : 0|1 : 1: some value is f64
//# TUFF_COMPUTES_INT64 : 0|1 : 1: some value is a 64-bit integer
//# TUFF_FILES : 0.. : bit i: the file with this number of unary.def and binary.def (functions.def) is needed
//# TUFF_DOUBLES : 0..127 : functions of f64: 1 exponentials, 2 logarithms, 4 trigonometry, 8 its inverse, 16 errors, 32 activations, 64 power
//# TUFF_OWN : 0..15 : functions of this file that are needed: 1 atan2, 2 hypot, 4 logaddexp, 8 remainders of floats
#if TUFF_COMPUTES_INT64
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#include "kernels/elementwise/math.glsl"
#include "kernels/expression/functions.def"

bvec4 expr_both(bvec4 a, bvec4 b) { return notEqual(uvec4(a) & uvec4(b), uvec4(0u)); }
bvec4 expr_either(bvec4 a, bvec4 b) { return notEqual(uvec4(a) | uvec4(b), uvec4(0u)); }

// --- Integers: V is the type of four, S of one, BITS of it.
#define EXPR_INTEGERS(V, S, BITS)                                                                          \
  V expr_add(V a, V b) { return a + b; }                                                                   \
  V expr_sub(V a, V b) { return a - b; }                                                                   \
  V expr_mul(V a, V b) { return a * b; }                                                                   \
  V expr_neg(V a) { return V(0) - a; }                                                                     \
  V expr_max(V a, V b) { return max(a, b); }                                                               \
  V expr_min(V a, V b) { return min(a, b); }                                                               \
  V expr_bitand(V a, V b) { return a & b; }                                                                \
  V expr_bitor(V a, V b) { return a | b; }                                                                 \
  V expr_bitxor(V a, V b) { return a ^ b; }                                                                \
  V expr_bitnot(V a) { return ~a; }                                                                        \
  V expr_shl(V a, V b) {                                                                                   \
    return mix(V(0), a << (b & V(BITS - 1)), expr_both(greaterThanEqual(b, V(0)), lessThan(b, V(BITS))));  \
  }                                                                                                        \
  uvec4 expr_eq(V a, V b) { return uvec4(equal(a, b)); }                                                   \
  uvec4 expr_ne(V a, V b) { return uvec4(notEqual(a, b)); }                                                \
  uvec4 expr_lt(V a, V b) { return uvec4(lessThan(a, b)); }                                                \
  uvec4 expr_le(V a, V b) { return uvec4(lessThanEqual(a, b)); }                                           \
  V expr_where(uvec4 c, V a, V b) { return mix(b, a, notEqual(c, uvec4(0u))); }

#define EXPR_UNSIGNED(V, S, BITS)                                                                          \
  EXPR_INTEGERS(V, S, BITS)                                                                                \
  V expr_shr(V a, V b) { return mix(V(0), a >> (b & V(BITS - 1)), lessThan(b, V(BITS))); }                 \
  V expr_abs(V a) { return a; }                                                                            \
  V expr_sign(V a) { return min(a, V(1)); }                                                                \
  V expr_floor_divide(V a, V b) { return mix(a / max(b, V(1)), V(0), equal(b, V(0))); }                    \
  V expr_fmod(V a, V b) { return mix(a - a / max(b, V(1)) * b, V(0), equal(b, V(0))); }                    \
  V expr_mod(V a, V b) { return expr_fmod(a, b); }                                                         \
  V expr_pow(V a, V b) {                                                                                   \
    V y = V(1);                                                                                            \
    for (; any(notEqual(b, V(0))); b >>= V(1), a *= a) y = mix(y, y * a, notEqual(b & V(1), V(0)));        \
    return y;                                                                                              \
  }                                                                                                        \
  V expr_gcd(V a, V b) {                                                                                   \
    while (any(notEqual(b, V(0)))) {                                                                       \
      const V rest = a - a / max(b, V(1)) * b;                                                             \
      const bvec4 going = notEqual(b, V(0));                                                               \
      a = mix(a, b, going);                                                                                \
      b = mix(b, rest, going);                                                                             \
    }                                                                                                      \
    return a;                                                                                              \
  }                                                                                                        \
  V expr_lcm(V a, V b) { return a / max(expr_gcd(a, b), V(1)) * b; }

// The quotient of the least number and -1 is not defined in GLSL, nor is one by zero.
#define EXPR_SIGNED(V, S, BITS, U)                                                                         \
  EXPR_INTEGERS(V, S, BITS)                                                                                \
  V expr_shr(V a, V b) {                                                                                   \
    return a >> mix(V(BITS - 1), b, expr_both(greaterThanEqual(b, V(0)), lessThan(b, V(BITS))));           \
  }                                                                                                        \
  V expr_abs(V a) { return max(a, V(0) - a); }                                                             \
  V expr_sign(V a) { return min(max(a, V(-1)), V(1)); }                                                    \
  V expr_quotient(V a, V b) {                                                                              \
    const bvec4 negated = equal(b, V(-1)), none = equal(b, V(0));                                          \
    return mix(mix(a / mix(b, V(1), expr_either(negated, none)), V(0) - a, negated), V(0), none);          \
  }                                                                                                        \
  V expr_fmod(V a, V b) { return mix(a - expr_quotient(a, b) * b, V(0), equal(b, V(0))); }                 \
  bvec4 expr_opposed(V rest, V b) { return expr_both(notEqual(rest, V(0)), lessThan(rest ^ b, V(0))); }    \
  V expr_mod(V a, V b) {                                                                                   \
    const V rest = expr_fmod(a, b);                                                                        \
    return mix(rest, rest + b, expr_opposed(rest, b));                                                     \
  }                                                                                                        \
  V expr_floor_divide(V a, V b) {                                                                          \
    const V y = expr_quotient(a, b);                                                                       \
    return mix(y, y - V(1), expr_opposed(expr_fmod(a, b), b));                                             \
  }                                                                                                        \
  V expr_pow(V a, V b) {                                                                                   \
    const V odd = b & V(1), inverse = mix(V(0), mix(V(1), a, notEqual(odd, V(0))), equal(expr_abs(a), V(1))); \
    const bvec4 negative = lessThan(b, V(0));                                                              \
    return mix(V(expr_pow(U(a), U(max(b, V(0))))), inverse, negative);                                     \
  }                                                                                                        \
  V expr_gcd(V a, V b) { return V(expr_gcd(U(expr_abs(a)), U(expr_abs(b)))); }                             \
  V expr_lcm(V a, V b) { return V(expr_lcm(U(expr_abs(a)), U(expr_abs(b)))); }

EXPR_UNSIGNED(uvec4, uint, 32)
EXPR_SIGNED(ivec4, int, 32, uvec4)
uvec4 expr_popcount(uvec4 a) { return uvec4(bitCount(a)); }
ivec4 expr_popcount(ivec4 a) { return bitCount(a); }

uvec4 expr_wrap_8(uvec4 a) { return a & 0xffu; }
uvec4 expr_wrap_16(uvec4 a) { return a & 0xffffu; }
ivec4 expr_wrap_8(ivec4 a) { return a << 24 >> 24; }
ivec4 expr_wrap_16(ivec4 a) { return a << 16 >> 16; }

#if TUFF_COMPUTES_INT64
EXPR_UNSIGNED(u64vec4, uint64_t, 64)
EXPR_SIGNED(i64vec4, int64_t, 64, u64vec4)
uint64_t expr_ones(uint64_t a) { return uint64_t(bitCount(unpackUint2x32(a).x) + bitCount(unpackUint2x32(a).y)); }
u64vec4 expr_popcount(u64vec4 a) { return u64vec4(expr_ones(a.x), expr_ones(a.y), expr_ones(a.z), expr_ones(a.w)); }
i64vec4 expr_popcount(i64vec4 a) { return i64vec4(expr_popcount(u64vec4(a))); }
#endif

// --- f32
ivec4 expr_order(vec4 x) {
  const ivec4 bits = floatBitsToInt(x), magnitude = bits & 0x7fffffff;
  return mix(magnitude, -magnitude, lessThan(bits, ivec4(0)));
}
bvec4 expr_ordered(vec4 a, vec4 b) { return not(expr_either(tuff_nans(a), tuff_nans(b))); }
uvec4 expr_eq(vec4 a, vec4 b) { return uvec4(expr_both(equal(expr_order(a), expr_order(b)), expr_ordered(a, b))); }
uvec4 expr_ne(vec4 a, vec4 b) { return expr_eq(a, b) ^ 1u; }
uvec4 expr_lt(vec4 a, vec4 b) { return uvec4(expr_both(lessThan(expr_order(a), expr_order(b)), expr_ordered(a, b))); }
uvec4 expr_le(vec4 a, vec4 b) {
  return uvec4(expr_both(lessThanEqual(expr_order(a), expr_order(b)), expr_ordered(a, b)));
}
uvec4 expr_isnan(vec4 a) { return uvec4(tuff_nans(a)); }
uvec4 expr_isinf(vec4 a) { return uvec4(equal(floatBitsToUint(a) & 0x7fffffffu, uvec4(0x7f800000u))); }
uvec4 expr_isfinite(vec4 a) { return uvec4(lessThan(floatBitsToUint(a) & 0x7fffffffu, uvec4(0x7f800000u))); }
uvec4 expr_signbit(vec4 a) { return floatBitsToUint(a) >> 31; }

vec4 expr_add(vec4 a, vec4 b) {
  precise vec4 y = a + b;
  return y;
}
vec4 expr_sub(vec4 a, vec4 b) {
  precise vec4 y = a - b;
  return y;
}
vec4 expr_mul(vec4 a, vec4 b) {
  precise vec4 y = a * b;
  return y;
}
vec4 expr_div(vec4 a, vec4 b) { return tuff_div(a, b); }
vec4 expr_max(vec4 a, vec4 b) { return tuff_max(a, b); }
vec4 expr_min(vec4 a, vec4 b) { return tuff_min(a, b); }
vec4 expr_sqrt(vec4 a) { return tuff_sqrt(a); }
vec4 expr_abs(vec4 a) { return tuff_abs(a); }
vec4 expr_neg(vec4 a) { return tuff_neg(a); }
vec4 expr_copysign(vec4 a, vec4 b) { return tuff_with_sign(a, b); }
vec4 expr_where(uvec4 c, vec4 a, vec4 b) {
  return uintBitsToFloat(mix(floatBitsToUint(b), floatBitsToUint(a), notEqual(c, uvec4(0u))));
}
// The sign of a zero result is that of the argument, and numbers from 2^23 on, infinities and NaN are themselves.
vec4 expr_whole(vec4 a, vec4 whole) {
  const uvec4 size = floatBitsToUint(a) & 0x7fffffffu;
  return mix(tuff_with_sign(whole, a), a, greaterThanEqual(size, uvec4(0x4b000000u)));
}
vec4 expr_floor(vec4 a) {
  // By comparison with zero in bits, so that the floor of a negative denormal is -1 wherever those are flushed.
  const bvec4 tiny = lessThan(floatBitsToUint(a) & 0x7fffffffu, uvec4(0x00800000u));
  const bvec4 below = greaterThan(floatBitsToUint(a), uvec4(0x80000000u));
  return mix(expr_whole(a, floor(a)), vec4(-1.0), expr_both(tiny, below));
}
vec4 expr_ceil(vec4 a) { return tuff_neg(expr_floor(tuff_neg(a))); }
vec4 expr_trunc(vec4 a) { return expr_whole(a, trunc(a)); }
vec4 expr_round(vec4 a) { return expr_whole(a, roundEven(a)); }
vec4 expr_sign(vec4 a) {
  const uvec4 size = floatBitsToUint(a) & 0x7fffffffu;
  const vec4 y = mix(tuff_with_sign(vec4(1.0), a), vec4(0.0), equal(size, uvec4(0u)));
  return mix(y, a, tuff_nans(a));
}
vec4 expr_nextafter(vec4 a, vec4 b) {
  const ivec4 from = expr_order(a), to = expr_order(b);
  const ivec4 next = from + ivec4(lessThan(from, to)) - ivec4(greaterThan(from, to));
  const vec4 moved = intBitsToFloat(mix(next, abs(next) | ivec4(0x80000000), lessThan(next, ivec4(0))));
  // From above or below, zero keeps the side that it is reached from.
  const vec4 y = mix(moved, tuff_with_sign(moved, a), equal(next, ivec4(0)));
  return mix(mix(y, b, equal(from, to)), uintBitsToFloat(uvec4(0x7fc00000u)), not(expr_ordered(a, b)));
}

#if TUFF_OWN & 1
// Cephes' atanf: x = tan(pi / 8) halves the range of the polynomial.
vec4 expr_atan2(vec4 y, vec4 x) {
  const vec4 size_y = tuff_abs(y), size_x = tuff_abs(x);
  const bvec4 steep = greaterThan(floatBitsToUint(size_y), floatBitsToUint(size_x));
  const vec4 small = mix(size_y, size_x, steep), large = mix(size_x, size_y, steep);
  // Equal ones, infinities and zeros among them.
  const bvec4 equals = equal(floatBitsToUint(small), floatBitsToUint(large));
  const bvec4 zero = equal(floatBitsToUint(large), uvec4(0u));
  vec4 t = tuff_div(small, mix(large, vec4(1.0), expr_either(zero, equals)));
  t = mix(mix(t, vec4(1.0), equals), vec4(0.0), zero);
  const bvec4 upper = greaterThan(t, vec4(0.4142135623730950));
  const vec4 u = mix(t, tuff_div(t - 1.0, t + 1.0), upper), z = u * u;
  const vec4 p = (((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z - 3.33329491539e-1) * z * u;
  precise vec4 angle = mix(vec4(0.0), vec4(0.78539816339744830), upper) + (p + u);
  // pi / 2 and pi as sums of two.
  angle = mix(angle, (1.5707963267948966 - angle) - 4.371139000186241e-8, steep);
  angle = mix(angle, (3.1415926535897932 - angle) - 8.742278000372482e-8, lessThan(floatBitsToInt(x), ivec4(0)));
  return mix(tuff_with_sign(angle, y), uintBitsToFloat(uvec4(0x7fc00000u)), not(expr_ordered(y, x)));
}
#endif
#if TUFF_OWN & 2
// Scaled by a power of two, so that squares neither overflow nor vanish.
vec4 expr_hypot(vec4 a, vec4 b) {
  const uvec4 size_a = floatBitsToUint(tuff_abs(a)), size_b = floatBitsToUint(tuff_abs(b));
  const uvec4 exponent = clamp(max(size_a, size_b) & 0x7f800000u, uvec4(0x0c800000u), uvec4(0x72800000u));
  const vec4 down = uintBitsToFloat(0x7f000000u - exponent), up = uintBitsToFloat(exponent);
  precise vec4 x = a * down;
  precise vec4 y = b * down;
  precise vec4 sum = x * x + y * y;
  precise vec4 root = tuff_sqrt(sum) * up;
  const bvec4 infinite = expr_either(equal(size_a, uvec4(0x7f800000u)), equal(size_b, uvec4(0x7f800000u)));
  return mix(root, vec4(TUFF_INFINITY), infinite);
}
#endif
#if TUFF_OWN & 4
vec4 expr_logaddexp(vec4 a, vec4 b) {
  const bvec4 same = equal(floatBitsToUint(a), floatBitsToUint(b));  // infinities, whose difference is NaN
  precise vec4 apart = mix(a - b, vec4(0.0), same);
  precise vec4 y = tuff_max(a, b) + tuff_softplus(tuff_neg(tuff_abs(apart)));
  return y;
}
#endif

// --- f64
#if TUFF_COMPUTES_F64
dvec4 expr_f64s(uvec4 low, uvec4 high) {
  return dvec4(packDouble2x32(uvec2(low.x, high.x)), packDouble2x32(uvec2(low.y, high.y)),
               packDouble2x32(uvec2(low.z, high.z)), packDouble2x32(uvec2(low.w, high.w)));
}
uvec4 expr_lows(dvec4 a) {
  return uvec4(unpackDouble2x32(a.x).x, unpackDouble2x32(a.y).x, unpackDouble2x32(a.z).x, unpackDouble2x32(a.w).x);
}
uvec4 expr_highs(dvec4 a) {
  return uvec4(unpackDouble2x32(a.x).y, unpackDouble2x32(a.y).y, unpackDouble2x32(a.z).y, unpackDouble2x32(a.w).y);
}
// 0x7ff00000 for infinities, more for NaN.
uvec4 expr_size(dvec4 a) { return (expr_highs(a) & 0x7fffffffu) | uvec4(notEqual(expr_lows(a), uvec4(0u))); }
bvec4 expr_nans(dvec4 a) { return greaterThan(expr_size(a), uvec4(0x7ff00000u)); }
bvec4 expr_ordered(dvec4 a, dvec4 b) { return not(expr_either(expr_nans(a), expr_nans(b))); }
uvec4 expr_eq(dvec4 a, dvec4 b) { return uvec4(expr_both(equal(a, b), expr_ordered(a, b))); }
uvec4 expr_ne(dvec4 a, dvec4 b) { return expr_eq(a, b) ^ 1u; }
uvec4 expr_lt(dvec4 a, dvec4 b) { return uvec4(expr_both(lessThan(a, b), expr_ordered(a, b))); }
uvec4 expr_le(dvec4 a, dvec4 b) { return uvec4(expr_both(lessThanEqual(a, b), expr_ordered(a, b))); }
uvec4 expr_isnan(dvec4 a) { return uvec4(expr_nans(a)); }
uvec4 expr_isinf(dvec4 a) { return uvec4(equal(expr_size(a), uvec4(0x7ff00000u))); }
uvec4 expr_isfinite(dvec4 a) { return uvec4(lessThan(expr_size(a), uvec4(0x7ff00000u))); }
uvec4 expr_signbit(dvec4 a) { return expr_highs(a) >> 31; }
dvec4 expr_where(uvec4 c, dvec4 a, dvec4 b) { return mix(b, a, notEqual(c, uvec4(0u))); }
dvec4 expr_add(dvec4 a, dvec4 b) {
  precise dvec4 y = a + b;
  return y;
}
dvec4 expr_sub(dvec4 a, dvec4 b) {
  precise dvec4 y = a - b;
  return y;
}
dvec4 expr_mul(dvec4 a, dvec4 b) {
  precise dvec4 y = a * b;
  return y;
}
dvec4 expr_div(dvec4 a, dvec4 b) {
  precise dvec4 y = a / b;
  return y;
}
dvec4 expr_sqrt(dvec4 a) { return sqrt(a); }
dvec4 expr_copysign(dvec4 a, dvec4 b) {
  return expr_f64s(expr_lows(a), (expr_highs(a) & 0x7fffffffu) | (expr_highs(b) & 0x80000000u));
}
dvec4 expr_abs(dvec4 a) { return expr_f64s(expr_lows(a), expr_highs(a) & 0x7fffffffu); }
dvec4 expr_neg(dvec4 a) { return expr_f64s(expr_lows(a), expr_highs(a) ^ 0x80000000u); }
dvec4 expr_max(dvec4 a, dvec4 b) { return mix(mix(b, a, expr_either(greaterThan(a, b), expr_nans(a))), b, expr_nans(b)); }
dvec4 expr_min(dvec4 a, dvec4 b) { return mix(mix(b, a, expr_either(lessThan(a, b), expr_nans(a))), b, expr_nans(b)); }
dvec4 expr_whole(dvec4 a, dvec4 whole) {
  return mix(expr_copysign(whole, a), a, greaterThanEqual(expr_size(a), uvec4(0x43300000u)));
}
// Not by floor() and its like: Mesa 22.3's CPU driver returns doubles beyond 2^24 as they are, on processors without
// AVX-512.
dvec4 expr_nearest(dvec4 size) {
  // The sum has no digits after the point, and is rounded to even.
  precise dvec4 moved = size + 4503599627370496.0LF;
  precise dvec4 whole = moved - 4503599627370496.0LF;
  return whole;
}
dvec4 expr_below(dvec4 size) {
  const dvec4 nearest = expr_nearest(size);
  return mix(nearest, nearest - 1.0LF, greaterThan(nearest, size));
}
dvec4 expr_above(dvec4 size) {
  const dvec4 nearest = expr_nearest(size);
  return mix(nearest, nearest + 1.0LF, lessThan(nearest, size));
}
bvec4 expr_negative(dvec4 a) { return greaterThanEqual(expr_highs(a), uvec4(0x80000000u)); }
dvec4 expr_floor(dvec4 a) {
  return expr_whole(a, mix(expr_below(expr_abs(a)), expr_above(expr_abs(a)), expr_negative(a)));
}
dvec4 expr_ceil(dvec4 a) {
  return expr_whole(a, mix(expr_above(expr_abs(a)), expr_below(expr_abs(a)), expr_negative(a)));
}
dvec4 expr_trunc(dvec4 a) { return expr_whole(a, expr_below(expr_abs(a))); }
dvec4 expr_round(dvec4 a) { return expr_whole(a, expr_nearest(expr_abs(a))); }
dvec4 expr_sign(dvec4 a) {
  const dvec4 y = mix(expr_copysign(dvec4(1.0LF), a), dvec4(0.0LF), equal(expr_size(a), uvec4(0u)));
  return mix(y, a, expr_nans(a));
}
#if TUFF_COMPUTES_INT64
// By integers, as in f32: numbers in order, zeros as one.
int64_t expr_order(uint64_t bits) {
  const int64_t size = int64_t(bits & ~(1ul << 63));
  return (bits >> 63) != 0ul ? -size : size;
}
double expr_nextafter(double a, double b) {
  const uint64_t bits_a = packUint2x32(unpackDouble2x32(a)), bits_b = packUint2x32(unpackDouble2x32(b));
  const uint64_t sign = 1ul << 63, infinite = 0x7fful << 52;
  if ((bits_a & ~sign) > infinite || (bits_b & ~sign) > infinite) return packDouble2x32(uvec2(0u, 0x7ff80000u));
  const int64_t from = expr_order(bits_a), to = expr_order(bits_b);
  if (from == to) return b;
  const int64_t next = from < to ? from + 1l : from - 1l;
  const uint64_t size = uint64_t(next < 0l ? -next : next);
  // From above or below, zero keeps the side that it is reached from.
  const bool below = next < 0l || (next == 0l && from < 0l);
  return packDouble2x32(unpackUint2x32(below ? size | sign : size));
}
dvec4 expr_nextafter(dvec4 a, dvec4 b) {
  return dvec4(expr_nextafter(a.x, b.x), expr_nextafter(a.y, b.y), expr_nextafter(a.z, b.z), expr_nextafter(a.w, b.w));
}
#endif
#endif

// A bit is set together with those of the files that it needs.
#if TUFF_DOUBLES
#include "kernels/elementwise/doubles/parts.glsl"
#endif
#if TUFF_DOUBLES & 1
#include "kernels/elementwise/doubles/exponentials.glsl"
#endif
#if TUFF_DOUBLES & 2
#include "kernels/elementwise/doubles/logarithms.glsl"
#endif
#if TUFF_DOUBLES & 4
#include "kernels/elementwise/doubles/trigonometry.glsl"
#endif
#if TUFF_DOUBLES & 8
#include "kernels/elementwise/doubles/inverse_trigonometry.glsl"
dvec4 expr_atan2(dvec4 a, dvec4 b) { return tuff_atan2(a, b); }
#endif
#if TUFF_DOUBLES & 16
#include "kernels/elementwise/doubles/errors.glsl"
#endif
#if TUFF_DOUBLES & 32
#include "kernels/elementwise/doubles/activations.glsl"
#endif
#if TUFF_DOUBLES & 64
#include "kernels/elementwise/doubles/power.glsl"
dvec4 expr_hypot(dvec4 a, dvec4 b) { return tuff_hypot(a, b); }
#endif

// --- Remainders of floats: exact, by long division of the significands, 8 bits (f64: 11) at a time.
#if TUFF_OWN & 8
uint expr_fmod_bits(uint a, uint b) {  // of magnitudes, both finite, b not 0
  int from = int(a >> 23), to = int(b >> 23);
  uint x = from == 0 ? a : (a & 0x7fffffu) | 0x800000u, y = to == 0 ? b : (b & 0x7fffffu) | 0x800000u;
  from = max(from, 1);
  to = max(to, 1);
  if (from < to) return a;
  x %= y;
  for (int left = from - to; left > 0; left -= 8) x = (x << uint(min(left, 8))) % y;
  // x < y is the remainder in units of 2^(to - 150).
  const int up = min(23 - findMSB(x | 1u), to - 1);
  x <<= uint(up);
  return x < 0x800000u ? x : (x & 0x7fffffu) | uint(to - up) << 23;
}
vec4 expr_fmod(vec4 a, vec4 b) {
  const uvec4 size_a = floatBitsToUint(a) & 0x7fffffffu, size_b = floatBitsToUint(b) & 0x7fffffffu;
  const bvec4 none = expr_either(expr_either(equal(size_b, uvec4(0u)), tuff_nans(b)),
                                 greaterThanEqual(size_a, uvec4(0x7f800000u)));
  const bvec4 whole = greaterThanEqual(size_b, uvec4(0x7f800000u));
  const uvec4 x = mix(size_a, uvec4(0u), none), y = mix(size_b, uvec4(0x3f800000u), expr_either(none, whole));
  const uvec4 rest = uvec4(expr_fmod_bits(x.x, y.x), expr_fmod_bits(x.y, y.y), expr_fmod_bits(x.z, y.z),
                           expr_fmod_bits(x.w, y.w));
  const uvec4 bits = mix(rest, size_a, whole) | (floatBitsToUint(a) & 0x80000000u);
  return uintBitsToFloat(mix(bits, uvec4(0x7fc00000u), none));
}
#if TUFF_COMPUTES_F64
uint64_t expr_fmod_bits(uint64_t a, uint64_t b) {
  int from = int(a >> 52), to = int(b >> 52);
  const uint64_t top = 1ul << 52, fraction = top - 1ul;
  uint64_t x = from == 0 ? a : (a & fraction) | top, y = to == 0 ? b : (b & fraction) | top;
  from = max(from, 1);
  to = max(to, 1);
  if (from < to) return a;
  x %= y;
  for (int left = from - to; left > 0; left -= 11) x = (x << uint(min(left, 11))) % y;
  const uvec2 words = unpackUint2x32(x);
  const int msb = words.y != 0u ? 32 + findMSB(words.y) : findMSB(words.x | 1u);
  const int up = min(52 - msb, to - 1);
  x <<= uint(up);
  return x < top ? x : (x & fraction) | uint64_t(to - up) << 52;
}
double expr_fmod(double a, double b) {
  const uint64_t sign = 1ul << 63, infinite = 0x7fful << 52;
  const uint64_t bits_a = packUint2x32(unpackDouble2x32(a)), bits_b = packUint2x32(unpackDouble2x32(b));
  const uint64_t x = bits_a & ~sign, y = bits_b & ~sign;
  if (y == 0ul || y > infinite || x >= infinite) return packDouble2x32(uvec2(0u, 0x7ff80000u));
  if (y == infinite) return a;
  return packDouble2x32(unpackUint2x32(expr_fmod_bits(x, y) | (bits_a & sign)));
}
dvec4 expr_fmod(dvec4 a, dvec4 b) {
  return dvec4(expr_fmod(a.x, b.x), expr_fmod(a.y, b.y), expr_fmod(a.z, b.z), expr_fmod(a.w, b.w));
}
#endif
// As Python defines them: the remainder has the divisor's sign, and the quotient is the whole number next to
// (a - remainder) / b.
#define EXPR_FLOOR_RULE(V)                                                                       \
  V expr_mod(V a, V b) {                                                                         \
    const V rest = expr_fmod(a, b);                                                              \
    const uvec4 zero = expr_eq(rest, V(0)), other = expr_signbit(rest) ^ expr_signbit(b);        \
    return expr_where(zero, expr_copysign(rest, b), expr_where(other, expr_add(rest, b), rest)); \
  }                                                                                              \
  V expr_floor_divide(V a, V b) {                                                                \
    const V rest = expr_fmod(a, b), plain = expr_div(a, b);                                      \
    const uvec4 other = (expr_signbit(rest) ^ expr_signbit(b)) & expr_ne(rest, V(0));            \
    V y = expr_div(expr_sub(a, rest), b);                                                        \
    y = expr_where(other, expr_sub(y, V(1)), y);                                                 \
    const V down = expr_floor(y);                                                                \
    const V near = expr_where(expr_lt(V(0.5), expr_sub(y, down)), expr_add(down, V(1)), down);   \
    const V signed_zero = expr_copysign(V(0), plain);                                            \
    return expr_where(expr_eq(b, V(0)), plain, expr_where(expr_eq(y, V(0)), signed_zero, near)); \
  }
EXPR_FLOOR_RULE(vec4)
#if TUFF_COMPUTES_F64
EXPR_FLOOR_RULE(dvec4)
#endif
#endif
