// Products of matrices by oneDNN's sgemm, which copies its operands into memory of its own and fails if there is none.
// A call that has begun to write must not fail, so a loop that needs no memory computes a product that oneDNN does not.
//
// On one thread, sgemm allocates before it writes: C is as it was if it fails. On several threads, some have written
// their parts when another finds no memory. C is then computed anew, which is possible if its old values do not count
// (beta is 0). If they do, C is divided here, and each part is computed by one thread.
//
// Few rows of A by the rows of B are multiplied where they are (rows.cpp), without memory and without copies.
#include <dnnl.h>

#include "backends/cpu/device.hpp"
#include "backends/cpu/rows.hpp"

namespace tuff_cpu {
namespace {

bool by_onednn(const Product& p) {
  const auto dim = [](uint64_t size) { return static_cast<dnnl_dim_t>(size); };
  try {
    return dnnl_sgemm(p.ta, p.tb, dim(p.m), dim(p.n), dim(p.k), p.alpha, p.a, dim(p.lda), p.b, dim(p.ldb), p.beta, p.c,
                      dim(p.ldc)) == dnnl_success;
  } catch (...) {  // it makes machine code when it first needs it
    return false;
  }
}

// Sums in double precision, for some neighbouring columns at a time.
void by_loops(const Product& p) {
  constexpr uint64_t kColumns = 64;
  const uint64_t a_row = p.ta == 'N' ? p.lda : 1, a_inner = p.ta == 'N' ? 1 : p.lda;
  const uint64_t b_inner = p.tb == 'N' ? p.ldb : 1, b_column = p.tb == 'N' ? 1 : p.ldb;
  for (uint64_t i = 0; i < p.m; ++i) {
    for (uint64_t first = 0; first < p.n; first += kColumns) {
      const uint64_t count = std::min(kColumns, p.n - first);
      double sums[kColumns] = {};
      for (uint64_t l = 0; l < p.k; ++l) {
        const auto factor = static_cast<double>(p.a[i * a_row + l * a_inner]);
        const float* b = p.b + l * b_inner + first * b_column;
        for (uint64_t j = 0; j < count; ++j) sums[j] += factor * static_cast<double>(b[j * b_column]);
      }
      float* c = p.c + i * p.ldc + first;
      for (uint64_t j = 0; j < count; ++j) {
        const double old = p.beta == 0 ? 0 : static_cast<double>(p.beta) * static_cast<double>(c[j]);
        c[j] = static_cast<float>(static_cast<double>(p.alpha) * sums[j] + old);
      }
    }
  }
}

void whole(const Product& p) {
  if (!by_onednn(p)) by_loops(p);
}

// A grid of parts of C, one for each thread. Of all grids it reads the least: each thread reads its rows of A and its
// columns of B.
struct Grid {
  uint64_t rows, columns;  // of a part

  Grid(const Product& p, uint64_t threads) {
    uint64_t best = 1;
    const auto cost = [&](uint64_t down) { return p.m / down + p.n / (threads / down); };
    for (uint64_t down = 2; down <= threads; ++down) {
      if (threads % down == 0 && cost(down) <= cost(best)) best = down;
    }
    const auto part = [](uint64_t size, uint64_t parts) {
      return (size + parts * kUnit - 1) / (parts * kUnit) * kUnit;
    };
    rows = part(p.m, best);
    columns = part(p.n, threads / best);
  }

 private:
  static constexpr uint64_t kUnit = 16;
};

void in_grid(const Product& p, const Grid& grid) {
  const uint64_t down = (p.m + grid.rows - 1) / grid.rows, across = (p.n + grid.columns - 1) / grid.columns;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < static_cast<int64_t>(down * across); ++i) {
    const uint64_t row = static_cast<uint64_t>(i) / across * grid.rows;
    const uint64_t column = static_cast<uint64_t>(i) % across * grid.columns;
    Product part = p;
    part.m = std::min(grid.rows, p.m - row);
    part.n = std::min(grid.columns, p.n - column);
    part.a += row * (p.ta == 'N' ? p.lda : 1);
    part.b += column * (p.tb == 'N' ? 1 : p.ldb);
    part.c += row * p.ldc + column;
    whole(part);
  }
}

// Whether rows.cpp is faster than sgemm: a copy of B takes a good part of the time, and rows are so long that adding up
// the lanes of a sum does not. Measured on an AMD EPYC of 2022 (docs/cpu.md).
bool suits_rows(const Product& p) {
  constexpr uint64_t kFewest = 3, kMost = 128, kShortest = 192;
  return p.ta == 'N' && p.tb == 'T' && p.m >= kFewest && p.m <= kMost && p.k >= kShortest && has_row_products();
}

}  // namespace

void multiply_rows_on_threads(const Product& p) {
  const int threads = omp_in_parallel() != 0 ? 1 : omp_get_max_threads();
  if (threads == 1) return multiply_rows(p);
  // Parts of the operand with more rows.
  const bool by_a = p.m > p.n;
  const uint64_t rows = by_a ? p.m : p.n, tiles = (rows + kTileRows - 1) / kTileRows;
  const auto parts = static_cast<uint64_t>(threads);
  const uint64_t part = (tiles + parts - 1) / parts * kTileRows;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < threads; ++i) {
    const uint64_t first = static_cast<uint64_t>(i) * part;
    if (first >= rows) continue;
    Product mine = p;
    (by_a ? mine.m : mine.n) = std::min(part, rows - first);
    if (by_a) {
      mine.a += first * p.lda;
      mine.c += first * p.ldc;
    } else {
      mine.b += first * p.ldb;
      mine.c += first;
    }
    multiply_rows(mine);
  }
}

void multiply_matrices(const Product& product) {
  const int threads = omp_in_parallel() != 0 ? 1 : omp_get_max_threads();
  if (suits_rows(product)) return multiply_rows_on_threads(product);
  if (product.beta == 0 || threads == 1) return whole(product);
  in_grid(product, Grid(product, static_cast<uint64_t>(threads)));
}

}  // namespace tuff_cpu
