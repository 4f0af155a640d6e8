// Eigenvalues and eigenvectors of general matrices, by LAPACK's residual test (LAPACK Working Note 41): with n the
// extent, |A v - w v| is below 30 n eps |A| |v| for every value w and vector v. That all values are found is judged by
// the traces of A and A^2, and by matrices whose values are known.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "support/matrices.hpp"

namespace tuff_test::linalg_eig_test {
namespace {

using Complex = std::complex<long double>;

struct EigResult {
  std::vector<Matrix> values, vectors;  // each number as two columns
  std::vector<int32_t> info;
  Complex value(uint64_t i, uint64_t j) const { return {values[i](0, 2 * j), values[i](0, 2 * j + 1)}; }
  Complex element(uint64_t i, uint64_t r, uint64_t j) const { return {vectors[i](r, 2 * j), vectors[i](r, 2 * j + 1)}; }
};

template <typename T>
EigResult eig(tuff_context context, const std::vector<Matrix>& matrices, bool vectors_wanted, uint64_t padding = 0,
              uint64_t shift = 0) {
  const uint64_t n = matrices[0].rows(), batch = matrices.size();
  StoredMatrices<T> a(context, matrices, padding, shift),
      vectors(context, std::vector<Matrix>(batch, Matrix(n, 2 * n)), 2 * shift, 2 * padding),
      values(context, std::vector<Matrix>(batch, Matrix(1, 2 * n)), 2 * padding);
  const GuardedIntegers info(context, batch);
  tuff_eig_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = kType<T>, desc.n = n;
  desc.a = a, desc.lda = a.ld, desc.stride_a = a.stride, desc.values = values, desc.stride_values = values.stride / 2;
  if (vectors_wanted) {
    desc.vectors = vectors, desc.ld_vectors = vectors.ld / 2, desc.stride_vectors = vectors.stride / 2;
  }
  desc.info = info, desc.batch_count = batch;
  EXPECT_OK(tuff_eig(context, &desc));
  const std::vector<Matrix> after = a.read();
  for (uint64_t i = 0; i < batch; ++i) expect_same(after[i], rounded<T>(matrices[i]), "A, which is only read");
  return {values.read(), vectors.read(), info.read()};
}

// Conjugate pairs side by side, that with a positive imaginary part first.
void expect_pairs(const EigResult& got, uint64_t i, uint64_t n, bool vectors) {
  for (uint64_t j = 0; j < n; ++j) {
    if (got.value(i, j).imag() == 0) {
      for (uint64_t r = 0; r < n && vectors; ++r) ASSERT_EQ(got.element(i, r, j).imag(), 0);
      continue;
    }
    ASSERT_GT(got.value(i, j).imag(), 0);
    ASSERT_LT(j + 1, n);
    ASSERT_EQ(got.value(i, j + 1), std::conj(got.value(i, j)));
    for (uint64_t r = 0; r < n && vectors; ++r) {
      ASSERT_EQ(got.element(i, r, j + 1), std::conj(got.element(i, r, j)));
    }
    ++j;
  }
}

// The values' sum is A's trace, and that of their squares the trace of A^2. A backward error E of the matrix changes
// them by at most n |E| and n (2 |A| |E| + |E|^2).
void expect_traces(const Matrix& a, const EigResult& got, uint64_t i, double limit) {
  const uint64_t n = a.rows();
  Complex sum = 0, squares = 0;
  for (uint64_t j = 0; j < n; ++j) sum += got.value(i, j), squares += got.value(i, j) * got.value(i, j);
  const Matrix square = a * a;
  for (uint64_t j = 0; j < n; ++j) sum -= a(j, j), squares -= square(j, j);
  const double count = static_cast<double>(n), norm = a.norm();
  EXPECT_LE(static_cast<double>(std::abs(sum)), count * limit * norm);
  EXPECT_LE(static_cast<double>(std::abs(squares)), count * 3 * limit * norm * norm);
}

template <typename T>
void expect_vectors(const Matrix& a, const EigResult& got, uint64_t i, double limit, const std::string& what) {
  const uint64_t n = a.rows();
  const double norm = a.norm();
  for (uint64_t j = 0; j < n; ++j) {
    const Complex value = got.value(i, j);
    long double off = 0, size = 0, squares = 0, largest = 0, largest_real = 0;
    for (uint64_t r = 0; r < n; ++r) {
      Complex rest = -value * got.element(i, r, j);
      for (uint64_t c = 0; c < n; ++c) rest += a(r, c) * got.element(i, c, j);
      const Complex x = got.element(i, r, j);
      off += std::abs(rest), size += std::abs(x), squares += std::norm(x);
      largest = std::max(largest, std::abs(x));
      if (x.imag() == 0) largest_real = std::max(largest_real, std::abs(x));
    }
    ASSERT_LE(static_cast<double>(off), limit * norm * static_cast<double>(size)) << what << " of " << n << ": " << j;
    // n squares and sums, a root, a quotient, and the turn.
    const double unit = kEpsilon<T> * static_cast<double>(n + 20);
    ASSERT_NEAR(static_cast<double>(squares), 1, 2 * unit) << what << " of " << n << ": " << j;
    ASSERT_GE(static_cast<double>(largest_real), static_cast<double>(largest) * (1 - unit)) << what;
  }
}

// The first values are compared, in any order.
void expect_values(const EigResult& got, uint64_t i, std::vector<Complex> wanted, double most,
                   const std::string& what) {
  for (uint64_t j = 0; j < wanted.size(); ++j) {
    const auto nearest = std::min_element(wanted.begin() + static_cast<int64_t>(j), wanted.end(), [&](auto x, auto y) {
      return std::abs(x - got.value(i, j)) < std::abs(y - got.value(i, j));
    });
    EXPECT_LE(static_cast<double>(std::abs(*nearest - got.value(i, j))), most) << what << ": value " << j;
    std::swap(*nearest, wanted[j]);
  }
}

template <typename T>
double limit_of(uint64_t n) {
  return kThreshold * static_cast<double>(n) * kEpsilon<T>;
}

template <typename T>
void expect_eig(tuff_context context, const std::vector<Matrix>& matrices, const MatrixCase& row,
                const std::string& what) {
  const double limit = limit_of<T>(row.n);
  const EigResult got = eig<T>(context, matrices, true, row.padding, row.shift);
  const EigResult alone = eig<T>(context, matrices, false, row.padding, row.shift);
  for (uint64_t i = 0; i < matrices.size(); ++i) {
    SCOPED_TRACE(what);
    ASSERT_EQ(got.info[i] | alone.info[i], 0);
    expect_pairs(got, i, row.n, true), expect_pairs(alone, i, row.n, false);
    expect_traces(matrices[i], got, i, limit), expect_traces(matrices[i], alone, i, limit);
    expect_vectors<T>(matrices[i], got, i, limit, what);
    expect_same(alone.vectors[i], Matrix(row.n, 2 * row.n), "vectors that are not wanted");
  }
}

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"random", "graded rows", "graded columns", "hilbert", "singular"};
  return kNames[static_cast<size_t>(kind)];
}

