// Shared by radix_count.comp and radix_move.comp: one pass of a radix sort, which moves the elements of each row to the
// order of one digit of their keys and keeps the order of those whose digits are equal. A row is cut into chunks:
//
//   radix_count   counts[row][digit][chunk], how often each digit occurs in each chunk
//   scan_rows     the running sums of a row's counts: where in the row the chunk's elements with that digit begin
//   radix_move    moves each element to its place
//
//# TUFF_LANES : 0..128 : 0: a workgroup shares a chunk; otherwise each invocation has a chunk and a column of counters of its own, and this is the size of workgroups
//# TUFF_BITS : 1..10 : bits of a digit
#include "kernels/sort/sort.glsl"

const uint DIGITS = 1 << TUFF_BITS;

uint digit_of(KEY key, uint shift) {
#if TUFF_UNIT == 8
  return ((shift < 32u ? key.x : key.y) >> (shift & 31u)) & (DIGITS - 1u);
#else
  return (key >> shift) & (DIGITS - 1u);
#endif
}
