// Shared by reduce_rows.comp and reduce_columns.comp: how the values of one reduction are accumulated. The reductions
// are in reduce.def; value types, TUFF_ADD etc. are in kernels/common/types.glsl.
//# TUFF_FINISH : 0..4 : 0: the result is what is accumulated; 1: divided by push.divisor; 2: its square root; 3: both; 4: its logarithm plus the center
//# TUFF_MERGES = 0 : 0|1 : 1: the elements are partial results of more than one value (TUFF_STATE, states.glsl)
//# TUFF_SPLIT : 0..2 : 1: sums of integers of 32 bits or less as integers of 64 are accumulated in two of 32; 2: maxima and minima of 16-bit floats by their bits, see Chain
//
// A Partial is a block of running results. Comparisons drop NaN, so max and min also keep the largest magnitude bits
// they have seen: beyond those of infinity, there was a NaN.
#include "kernels/common/order.glsl"
#include "kernels/reduce/reduce.def"
#define TUFF_KEEPS_NAN (TUFF_SELECTS && TUFF_HAS_NAN)
#include "kernels/common/bits.glsl"
#ifndef EXPR_REDUCES
#define EXPR_REDUCES 0
#endif
#if TUFF_VALUE_TYPE == 4 && !EXPR_REDUCES && (TUFF_PREPARE == 5 || TUFF_FINISH == 4)
#include "kernels/elementwise/doubles/exponentials.glsl"
#include "kernels/elementwise/doubles/logarithms.glsl"
#endif

// ---- What is accumulated: a function of each element, and of a center that an earlier reduction has computed.
#if TUFF_VALUE_TYPE == 6 || TUFF_VALUE_TYPE == 10
#define TUFF_ABS(x) (x)
#else
#define TUFF_ABS(x) abs(x)
#endif
#if TUFF_STATE != 0
#include "kernels/reduce/states.glsl"
#endif
#if TUFF_PREPARE >= 2
TUFF_VALUE4 prepared(TUFF_VALUE4 x, TUFF_VALUE4 center) {
#if TUFF_PREPARE == 2
  return TUFF_ABS(x);
#elif TUFF_PREPARE == 3
  return x * x;
#elif TUFF_PREPARE == 4
  return x - center;
#else
  return tuff_exp(x - center);
#endif
}
TuffBlock prepared(TuffBlock x, TuffBlock center) {
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) x.part[i] = prepared(x.part[i], center.part[i]);
  return x;
}
#define TUFF_PREPARED(x, center) prepared(x, center)
#else
#define TUFF_PREPARED(x, center) (x)
#endif

#if TUFF_CENTERED
// An infinite maximum is no center: e^x of the other elements is then 0 or infinite whatever the center.
TUFF_VALUE center_at(TUFF_INDEX i) {
  const TUFF_VALUE center = TUFF_AT(Center, i);
#if TUFF_PREPARE == 5 || TUFF_FINISH == 4
  return tuff_magnitude(TUFF_VALUE4(center)).x == TUFF_INFINITE_BITS ? TUFF_ZERO : center;
#else
  return center;
#endif
}
#endif

#if TUFF_STATE != 0
struct Partial {
  State4 part[TUFF_PARTS];
};
Partial empty_partial() {
  Partial p;
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) p.part[i] = empty_state();
  return p;
}
// s in the first place, nothing in the others.
Partial single_partial(State4 s) {
  Partial p = empty_partial();
  p.part[0].a.x = s.a.x, p.part[0].b.x = s.b.x, p.part[0].c.x = s.c.x;
  return p;
}
void merge(inout Partial p, Partial q) {
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) merge(p.part[i], q.part[i]);
}
void gather(inout Partial p, Partial q) { merge(p, q); }
#if TUFF_STATE == 1
void gather(inout Partial p, TuffBlock x) {
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) gather(p.part[i], x.part[i]);
}
Partial partial_of(TuffBlock a, TuffBlock b, TuffBlock c) {
  Partial p;
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) p.part[i] = State4(a.part[i], b.part[i], c.part[i]);
  return p;
}
TuffBlock finish(Partial p) {
  TuffBlock block;
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) block.part[i] = p.part[i].b;
  return block;
}
#elif TUFF_STATE == 2
void gather(inout Partial p, Placed x) { merge(p.part[0], state_of(x)); }
#elif TUFF_STATE == 3
void gather(inout Partial p, TuffBlock x) { gather(p.part[0], x.part[0]); }
#endif
#define TUFF_RESULT State
State result_of(Partial p) {
  [[unroll]] for (uint i = 1; i < TUFF_PARTS; ++i) merge(p.part[0], p.part[i]);
  return combine_four(p.part[0]);
}
#define TUFF_RESULT_XOR(result, mask) shuffled(result, mask)
#define TUFF_RESULT_VALUE(result) result.b
#else
struct Partial {
  TUFF_VALUE4 value[TUFF_PARTS];
#if TUFF_KEEPS_NAN
  uvec4 magnitude[TUFF_PARTS];
#endif
};

