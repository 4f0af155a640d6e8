// What a matrix product requires of its arguments.
#include <fmt/format.h>

#include <string>

#include "kernels/common/check.hpp"
#include "kernels/gemm/gemm.hpp"

namespace tuff {
namespace {

void check_transpose(int32_t transpose, const char* name) {
  require(transpose == TUFF_NO_TRANS || transpose == TUFF_TRANS || transpose == TUFF_CONJ_TRANS,
          "{} is {}, must be TUFF_NO_TRANS, TUFF_TRANS or TUFF_CONJ_TRANS", name, transpose);
}

// Elements from a matrix's first to its last, both included: the last row has no padding behind it.
uint64_t footprint(uint64_t rows, uint64_t cols, uint64_t ld, const char* name) {
  return rows == 0 || cols == 0 ? 0 : checked_add(checked_mul(rows - 1, ld, name), cols, name);
}

uint64_t batch_footprint(uint64_t matrix, uint64_t stride, uint64_t batch_count, const char* name) {
  return matrix == 0 ? 0 : checked_add(checked_mul(batch_count - 1, stride, name), matrix, name);
}

std::string describe(const char* rows_name, uint64_t rows, const char* cols_name, uint64_t cols, const char* ld_name,
                     uint64_t ld, uint64_t stride, const GemmArgs& args) {
  std::string text = fmt::format("{}={} {}={} {}={}", rows_name, rows, cols_name, cols, ld_name, ld);
  if (args.batch_count > 1) text += fmt::format(" stride={} batch_count={}", stride, args.batch_count);
  return text;
}

}  // namespace

void check_gemm(const GemmArgs& args) {
  for (const int32_t type : {args.a_type, args.b_type, args.c_type}) check_f32_only(type);
  check_transpose(args.ta, "ta");
  check_transpose(args.tb, "tb");
  // The matrices as they are stored.
  const bool ta = args.ta != TUFF_NO_TRANS, tb = args.tb != TUFF_NO_TRANS;
  const uint64_t a_rows = ta ? args.k : args.m, a_cols = ta ? args.m : args.k;
  const uint64_t b_rows = tb ? args.n : args.k, b_cols = tb ? args.k : args.n;
  const char *a_rows_name = ta ? "k" : "m", *a_cols_name = ta ? "m" : "k";
  const char *b_rows_name = tb ? "n" : "k", *b_cols_name = tb ? "k" : "n";
  require(args.lda >= a_cols, "lda is {}, must be at least {}={}", args.lda, a_cols_name, a_cols);
  require(args.ldb >= b_cols, "ldb is {}, must be at least {}={}", args.ldb, b_cols_name, b_cols);
  require(args.ldc >= args.n, "ldc is {}, must be at least n={}", args.ldc, args.n);
  if (args.m == 0 || args.n == 0 || args.batch_count == 0) return;

  const uint64_t a = batch_footprint(footprint(a_rows, a_cols, args.lda, "a"), args.stride_a, args.batch_count, "a");
  const uint64_t b = batch_footprint(footprint(b_rows, b_cols, args.ldb, "b"), args.stride_b, args.batch_count, "b");
  const uint64_t c_matrix = footprint(args.m, args.n, args.ldc, "c");
  require(args.batch_count == 1 || args.stride_c >= c_matrix,
          "stride_c is {}, must be at least {} (m={} n={} ldc={}): the matrices of c must not overlap", args.stride_c,
          c_matrix, args.m, args.n, args.ldc);
  const uint64_t c = batch_footprint(c_matrix, args.stride_c, args.batch_count, "c");
  check_operand(args.a, "a", a, args.a_type, [&] {
    return describe(a_rows_name, a_rows, a_cols_name, a_cols, "lda", args.lda, args.stride_a, args);
  });
  check_operand(args.b, "b", b, args.b_type, [&] {
    return describe(b_rows_name, b_rows, b_cols_name, b_cols, "ldb", args.ldb, args.stride_b, args);
  });
  check_operand(args.c, "c", c, args.c_type,
                [&] { return describe("m", args.m, "n", args.n, "ldc", args.ldc, args.stride_c, args); });
  // The operands hold these many bytes, so the products below cannot wrap.
  const uint64_t size = dtype_size(args.c_type);
  if (a > 0) check_overlap(args.c, "c", c * size, args.a, "a", a * size, false);
  if (b > 0) check_overlap(args.c, "c", c * size, args.b, "b", b * size, false);
}

}  // namespace tuff
