// How formulas read and write four elements at once: as words of memory, which are decoded and encoded by type.
// EXPR_INPUT(slot, X, bytes) defines X_words(i), which loads elements 4 i … 4 i + 3, and X_word(i), which loads element i
// four times; EXPR_OUTPUT(slot, Y, bytes) defines Y_store(i, words) and Y_store_one(i, words), which stores the first.
// expr_decode_<dtype>(words) and expr_encode_<dtype>(values) convert them, with the dtypes of tuff.h.
//# TUFF_MODES : 0.. : three bits for each operand, of ten in an int: how it is accessed, see the modes below
//# TUFF_PLACES : 0|1 : 1: some mode is 1, 2 or 4
//# TUFF_GATHERED : 0|1 : 1: some mode is 3
//# TUFF_SCALARS : 0..16 : scalars in the table
//# TUFF_OPERANDS : 1..10 : operands in buffers: inputs, then outputs
// Modes, with s the operand's stride along the innermost axis:
//     0   dense, and aligned to four elements (16 bytes of larger ones)
//     1   s = 1: as 0 within a row; 4 divides the size of the innermost axis and all other strides
//     2   s = 0: one element for each four; 4 divides the size of the innermost axis
//     3   element by element, each with its own coordinates
//     4   element by element from one place on, at distances of s; 4 divides the size of the innermost axis
//     5   dense, element by element
#define EXPR_MODE(slot) (TUFF_MODES >> (3 * slot) & 7)

#if TUFF_PLACES || TUFF_GATHERED
#define EXPR_TABLE 1
#elif TUFF_SCALARS != 0
#define EXPR_TABLE 1
#else
#define EXPR_TABLE 0
#endif

#if EXPR_TABLE
// scalars (two words each), then, if any operand has places: sizes, multipliers and shifts of the axes but the outermost
// (kernels/common/division.glsl), innermost first; the index of every operand's element at coordinates 0, which is not
// its lowest one if strides are negative; the strides of each axis, of every operand. expression_reduce.glsl has two
// groups of axes.
TUFF_READ(TUFF_OPERANDS, T, uint, 4)
#endif

// The places of the operands' elements: of the first of four, or (TUFF_GATHERED) of each.
#if TUFF_GATHERED
#define EXPR_PLACE uvec4
#define EXPR_FIRST(place) place.x
#else
#define EXPR_PLACE uint
#define EXPR_FIRST(place) place
#endif
#if TUFF_PLACES || TUFF_GATHERED
#include "kernels/common/division.glsl"
uvec4 tuff_divide(uvec4 n, uint multiplier, uint shift) {
  uvec4 high, low;
  umulExtended(n, uvec4(multiplier), high, low);
  return (high + n) >> shift;
}
// For reductions that give an index there is one more, which no operand has (expression_reduce.glsl).
#ifndef EXPR_WALKED
#define EXPR_WALKED TUFF_OPERANDS
#endif
EXPR_PLACE expr_places[EXPR_WALKED];
// Adds the offsets of index n of `rank` axes, whose sizes and strides are at these words of the table.
void expr_walk(EXPR_PLACE n, uint rank, uint sizes, uint strides) {
  for (uint d = 0; d < rank; ++d) {
    EXPR_PLACE c = n;
    if (d + 1 < rank) {
      const uint at = sizes + 3 * d;
      n = tuff_divide(n, TUFF_AT(T, at + 1), TUFF_AT(T, at + 2));
      c -= n * TUFF_AT(T, at);
    }
    [[unroll]] for (uint slot = 0; slot < EXPR_WALKED; ++slot) {
      expr_places[slot] += c * TUFF_AT(T, strides + d * EXPR_WALKED + slot);
    }
  }
}
#if !EXPR_REDUCES
#define EXPR_FIRSTS (2 * TUFF_SCALARS + 3 * (RANK - 1))
#define EXPR_STRIDES (EXPR_FIRSTS + TUFF_OPERANDS)
void expr_find(EXPR_PLACE n) {
  [[unroll]] for (uint slot = 0; slot < TUFF_OPERANDS; ++slot) {
    expr_places[slot] = EXPR_PLACE(TUFF_AT(T, EXPR_FIRSTS + slot));
  }
  expr_walk(n, RANK, 2 * TUFF_SCALARS, EXPR_STRIDES);
}
#endif
#define EXPR_AT(slot) EXPR_FIRST(expr_places[slot])
// The distance between neighbours of the innermost axis.
#define EXPR_STEP(slot) TUFF_AT(T, EXPR_STRIDES + slot)
#else
void expr_find(uint n) {}
#define EXPR_AT(slot) 0u
#define EXPR_STEP(slot) 0u
#endif
#if TUFF_GATHERED
#define EXPR_AT_EACH(slot, c) expr_places[slot][c]
#else
#define EXPR_AT_EACH(slot, c) 0u
#endif

