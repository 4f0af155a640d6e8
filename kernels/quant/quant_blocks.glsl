// Decodes ggml's blocks (quant_blocks.cpp describes their layout), eight numbers at a time: number 8 j to 8 j + 7 of a
// block. Blocks begin at even bytes and are read in 16-bit words.
//
//# TUFF_FORMAT : 0|16..20|24..26 : TUFF_QUANT_*; 0: none, integers
#include "kernels/quant/quant_words.glsl"

struct Numbers {
  vec4 part[2];
};

#if TUFF_FORMAT != 0
#if TUFF_FORMAT >= 24
#define BLOCK 256
#else
#define BLOCK 32
#endif
#if TUFF_FORMAT == 16
#define BLOCK_WORDS 9
#elif TUFF_FORMAT == 17
#define BLOCK_WORDS 10
#elif TUFF_FORMAT == 18
#define BLOCK_WORDS 11
#elif TUFF_FORMAT == 19
#define BLOCK_WORDS 12
#elif TUFF_FORMAT == 20
#define BLOCK_WORDS 17
#elif TUFF_FORMAT == 24
#define BLOCK_WORDS 72
#elif TUFF_FORMAT == 25
#define BLOCK_WORDS 88
#else
#define BLOCK_WORDS 105
#endif

TUFF_READ(0, Words, uint16_t, 2)

uint word_at(TUFF_INDEX i) { return uint(TUFF_AT(Words, i)); }
uint pair_at(TUFF_INDEX i) { return word_at(i) | (word_at(i + 1) << 16); }
uint byte_at(TUFF_INDEX block, uint byte) { return (word_at(block + byte / 2) >> (8 * (byte & 1))) & 0xffu; }
float half_at(TUFF_INDEX i) { return unpackHalf2x16(word_at(i)).x; }

// `block` is the index of the block's first word.
Numbers decode(TUFF_INDEX block, uint j) {
  Numbers numbers;
  const float scale = half_at(TUFF_FORMAT == 26 ? block + 104 : block);
#if TUFF_FORMAT == 20
  const uvec2 words = uvec2(pair_at(block + 1 + 4 * j), pair_at(block + 3 + 4 * j));
  [[unroll]] for (uint p = 0; p < 2; ++p) numbers.part[p] = four_of_q8(words[p], scale);
#elif TUFF_FORMAT == 16
  const TUFF_INDEX low = block + 1 + 4 * (j & 1);
  const uint shift = 4 * (j / 2);
  [[unroll]] for (uint p = 0; p < 2; ++p) {
    precise vec4 product = four_of_q4(pair_at(low + 2 * p), shift, scale);
    numbers.part[p] = product;
  }
#elif TUFF_FORMAT < 20
  const bool minimum = TUFF_FORMAT == 17 || TUFF_FORMAT == 19, fifth = TUFF_FORMAT >= 18;
  const TUFF_INDEX high = block + (minimum ? 2 : 1), low = high + (fifth ? 2 : 0) + 4 * (j & 1);
  const uint shift = 4 * (j / 2);
  const uvec2 halves = (uvec2(pair_at(low), pair_at(low + 2)) >> shift) & 0x0f0f0f0fu;
  const float least = minimum ? half_at(block + 1) : 0.0;
  const uint bits = fifth ? (pair_at(high) >> (8 * j)) << 4 : 0u;
  const int middle = minimum ? 0 : 16;
  [[unroll]] for (uint p = 0; p < 2; ++p) {
    const uvec4 q = tuff_bytes(halves[p]) | ((uvec4(bits) >> (4 * p + uvec4(0, 1, 2, 3))) & 16u);
    precise vec4 product = vec4(ivec4(q) - middle) * scale;
    numbers.part[p] = minimum ? product + least : product;
  }
#elif TUFF_FORMAT == 26
  const uint half_ = j / 16, r = (j / 4) & 3, l = 4 * (j & 3);  // l: in words
  const TUFF_INDEX low = block + 32 * half_ + 16 * (r & 1) + l, high = block + 64 + 16 * half_ + l;
  const uvec2 lower = (uvec2(pair_at(low), pair_at(low + 2)) >> (4 * (r / 2))) & 0x0f0f0f0fu;
  const uvec2 upper = (uvec2(pair_at(high), pair_at(high + 2)) >> (2 * r)) & 0x03030303u;
  const int group = (int(byte_at(block, 192 + j / 2)) << 24) >> 24;
  const float factor = scale * float(group);
  [[unroll]] for (uint p = 0; p < 2; ++p) {
    numbers.part[p] = vec4(ivec4(tuff_bytes(lower[p] | (upper[p] << 4))) - 32) * factor;
  }
#else
  const uint g = j / 4, l = 4 * (j & 3);  // group; l: in words
  const float least = half_at(block + 1);
  const uint near = byte_at(block, 4 + (g & 3)), middle = byte_at(block, 8 + (g & 3)), far = byte_at(block, 12 + (g & 3));
  const uint s = g < 4 ? near & 63u : (far & 15u) | ((near >> 6) << 4);
  const uint m = g < 4 ? middle & 63u : (far >> 4) | ((middle >> 6) << 4);
  const TUFF_INDEX high = block + 8, low = high + (TUFF_FORMAT == 25 ? 16 : 0) + 16 * (g / 2) + l;
  uvec2 q = (uvec2(pair_at(low), pair_at(low + 2)) >> (4 * (g & 1))) & 0x0f0f0f0fu;
#if TUFF_FORMAT == 25
  q |= ((uvec2(pair_at(high + l), pair_at(high + l + 2)) >> g) & 0x01010101u) << 4;
#endif
  const float group_scale = scale * float(s), group_least = least * float(m);
  [[unroll]] for (uint p = 0; p < 2; ++p) {
    precise vec4 product = vec4(ivec4(tuff_bytes(q[p]))) * group_scale;
    numbers.part[p] = product - group_least;
  }
#endif
  return numbers;
}
#endif
