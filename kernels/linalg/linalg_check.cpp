// Checks the arguments of linear algebra.
#include <fmt/format.h>

#include <initializer_list>
#include <string_view>

#include "kernels/common/check.hpp"
#include "kernels/linalg/linalg.hpp"

namespace tuff {
namespace {

// An operand while it is checked: a name for messages and the bytes that it occupies.
struct Checked {
  const char* name;
  const Buffer* buffer;
  uint64_t bytes;
};

void check_apart(const Checked& written, const Checked& other) {
  check_overlap(written.buffer, written.name, written.bytes, other.buffer, other.name, other.bytes, false);
}

// Names of a matrix and of its arguments.
struct Names {
  const char *matrix, *rows, *columns, *ld, *stride;
};

// Overlapping matrices of a batch are allowed only where they are read.
Checked check_matrix(const MatrixArgs& matrix, const Names& names, uint64_t rows, uint64_t columns, int32_t dtype,
                     uint64_t batch_count, bool written) {
  require(matrix.ld >= columns, "{} is {}, must be at least {}={}", names.ld, matrix.ld, names.columns, columns);
  if (rows == 0 || columns == 0 || batch_count == 0) return {names.matrix, nullptr, 0};
  const uint64_t one = checked_add(checked_mul(rows - 1, matrix.ld, names.matrix), columns, names.matrix);
  require(!written || batch_count == 1 || matrix.stride >= one,
          "{} is {}, must be at least {} ({}={} {}={} {}={}): the matrices of {} must not overlap", names.stride,
          matrix.stride, one, names.rows, rows, names.columns, columns, names.ld, matrix.ld, names.matrix);
  const uint64_t elements = checked_add(checked_mul(batch_count - 1, matrix.stride, names.matrix), one, names.matrix);
  check_operand(matrix.buffer, names.matrix, elements, dtype, [&] {
    return fmt::format("{}={} {}={} {}={} {}={} batch_count={}", names.rows, rows, names.columns, columns, names.ld,
                       matrix.ld, names.stride, matrix.stride, batch_count);
  });
  return {names.matrix, matrix.buffer, elements * dtype_size(dtype)};
}

// `count` numbers for each matrix. Those of two matrices may overlap only where they are read.
Checked check_each(const Buffer* numbers, const char* name, uint64_t count, uint64_t stride, int32_t dtype,
                   uint64_t batch_count, bool written) {
  if (count == 0 || batch_count == 0) return {name, nullptr, 0};
  require(!written || batch_count == 1 || stride >= count, "stride_{} is {}, must be at least {}", name, stride, count);
  const uint64_t elements = checked_add(checked_mul(batch_count - 1, stride, name), count, name);
  check_operand(numbers, name, elements, dtype, [&] {
    return fmt::format("{} for each matrix, stride_{}={} batch_count={}", count, name, stride, batch_count);
  });
  return {name, numbers, elements * dtype_size(dtype)};
}

Checked check_pivots(const Buffer* pivots, uint64_t steps, uint64_t stride, uint64_t batch_count, bool written) {
  return check_each(pivots, "pivots", steps, stride, TUFF_I32, batch_count, written);
}

Checked check_values(const Buffer* values, uint64_t count, uint64_t stride, int32_t dtype, uint64_t batch_count) {
  return check_each(values, "values", count, stride, dtype, batch_count, true);
}

// A matrix that is written, unless it is not wanted.
Checked check_wanted(const MatrixArgs& matrix, const Names& names, uint64_t rows, uint64_t columns, int32_t dtype,
                     uint64_t batch_count) {
  if (matrix.buffer == nullptr) return {names.matrix, nullptr, 0};
  return check_matrix(matrix, names, rows, columns, dtype, batch_count, true);
}

// Results overlap neither what is read nor each other.
void check_results(std::initializer_list<Checked> results, const Checked& read) {
  for (const Checked* result = results.begin(); result != results.end(); ++result) {
    check_apart(*result, read);
    for (const Checked* other = results.begin(); other != result; ++other) check_apart(*result, *other);
  }
}

// One number for each matrix; null: not wanted.
Checked check_numbers(const Buffer* numbers, const char* name, int32_t dtype, uint64_t batch_count) {
  if (numbers == nullptr || batch_count == 0) return {name, nullptr, 0};
  check_operand(numbers, name, batch_count, dtype, [&] { return fmt::format("batch_count={}", batch_count); });
  return {name, numbers, batch_count * dtype_size(dtype)};
}

constexpr Names kSquare = {"a", "n", "n", "lda", "stride_a"};
constexpr Names kSquareVectors = {"vectors", "n", "n", "ld_vectors", "stride_vectors"};

}  // namespace

void check_cholesky(const CholeskyArgs& args) {
  check_known_type(args.dtype, "dtype");
  check_type(args.dtype, linalg::kTypes, "cholesky");
  check_triangle(args.triangle);
  const Checked a = check_matrix(args.a, kSquare, args.n, args.n, args.dtype, args.batch_count, true);
  check_apart(check_numbers(args.info, "info", TUFF_I32, args.batch_count), a);
}

void check_lu(const LuArgs& args) {
  check_known_type(args.dtype, "dtype");
  check_type(args.dtype, linalg::kTypes, "lu");
  constexpr Names kNames = {"a", "m", "n", "lda", "stride_a"};
  const Checked a = check_matrix(args.a, kNames, args.m, args.n, args.dtype, args.batch_count, true);
  const Checked pivots = check_pivots(args.pivots, args.steps(), args.stride_pivots, args.batch_count, true);
  const Checked info = check_numbers(args.info, "info", TUFF_I32, args.batch_count);
  check_apart(pivots, a);
  check_apart(info, a);
  check_apart(info, pivots);
}

void check_triangular_solve(const TriangularSolveArgs& args) {
  check_known_type(args.dtype, "dtype");
  check_type(args.dtype, linalg::kTypes, "triangular_solve");
  require(args.side == TUFF_SIDE_LEFT || args.side == TUFF_SIDE_RIGHT, "side is {}, must be TUFF_SIDE_LEFT or _RIGHT",
          args.side);
  check_triangle(args.triangle);
  check_transpose(args.transpose, "transpose");
  const char* const extent = args.side == TUFF_SIDE_RIGHT ? "n" : "m";
  const bool empty = args.m == 0 || args.n == 0;
  const uint64_t count = empty ? 0 : args.batch_count;
  const Checked a = check_matrix(args.a, {"a", extent, extent, "lda", "stride_a"}, args.extent(), args.extent(),
                                 args.dtype, count, false);
  const Checked b = check_matrix(args.b, {"b", "m", "n", "ldb", "stride_b"}, args.m, args.n, args.dtype, count, true);
  check_apart(b, a);
}

void check_lu_solve(const LuSolveArgs& args) {
  check_known_type(args.dtype, "dtype");
  check_type(args.dtype, linalg::kTypes, "lu_solve");
  check_transpose(args.transpose, "transpose");
  const uint64_t count = args.n == 0 || args.nrhs == 0 ? 0 : args.batch_count;
  const Checked a = check_matrix(args.a, kSquare, args.n, args.n, args.dtype, count, false);
  const Checked pivots = check_pivots(args.pivots, args.n, args.stride_pivots, count, false);
  const Checked b =
      check_matrix(args.b, {"b", "n", "nrhs", "ldb", "stride_b"}, args.n, args.nrhs, args.dtype, count, true);
  check_apart(b, a);
  check_apart(b, pivots);
}

void check_lu_determinant(const LuDeterminantArgs& args) {
  check_known_type(args.dtype, "dtype");
  check_type(args.dtype, linalg::kTypes, "lu_determinant");
  const bool wanted = args.determinant != nullptr || args.sign != nullptr || args.log_magnitude != nullptr;
  const uint64_t count = wanted ? args.batch_count : 0;
  const Checked a = check_matrix(args.a, kSquare, args.n, args.n, args.dtype, count, false);
  const Checked pivots = check_pivots(args.pivots, args.n, args.stride_pivots, count, false);
  const Checked results[] = {check_numbers(args.determinant, "determinant", args.dtype, args.batch_count),
                             check_numbers(args.sign, "sign", args.dtype, args.batch_count),
                             check_numbers(args.log_magnitude, "log_magnitude", args.dtype, args.batch_count)};
  for (size_t i = 0; i < std::size(results); ++i) {
    check_apart(results[i], a);
    check_apart(results[i], pivots);
    for (size_t j = 0; j < i; ++j) check_apart(results[i], results[j]);
  }
}

void check_qr(const QrArgs& args) {
  check_known_type(args.dtype, "dtype");
  check_type(args.dtype, linalg::kTypes, "qr");
  require(args.q_columns >= args.steps() && args.q_columns <= args.m,
          "columns_q is {}, must be from min(m, n)={} to m={}", args.q_columns, args.steps(), args.m);
  const Checked a =
      check_matrix(args.a, {"a", "m", "n", "lda", "stride_a"}, args.m, args.n, args.dtype, args.batch_count, true);
  check_apart(check_wanted(args.q, {"q", "m", "columns_q", "ldq", "stride_q"}, args.m, args.q_columns, args.dtype,
                           args.batch_count),
              a);
}

void check_eigh(const EighArgs& args) {
  check_known_type(args.dtype, "dtype");
  check_type(args.dtype, linalg::kTypes, "eigh");
  check_triangle(args.triangle);
  const uint64_t n = args.n, count = args.batch_count;
  const Checked a = check_matrix(args.a, kSquare, n, n, args.dtype, count, false);
  check_results(
      {check_values(args.values, n, args.stride_values, args.dtype, count),
       check_wanted(args.vectors, kSquareVectors, n, n, args.dtype, count),
       check_numbers(args.info, "info", TUFF_I32, count)},
      a);
}

void check_eig(const EigArgs& args) {
  check_known_type(args.dtype, "dtype");
  check_type(args.dtype, linalg::kTypes, "eig");
  const int32_t results = args.dtype == TUFF_F64 ? TUFF_C128 : TUFF_C64;
  const uint64_t n = args.n, count = args.batch_count;
  const Checked a = check_matrix(args.a, kSquare, n, n, args.dtype, count, false);
  check_results({check_values(args.values, n, args.stride_values, results, count),
                 check_wanted(args.vectors, kSquareVectors, n, n, results, count),
                 check_numbers(args.info, "info", TUFF_I32, count)},
                a);
}

void check_svd(const SvdArgs& args) {
  check_known_type(args.dtype, "dtype");
  check_type(args.dtype, linalg::kTypes, "svd");
  const uint64_t m = args.m, n = args.n, k = args.steps(), count = args.batch_count;
  const Checked a = check_matrix(args.a, {"a", "m", "n", "lda", "stride_a"}, m, n, args.dtype, count, false);
  check_results({check_values(args.values, k, args.stride_values, args.dtype, count),
                 check_wanted(args.u, {"u", "m", "k", "ldu", "stride_u"}, m, k, args.dtype, count),
                 check_wanted(args.vt, {"vt", "k", "n", "ldvt", "stride_vt"}, k, n, args.dtype, count),
                 check_numbers(args.info, "info", TUFF_I32, count)},
                a);
}

}  // namespace tuff
