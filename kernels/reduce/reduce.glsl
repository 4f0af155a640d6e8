// Shared by reduce_rows.comp and reduce_columns.comp: how the values of one reduction are accumulated. The reductions
// are in reduce.def; value types, TUFF_ADD etc. are in kernels/common/types.glsl.
//# TUFF_FINISH : 0..4 : 0: the result is what is accumulated; 1: divided by push.divisor; 2: its square root; 3: both; 4: its logarithm plus the center
//# TUFF_SPLIT : 0|1 : 1: sums of integers of 32 bits or less as integers of 64 are accumulated in two of 32, see Chain
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
#if TUFF_PREPARE >= 2
TUFF_VALUE4 prepared(TUFF_VALUE4 x, TUFF_VALUE4 center) {
#if TUFF_PREPARE == 2
  return TUFF_ABS(x);
#elif TUFF_PREPARE == 3
  return x * x;
#elif TUFF_PREPARE == 4
  const TUFF_VALUE4 distance = x - center;
  return distance * distance;
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

// What a chain accumulates, of at most 2^15 blocks. Drivers for GPUs that add 64 bits in two steps make slow loops of such sums, so
// they are added as the lower and the upper 16 bits of each element instead.
#if TUFF_SPLIT
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
#else
#define Loaded TuffBlock
#define Chain Partial
#define empty_chain empty_partial
#endif

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