// Extents around those of subgroups, of what a workgroup holds (32, 64), and beyond.
std::vector<MatrixCase> squares() {
  std::vector<MatrixCase> all;
  for (const int32_t dtype : {TUFF_F32, TUFF_F64}) {
    for (const uint64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 48, 63, 64, 65, 80}) {
      all.push_back({dtype, n, n, n > 40 ? 1 : 1 + n % 3, n % 4, n % 5});
    }
    all.push_back({dtype, 3, 3, 500, 0, 0});
    all.push_back({dtype, 12, 12, 60, 1, 1});
    all.push_back({dtype, 130, 130, 1, 0, 0});
  }
  return all;
}

using Eig = Table<MatrixCase>;
TEST_P(Eig, ResidualsAreBelowLapacksThreshold) {
  if (row().dtype == TUFF_F64 && !supports_f64(context())) GTEST_SKIP() << "no f64";
  with_matrix_type(row().dtype, [&]<typename T>(T) {
    for (const Kind kind : kKinds) {
      if (kind != Kind::random && (row().batch >= 50 || row().n > 70)) continue;
      Random random(row().n + static_cast<uint64_t>(kind));
      std::vector<Matrix> matrices;
      for (uint64_t i = 0; i < row().batch; ++i) matrices.push_back(of_kind<T>(kind, row().n, row().n, random));
      expect_eig<T>(context(), matrices, row(), name_of(kind));
    }
  });
}
TUFF_TABLE(Eig, MatrixCase, squares());

class EigSpectra : public OnBackend {};

