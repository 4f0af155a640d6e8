// Reductions whose running result is more than one value. Four of them, or four elements, are handled at once:
//
//   moments        var, std     a: mean - base; b: sum of the squares of the distances from the mean; c: count
//   place          argmax ...   a, b: upper and lower word of a key that orders as the elements do, NaN above all; c: index
//   exponentials   logsumexp    a: the largest element; b: sum of e^(x - a)
//
// Moments are accumulated by Welford's update and combined by Chan's formula. All that are combined have the same base,
// one of the elements: means are then as small as the elements' distances are, so that nothing cancels where the
// elements are large and close together.
//# TUFF_STATE = 0 : 0..3 : 0: a single value (reduce.glsl); 1: moments; 2: place; 3: exponentials
//# TUFF_KEY_MINIMUM = 0 : 0|1 : with places 1: the smallest element has the largest key
#if TUFF_STATE == 2
#define TUFF_A int
#define TUFF_A4 ivec4
#define TUFF_B uint
#define TUFF_B4 uvec4
#define TUFF_C uint
#define TUFF_C4 uvec4
#define TUFF_A_SHUFFLE_XOR(v, mask) subgroupShuffleXor(v, mask)
#define TUFF_C_SHUFFLE_XOR(v, mask) subgroupShuffleXor(v, mask)
#else
#define TUFF_A TUFF_VALUE
#define TUFF_A4 TUFF_VALUE4
#define TUFF_B TUFF_VALUE
#define TUFF_B4 TUFF_VALUE4
#define TUFF_C TUFF_VALUE
#define TUFF_C4 TUFF_VALUE4
#define TUFF_A_SHUFFLE_XOR(v, mask) TUFF_SHUFFLE_XOR(v, mask)
#define TUFF_C_SHUFFLE_XOR(v, mask) TUFF_SHUFFLE_XOR(v, mask)
#endif

struct State {
  TUFF_A a;
  TUFF_B b;
  TUFF_C c;
};
struct State4 {
  TUFF_A4 a;
  TUFF_B4 b;
  TUFF_C4 c;
};

State4 state4(State s) { return State4(TUFF_A4(s.a), TUFF_B4(s.b), TUFF_C4(s.c)); }
State state_at(State4 s, uint i) { return State(s.a[i], s.b[i], s.c[i]); }
State shuffled(State s, uint mask) {
  return State(TUFF_A_SHUFFLE_XOR(s.a, mask), TUFF_C_SHUFFLE_XOR(s.b, mask), TUFF_C_SHUFFLE_XOR(s.c, mask));
}

#if TUFF_STATE == 1
// The base of elements of which x is one. From one near the end of the range, differences would leave it.
#if TUFF_VALUE_TYPE == 4
#define TUFF_FAR_BITS 0x7fd00000u
#else
#define TUFF_FAR_BITS 0x7e800000u
#endif
TUFF_VALUE4 base_of(TUFF_VALUE4 x) {
  return mix(x, TUFF_VALUE4(TUFF_ZERO), greaterThanEqual(tuff_magnitude(x), uvec4(TUFF_FAR_BITS)));
}
State4 empty_state() { return State4(TUFF_VALUE4(TUFF_ZERO), TUFF_VALUE4(TUFF_ZERO), TUFF_VALUE4(TUFF_ZERO)); }
// y: the elements less the base.
State4 state_of(TUFF_VALUE4 y) { return State4(y, TUFF_VALUE4(TUFF_ZERO), TUFF_VALUE4(TUFF_ONE)); }
// Elements are gathered into states whose four counts are equal.
void gather(inout State4 s, TUFF_VALUE4 y) {
  const TUFF_VALUE count = s.c.x + TUFF_ONE;
  const TUFF_VALUE4 distance = y - s.a;
  s.c = TUFF_VALUE4(count);
  s.a += distance * (TUFF_ONE / count);
  s.b += distance * (y - s.a);
}
void merge(inout State4 s, State4 t) {
  const TUFF_VALUE4 count = s.c + t.c, share = t.c / max(count, TUFF_VALUE4(TUFF_ONE)), distance = t.a - s.a;
  s.a += distance * share;
  // In this order, so that nothing overflows where one of the counts is 0.
  s.b += t.b + (distance * (s.c * share)) * distance;
  s.c = count;
}

