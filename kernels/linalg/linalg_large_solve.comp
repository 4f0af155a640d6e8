// Solves T * X = B with a triangle T for each matrix of a batch, as linalg_solve.comp, for larger triangles on GPUs. X
// overwrites B. The first invocations of a workgroup have a column of X each, in registers, from row k on: it moves by one
// place in each step, so that no index of a register depends on k. All of them bring T to shared memory, SPAN columns at a
// time:
//
//   T | t                x(k) = b(k) / t(k, k), then b(i) -= t(i, k) * x(k) for i > k
//     | t t
//     | t t t            with TUFF_REVERSE rows and columns of T and rows of X are counted from their ends, which makes
//                        an upper triangle a lower one
//
//# TUFF_EXTENT : 64|128 : the largest extent of T
//# TUFF_ONES : 0|1 : 1: T has ones on its diagonal, which is not read
//# TUFF_REVERSE : 0|1 : 1: T is an upper triangle
#include "kernels/linalg/linalg.glsl"
#include "kernels/common/times.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  TUFF_INDEX t_row, t_column, t_stride;
  TUFF_INDEX x_row, x_column, x_stride;
  uint n;         // extent of T
  uint columns;   // of X
  uint across;    // columns of a workgroup
  uint groups;    // workgroups for each matrix
  uint matrices;
} push;

TUFF_READ(0, T, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ_WRITE(1, X, TUFF_VALUE, TUFF_VALUE_BYTES)

const uint EXTENT = TUFF_EXTENT, SPAN = 2 * BLOCK;
// Elements of the columns' parts below the diagonal: EXTENT for each of the first BLOCK columns, BLOCK fewer for the
// others, of which the last ones are zeros.
//# constant HELD_ELEMENTS : the elements of T in shared memory
const uint HELD_ELEMENTS = EXTENT * BLOCK + (EXTENT - BLOCK) * BLOCK;
shared TUFF_VALUE4 block[HELD_ELEMENTS / 4];
const uint TOGETHER = 8;  // elements of T that an invocation loads at once; BLOCK * BLOCK is a multiple of a workgroup's
shared TUFF_VALUE diagonal[EXTENT], inverses[EXTENT];

#define PLACE(i) TUFF_INDEX(TUFF_REVERSE != 0 ? n - 1 - (i) : (i))

// Brings BLOCK columns of T from column `left` on to `first` in shared memory. Neighbouring invocations read neighbouring
// elements, of which several are under way at once.
void load_columns(TUFF_INDEX t, uint left, uint first) {
  const uint n = push.n, thread = gl_LocalInvocationID.x, threads = gl_WorkGroupSize.x, length = EXTENT - left;
  const bool along = push.t_column == TUFF_INDEX(1);
  for (uint begin = thread; begin < BLOCK * length; begin += TOGETHER * threads) {
    TUFF_VALUE values[TOGETHER];
    uint places[TOGETHER];
    [[unroll]] for (uint l = 0; l < TOGETHER; ++l) {
      // Along rows of T, the columns' places are those of one row, and begin anew at their ends.
      const uint e = begin + l * threads, column = along ? e % BLOCK : e / length, k = left + column;
      const uint turned = along ? e / BLOCK + length - column : e % length;
      const uint place = turned >= length ? turned - length : turned, row = k + 1 + place;
      places[l] = first + column * length + place;
      values[l] = TUFF_ZERO;
      if (row < n) values[l] = TUFF_AT(T, t + PLACE(row) * push.t_row + PLACE(k) * push.t_column);
    }
    [[unroll]] for (uint l = 0; l < TOGETHER; ++l) block[places[l] / 4][places[l] % 4] = values[l];
  }
}

// Macros, because every index of `held` has to be known when the kernel is compiled.
#define LENGTH(left) (EXTENT - (left))
#if TUFF_ONES
#define FIRST_OF_X(k) held[0]
#else
#define FIRST_OF_X(k) quotient(held[0], diagonal[k], inverses[k])
#endif
#define FETCH(i) \
  held[i] = TUFF_ZERO; \
  if (exists && (i) < n) held[i] = TUFF_AT(X, base + PLACE(i) * x_row);
// SPAN columns of T from column `left` on.
#define LOAD(left) \
  if (left < n) { \
    barrier(); /* the columns before have been used */ \
    load_columns(t, left, 0); \
    load_columns(t, left + BLOCK, BLOCK * LENGTH(left)); \
    barrier(); \
  }
// The steps of BLOCK columns from column `left` on.
#define UPDATE(q) \
  { \
    const TUFF_VALUE4 quad = block[begin + (q)]; \
    held[4 * (q)] = held[4 * (q) + 1] - quad.x * value; \
    held[4 * (q) + 1] = held[4 * (q) + 2] - quad.y * value; \
    held[4 * (q) + 2] = held[4 * (q) + 3] - quad.z * value; \
    held[4 * (q) + 3] = held[(4 * (q) + 4) % TUFF_EXTENT] - quad.w * value; /* the last one is not used */ \
  }
#define STEPS(left, quads) \
  if (exists) { \
    const uint first = (left) % SPAN == 0 ? 0 : BLOCK * (LENGTH(left) + BLOCK); \
    for (uint k = left; k < min(n, left + BLOCK); ++k) { \
      const TUFF_VALUE value = FIRST_OF_X(k); \
      TUFF_AT(X, base + PLACE(k) * x_row) = value; \
      const uint begin = (first + (k - left) * LENGTH(left)) / 4; \
      TUFF_PASTE(TUFF_TIMES_, quads)(UPDATE, 0) \
    } \
  }

void main() {
  const uint group = tuff_group(), matrix = group / push.groups, thread = gl_LocalInvocationID.x;
  if (matrix >= push.matrices) return;
  const uint n = push.n, threads = gl_WorkGroupSize.x;
  const uint column = (group - matrix * push.groups) * push.across + thread;
  const bool exists = thread < push.across && column < push.columns;
  const TUFF_INDEX t = TUFF_INDEX(matrix) * push.t_stride;
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.x_stride + column * push.x_column, x_row = push.x_row;
#if !TUFF_ONES
  for (uint k = thread; k < n; k += threads) {
    const TUFF_VALUE number = TUFF_AT(T, t + PLACE(k) * (push.t_row + push.t_column));
    diagonal[k] = number;
    inverses[k] = reciprocal(number);
  }
#endif
  TUFF_VALUE held[EXTENT];
  TUFF_PASTE(TUFF_TIMES_, TUFF_EXTENT)(FETCH, 0)
  LOAD(0u)
#if TUFF_EXTENT == 64
  STEPS(0u, 16)
  STEPS(32u, 8)
#else
  STEPS(0u, 32)
  STEPS(32u, 24)
  LOAD(64u)
  STEPS(64u, 16)
  STEPS(96u, 8)
#endif
}