// Q D Q^T with blocks of a - b over b a: its values, a +- b i, are as well-conditioned as those of symmetric matrices.
TEST_P(EigSpectra, OfNormalMatrices) {
  for (const uint64_t n : {2, 3, 10, 33, 60}) {
    Random random(n);
    Matrix d(n, n);
    std::vector<Complex> wanted;
    for (uint64_t j = 0; j + 1 < n; j += 2) {
      const long double a = random.uniform(-2, 2), b = j % 4 == 0 ? random.uniform(1, 2) : 0;
      d(j, j) = d(j + 1, j + 1) = a, d(j, j + 1) = -b, d(j + 1, j) = b;
      wanted.insert(wanted.end(), {Complex(a, b), Complex(a, -b)});
    }
    if (n % 2 != 0) d(n - 1, n - 1) = 5, wanted.emplace_back(5);
    const Matrix q = orthogonal(n, random), a = rounded<float>(q * d * q.transposed());
    const EigResult got = eig<float>(context(), {a}, true);
    expect_values(got, 0, wanted, limit_of<float>(n) * a.norm(), "normal");
    expect_vectors<float>(a, got, 0, limit_of<float>(n), "normal");
  }
}

// Shifts of zero leave a cyclic permutation as it is; its values are the roots of 1.
TEST_P(EigSpectra, OfCyclicPermutations) {
  for (const uint64_t n : {3, 4, 8, 31, 66}) {
    const Matrix a = drawn(n, n, [&](uint64_t i, uint64_t j) { return (i + 1) % n == j ? 1.0 : 0; });
    std::vector<Complex> wanted;
    for (uint64_t j = 0; j < n; ++j) {
      wanted.push_back(std::polar(
          1.0L, 2 * std::numbers::pi_v<long double> * static_cast<long double>(j) / static_cast<long double>(n)));
    }
    for (const Matrix& each : {a, a.transposed()}) {
      const EigResult got = eig<float>(context(), {each}, true);
      ASSERT_EQ(got.info[0], 0);
      expect_values(got, 0, wanted, limit_of<float>(n), "cyclic");
      expect_vectors<float>(each, got, 0, limit_of<float>(n), "cyclic");
    }
  }
}

// Values of triangles are their diagonals, to the bit, whatever is above them: no rotation is needed.
TEST_P(EigSpectra, OfTrianglesAndZeros) {
  for (const uint64_t n : {1, 6, 40, 70}) {
    Random random(n);
    const Matrix a = one_triangle(of_kind<float>(Kind::random, n, n, random), true, 0);
    const EigResult got = eig<float>(context(), {a}, true), zero = eig<float>(context(), {Matrix(n, n)}, true);
    for (uint64_t j = 0; j < n; ++j) EXPECT_EQ(got.value(0, j), Complex(a(j, j)));
    expect_vectors<float>(a, got, 0, limit_of<float>(n), "triangle");
    expect_same(zero.values[0], Matrix(1, 2 * n), "of zeros");
    expect_vectors<float>(Matrix(n, n), zero, 0, limit_of<float>(n), "of zeros");
    EXPECT_EQ(got.info[0] | zero.info[0], 0);
  }
}

// A Jordan block has one vector for all values: the others are the same up to rounding, and none is NaN.
TEST_P(EigSpectra, OfDefectiveMatrices) {
  for (const uint64_t n : {2, 5, 30, 90}) {
    for (const double beside : {1.0, 1e-3, 1000.0}) {
      const Matrix a = rounded<float>(drawn(n, n, [&](uint64_t i, uint64_t j) {
        return i == j ? 2.0 : i + 1 == j ? beside : 0;
      }));
      const EigResult got = eig<float>(context(), {a}, true);
      for (uint64_t j = 0; j < n; ++j) EXPECT_EQ(got.value(0, j), Complex(2));
      expect_vectors<float>(a, got, 0, limit_of<float>(n), "Jordan block");
      // The same below the diagonal, and turned, where the values become a cloud around 2.
      Random random(n);
      const Matrix q = orthogonal(n, random);
      for (const Matrix& each : {a.transposed(), rounded<float>(q * a * q.transposed())}) {
        const EigResult other = eig<float>(context(), {each}, true);
        ASSERT_EQ(other.info[0], 0);
        expect_traces(each, other, 0, limit_of<float>(n));
        expect_vectors<float>(each, other, 0, limit_of<float>(n), "turned Jordan block");
      }
    }
  }
}

