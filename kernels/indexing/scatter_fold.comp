// Combines entries that are sorted by place, each a row of `columns` values. A lane has one column of one chunk of
// consecutive entries. Runs of equal places inside a chunk are complete: their result is combined into the output. The
// first and the last run of a chunk may go on in others, and become two entries of a shorter list, which the next
// dispatch folds in the same way. The last dispatch has one chunk, in which all runs are complete.
//
//   places   a a b | b c d d | d e e f        three chunks
//   next     a   b | b       d | d       f    c and e are complete
//
//# TUFF_TYPE : 1..13 : element type, as in tuff.h
//# TUFF_OP : 2..5 : TUFF_SCATTER_* of tuff.h
//# TUFF_LEAF : 0|1 : 1: the entries are updates, in the order of P; 0: a list
//# TUFF_LAST : 0|1 : 1: there is one chunk
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(6)
  uint n, chunk;       // entries
  uint lanes;          // chunks * columns
  uint columns;
  uint none;           // the place of an index out of range
  uint first, first_high;  // the column of the first lane
  uint inner;          // columns of one outer index
  uint from_stride, from_stride_high, to_stride, to_stride_high;  // of updates and output, from one outer index to the next
} push;

#if TUFF_TYPE == 9 || TUFF_TYPE == 10
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#if TUFF_TYPE <= 3
#define VALUE float
#define BYTES 4
#define LOWEST (-TUFF_INFINITY)
#define HIGHEST TUFF_INFINITY
#define NEGATIVE_ZERO uintBitsToFloat(0x80000000u)
#elif TUFF_TYPE == 4
#define VALUE double
#define BYTES 8
#define LOWEST packDouble2x32(uvec2(0u, 0xfff00000u))
#define HIGHEST packDouble2x32(uvec2(0u, 0x7ff00000u))
#define NEGATIVE_ZERO packDouble2x32(uvec2(0u, 0x80000000u))
#elif TUFF_TYPE == 9
#define VALUE int64_t
#define BYTES 8
#define LOWEST (int64_t(1) << 63)
#define HIGHEST (~(int64_t(1) << 63))
#elif TUFF_TYPE == 10
#define VALUE uint64_t
#define BYTES 8
#define LOWEST uint64_t(0)
#define HIGHEST (~uint64_t(0))
#elif TUFF_TYPE == 5 || TUFF_TYPE == 7 || TUFF_TYPE == 11
#define VALUE int
#define BYTES 4
#define LOWEST (-0x7fffffff - 1)
#define HIGHEST 0x7fffffff
#else
#define VALUE uint
#define BYTES 4
#define LOWEST 0u
#define HIGHEST 0xffffffffu
#endif
#if TUFF_TYPE == 9 || TUFF_TYPE == 10
#define LOADED(x) VALUE(packUint2x32(x))
#define ROUNDED(x) unpackUint2x32(uint64_t(x))
#else
#define LOADED(x) VALUE(TUFF_LOADED(TUFF_TYPE, x))
#define ROUNDED(x) TUFF_ROUNDED(TUFF_TYPE, x)
#endif

TUFF_READ(0, K, uint, 4)
TUFF_READ(1, P, uint, 4)
#if TUFF_LEAF
TUFF_READ(2, U, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
#else
TUFF_READ(2, V, VALUE, BYTES)
#endif
TUFF_READ_WRITE(3, Y, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(4, K2, uint, 4)
TUFF_WRITE(5, V2, VALUE, BYTES)

#if TUFF_TYPE == 4
bool is_nan(VALUE x) {
  const uvec2 words = unpackDouble2x32(x);
  return (words.y & 0x7fffffffu) + uint(words.x != 0u) > 0x7ff00000u;
}
#define BEFORE(a, b) ((a) < (b))
#elif TUFF_TYPE <= 3
bool is_nan(VALUE x) { return tuff_isnan(x); }
// As integers, so that devices that flush denormals order them too, and -0 is below 0.
int order(float x) {
  const int bits = floatBitsToInt(x);
  return bits ^ (bits >> 31 & 0x7fffffff);
}
#define BEFORE(a, b) (order(a) < order(b))
#else
bool is_nan(VALUE x) { return false; }
#define BEFORE(a, b) ((a) < (b))
#endif

#if TUFF_OP == 2
#ifdef NEGATIVE_ZERO
#define IDENTITY NEGATIVE_ZERO
#else
#define IDENTITY VALUE(0)
#endif
VALUE combined(VALUE a, VALUE b) { return a + b; }
#elif TUFF_OP == 3
#define IDENTITY VALUE(1)
VALUE combined(VALUE a, VALUE b) { return a * b; }
#elif TUFF_OP == 4
#define IDENTITY LOWEST
VALUE combined(VALUE a, VALUE b) { return !is_nan(a) && (is_nan(b) || BEFORE(a, b)) ? b : a; }
#else
#define IDENTITY HIGHEST
VALUE combined(VALUE a, VALUE b) { return !is_nan(a) && (is_nan(b) || BEFORE(b, a)) ? b : a; }
#endif

#if TUFF_WIDE
#define JOINED(name) (uint64_t(push.name##_high) << 32 | uint64_t(push.name))
#else
#define JOINED(name) push.name
#endif

void main() {
  const uint t = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (t >= push.lanes) return;
  const uint chunk = t / push.columns, x = t - chunk * push.columns;
  const TUFF_INDEX column = JOINED(first) + x, outer = column / push.inner, i = column - outer * push.inner;
#if TUFF_LEAF
  const TUFF_INDEX from = outer * JOINED(from_stride) + i;
#define ENTRY(e) LOADED(TUFF_AT(U, from + TUFF_INDEX(TUFF_AT(P, TUFF_INDEX(e))) * push.inner))
#else
#define ENTRY(e) TUFF_AT(V, TUFF_INDEX(e) * push.columns + x)
#endif
  const TUFF_INDEX to = outer * JOINED(to_stride) + i;
  const uint end = min((chunk + 1u) * push.chunk, push.n);
  uint e = chunk * push.chunk;
  bool head = true;
  while (e < end) {
    const uint key = TUFF_AT(K, TUFF_INDEX(e));
    VALUE run = ENTRY(e);
    for (++e; e < end && TUFF_AT(K, TUFF_INDEX(e)) == key; ++e) run = combined(run, ENTRY(e));
    bool complete = true;
#if !TUFF_LAST
    // Entries 2 chunk and 2 chunk + 1 of the next list. A chunk of a single run has an entry that changes nothing.
    complete = !head && e < end;
    if (!complete) {
      const uint place = 2u * chunk + uint(!head);
      if (x == 0u) TUFF_AT(K2, TUFF_INDEX(place)) = key;
      TUFF_AT(V2, TUFF_INDEX(place) * push.columns + x) = run;
      if (head && e >= end) {
        if (x == 0u) TUFF_AT(K2, TUFF_INDEX(place + 1u)) = key;
        TUFF_AT(V2, TUFF_INDEX(place + 1u) * push.columns + x) = IDENTITY;
      }
    }
#endif
    head = false;
    if (complete && key < push.none) {
      const TUFF_INDEX at = to + TUFF_INDEX(key) * push.inner;
      TUFF_AT(Y, at) = ROUNDED(combined(LOADED(TUFF_AT(Y, at)), run));
    }
  }
}
