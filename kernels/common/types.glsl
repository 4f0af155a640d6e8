#ifndef TUFF_TYPES_GLSL
#define TUFF_TYPES_GLSL
// Loads and stores elements of any type. A kernel gets types as the numbers of tuff.h:
//
//   TUFF_READ(0, X, TUFF_STORED(X_TYPE), TUFF_BYTES(X_TYPE))
//   … TUFF_LOADED(X_TYPE, TUFF_AT(X, i))                 as float, double, int or uint, exactly; 64 bits as uvec2
//   … TUFF_AT(Y, i) = TUFF_ROUNDED(Y_TYPE, value)        floats: rounded once, to nearest even; integers: their lowest
//                                                        bits; bool: whether the value differs from 0
//
// 8- and 16-bit types are for storage only, so that devices need no arithmetic for them. Results are rounded by integer
// arithmetic, because drivers may round their own conversions either way. If a device can be told the rounding mode
// (TUFF_ROUNDS_F16, see DeviceTraits::rounds_f16), its own conversion to f16 is used: one instruction instead of ten.
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
#if TUFF_ROUNDS_F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_spirv_intrinsics : require
// For 16-bit floats: SignedZeroInfNanPreserve, DenormPreserve, RoundingModeRTE.
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4466], 4461, 16);
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4464], 4459, 16);
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4467], 4462, 16);
#elif TUFF_PRESERVES_F32
#extension GL_EXT_spirv_intrinsics : require
// SignedZeroInfNanPreserve for 32-bit floats. In a kernel without any such mode NVIDIA's compiler (580) simplified
// (x + c) - c to x, although both are `precise`: gelu and silu at the end of bf16 products were 40 % off.
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4466], 4461, 32);
#endif

#define TUFF_PASTE_(a, b) a##b
#define TUFF_PASTE(a, b) TUFF_PASTE_(a, b)

#define TUFF_STORED(type) TUFF_PASTE(TUFF_STORED_, type)
#define TUFF_BYTES(type) TUFF_PASTE(TUFF_BYTES_, type)
#define TUFF_LOADED(type, stored) TUFF_PASTE(TUFF_LOADED_, type)(stored)
#define TUFF_COMPUTED(type) TUFF_PASTE(TUFF_COMPUTED_, type)
#define TUFF_ROUNDED(type, value) TUFF_PASTE(TUFF_ROUNDED_, type)(value)
#define TUFF_PACKED(type, values) TUFF_PASTE(tuff_pack_, type)(values)
#define TUFF_UNPACKED(type, words) TUFF_PASTE(tuff_unpack_, type)(words)
#define TUFF_AS_STORED(type, values) TUFF_PASTE(tuff_as_stored_, type)(values)
#define TUFF_NUMBER(type, loaded) TUFF_PASTE(TUFF_NUMBER_, type)(loaded)
#define TUFF_OF_TEXEL(type, texel) TUFF_PASTE(TUFF_OF_TEXEL_, type)(texel)
#define TUFF_OF_VALUE(type, value) TUFF_PASTE(TUFF_OF_VALUE_, type)(value)

// TUFF_VALUE is the type that a kernel computes in: f32, unless the kernel defines TUFF_VALUE_OF as another element
// type first.
#ifndef TUFF_VALUE_OF
#define TUFF_VALUE_OF 1
#endif

// ---- Element types -------------------------------------------------------------------------------------------------
// Each type is one block, which says everything that kernels know about it. In the block of type N of tuff.h:
//
//   TUFF_STORED_N          the type in memory
//   TUFF_BYTES_N           its size
//   TUFF_LOADED_N(stored)  see TUFF_LOADED above
//   TUFF_COMPUTED_N        the type of that value
//   TUFF_ROUNDED_N(value)  see TUFF_ROUNDED above
//   tuff_unpack_N(words)   four elements that are in memory as words: a uvec4 for 4-byte types, uvec2 for 2-byte types, a
//                          uint for those of one byte; two uvec4s for 8-byte types
//   tuff_pack_N(values)    the inverse
//   tuff_as_stored_N(v)    four values as they would be read back after being stored
//   TUFF_ROUNDED_NEAR_N(value), tuff_pack_near_N(values)
//                          of 16-bit floats: the same, but a tie may round either way, and a denormal result of bf16 be cut
//   TUFF_NUMBER_N(loaded)  what TUFF_LOADED gives as a number that converts to any value type: 64 bits as int64_t
//   TUFF_OF_VALUE_N(v)     a TUFF_VALUE as what TUFF_ROUNDED takes; integers lose their upper bits
//   TUFF_OF_TEXEL_N(texel) what TUFF_AT reads, from the texel that TUFF_TEXEL reads; floats only
//   TUFF_VALUE_TYPE        if TUFF_VALUE_OF is N: the value type below that a kernel for this type computes in
//
// A type that kernels only load needs the first four; the others are for families that take it.

