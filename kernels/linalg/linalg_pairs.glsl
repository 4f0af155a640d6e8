// Shared by the kernels of Jacobi's method: which columns are processed together. The columns are cut into parts of HALF
// columns; in each round of a sweep every part meets another one, and after all rounds every other part (a round-robin
// tournament, in which the last part keeps its place). Columns beyond the last one count as zero and are not stored.
#include "kernels/linalg/linalg.glsl"

//# constant HALF : columns of a part
const uint HALF = TUFF_TYPE == 1 ? 16 : 8;
const uint WHOLE = 2 * HALF, WHOLE_PITCH = WHOLE + 1;

// The two of `players`, an even number, that meet in game `game` of a round, the smaller one first.
uvec2 meeting(uint players, uint round, uint game) {
  const uint others = players - 1;
  const uint a = game == 0 ? others : (round + game) % others, b = game == 0 ? round : (round + others - game) % others;
  return uvec2(min(a, b), max(a, b));
}

// The column of a pair of parts that is its column c.
uint column_of(uvec2 parts, uint c) { return c < HALF ? parts.x * HALF + c : parts.y * HALF + c - HALF; }

// What is known about a matrix: slot STATE of each kernel has STATE_WORDS integers for each.
//# constant MOST_SWEEPS : the largest number of sweeps
const uint MOST_SWEEPS = 30;
const uint EXPONENT = 0;  // of the power of two that its elements were divided by
const uint BAD = 1;       // 1: an element is NaN or infinite
const uint COUNTS = 2;    // of each sweep: rotations that were needed
//# constant STATE_WORDS : integers for each matrix
const uint STATE_WORDS = COUNTS + MOST_SWEEPS;