#elif TUFF_STATE == 2
State4 empty_state() { return State4(ivec4(-0x7fffffff - 1), uvec4(0u), uvec4(0xffffffffu)); }
#if TUFF_VALUE_TYPE == 1
// Two's complement of the magnitude for negative numbers, so that +0 and -0 are equal.
State4 key_of(vec4 x) {
  const uvec4 magnitude = floatBitsToUint(x) & 0x7fffffffu;
  const ivec4 sign = floatBitsToInt(x) >> 31;
  ivec4 key = (ivec4(magnitude) ^ sign) - sign;
#if TUFF_KEY_MINIMUM
  key = -key;
#endif
  return State4(mix(key, ivec4(0x7fffffff), greaterThan(magnitude, uvec4(0x7f800000u))), uvec4(0u), uvec4(0u));
}
#elif TUFF_VALUE_TYPE == 4
State4 key_of(dvec4 x) {
  State4 s = empty_state();
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const uvec2 words = unpackDouble2x32(x[i]);
    const uint magnitude = words.y & 0x7fffffffu;
    uvec2 key = uvec2(words.x, magnitude);
    bool negative = (words.y & 0x80000000u) != 0u;
#if TUFF_KEY_MINIMUM
    negative = !negative;
#endif
    if (negative) {
      key = ~key;  // -1 - the magnitude; then + 1
      key.x += 1u;
      key.y += uint(key.x == 0u);
    }
    if ((magnitude | uint(words.x != 0u)) > 0x7ff00000u) key = uvec2(0xffffffffu, 0x7fffffffu);
    s.a[i] = int(key.y), s.b[i] = key.x;
  }
  return s;
}
#elif TUFF_VALUE_TYPE == 9 || TUFF_VALUE_TYPE == 10
State4 key_of(TUFF_VALUE4 x) {
  State4 s = empty_state();
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    uvec2 key = unpackUint2x32(uint64_t(x[i]));
#if TUFF_VALUE_TYPE == 10
    key.y ^= 0x80000000u;
#endif
#if TUFF_KEY_MINIMUM
    key = ~key;
#endif
    s.a[i] = int(key.y), s.b[i] = key.x;
  }
  return s;
}
#else
State4 key_of(TUFF_VALUE4 x) {
  ivec4 key = ivec4(x);
#if TUFF_VALUE_TYPE == 6
  key ^= ivec4(-0x7fffffff - 1);
#endif
#if TUFF_KEY_MINIMUM
  key = ~key;
#endif
  return State4(key, uvec4(0u), uvec4(0u));
}
#endif
struct Placed {
  TUFF_VALUE4 x;
  uvec4 place;
};
State4 state_of(Placed e) {
  State4 s = key_of(e.x);
  s.c = e.place;
  return s;
}
void merge(inout State4 s, State4 t) {
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const bool first = s.a[i] > t.a[i] || (s.a[i] == t.a[i] && (s.b[i] > t.b[i] || (s.b[i] == t.b[i] && s.c[i] < t.c[i])));
    s.a[i] = first ? s.a[i] : t.a[i];
    s.b[i] = first ? s.b[i] : t.b[i];
    s.c[i] = first ? s.c[i] : t.c[i];
  }
}

#elif TUFF_STATE == 3
State4 empty_state() { return State4(TUFF_VALUE4(TUFF_LOWEST), TUFF_VALUE4(TUFF_ZERO), TUFF_VALUE4(TUFF_ZERO)); }
// 0 of equal infinities too.
TUFF_VALUE4 distance_of(TUFF_VALUE4 x, TUFF_VALUE4 y) { return mix(x - y, TUFF_VALUE4(TUFF_ZERO), equal(x, y)); }
State4 state_of(TUFF_VALUE4 x) { return State4(x, TUFF_VALUE4(TUFF_ONE), TUFF_VALUE4(TUFF_ZERO)); }
// A NaN is never the largest element; the sum is NaN then.
void gather(inout State4 s, TUFF_VALUE4 x) {
  const bvec4 larger = greaterThan(x, s.a);
  const TUFF_VALUE4 power = tuff_exp(-abs(distance_of(x, s.a)));
  s.b = mix(s.b + power, s.b * power + TUFF_VALUE4(TUFF_ONE), larger);
  s.a = mix(s.a, x, larger);
}
void merge(inout State4 s, State4 t) {
  const TUFF_VALUE4 largest = mix(s.a, t.a, greaterThan(t.a, s.a));
  s.b = s.b * tuff_exp(distance_of(s.a, largest)) + t.b * tuff_exp(distance_of(t.a, largest));
  s.a = largest;
}
#endif

State combine(State s, State t) {
  State4 both = state4(s);
  merge(both, state4(t));
  return state_at(both, 0);
}
State combine_four(State4 s) {
  State4 other = State4(s.a.zwxy, s.b.zwxy, s.c.zwxy);
  merge(s, other);
  other = State4(s.a.yxwz, s.b.yxwz, s.c.yxwz);
  merge(s, other);
  return state_at(s, 0);
}