Partial empty_partial() {
  Partial p;
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) {
    p.value[i] = TUFF_VALUE4(TUFF_IDENTITY);
#if TUFF_KEEPS_NAN
    p.magnitude[i] = uvec4(0);
#endif
  }
  return p;
}

void gather(inout Partial p, TuffBlock x) {
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) {
    p.value[i] = TUFF_COMBINE(p.value[i], x.part[i]);
#if TUFF_KEEPS_NAN
    p.magnitude[i] = max(p.magnitude[i], tuff_magnitude(x.part[i]));
#endif
  }
}

void merge(inout Partial p, Partial q) {
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) {
    p.value[i] = TUFF_COMBINE(p.value[i], q.value[i]);
#if TUFF_KEEPS_NAN
    p.magnitude[i] = max(p.magnitude[i], q.magnitude[i]);
#endif
  }
}

#endif

// What a chain accumulates, of at most 2^15 blocks. Drivers for GPUs that add 64 bits in two steps make slow loops of such sums, so
// they are added as the lower and the upper 16 bits of each element instead.
#if TUFF_SPLIT == 1
#if TUFF_X_TYPE == TUFF_U32
#define TUFF_HALF4 uvec4
#define TUFF_HALF uint
#else
#define TUFF_HALF4 ivec4
#define TUFF_HALF int
#endif
struct Loaded {
  TUFF_HALF4 part[TUFF_PARTS];
};
struct Chain {
  uvec4 low[TUFF_PARTS];
  TUFF_HALF4 high[TUFF_PARTS];
};
Chain empty_chain() {
  Chain c;
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) c.low[i] = uvec4(0), c.high[i] = TUFF_HALF4(0);
  return c;
}
void gather(inout Chain c, Loaded x) {
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) {
    c.low[i] += uvec4(x.part[i]) & 0xffffu;
    c.high[i] += x.part[i] >> 16;
  }
}
void merge(inout Chain c, Chain d) {
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) c.low[i] += d.low[i], c.high[i] += d.high[i];
}
void merge(inout Partial p, Chain c) {
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) {
    p.value[i] += (TUFF_VALUE4(c.high[i]) << 16) + TUFF_VALUE4(c.low[i]);
  }
}
void gather(inout Partial p, Loaded x) {
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) p.value[i] += TUFF_VALUE4(x.part[i]);
}
#undef TUFF_CONVERT
#undef TUFF_CONVERT4
#define TUFF_CONVERT(x) TUFF_HALF(x)
#define TUFF_CONVERT4(x) TUFF_HALF4(x)
Loaded load_block(TUFF_INDEX i) {
  Loaded block;
  TUFF_BLOCK_LOAD(X, TUFF_X_TYPE)
  return block;
}
#undef TUFF_CONVERT
#undef TUFF_CONVERT4
#elif TUFF_SPLIT == 2
// Blocks of eight 16-bit floats as four words. An element of the upper half of a word is that word, and one of the lower half
// the word shifted: what is below does not matter. Among numbers of one sign the magnitude decides. So the largest number
// is the largest one as a signed integer unless that is negative, and then the smallest one as an unsigned integer; the
// smallest number is the largest one as an unsigned integer if that has a sign, otherwise the smallest. That takes two
// operations for each element, and half an addition finds NaN: f32 would take eight.
struct Loaded {
  uvec4 words;
};
struct Chain {
  uvec4 most[2], least[2];  // of the lower and the upper halves
  uvec4 nan;                // bits 15 and 31 of each word: there was a NaN
};
Chain empty_chain() {
  Chain c;
#if TUFF_OP == 2
  c.most[0] = c.most[1] = uvec4(0x80000000u);
#else
  c.most[0] = c.most[1] = uvec4(0u);
#endif
  c.least[0] = c.least[1] = uvec4(0xffffffffu);
  c.nan = uvec4(0u);
  return c;
}
uvec4 most_of(uvec4 a, uvec4 b) {
#if TUFF_OP == 2
  return uvec4(max(ivec4(a), ivec4(b)));
#else
  return max(a, b);
#endif
}
void gather(inout Chain c, Loaded x) {
  const uvec4 lower = x.words << 16;
  c.most[0] = most_of(c.most[0], lower), c.most[1] = most_of(c.most[1], x.words);
  c.least[0] = min(c.least[0], lower), c.least[1] = min(c.least[1], x.words);
#if TUFF_X_TYPE == TUFF_F16
  c.nan |= (x.words & 0x7fff7fffu) + 0x03ff03ffu;
#else
  c.nan |= (x.words & 0x7fff7fffu) + 0x007f007fu;
#endif
}
void merge(inout Chain c, Chain d) {
  [[unroll]] for (uint i = 0; i < 2; ++i) c.most[i] = most_of(c.most[i], d.most[i]), c.least[i] = min(c.least[i], d.least[i]);
  c.nan |= d.nan;
}
// The results of one half: of a chain that has gathered something.
vec4 half_of(uvec4 most, uvec4 least) {
#if TUFF_OP == 2
  const uvec4 bits = mix(least, most, lessThan(most, uvec4(0x80000000u)));
#else
  const uvec4 bits = mix(least, most, greaterThanEqual(most, uvec4(0x80000000u)));
#endif
#if TUFF_X_TYPE == TUFF_F16
  const uvec4 upper = bits >> 16;
  return vec4(unpackHalf2x16(upper.x).x, unpackHalf2x16(upper.y).x, unpackHalf2x16(upper.z).x, unpackHalf2x16(upper.w).x);
#else
  return uintBitsToFloat(bits & 0xffff0000u);
#endif
}
void merge(inout Partial p, Chain c) {
  const vec4 lower = half_of(c.most[0], c.least[0]), upper = half_of(c.most[1], c.least[1]);
  // Magnitudes beyond infinity's stand for NaN.
  const uvec4 nan_lower = mix(uvec4(0u), uvec4(0x7fffffffu), notEqual(c.nan & 0x8000u, uvec4(0u)));
  const uvec4 nan_upper = mix(uvec4(0u), uvec4(0x7fffffffu), notEqual(c.nan & 0x80000000u, uvec4(0u)));
  Partial q;
  q.value[0] = vec4(lower.x, upper.x, lower.y, upper.y);
  q.value[1] = vec4(lower.z, upper.z, lower.w, upper.w);
  q.magnitude[0] = uvec4(nan_lower.x, nan_upper.x, nan_lower.y, nan_upper.y);
  q.magnitude[1] = uvec4(nan_lower.z, nan_upper.z, nan_lower.w, nan_upper.w);
  merge(p, q);
}
void gather(inout Partial p, Loaded x) {
  Chain c = empty_chain();
  gather(c, x);
  merge(p, c);
}
Loaded load_block(TUFF_INDEX i) { return Loaded(tuff_words(TUFF_AT(X_memory, i))); }
#else
#if TUFF_MERGES
#define Loaded Partial
#elif TUFF_STATE == 2
#define Loaded Placed
#else
#define Loaded TuffBlock
#endif
#define Chain Partial
#define empty_chain empty_partial
#endif

