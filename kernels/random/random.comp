// output[i] = element offset + i of a sequence of random numbers, for i < n. Block b of the sequence is four words:
// Philox4x32-10 of the counter (b, sequence) with the seed as its key. A lane computes one block after another and
// stores its four elements; TUFF_RANDOM_INTEGERS takes the word of the same place in block b + 2^63, too.
//
//   elements    …| 4b  4b+1  4b+2  4b+3 |…       b of lane l in step s: first + s * (workgroup size) + l
//   words        | w0   w1    w2    w3  |         normal: (w0, w1) and (w2, w3) give two numbers each
//
// All arithmetic is precise and uses only additions, subtractions and multiplications of f32, which every device
// rounds alike, and integers; so that every device and the host compute the same bits.
//
//# TUFF_TYPE : 1|2|3|5|6|7|8 : element type, as in tuff.h
//# TUFF_DISTRIBUTION : 1..6 : TUFF_RANDOM_* of tuff.h
//# TUFF_WHOLE : 0|1 : 1: the output begins with a block and is aligned for four elements, which are stored together
//# TUFF_RUN : 0.. : blocks that a lane processes one after another; 0: push.run says
#include "kernels/common/types.glsl"
#include "kernels/random/formulas.glsl"
#include "kernels/random/philox.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(1)
  uint n, run;
  uint skipped;              // elements of the first block before the output begins
  uint block[2];             // number of the first block
  uint sequence[2], key[2];  // low and high word
  float offset, factor;      // offset + factor * (the standard distribution)
  uint least, range;         // integers, modulo 2^32; a range of 0 stands for 2^32
  uint threshold;            // Bernoulli: words below it give 1; if it is 0, range 1 says that all do
} push;

#if TUFF_TYPE == 2 || TUFF_TYPE == 3
#define WORDS uvec2
#define BYTES 2
#define ELEMENT uint16_t
#elif TUFF_TYPE >= 7
#define WORDS uint
#define BYTES 1
#define ELEMENT uint8_t
#else
#define WORDS uvec4
#define BYTES 4
#define ELEMENT uint
#endif
#if TUFF_WHOLE
TUFF_WRITE(0, Whole, WORDS, 4 * BYTES)
#endif
TUFF_WRITE(0, Y, ELEMENT, BYTES)

#define BITS 1
#define INTEGERS 2
#define BERNOULLI 3
#define UNIFORM 4
#define NORMAL 5

uvec4 philox(uvec4 c) { return tuff_philox(c, uvec2(push.key[0], push.key[1])); }

// Box and Muller 1958.
vec2 normals(uint radius, uint angle) {
  const vec2 way = direction(angle);
  precise float r = root(2.0 * minus_log(radius));
  return vec2(r * way.x, r * way.y);
}

// The integer of a word, or of two for INTEGERS: the upper 32 of the 96 bits of range * (high, low).
uint integer_of(uint low, uint high) {
#if TUFF_DISTRIBUTION == BITS
  return high;
#elif TUFF_DISTRIBUTION == BERNOULLI
  return push.range == 1 || high < push.threshold ? 1u : 0u;
#else
  if (push.range == 0) return push.least + high;
  uint lower, carried, middle, result, ignored;
  umulExtended(push.range, low, lower, ignored);
  umulExtended(push.range, high, result, middle);
  uaddCarry(middle, lower, carried);
  return push.least + result + carried;
#endif
}

// Bits of the type.
uint stored(float value) {
#if TUFF_TYPE == 2
  return tuff_f16_bits(value);
#elif TUFF_TYPE == 3
  return tuff_bf16_bits(value);
#else
  return floatBitsToUint(value);
#endif
}

// As many bits as the type holds, so that rounding to it does not give 1.
#if TUFF_TYPE == 1
#define FRACTION 24
#elif TUFF_TYPE == 2
#define FRACTION 11
#else
#define FRACTION 8
#endif

// The bits of the four elements of a block, from the words of its number.
uvec4 elements_of(uint low, uint high) {
  const uvec4 words = philox(uvec4(low, high, push.sequence[0], push.sequence[1]));
#if TUFF_DISTRIBUTION == INTEGERS
  const uvec4 more = philox(uvec4(low, high | 0x80000000u, push.sequence[0], push.sequence[1]));
  return uvec4(integer_of(more.x, words.x), integer_of(more.y, words.y), integer_of(more.z, words.z),
               integer_of(more.w, words.w));
#elif TUFF_DISTRIBUTION == BITS || TUFF_DISTRIBUTION == BERNOULLI
  uvec4 whole;
  for (uint i = 0; i < 4; ++i) {
    whole[i] = integer_of(0, words[i]);
#if TUFF_TYPE <= 3
    whole[i] = stored(float(whole[i]));
#endif
  }
  return whole;
#else
  precise vec4 x;
#if TUFF_DISTRIBUTION == NORMAL
  x = vec4(normals(words.x, words.y), normals(words.z, words.w));
#elif TUFF_DISTRIBUTION == UNIFORM
  x = vec4(words >> (32 - FRACTION)) * (1.0 / float(1u << FRACTION));
#else
  x = vec4(minus_log(words.x), minus_log(words.y), minus_log(words.z), minus_log(words.w));
#endif
  x = push.offset + push.factor * x;
  return uvec4(stored(x.x), stored(x.y), stored(x.z), stored(x.w));
#endif
}

void main() {
  const uint lanes = gl_WorkGroupSize.x, blocks = (push.skipped + push.n + 3) / 4;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < blocks; ++step, i += lanes) {
    uint carry;
    const uint low = uaddCarry(push.block[0], i, carry);
    const uvec4 bits = elements_of(low, push.block[1] + carry);
#if TUFF_WHOLE
    if (4 * i + 4 <= push.n) {
#if BYTES == 4
      TUFF_AT(Whole, i) = bits;
#elif BYTES == 2
      TUFF_AT(Whole, i) = bits.xz | bits.yw << 16;
#else
      const uvec4 byte = bits & 0xffu;
      TUFF_AT(Whole, i) = byte.x | byte.y << 8 | byte.z << 16 | byte.w << 24;
#endif
      continue;
    }
#endif
    for (uint c = 0; c < 4; ++c) {
      const uint at = 4 * i + c - push.skipped;  // beyond n before the output begins
      if (at < push.n) TUFF_AT(Y, at) = ELEMENT(bits[c]);
    }
  }
}
