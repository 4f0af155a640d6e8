// Applies the products of linalg_jacobi.comp to the columns of matrices: the columns of each pair of parts become those
// columns times its U. A workgroup has WHOLE rows of one pair, in shared memory, and an invocation a block of 4 x 4 of the
// results: four neighbouring rows, and every QUARTER-th column, so that neighbouring invocations read neighbouring
// elements of U:
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

shared TUFF_VALUE tile[WHOLE * WHOLE_PITCH], product[WHOLE * WHOLE_PITCH];
const uint QUARTER = WHOLE / 4;

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
  // Only so many rows and columns of U are set.
  const uint width = push.parts == 2 ? min(WHOLE, push.columns) : WHOLE, height = min(WHOLE, push.rows - first);
  const bool along_rows = push.x_column == TUFF_INDEX(1);
  for (uint e = thread; e < WHOLE * WHOLE; e += gl_WorkGroupSize.x) {
    const uint r = along_rows ? e / WHOLE : e % WHOLE, c = along_rows ? e % WHOLE : e / WHOLE;
    const uint column = column_of(pair, c);
    const bool stored = r < height && column < push.columns;
    const TUFF_INDEX at = base + TUFF_INDEX(first + r) * push.x_row + TUFF_INDEX(column) * push.x_column;
    tile[r * WHOLE_PITCH + c] = stored ? TUFF_AT(X, at) : TUFF_ZERO;
  }
  barrier();
  for (uint e = thread; e < QUARTER * QUARTER; e += gl_WorkGroupSize.x) {
    const uint r = e / QUARTER * 4, c = e % QUARTER;
    if (r >= height) continue;
    TUFF_VALUE4 sums[4];
    [[unroll]] for (uint i = 0; i < 4; ++i) sums[i] = TUFF_VALUE4(0);
    const uvec4 columns = min(uvec4(c, c + QUARTER, c + 2 * QUARTER, c + 3 * QUARTER), uvec4(width - 1));
    for (uint l = 0; l < width; ++l) {
      const TUFF_INDEX row = u + TUFF_INDEX(l * WHOLE);
      const TUFF_VALUE4 factors = TUFF_VALUE4(TUFF_AT(U, row + columns.x), TUFF_AT(U, row + columns.y),
                                              TUFF_AT(U, row + columns.z), TUFF_AT(U, row + columns.w));
      [[unroll]] for (uint i = 0; i < 4; ++i) sums[i] += tile[(r + i) * WHOLE_PITCH + l] * factors;
    }
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      [[unroll]] for (uint k = 0; k < 4; ++k) product[(r + i) * WHOLE_PITCH + c + k * QUARTER] = sums[i][k];
    }
  }
  barrier();
  for (uint e = thread; e < WHOLE * WHOLE; e += gl_WorkGroupSize.x) {
    const uint r = along_rows ? e / WHOLE : e % WHOLE, c = along_rows ? e % WHOLE : e / WHOLE;
    const uint column = column_of(pair, c);
    if (r < height && column < push.columns) {
      TUFF_AT(X, base + TUFF_INDEX(first + r) * push.x_row + TUFF_INDEX(column) * push.x_column) =
          product[r * WHOLE_PITCH + c];
    }
  }
}
