// Sparse matrices: products with dense and sparse ones, conversions between formats, triangular systems.
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/element_type.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

namespace sparse {
// The dense blocks of a matrix in BSR. For other formats the extents are 1.
struct Blocks {
  uint64_t rows = 1, columns = 1;
  int32_t order = TUFF_BLOCK_ORDER_ROW_MAJOR;

  uint64_t elements() const { return rows * columns; }  // of one block
  // Elements of a block from one row, or column, to the next.
  uint64_t row_stride() const { return order == TUFF_BLOCK_ORDER_ROW_MAJOR ? columns : 1; }
  uint64_t column_stride() const { return order == TUFF_BLOCK_ORDER_ROW_MAJOR ? 1 : rows; }
};
}  // namespace sparse

// C = alpha * op(A) * B + beta * C, or C = alpha * B * op(A) + beta * C on the right.
struct SpmmArgs {
  int32_t dtype, index_type, transpose, side;
  uint64_t rows, columns;  // of A as stored
  uint64_t nnz, n;
  double alpha, beta;
  const Buffer *offsets, *indices, *values;
  const Buffer *b, *c;
  uint64_t ldb, ldc;
  uint64_t stride_values, stride_b, stride_c;
  uint64_t batch_count;
  sparse::Blocks blocks = {};

  // op(A), which is transposed once more where it is on the right: C^T = op(A)^T * B^T.
  bool on_right() const { return side == TUFF_SIDE_RIGHT; }
  bool transposed() const { return transpose != TUFF_NO_TRANS; }
  uint64_t op_rows() const { return transposed() ? columns : rows; }
  uint64_t op_columns() const { return transposed() ? rows : columns; }
  // Lines of blocks, which are lines of elements in CSR.
  uint64_t block_rows() const { return rows / blocks.rows; }
  uint64_t block_columns() const { return columns / blocks.columns; }
  // The product as one of a matrix on the left: whether its entries must be sorted, its rows, and the extent of the
  // sums.
  bool sorts() const { return transposed() != on_right(); }
  uint64_t product_rows() const { return sorts() ? columns : rows; }
  uint64_t extent() const { return sorts() ? rows : columns; }
};

struct SparseConvertArgs {
  int32_t dtype, index_type, from_format, to_format;
  uint64_t rows, columns, nnz, capacity;
  const Buffer *from_rows, *from_columns, *from_values;
  const Buffer *to_rows, *to_columns, *to_values;
  uint64_t from_ld, to_ld;
  const Buffer* count;
  sparse::Blocks from_blocks = {}, to_blocks = {};
};

// values[e] = alpha * scales[e] * (A op(B))[i, j] + beta * values[e] for entry e at (i, j).
struct SddmmArgs {
  int32_t dtype, index_type, format, transpose;
  uint64_t rows, columns, nnz, k;
  double alpha, beta;
  const Buffer *place_rows, *place_columns, *scales;
  const Buffer *a, *b, *values;
  uint64_t lda, ldb;
  uint64_t stride_scales, stride_a, stride_b, stride_values;
  uint64_t batch_count;

  bool transposed() const { return transpose != TUFF_NO_TRANS; }
  bool offsets() const { return format == TUFF_SPARSE_CSR; }
  // There is something to add up.
  bool reads() const { return alpha != 0 && k != 0 && rows != 0 && columns != 0; }
};

// C = A * B, all in CSR.
struct SpgemmArgs {
  int32_t dtype, index_type;
  uint64_t rows, inner, columns;
  uint64_t a_nnz, b_nnz;
  uint64_t max_terms, capacity;
  const Buffer *a_offsets, *a_indices, *a_values;
  const Buffer *b_offsets, *b_indices, *b_values;
  const Buffer *c_offsets, *c_indices, *c_values;
  const Buffer *count, *terms;  // either may be null

  // There may be entries of both that meet.
  bool multiplies() const { return a_nnz != 0 && b_nnz != 0 && rows != 0 && inner != 0 && columns != 0; }
};

// op(A) * X = alpha * B for a triangle A in CSR.
struct SparseTriangularSolveArgs {
  int32_t dtype, index_type, triangle, transpose;
  bool unit_diagonal, levels_ready;
  uint64_t rows, nnz, n;
  double alpha;
  const Buffer *offsets, *indices, *values;
  const Buffer* levels;  // may be null
  const Buffer *b, *x;
  uint64_t ldb, ldx;

  bool transposed() const { return transpose != TUFF_NO_TRANS; }
  // op(A) is a lower triangle: rows refer to those before them.
  bool forward() const { return (triangle == TUFF_TRIANGLE_LOWER) != transposed(); }
};

namespace sparse {
inline constexpr ElementTypes kTypes = {TUFF_F32, TUFF_F16, TUFF_BF16, TUFF_F64};
inline constexpr ElementTypes kIndexTypes = {TUFF_I32, TUFF_I64};

// Rows and columns of a dense operand as they are stored.
struct Dense {
  uint64_t rows, columns, ld, stride;
  uint64_t one() const { return rows == 0 || columns == 0 ? 0 : (rows - 1) * ld + columns; }
  // For a batch, which is not empty.
  uint64_t span(uint64_t count) const { return one() == 0 ? 0 : (count - 1) * stride + one(); }
};
Dense dense_b(const SpmmArgs& args);
Dense dense_c(const SpmmArgs& args);
Dense dense_a(const SddmmArgs& args);
Dense dense_b(const SddmmArgs& args);
}  // namespace sparse

void check_spmm(const SpmmArgs& args);
void check_sparse_convert(const SparseConvertArgs& args);
void check_sddmm(const SddmmArgs& args);
void check_spgemm(const SpgemmArgs& args);
void check_sparse_triangular_solve(const SparseTriangularSolveArgs& args);

void host_spmm(const SpmmArgs& args);
void host_sparse_convert(const SparseConvertArgs& args);
void host_sddmm(const SddmmArgs& args);
void host_spgemm(const SpgemmArgs& args);
void host_sparse_triangular_solve(const SparseTriangularSolveArgs& args);

void record_spmm(Recorder& recorder, const SpmmArgs& args);
void record_sparse_convert(Recorder& recorder, const SparseConvertArgs& args);
void record_sddmm(Recorder& recorder, const SddmmArgs& args);
void record_spgemm(Recorder& recorder, const SpgemmArgs& args);
void record_sparse_triangular_solve(Recorder& recorder, const SparseTriangularSolveArgs& args);

tuff_status offer_spmm(const PluginFunction& function, const SpmmArgs& args);
tuff_status offer_spgemm(const PluginFunction& function, const SpgemmArgs& args);
tuff_status offer_sparse_triangular_solve(const PluginFunction& function, const SparseTriangularSolveArgs& args);

namespace operations {
extern const OperationOf<SpmmArgs> spmm;
extern const OperationOf<SparseConvertArgs> sparse_convert;
extern const OperationOf<SddmmArgs> sddmm;
extern const OperationOf<SpgemmArgs> spgemm;
extern const OperationOf<SparseTriangularSolveArgs> sparse_triangular_solve;
}  // namespace operations

}  // namespace tuff