// -- f32
#define TUFF_F32 1
#define TUFF_STORED_1 float
#define TUFF_BYTES_1 4
#define TUFF_LOADED_1(stored) (stored)
#define TUFF_COMPUTED_1 float
#define TUFF_ROUNDED_1(value) (value)
#define TUFF_NUMBER_1(loaded) (loaded)
#define TUFF_OF_VALUE_1(v) float(v)
#define TUFF_OF_TEXEL_1(texel) uintBitsToFloat((texel).x)
#define tuff_pack_1(v) floatBitsToUint(v)
#define tuff_unpack_1(w) uintBitsToFloat(w)
vec4 tuff_as_stored_1(vec4 v) { return v; }
#if TUFF_VALUE_OF == 1
#define TUFF_VALUE_TYPE 1
#endif

// -- f16
#define TUFF_F16 2
#define TUFF_STORED_2 uint16_t
#define TUFF_BYTES_2 2
#define TUFF_LOADED_2(stored) unpackHalf2x16(uint(stored)).x
#define TUFF_COMPUTED_2 float
#define TUFF_ROUNDED_2(value) uint16_t(tuff_f16_bits(value))
#define TUFF_NUMBER_2(loaded) (loaded)
#define TUFF_OF_VALUE_2(v) float(v)
#define TUFF_OF_TEXEL_2(texel) (texel).x
// Rounds to nearest even. Denormals are kept, values that round beyond 65504 become infinity, NaN stays NaN. There are
// no branches, because kernels convert whole tiles.
uint tuff_f16_by_integers(float value) {
  const uint bits = floatBitsToUint(value), magnitude = bits & 0x7fffffffu;
  const uint moved = magnitude - 0x38000000u;  // the exponents' biases are 112 apart
  const uint normal = (moved + 0xfffu + ((moved >> 13) & 1u)) >> 13;
  // For values below 2^-14: near 1/2 a float's last place is 2^-24, the unit of f16's denormals.
  const uint tiny = floatBitsToUint(uintBitsToFloat(magnitude) + 0.5) - 0x3f000000u;
  uint rounded = magnitude < 0x38800000u ? tiny : normal;
  rounded = magnitude >= 0x477ff000u ? 0x7c00u : rounded;  // 65520: half way to 2^16
  rounded = magnitude > 0x7f800000u ? 0x7e00u : rounded;
  return ((bits >> 16) & 0x8000u) | rounded;
}

#if TUFF_ROUNDS_F16
uint tuff_f16_bits(float value) { return uint(float16BitsToUint16(float16_t(value))); }
uint tuff_f16_pair(vec2 values) { return packFloat2x16(f16vec2(values)); }
#else
uint tuff_f16_bits(float value) { return tuff_f16_by_integers(value); }
uint tuff_f16_pair(vec2 values) { return tuff_f16_bits(values.x) | (tuff_f16_bits(values.y) << 16); }
#endif
#define TUFF_ROUNDED_NEAR_2(value) TUFF_ROUNDED_2(value)
#define tuff_pack_near_2(v) tuff_pack_2(v)
uvec2 tuff_pack_2(vec4 v) { return uvec2(tuff_f16_pair(v.xy), tuff_f16_pair(v.zw)); }
vec4 tuff_unpack_2(uvec2 w) { return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y)); }
// By integer arithmetic, because NVIDIA's compiler removes a conversion to f16 whose result is converted back at once.
vec4 tuff_as_stored_2(vec4 v) {
  [[unroll]] for (uint i = 0; i < 4; ++i) v[i] = unpackHalf2x16(tuff_f16_by_integers(v[i])).x;
  return v;
}
#if TUFF_VALUE_OF == 2
#define TUFF_VALUE_TYPE 1
#endif

// -- bf16
#define TUFF_BF16 3
#define TUFF_STORED_3 uint16_t
#define TUFF_BYTES_3 2
#define TUFF_LOADED_3(stored) uintBitsToFloat(uint(stored) << 16)
#define TUFF_COMPUTED_3 float
#define TUFF_ROUNDED_3(value) uint16_t(tuff_bf16_bits(value))
#define TUFF_NUMBER_3(loaded) (loaded)
#define TUFF_OF_VALUE_3(v) float(v)
#define TUFF_OF_TEXEL_3(texel) (texel).x
uint tuff_bf16_bits(float value) {
  const uint bits = floatBitsToUint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}
