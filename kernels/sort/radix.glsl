// Shared by radix_count.comp and radix_move.comp: one pass of a radix sort, which moves the elements of each row to the
// order of one digit of their keys and keeps the order of those whose digits are equal. A row is cut into chunks:
//
//   radix_count   counts[row][digit][chunk], how often each digit occurs in each chunk
//   scan_rows     the running sums of a row's counts: where in the row the chunk's elements with that digit begin
//   radix_move    moves each element to its place
//
//# TUFF_LANES : 0..128 : 0: a workgroup shares a chunk; otherwise each invocation has a chunk and a column of counters of its own, and this is the size of workgroups
//# TUFF_BITS : 1..10 : bits of a digit
//# TUFF_WORDS : 0|1 : 1, with TUFF_LANES and elements of one byte: rows of adjacent elements begin at words, and so do chunks
#include "kernels/sort/sort.glsl"

const uint DIGITS = 1 << TUFF_BITS;

uint digit_of(KEY key, uint shift) {
#if TUFF_UNIT == 8
  return ((shift < 32u ? key.x : key.y) >> (shift & 31u)) & (DIGITS - 1u);
#else
  return (key >> shift) & (DIGITS - 1u);
#endif
}

#if TUFF_LANES
const uint UNROLL = 4;  // elements in flight
#if TUFF_BITS == 1
// One bit takes two counters, which are registers.
#define COUNTERS uint counter_0 = 0u, counter_1 = 0u
#define SET_COUNTER(d, value) if ((d) == 0u) counter_0 = value; else counter_1 = value
#define COUNTER(d) ((d) == 0u ? counter_0 : counter_1)
#define ADVANCE(d) counter_0 += 1u - (d), counter_1 += (d)
#else
shared uint counters[DIGITS * TUFF_LANES];  // columns, of which each belongs to one invocation
#define COUNTERS const uint column = gl_LocalInvocationID.x
#define SET_COUNTER(d, value) counters[(d) * TUFF_LANES + column] = value
#define COUNTER(d) counters[(d) * TUFF_LANES + column]
#define ADVANCE(d) ++counters[(d) * TUFF_LANES + column]
#endif
// UNROLL elements of a row from number i on, which is one of a word with TUFF_WORDS. A CPU's driver loads the lanes' elements
// one after another.
#if TUFF_WORDS
#define WORDS_AT(first) TUFF_POINTER(X4, words, (first) / 4)
#define LOAD(bits, i)                                                              \
  const uint word = TUFF_FROM(X4, words, TUFF_INDEX(i) / 4);                       \
  [[unroll]] for (uint u = 0; u < UNROLL; ++u) bits[u] = word >> (8u * u) & 0xffu
#else
#define WORDS_AT(first)
#define LOAD(bits, i) \
  [[unroll]] for (uint u = 0; u < UNROLL; ++u) bits[u] = HELD(TUFF_FROM(X, from, TUFF_INDEX((i) + u) * inner))
#endif
#endif
