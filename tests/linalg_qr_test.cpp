// QR factorisations, by LAPACK's residual tests (LAPACK Working Note 41): with n the larger extent, |A - Q R| is below
// 30 n eps |A|, and |I - Q^T Q| below 30 n eps. Householder's method promises both for any matrix (Higham, Accuracy and
// Stability of Numerical Algorithms, theorem 19.4).
#include <cmath>

#include "support/matrices.hpp"

namespace tuff_test::linalg_qr_test {
namespace {

// Extents around those of panels (16, 32) and blocks (128).
std::vector<MatrixCase> shapes() {
  std::vector<MatrixCase> all;
  for (const int32_t dtype : {TUFF_F32, TUFF_F64}) {
    for (const auto& [m, n] : std::vector<std::pair<uint64_t, uint64_t>>{
             {1, 1},   {1, 7},   {7, 1},   {2, 2},   {3, 40},    {40, 3},    {5, 5},    {16, 16}, {17, 17},
             {31, 32}, {32, 31}, {32, 32}, {33, 33}, {33, 32},   {32, 33},   {32, 70},  {70, 32}, {70, 33},
             {64, 64}, {100, 9}, {9, 100}, {48, 33}, {129, 129}, {200, 150}, {150, 200}}) {
      all.push_back({dtype, m, n, 1 + (m + n) % 3, m % 4, n % 5});
    }
    all.push_back({dtype, 4, 4, 700, 0, 0});
    all.push_back({dtype, 17, 12, 90, 1, 1});
    all.push_back({dtype, 40, 40, 30, 0, 3});
  }
  all.push_back({TUFF_F32, 20'000, 5, 1, 0, 0});
  all.push_back({TUFF_F32, 3'000, 40, 1, 1, 0});
  all.push_back({TUFF_F32, 300, 290, 1, 3, 0});
  return all;
}

template <typename T>
tuff_qr_desc qr_of(const StoredMatrices<T>& a, uint64_t m, uint64_t n, uint64_t batch) {
  tuff_qr_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = kType<T>, desc.m = m, desc.n = n;
  desc.a = a, desc.lda = a.ld, desc.stride_a = a.stride, desc.batch_count = batch;
  return desc;
}

struct QrResult {
  std::vector<Matrix> q, r;
};

// columns of Q: 0: none
template <typename T>
QrResult factor(tuff_context context, const std::vector<Matrix>& matrices, uint64_t columns, uint64_t padding = 0,
                uint64_t shift = 0) {
  const uint64_t m = matrices[0].rows(), n = matrices[0].cols(), batch = matrices.size();
  StoredMatrices<T> a(context, matrices, padding, shift),
      q(context, std::vector<Matrix>(batch, Matrix(m, columns)), columns == 0 ? 0 : shift, padding);
  tuff_qr_desc desc = qr_of(a, m, n, batch);
  if (columns != 0) desc.q = q, desc.columns_q = columns, desc.ldq = q.ld, desc.stride_q = q.stride;
  EXPECT_OK(tuff_qr(context, &desc));
  return {q.read(), a.read()};
}

// R's square part and Q's part that are used.
Matrix first_rows(const Matrix& r, uint64_t rows) {
  return drawn(rows, r.cols(), [&](uint64_t i, uint64_t j) { return i < r.rows() ? static_cast<double>(r(i, j)) : 0; });
}

void expect_triangle(const Matrix& r) {
  for (uint64_t i = 0; i < r.rows(); ++i) {
    for (uint64_t j = 0; j < std::min(i, r.cols()); ++j) ASSERT_EQ(r(i, j), 0) << i << ", " << j;
  }
}

using QrResidual = Table<MatrixCase>;
TEST_P(QrResidual, IsBelowLapacksThreshold) {
  if (row().dtype == TUFF_F64 && !supports_f64(context())) GTEST_SKIP() << "no f64";
  const uint64_t m = row().m, n = row().n, k = std::min(m, n);
  const auto larger = static_cast<double>(std::max(m, n));
  std::vector<uint64_t> widths = {k};
  if (m <= 220 && m > k) widths.insert(widths.end(), {m, (m + k) / 2});
  with_matrix_type(row().dtype, [&]<typename T>(T) {
    const double limit = kThreshold * larger * kEpsilon<T>;
    for (const Kind kind : kKinds) {
      if (kind != Kind::random && m * n > 50'000) continue;
      Random random(m + 1000 * n + static_cast<uint64_t>(kind));
      std::vector<Matrix> matrices;
      for (uint64_t i = 0; i < row().batch; ++i) matrices.push_back(of_kind<T>(kind, m, n, random));
      for (const uint64_t columns : widths) {
        if (columns != k && kind != Kind::random && kind != Kind::singular) continue;
        const QrResult got = factor<T>(context(), matrices, columns, row().padding, row().shift);
        for (uint64_t i = 0; i < row().batch; ++i) {
          ASSERT_NO_FATAL_FAILURE(expect_triangle(got.r[i]));
          const Matrix product = got.q[i] * first_rows(got.r[i], columns);
          EXPECT_LE((matrices[i] - product).norm(), limit * matrices[i].norm()) << static_cast<int>(kind);
          EXPECT_LE(off_orthonormal(got.q[i]), limit) << "kind " << static_cast<int>(kind) << " columns " << columns;
        }
      }
      // Without Q: A + E = Q R gives A^T A - R^T R = -(A^T E + E^T A + E^T E).
      const QrResult alone = factor<T>(context(), matrices, 0, row().padding, row().shift);
      for (uint64_t i = 0; i < std::min<uint64_t>(row().batch, 5); ++i) {
        ASSERT_NO_FATAL_FAILURE(expect_triangle(alone.r[i]));
        const Matrix &a = matrices[i], r = first_rows(alone.r[i], k);
        EXPECT_LE((a.transposed() * a - r.transposed() * r).norm(), 2 * limit * a.norm() * a.transposed().norm());
      }
    }
  });
}
TUFF_TABLE(QrResidual, MatrixCase, shapes());

class Qr : public OnBackend {};

TEST_P(Qr, SignsAreThoseOfLapack) {
  // (3, 4) becomes (-5, 0), and (5, 5) becomes (-7, -1); a column that is zero below the diagonal stays.
  const Matrix a = drawn(2, 2, [](uint64_t i, uint64_t j) { return j == 0 ? (i == 0 ? 3.0 : 4.0) : 5.0; });
  const QrResult got = factor<float>(context(), {a}, 2);
  const double wanted_r[] = {-5, -7, 0, -1}, wanted_q[] = {-0.6, -0.8, -0.8, 0.6};
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(static_cast<double>(got.r[0](i / 2, i % 2)), wanted_r[i], 1e-5) << i;
    EXPECT_NEAR(static_cast<double>(got.q[0](i / 2, i % 2)), wanted_q[i], 1e-5) << i;
  }
  const Matrix diagonal = drawn(5, 5, [](uint64_t i, uint64_t j) { return i == j ? 2.0 - static_cast<double>(i) : 0; });
  const QrResult same = factor<float>(context(), {diagonal}, 5);
  expect_same(same.r[0], diagonal, "R of a diagonal matrix");
  expect_same(same.q[0], identity(5), "its Q");
}

// Matrices times a power of two have the same Q and R times that power, to the bit, however large or small they are.
TEST_P(Qr, DoesNotOverflowOrUnderflow) {
  for (const auto& [m, n] : std::vector<std::pair<uint64_t, uint64_t>>{{6, 4}, {50, 20}, {90, 70}}) {
    Random random(m);
    const Matrix a = of_kind<float>(Kind::random, m, n, random);
    const QrResult plain = factor<float>(context(), {a}, n);
    for (const int power : {-90, 60, 110}) {
      const QrResult got = factor<float>(context(), {scaled(a, power)}, n);
      expect_same(got.q[0], plain.q[0], "Q");
      expect_same(got.r[0], scaled(plain.r[0], power), "R");
    }
  }
}

TEST_P(Qr, NanAndInfinityStayInTheirMatrix) {
  for (const uint64_t n : {5, 40, 150}) {
    Random random(n);
    std::vector<Matrix> matrices;
    for (int i = 0; i < 3; ++i) matrices.push_back(of_kind<float>(Kind::random, n, n, random));
    const QrResult plain = factor<float>(context(), matrices, n);
    for (const double bad : {double{NAN}, double{INFINITY}}) {
      std::vector<Matrix> with = matrices;
      with[1](n - 1, 0) = bad;
      const QrResult got = factor<float>(context(), with, n);
      for (const int i : {0, 2}) {
        expect_same(got.q[i], plain.q[i], "Q");
        expect_same(got.r[i], plain.r[i], "R");
      }
      EXPECT_TRUE(std::isnan(got.q[1](0, 0))) << n;
      EXPECT_TRUE(std::isnan(got.r[1](0, n - 1))) << n;
    }
  }
}

TEST_P(Qr, EmptyMatrices) {
  // No columns: Q is an identity; no rows or no matrices: nothing is written.
  const Matrix filled = drawn(40, 40, [](uint64_t, uint64_t) { return 7; });
  StoredMatrices<float> q(context(), {filled, filled}, 3, 2);
  tuff_qr_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32, desc.m = 40, desc.q = q, desc.columns_q = 40, desc.ldq = q.ld, desc.stride_q = q.stride;
  EXPECT_OK(tuff_qr(context(), &desc));  // batch_count is 0
  for (const Matrix& matrix : q.read()) expect_same(matrix, filled, "untouched");
  desc.batch_count = 2;
  EXPECT_OK(tuff_qr(context(), &desc));
  for (const Matrix& matrix : q.read()) expect_same(matrix, identity(40), "identity");
  desc.columns_q = 0, desc.m = 0, desc.n = 40, desc.a = q;
  EXPECT_OK(tuff_qr(context(), &desc));
  desc.q = 0, desc.a = 0, desc.m = 40, desc.n = 0;
  EXPECT_OK(tuff_qr(context(), &desc));
}
TUFF_ON_BACKENDS(Qr);

}  // namespace
}  // namespace tuff_test::linalg_qr_test
