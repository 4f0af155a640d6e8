// Copies the columns of matrices, in the order that linalg_order.comp found, or with the signs of a diagonal. Those of
// matrices with a NaN or an infinity become NaN. A workgroup has a tile of TILE x TILE elements.
//
//# TUFF_SIGNS : 0|1 : 0: column j is column order(j) of X, from slot 2; 1: it is column j of X, negative if element (j, j)
//   of the matrix in slot 2 is
#include "kernels/linalg/linalg_pairs.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  TUFF_INDEX x_row, x_column, x_stride;
  TUFF_INDEX y_row, y_column, y_stride;
  TUFF_INDEX by_step, by_stride;  // of slot 2, from one number that is used to the next
  uint rows, columns;
  uint across, down;              // tiles along a row and a column
  uint matrices;
} push;

TUFF_READ(0, X, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_WRITE(1, Y, TUFF_VALUE, TUFF_VALUE_BYTES)
#if TUFF_SIGNS
TUFF_READ(2, By, TUFF_VALUE, TUFF_VALUE_BYTES)
#else
TUFF_READ(2, By, int, 4)
#endif
TUFF_READ(3, State, int, 4)

//# constant TILE : rows and columns of a workgroup's tile
const uint TILE = 32;

void main() {
  uint rest = tuff_group();
  const uint column_tile = rest % push.across;
  rest /= push.across;
  const uint row_tile = rest % push.down, matrix = rest / push.down;
  if (matrix >= push.matrices) return;
  const TUFF_INDEX x = TUFF_INDEX(matrix) * push.x_stride, y = TUFF_INDEX(matrix) * push.y_stride;
  const TUFF_INDEX by = TUFF_INDEX(matrix) * push.by_stride;
  const bool bad = TUFF_AT(State, matrix * STATE_WORDS + BAD) != 0, along_rows = push.y_column == TUFF_INDEX(1);
  for (uint e = gl_LocalInvocationID.x; e < TILE * TILE; e += gl_WorkGroupSize.x) {
    const uint quick = e % TILE, slow = e / TILE;
    const uint i = row_tile * TILE + (along_rows ? slow : quick), j = column_tile * TILE + (along_rows ? quick : slow);
    if (i >= push.rows || j >= push.columns) continue;
#if TUFF_SIGNS
    const uint from = j;
    const bool negative = TUFF_AT(By, by + TUFF_INDEX(j) * push.by_step) < TUFF_ZERO;
#else
    const uint from = uint(TUFF_AT(By, by + TUFF_INDEX(j) * push.by_step));
    const bool negative = false;
#endif
    const TUFF_VALUE value = TUFF_AT(X, x + TUFF_INDEX(i) * push.x_row + TUFF_INDEX(from) * push.x_column);
    TUFF_AT(Y, y + TUFF_INDEX(i) * push.y_row + TUFF_INDEX(j) * push.y_column) =
        bad ? NOT_A_NUMBER : negative ? -value : value;
  }
}
