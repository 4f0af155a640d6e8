// Products and systems of sparse matrices as plug-ins see them.
#include "kernels/common/plugin_call.hpp"
#include "kernels/sparse/sparse.hpp"

namespace tuff {

tuff_status offer_spmm(const PluginFunction& function, const SpmmArgs& args) {
  if (args.batch_count == 0 || sparse::dense_c(args).one() == 0) return TUFF_ERROR_UNSUPPORTED;
  if (args.blocks.elements() != 1) return TUFF_ERROR_UNSUPPORTED;  // plug-ins compute products in CSR
  auto call = new_call<tuff_spmm_desc>();
  call.dtype = args.dtype, call.index_type = args.index_type;
  call.transpose = args.transpose, call.side = args.side;
  call.rows = args.rows, call.columns = args.columns, call.nnz = args.nnz, call.n = args.n;
  call.alpha = args.alpha, call.beta = args.beta;
  call.offsets = address_of(args.offsets), call.indices = address_of(args.indices);
  call.values = address_of(args.values);
  call.b = address_of(args.b), call.c = address_of(args.c);
  call.ldb = args.ldb, call.ldc = args.ldc;
  call.stride_values = args.stride_values, call.stride_b = args.stride_b, call.stride_c = args.stride_c;
  call.batch_count = args.batch_count;
  return function(call);
}

tuff_status offer_spgemm(const PluginFunction& function, const SpgemmArgs& args) {
  if (!args.multiplies()) return TUFF_ERROR_UNSUPPORTED;
  auto call = new_call<tuff_spgemm_desc>();
  call.dtype = args.dtype, call.index_type = args.index_type;
  call.rows = args.rows, call.inner = args.inner, call.columns = args.columns;
  call.a_nnz = args.a_nnz, call.b_nnz = args.b_nnz;
  call.max_terms = args.max_terms, call.capacity = args.capacity;
  call.a_offsets = address_of(args.a_offsets), call.a_indices = address_of(args.a_indices);
  call.a_values = address_of(args.a_values);
  call.b_offsets = address_of(args.b_offsets), call.b_indices = address_of(args.b_indices);
  call.b_values = address_of(args.b_values);
  call.c_offsets = address_of(args.c_offsets), call.c_indices = address_of(args.c_indices);
  call.c_values = address_of(args.c_values);
  call.count = address_of(args.count), call.terms = address_of(args.terms);
  return function(call);
}

tuff_status offer_sparse_triangular_solve(const PluginFunction& function, const SparseTriangularSolveArgs& args) {
  const bool finds = args.levels != nullptr && !args.levels_ready;
  if (args.rows == 0 || args.nnz == 0 || (args.n == 0 && !finds)) return TUFF_ERROR_UNSUPPORTED;
  auto call = new_call<tuff_sparse_triangular_solve_desc>();
  call.dtype = args.dtype, call.index_type = args.index_type;
  call.triangle = args.triangle, call.transpose = args.transpose;
  call.unit_diagonal = args.unit_diagonal ? 1 : 0, call.levels_ready = args.levels_ready ? 1 : 0;
  call.rows = args.rows, call.nnz = args.nnz, call.n = args.n;
  call.alpha = args.alpha;
  call.offsets = address_of(args.offsets), call.indices = address_of(args.indices);
  call.values = address_of(args.values), call.levels = address_of(args.levels);
  call.b = address_of(args.b), call.x = address_of(args.x);
  call.ldb = args.ldb, call.ldx = args.ldx;
  return function(call);
}

}  // namespace tuff