uint tuff_bf16_pair(vec2 values) { return tuff_bf16_bits(values.x) | (tuff_bf16_bits(values.y) << 16); }
// The same by two instructions in place of seven: half a unit in the last place is added. Ties round away from zero, NaN and
// infinities stay, and denormals are cut.
uvec4 tuff_bf16_near(vec4 v) {
  return floatBitsToUint(fma(uintBitsToFloat(floatBitsToUint(v) & 0xff800000u), vec4(0.00390625), v));
}
uvec2 tuff_pack_3(vec4 v) { return uvec2(tuff_bf16_pair(v.xy), tuff_bf16_pair(v.zw)); }
uvec2 tuff_pack_near_3(vec4 v) {
  const uvec4 near = tuff_bf16_near(v);
  return uvec2((near.x >> 16) | (near.y & 0xffff0000u), (near.z >> 16) | (near.w & 0xffff0000u));
}
#define TUFF_ROUNDED_NEAR_3(value) uint16_t(tuff_bf16_near(vec4(value)).x >> 16)
vec4 tuff_unpack_3(uvec2 w) { return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u)); }
vec4 tuff_as_stored_3(vec4 v) {
  [[unroll]] for (uint i = 0; i < 4; ++i) v[i] = uintBitsToFloat(tuff_bf16_bits(v[i]) << 16);
  return v;
}
#if TUFF_VALUE_OF == 3
#define TUFF_VALUE_TYPE 1
#endif

// -- f64
#define TUFF_F64 4
#define TUFF_STORED_4 double
#define TUFF_BYTES_4 8
#define TUFF_LOADED_4(stored) (stored)
#define TUFF_COMPUTED_4 double
#define TUFF_ROUNDED_4(value) (value)
#define TUFF_NUMBER_4(loaded) (loaded)
#define TUFF_OF_VALUE_4(v) double(v)
#define TUFF_OF_TEXEL_4(texel) packDouble2x32((texel).xy)
#define tuff_unpack_4(a, b) \
  dvec4(packDouble2x32((a).xy), packDouble2x32((a).zw), packDouble2x32((b).xy), packDouble2x32((b).zw))
#if TUFF_VALUE_OF == 4
#define TUFF_VALUE_TYPE 4
#endif

// -- i32
#define TUFF_I32 5
#define TUFF_STORED_5 int
#define TUFF_BYTES_5 4
#define TUFF_LOADED_5(stored) (stored)
#define TUFF_COMPUTED_5 int
#define TUFF_ROUNDED_5(value) (value)
#define TUFF_NUMBER_5(loaded) (loaded)
#define TUFF_OF_VALUE_5(v) int(v)
#define tuff_pack_5(v) uvec4(v)
#define tuff_unpack_5(w) ivec4(w)
#if TUFF_VALUE_OF == 5
#define TUFF_VALUE_TYPE 5
#endif

// -- u32
#define TUFF_U32 6
#define TUFF_STORED_6 uint
#define TUFF_BYTES_6 4
#define TUFF_LOADED_6(stored) (stored)
#define TUFF_COMPUTED_6 uint
#define TUFF_ROUNDED_6(value) (value)
#define TUFF_NUMBER_6(loaded) (loaded)
#define TUFF_OF_VALUE_6(v) uint(v)
#define tuff_pack_6(v) uvec4(v)
#define tuff_unpack_6(w) (w)
#if TUFF_VALUE_OF == 6
#define TUFF_VALUE_TYPE 6
#endif

// -- i8
#define TUFF_I8 7
#define TUFF_STORED_7 int8_t
#define TUFF_BYTES_7 1
#define TUFF_LOADED_7(stored) int(stored)
#define TUFF_COMPUTED_7 int
#define TUFF_ROUNDED_7(value) int8_t(value)
#define TUFF_NUMBER_7(loaded) (loaded)
#define TUFF_OF_VALUE_7(v) int(v)
uint tuff_quad(uvec4 v) {
  v = (v & 0xffu) << uvec4(0, 8, 16, 24);
  return v.x | v.y | v.z | v.w;
}
#define tuff_pack_7(v) tuff_quad(uvec4(v))
#if TUFF_VALUE_OF == 7
#define TUFF_VALUE_TYPE 5
#endif
ivec4 tuff_unpack_7(uint word) { return (ivec4(int(word)) << ivec4(24, 16, 8, 0)) >> 24; }

