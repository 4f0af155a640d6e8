// The index of the largest or smallest value along the middle axis of [outer][extent][inner]: the first of several, or
// the first NaN if there is one.
//
// Result t is element t of [outer][segments][inner]. It covers `rows` rows of the axis from segment * rows on, but none
// beyond extent. TUFF_LANES invocations share a result: each takes every LANES-th row, then a tree combines their
// results. A result is a key, which orders like the values with NaN above all, and the row's index; the last stage
// stores the index alone. A key is one word, or two for types of 64 bits, which are never computed with.
//# TUFF_TYPE : 0..13 : type of the input, as in tuff.h; 0: results of an earlier stage
//# TUFF_WORDS : 1|2 : words of a key: 2 for types of 64 bits
//# TUFF_Y_BYTES : 4|8 : bytes of an index, if it is stored
//# TUFF_MINIMUM : 0|1 : 1: finds the smallest value instead of the largest
//# TUFF_LAST : 0|1 : 1: only indices are stored
//# TUFF_LANES : 1..1024 : invocations that share a result: 1, the subgroup's size, or the whole workgroup
//# TUFF_BLOCK : 0|1 : 1: rows are read in blocks of 16 bytes; inner is 1 and segments are whole blocks
//# TUFF_SHARED : 0|1 : 1: TUFF_LANES is the workgroup, and larger than a subgroup
// With TUFF_BLOCK a lane keeps only the best key and its block, and looks up the element within the block at the end.
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint results;
  uint extent, inner, segments, rows;
} push;