#if TUFF_STATE == 0
TuffBlock finish(Partial p) {
  TuffBlock block;
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) {
#if TUFF_KEEPS_NAN
    block.part[i] = mix(p.value[i], TUFF_VALUE4(TUFF_VALUE_NAN), greaterThan(p.magnitude[i], uvec4(TUFF_INFINITE_BITS)));
#else
    block.part[i] = p.value[i];
#endif
  }
  return block;
}

// Combines two finished results. NaN wins.
TUFF_VALUE combine(TUFF_VALUE a, TUFF_VALUE b) {
#if TUFF_KEEPS_NAN
  TUFF_VALUE c = TUFF_COMBINE(TUFF_VALUE2(a), TUFF_VALUE2(b)).x;
  return tuff_isnan(a) ? a : tuff_isnan(b) ? b : c;
#elif TUFF_SELECTS
  return TUFF_COMBINE(TUFF_VALUE2(a), TUFF_VALUE2(b)).x;
#else
  return TUFF_COMBINE(a, b);
#endif
}

TUFF_VALUE combine4(TUFF_VALUE4 v) { return combine(combine(v.x, v.y), combine(v.z, v.w)); }
TUFF_VALUE combine_block(TuffBlock block) {
  TUFF_VALUE result = combine4(block.part[0]);
  [[unroll]] for (uint i = 1; i < TUFF_PARTS; ++i) result = combine(result, combine4(block.part[i]));
  return result;
}
#define TUFF_RESULT TUFF_VALUE
#define result_of(total) combine_block(finish(total))
#define TUFF_RESULT_XOR(result, mask) TUFF_SHUFFLE_XOR(result, mask)
#define TUFF_RESULT_VALUE(result) result
#endif

