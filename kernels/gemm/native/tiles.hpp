// The tiles of C that a block computes one after the other, in kernels written in PTX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/native/ptx.hpp"

namespace tuff::gemm {

// A tile's first row and column, its matrix and slice, and the slice's part of k.
struct Tile {
  ptx::U32 row, column, matrix, slice, k, k_end;
};

// All tiles of all matrices and slices.
struct Tiles {
  // Rows of tiles that are computed at about the same time, to share B in the L2 cache.
  static constexpr uint32_t kTogether = 16;

  ptx::U32 down, across;  // of a matrix
  ptx::U32 all, matrices;
  ptx::U32 k, k_slice;
  uint32_t rows, columns;  // of a tile

  // Tiles that are computed at about the same time form a band of kTogether rows: down its columns, then on to the next
  // band.
  Tile locate(const ptx::U32& tile) const {
    Tile at;
    const ptx::U32 of_matrix = down * across;
    const ptx::U32 outer = tile / of_matrix, inner = tile - outer * of_matrix;
    at.slice = outer / matrices;
    at.matrix = outer - at.slice * matrices;
    const ptx::U32 in_band = across * kTogether;
    const ptx::U32 band = inner / in_band, rest = inner - band * in_band;
    const ptx::U32 first = band * kTogether;
    const ptx::U32 height = min(down - first, tile.writer->constant(kTogether));
    const ptx::U32 column = rest / height;
    at.row = (first + (rest - column * height)) * rows;
    at.column = column * columns;
    at.k = at.slice * k_slice;
    at.k_end = min(at.k + k_slice, k);
    return at;
  }

  // Calls body(tile) for each of the block's tiles.
  template <typename Body>
  void each(const Body& body) const {
    ptx::Writer& w = *all.writer;
    const ptx::U32 tile = w.variable(w.special("%ctaid.x"));
    const ptx::U32 blocks = w.special("%nctaid.x");
    w.repeat([&] { return tile < all; },
             [&] {
               body(locate(tile));
               w.assign(tile, tile + blocks);
             });
  }
};

// Those of one product, whose push block counts them as tiles_n down and tiles_m across.
template <typename Push>
Tiles tiles_of_weights(ptx::Writer& w, const ptx::U32& k, uint32_t rows, uint32_t columns) {
  return {.down = w.parameter("push", offsetof(Push, tiles_n)),
          .across = w.parameter("push", offsetof(Push, tiles_m)),
          .all = w.parameter("push", offsetof(Push, tiles)),
          .matrices = w.constant(1),
          .k = k,
          .k_slice = k,
          .rows = rows,
          .columns = columns};
}

// A or B.
struct TiledOperand {
  ptx::U64 base;
  ptx::U32 ld;           // in units that the kernel reads
  ptx::U32 extent;       // m or n
  ptx::U64 stride;       // bytes between matrices
  bool along_k = false;  // whether its rows run along k
  uint32_t tile = 0;     // rows or columns of a tile
  uint32_t place = 0;    // in a stage, in bytes
};

// What kernels that compute tiles read from their push block.
struct Tiled {
  TiledOperand a, b;
  ptx::U32 m, n;
  Tiles tiles;

  // `options` has the tile's extents and the transposes; B follows `a_bytes` of A in a stage.
  template <typename Push, typename Options>
  void read(ptx::Writer& w, const Options& options, uint32_t a_bytes) {
    const auto number = [&](size_t offset) { return w.parameter("push", offset); };
    m = number(offsetof(Push, m));
    n = number(offsetof(Push, n));
    const ptx::U32 k = number(offsetof(Push, k));
    tiles = {.down = number(offsetof(Push, tiles_m)),
             .across = number(offsetof(Push, tiles_n)),
             .all = number(offsetof(Push, tiles)),
             .matrices = number(offsetof(Push, matrices)),
             .k = k,
             .k_slice = number(offsetof(Push, k_slice)),
             .rows = options.rows,
             .columns = options.columns};
    a.ld = number(offsetof(Push, lda));
    b.ld = number(offsetof(Push, ldb));
    a.stride = w.parameter64("push", offsetof(Push, stride_a));
    b.stride = w.parameter64("push", offsetof(Push, stride_b));
    a.extent = m;
    b.extent = n;
    a.along_k = !options.trans_a;
    b.along_k = options.trans_b;
    a.tile = options.rows;
    b.tile = options.columns;
    b.place = a_bytes;
  }
};

}  // namespace tuff::gemm
