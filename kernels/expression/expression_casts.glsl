// Conversions between the types of expression_functions.glsl, as tuff_cast() makes them: to an integer truncated
// towards zero and saturated, NaN gives 0; to a float rounded to nearest even. expr_odd() rounds to odd, so that
// rounding its result to f16 or bf16 is the same as rounding once (Boldo and Melquiond 2008).
uvec4 expr_to_bool(uvec4 a) { return uvec4(notEqual(a, uvec4(0u))); }
uvec4 expr_to_bool(ivec4 a) { return uvec4(notEqual(a, ivec4(0))); }
uvec4 expr_to_bool(vec4 a) { return uvec4(notEqual(floatBitsToUint(a) & 0x7fffffffu, uvec4(0u))); }

ivec4 expr_to_i32(uvec4 a) { return ivec4(min(a, uvec4(0x7fffffffu))); }
uvec4 expr_to_u32(ivec4 a) { return uvec4(max(a, ivec4(0))); }
ivec4 expr_clamp(ivec4 a, int least, int most) { return clamp(a, ivec4(least), ivec4(most)); }
uvec4 expr_clamp(uvec4 a, uint most) { return min(a, uvec4(most)); }

// a where it is in range, otherwise 0, and what replaces it there.
ivec4 expr_to_i32(vec4 a) {
  const bvec4 high = greaterThanEqual(a, vec4(2147483648.0)), low = lessThan(a, vec4(-2147483648.0)),
              nan = tuff_nans(a);
  const ivec4 y = ivec4(mix(a, vec4(0.0), expr_either(expr_either(high, low), nan)));
  return mix(mix(mix(y, ivec4(0x7fffffff), high), ivec4(0x80000000), low), ivec4(0), nan);
}
uvec4 expr_to_u32(vec4 a) {
  const bvec4 high = greaterThanEqual(a, vec4(4294967296.0)), low = lessThan(a, vec4(1.0)), nan = tuff_nans(a);
  const uvec4 y = uvec4(mix(a, vec4(0.0), expr_either(expr_either(high, low), nan)));
  return mix(mix(y, uvec4(0xffffffffu), high), uvec4(0u), expr_either(low, nan));
}
vec4 expr_to_f32(ivec4 a) { return vec4(a); }
vec4 expr_to_f32(uvec4 a) { return vec4(a); }

uint expr_odd(uint a) {
  const int down = findMSB(a | 1u) - 23;
  if (down <= 0) return a;
  return (a >> uint(down) | uint((a & ((1u << uint(down)) - 1u)) != 0u)) << uint(down);
}
uvec4 expr_odd_bits(uvec4 a) { return uvec4(expr_odd(a.x), expr_odd(a.y), expr_odd(a.z), expr_odd(a.w)); }
vec4 expr_odd(vec4 a) { return a; }
vec4 expr_odd(uvec4 a) { return vec4(expr_odd_bits(a)); }
vec4 expr_odd(ivec4 a) {
  const vec4 y = vec4(expr_odd_bits(uvec4(abs(a))));
  return mix(y, -y, lessThan(a, ivec4(0)));
}

