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

shared TUFF_VALUE block[BLOCK * PITCH];

#define PLACE(i) TUFF_INDEX(TUFF_REVERSE != 0 ? n - 1 - (i) : (i))

void main() {
  const uint group = tuff_group(), matrix = group / push.groups, thread = gl_LocalInvocationID.x;
  if (matrix >= push.matrices) return;
  const uint n = push.n, threads = gl_WorkGroupSize.x;
  const uint across = min(threads, BLOCK), x = thread % across, y = thread / across, down = threads / across;
  const TUFF_INDEX t = TUFF_INDEX(matrix) * push.t_stride;
  for (uint i = y; i < n; i += down) {
    for (uint k = x; k < i + (1 - TUFF_ONES); k += across) {
      block[i * PITCH + k] = TUFF_AT(T, t + PLACE(i) * push.t_row + PLACE(k) * push.t_column);
    }
  }
  barrier();
  const uint column = (group - matrix * push.groups) * threads + thread;
  if (column >= push.columns) return;
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.x_stride + column * push.x_column, x_row = push.x_row;
  for (uint i = 0; i < n; ++i) {
    TUFF_VALUE value = TUFF_AT(X, base + PLACE(i) * x_row);
    for (uint k = 0; k < i; ++k) value -= block[i * PITCH + k] * TUFF_AT(X, base + PLACE(k) * x_row);
#if !TUFF_ONES
    value = divide(value, block[i * PITCH + i]);
#endif
    TUFF_AT(X, base + PLACE(i) * x_row) = value;
  }
}
