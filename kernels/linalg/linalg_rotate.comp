// Applies the products of linalg_jacobi.comp to the columns of matrices: the columns of each pair of parts become those
// columns times its U. A workgroup has WHOLE rows of one pair, in shared memory, and an invocation one row of four of
// the results:
//
//   X(rows, pair) = X(rows, pair) * U
//
// Strides of rows and columns are free, so that X^T U and U^T X need no other kernel.
#include "kernels/linalg/linalg_pairs.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  TUFF_INDEX x_row, x_column, x_stride;
  TUFF_INDEX u_stride;
  uint rows, columns;    // of X
  uint parts;            // of the columns, an even number
  uint round, sweep;
  uint groups;           // workgroups for each pair
  uint matrices;
} push;

TUFF_READ_WRITE(0, X, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ(1, U, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ(2, State, int, 4)
TUFF_READ(3, Moved, int, 4)

shared TUFF_VALUE tile[WHOLE * WHOLE_PITCH];

void main() {
  uint rest = tuff_group();
  const uint first = rest % push.groups * WHOLE, games = push.parts / 2;
  rest /= push.groups;
  const uint game = rest % games, matrix = rest / games, thread = gl_LocalInvocationID.x;
  if (matrix >= push.matrices) return;
  if (push.sweep > 0 && TUFF_AT(State, matrix * STATE_WORDS + COUNTS + push.sweep - 1) == 0) return;
  if (TUFF_AT(Moved, matrix * games + game) == 0) return;
  const uvec2 pair = meeting(push.parts, push.round, game);
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.x_stride;
  const TUFF_INDEX u = TUFF_INDEX(matrix) * push.u_stride + TUFF_INDEX(game) * TUFF_INDEX(WHOLE * WHOLE);
  const bool along_rows = push.x_column == TUFF_INDEX(1);
  for (uint e = thread; e < WHOLE * WHOLE; e += gl_WorkGroupSize.x) {
    const uint r = along_rows ? e / WHOLE : e % WHOLE, c = along_rows ? e % WHOLE : e / WHOLE;
    const uint row = first + r, column = column_of(pair, c);
    tile[r * WHOLE_PITCH + c] = row < push.rows && column < push.columns
                                    ? TUFF_AT(X, base + TUFF_INDEX(row) * push.x_row + TUFF_INDEX(column) * push.x_column)
                                    : TUFF_ZERO;
  }
  barrier();
  for (uint e = thread; e < WHOLE * HALF / 2; e += gl_WorkGroupSize.x) {
    const uint r = along_rows ? e / (HALF / 2) : e % WHOLE, c = (along_rows ? e % (HALF / 2) : e / WHOLE) * 4;
    const uint row = first + r;
    if (row >= push.rows) continue;
    TUFF_VALUE4 sum = TUFF_VALUE4(0);
    for (uint l = 0; l < WHOLE; ++l) {
      const TUFF_INDEX at = u + TUFF_INDEX(l * WHOLE + c);
      sum += tile[r * WHOLE_PITCH + l] *
             TUFF_VALUE4(TUFF_AT(U, at), TUFF_AT(U, at + 1), TUFF_AT(U, at + 2), TUFF_AT(U, at + 3));
    }
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      const uint column = column_of(pair, c + i);
      if (column < push.columns) {
        TUFF_AT(X, base + TUFF_INDEX(row) * push.x_row + TUFF_INDEX(column) * push.x_column) = sum[i];
      }
    }
  }
}
