// The position of a workgroup's tile. For kernels whose push block has the members of gemm_common.glsl's; included
// after the push block.
struct Tile {
  bool exists;
  uint row, col;  // in units of tiles
  uint batch;
  TUFF_INDEX a, b, c;    // element index of each matrix's first element
  uint k_begin, k_end;
};

// Tiles are numbered down the columns of bands that are super_rows tiles high, so that tiles computed at the same time
// share rows of A and columns of B.
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
