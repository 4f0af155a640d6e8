// Where a workgroup's tile lies. For kernels whose push block has what gemm_common.glsl's has; included behind it.
struct Tile {
  bool exists;
  uint row, col;  // in units of tiles
  uint batch;
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
  TUFF_TAKE(batch)
  tile.batch = batch;
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
