#include "kernels/linalg/linalg.hpp"

#include <fmt/format.h>

namespace tuff {
namespace {

CallText text(int32_t dtype, const std::string& shape, uint64_t batch_count) {
  const std::string batch = batch_count != 1 ? fmt::format(" batch {}", batch_count) : "";
  return {fmt::format("{} {}{}", dtype_name(dtype), shape, batch), dtype};
}

CallText describe(const CholeskyArgs& args) {
  return text(args.dtype,
              fmt::format("{}x{} {}", args.n, args.n, args.triangle == TUFF_TRIANGLE_UPPER ? "upper" : "lower"),
              args.batch_count);
}
CallText describe(const LuArgs& args) {
  return text(args.dtype, fmt::format("{}x{}", args.m, args.n), args.batch_count);
}
CallText describe(const TriangularSolveArgs& args) {
  return text(args.dtype,
              fmt::format("{}x{} {} {} {}{}", args.m, args.n, args.side == TUFF_SIDE_RIGHT ? "right" : "left",
                          args.triangle == TUFF_TRIANGLE_UPPER ? "upper" : "lower",
                          args.transpose == TUFF_NO_TRANS ? 'n' : 't', args.unit_diagonal ? " unit" : ""),
              args.batch_count);
}
CallText describe(const LuSolveArgs& args) {
  return text(args.dtype, fmt::format("{}x{} {}", args.n, args.nrhs, args.transpose == TUFF_NO_TRANS ? 'n' : 't'),
              args.batch_count);
}
CallText describe(const LuDeterminantArgs& args) {
  return text(args.dtype, fmt::format("{}x{}", args.n, args.n), args.batch_count);
}
CallText describe(const QrArgs& args) {
  const std::string q = args.q.buffer != nullptr ? fmt::format(" q {}", args.q_columns) : "";
  return text(args.dtype, fmt::format("{}x{}{}", args.m, args.n, q), args.batch_count);
}
CallText describe(const EighArgs& args) {
  return text(args.dtype,
              fmt::format("{}x{} {}{}", args.n, args.n, args.triangle == TUFF_TRIANGLE_UPPER ? "upper" : "lower",
                          args.vectors.buffer != nullptr ? " vectors" : ""),
              args.batch_count);
}
CallText describe(const EigArgs& args) {
  return text(args.dtype, fmt::format("{}x{}{}", args.n, args.n, args.vectors.buffer != nullptr ? " vectors" : ""),
              args.batch_count);
}
CallText describe(const SvdArgs& args) {
  return text(args.dtype,
              fmt::format("{}x{}{}{}", args.m, args.n, args.u.buffer != nullptr ? " u" : "",
                          args.vt.buffer != nullptr ? " vt" : ""),
              args.batch_count);
}

}  // namespace

namespace operations {
const OperationOf<CholeskyArgs> cholesky =
    define_operation<CholeskyArgs, check_cholesky, host_cholesky, record_cholesky, describe>("cholesky",
                                                                                             linalg::kTypes);
const OperationOf<LuArgs> lu = define_operation<LuArgs, check_lu, host_lu, record_lu, describe>("lu", linalg::kTypes);
const OperationOf<TriangularSolveArgs> triangular_solve =
    define_operation<TriangularSolveArgs, check_triangular_solve, host_triangular_solve, record_triangular_solve,
                     describe>("triangular_solve", linalg::kTypes);
const OperationOf<LuSolveArgs> lu_solve =
    define_operation<LuSolveArgs, check_lu_solve, host_lu_solve, record_lu_solve, describe>("lu_solve", linalg::kTypes);
const OperationOf<LuDeterminantArgs> lu_determinant =
    define_operation<LuDeterminantArgs, check_lu_determinant, host_lu_determinant, record_lu_determinant, describe>(
        "lu_determinant", linalg::kTypes);
const OperationOf<QrArgs> qr = define_operation<QrArgs, check_qr, host_qr, record_qr, describe>("qr", linalg::kTypes);
const OperationOf<EighArgs> eigh =
    define_operation<EighArgs, check_eigh, host_eigh, record_eigh, describe>("eigh", linalg::kTypes);
const OperationOf<EigArgs> eig =
    define_operation<EigArgs, check_eig, host_eig, record_eig, describe>("eig", linalg::kTypes);
const OperationOf<SvdArgs> svd =
    define_operation<SvdArgs, check_svd, host_svd, record_svd, describe>("svd", linalg::kTypes);
}  // namespace operations

}  // namespace tuff
