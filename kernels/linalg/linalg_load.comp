// Brings matrices into scratch memory for Jacobi's method, scaled by a power of two so that squares of elements neither
// overflow nor underflow, in four stages:
//
//   0  the largest magnitude of each row (a workgroup has a row)
//   1  the exponent of the scale from those of all rows (a workgroup has a matrix)
//   2  the scaled copy, and the sum of squares of each of its rows; a matrix with a NaN or an infinity becomes zero
//   3  the Frobenius norm, and no rotations yet
//
//# TUFF_STAGE : 0..3 : the stage
//# TUFF_TRIANGLES : 0..2 : 1: the matrices are symmetric, of which the lower triangle is read; 2: the upper one
#include "kernels/linalg/linalg_pairs.glsl"
#include "kernels/common/lanes.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  TUFF_INDEX a_row, a_column, a_stride;
  TUFF_INDEX x_row, x_column, x_stride;
  uint rows, columns;
  uint matrices;
} push;

#if TUFF_STAGE == 0 || TUFF_STAGE == 2
TUFF_READ(0, A, TUFF_VALUE, TUFF_VALUE_BYTES)
#endif
#if TUFF_STAGE == 2
TUFF_WRITE(1, X, TUFF_VALUE, TUFF_VALUE_BYTES)
#endif
TUFF_READ_WRITE(2, Rows, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ_WRITE(3, State, int, 4)
#if TUFF_STAGE == 3
TUFF_WRITE(4, Norm, TUFF_VALUE, TUFF_VALUE_BYTES)
#endif

TUFF_TREE(tree_largest, larger)

#if TUFF_STAGE == 0 || TUFF_STAGE == 2
TUFF_VALUE element(TUFF_INDEX base, uint i, uint j) {
  const bool other = TUFF_TRIANGLES == 1 ? j > i : TUFF_TRIANGLES == 2 && j < i;
  const uint r = other ? j : i, c = other ? i : j;
  return TUFF_AT(A, base + TUFF_INDEX(r) * push.a_row + TUFF_INDEX(c) * push.a_column);
}
#endif

void main() {
  const uint group = tuff_group(), thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  const bool by_row = TUFF_STAGE == 0 || TUFF_STAGE == 2;
  const uint matrix = by_row ? group / push.rows : group, row = by_row ? group % push.rows : 0;
  if (matrix >= push.matrices) return;
  const uint state = matrix * STATE_WORDS;
  const TUFF_INDEX a = TUFF_INDEX(matrix) * push.a_stride, x = TUFF_INDEX(matrix) * push.x_stride;
  const TUFF_INDEX of_rows = TUFF_INDEX(matrix) * TUFF_INDEX(push.rows);
#if TUFF_STAGE == 0
  TUFF_VALUE largest = TUFF_ZERO;
  for (uint j = thread; j < push.columns; j += TUFF_LANES) largest = larger(largest, abs(element(a, row, j)));
  largest = tree_largest(largest);
  if (thread == 0) TUFF_AT(Rows, of_rows + row) = largest;
#elif TUFF_STAGE == 1
  TUFF_VALUE largest = TUFF_ZERO;
  for (uint i = thread; i < push.rows; i += TUFF_LANES) largest = larger(largest, TUFF_AT(Rows, of_rows + i));
  largest = tree_largest(largest);
  if (thread == 0) {
    TUFF_AT(State, state + EXPONENT) = scale_exponent(largest);
    TUFF_AT(State, state + BAD) = is_finite(largest) ? 0 : 1;
  }
#elif TUFF_STAGE == 2
  const bool bad = TUFF_AT(State, state + BAD) != 0;
  const TUFF_VALUE scale = power_of_two(-TUFF_AT(State, state + EXPONENT));
  TUFF_VALUE squares = TUFF_ZERO;
  for (uint j = thread; j < push.columns; j += TUFF_LANES) {
    const TUFF_VALUE value = bad ? TUFF_ZERO : element(a, row, j) * scale;
    TUFF_AT(X, x + TUFF_INDEX(row) * push.x_row + TUFF_INDEX(j) * push.x_column) = value;
    squares += value * value;
  }
  squares = tree_sum(squares);
  if (thread == 0) TUFF_AT(Rows, of_rows + row) = squares;
#else
  TUFF_VALUE squares = TUFF_ZERO;
  for (uint i = thread; i < push.rows; i += TUFF_LANES) squares += TUFF_AT(Rows, of_rows + i);
  squares = tree_sum(squares);
  if (thread == 0) TUFF_AT(Norm, matrix) = root(squares);
  for (uint i = thread; i < MOST_SWEEPS; i += TUFF_LANES) TUFF_AT(State, state + COUNTS + i) = 0;
#endif
}
