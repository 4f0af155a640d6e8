// Sets the elements above the diagonal of matrices to zero, or makes them identities: ones on the diagonal and zeros
// elsewhere. Element (i, j) is row_stride * i + column_stride * j elements into a matrix. A workgroup has a tile of
// TILE x TILE elements.
//
//# TUFF_IDENTITY : 0|1 : 1: identities
//# TUFF_TYPE : 1|4 : element type, as in tuff.h
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(1)
  TUFF_INDEX row_stride, column_stride, stride;
  uint rows, columns;
  uint tiles, tiles_down;  // tiles along a row and a column
  uint matrices;
} push;

TUFF_WRITE(0, A, TUFF_VALUE, TUFF_VALUE_BYTES)

//# constant TILE : rows and columns of a workgroup's tile
const uint TILE = 32;

void main() {
  uint rest = tuff_group();
  const uint column_tile = rest % push.tiles;
  rest /= push.tiles;
  const uint row_tile = rest % push.tiles_down, matrix = rest / push.tiles_down;
  if (matrix >= push.matrices) return;
#if !TUFF_IDENTITY
  if (column_tile < row_tile) return;
#endif
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.stride;
  for (uint e = gl_LocalInvocationID.x; e < TILE * TILE; e += gl_WorkGroupSize.x) {
    // Neighbouring invocations have neighbouring elements.
    const bool along_rows = push.column_stride == TUFF_INDEX(1);
    const uint quick = e % TILE, slow = e / TILE;
    const uint i = row_tile * TILE + (along_rows ? slow : quick), j = column_tile * TILE + (along_rows ? quick : slow);
    if (i >= push.rows || j >= push.columns) continue;
    if (TUFF_IDENTITY != 0 || i < j) {
      TUFF_AT(A, base + i * push.row_stride + j * push.column_stride) = i == j ? TUFF_ONE : TUFF_ZERO;
    }
  }
}
