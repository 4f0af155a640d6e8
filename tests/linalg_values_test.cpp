// Linear algebra: matrices that are not positive definite, singular, or no ordinary numbers; determinants; empty
// operands.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/matrices.hpp"

namespace tuff_test::linalg_values_test {
namespace {

class LinearAlgebra : public OnBackend {
 protected:
  template <typename T>
  std::pair<Matrix, int32_t> cholesky(const Matrix& matrix, bool upper = false) {
    StoredMatrices<T> a(context(), {matrix});
    const GuardedIntegers info(context(), 1);
    const tuff_cholesky_desc desc = cholesky_of(a, matrix.rows(), 1, upper, info);
    EXPECT_OK(tuff_cholesky(context(), &desc));
    return {a.read()[0], info.read()[0]};
  }
  template <typename T>
  struct Lu {
    Matrix lu;
    std::vector<int32_t> pivots;
    int32_t info;
  };
  template <typename T>
  Lu<T> lu(const Matrix& matrix) {
    StoredMatrices<T> a(context(), {matrix});
    const GuardedIntegers pivots(context(), std::min(matrix.rows(), matrix.cols())), info(context(), 1);
    const tuff_lu_desc desc = lu_of(a, {kType<T>, matrix.rows(), matrix.cols()}, pivots, info);
    EXPECT_OK(tuff_lu(context(), &desc));
    return {a.read()[0], pivots.read(), info.read()[0]};
  }
  // determinant, sign, log_magnitude of a matrix that is an LU factorisation.
  template <typename T>
  std::vector<Matrix> determinant(const Matrix& matrix, const std::vector<int32_t>& exchanges) {
    StoredMatrices<T> a(context(), {matrix}), determinant(context(), {Matrix(1, 1)}), sign(context(), {Matrix(1, 1)}),
        logarithm(context(), {Matrix(1, 1)});
    const GuardedIntegers pivots(context(), exchanges);
    tuff_lu_determinant_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = kType<T>, desc.n = matrix.rows(), desc.a = a, desc.pivots = pivots;
    desc.determinant = determinant, desc.sign = sign, desc.log_magnitude = logarithm, desc.batch_count = 1;
    EXPECT_OK(tuff_lu_determinant(context(), &desc));
    return {determinant.read()[0], sign.read()[0], logarithm.read()[0]};
  }
};

// The failing step may be in any block, also with others before and behind it.
TEST_P(LinearAlgebra, CholeskyOfAMatrixThatIsNotPositiveDefinite) {
  for (const uint64_t n : {1, 5, 32, 33, 70, 150}) {
    for (const uint64_t k : {uint64_t{0}, n / 3, n / 2, n - 1}) {
      for (const double pivot : {0.0, -1.0, double{NAN}, -double{INFINITY}}) {
        for (const bool upper : {false, true}) {
          Random random(n + k);
          const Matrix l = small_triangle(n, false, false, random);
          Matrix a = l * l.transposed();
          a(k, k) = a(k, k) - l(k, k) * l(k, k) + pivot;
          const auto [got, info] = cholesky<float>(a, upper);
          EXPECT_EQ(info, static_cast<int32_t>(k + 1)) << n << " " << pivot;
          const Matrix wanted = drawn(n, n, [&](uint64_t i, uint64_t j) -> double {
            return i < j ? 0 : j >= k ? NAN : static_cast<double>(l(i, j));
          });
          ASSERT_NO_FATAL_FAILURE(expect_same(upper ? got.transposed() : got, wanted, "factor"));
        }
      }
    }
  }
}

TEST_P(LinearAlgebra, LuOfZerosAndSingularMatrices) {
  for (const uint64_t n : {1, 4, 33, 100}) {
    const auto zeros = lu<float>(Matrix(n, n));
    expect_same(zeros.lu, Matrix(n, n), "zeros");
    EXPECT_EQ(zeros.info, 1);
    std::vector<int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    EXPECT_EQ(zeros.pivots, order);
    // Of equal magnitudes the first is the pivot.
    const auto ones = lu<float>(drawn(n, n, [](uint64_t i, uint64_t j) { return i == 0 && j == 0 ? -1.0 : 1.0; }));
    EXPECT_EQ(ones.pivots[0], 0);
  }
  // A column of zeros in the middle.
  Random random(3);
  for (const uint64_t n : {7, 40, 90}) {
    Matrix a = exact_factors(n, n, random).a;
    for (uint64_t i = 0; i < n; ++i) a(i, n / 2) = 0;
    EXPECT_EQ(lu<float>(a).info, static_cast<int32_t>(n / 2 + 1));
  }
}

TEST_P(LinearAlgebra, LuTakesNanAsTheLargest) {
  Matrix a(5, 5);
  for (uint64_t i = 0; i < 5; ++i) a(i, i) = 1;
  a(1, 0) = INFINITY;
  a(3, 0) = NAN;
  const auto result = lu<float>(a);
  EXPECT_EQ(result.pivots[0], 3);
  EXPECT_EQ(result.info, 0);
  EXPECT_TRUE(std::isnan(result.lu(0, 0)));
  for (uint64_t i = 1; i < 5; ++i) EXPECT_TRUE(std::isnan(result.lu(i, 0)));
}

// An infinity in the pivot's row makes NaN of zeros elsewhere, also of those that stand for rows beyond the matrix.
TEST_P(LinearAlgebra, LuWithInfinitiesStaysInside) {
  for (const uint64_t m : {5, 33, 70}) {
    for (const uint64_t column : {uint64_t{1}, m / 2, m - 1}) {
      Matrix a(m, m);
      for (uint64_t i = 0; i < m; ++i) a(i, i) = 1;
      a(0, column) = INFINITY;
      const auto result = lu<float>(a);
      EXPECT_EQ(result.info, 0);
      for (uint64_t i = 0; i < m; ++i) {
        EXPECT_GE(result.pivots[i], static_cast<int32_t>(i)) << m << " " << column;
        EXPECT_LT(result.pivots[i], static_cast<int32_t>(m)) << m << " " << column;
      }
    }
  }
}

TEST_P(LinearAlgebra, NumbersNearTheEndsOfTheRange) {
  // 2^100 and 2^-100: reciprocals and squares of them are within f32, their products are not used.
  Matrix a(2, 2);
  a(0, 0) = std::ldexp(1.0, 100), a(0, 1) = std::ldexp(1.0, 100), a(1, 0) = std::ldexp(1.0, 99), a(1, 1) = 0;
  const auto result = lu<float>(a);
  EXPECT_EQ(result.lu(1, 0), 0.5);
  EXPECT_EQ(result.lu(1, 1), -std::ldexp(1.0, 99));
  // Pivots on both sides of the limits within which a quotient takes no scaling, and thirds, which are rounded once.
  for (const int exponent : {-100, -65, -64, -63, -62, -1, 0, 1, 63, 64, 65, 66, 100}) {
    Matrix b(2, 1);
    b(0, 0) = std::ldexp(3.0, exponent), b(1, 0) = std::ldexp(1.0, exponent);
    EXPECT_EQ(lu<float>(b).lu(1, 0), static_cast<double>(1.0f / 3.0f)) << exponent;
  }
  Matrix large(1, 1);
  large(0, 0) = std::ldexp(1.0, 126);
  EXPECT_EQ(cholesky<float>(large).first(0, 0), std::ldexp(1.0, 63));
  large(0, 0) = std::ldexp(1.0, -120);
  EXPECT_EQ(cholesky<float>(large).first(0, 0), std::ldexp(1.0, -60));
}

TEST_P(LinearAlgebra, Determinants) {
  const auto check = [&]<typename T>(T) {
    Random random(9);
    for (const uint64_t n : {0, 1, 2, 3, 8, 31, 100, 300}) {
      // Powers of two, whose product is exact, with exchanges.
      Matrix a(n, n);
      std::vector<int32_t> pivots(n);
      int exponent = 0;
      bool negative = false;
      for (uint64_t i = 0; i < n; ++i) {
        const int e = static_cast<int>(random.integer(1));
        exponent += e;
        a(i, i) = std::ldexp(random.next() % 2 != 0 ? 1.0 : -1.0, e);
        pivots[i] = static_cast<int32_t>(i + random.next() % (n - i));
        negative ^= (a(i, i) < 0) != (static_cast<uint64_t>(pivots[i]) != i);
      }
      const auto got = determinant<T>(a, pivots);
      EXPECT_EQ(got[0](0, 0), std::ldexp(negative ? -1.0 : 1.0, exponent)) << n;
      EXPECT_EQ(got[1](0, 0), negative ? -1 : 1) << n;
      EXPECT_NEAR(static_cast<double>(got[2](0, 0)), exponent * std::log(2.0),
                  8 * kEpsilon<T> * std::max(1, std::abs(exponent)))
          << n;
    }
    // Beyond the range, and on the way to a product within it.
    const double size = std::is_same_v<T, double> ? 1e200 : 1e30;
    const auto diagonal = [&](const std::vector<double>& values) {
      Matrix a(values.size(), values.size());
      for (uint64_t i = 0; i < values.size(); ++i) a(i, i) = static_cast<T>(values[i]);
      std::vector<int32_t> pivots(values.size());
      std::iota(pivots.begin(), pivots.end(), 0);
      return determinant<T>(a, pivots);
    };
    auto got = diagonal({size, -size, size});
    EXPECT_EQ(got[0](0, 0), -INFINITY);
    EXPECT_EQ(got[1](0, 0), -1);
    EXPECT_NEAR(static_cast<double>(got[2](0, 0)), 3 * std::log(static_cast<double>(static_cast<T>(size))),
                2000 * kEpsilon<T>);
    got = diagonal({size, size, 1 / size, 1 / size, 3});
    EXPECT_NEAR(static_cast<double>(got[0](0, 0)), 3, 50 * kEpsilon<T>);
    got = diagonal({2, 0, 3});
    EXPECT_EQ(got[0](0, 0), 0);
    EXPECT_EQ(got[1](0, 0), 0);
    EXPECT_EQ(got[2](0, 0), -INFINITY);
    got = diagonal({2, NAN, 3});
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(got[i](0, 0)));
    got = diagonal({-2, INFINITY, 3});
    EXPECT_EQ(got[0](0, 0), -INFINITY);
    EXPECT_EQ(got[1](0, 0), -1);
    EXPECT_EQ(got[2](0, 0), INFINITY);
    // Near 1 the logarithm is as accurate as its argument.
    const double near = 1 + 1024 * kEpsilon<T>;
    EXPECT_NEAR(static_cast<double>(diagonal({near})[2](0, 0)) / std::log(near), 1, 4 * kEpsilon<T>);
    EXPECT_EQ(diagonal({1, 1, 1})[2](0, 0), 0);
  };
  check(float{});
  if (supports_f64(context())) check(double{});
}

TEST_P(LinearAlgebra, NothingToDo) {
  const GuardedIntegers info(context(), 3), pivots(context(), 3);
  tuff_cholesky_desc cholesky{};
  cholesky.struct_size = sizeof cholesky;
  cholesky.dtype = TUFF_F32, cholesky.info = info, cholesky.batch_count = 3;
  ASSERT_OK(tuff_cholesky(context(), &cholesky));
  EXPECT_EQ(info.read(), std::vector<int32_t>(3, 0));
  const GuardedIntegers more(context(), 3);
  tuff_lu_desc lu{};
  lu.struct_size = sizeof lu;
  lu.dtype = TUFF_F32, lu.m = 4, lu.info = more, lu.pivots = pivots, lu.batch_count = 3;
  ASSERT_OK(tuff_lu(context(), &lu));
  EXPECT_EQ(more.read(), std::vector<int32_t>(3, 0));
  EXPECT_EQ(pivots.read(), std::vector<int32_t>(3, GuardedIntegers::kPoison));
  lu.m = 0, lu.n = 7, lu.info = 0;
  EXPECT_OK(tuff_lu(context(), &lu));
  lu.m = 5, lu.n = 5, lu.batch_count = 0;
  EXPECT_OK(tuff_lu(context(), &lu));
  tuff_triangular_solve_desc solve{};
  solve.struct_size = sizeof solve;
  solve.dtype = TUFF_F32, solve.m = 4, solve.batch_count = 2;
  EXPECT_OK(tuff_triangular_solve(context(), &solve));
  solve.n = 4, solve.m = 0;
  EXPECT_OK(tuff_triangular_solve(context(), &solve));
  tuff_lu_solve_desc lu_solve{};
  lu_solve.struct_size = sizeof lu_solve;
  lu_solve.dtype = TUFF_F32, lu_solve.n = 3, lu_solve.batch_count = 1;
  EXPECT_OK(tuff_lu_solve(context(), &lu_solve));
  tuff_lu_determinant_desc determinant{};
  determinant.struct_size = sizeof determinant;
  determinant.dtype = TUFF_F32, determinant.n = 3, determinant.batch_count = 1;
  EXPECT_OK(tuff_lu_determinant(context(), &determinant));  // with nothing wanted
}

// Rows beyond the matrix are neither read nor written.
TEST_P(LinearAlgebra, PivotsThatAreNoRowsExchangeNothing) {
  Matrix identity(4, 4), right(4, 1);
  for (uint64_t i = 0; i < 4; ++i) identity(i, i) = 1, right(i, 0) = static_cast<double>(i + 1);
  for (const int32_t transpose : {TUFF_NO_TRANS, TUFF_TRANS}) {
    StoredMatrices<float> a(context(), {identity}), b(context(), {right});
    const GuardedIntegers pivots(context(), {-1, 4, INT32_MAX, INT32_MIN});
    tuff_lu_solve_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = TUFF_F32, desc.transpose = transpose, desc.n = 4, desc.nrhs = 1;
    desc.a = a, desc.b = b, desc.pivots = pivots, desc.batch_count = 1;
    ASSERT_OK(tuff_lu_solve(context(), &desc));
    expect_same(b.read()[0], right, "right side");
  }
}

// A shared factorisation has shared pivots; strides of pivots may leave gaps.
TEST_P(LinearAlgebra, SharedMatricesAndStridesOfPivots) {
  Random random(77);
  const uint64_t n = 20, batch = 3;
  const Factors one = exact_factors(n, n, random);
  std::vector<Matrix> solutions, right;
  for (uint64_t i = 0; i < batch; ++i) {
    solutions.push_back(drawn(n, 2, [&](uint64_t, uint64_t) { return double{random.integer(3)}; }));
    right.push_back(one.a * solutions[i]);
  }
  StoredMatrices<float> a(context(), {one.lu}), b(context(), right);
  const GuardedIntegers pivots(context(), one.pivots);
  tuff_lu_solve_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32, desc.n = n, desc.nrhs = 2, desc.a = a, desc.b = b, desc.pivots = pivots;
  desc.stride_b = b.stride, desc.batch_count = batch;
  ASSERT_OK(tuff_lu_solve(context(), &desc));
  const std::vector<Matrix> x = b.read();
  for (uint64_t i = 0; i < batch; ++i) expect_same(x[i], solutions[i], "solution");

  StoredMatrices<float> matrices(context(), {one.a, one.a});
  const GuardedIntegers wide(context(), 2 * n + 3);
  tuff_lu_desc lu = lu_of(matrices, {TUFF_F32, n, n, 2}, wide, TUFF_NULL_HANDLE);
  lu.stride_pivots = n + 3;
  ASSERT_OK(tuff_lu(context(), &lu));
  std::vector<int32_t> wanted = one.pivots;
  wanted.insert(wanted.end(), 3, GuardedIntegers::kPoison);
  wanted.insert(wanted.end(), one.pivots.begin(), one.pivots.end());
  EXPECT_EQ(wide.read(), wanted);
}

TEST_P(LinearAlgebra, RunsOfTheSameCallAgreeToTheBit) {
  Random random(5);
  const Matrix matrix = drawn(150, 150, [&](uint64_t, uint64_t) { return double{random.uniform(-1, 1)}; });
  const auto first = lu<float>(matrix), second = lu<float>(matrix);
  expect_same(first.lu, second.lu, "the second run's");
  EXPECT_EQ(first.pivots, second.pivots);
}

TEST_P(LinearAlgebra, Features) {
  for (const char* feature : {"cholesky.f32", "lu.f32", "triangular_solve.f32", "lu_solve.f32", "lu_determinant.f32"}) {
    int32_t yes = -1;
    EXPECT_OK(tuff_supports(context(), feature, &yes));
    EXPECT_EQ(yes, 1) << feature;
  }
  int32_t yes = -1;
  EXPECT_OK(tuff_supports(context(), "lu.f16", &yes));
  EXPECT_EQ(yes, 0);
}
// Empty matrices take no memory and no time, however many they are.
TEST_P(LinearAlgebra, EmptyMatricesOfAnyCount) {
  constexpr uint64_t kMany = uint64_t{1} << 62;
  tuff_cholesky_desc cholesky{};
  cholesky.struct_size = sizeof cholesky, cholesky.dtype = TUFF_F32, cholesky.batch_count = kMany;
  EXPECT_OK(tuff_cholesky(context(), &cholesky));
  tuff_lu_desc lu{};
  lu.struct_size = sizeof lu, lu.dtype = TUFF_F32, lu.n = 3, lu.batch_count = kMany;
  EXPECT_OK(tuff_lu(context(), &lu));
  tuff_triangular_solve_desc triangular{};
  triangular.struct_size = sizeof triangular, triangular.dtype = TUFF_F32, triangular.batch_count = kMany;
  EXPECT_OK(tuff_triangular_solve(context(), &triangular));
  tuff_lu_solve_desc solve{};
  solve.struct_size = sizeof solve, solve.dtype = TUFF_F32, solve.n = 2, solve.batch_count = kMany;
  EXPECT_OK(tuff_lu_solve(context(), &solve));
  tuff_lu_determinant_desc determinant{};
  determinant.struct_size = sizeof determinant, determinant.dtype = TUFF_F32, determinant.batch_count = kMany;
  EXPECT_OK(tuff_lu_determinant(context(), &determinant));
}

TUFF_ON_BACKENDS(LinearAlgebra);

}  // namespace
}  // namespace tuff_test::linalg_values_test