// The result, of what is accumulated.
#if TUFF_FINISH == 0
TUFF_VALUE4 scaled(TUFF_VALUE4 v, TUFF_VALUE4 center) { return v; }
#elif TUFF_FINISH == 4
TUFF_VALUE4 scaled(TUFF_VALUE4 v, TUFF_VALUE4 center) { return tuff_log(v) + center; }
#elif TUFF_FINISH == 2
TUFF_VALUE4 scaled(TUFF_VALUE4 v, TUFF_VALUE4 center) { return tuff_sqrt(v); }
#else
TUFF_VALUE4 scaled(TUFF_VALUE4 v, TUFF_VALUE4 center) {
#if TUFF_VALUE_TYPE == 4
  const double divisor = packDouble2x32(uvec2(push.divisor_low, push.divisor_high));
#else
  const float divisor = push.divisor;
#endif
  const TUFF_VALUE4 no_elements = mix(TUFF_VALUE4(TUFF_VALUE_NAN), TUFF_VALUE4(TUFF_INFINITY), greaterThan(v, TUFF_VALUE4(0.0)));
  v = divisor == 0.0 ? no_elements : tuff_divide(v, TUFF_VALUE4(divisor));
#if TUFF_FINISH == 3
  v = tuff_sqrt(v);
#endif
  return v;
}
#endif
TuffBlock scaled(TuffBlock block, TuffBlock center) {
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) block.part[i] = scaled(block.part[i], center.part[i]);
  return block;
}

// Reduces LOAD(place), LOAD(place + stride), …, `count` of them, into total, and advances place past the last.
// TUFF_UNROLL independent chains are merged every 32 steps, which takes 32 + count / (32 TUFF_UNROLL) + 2 TUFF_UNROLL
// serial additions. `count` should visibly (to the compiler) be the same for all lanes, because a CPU driver runs loops
// in which lanes may differ several times slower. place is advanced by additions, not multiplied.
#define TUFF_GATHER(total, count, place, stride, LOAD)                                                   \
  {                                                                                                      \
    uint full = (count) / TUFF_UNROLL;                                                                   \
    uint single = (count) - full * TUFF_UNROLL;                                                          \
    while (full > 0) {                                                                                   \
      uint steps = min(full, 32u);                                                                       \
      Chain chain[TUFF_UNROLL];                                                                          \
      [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) chain[u] = empty_chain();                        \
      for (uint step = 0; step < steps; ++step) {                                                        \
        Loaded x[TUFF_UNROLL];                                                                           \
        [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) x[u] = LOAD(place + u * (stride));             \
        [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) gather(chain[u], x[u]);                        \
        place += TUFF_UNROLL * (stride);                                                                 \
      }                                                                                                  \
      [[unroll]] for (uint width = TUFF_UNROLL / 2; width > 0; width /= 2) {                             \
        [[unroll]] for (uint u = 0; u < width; ++u) merge(chain[u], chain[u + width]);                   \
      }                                                                                                  \
      merge(total, chain[0]);                                                                            \
      full -= steps;                                                                                     \
    }                                                                                                    \
    for (; single > 0; --single, place += (stride)) gather(total, LOAD(place));                          \
  }