#if TUFF_COMPUTES_INT64
uvec4 expr_to_bool(i64vec4 a) { return uvec4(notEqual(a, i64vec4(0))); }
uvec4 expr_to_bool(u64vec4 a) { return uvec4(notEqual(a, u64vec4(0))); }
i64vec4 expr_to_i64(ivec4 a) { return i64vec4(a); }
i64vec4 expr_to_i64(uvec4 a) { return i64vec4(a); }
i64vec4 expr_to_i64(u64vec4 a) { return i64vec4(min(a, u64vec4(0x7ffffffffffffffful))); }
u64vec4 expr_to_u64(ivec4 a) { return u64vec4(max(a, ivec4(0))); }
u64vec4 expr_to_u64(uvec4 a) { return u64vec4(a); }
u64vec4 expr_to_u64(i64vec4 a) { return u64vec4(max(a, i64vec4(0))); }
ivec4 expr_to_i32(i64vec4 a) { return ivec4(clamp(a, i64vec4(-2147483648l), i64vec4(2147483647l))); }
ivec4 expr_to_i32(u64vec4 a) { return ivec4(min(a, u64vec4(2147483647ul))); }
uvec4 expr_to_u32(i64vec4 a) { return uvec4(clamp(a, i64vec4(0), i64vec4(4294967295l))); }
uvec4 expr_to_u32(u64vec4 a) { return uvec4(min(a, u64vec4(4294967295ul))); }
vec4 expr_to_f32(i64vec4 a) { return vec4(a); }
vec4 expr_to_f32(u64vec4 a) { return vec4(a); }
#define EXPR_TO_64(F, NANS)                                                                                 \
  i64vec4 expr_to_i64(F a) {                                                                                \
    const bvec4 high = greaterThanEqual(a, F(9223372036854775808.0)), low = lessThan(a, F(-9223372036854775808.0)), \
                nan = NANS(a);                                                                              \
    const i64vec4 y = i64vec4(mix(a, F(0), expr_either(expr_either(high, low), nan)));                      \
    return mix(mix(mix(y, i64vec4(0x7fffffffffffffffl), high), i64vec4(-0x7fffffffffffffffl - 1l), low),    \
               i64vec4(0), nan);                                                                            \
  }                                                                                                         \
  u64vec4 expr_to_u64(F a) {                                                                                \
    const bvec4 high = greaterThanEqual(a, F(18446744073709551616.0)), low = lessThan(a, F(1)), nan = NANS(a); \
    const u64vec4 y = u64vec4(mix(a, F(0), expr_either(expr_either(high, low), nan)));                      \
    return mix(mix(y, u64vec4(0xfffffffffffffffful), high), u64vec4(0), expr_either(low, nan));             \
  }
EXPR_TO_64(vec4, tuff_nans)
uint64_t expr_odd(uint64_t a) {
  const uvec2 words = unpackUint2x32(a);
  const int down = (words.y != 0u ? 32 + findMSB(words.y) : findMSB(words.x | 1u)) - 23;
  if (down <= 0) return a;
  return (a >> uint(down) | uint64_t((a & ((1ul << uint(down)) - 1ul)) != 0ul)) << uint(down);
}
vec4 expr_odd(u64vec4 a) { return vec4(u64vec4(expr_odd(a.x), expr_odd(a.y), expr_odd(a.z), expr_odd(a.w))); }
vec4 expr_odd(i64vec4 a) {
  const vec4 y = expr_odd(u64vec4(expr_abs(a)));
  return mix(y, -y, lessThan(a, i64vec4(0)));
}
#endif

#if TUFF_COMPUTES_F64
uvec4 expr_to_bool(dvec4 a) { return uvec4(notEqual(expr_size(a), uvec4(0u))); }
dvec4 expr_to_f64(vec4 a) { return dvec4(a); }
dvec4 expr_to_f64(ivec4 a) { return dvec4(a); }
dvec4 expr_to_f64(uvec4 a) { return dvec4(a); }
vec4 expr_to_f32(dvec4 a) { return vec4(a); }
ivec4 expr_to_i32(dvec4 a) {
  const bvec4 high = greaterThanEqual(a, dvec4(2147483648.0)), low = lessThanEqual(a, dvec4(-2147483649.0)),
              nan = expr_nans(a);
  const ivec4 y = ivec4(mix(a, dvec4(0.0), expr_either(expr_either(high, low), nan)));
  return mix(mix(mix(y, ivec4(0x7fffffff), high), ivec4(0x80000000), low), ivec4(0), nan);
}
uvec4 expr_to_u32(dvec4 a) {
  const bvec4 high = greaterThanEqual(a, dvec4(4294967296.0)), low = lessThan(a, dvec4(1.0)), nan = expr_nans(a);
  const uvec4 y = uvec4(mix(a, dvec4(0.0), expr_either(expr_either(high, low), nan)));
  return mix(mix(y, uvec4(0xffffffffu), high), uvec4(0u), expr_either(low, nan));
}
vec4 expr_odd(dvec4 a) {
  const vec4 near = vec4(a);
  const bvec4 exact = expr_either(equal(dvec4(near), a), expr_nans(a));
  const uvec4 bits = floatBitsToUint(near);
  const uvec4 cut = bits - uvec4(greaterThan(expr_abs(dvec4(near)), expr_abs(a)));
  return mix(uintBitsToFloat(cut | 1u), near, exact);
}
#if TUFF_COMPUTES_INT64
dvec4 expr_to_f64(i64vec4 a) { return dvec4(a); }
dvec4 expr_to_f64(u64vec4 a) { return dvec4(a); }
EXPR_TO_64(dvec4, expr_nans)
#endif
#endif