// -- u8
#define TUFF_U8 8
#define TUFF_STORED_8 uint8_t
#define TUFF_BYTES_8 1
#define TUFF_LOADED_8(stored) uint(stored)
#define TUFF_COMPUTED_8 uint
#define TUFF_ROUNDED_8(value) uint8_t(value)
#define TUFF_NUMBER_8(loaded) (loaded)
#define TUFF_OF_VALUE_8(v) uint(v)
#define tuff_pack_8(v) tuff_quad(uvec4(v))
#if TUFF_VALUE_OF == 8
#define TUFF_VALUE_TYPE 5
#endif
#define tuff_unpack_8(w) tuff_bytes(w)
uvec4 tuff_bytes(uint word) { return (uvec4(word) >> uvec4(0, 8, 16, 24)) & 0xffu; }

// -- i64 and u64, as low and high word: not every device has integers of 64 bits
#define TUFF_I64 9
#define TUFF_STORED_9 uvec2
#define TUFF_BYTES_9 8
#define TUFF_LOADED_9(stored) (stored)
#define TUFF_COMPUTED_9 uvec2
#define TUFF_ROUNDED_9(value) (value)
#define TUFF_NUMBER_9(loaded) packInt2x32(ivec2(loaded))
#define TUFF_OF_VALUE_9(v) tuff_words_of(v)
#define tuff_unpack_9(a, b)                                                       \
  i64vec4(packInt2x32(ivec2((a).xy)), packInt2x32(ivec2((a).zw)), packInt2x32(ivec2((b).xy)), \
          packInt2x32(ivec2((b).zw)))
#if TUFF_VALUE_OF == 9
#define TUFF_VALUE_TYPE 9
#endif
#define TUFF_U64 10
#define TUFF_STORED_10 uvec2
#define TUFF_BYTES_10 8
#define TUFF_LOADED_10(stored) (stored)
#define TUFF_COMPUTED_10 uvec2
#define TUFF_ROUNDED_10(value) (value)
#define TUFF_NUMBER_10(loaded) packUint2x32(loaded)
#define TUFF_OF_VALUE_10(v) tuff_words_of(v)
#define tuff_unpack_10(a, b)                                                       \
  u64vec4(packUint2x32(((a).xy)), packUint2x32(((a).zw)), packUint2x32(((b).xy)), \
          packUint2x32(((b).zw)))
#if TUFF_VALUE_OF == 10
#define TUFF_VALUE_TYPE 10
#endif

// -- i16
#define TUFF_I16 11
#define TUFF_STORED_11 int16_t
#define TUFF_BYTES_11 2
#define TUFF_LOADED_11(stored) int(stored)
#define TUFF_COMPUTED_11 int
#define TUFF_ROUNDED_11(value) int16_t(value)
#define TUFF_NUMBER_11(loaded) (loaded)
#define TUFF_OF_VALUE_11(v) int(v)
#if TUFF_VALUE_OF == 11
#define TUFF_VALUE_TYPE 5
#endif
uvec2 tuff_pairs(uvec4 v) { return (v.xz & 0xffffu) | (v.yw << 16); }
#define tuff_pack_11(v) tuff_pairs(uvec4(v))
ivec4 tuff_unpack_11(uvec2 w) { return (ivec4(w.xxyy) << ivec4(16, 0, 16, 0)) >> 16; }

// -- u16
#define TUFF_U16 12
#define TUFF_STORED_12 uint16_t
#define TUFF_BYTES_12 2
#define TUFF_LOADED_12(stored) uint(stored)
#define TUFF_COMPUTED_12 uint
#define TUFF_ROUNDED_12(value) uint16_t(value)
#define TUFF_NUMBER_12(loaded) (loaded)
#define TUFF_OF_VALUE_12(v) uint(v)
#if TUFF_VALUE_OF == 12
#define TUFF_VALUE_TYPE 5
#endif
#define tuff_pack_12(v) tuff_pairs(uvec4(v))
uvec4 tuff_unpack_12(uvec2 w) { return (w.xxyy >> uvec4(0, 16, 0, 16)) & 0xffffu; }

