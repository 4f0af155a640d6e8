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
#if TUFF_TYPE == 13
#define TUFF_VALUE_OF 6  // a bool is computed with as 0 or 1
#else
#define TUFF_VALUE_OF TUFF_TYPE
#endif
#include "kernels/common/types.glsl"
#include "kernels/common/bits.glsl"

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

#define LOADED(x) TUFF_VALUE(TUFF_NUMBER(TUFF_TYPE, TUFF_LOADED(TUFF_TYPE, x)))
#define ROUNDED(x) TUFF_ROUNDED(TUFF_TYPE, TUFF_OF_VALUE(TUFF_TYPE, x))

TUFF_READ(0, K, uint, 4)
TUFF_READ(1, P, uint, 4)
#if TUFF_LEAF
TUFF_READ(2, U, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
#else
TUFF_READ(2, V, TUFF_VALUE, TUFF_VALUE_BYTES)
#endif
TUFF_READ_WRITE(3, Y, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(4, K2, uint, 4)
TUFF_WRITE(5, V2, TUFF_VALUE, TUFF_VALUE_BYTES)

#if TUFF_HAS_NAN
bool is_nan(TUFF_VALUE x) { return tuff_isnan(x); }
#else
bool is_nan(TUFF_VALUE x) { return false; }
#endif
#if TUFF_VALUE_TYPE == 1
// As integers, so that devices that flush denormals order them too, and -0 is below 0.
int order(float x) {
  const int bits = floatBitsToInt(x);
  return bits ^ (bits >> 31 & 0x7fffffff);
}
#define BEFORE(a, b) (order(a) < order(b))
#else
#define BEFORE(a, b) ((a) < (b))
#endif

#if TUFF_OP == 2
#define IDENTITY (-TUFF_ZERO)  // of floats: -0, to which adding changes nothing
TUFF_VALUE combined(TUFF_VALUE a, TUFF_VALUE b) { return a + b; }
#elif TUFF_OP == 3
#define IDENTITY TUFF_ONE
TUFF_VALUE combined(TUFF_VALUE a, TUFF_VALUE b) { return a * b; }
#elif TUFF_OP == 4
#define IDENTITY TUFF_LOWEST
TUFF_VALUE combined(TUFF_VALUE a, TUFF_VALUE b) { return !is_nan(a) && (is_nan(b) || BEFORE(a, b)) ? b : a; }
#else
#define IDENTITY TUFF_HIGHEST
TUFF_VALUE combined(TUFF_VALUE a, TUFF_VALUE b) { return !is_nan(a) && (is_nan(b) || BEFORE(b, a)) ? b : a; }
#endif

#include "kernels/common/joined.glsl"

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
    TUFF_VALUE run = ENTRY(e);
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