struct ExprWords8 {
  uvec4 low, high;
};
struct ExprWords16 {
  uvec4 e0, e1, e2, e3;  // elements
};
#define EXPR_RAW_1 uint8_t
#define EXPR_RAW_2 uint16_t
#define EXPR_RAW_4 uint
#define EXPR_RAW_8 uvec2
#define EXPR_RAW_16 uvec4
#define EXPR_HELD_1 uint
#define EXPR_HELD_2 uint
#define EXPR_HELD_4 uint
#define EXPR_HELD_8 uvec2
#define EXPR_HELD_16 uvec4
#define EXPR_WORDS_1 uint
#define EXPR_WORDS_2 uvec2
#define EXPR_WORDS_4 uvec4
#define EXPR_WORDS_8 ExprWords8
#define EXPR_WORDS_16 ExprWords16
#define EXPR_MEMORY_1 uint
#define EXPR_MEMORY_2 TUFF_MEMORY8
#define EXPR_MEMORY_4 TUFF_MEMORY16
#define EXPR_MEMORY_8 TUFF_MEMORY16
#define EXPR_MEMORY_16 TUFF_MEMORY16
#define EXPR_MEMORY_BYTES_1 4
#define EXPR_MEMORY_BYTES_2 8
#define EXPR_MEMORY_BYTES_4 16
#define EXPR_MEMORY_BYTES_8 16
#define EXPR_MEMORY_BYTES_16 16