// -- bool: any byte other than 0 counts as 1
#define TUFF_BOOL 13
#define TUFF_STORED_13 uint8_t
#define TUFF_BYTES_13 1
#define TUFF_LOADED_13(stored) uint(uint(stored) != 0u)
#define TUFF_COMPUTED_13 uint
#define TUFF_ROUNDED_13(value) uint8_t(uint((value) != 0))
#define TUFF_NUMBER_13(loaded) (loaded)
#define TUFF_OF_VALUE_13(v) (v)
#define tuff_pack_13(v) tuff_quad(uvec4(notEqual(v, TUFF_VALUE4(0))))
#define tuff_unpack_13(w) min(tuff_bytes(w), uvec4(1u))

// -- f8 E4M3 and E5M2
#define TUFF_F8_E4M3 14
#define TUFF_STORED_14 uint8_t
#define TUFF_BYTES_14 1
#define TUFF_LOADED_14(stored) uintBitsToFloat(tuff_e4m3_word(uint(stored)))
#define TUFF_COMPUTED_14 float
#define TUFF_ROUNDED_14(value) uint8_t(tuff_e4m3_bits(floatBitsToUint(value)))
#define TUFF_F8_E5M2 15
#define TUFF_STORED_15 uint8_t
#define TUFF_BYTES_15 1
#define TUFF_LOADED_15(stored) uintBitsToFloat(tuff_e5m2_word(uint(stored)))
#define TUFF_COMPUTED_15 float
#define TUFF_ROUNDED_15(value) uint8_t(tuff_e5m2_bits(floatBitsToUint(value)))

// To and from the bits of an f32, by integer arithmetic. Rounds to the nearest number, ties to even, and saturates. The type has `fraction` bits of fraction, an exponent
// whose bias is `biases` below f32's, and `most` as its largest finite number.
uint tuff_float8_bits(uint bits, uint fraction, uint biases, uint most, uint nan) {
  const uint sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu, exponent = magnitude >> 23;
  const uint drop = 23u - fraction;  // bits of a normal number
  const bool normal = exponent > biases;
  // A denormal has the unit of the smallest normal numbers. Numbers far below it give 0 with any distance from 25 on.
  const uint down = normal ? drop : min(drop + 1u + biases - exponent, 31u);
  const uint kept = normal ? magnitude - (biases << 23) : (magnitude & 0x7fffffu) | 0x800000u;
  const uint rounded = min((kept + (1u << (down - 1u)) - 1u + ((kept >> down) & 1u)) >> down, most);
  return sign | (magnitude > 0x7f800000u ? nan : rounded);
}
uint tuff_e4m3_bits(uint bits) { return tuff_float8_bits(bits, 3u, 120u, 0x7eu, 0x7fu); }
uint tuff_e5m2_bits(uint bits) { return tuff_float8_bits(bits, 2u, 112u, 0x7bu, 0x7eu); }

uint tuff_e4m3_word(uint byte) {
  const uint sign = (byte & 0x80u) << 24, magnitude = byte & 0x7fu;
  const uint denormal = floatBitsToUint(float(magnitude) * 0.001953125);  // 2^-9
  const uint word = magnitude < 8u ? denormal : (magnitude << 20) + (120u << 23);
  return sign | (magnitude == 0x7fu ? 0x7fc00000u : word);
}
// E5M2 is the upper half of an f16.
uint tuff_e5m2_word(uint byte) { return floatBitsToUint(unpackHalf2x16(byte << 8).x); }
vec4 tuff_unpack_14(uint word) {
  const uvec4 bytes = tuff_bytes(word);
  return uintBitsToFloat(uvec4(tuff_e4m3_word(bytes.x), tuff_e4m3_word(bytes.y), tuff_e4m3_word(bytes.z),
                               tuff_e4m3_word(bytes.w)));
}
vec4 tuff_unpack_15(uint word) {
  return vec4(unpackHalf2x16((word & 0xffu) << 8 | (word & 0xff00u) << 16),
              unpackHalf2x16((word >> 8 & 0xff00u) | (word & 0xff000000u)));
}

