// Entry points of the header's "Sparse matrices" group.
#include "kernels/sparse/sparse.hpp"

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

namespace {

// Blocks of a matrix in BSR, where 0 stands for 1. The extents of those of other formats are not read; an order that
// there is not is refused all the same.
tuff::sparse::Blocks blocks_of(bool used, uint32_t rows, uint32_t columns, int32_t order) {
  if (!used) return {1, 1, order};
  return {rows != 0 ? rows : 1, columns != 0 ? columns : 1, order};
}

}  // namespace

extern "C" {

tuff_status tuff_spmm(tuff_stream stream, const tuff_spmm_desc* desc) {
  return guarded("tuff_spmm", [&] {
    const tuff_spmm_desc wanted = read_structure(desc, "desc");
    tuff::require_reserved(wanted.reserved);
    tuff::require_reserved(wanted.reserved2, "desc->reserved2");
    const auto target = acquire_stream(stream);
    const Operand offsets(target, wanted.offsets, "offsets"), indices(target, wanted.indices, "indices"),
        values(target, wanted.values, "values"), b(target, wanted.b, "b"), c(target, wanted.c, "c");
    tuff::SpmmArgs args{wanted.dtype,
                        wanted.index_type,
                        wanted.transpose,
                        wanted.side,
                        wanted.rows,
                        wanted.columns,
                        wanted.nnz,
                        wanted.n,
                        wanted.alpha,
                        wanted.beta,
                        offsets,
                        indices,
                        values,
                        b,
                        c,
                        wanted.ldb,
                        wanted.ldc,
                        wanted.stride_values,
                        wanted.stride_b,
                        wanted.stride_c,
                        wanted.batch_count,
                        blocks_of(true, wanted.block_rows, wanted.block_columns, wanted.block_order)};
    // Dense rows.
    if (args.ldb == 0) args.ldb = tuff::sparse::dense_b(args).columns;
    if (args.ldc == 0) args.ldc = tuff::sparse::dense_c(args).columns;
    target->run(tuff::operations::spmm(args));
  });
}

tuff_status tuff_sparse_convert(tuff_stream stream, const tuff_sparse_convert_desc* desc) {
  return guarded("tuff_sparse_convert", [&] {
    const tuff_sparse_convert_desc wanted = read_structure(desc, "desc");
    tuff::require_reserved(wanted.reserved);
    const auto target = acquire_stream(stream);
    const Operand from_rows(target, wanted.from_rows, "from_rows"),
        from_columns(target, wanted.from_columns, "from_columns"),
        from_values(target, wanted.from_values, "from_values"), to_rows(target, wanted.to_rows, "to_rows"),
        to_columns(target, wanted.to_columns, "to_columns"), to_values(target, wanted.to_values, "to_values"),
        count(target, wanted.count, "count");
    const tuff::sparse::Blocks from = blocks_of(wanted.from_format == TUFF_SPARSE_BSR, wanted.from_block_rows,
                                                wanted.from_block_columns, wanted.from_block_order),
                               to = blocks_of(wanted.to_format == TUFF_SPARSE_BSR, wanted.to_block_rows,
                                              wanted.to_block_columns, wanted.to_block_order);
    target->run(tuff::operations::sparse_convert({wanted.dtype, wanted.index_type, wanted.from_format, wanted.to_format,
                                                  wanted.rows, wanted.columns, wanted.nnz, wanted.capacity, from_rows,
                                                  from_columns, from_values, to_rows, to_columns, to_values,
                                                  wanted.from_ld != 0 ? wanted.from_ld : wanted.columns,
                                                  wanted.to_ld != 0 ? wanted.to_ld : wanted.columns, count, from, to}));
  });
}

tuff_status tuff_sddmm(tuff_stream stream, const tuff_sddmm_desc* desc) {
  return guarded("tuff_sddmm", [&] {
    const tuff_sddmm_desc wanted = read_structure(desc, "desc");
    tuff::require_reserved(wanted.reserved);
    const auto target = acquire_stream(stream);
    const Operand place_rows(target, wanted.place_rows, "place_rows"),
        place_columns(target, wanted.place_columns, "place_columns"), scales(target, wanted.scales, "scales"),
        a(target, wanted.a, "a"), b(target, wanted.b, "b"), values(target, wanted.values, "values");
    tuff::SddmmArgs args{wanted.dtype,
                         wanted.index_type,
                         wanted.place_format,
                         wanted.transpose,
                         wanted.rows,
                         wanted.columns,
                         wanted.nnz,
                         wanted.k,
                         wanted.alpha,
                         wanted.beta,
                         place_rows,
                         place_columns,
                         scales,
                         a,
                         b,
                         values,
                         wanted.lda,
                         wanted.ldb,
                         wanted.stride_scales,
                         wanted.stride_a,
                         wanted.stride_b,
                         wanted.stride_values,
                         wanted.batch_count};
    if (args.lda == 0) args.lda = tuff::sparse::dense_a(args).columns;
    if (args.ldb == 0) args.ldb = tuff::sparse::dense_b(args).columns;
    target->run(tuff::operations::sddmm(args));
  });
}

tuff_status tuff_spgemm(tuff_stream stream, const tuff_spgemm_desc* desc) {
  return guarded("tuff_spgemm", [&] {
    const tuff_spgemm_desc wanted = read_structure(desc, "desc");
    tuff::require_reserved(wanted.reserved);
    const auto target = acquire_stream(stream);
    const Operand a_offsets(target, wanted.a_offsets, "a_offsets"), a_indices(target, wanted.a_indices, "a_indices"),
        a_values(target, wanted.a_values, "a_values"), b_offsets(target, wanted.b_offsets, "b_offsets"),
        b_indices(target, wanted.b_indices, "b_indices"), b_values(target, wanted.b_values, "b_values"),
        c_offsets(target, wanted.c_offsets, "c_offsets"), c_indices(target, wanted.c_indices, "c_indices"),
        c_values(target, wanted.c_values, "c_values"), count(target, wanted.count, "count"),
        terms(target, wanted.terms, "terms");
    target->run(tuff::operations::spgemm(
        {wanted.dtype,     wanted.index_type, wanted.rows, wanted.inner, wanted.columns, wanted.a_nnz, wanted.b_nnz,
         wanted.max_terms, wanted.capacity,   a_offsets,   a_indices,    a_values,       b_offsets,    b_indices,
         b_values,         c_offsets,         c_indices,   c_values,     count,          terms}));
  });
}

tuff_status tuff_sparse_triangular_solve(tuff_stream stream, const tuff_sparse_triangular_solve_desc* desc) {
  return guarded("tuff_sparse_triangular_solve", [&] {
    const tuff_sparse_triangular_solve_desc wanted = read_structure(desc, "desc");
    tuff::require_reserved(wanted.reserved);
    tuff::require_flag(wanted.unit_diagonal, "desc->unit_diagonal");
    tuff::require_flag(wanted.levels_ready, "desc->levels_ready");
    const auto target = acquire_stream(stream);
    const Operand offsets(target, wanted.offsets, "offsets"), indices(target, wanted.indices, "indices"),
        values(target, wanted.values, "values"), levels(target, wanted.levels, "levels"), b(target, wanted.b, "b"),
        x(target, wanted.x, "x");
    target->run(tuff::operations::sparse_triangular_solve(
        {wanted.dtype, wanted.index_type, wanted.triangle, wanted.transpose, wanted.unit_diagonal != 0,
         wanted.levels_ready != 0, wanted.rows, wanted.nnz, wanted.n, wanted.alpha, offsets, indices, values, levels, b,
         x, wanted.ldb != 0 ? wanted.ldb : wanted.n, wanted.ldx != 0 ? wanted.ldx : wanted.n}));
  });
}

}  // extern "C"
