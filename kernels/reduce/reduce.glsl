// Shared by reduce_rows.comp and reduce_columns.comp: how the values of one reduction are accumulated. The reductions
// are in reduce.def; value types, TUFF_ADD etc. are in kernels/common/types.glsl.
//# TUFF_MEAN : 0|1 : 1: the result is divided by push.divisor
//
// A Partial is a block of running results. Comparisons drop NaN, so max and min also keep the largest magnitude bits
// they have seen: beyond those of infinity, there was a NaN.
#include "kernels/common/order.glsl"
#include "kernels/reduce/reduce.def"
#define TUFF_KEEPS_NAN (TUFF_SELECTS && TUFF_HAS_NAN)

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
    p.magnitude[i] = max(p.magnitude[i], floatBitsToUint(x.part[i]) & 0x7fffffffu);
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

TuffBlock finish(Partial p) {
  TuffBlock block;
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) {
#if TUFF_KEEPS_NAN
    block.part[i] = mix(p.value[i], vec4(TUFF_NAN), greaterThan(p.magnitude[i], uvec4(0x7f800000u)));
#else
    block.part[i] = p.value[i];
#endif
  }
  return block;
}

// Combines two finished results. NaN wins.
TUFF_VALUE combine(TUFF_VALUE a, TUFF_VALUE b) {
#if TUFF_KEEPS_NAN
  float c = TUFF_COMBINE(vec2(a), vec2(b)).x;
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

#if TUFF_MEAN
vec4 scaled(vec4 v) { return push.divisor == 0.0 ? vec4(TUFF_NAN) : tuff_divide(v, vec4(push.divisor)); }
#else
TUFF_VALUE4 scaled(TUFF_VALUE4 v) { return v; }
#endif
TuffBlock scaled(TuffBlock block) {
  [[unroll]] for (uint i = 0; i < TUFF_PARTS; ++i) block.part[i] = scaled(block.part[i]);
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
      Partial chain[TUFF_UNROLL];                                                                        \
      [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) chain[u] = empty_partial();                      \
      for (uint step = 0; step < steps; ++step) {                                                        \
        TuffBlock x[TUFF_UNROLL];                                                                        \
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
