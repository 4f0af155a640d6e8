// Cases of sparse matrices, which are made from dense ones: the elements above 180 of those from -300 to 300, a fifth
// of them.
#include "tool/selftest_cases.hpp"

namespace tool {
namespace {

constexpr uint64_t kRows = 200, kColumns = 150, kAll = kRows * kColumns, kN = 3;

// A matrix on a device, with room for all elements.
struct Matrix {
  tuff::Buffer rows, columns, values;
};
Matrix matrix_of(const tuff::Context& context, int32_t format) {
  const uint64_t row_numbers = format == TUFF_SPARSE_CSR ? kRows + 1 : kAll;
  const uint64_t column_numbers = format == TUFF_SPARSE_CSC ? kColumns + 1 : kAll;
  return {context.alloc<int32_t>(row_numbers), context.alloc<int32_t>(column_numbers), context.alloc<float>(kAll)};
}

tuff_sparse_convert_desc conversion(int32_t from, int32_t to) {
  tuff_sparse_convert_desc desc{};
  desc.dtype = TUFF_F32, desc.index_type = TUFF_I32, desc.from_format = from, desc.to_format = to;
  desc.rows = kRows, desc.columns = kColumns, desc.nnz = desc.capacity = kAll;
  return desc;
}
void set_source(tuff_sparse_convert_desc& desc, const Matrix& m) {
  desc.from_rows = m.rows.handle(), desc.from_columns = m.columns.handle(), desc.from_values = m.values.handle();
}
void set_result(tuff_sparse_convert_desc& desc, const Matrix& m) {
  desc.to_rows = m.rows.handle(), desc.to_columns = m.columns.handle(), desc.to_values = m.values.handle();
}

Matrix from_dense(const tuff::Context& context, const tuff::Buffer& x, int32_t format) {
  const tuff::Expr expr = context.expression("x > 180 ? x : 0", {{"x", TUFF_F32, 0}}, {{"y", TUFF_F32, 0}});
  const tuff::Buffer few = context.alloc<float>(kAll);
  tuff_expr_operand from{}, to{};
  from.buffer = x.handle(), to.buffer = few.handle();
  expr.run(context.handle(), {kAll}, {from}, {to});
  Matrix result = matrix_of(context, format);
  tuff_sparse_convert_desc desc = conversion(TUFF_SPARSE_DENSE, format);
  desc.from_values = few.handle();
  set_result(desc, result);
  context.sparse_convert(desc);
  return result;
}

}  // namespace

void add_sparse_cases(std::vector<Case>& cases) {
  // Rows of at most 150 products of at most 300 * 300.
  const double bound = gamma(kColumns + 4) * kColumns * 300 * 300;
  cases.push_back(within(exact_case("spmm", "200x150, a fifth of it, by 150x3", {kAll, kColumns * kN}, kRows * kN,
                                    [](const tuff::Context& context, const Buffers& in, const auto& out) {
                                      const Matrix a = from_dense(context, in[0], TUFF_SPARSE_CSR);
                                      tuff_spmm_desc desc{};
                                      desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
                                      desc.rows = kRows, desc.columns = kColumns, desc.nnz = kAll, desc.n = kN;
                                      desc.alpha = 1, desc.batch_count = 1;
                                      desc.offsets = a.rows.handle(), desc.indices = a.columns.handle();
                                      desc.values = a.values.handle(), desc.b = in[1].handle(), desc.c = out.handle();
                                      context.spmm(desc);
                                    }),
                         bound));
  // The same by blocks of 4 x 5, from the matrix in CSR.
  cases.push_back(within(exact_case("spmm", "200x150, in blocks of 4x5, by 150x3", {kAll, kColumns * kN}, kRows * kN,
                                    [](const tuff::Context& context, const Buffers& in, const auto& out) {
                                      const Matrix csr = from_dense(context, in[0], TUFF_SPARSE_CSR);
                                      const Matrix a = matrix_of(context, TUFF_SPARSE_CSR);
                                      tuff_sparse_convert_desc blocks = conversion(TUFF_SPARSE_CSR, TUFF_SPARSE_BSR);
                                      blocks.to_block_rows = 4, blocks.to_block_columns = 5;
                                      blocks.capacity = kAll / 20;
                                      set_source(blocks, csr), set_result(blocks, a);
                                      context.sparse_convert(blocks);
                                      tuff_spmm_desc desc{};
                                      desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
                                      desc.rows = kRows, desc.columns = kColumns, desc.nnz = kAll / 20, desc.n = kN;
                                      desc.alpha = 1, desc.batch_count = 1, desc.block_rows = 4;
                                      desc.block_columns = 5, desc.offsets = a.rows.handle();
                                      desc.indices = a.columns.handle(), desc.values = a.values.handle();
                                      desc.b = in[1].handle(), desc.c = out.handle();
                                      context.spmm(desc);
                                    }),
                         bound));
  // At the places of a fifth of the elements: sums of kN products of at most 300 * 300.
  cases.push_back(
      within(exact_case("sddmm", "200x3 by 3x150 at a fifth of the places", {kAll, kRows * kN, kColumns * kN}, kAll,
                        [](const tuff::Context& context, const Buffers& in, const auto& out) {
                          const Matrix a = from_dense(context, in[0], TUFF_SPARSE_COO);
                          tuff_sddmm_desc desc{};
                          desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
                          desc.place_format = TUFF_SPARSE_COO, desc.rows = kRows, desc.columns = kColumns;
                          desc.nnz = kAll, desc.k = kN, desc.alpha = 1, desc.batch_count = 1;
                          desc.place_rows = a.rows.handle(), desc.place_columns = a.columns.handle();
                          desc.a = in[1].handle(), desc.b = in[2].handle(), desc.values = out.handle();
                          context.sddmm(desc);
                        }),
             gamma(kN + 5) * kN * 300 * 300));
  cases.push_back(exact_case("sparse_convert", "200x150, dense to CSC to COO to dense", {kAll}, kAll,
                             [](const tuff::Context& context, const Buffers& in, const auto& out) {
                               const Matrix csc = from_dense(context, in[0], TUFF_SPARSE_CSC);
                               const Matrix coo = matrix_of(context, TUFF_SPARSE_COO);
                               tuff_sparse_convert_desc desc = conversion(TUFF_SPARSE_CSC, TUFF_SPARSE_COO);
                               set_source(desc, csc), set_result(desc, coo);
                               context.sparse_convert(desc);
                               desc = conversion(TUFF_SPARSE_COO, TUFF_SPARSE_DENSE);
                               set_source(desc, coo);
                               desc.to_values = out.handle();
                               context.sparse_convert(desc);
                             }));
  // A * A^T with A of a fifth of the elements, by its two formats: sums of at most 150 products.
  cases.push_back(
      within(exact_case("spgemm", "200x150, a fifth of it, by its transpose", {kAll}, kRows * kRows,
                        [](const tuff::Context& context, const Buffers& in, const auto& out) {
                          const Matrix a = from_dense(context, in[0], TUFF_SPARSE_CSR);
                          const Matrix b = from_dense(context, in[0], TUFF_SPARSE_CSC);  // the buffers of A^T in CSR
                          const tuff::Buffer offsets = context.alloc<int32_t>(kRows + 1);
                          const tuff::Buffer indices = context.alloc<int32_t>(kRows * kRows);
                          const tuff::Buffer values = context.alloc<float>(kRows * kRows);
                          tuff_spgemm_desc desc{};
                          desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
                          desc.rows = desc.columns = kRows, desc.inner = kColumns, desc.a_nnz = desc.b_nnz = kAll;
                          desc.max_terms = kRows * kRows * kColumns / 10, desc.capacity = kRows * kRows;
                          desc.a_offsets = a.rows.handle(), desc.a_indices = a.columns.handle();
                          desc.a_values = a.values.handle(), desc.b_offsets = b.columns.handle();
                          desc.b_indices = b.rows.handle(), desc.b_values = b.values.handle();
                          desc.c_offsets = offsets.handle(), desc.c_indices = indices.handle();
                          desc.c_values = values.handle();
                          context.spgemm(desc);
                          tuff_sparse_convert_desc dense{};
                          dense.dtype = TUFF_F32, dense.index_type = TUFF_I32, dense.from_format = TUFF_SPARSE_CSR;
                          dense.to_format = TUFF_SPARSE_DENSE, dense.rows = dense.columns = kRows;
                          dense.nnz = kRows * kRows, dense.from_rows = offsets.handle();
                          dense.from_columns = indices.handle(), dense.from_values = values.handle();
                          dense.to_values = out.handle();
                          context.sparse_convert(dense);
                        }),
             bound));
  // x(i) = b(i) + x(i - 2): sums of at most 100 numbers of at most 300.
  cases.push_back(within(
      exact_case("sparse_triangular_solve", "200x200, a band of two, by 200x3", {kRows * kN}, kRows * kN,
                 [](const tuff::Context& context, const Buffers& in, const auto& out) {
                   std::vector<int32_t> offsets(kRows + 1), indices;
                   std::vector<float> values;
                   for (uint64_t i = 0; i < kRows; ++i) {
                     if (i >= 2) indices.push_back(static_cast<int32_t>(i - 2)), values.push_back(-1);
                     offsets[i + 1] = static_cast<int32_t>(indices.size());
                   }
                   tuff::Buffer o = context.alloc<int32_t>(offsets.size()), j = context.alloc<int32_t>(indices.size()),
                                v = context.alloc<float>(values.size());
                   o.upload(offsets), j.upload(indices), v.upload(values);
                   tuff_sparse_triangular_solve_desc desc{};
                   desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
                   desc.triangle = TUFF_TRIANGLE_LOWER, desc.unit_diagonal = 1, desc.rows = kRows;
                   desc.nnz = indices.size(), desc.n = kN, desc.alpha = 1, desc.offsets = o.handle();
                   desc.indices = j.handle(), desc.values = v.handle(), desc.b = in[0].handle();
                   desc.x = out.handle();
                   context.sparse_triangular_solve(desc);
                 }),
      gamma(101) * 100 * 300));
}

}  // namespace tool
