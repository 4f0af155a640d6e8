// Draws the arguments of the operations of linear algebra.
#include <algorithm>

#include "kernels/linalg/linalg.hpp"
#include "planners/draw.hpp"

namespace tuff_test {
namespace {

using tuff::dtype_size;

// Matrices of a batch: where they are, and the operand that holds them.
struct Matrices {
  uint64_t rows, cols, count, ld, stride;
  uint64_t one() const { return rows == 0 || cols == 0 ? 0 : plus(times(rows - 1, ld), cols); }
  uint64_t all() const { return one() == 0 || count == 0 ? 0 : plus(times(count - 1, stride), one()); }
};

Matrices draw_matrices(Call& call, const char* name, uint64_t rows, uint64_t cols, uint64_t count, bool may_repeat) {
  Numbers& n = call.numbers;
  Matrices result{rows, cols, count, cols, 0};
  if (n.coin(3)) result.ld = plus(cols, n.coin(16) ? call.size() : n.below(20));
  result.stride = n.coin() ? times(rows, result.ld) : result.one();
  if (n.coin(6)) result.stride = plus(result.stride, n.coin(8) ? call.size() : n.below(30));
  if (may_repeat && n.coin(3)) result.stride = 0;
  call.tell(name, fmt::format("{}x{} ld {} stride {}", rows, cols, result.ld, result.stride));
  return result;
}

// An operand that the call overwrites: at least its first and last row.
tuff::MatrixArgs in_place(Call& call, const char* name, const Matrices& m, uint64_t element) {
  const tuff::Buffer* const buffer = call.output(name, m.all(), element, false);
  if (m.all() != 0) {
    call.has_to_be(buffer, 0, m.cols);
    call.has_to_be(buffer, m.all() - m.cols, m.cols);
  }
  return {buffer, m.ld, m.stride};
}

// One that is read, of which the first and the last element are needed whatever the triangle.
tuff::MatrixArgs read_only(Call& call, const char* name, const Matrices& m, uint64_t element) {
  const tuff::Buffer* const buffer = call.input(name, m.all(), element);
  call.read_partly(buffer);
  if (m.all() != 0) call.has_to_read(buffer, 0, 1), call.has_to_read(buffer, m.all() - 1, 1);
  return {buffer, m.ld, m.stride};
}

int32_t draw_type(Call& call) { return call.type_of(tuff::linalg::kTypes); }
uint64_t draw_count(Call& call) { return call.numbers.coin() ? 1 + call.numbers.below(5) : call.size(); }

// Pivots of a factorisation that is read.
uint64_t read_pivots(Call& call, uint64_t n, uint64_t count, const tuff::Buffer** pivots) {
  const uint64_t stride = call.numbers.coin(3) ? 0 : plus(n, call.numbers.coin(3) ? call.numbers.below(9) : 0);
  const uint64_t elements = n == 0 || count == 0 ? 0 : plus(times(count - 1, stride), n);
  call.tell("stride_pivots", stride);
  *pivots = call.input("pivots", elements, 4);
  call.read_partly(*pivots);
  if (elements != 0) call.has_to_read(*pivots, 0, n), call.has_to_read(*pivots, elements - n, n);
  return stride;
}

}  // namespace

void draw_cholesky(Call& call) {
  tuff::CholeskyArgs& args = call.keep(tuff::CholeskyArgs{});
  args.dtype = draw_type(call), args.triangle = static_cast<int32_t>(call.numbers.below(2));
  args.n = call.size(), args.batch_count = draw_count(call);
  call.tell("dtype", args.dtype), call.tell("triangle", args.triangle), call.tell("batch", args.batch_count);
  const Matrices a = draw_matrices(call, "a", args.n, args.n, args.batch_count, false);
  args.a = in_place(call, "a", a, dtype_size(args.dtype));
  if (call.numbers.coin()) args.info = call.output("info", args.batch_count, 4);
  set(call, tuff::operations::cholesky, args);
}

void draw_lu(Call& call) {
  Numbers& n = call.numbers;
  tuff::LuArgs& args = call.keep(tuff::LuArgs{});
  args.dtype = draw_type(call);
  args.m = call.size(), args.n = n.coin() ? args.m : call.size(), args.batch_count = draw_count(call);
  call.tell("dtype", args.dtype), call.tell("batch", args.batch_count);
  const Matrices a = draw_matrices(call, "a", args.m, args.n, args.batch_count, false);
  args.a = in_place(call, "a", a, dtype_size(args.dtype));
  const uint64_t steps = args.steps(), count = args.batch_count;
  args.stride_pivots = plus(steps, n.coin(3) ? n.below(9) : 0);
  const uint64_t pivots = steps == 0 || count == 0 ? 0 : plus(times(count - 1, args.stride_pivots), steps);
  call.tell("stride_pivots", args.stride_pivots);
  args.pivots = call.output("pivots", pivots, 4, false);
  if (pivots != 0) call.has_to_be(args.pivots, 0, steps), call.has_to_be(args.pivots, pivots - steps, steps);
  if (n.coin()) args.info = call.output("info", count, 4);
  set(call, tuff::operations::lu, args);
}

void draw_triangular_solve(Call& call) {
  Numbers& n = call.numbers;
  tuff::TriangularSolveArgs& args = call.keep(tuff::TriangularSolveArgs{});
  args.dtype = draw_type(call), args.side = static_cast<int32_t>(n.below(2));
  args.triangle = static_cast<int32_t>(n.below(2)), args.transpose = static_cast<int32_t>(n.below(3));
  args.m = call.size(), args.n = n.coin(4) ? 1 : call.size(), args.batch_count = draw_count(call);
  call.tell("dtype", args.dtype), call.tell("side", args.side), call.tell("triangle", args.triangle);
  call.tell("transpose", args.transpose), call.tell("batch", args.batch_count);
  const bool empty = args.m == 0 || args.n == 0;
  // With a diagonal of ones a matrix of one element is not needed at all.
  args.unit_diagonal = args.extent() > 1 && n.coin();
  Matrices a = draw_matrices(call, "a", args.extent(), args.extent(), args.batch_count, true);
  const Matrices b = draw_matrices(call, "b", args.m, args.n, args.batch_count, false);
  if (empty) a.count = 0;
  args.a = read_only(call, "a", a, dtype_size(args.dtype));
  args.b = in_place(call, "b", b, dtype_size(args.dtype));
  set(call, tuff::operations::triangular_solve, args);
}

void draw_lu_solve(Call& call) {
  Numbers& n = call.numbers;
  tuff::LuSolveArgs& args = call.keep(tuff::LuSolveArgs{});
  args.dtype = draw_type(call), args.transpose = static_cast<int32_t>(n.below(3));
  args.n = call.size(), args.nrhs = n.coin(4) ? 1 : call.size(), args.batch_count = draw_count(call);
  call.tell("dtype", args.dtype), call.tell("transpose", args.transpose), call.tell("batch", args.batch_count);
  const uint64_t count = args.nrhs == 0 ? 0 : args.batch_count;
  Matrices a = draw_matrices(call, "a", args.n, args.n, args.batch_count, true);
  const Matrices b = draw_matrices(call, "b", args.n, args.nrhs, args.batch_count, false);
  a.count = count;
  args.a = read_only(call, "a", a, dtype_size(args.dtype));
  args.b = in_place(call, "b", b, dtype_size(args.dtype));
  args.stride_pivots = read_pivots(call, args.n, count, &args.pivots);
  set(call, tuff::operations::lu_solve, args);
}

void draw_lu_determinant(Call& call) {
  Numbers& n = call.numbers;
  tuff::LuDeterminantArgs& args = call.keep(tuff::LuDeterminantArgs{});
  args.dtype = draw_type(call), args.n = call.size(), args.batch_count = draw_count(call);
  call.tell("dtype", args.dtype), call.tell("batch", args.batch_count);
  const uint64_t size = dtype_size(args.dtype);
  if (n.coin()) args.determinant = call.output("determinant", args.batch_count, size);
  if (n.coin()) args.sign = call.output("sign", args.batch_count, size);
  if (n.coin()) args.log_magnitude = call.output("log_magnitude", args.batch_count, size);
  const bool wanted = args.determinant != nullptr || args.sign != nullptr || args.log_magnitude != nullptr;
  Matrices a = draw_matrices(call, "a", args.n, args.n, args.batch_count, true);
  if (!wanted) a.count = 0;
  args.a = read_only(call, "a", a, size);
  args.stride_pivots = read_pivots(call, args.n, a.count, &args.pivots);
  set(call, tuff::operations::lu_determinant, args);
}

void draw_qr(Call& call) {
  Numbers& n = call.numbers;
  tuff::QrArgs& args = call.keep(tuff::QrArgs{});
  args.dtype = draw_type(call);
  args.m = call.size(), args.n = n.coin() ? args.m : call.size(), args.batch_count = draw_count(call);
  args.q_columns = n.coin() ? args.steps() : args.steps() + n.below(args.m - args.steps() + 1);
  call.tell("dtype", args.dtype), call.tell("batch", args.batch_count), call.tell("columns_q", args.q_columns);
  const Matrices a = draw_matrices(call, "a", args.m, args.n, args.batch_count, false);
  args.a = in_place(call, "a", a, dtype_size(args.dtype));
  if (n.coin(4)) return set(call, tuff::operations::qr, args);
  const Matrices q = draw_matrices(call, "q", args.m, args.q_columns, args.batch_count, false);
  args.q = in_place(call, "q", q, dtype_size(args.dtype));
  set(call, tuff::operations::qr, args);
}

namespace {

// Values of each matrix, `count` of them.
const tuff::Buffer* draw_values(Call& call, uint64_t count, uint64_t batch, uint64_t element, uint64_t* stride) {
  *stride = plus(count, call.numbers.coin(3) ? call.numbers.below(9) : 0);
  const uint64_t values = count == 0 || batch == 0 ? 0 : plus(times(batch - 1, *stride), count);
  call.tell("stride_values", *stride);
  const tuff::Buffer* const buffer = call.output("values", values, element, false);
  if (values != 0) call.has_to_be(buffer, 0, count), call.has_to_be(buffer, values - count, count);
  return buffer;
}

}  // namespace

void draw_eigh(Call& call) {
  Numbers& n = call.numbers;
  tuff::EighArgs& args = call.keep(tuff::EighArgs{});
  args.dtype = draw_type(call), args.triangle = static_cast<int32_t>(n.below(2));
  args.n = call.size(), args.batch_count = draw_count(call);
  const uint64_t size = dtype_size(args.dtype);
  call.tell("dtype", args.dtype), call.tell("triangle", args.triangle), call.tell("batch", args.batch_count);
  args.a = read_only(call, "a", draw_matrices(call, "a", args.n, args.n, args.batch_count, true), size);
  args.values = draw_values(call, args.n, args.batch_count, size, &args.stride_values);
  if (n.coin()) {
    args.vectors =
        in_place(call, "vectors", draw_matrices(call, "vectors", args.n, args.n, args.batch_count, false), size);
  }
  if (n.coin()) args.info = call.output("info", args.batch_count, 4);
  set(call, tuff::operations::eigh, args);
}

void draw_eig(Call& call) {
  Numbers& n = call.numbers;
  tuff::EigArgs& args = call.keep(tuff::EigArgs{});
  args.dtype = draw_type(call), args.n = call.size(), args.batch_count = draw_count(call);
  const uint64_t size = dtype_size(args.dtype), count = args.batch_count;
  call.tell("dtype", args.dtype), call.tell("batch", count);
  args.a = read_only(call, "a", draw_matrices(call, "a", args.n, args.n, count, true), size);
  args.values = draw_values(call, args.n, count, 2 * size, &args.stride_values);
  if (n.coin()) {
    args.vectors = in_place(call, "vectors", draw_matrices(call, "vectors", args.n, args.n, count, false), 2 * size);
  }
  if (n.coin()) args.info = call.output("info", count, 4);
  set(call, tuff::operations::eig, args);
}

void draw_svd(Call& call) {
  Numbers& n = call.numbers;
  tuff::SvdArgs& args = call.keep(tuff::SvdArgs{});
  args.dtype = draw_type(call);
  args.m = call.size(), args.n = n.coin() ? args.m : call.size(), args.batch_count = draw_count(call);
  const uint64_t size = dtype_size(args.dtype), k = args.steps(), count = args.batch_count;
  call.tell("dtype", args.dtype), call.tell("batch", count);
  args.a = read_only(call, "a", draw_matrices(call, "a", args.m, args.n, count, true), size);
  args.values = draw_values(call, k, count, size, &args.stride_values);
  if (n.coin()) args.u = in_place(call, "u", draw_matrices(call, "u", args.m, k, count, false), size);
  if (n.coin()) args.vt = in_place(call, "vt", draw_matrices(call, "vt", k, args.n, count, false), size);
  if (n.coin()) args.info = call.output("info", count, 4);
  set(call, tuff::operations::svd, args);
}

}  // namespace tuff_test
