// Keys and values that are quantised: read as they are stored, four or eight numbers of a row at a time, and dequantised
// in f32. `at` is the place of the first of them, counted in numbers, `key` the number of the key or value.
//
//# KEY_FORMAT : 0|14..16|20 : how keys are stored: 0 as TYPE; TUFF_F8_E4M3, TUFF_F8_E5M2; TUFF_QUANT_Q4_0, TUFF_QUANT_Q8_0
//# VALUE_FORMAT : 0|14..16|20 : how values are stored
//# KEY_SCALES : 0|6..10 : the slot of the scales of keys of 8-bit floats, which need EXTENDED; 0: there are none
//# VALUE_SCALES : 0|6..10 : likewise of values
//   The slot is one of bias, mask, lse and lengths, of which the call lacks some: a dispatch has at most 11 operands.
#include "kernels/quant/quant_words.glsl"

#define F8_E4M3 14
#define F8_E5M2 15
#define Q4_0 16
#define Q8_0 20
#define IN_BLOCKS(format) (format >= Q4_0)

#if KEY_SCALES
TUFF_READ(KEY_SCALES, KeyScales, float, 4)
TUFF_INDEX key_scale_base;  // set by find_head()
float key_factor(uint key) { return TUFF_AT(KeyScales, key_scale_base + TUFF_INDEX(key) * SHAPE.k_scale_key); }
#else
float key_factor(uint key) { return 1.0; }
#endif
#if VALUE_SCALES
TUFF_READ(VALUE_SCALES, ValueScales, float, 4)
TUFF_INDEX value_scale_base;
float value_factor(uint key) { return TUFF_AT(ValueScales, value_scale_base + TUFF_INDEX(key) * SHAPE.v_scale_key); }
#else
float value_factor(uint key) { return 1.0; }
#endif

// The numbers of a word that is stored, `at` being the place of the first of them.
vec4 four_of_word(const int format, uint word, uint at, float scale) {
  if (format == Q8_0) return four_of_q8(word, scale);
  if (format == Q4_0) return four_of_q4(word, at % 32 / 16 * 4, scale);
  return (format == F8_E4M3 ? TUFF_UNPACKED(TUFF_F8_E4M3, word) : TUFF_UNPACKED(TUFF_F8_E5M2, word)) * scale;
}

// For Name and name, Key and key or Value and value, in `slot`:
//   name_four(at, left, key)  four numbers, of which only `left` may be stored: the others are 0. With VEC all are
//   name_number(at, key)      one number
//   name_eight(at, key)       eight numbers as they are stored, for name_of_eight(), and the bits of their scale; `at` is a
//                             multiple of eight, as are bases and strides
//   name_of_eight(half, raw, at)  the first or second four of them
//
// Blocks begin at even bytes with an f16 scale. They are read in 16-bit words, as texels if the device has these.
#if TUFF_TEXELS
#define WORD_OF(words, i) TUFF_TEXEL(words, i).x
#else
#define WORD_OF(words, i) uint(TUFF_AT(words, i))
#endif
#define STORED_IN_BLOCKS(Name, name, slot, FORMAT)                                                                     \
  TUFF_READ_TEXELS(slot, Name##Words, uint16_t, 2)                                                                     \
  TUFF_INDEX name##_block(TUFF_INDEX at) { return at / 32u * (FORMAT == Q8_0 ? 17u : 9u); }                            \
  float name##_block_scale(TUFF_INDEX at) {                                                                            \
    return unpackHalf2x16(WORD_OF(Name##Words, name##_block(at))).x;                                                   \
  }                                                                                                                    \
  uint name##_word(TUFF_INDEX at) {                                                                                    \
    const uint number = uint(at % 32u);                                                                                \
    const TUFF_INDEX word = name##_block(at) + 1u + (FORMAT == Q8_0 ? number : number % 16u) / 2u;                     \
    return WORD_OF(Name##Words, word) | WORD_OF(Name##Words, word + 1u) << 16;                                         \
  }                                                                                                                    \
  vec4 name##_four(TUFF_INDEX at, int left, uint key) {                                                                \
    return four_of_word(FORMAT, name##_word(at), uint(at % 32u), name##_block_scale(at));                              \
  }                                                                                                                    \
  float name##_number(TUFF_INDEX at, uint key) {                                                                       \
    return name##_four(at / 4u * 4u, 4, key)[uint(at % 4u)];                                                           \
  }                                                                                                                    \
  uvec4 name##_eight(TUFF_INDEX at, uint key) {                                                                        \
    return uvec4(name##_word(at), name##_word(at + 4u), floatBitsToUint(name##_block_scale(at)), 0u);                  \
  }

#define STORED_AS_F8(Name, name, slot, FORMAT)                                                                         \
  TUFF_READ(slot, Name, uint8_t, 1)                                                                                    \
  TUFF_READ(slot, Name##4, uint, 4)                                                                                    \
  TUFF_READ(slot, Name##8, uvec2, 8)                                                                                   \
  vec4 name##_four(TUFF_INDEX at, int left, uint key) {                                                                \
    uint word = 0u;                                                                                                    \
    if (F8_FOURS) {                                                                                                    \
      if (left > 0) word = TUFF_AT(Name##4, at / 4u);                                                                  \
    } else {                                                                                                           \
      [[unroll]] for (int e = 0; e < 4; ++e) {                                                                         \
        if (e < left) word |= uint(TUFF_AT(Name, at + uint(e))) << (8 * e);                                            \
      }                                                                                                                \
    }                                                                                                                  \
    return four_of_word(FORMAT, word, 0u, name##_factor(key));                                                         \
  }                                                                                                                    \
  float name##_number(TUFF_INDEX at, uint key) {                                                                       \
    return four_of_word(FORMAT, uint(TUFF_AT(Name, at)), 0u, name##_factor(key)).x;                                    \
  }                                                                                                                    \
  uvec4 name##_eight(TUFF_INDEX at, uint key) {                                                                        \
    return uvec4(TUFF_AT(Name##8, at / 8u), floatBitsToUint(name##_factor(key)), 0u);                                  \
  }

#define OF_EIGHT(name, FORMAT)                                                                                         \
  vec4 name##_of_eight(uint half_, uvec4 raw, uint at) {                                                               \
    return four_of_word(FORMAT, raw[half_], at, uintBitsToFloat(raw.z));                                               \
  }

#ifdef VEC
#define F8_FOURS (VEC != 0)
#else
#define F8_FOURS true
#endif
#if KEY_FORMAT != 0
#if IN_BLOCKS(KEY_FORMAT)
STORED_IN_BLOCKS(Key, key, 1, KEY_FORMAT)
#else
STORED_AS_F8(Key, key, 1, KEY_FORMAT)
#endif
OF_EIGHT(key, KEY_FORMAT)
#endif
#if VALUE_FORMAT != 0
#if IN_BLOCKS(VALUE_FORMAT)
STORED_IN_BLOCKS(Value, value, 2, VALUE_FORMAT)
#else
STORED_AS_F8(Value, value, 2, VALUE_FORMAT)
#endif
OF_EIGHT(value, VALUE_FORMAT)
#endif
