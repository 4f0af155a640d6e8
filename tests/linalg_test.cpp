// Factorisations and linear systems. Two tiers: matrices whose factors are small integers and halves, of which every
// intermediate result is exact, so that each element must be right to the bit; and LAPACK's residual tests (LAPACK
// Working Note 41) on random, graded and singular matrices.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/matrices.hpp"

namespace tuff_test::linalg_test {
namespace {

// Extents around those of blocks (16, 32; on GPUs 32, 64, 128), of recursion (128, 256) and of strips (512).
std::vector<MatrixCase> squares() {
  std::vector<MatrixCase> all;
  for (const int32_t dtype : {TUFF_F32, TUFF_F64}) {
    for (const uint64_t n : {1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 96, 97, 127, 128, 129, 200}) {
      all.push_back({dtype, n, n, 1 + n % 3, n % 4, n % 5});
    }
    all.push_back({dtype, 4, 4, 700, 0, 0});
    all.push_back({dtype, 17, 17, 90, 1, 1});
    all.push_back({dtype, 40, 40, 30, 0, 3});
  }
  all.push_back({TUFF_F32, 256, 256, 1, 0, 0});
  all.push_back({TUFF_F32, 257, 257, 2, 3, 0});
  all.push_back({TUFF_F32, 700, 700, 1, 0, 0});
  all.push_back({TUFF_F64, 300, 300, 1, 5, 1});
  return all;
}

std::vector<MatrixCase> rectangles() {
  std::vector<MatrixCase> all = squares();
  for (const int32_t dtype : {TUFF_F32, TUFF_F64}) {
    for (const auto& [m, n] : std::vector<std::pair<uint64_t, uint64_t>>{
             {1, 7}, {7, 1}, {3, 40}, {40, 3}, {33, 70}, {70, 33}, {16, 100}, {100, 16}, {200, 150}, {150, 200}}) {
      all.push_back({dtype, m, n, 1 + (m + n) % 3, m % 3, n % 2});
    }
  }
  all.push_back({TUFF_F32, 20'000, 5, 1, 0, 0});
  all.push_back({TUFF_F32, 3'000, 40, 1, 1, 0});
  return all;
}

using CholeskyExact = Table<MatrixCase>;
TEST_P(CholeskyExact, FactorsOfIntegers) {
  if (row().dtype == TUFF_F64 && !supports_f64(context())) GTEST_SKIP() << "no f64";
  with_matrix_type(row().dtype, [&]<typename T>(T) {
    for (const bool upper : {false, true}) {
      Random random(row().n + (upper ? 1 : 0));
      std::vector<Matrix> factors, matrices;
      for (uint64_t i = 0; i < row().batch; ++i) {
        factors.push_back(small_triangle(row().n, upper, false, random));
        const Matrix& f = factors.back();
        // NaN in the triangle that is not read.
        matrices.push_back(one_triangle(upper ? f.transposed() * f : f * f.transposed(), upper, NAN));
      }
      StoredMatrices<T> a(context(), matrices, row().padding, row().shift);
      const GuardedIntegers info(context(), row().batch);
      const tuff_cholesky_desc desc = cholesky_of(a, row().n, row().batch, upper, info);
      ASSERT_OK(tuff_cholesky(context(), &desc));
      const std::vector<Matrix> got = a.read();
      for (uint64_t i = 0; i < row().batch; ++i) expect_same(got[i], factors[i], upper ? "upper" : "lower");
      EXPECT_EQ(info.read(), std::vector<int32_t>(row().batch, 0));
    }
  });
}
TUFF_TABLE(CholeskyExact, MatrixCase, squares());

using LuExact = Table<MatrixCase>;
TEST_P(LuExact, FactorsPivotsAndSolutions) {
  if (row().dtype == TUFF_F64 && !supports_f64(context())) GTEST_SKIP() << "no f64";
  const uint64_t m = row().m, n = row().n, k = std::min(m, n), batch = row().batch;
  with_matrix_type(row().dtype, [&]<typename T>(T) {
    Random random(m * 31 + n);
    std::vector<Matrix> matrices, factors;
    std::vector<int32_t> pivots_wanted;
    for (uint64_t i = 0; i < batch; ++i) {
      const Factors one = exact_factors(m, n, random);
      matrices.push_back(one.a), factors.push_back(one.lu);
      pivots_wanted.insert(pivots_wanted.end(), one.pivots.begin(), one.pivots.end());
    }
    StoredMatrices<T> a(context(), matrices, row().padding, row().shift);
    const GuardedIntegers pivots(context(), batch * k), info(context(), batch);
    const tuff_lu_desc desc = lu_of(a, row(), pivots, info);
    ASSERT_OK(tuff_lu(context(), &desc));
    const std::vector<Matrix> got = a.read();
    for (uint64_t i = 0; i < batch; ++i) expect_same(got[i], factors[i], "matrix " + std::to_string(i));
    EXPECT_EQ(pivots.read(), pivots_wanted);
    EXPECT_EQ(info.read(), std::vector<int32_t>(batch, 0));
    if (m != n) return;
    // op(A) X = B with X of small integers.
    for (const int32_t transpose : {TUFF_NO_TRANS, TUFF_TRANS}) {
      const uint64_t nrhs = n % 7 == 1 ? 1 : 1 + n % 40;
      std::vector<Matrix> right, solutions;
      for (const Matrix& matrix : matrices) {
        solutions.push_back(drawn(n, nrhs, [&](uint64_t, uint64_t) { return double{random.integer(3)}; }));
        right.push_back((transpose == TUFF_NO_TRANS ? matrix : matrix.transposed()) * solutions.back());
      }
      StoredMatrices<T> b(context(), right, row().padding, 1);
      tuff_lu_solve_desc solve{};
      solve.struct_size = sizeof solve;
      solve.dtype = kType<T>, solve.transpose = transpose;
      solve.n = n, solve.nrhs = nrhs;
      solve.a = a, solve.pivots = pivots, solve.b = b;
      solve.lda = a.ld, solve.ldb = b.ld, solve.stride_a = a.stride, solve.stride_b = b.stride;
      solve.batch_count = batch;
      ASSERT_OK(tuff_lu_solve(context(), &solve));
      const std::vector<Matrix> x = b.read();
      // Inverse factors may grow, so that only for small systems everything is exact.
      for (uint64_t i = 0; i < batch && n <= 33; ++i) expect_same(x[i], solutions[i], "solution");
      for (uint64_t i = 0; i < batch; ++i) {
        const Matrix& f = matrices[i];
        const double residual = (right[i] - (transpose == TUFF_NO_TRANS ? f : f.transposed()) * x[i]).norm();
        const double size = std::max(f.norm(), f.transposed().norm());
        EXPECT_LT(residual / (static_cast<double>(n) * size * x[i].norm() * kEpsilon<T>), kThreshold);
      }
    }
  });
}
TUFF_TABLE(LuExact, MatrixCase, rectangles());

using Triangular = Table<MatrixCase>;
TEST_P(Triangular, SolvesEveryForm) {
  if (row().dtype == TUFF_F64 && !supports_f64(context())) GTEST_SKIP() << "no f64";
  with_matrix_type(row().dtype, [&]<typename T>(T) {
    Random random(row().n);
    const uint64_t others = 1 + row().n % 37;
    for (uint64_t form = 0; form < 16; ++form) {
      const bool right = (form & 1) != 0, upper = (form & 2) != 0, transposed = (form & 4) != 0, unit = (form & 8) != 0;
      std::vector<Matrix> triangles, stored, solutions, products;
      // One matrix for the whole batch in some forms.
      const bool shared = form % 3 == 0;
      for (uint64_t i = 0; i < row().batch; ++i) {
        if (i == 0 || !shared) {
          triangles.push_back(small_triangle(row().n, upper, unit, random));
          stored.push_back(one_triangle(triangles.back(), upper, NAN));
          for (uint64_t j = 0; j < row().n && unit; ++j) stored.back()(j, j) = NAN;
        } else {
          triangles.push_back(triangles[0]);
        }
        const Matrix op = transposed ? triangles[i].transposed() : triangles[i];
        solutions.push_back(drawn(right ? others : row().n, right ? row().n : others,
                                  [&](uint64_t, uint64_t) { return double{random.integer(3)}; }));
        products.push_back(right ? solutions[i] * op : op * solutions[i]);
      }
      StoredMatrices<T> a(context(), stored, row().padding, row().shift), b(context(), products, row().padding);
      tuff_triangular_solve_desc desc{};
      desc.struct_size = sizeof desc;
      desc.dtype = kType<T>, desc.side = right ? TUFF_SIDE_RIGHT : TUFF_SIDE_LEFT;
      desc.triangle = upper ? TUFF_TRIANGLE_UPPER : TUFF_TRIANGLE_LOWER;
      desc.transpose = transposed ? TUFF_TRANS : TUFF_NO_TRANS, desc.unit_diagonal = unit;
      desc.m = products[0].rows(), desc.n = products[0].cols();
      desc.a = a, desc.b = b, desc.lda = a.ld, desc.ldb = b.ld;
      desc.stride_a = shared ? 0 : a.stride, desc.stride_b = b.stride, desc.batch_count = row().batch;
      ASSERT_OK(tuff_triangular_solve(context(), &desc));
      const std::vector<Matrix> x = b.read();
      for (uint64_t i = 0; i < row().batch; ++i) {
        ASSERT_NO_FATAL_FAILURE(expect_same(x[i], solutions[i], "form " + std::to_string(form)));
      }
      a.read();
    }
  });
}
TUFF_TABLE(Triangular, MatrixCase, squares());

// --- Residuals ---------------------------------------------------------------------------------------------------

using LuResidual = Table<MatrixCase>;
TEST_P(LuResidual, IsBelowLapacksThreshold) {
  if (row().dtype == TUFF_F64 && !supports_f64(context())) GTEST_SKIP() << "no f64";
  const uint64_t m = row().m, n = row().n, k = std::min(m, n), batch = std::min<uint64_t>(row().batch, 5);
  with_matrix_type(row().dtype, [&]<typename T>(T) {
    for (const Kind kind : kKinds) {
      if (kind != Kind::random && m * n > 50'000) continue;
      Random random(m + 1000 * n + static_cast<uint64_t>(kind));
      std::vector<Matrix> matrices;
      for (uint64_t i = 0; i < batch; ++i) matrices.push_back(of_kind<T>(kind, m, n, random));
      StoredMatrices<T> a(context(), matrices, row().padding, row().shift);
      const GuardedIntegers pivots(context(), batch * k), info(context(), batch);
      MatrixCase some = row();
      some.batch = batch;
      const tuff_lu_desc desc = lu_of(a, some, pivots, info);
      ASSERT_OK(tuff_lu(context(), &desc));
      const std::vector<Matrix> got = a.read();
      const std::vector<int32_t> places = pivots.read(), infos = info.read();
      for (uint64_t i = 0; i < batch; ++i) {
        const Matrix& f = got[i];
        Matrix product = drawn(m, k,
                               [&](uint64_t r, uint64_t c) -> double {
                                 return r == c ? 1 : r > c ? static_cast<double>(f(r, c)) : 0;
                               }) *
                         drawn(k, n, [&](uint64_t r, uint64_t c) { return r <= c ? static_cast<double>(f(r, c)) : 0; });
        int32_t first_zero = 0;
        for (uint64_t step = k; step-- > 0;) {
          const auto pivot = static_cast<uint64_t>(places[i * k + step]);
          ASSERT_TRUE(pivot >= step && pivot < m) << "pivot " << step << " is " << pivot;
          product.swap_rows(step, pivot);
          if (f(step, step) == 0) first_zero = static_cast<int32_t>(step + 1);
          for (uint64_t r = step + 1; r < m; ++r) ASSERT_LE(std::fabs(f(r, step)), 1) << r << ", " << step;
        }
        EXPECT_EQ(infos[i], first_zero);
        if (kind == Kind::singular && n <= m) {
          EXPECT_NE(first_zero, 0);
        }
        const double residual = (matrices[i] - product).norm();
        EXPECT_LE(residual, kThreshold * static_cast<double>(std::max(m, n)) * matrices[i].norm() * kEpsilon<T>)
            << "kind " << static_cast<int>(kind);
      }
    }
  });
}
TUFF_TABLE(LuResidual, MatrixCase, rectangles());

using CholeskyResidual = Table<MatrixCase>;
TEST_P(CholeskyResidual, IsBelowLapacksThreshold) {
  if (row().dtype == TUFF_F64 && !supports_f64(context())) GTEST_SKIP() << "no f64";
  const uint64_t n = row().n;
  with_matrix_type(row().dtype, [&]<typename T>(T) {
    for (const bool graded : {false, true}) {
      if (graded && n > 250) continue;
      Random random(n + (graded ? 5 : 0));
      const bool upper = n % 2 == 0;
      Matrix root = of_kind<T>(graded ? Kind::graded_rows : Kind::random, n, n, random);
      Matrix a = root * root.transposed();
      const double shift = graded ? 0 : static_cast<double>(n) / 4;
      for (uint64_t i = 0; i < n; ++i) {
        a(i, i) += shift + std::ldexp(1.0, graded ? -2 * static_cast<int>(i % 40) : 0);
        for (uint64_t j = 0; j < n; ++j) a(i, j) = static_cast<T>(a(i, j));
      }
      StoredMatrices<T> stored(context(), {a}, row().padding, row().shift);
      const GuardedIntegers info(context(), 1);
      const tuff_cholesky_desc desc = cholesky_of(stored, n, 1, upper, info);
      ASSERT_OK(tuff_cholesky(context(), &desc));
      const Matrix f = stored.read()[0];
      EXPECT_EQ(info.read()[0], 0);
      const double residual = (a - (upper ? f.transposed() * f : f * f.transposed())).norm();
      EXPECT_LE(residual, kThreshold * static_cast<double>(n) * a.norm() * kEpsilon<T>) << "graded " << graded;
    }
  });
}
TUFF_TABLE(CholeskyResidual, MatrixCase, squares());

}  // namespace
}  // namespace tuff_test::linalg_test
