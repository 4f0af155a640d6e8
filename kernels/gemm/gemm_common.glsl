// What the tiled matrix products share: parameters, operands, and where a workgroup's tile lies.
//
// Workgroups are numbered tile by tile within a matrix, then by matrix of the batch, then by slice of k.
// A product whose k is cut into slices writes the sums of each slice to scratch memory (slice-major) with
// alpha = 1 and beta = 0; gemm_finish adds them up in a fixed order.
//
// Defines: TRANS_A, TRANS_B   1: stored as k x m, as n x k
//          SUM_TYPE           see gemm_types.glsl: the type of A, B, C and all between
#include "kernels/gemm/gemm_pointer.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  TUFF_INDEX lda, ldb, ldc;                 // elements from one stored row to the next
  TUFF_INDEX stride_a, stride_b, stride_c;  // elements from one matrix to the next
  uint m, n, k;
  uint batch_count, slices, k_slice;  // k_slice: how much of k a slice holds
  uint tiles_m, tiles_n;
  SCALAR alpha, beta;
} push;

TUFF_READ(0, A, SCALAR, SCALAR_BYTES)
TUFF_READ(0, A4, VECTOR, VECTOR_BYTES)
TUFF_READ(1, B, SCALAR, SCALAR_BYTES)
TUFF_READ(1, B4, VECTOR, VECTOR_BYTES)
TUFF_READ_WRITE(2, C, SCALAR, SCALAR_BYTES)
TUFF_READ_WRITE(2, C4, VECTOR, VECTOR_BYTES)

struct Tile {
  bool exists;
  uint row, col;  // in units of tiles
  TUFF_INDEX a, b, c;    // where the matrices begin
  uint k_begin, k_end;
};

// Tiles go down columns, SUPER_ROWS tiles high at a time: neighbours in time share both operands' rows.
Tile this_tile(uint super_rows) {
  uint group = tuff_group();
  uint tiles = push.tiles_m * push.tiles_n;
  uint matrix = group / tiles, within = group % tiles;
  uint slice = matrix / push.batch_count;
  uint batch = matrix % push.batch_count;
  Tile tile;
  tile.exists = slice < push.slices;
  uint band = within / (super_rows * push.tiles_n);
  uint height = min(push.tiles_m - band * super_rows, super_rows);
  within -= band * super_rows * push.tiles_n;
  tile.row = band * super_rows + within % height;
  tile.col = within / height;
  tile.a = TUFF_INDEX(batch) * push.stride_a;
  tile.b = TUFF_INDEX(batch) * push.stride_b;
  tile.c = TUFF_INDEX(matrix) * push.stride_c;
  tile.k_begin = slice * push.k_slice;
  tile.k_end = min(push.k, tile.k_begin + push.k_slice);
  return tile;
}
