// Cases of linear algebra. Matrices are dominated by their diagonals: their rows' other elements sum to at most 300 *
// 40, and 30000 is added to the diagonal. Condition numbers are therefore below (30000 + 12000) / (30000 - 12000)
// < 2.4.
#include <cmath>
#include <utility>

#include "tool/selftest_cases.hpp"

namespace tool {
namespace {

constexpr uint64_t kN = 40, kBatch = 3, kOne = kN * kN, kAll = kBatch * kOne;
constexpr double kDiagonal = 30'000;

// result: x with something added to the diagonals; if symmetric, of the mean of x and its transpose.
void dominate(const tuff::Context& context, const tuff::Buffer& x, bool symmetric, const tuff::Buffer& result) {
  const tuff::Expr expr = context.expression(
      symmetric ? "(x + t) / 2 + (c == r ? 30000 : 0)" : "x + (c == r ? 30000 : 0)",
      {{"x", TUFF_F32, 0}, {"t", TUFF_F32, 0}, {"r", TUFF_F32, 0}, {"c", TUFF_F32, 0}}, {{"y", TUFF_F32, 0}});
  std::vector<float> numbers(kN);
  for (uint64_t i = 0; i < kN; ++i) numbers[i] = static_cast<float>(i);
  tuff::Buffer count = context.alloc<float>(kN);
  count.upload(numbers);
  tuff_expr_operand of_x{}, of_t{}, row{}, column{}, y{};
  of_x.buffer = of_t.buffer = x.handle(), row.buffer = column.buffer = count.handle(), y.buffer = result.handle();
  of_t.strided = row.strided = column.strided = 1;
  of_t.strides[0] = kOne, of_t.strides[1] = 1, of_t.strides[2] = kN;
  row.strides[1] = 1, column.strides[2] = 1;
  expr.run(context.handle(), {kBatch, kN, kN}, {of_x, of_t, row, column}, {y});
}

void factorise(const tuff::Context& context, const tuff::Buffer& a, const tuff::Buffer& pivots) {
  tuff_lu_desc desc{};
  desc.dtype = TUFF_F32, desc.m = desc.n = kN, desc.a = a.handle(), desc.stride_a = kOne;
  desc.pivots = pivots.handle(), desc.batch_count = kBatch;
  context.lu(desc);
}

}  // namespace

void add_linalg_cases(std::vector<Case>& cases) {
  const auto add = [&](const char* operation, const char* shape, uint64_t results, double bound, Call call) {
    cases.push_back(within(exact_case(operation, shape, {kAll, kAll}, results, std::move(call)), bound));
  };
  const double errors = 4 * gamma(kN + 20);  // of a column of kN elements, relative to its largest; condition included
  // The factor's elements are at most the root of the largest diagonal element, 175.
  add("cholesky", "3 of 40x40", kAll, errors * 175, [](const auto& context, const Buffers& in, const auto& out) {
    dominate(context, in[0], true, out);
    tuff_cholesky_desc desc{};
    desc.dtype = TUFF_F32, desc.n = kN, desc.a = out.handle(), desc.stride_a = kOne, desc.batch_count = kBatch;
    context.cholesky(desc);
  });
  add("lu", "3 of 40x40", kAll, errors * 2 * kDiagonal, [](const auto& context, const Buffers& in, const auto& out) {
    dominate(context, in[0], false, out);
    factorise(context, out, context.template alloc<int32_t>(kBatch * kN));
  });
  // Solutions are at most 300 / 18000.
  constexpr double kSolution = 300.0 / 18'000;
  add("triangular_solve", "3 of 40x40, right, upper, transposed", kAll, errors * kSolution,
      [](const auto& context, const Buffers& in, const auto& out) {
        const tuff::Buffer a = context.template alloc<float>(kAll);
        dominate(context, in[0], false, a);
        context.slice(tuff::DType::f32, in[1], out, {kAll}, {0}, {kAll});
        tuff_triangular_solve_desc desc{};
        desc.dtype = TUFF_F32, desc.side = TUFF_SIDE_RIGHT, desc.triangle = TUFF_TRIANGLE_UPPER;
        desc.transpose = TUFF_TRANS, desc.m = desc.n = kN, desc.a = a.handle(), desc.b = out.handle();
        desc.stride_a = desc.stride_b = kOne, desc.batch_count = kBatch;
        context.triangular_solve(desc);
      });
  add("lu_solve", "3 of 40x40", kAll, errors * kSolution, [](const auto& context, const Buffers& in, const auto& out) {
    const tuff::Buffer pivots = context.template alloc<int32_t>(kBatch * kN), a = context.template alloc<float>(kAll);
    dominate(context, in[0], false, a);
    factorise(context, a, pivots);
    context.slice(tuff::DType::f32, in[1], out, {kAll}, {0}, {kAll});
    tuff_lu_solve_desc desc{};
    desc.dtype = TUFF_F32, desc.n = desc.nrhs = kN, desc.a = a.handle(), desc.pivots = pivots.handle();
    desc.b = out.handle(), desc.stride_a = desc.stride_b = kOne, desc.batch_count = kBatch;
    context.lu_solve(desc);
  });
  // 40 logarithms of about 10.
  add("lu_determinant", "3 of 40x40, logarithms", kBatch, errors * 400,
      [](const auto& context, const Buffers& in, const auto& out) {
        const tuff::Buffer pivots = context.template alloc<int32_t>(kBatch * kN),
                           a = context.template alloc<float>(kAll);
        dominate(context, in[0], false, a);
        factorise(context, a, pivots);
        tuff_lu_determinant_desc desc{};
        desc.dtype = TUFF_F32, desc.n = kN, desc.a = a.handle(), desc.pivots = pivots.handle();
        desc.stride_a = kOne, desc.log_magnitude = out.handle(), desc.batch_count = kBatch;
        context.lu_determinant(desc);
      });
  // Of 40 reflections each has the error of a sum of 40 products, relative to a column's length, below 32000; R changes
  // by that times sqrt(2) and the condition number (Sun, 1991).
  add("qr", "3 of 40x40", kAll, kN * gamma(4 * kN) * 32'000 * 1.5 * 2.4,
      [](const auto& context, const Buffers& in, const auto& out) {
        dominate(context, in[0], false, out);
        tuff_qr_desc desc{};
        desc.dtype = TUFF_F32, desc.m = desc.n = kN, desc.a = out.handle(), desc.stride_a = kOne;
        desc.batch_count = kBatch;
        context.qr(desc);
      });
  // tuff.h: 30 n eps |A|, and |A| is below 42000.
  constexpr double kSpectrum = 30 * kN * 0x1p-23 * 42'000;
  add("eigh", "values of 3 of 40x40", kBatch * kN, kSpectrum,
      [](const auto& context, const Buffers& in, const auto& out) {
        const tuff::Buffer a = context.template alloc<float>(kAll);
        dominate(context, in[0], true, a);
        tuff_eigh_desc desc{};
        desc.dtype = TUFF_F32, desc.n = kN, desc.a = a.handle(), desc.stride_a = kOne;
        desc.values = out.handle(), desc.batch_count = kBatch;
        context.eigh(desc);
      });
  // Of symmetric matrices, whose values are exact for matrices A + E with |E| as above: sorted real parts are within sqrt(2)
  // times E's Frobenius norm (Kahan, 1975), which is at most sqrt(n) times that norm.
  add("eig", "values of 3 of 40x40, sorted", kBatch * kN, std::sqrt(2.0 * kN) * kSpectrum,
      [](const auto& context, const Buffers& in, const auto& out) {
        const tuff::Buffer a = context.template alloc<float>(kAll);
        const tuff::Buffer values = context.template alloc<float>(2 * kBatch * kN);
        const tuff::Buffer parts = context.template alloc<float>(kBatch * kN);
        dominate(context, in[0], true, a);
        tuff_eig_desc desc{};
        desc.dtype = TUFF_F32, desc.n = kN, desc.a = a.handle(), desc.stride_a = kOne;
        desc.values = values.handle(), desc.batch_count = kBatch;
        context.eig(desc);
        context.slice(tuff::DType::f32, values, parts, {kBatch * kN, 2}, {0, 0}, {kBatch * kN, 1});
        tuff_sort_desc sort{};
        sort.dtype = TUFF_F32, sort.input = parts.handle(), sort.values = out.handle();
        sort.shape[0] = kBatch, sort.shape[1] = kN, sort.rank = 2, sort.axis = 1;
        context.sort(sort);
      });
  add("svd", "values of 3 of 40x40", kBatch * kN, kSpectrum,
      [](const auto& context, const Buffers& in, const auto& out) {
        const tuff::Buffer a = context.template alloc<float>(kAll);
        dominate(context, in[0], false, a);
        tuff_svd_desc desc{};
        desc.dtype = TUFF_F32, desc.m = desc.n = kN, desc.a = a.handle(), desc.stride_a = kOne;
        desc.values = out.handle(), desc.batch_count = kBatch;
        context.svd(desc);
      });
}

}  // namespace tool