#include "kernels/common/types.glsl"
#if TUFF_WORDS == 1
#define RESULT uvec2  // key, row
#define RESULT_BYTES 8
#define ROW y
#define NOTHING uvec2(0u, 0xffffffffu)
#else
#define RESULT uvec4  // upper and lower word of the key, row
#define RESULT_BYTES 16
#define ROW z
#define NOTHING uvec4(0u, 0u, 0xffffffffu, 0u)
#endif
#if TUFF_TYPE == 0
TUFF_READ(0, X, RESULT, RESULT_BYTES)
#elif TUFF_TYPE == 4
TUFF_READ(0, X, uvec2, 8)
#else
TUFF_READ(0, X, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
#endif
#if TUFF_BLOCK
#include "kernels/elementwise/blocks.glsl"
TUFF_READ(0, B, TUFF_MEMORY16, 16)
#endif
#if !TUFF_LAST
TUFF_WRITE(1, Y, RESULT, RESULT_BYTES)
#elif TUFF_Y_BYTES == 4
TUFF_WRITE(1, Y, uint, 4)
#else
TUFF_WRITE(1, Y, uvec2, 8)
#endif

// The better of two results: the larger key, or the smaller index of equal keys.
RESULT better(RESULT a, RESULT b) {
#if TUFF_WORDS == 1
  const bool second = b.x > a.x || (b.x == a.x && b.y < a.y);
#else
  const bool second = b.x > a.x || (b.x == a.x && (b.y > a.y || (b.y == a.y && b.z < a.z)));
#endif
  return second ? b : a;
}

RESULT load(TUFF_INDEX i, uint row) {
#if TUFF_TYPE == 0
  return TUFF_AT(X, i);
#elif TUFF_WORDS == 2
  const uvec2 words = TUFF_AT(X, i);
  uvec2 key = words.yx;
#if TUFF_TYPE == 9
  key.x ^= 0x80000000u;
#elif TUFF_TYPE == 4
  const uint magnitude = words.y & 0x7fffffffu;
  key = (words.y & 0x80000000u) != 0u ? ~key : key | uvec2(0x80000000u, 0u);
  if ((magnitude | words.x) == 0u) key = uvec2(0x80000000u, 0u);  // +0 and -0 are equal
#endif
#if TUFF_MINIMUM
  key = ~key;
#endif
#if TUFF_TYPE == 4
  if ((magnitude | uint(words.x != 0u)) > 0x7ff00000u) key = uvec2(0xffffffffu);
#endif
  return uvec4(key, row, 0u);
#elif TUFF_TYPE >= 5
  uint key = uint(TUFF_LOADED(TUFF_TYPE, TUFF_AT(X, i)));
#if TUFF_TYPE == 5 || TUFF_TYPE == 7 || TUFF_TYPE == 11
  key ^= 0x80000000u;
#endif
#if TUFF_MINIMUM
  key = ~key;
#endif
  return uvec2(key, row);
#else
  const uint bits = floatBitsToUint(TUFF_LOADED(TUFF_TYPE, TUFF_AT(X, i)));
  uint key = (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
  key = (bits & 0x7fffffffu) == 0u ? 0x80000000u : key;  // +0 and -0 are equal
#if TUFF_MINIMUM
  key = ~key;
#endif
  return uvec2((bits & 0x7fffffffu) > 0x7f800000u ? 0xffffffffu : key, row);
#endif
}

#if TUFF_BLOCK
// Keys that order like the values, from the bits of four elements in the upper part of a word (f16 too, like f32) and
// the bits of infinity in that format.
ivec4 keys_of(uvec4 bits, uint infinity) {
  const uvec4 magnitude = bits & 0x7fffffffu;
  const ivec4 sign = ivec4(bits) >> 31;
  ivec4 key = (ivec4(magnitude) ^ sign) - sign;  // +0 and -0 are both 0
#if TUFF_MINIMUM
  key = -key;
#endif
  return mix(key, ivec4(0x7fffffff), greaterThan(magnitude, uvec4(infinity)));
}

struct Keys {
  ivec4 part[TUFF_PARTS];
};
Keys load_keys(TUFF_INDEX block) {
  const uvec4 words = tuff_words(TUFF_AT(B, block));
  Keys keys;
#if TUFF_PARTS == 1
  keys.part[0] = keys_of(words, 0x7f800000u);
#else
  const uint infinity = TUFF_TYPE == 2 ? 0x7c000000u : 0x7f800000u;
  keys.part[0] = keys_of(uvec4(words.x << 16, words.x & 0xffff0000u, words.y << 16, words.y & 0xffff0000u), infinity);
  keys.part[1] = keys_of(uvec4(words.z << 16, words.z & 0xffff0000u, words.w << 16, words.w & 0xffff0000u), infinity);
#endif
  return keys;
}
int largest(Keys keys) {
  ivec4 k = keys.part[0];
#if TUFF_PARTS == 2
  k = max(k, keys.part[1]);
#endif
  return max(max(k.x, k.y), max(k.z, k.w));
}

// The best of blocks begin <= b < end of a row whose first block is `first`.
uvec2 best_of_blocks(TUFF_INDEX first, uint begin, uint end, uint lane) {
  int best = -0x7fffffff - 1;  // below all keys
  uint place = begin;
  uint b = begin + lane;
  for (; b + 3 * TUFF_LANES < end; b += 4 * TUFF_LANES) {
    const Keys k0 = load_keys(first + b), k1 = load_keys(first + b + TUFF_LANES),
               k2 = load_keys(first + b + 2 * TUFF_LANES), k3 = load_keys(first + b + 3 * TUFF_LANES);
    const int m0 = largest(k0), m1 = largest(k1), m2 = largest(k2), m3 = largest(k3);
    if (m0 > best) best = m0, place = b;
    if (m1 > best) best = m1, place = b + TUFF_LANES;
    if (m2 > best) best = m2, place = b + 2 * TUFF_LANES;
    if (m3 > best) best = m3, place = b + 3 * TUFF_LANES;
  }
  for (; b < end; b += TUFF_LANES) {
    const int m = largest(load_keys(first + b));
    if (m > best) best = m, place = b;
  }
  if (best == -0x7fffffff - 1) return uvec2(0u, 0xffffffffu);  // this lane had no blocks
  const Keys keys = load_keys(first + place);
  uint row = 0;
  [[unroll]] for (uint i = TUFF_ELEMENTS; i-- > 0;) row = keys.part[i / 4][i % 4] == best ? i : row;
  return uvec2(uint(best) ^ 0x80000000u, place * TUFF_ELEMENTS + row);
}
#endif

#if TUFF_SHARED
shared RESULT parts[TUFF_LANES];
#endif

void main() {
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  // Surplus lanes repeat the last result, because every lane takes part in the shuffles.
  const uint lane = thread % TUFF_LANES;
  const uint t = min(tuff_group() * (gl_WorkGroupSize.x / TUFF_LANES) + thread / TUFF_LANES, push.results - 1);
  const uint slice = t / push.inner, column = t - slice * push.inner;
  const uint outer = slice / push.segments, segment = slice - outer * push.segments;
  const uint begin = segment * push.rows, end = min(begin + push.rows, push.extent);
#if TUFF_BLOCK
  uvec2 best = best_of_blocks(TUFF_INDEX(outer) * (push.extent / TUFF_ELEMENTS), begin / TUFF_ELEMENTS,
                              end / TUFF_ELEMENTS, lane);
#else
  const TUFF_INDEX base = TUFF_INDEX(outer) * push.extent * push.inner + column;
  RESULT best = NOTHING;
  uint row = begin + lane;
  for (; row + 3 * TUFF_LANES < end; row += 4 * TUFF_LANES) {
    const RESULT a = load(base + TUFF_INDEX(row) * push.inner, row);
    const RESULT b = load(base + TUFF_INDEX(row + TUFF_LANES) * push.inner, row + TUFF_LANES);
    const RESULT c = load(base + TUFF_INDEX(row + 2 * TUFF_LANES) * push.inner, row + 2 * TUFF_LANES);
    const RESULT d = load(base + TUFF_INDEX(row + 3 * TUFF_LANES) * push.inner, row + 3 * TUFF_LANES);
    best = better(best, better(better(a, b), better(c, d)));
  }
  for (; row < end; row += TUFF_LANES) best = better(best, load(base + TUFF_INDEX(row) * push.inner, row));
#endif
#if TUFF_LANES > 1
  for (uint mask = 1; mask < gl_SubgroupSize; mask *= 2) best = better(best, subgroupShuffleXor(best, mask));
#if TUFF_SHARED
  if (gl_SubgroupInvocationID == 0) parts[gl_SubgroupID] = best;
  barrier();
  for (uint width = gl_NumSubgroups / 2; width > 0; width /= 2) {
    if (thread < width) parts[thread] = better(parts[thread], parts[thread + width]);
    barrier();
  }
  best = parts[0];
#endif
#endif
  if (lane != 0) return;
#if !TUFF_LAST
  TUFF_AT(Y, TUFF_INDEX(t)) = best;
#elif TUFF_Y_BYTES == 4
  TUFF_AT(Y, TUFF_INDEX(t)) = best.ROW;
#else
  TUFF_AT(Y, TUFF_INDEX(t)) = uvec2(best.ROW, 0u);
#endif
}