#define EXPR_JOIN_1(a, b, c, d) (a | b << 8 | c << 16 | d << 24)
#define EXPR_JOIN_2(a, b, c, d) uvec2(a | b << 16, c | d << 16)
#define EXPR_JOIN_4(a, b, c, d) uvec4(a, b, c, d)
#define EXPR_JOIN_8(a, b, c, d) ExprWords8(uvec4(a, b), uvec4(c, d))
#define EXPR_JOIN_16(a, b, c, d) ExprWords16(a, b, c, d)
#define EXPR_PART_1(w, c) uint8_t(w >> (8 * c) & 0xffu)
#define EXPR_PART_2(w, c) uint16_t(w[c / 2] >> (16 * (c & 1)) & 0xffffu)
#define EXPR_PART_4(w, c) w[c]
#define EXPR_PART_8(w, c) (c < 2 ? uvec2(w.low[2 * c & 3], w.low[(2 * c + 1) & 3]) : uvec2(w.high[2 * c & 3], w.high[(2 * c + 1) & 3]))
#define EXPR_PART_16(w, c) (c == 0 ? w.e0 : c == 1 ? w.e1 : c == 2 ? w.e2 : w.e3)
#define EXPR_GET_1(X, i) TUFF_AT(X##_memory, i)
#define EXPR_GET_2(X, i) tuff_words(TUFF_AT(X##_memory, i))
#define EXPR_GET_4(X, i) tuff_words(TUFF_AT(X##_memory, i))
#define EXPR_GET_8(X, i) ExprWords8(tuff_words(TUFF_AT(X##_memory, 2 * (i))), tuff_words(TUFF_AT(X##_memory, 2 * (i) + 1)))
#define EXPR_GET_16(X, i)                                                                             \
  ExprWords16(tuff_words(TUFF_AT(X##_memory, 4 * (i))), tuff_words(TUFF_AT(X##_memory, 4 * (i) + 1)), \
              tuff_words(TUFF_AT(X##_memory, 4 * (i) + 2)), tuff_words(TUFF_AT(X##_memory, 4 * (i) + 3)))
#define EXPR_PUT_1(Y, i, w) TUFF_AT(Y##_memory, i) = w
#define EXPR_PUT_2(Y, i, w) TUFF_AT(Y##_memory, i) = tuff_memory(w)
#define EXPR_PUT_4(Y, i, w) TUFF_AT(Y##_memory, i) = tuff_memory(w)
#define EXPR_PUT_8(Y, i, w)                                \
  TUFF_AT(Y##_memory, 2 * (i)) = tuff_memory(w.low);       \
  TUFF_AT(Y##_memory, 2 * (i) + 1) = tuff_memory(w.high)
#define EXPR_PUT_16(Y, i, w)                               \
  TUFF_AT(Y##_memory, 4 * (i)) = tuff_memory(w.e0);         \
  TUFF_AT(Y##_memory, 4 * (i) + 1) = tuff_memory(w.e1);     \
  TUFF_AT(Y##_memory, 4 * (i) + 2) = tuff_memory(w.e2);     \
  TUFF_AT(Y##_memory, 4 * (i) + 3) = tuff_memory(w.e3)

#define EXPR_DECLARE(qualifier, slot, X, bytes)                             \
  TUFF_DECLARE(qualifier, slot, X, EXPR_RAW_##bytes, bytes)                 \
  TUFF_DECLARE(qualifier, slot, X##_memory, EXPR_MEMORY_##bytes, EXPR_MEMORY_BYTES_##bytes)

#define EXPR_FOUR(X, bytes, i0, i1, i2, i3)                                                            \
  const EXPR_HELD_##bytes a = EXPR_HELD_##bytes(TUFF_AT(X, i0)), b = EXPR_HELD_##bytes(TUFF_AT(X, i1)), \
                          c = EXPR_HELD_##bytes(TUFF_AT(X, i2)), d = EXPR_HELD_##bytes(TUFF_AT(X, i3)); \
  return EXPR_JOIN_##bytes(a, b, c, d);

#define EXPR_INPUT(slot, X, bytes)                                                                       \
  EXPR_DECLARE(readonly, slot, X, bytes)                                                                 \
  EXPR_WORDS_##bytes X##_repeated(uint i) {                                                              \
    const EXPR_HELD_##bytes a = EXPR_HELD_##bytes(TUFF_AT(X, i));                                        \
    return EXPR_JOIN_##bytes(a, a, a, a);                                                                \
  }                                                                                                      \
  EXPR_WORDS_##bytes X##_words(uint i) {                                                                 \
    if (EXPR_MODE(slot) == 0) return EXPR_GET_##bytes(X, i);                                             \
    if (EXPR_MODE(slot) == 1) return EXPR_GET_##bytes(X, EXPR_AT(slot) / 4);                             \
    if (EXPR_MODE(slot) == 2) return X##_repeated(EXPR_AT(slot));                                        \
    uint at = 4 * i, step = 1;                                                                           \
    if (EXPR_MODE(slot) == 4) at = EXPR_AT(slot), step = EXPR_STEP(slot);                                \
    if (EXPR_MODE(slot) != 3) {                                                                          \
      EXPR_FOUR(X, bytes, at, at + step, at + 2 * step, at + 3 * step)                                   \
    }                                                                                                    \
    EXPR_FOUR(X, bytes, EXPR_AT_EACH(slot, 0), EXPR_AT_EACH(slot, 1), EXPR_AT_EACH(slot, 2),             \
              EXPR_AT_EACH(slot, 3))                                                                     \
  }                                                                                                      \
  EXPR_WORDS_##bytes X##_word(uint i) {                                                                  \
    return X##_repeated(EXPR_MODE(slot) == 0 || EXPR_MODE(slot) == 5 ? i : EXPR_AT(slot));               \
  }

#define EXPR_PUT_ONE(Y, i, bytes, w, c) TUFF_AT(Y, i) = EXPR_PART_##bytes(w, c);
#define EXPR_OUTPUT(slot, Y, bytes)                                                                      \
  EXPR_DECLARE(writeonly, slot, Y, bytes)                                                                \
  void Y##_store(uint i, EXPR_WORDS_##bytes w) {                                                         \
    if (EXPR_MODE(slot) == 0) {                                                                          \
      EXPR_PUT_##bytes(Y, i, w);                                                                         \
    } else if (EXPR_MODE(slot) == 1) {                                                                   \
      EXPR_PUT_##bytes(Y, EXPR_AT(slot) / 4, w);                                                         \
    } else if (EXPR_MODE(slot) == 3) {                                                                   \
      EXPR_PUT_ONE(Y, EXPR_AT_EACH(slot, 0), bytes, w, 0)                                                \
      EXPR_PUT_ONE(Y, EXPR_AT_EACH(slot, 1), bytes, w, 1)                                                \
      EXPR_PUT_ONE(Y, EXPR_AT_EACH(slot, 2), bytes, w, 2)                                                \
      EXPR_PUT_ONE(Y, EXPR_AT_EACH(slot, 3), bytes, w, 3)                                                \
    } else {                                                                                             \
      uint at = 4 * i, step = 1;                                                                         \
      if (EXPR_MODE(slot) == 4) at = EXPR_AT(slot), step = EXPR_STEP(slot);                              \
      EXPR_PUT_ONE(Y, at, bytes, w, 0)                                                                   \
      EXPR_PUT_ONE(Y, at + step, bytes, w, 1)                                                            \
      EXPR_PUT_ONE(Y, at + 2 * step, bytes, w, 2)                                                        \
      EXPR_PUT_ONE(Y, at + 3 * step, bytes, w, 3)                                                        \
    }                                                                                                    \
  }                                                                                                      \
  void Y##_store_one(uint i, EXPR_WORDS_##bytes w) {                                                     \
    const uint at = EXPR_MODE(slot) == 0 || EXPR_MODE(slot) == 5 ? i : EXPR_AT(slot);                    \
    EXPR_PUT_ONE(Y, at, bytes, w, 0)                                                                     \
  }

// Words to values, by dtype; of complex types to the vectors of their parts.
vec4 expr_decode_1(uvec4 w) { return uintBitsToFloat(w); }
vec4 expr_decode_2(uvec2 w) { return tuff_unpack_2(w); }
vec4 expr_decode_3(uvec2 w) { return tuff_unpack_3(w); }
ivec4 expr_decode_5(uvec4 w) { return ivec4(w); }
uvec4 expr_decode_6(uvec4 w) { return w; }
ivec4 expr_decode_7(uint w) { return ivec4(w << 24, w << 16, w << 8, w) >> 24; }
uvec4 expr_decode_8(uint w) { return uvec4(w, w >> 8, w >> 16, w >> 24) & 0xffu; }
ivec4 expr_decode_11(uvec2 w) { return ivec4(w.x << 16, w.x, w.y << 16, w.y) >> 16; }
uvec4 expr_decode_12(uvec2 w) { return uvec4(w.x & 0xffffu, w.x >> 16, w.y & 0xffffu, w.y >> 16); }
uvec4 expr_decode_13(uint w) { return uvec4(notEqual(expr_decode_8(w), uvec4(0u))); }
uvec4 expr_encode_1(vec4 v) { return floatBitsToUint(v); }
uvec2 expr_encode_2(vec4 v) { return tuff_pack_2(v); }
uvec2 expr_encode_3(vec4 v) { return tuff_pack_3(v); }
uvec4 expr_encode_5(ivec4 v) { return uvec4(v); }
uvec4 expr_encode_6(uvec4 v) { return v; }
uint expr_encode_8(uvec4 v) { return EXPR_JOIN_1(v.x, v.y, v.z, v.w); }
uint expr_encode_7(ivec4 v) { return expr_encode_8(uvec4(v) & 0xffu); }
uvec2 expr_encode_12(uvec4 v) { return EXPR_JOIN_2(v.x, v.y, v.z, v.w); }
uvec2 expr_encode_11(ivec4 v) { return expr_encode_12(uvec4(v) & 0xffffu); }
uint expr_encode_13(uvec4 v) { return expr_encode_8(v); }
void expr_decode_16(ExprWords8 w, out vec4 re, out vec4 im) {
  re = uintBitsToFloat(uvec4(w.low.xz, w.high.xz));
  im = uintBitsToFloat(uvec4(w.low.yw, w.high.yw));
}
ExprWords8 expr_encode_16(vec4 re, vec4 im) {
  const uvec4 x = floatBitsToUint(re), y = floatBitsToUint(im);
  return ExprWords8(uvec4(x.x, y.x, x.y, y.y), uvec4(x.z, y.z, x.w, y.w));
}
#if TUFF_COMPUTES_F64
dvec4 expr_decode_4(ExprWords8 w) {
  return dvec4(packDouble2x32(w.low.xy), packDouble2x32(w.low.zw), packDouble2x32(w.high.xy), packDouble2x32(w.high.zw));
}
ExprWords8 expr_encode_4(dvec4 v) {
  return ExprWords8(uvec4(unpackDouble2x32(v.x), unpackDouble2x32(v.y)),
                    uvec4(unpackDouble2x32(v.z), unpackDouble2x32(v.w)));
}
void expr_decode_17(ExprWords16 w, out dvec4 re, out dvec4 im) {
  re = dvec4(packDouble2x32(w.e0.xy), packDouble2x32(w.e1.xy), packDouble2x32(w.e2.xy), packDouble2x32(w.e3.xy));
  im = dvec4(packDouble2x32(w.e0.zw), packDouble2x32(w.e1.zw), packDouble2x32(w.e2.zw), packDouble2x32(w.e3.zw));
}
ExprWords16 expr_encode_17(dvec4 re, dvec4 im) {
  return ExprWords16(uvec4(unpackDouble2x32(re.x), unpackDouble2x32(im.x)),
                     uvec4(unpackDouble2x32(re.y), unpackDouble2x32(im.y)),
                     uvec4(unpackDouble2x32(re.z), unpackDouble2x32(im.z)),
                     uvec4(unpackDouble2x32(re.w), unpackDouble2x32(im.w)));
}
#endif
#if TUFF_COMPUTES_INT64
u64vec4 expr_decode_10(ExprWords8 w) {
  return u64vec4(packUint2x32(w.low.xy), packUint2x32(w.low.zw), packUint2x32(w.high.xy), packUint2x32(w.high.zw));
}
i64vec4 expr_decode_9(ExprWords8 w) { return i64vec4(expr_decode_10(w)); }
ExprWords8 expr_encode_10(u64vec4 v) {
  return ExprWords8(uvec4(unpackUint2x32(v.x), unpackUint2x32(v.y)), uvec4(unpackUint2x32(v.z), unpackUint2x32(v.w)));
}
ExprWords8 expr_encode_9(i64vec4 v) { return expr_encode_10(u64vec4(v)); }
#endif
