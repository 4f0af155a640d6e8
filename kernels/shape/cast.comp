// output[i] = input[i] converted to another type, for i < n. Four elements are an item, and each of the last n % 4
// elements is one too. Each workgroup has RUN * (workgroup size) consecutive items; in step s lane l has item
// s * (workgroup size) + l.
//# TUFF_SOURCE_BYTES : 1|2|4|8 : bytes of an element of the source
//# TUFF_TARGET_BYTES : 1|2|4|8 : bytes of an element of the target
//# TUFF_SOURCE_STEP = 1 : 1|2 : 2: an element is the real part of a complex number, and the imaginary one follows it
//# TUFF_TARGET_STEP = 1 : 1|2 : 2: the same, and the imaginary part becomes 0
//# TUFF_UNROLL : 1|2 : items that a lane has in flight; divides RUN
//# TUFF_VECTOR : 0|1 : 1: four elements of either type are one access (two of 16 bytes for 64-bit types); 0: unaligned, or a step is 2
//# TUFF_RUN : 0.. : items that a lane processes one after another; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint n, run;
} push;

#include "kernels/shape/cast.glsl"

#define STORED_1 uint8_t
#define STORED_2 uint16_t
#define STORED_4 uint
#define STORED_8 uvec2
#define STORED(bytes) TUFF_PASTE(STORED_, bytes)

TUFF_READ(0, X, STORED(TUFF_SOURCE_BYTES), TUFF_SOURCE_BYTES)
TUFF_WRITE(1, Y, STORED(TUFF_TARGET_BYTES), TUFF_TARGET_BYTES)

#if TUFF_SOURCE_BYTES == 8
uvec2 load(uint i) { return TUFF_AT(X, i); }
#else
uvec2 load(uint i) { return uvec2(uint(TUFF_AT(X, i)), 0u); }
#endif
#if TUFF_TARGET_BYTES == 8
void store(uint i, uvec2 bits) { TUFF_AT(Y, i) = bits; }
#else
void store(uint i, uvec2 bits) { TUFF_AT(Y, i) = STORED(TUFF_TARGET_BYTES)(bits.x); }
#endif

uvec2 cast_one(uint i) {
  const uvec2 y = tuff_cast(load(TUFF_SOURCE_STEP * i));
#if TUFF_SOURCE_STEP == 2 && TUFF_TARGET == 13
  return y | tuff_cast(load(2 * i + 1));
#else
  return y;
#endif
}
void put(uint i, uvec2 bits) {
  store(TUFF_TARGET_STEP * i, bits);
#if TUFF_TARGET_STEP == 2
  store(2 * i + 1, uvec2(0u));
#endif
}

#if TUFF_VECTOR
#define WORDS_1 uint
#define WORDS_2 uvec2
#define WORDS_4 uvec4
// Four elements as words; PART extracts element c.
#if TUFF_SOURCE_BYTES == 1
TUFF_READ(0, X4, uint, 4)
#define PART(words, c) uvec2((words >> (8 * c)) & 0xffu, 0u)
#elif TUFF_SOURCE_BYTES == 2
TUFF_READ(0, X4, uvec2, 8)
#define PART(words, c) uvec2((words[c >> 1] >> (16 * (c & 1))) & 0xffffu, 0u)
#elif TUFF_SOURCE_BYTES == 4
TUFF_READ(0, X4, uvec4, 16)
#define PART(words, c) uvec2(words[c], 0u)
#else
TUFF_READ(0, X4, uvec4, 16)
#endif
#if TUFF_TARGET_BYTES == 1
TUFF_WRITE(1, Y4, uint, 4)
#define JOINED(a, b, c, d) ((a.x & 0xffu) | ((b.x & 0xffu) << 8) | ((c.x & 0xffu) << 16) | (d.x << 24))
#elif TUFF_TARGET_BYTES == 2
TUFF_WRITE(1, Y4, uvec2, 8)
#if TUFF_TARGET == 11
#define LOWER(x) ((x) & 0xffffu)
#else
#define LOWER(x) (x)  // other types' bits above the 16 are 0
#endif
#define JOINED(a, b, c, d) uvec2(LOWER(a.x) | (b.x << 16), LOWER(c.x) | (d.x << 16))
#elif TUFF_TARGET_BYTES == 4
TUFF_WRITE(1, Y4, uvec4, 16)
#define JOINED(a, b, c, d) uvec4(a.x, b.x, c.x, d.x)
#else
TUFF_WRITE(1, Y4, uvec4, 16)
#endif
#if TUFF_SOURCE_BYTES == 8
struct Four {
  uvec4 low, high;
};
Four load_four(uint i) { return Four(TUFF_AT(X4, 2 * i), TUFF_AT(X4, 2 * i + 1)); }
#else
#define Four TUFF_PASTE(WORDS_, TUFF_SOURCE_BYTES)
Four load_four(uint i) { return TUFF_AT(X4, i); }
#endif
void store_four(uint i, Four four) {
#if TUFF_SOURCE_BYTES == 8
  const uvec2 a = tuff_cast(four.low.xy), b = tuff_cast(four.low.zw), c = tuff_cast(four.high.xy),
              d = tuff_cast(four.high.zw);
#else
  const uvec2 a = tuff_cast(PART(four, 0)), b = tuff_cast(PART(four, 1)), c = tuff_cast(PART(four, 2)),
              d = tuff_cast(PART(four, 3));
#endif
#if TUFF_TARGET_BYTES == 8
  TUFF_AT(Y4, 2 * i) = uvec4(a, b);
  TUFF_AT(Y4, 2 * i + 1) = uvec4(c, d);
#else
  TUFF_AT(Y4, i) = JOINED(a, b, c, d);
#endif
}
void cast_four(uint i) { store_four(i, load_four(i)); }
#else
void cast_four(uint i) {
  const uvec2 a = cast_one(4 * i), b = cast_one(4 * i + 1), c = cast_one(4 * i + 2), d = cast_one(4 * i + 3);
  put(4 * i, a);
  put(4 * i + 1, b);
  put(4 * i + 2, c);
  put(4 * i + 3, d);
}
#endif

void main() {
  const uint lanes = gl_WorkGroupSize.x, vec4s = push.n / 4, items = vec4s + push.n % 4;
  const uint begin = tuff_group() * (lanes * RUN);
  uint i = begin + gl_LocalInvocationID.x;
#if TUFF_UNROLL == 2 && TUFF_VECTOR
  if (begin + lanes * RUN <= vec4s) {
    for (uint step = 0; step < RUN; step += 2, i += 2 * lanes) {
      const Four first = load_four(i), second = load_four(i + lanes);
      store_four(i, first);
      store_four(i + lanes, second);
    }
    return;
  }
#endif
  for (uint step = 0; step < RUN && i < items; ++step, i += lanes) {
    if (i < vec4s) {
      cast_four(i);
    } else {
      const uint element = 4 * vec4s + (i - vec4s);
      put(element, cast_one(element));
    }
  }
}
