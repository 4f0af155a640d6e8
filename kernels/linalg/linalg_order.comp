// The results of Jacobi's method in order, in two stages:
//
//   0  the value of each column (a workgroup has a column): an eigenvalue, which is on the diagonal, or with TUFF_GRAM a
//      singular value, the column's length
//   1  the place of each value among all, by counting those before it (an invocation has a value); values that are equal
//      keep their order. The values are brought back to the scale of the matrix that was given.
//
//# TUFF_STAGE : 0|1 : the stage
//# TUFF_GRAM : 0|1 : 1: singular values, in descending order; 0: eigenvalues, in ascending order
//# TUFF_INFO : 0|1 : 1: slot 5 receives each matrix's info
#include "kernels/linalg/linalg_pairs.glsl"
#include "kernels/common/lanes.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(6)
  TUFF_INDEX x_row, x_column, x_stride;
  TUFF_INDEX values_stride;
  uint columns;          // of X, and its rows
  uint groups;           // workgroups for each matrix
  uint sweeps;           // that were made at most
  uint matrices;
} push;

#if TUFF_STAGE == 0
TUFF_READ(0, X, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_WRITE(1, Keys, TUFF_VALUE, TUFF_VALUE_BYTES)
#else
TUFF_READ(1, Keys, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ(2, State, int, 4)
TUFF_WRITE(3, Order, int, 4)  // the column of each place
TUFF_WRITE(4, Values, TUFF_VALUE, TUFF_VALUE_BYTES)
#if TUFF_INFO
TUFF_WRITE(5, Info, int, 4)
#endif
#endif

void main() {
  const uint group = tuff_group(), matrix = group / push.groups, part = group % push.groups;
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  if (matrix >= push.matrices) return;
  const TUFF_INDEX keys = TUFF_INDEX(matrix) * TUFF_INDEX(push.columns);
#if TUFF_STAGE == 0
  const TUFF_INDEX column = TUFF_INDEX(matrix) * push.x_stride + TUFF_INDEX(part) * push.x_column;
#if TUFF_GRAM
  TUFF_VALUE squares = TUFF_ZERO;
  for (uint i = thread; i < push.columns; i += TUFF_LANES) {
    const TUFF_VALUE x = TUFF_AT(X, column + TUFF_INDEX(i) * push.x_row);
    squares += x * x;
  }
  const TUFF_VALUE value = root(tree_sum(squares));
#else
  const TUFF_VALUE value = TUFF_AT(X, column + TUFF_INDEX(part) * push.x_row);
#endif
  if (thread == 0) TUFF_AT(Keys, keys + part) = value;
#else
  const uint state = matrix * STATE_WORDS;
  const bool bad = TUFF_AT(State, state + BAD) != 0;
#if TUFF_INFO
  if (part == 0 && thread == 0) {
    const bool moving = TUFF_AT(State, state + COUNTS + push.sweeps - 1) != 0;
    TUFF_AT(Info, matrix) = bad ? 1 : moving ? 2 : 0;
  }
#endif
  const uint j = part * TUFF_LANES + thread;
  if (j >= push.columns) return;
  const TUFF_VALUE key = TUFF_AT(Keys, keys + j);
  uint place = 0;
  for (uint l = 0; l < push.columns; ++l) {
    const TUFF_VALUE other = TUFF_AT(Keys, keys + l);
    if ((TUFF_GRAM != 0 ? other > key : other < key) || (other == key && l < j)) ++place;
  }
  const TUFF_VALUE scale = power_of_two(TUFF_AT(State, state + EXPONENT));
  TUFF_AT(Order, keys + place) = int(j);
  TUFF_AT(Values, TUFF_INDEX(matrix) * push.values_stride + place) = bad ? NOT_A_NUMBER : key * scale;
#endif
}
