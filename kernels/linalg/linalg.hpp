// Linear algebra: Cholesky, LU and QR factorisations, triangular systems, what follows from an LU factorisation,
// eigenvalues and singular values.
#pragma once

#include <algorithm>
#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/element_type.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

// The matrices of a batch. Matrix i starts i * stride elements into the buffer; its rows are ld elements apart.
struct MatrixArgs {
  const Buffer* buffer;
  uint64_t ld, stride;
};

struct CholeskyArgs {
  int32_t dtype, triangle;
  uint64_t n;
  MatrixArgs a;
  const Buffer* info;
  uint64_t batch_count;
};

struct LuArgs {
  int32_t dtype;
  uint64_t m, n;
  MatrixArgs a;
  const Buffer* pivots;
  uint64_t stride_pivots;
  const Buffer* info;
  uint64_t batch_count;

  uint64_t steps() const { return std::min(m, n); }
};

struct TriangularSolveArgs {
  int32_t dtype, side, triangle, transpose;
  bool unit_diagonal;
  uint64_t m, n;
  MatrixArgs a, b;
  uint64_t batch_count;

  uint64_t extent() const { return side == TUFF_SIDE_RIGHT ? n : m; }  // of A
};

struct LuSolveArgs {
  int32_t dtype, transpose;
  uint64_t n, nrhs;
  MatrixArgs a, b;
  const Buffer* pivots;
  uint64_t stride_pivots;
  uint64_t batch_count;
};

struct LuDeterminantArgs {
  int32_t dtype;
  uint64_t n;
  MatrixArgs a;
  const Buffer* pivots;
  uint64_t stride_pivots;
  const Buffer *determinant, *sign, *log_magnitude;
  uint64_t batch_count;
};

struct QrArgs {
  int32_t dtype;
  uint64_t m, n;
  MatrixArgs a, q;  // q.buffer is null if Q is not wanted
  uint64_t q_columns;
  uint64_t batch_count;

  uint64_t steps() const { return std::min(m, n); }
};

struct EighArgs {
  int32_t dtype, triangle;
  uint64_t n;
  MatrixArgs a;
  const Buffer* values;
  uint64_t stride_values;
  MatrixArgs vectors;  // their buffer is null if they are not wanted
  const Buffer* info;
  uint64_t batch_count;
};

struct EigArgs {
  int32_t dtype;
  uint64_t n;
  MatrixArgs a;
  const Buffer* values;  // complex numbers, as the vectors
  uint64_t stride_values;
  MatrixArgs vectors;  // their buffer is null if they are not wanted
  const Buffer* info;
  uint64_t batch_count;
};

struct SvdArgs {
  int32_t dtype;
  uint64_t m, n;
  MatrixArgs a;
  const Buffer* values;
  uint64_t stride_values;
  MatrixArgs u, vt;  // buffers are null where they are not wanted
  const Buffer* info;
  uint64_t batch_count;

  uint64_t steps() const { return std::min(m, n); }
};

namespace linalg {
inline constexpr ElementTypes kTypes = {TUFF_F32, TUFF_F64};
}  // namespace linalg

void check_cholesky(const CholeskyArgs& args);
void check_lu(const LuArgs& args);
void check_triangular_solve(const TriangularSolveArgs& args);
void check_lu_solve(const LuSolveArgs& args);
void check_lu_determinant(const LuDeterminantArgs& args);
void check_qr(const QrArgs& args);
void check_eigh(const EighArgs& args);
void check_eig(const EigArgs& args);
void check_svd(const SvdArgs& args);

void host_cholesky(const CholeskyArgs& args);
void host_lu(const LuArgs& args);
void host_triangular_solve(const TriangularSolveArgs& args);
void host_lu_solve(const LuSolveArgs& args);
void host_lu_determinant(const LuDeterminantArgs& args);
void host_qr(const QrArgs& args);
void host_eigh(const EighArgs& args);
void host_eig(const EigArgs& args);
void host_svd(const SvdArgs& args);

void record_cholesky(Recorder& recorder, const CholeskyArgs& args);
void record_lu(Recorder& recorder, const LuArgs& args);
void record_triangular_solve(Recorder& recorder, const TriangularSolveArgs& args);
void record_lu_solve(Recorder& recorder, const LuSolveArgs& args);
void record_lu_determinant(Recorder& recorder, const LuDeterminantArgs& args);
void record_qr(Recorder& recorder, const QrArgs& args);
void record_eigh(Recorder& recorder, const EighArgs& args);
void record_eig(Recorder& recorder, const EigArgs& args);
void record_svd(Recorder& recorder, const SvdArgs& args);

namespace operations {
extern const OperationOf<CholeskyArgs> cholesky;
extern const OperationOf<LuArgs> lu;
extern const OperationOf<TriangularSolveArgs> triangular_solve;
extern const OperationOf<LuSolveArgs> lu_solve;
extern const OperationOf<LuDeterminantArgs> lu_determinant;
extern const OperationOf<QrArgs> qr;
extern const OperationOf<EighArgs> eigh;
extern const OperationOf<EigArgs> eig;
extern const OperationOf<SvdArgs> svd;
}  // namespace operations

}  // namespace tuff
