// Products of rows by rows: C = alpha * A * transposed(B) + beta * C in f32, where A is m x k and B is n x k, both
// row-major. Weights of linear layers are stored so.
#pragma once

#include <cstdint>

namespace tuff_cpu {

struct RowProduct {
  uint64_t m, n, k;
  float alpha;
  const float* a;
  uint64_t lda;
  const float* b;
  uint64_t ldb;
  float beta;
  float* c;
  uint64_t ldc;
};

// The rows of either operand that a tile has: parts that begin at a multiple of it are computed without loss.
constexpr uint64_t kTileRows = 4;

// Whether the processor has the instructions.
bool has_row_products();
// Computes it on the calling thread, without memory. An element of C has the same bits whatever else is computed.
void multiply_rows(const RowProduct& product);
// The same on the calling thread's number of threads (product.cpp).
void multiply_rows_on_threads(const RowProduct& product);

}  // namespace tuff_cpu
