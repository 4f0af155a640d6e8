#include "kernels/sparse/sparse.hpp"

#include <fmt/format.h>

namespace tuff {
namespace {

const char* name_of_format(int32_t format) {
  constexpr const char* kNames[] = {"coo", "csr", "csc", "dense", "bsr"};
  return kNames[format];
}

CallText describe(const SpmmArgs& args) {
  const std::string entries =
      args.blocks.elements() == 1 ? "entries" : fmt::format("blocks of {}x{}", args.blocks.rows, args.blocks.columns);
  return {fmt::format("{} {}x{}{} {} {} {} {}{}", dtype_name(args.dtype), args.rows, args.columns,
                      args.transposed() ? " transposed" : "", args.nnz, entries, args.on_right() ? "right n" : "n",
                      args.n, args.batch_count != 1 ? fmt::format(" batch {}", args.batch_count) : ""),
          args.dtype};
}
CallText describe(const SparseConvertArgs& args) {
  const std::string entries =
      args.from_format != TUFF_SPARSE_DENSE ? fmt::format(" {} entries", args.nnz) : std::string();
  return {fmt::format("{} {}x{}{} {} to {}", dtype_name(args.dtype), args.rows, args.columns, entries,
                      name_of_format(args.from_format), name_of_format(args.to_format)),
          args.dtype};
}

CallText describe(const SddmmArgs& args) {
  return {fmt::format("{} {}x{} {} places in {} k {}{}{}", dtype_name(args.dtype), args.rows, args.columns, args.nnz,
                      name_of_format(args.format), args.k, args.transposed() ? " transposed" : "",
                      args.batch_count != 1 ? fmt::format(" batch {}", args.batch_count) : ""),
          args.dtype};
}

CallText describe(const SpgemmArgs& args) {
  return {fmt::format("{} {}x{}x{} {} by {} entries, {} terms", dtype_name(args.dtype), args.rows, args.inner,
                      args.columns, args.a_nnz, args.b_nnz, args.max_terms),
          args.dtype};
}

CallText describe(const SparseTriangularSolveArgs& args) {
  return {fmt::format("{} {} {}{} {} entries n {}{}", dtype_name(args.dtype), args.rows,
                      args.triangle == TUFF_TRIANGLE_LOWER ? "lower" : "upper", args.transposed() ? " transposed" : "",
                      args.nnz, args.n, args.levels_ready ? " levels ready" : ""),
          args.dtype};
}

}  // namespace

namespace operations {
const OperationOf<SpmmArgs> spmm =
    define_operation<SpmmArgs, check_spmm, host_spmm, record_spmm, describe, nullptr, offer_spmm>("spmm",
                                                                                                  sparse::kTypes);
const OperationOf<SparseConvertArgs> sparse_convert =
    define_operation<SparseConvertArgs, check_sparse_convert, host_sparse_convert, record_sparse_convert, describe>(
        "sparse_convert", sparse::kTypes);
const OperationOf<SddmmArgs> sddmm =
    define_operation<SddmmArgs, check_sddmm, host_sddmm, record_sddmm, describe>("sddmm", sparse::kTypes);
const OperationOf<SpgemmArgs> spgemm =
    define_operation<SpgemmArgs, check_spgemm, host_spgemm, record_spgemm, describe, nullptr, offer_spgemm>(
        "spgemm", sparse::kTypes);
const OperationOf<SparseTriangularSolveArgs> sparse_triangular_solve =
    define_operation<SparseTriangularSolveArgs, check_sparse_triangular_solve, host_sparse_triangular_solve,
                     record_sparse_triangular_solve, describe, nullptr, offer_sparse_triangular_solve>(
        "sparse_triangular_solve", sparse::kTypes);
}  // namespace operations

}  // namespace tuff
