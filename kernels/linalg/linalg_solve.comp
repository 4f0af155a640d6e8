// Solves T * X = B with a triangle T of at most BLOCK x BLOCK, for each matrix of a batch; X overwrites B. A workgroup
// keeps T in shared memory; each of its invocations has a column of X, which it computes by substitution:
//
//   T | t                x(i) = (b(i) - sum of t(i, k) * x(k) over k < i) / t(i, i)
//     | t t
//     | t t t            with TUFF_REVERSE rows and columns of T and rows of X are counted from their ends, which makes
//                        an upper triangle a lower one
//
// Strides of rows and columns are free, so that transposes need no other kernel.
//
//# TUFF_HELD : 0|1 : 1: an invocation keeps its column in registers
//# TUFF_ONES : 0|1 : 1: T has ones on its diagonal, which is not read
//# TUFF_REVERSE : 0|1 : 1: T is an upper triangle
#include "kernels/linalg/linalg.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  TUFF_INDEX t_row, t_column, t_stride;
  TUFF_INDEX x_row, x_column, x_stride;
  uint n;         // extent of T
  uint columns;   // of X
  uint groups;    // workgroups for each matrix
  uint matrices;
} push;

TUFF_READ(0, T, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ_WRITE(1, X, TUFF_VALUE, TUFF_VALUE_BYTES)

#if TUFF_HELD
shared TUFF_VALUE block[BLOCK * BLOCK];  // [k]: column k from below the diagonal, and then zeros
shared TUFF_VALUE diagonal[BLOCK];
#else
shared TUFF_VALUE block[BLOCK * PITCH];
#endif

#define PLACE(i) TUFF_INDEX(TUFF_REVERSE != 0 ? n - 1 - (i) : (i))

void main() {
  const uint group = tuff_group(), matrix = group / push.groups, thread = gl_LocalInvocationID.x;
  if (matrix >= push.matrices) return;
  const uint n = push.n, threads = gl_WorkGroupSize.x;
#if !TUFF_HELD
  const uint across = min(threads, BLOCK), x = thread % across, y = thread / across, down = threads / across;
#endif
  const TUFF_INDEX t = TUFF_INDEX(matrix) * push.t_stride;
#if TUFF_HELD
  for (uint i = thread; i < BLOCK * BLOCK; i += threads) {
    const uint k = i / BLOCK, row = k + 1 + i % BLOCK;
    block[i] = row < n ? TUFF_AT(T, t + PLACE(row) * push.t_row + PLACE(k) * push.t_column) : TUFF_ZERO;
  }
#if !TUFF_ONES
  for (uint k = thread; k < n; k += threads) diagonal[k] = TUFF_AT(T, t + PLACE(k) * (push.t_row + push.t_column));
#endif
#else
  for (uint i = y; i < n; i += down) {
    for (uint k = x; k < i + (1 - TUFF_ONES); k += across) {
      block[i * PITCH + k] = TUFF_AT(T, t + PLACE(i) * push.t_row + PLACE(k) * push.t_column);
    }
  }
#endif
  barrier();
  const uint column = (group - matrix * push.groups) * threads + thread;
  if (column >= push.columns) return;
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.x_stride + column * push.x_column, x_row = push.x_row;
#if TUFF_HELD
  // The column of X from row k on. It moves by one row in each step, so that no index of a register depends on k.
  TUFF_VALUE held[BLOCK];
  [[unroll]] for (uint i = 0; i < BLOCK; ++i) held[i] = i < n ? TUFF_AT(X, base + PLACE(i) * x_row) : TUFF_ZERO;
  for (uint k = 0; k < n; ++k) {
#if TUFF_ONES
    const TUFF_VALUE value = held[0];
#else
    const TUFF_VALUE value = divide(held[0], diagonal[k]);
#endif
    TUFF_AT(X, base + PLACE(k) * x_row) = value;
    [[unroll]] for (uint i = 1; i < BLOCK; ++i) held[i - 1] = held[i] - block[k * BLOCK + i - 1] * value;
  }
#else
  for (uint i = 0; i < n; ++i) {
    TUFF_VALUE value = TUFF_AT(X, base + PLACE(i) * x_row);
    for (uint k = 0; k < i; ++k) value -= block[i * PITCH + k] * TUFF_AT(X, base + PLACE(k) * x_row);
#if !TUFF_ONES
    value = divide(value, block[i * PITCH + i]);
#endif
    TUFF_AT(X, base + PLACE(i) * x_row) = value;
  }
#endif
}