// ---- Value types ---------------------------------------------------------------------------------------------------
// Each is one block too. TUFF_VALUE_TYPE is also the element type as which values are stored between dispatches. An
// operation written with these names and TUFF_ZERO … TUFF_SMALLER works for all of them. Integers wrap modulo 2^32 or
// 2^64. TUFF_SHUFFLE_XOR and TUFF_SHUFFLE exchange values within a subgroup: those of 64 bits as two words, since
// devices need not shuffle them.
#if TUFF_VALUE_TYPE == 9 || TUFF_VALUE_TYPE == 10
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define TUFF_HAS_NAN 0
#endif
#if TUFF_VALUE_TYPE == 9
#define TUFF_VALUE int64_t
#define TUFF_VALUE2 i64vec2
#define TUFF_VALUE4 i64vec4
#define TUFF_LOWEST (-0x7fffffffffffffffl - 1l)
#define TUFF_HIGHEST 0x7fffffffffffffffl
#define TUFF_SHUFFLE_XOR(v, mask) packInt2x32(subgroupShuffleXor(unpackInt2x32(v), mask))
#define TUFF_SHUFFLE(v, lane) packInt2x32(subgroupShuffle(unpackInt2x32(v), lane))
#elif TUFF_VALUE_TYPE == 10
#define TUFF_VALUE uint64_t
#define TUFF_VALUE2 u64vec2
#define TUFF_VALUE4 u64vec4
#define TUFF_LOWEST 0ul
#define TUFF_HIGHEST 0xfffffffffffffffful
#define TUFF_SHUFFLE_XOR(v, mask) packUint2x32(subgroupShuffleXor(unpackUint2x32(v), mask))
#define TUFF_SHUFFLE(v, lane) packUint2x32(subgroupShuffle(unpackUint2x32(v), lane))
#elif TUFF_VALUE_TYPE == 6
#define TUFF_VALUE uint
#define TUFF_VALUE2 uvec2
#define TUFF_VALUE4 uvec4
#define TUFF_LOWEST 0u
#define TUFF_HIGHEST 0xffffffffu
#define TUFF_HAS_NAN 0
#elif TUFF_VALUE_TYPE == 5
#define TUFF_VALUE int
#define TUFF_VALUE2 ivec2
#define TUFF_VALUE4 ivec4
#define TUFF_LOWEST (-0x7fffffff - 1)
#define TUFF_HIGHEST 0x7fffffff
#define TUFF_HAS_NAN 0
#elif TUFF_VALUE_TYPE == 4
#define TUFF_VALUE double
#define TUFF_VALUE2 dvec2
#define TUFF_VALUE4 dvec4
#define TUFF_LOWEST (-double(TUFF_INFINITY))
#define TUFF_HIGHEST double(TUFF_INFINITY)
#define TUFF_HAS_NAN 1
#define TUFF_SHUFFLE_XOR(v, mask) packDouble2x32(subgroupShuffleXor(unpackDouble2x32(v), mask))
#define TUFF_SHUFFLE(v, lane) packDouble2x32(subgroupShuffle(unpackDouble2x32(v), lane))
#elif TUFF_VALUE_TYPE == 1
#define TUFF_VALUE float
#define TUFF_VALUE2 vec2
#define TUFF_VALUE4 vec4
#define TUFF_LOWEST (-TUFF_INFINITY)
#define TUFF_HIGHEST TUFF_INFINITY
#define TUFF_HAS_NAN 1
#else
#error TUFF_VALUE_OF is a type that no kernel computes with
#endif
#ifndef TUFF_SHUFFLE_XOR
#define TUFF_SHUFFLE_XOR(v, mask) subgroupShuffleXor(v, mask)
#define TUFF_SHUFFLE(v, lane) subgroupShuffle(v, lane)
#endif
// The words of values of 64 bits, and of counts that are stored as such.
#if TUFF_VALUE_TYPE == 9 || TUFF_VALUE_TYPE == 10
uvec2 tuff_words_of(TUFF_VALUE v) { return unpackUint2x32(uint64_t(v)); }
#elif TUFF_VALUE_TYPE == 4
uvec2 tuff_words_of(double v) { return unpackDouble2x32(v); }
#elif TUFF_VALUE_TYPE == 6
uvec2 tuff_words_of(uint v) { return uvec2(v, 0u); }
#endif
#define TUFF_VALUE_BYTES TUFF_BYTES(TUFF_VALUE_TYPE)
#define TUFF_ZERO TUFF_VALUE(0)
#define TUFF_ONE TUFF_VALUE(1)
#define TUFF_ADD(a, b) ((a) + (b))
#define TUFF_MULTIPLY(a, b) ((a) * (b))
// Vectors only. Compared by tuff_order() (order.glsl), which orders as the values do except for NaN.
#define TUFF_LARGER(a, b) mix(a, b, greaterThan(tuff_order(b), tuff_order(a)))
#define TUFF_SMALLER(a, b) mix(a, b, lessThan(tuff_order(b), tuff_order(a)))
#endif