// The blocks of 2 x 2 by themselves: real and conjugate values, equal ones, and those that nearly cancel.
TEST_P(EigSpectra, OfTwoByTwo) {
  struct Case {
    float p, q, r, s;
  };
  for (const Case& c : {Case{0, 1, -1, 0}, Case{0, 1, 1, 0}, Case{1, 1e-6f, 1e-7f, 0}, Case{1, 1e6f, -1e-7f, 1},
                        Case{3, 1, -1, 1}, Case{1, 2, 0.5f, 1}, Case{1e-20f, 1, 1e-20f, 1}, Case{0, 1, 0, 0},
                        Case{0, 0, 1, 0}, Case{1e30f, 1e30f, -1e30f, 1e30f}, Case{1e-38f, -1e-38f, 1e-38f, 0}}) {
    Matrix a(2, 2);
    a(0, 0) = c.p, a(0, 1) = c.q, a(1, 0) = c.r, a(1, 1) = c.s;
    const EigResult got = eig<float>(context(), {a}, true);
    const std::string what = std::to_string(c.p) + " " + std::to_string(c.q) + " " + std::to_string(c.r);
    EXPECT_EQ(got.info[0], 0) << what;
    expect_pairs(got, 0, 2, true);
    expect_vectors<float>(a, got, 0, limit_of<float>(2), what);
    const double limit = 2 * limit_of<float>(2), norm = a.norm();
    EXPECT_LE(static_cast<double>(std::abs(got.value(0, 0) + got.value(0, 1) - Complex(a(0, 0) + a(1, 1)))),
              limit * norm)
        << what;
  }
}

// Matrices times a power of two have the same vectors and values times that power, to the bit.
TEST_P(EigSpectra, DoNotOverflowOrUnderflow) {
  for (const uint64_t n : {6, 50}) {
    Random random(n);
    const Matrix a = of_kind<float>(Kind::random, n, n, random);
    const EigResult e = eig<float>(context(), {a}, true);
    for (const int power : {-100, 110}) {
      const EigResult e2 = eig<float>(context(), {scaled(a, power)}, true);
      expect_same(e2.vectors[0], e.vectors[0], "eigenvectors");
      expect_same(e2.values[0], rounded<float>(scaled(e.values[0], power)), "eigenvalues");
    }
  }
}

TEST_P(EigSpectra, NanAndInfinityMakeTheirMatrixNan) {
  const auto all_nan = [](const Matrix& x) {
    for (uint64_t i = 0; i < x.rows(); ++i) {
      for (uint64_t j = 0; j < x.cols(); ++j) {
        if (!std::isnan(x(i, j))) return false;
      }
    }
    return true;
  };
  for (const uint64_t n : {1, 5, 40, 70}) {
    Random random(n);
    std::vector<Matrix> matrices;
    for (int i = 0; i < 3; ++i) matrices.push_back(of_kind<float>(Kind::random, n, n, random));
    const EigResult e = eig<float>(context(), matrices, true);
    for (const double bad : {double{NAN}, double{INFINITY}, -double{INFINITY}}) {
      std::vector<Matrix> with = matrices;
      with[1](n / 2, 0) = bad;
      const EigResult e2 = eig<float>(context(), with, true);
      EXPECT_EQ(e2.info, (std::vector<int32_t>{0, 1, 0}));
      EXPECT_TRUE(all_nan(e2.values[1]) && all_nan(e2.vectors[1]));
      for (const int i : {0, 2}) {
        expect_same(e2.values[i], e.values[i], "values");
        expect_same(e2.vectors[i], e.vectors[i], "vectors");
      }
    }
  }
}

TEST_P(EigSpectra, OneMatrixForAll) {
  Random random(3);
  const Matrix matrix = of_kind<float>(Kind::random, 9, 9, random);
  StoredMatrices<float> a(context(), {matrix}), values(context(), std::vector<Matrix>(3, Matrix(1, 18)));
  tuff_eig_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32, desc.n = 9, desc.a = a, desc.values = values, desc.stride_values = values.stride / 2;
  desc.batch_count = 3;
  ASSERT_OK(tuff_eig(context(), &desc));
  const EigResult one = eig<float>(context(), {matrix}, false);
  for (const Matrix& each : values.read()) expect_same(each, one.values[0], "values");
}

TEST_P(EigSpectra, EmptyMatrices) {
  const GuardedIntegers info(context(), 3);
  tuff_eig_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32, desc.info = info;
  EXPECT_OK(tuff_eig(context(), &desc));
  EXPECT_EQ(info.read(), std::vector<int32_t>(3, GuardedIntegers::kPoison));
  desc.batch_count = 3;
  EXPECT_OK(tuff_eig(context(), &desc));
  EXPECT_EQ(info.read(), std::vector<int32_t>(3, 0));
}
TUFF_ON_BACKENDS(EigSpectra);

}  // namespace
}  // namespace tuff_test::linalg_eig_test
