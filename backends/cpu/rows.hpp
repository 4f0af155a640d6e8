// Products of rows by rows: C = alpha * A * transposed(B) + beta * C in f32, where A is m x k and B is n x k, both
// row-major. Weights of linear layers are stored so.
#pragma once

#include "backends/cpu/product.hpp"

namespace tuff_cpu {

// The rows of either operand that a tile has: parts that begin at a multiple of it are computed without loss.
constexpr uint64_t kTileRows = 4;

// Whether the processor has the instructions.
bool has_row_products();
// Computes a product whose A is stored as it is, and B transposed, on the calling thread, without memory. An element of
// C has the same bits whatever else is computed.
void multiply_rows(const Product& product);
// The same on the calling thread's number of threads (product.cpp).
void multiply_rows_on_threads(const Product& product);

}  // namespace tuff_cpu
