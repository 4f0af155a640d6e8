// Eigenvalues and singular values, by LAPACK's residual tests (LAPACK Working Note 41): with n the larger extent,
// |A V - V L| and |A - U S V^T| are below 30 n eps |A|, and |I - V^T V| below 30 n eps. Values are compared with those
// of matrices whose values are known.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "support/matrices.hpp"

namespace tuff_test::linalg_spectrum_test {
namespace {

Matrix diagonal(uint64_t rows, uint64_t cols, const Matrix& values) {
  return drawn(rows, cols, [&](uint64_t i, uint64_t j) { return i == j ? static_cast<double>(values(0, i)) : 0; });
}

// The lower triangle of a square matrix, mirrored.
Matrix symmetric(Matrix a) {
  for (uint64_t r = 0; r < a.rows(); ++r) {
    for (uint64_t c = 0; c < r; ++c) a(c, r) = a(r, c);
  }
  return a;
}

// Spectra whose values are not spread evenly.
enum class Spectrum : uint8_t { clustered, opposite, geometric, one };
constexpr Spectrum kSpectra[] = {Spectrum::clustered, Spectrum::opposite, Spectrum::geometric, Spectrum::one};

// Names of matrices in messages.
const char* name_of(Spectrum spectrum) {
  constexpr const char* kNames[] = {"clustered", "opposite", "geometric", "one"};
  return kNames[static_cast<size_t>(spectrum)];
}
const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"random", "graded rows", "graded columns", "hilbert", "singular"};
  return kNames[static_cast<size_t>(kind)];
}
// Whether matrices of a case are of all kinds, or random ones only, because CPU devices are slow.
bool all_kinds(const MatrixCase& row) { return row.batch < 50 && row.m * row.n <= 4500; }

double value_of(Spectrum spectrum, uint64_t j) {
  switch (spectrum) {
    case Spectrum::clustered: return j < 2 ? 5.0 + static_cast<double>(j) : 1;
    case Spectrum::opposite: return j % 2 == 0 ? 1 : -1;
    case Spectrum::geometric: return std::ldexp(1.0, -static_cast<int>(j % 60));
    case Spectrum::one: return j == 0 ? 1 : 0;
  }
  return 0;
}

// Extents around those of parts (8, 16) and pairs of them (16, 32), and of blocks of QR (128).
std::vector<MatrixCase> squares() {
  std::vector<MatrixCase> all;
  for (const int32_t dtype : {TUFF_F32, TUFF_F64}) {
    for (const uint64_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 65, 100, 131}) {
      all.push_back({dtype, n, n, n > 60 ? 1 : 1 + n % 3, n % 4, n % 5});
    }
    all.push_back({dtype, 4, 4, 700, 0, 0});
    all.push_back({dtype, 20, 20, 60, 1, 1});
  }
  return all;
}

std::vector<MatrixCase> rectangles() {
  std::vector<MatrixCase> all = squares();
  for (const int32_t dtype : {TUFF_F32, TUFF_F64}) {
    for (const auto& [m, n] : std::vector<std::pair<uint64_t, uint64_t>>{
             {1, 7}, {7, 1}, {3, 40}, {40, 3}, {33, 70}, {70, 33}, {100, 16}, {16, 100}, {150, 40}, {40, 150}}) {
      all.push_back({dtype, m, n, m + n > 100 ? 1 : 1 + (m + n) % 3, m % 3, n % 2});
    }
    all.push_back({dtype, 12, 5, 100, 0, 2});
  }
  all.push_back({TUFF_F32, 5'000, 6, 1, 0, 0});
  return all;
}

struct EighResult {
  std::vector<Matrix> vectors, values;  // values as matrices of one row
  std::vector<int32_t> info;
};

template <typename T>
EighResult eigh(tuff_context context, const std::vector<Matrix>& matrices, bool upper, bool vectors_wanted,
                uint64_t padding = 0, uint64_t shift = 0) {
  const uint64_t n = matrices[0].rows(), batch = matrices.size();
  StoredMatrices<T> a(context, matrices, padding, shift), vectors(context, matrices, shift, padding),
      values(context, std::vector<Matrix>(batch, Matrix(1, n)), padding);
  const GuardedIntegers info(context, batch);
  tuff_eigh_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = kType<T>, desc.triangle = upper ? TUFF_TRIANGLE_UPPER : TUFF_TRIANGLE_LOWER, desc.n = n;
  desc.a = a, desc.lda = a.ld, desc.stride_a = a.stride, desc.values = values, desc.stride_values = values.stride;
  if (vectors_wanted) desc.vectors = vectors, desc.ld_vectors = vectors.ld, desc.stride_vectors = vectors.stride;
  desc.info = info, desc.batch_count = batch;
  EXPECT_OK(tuff_eigh(context, &desc));
  const std::vector<Matrix> after = a.read();
  for (uint64_t i = 0; i < batch; ++i) expect_same(after[i], rounded<T>(matrices[i]), "A, which is only read");
  return {vectors.read(), values.read(), info.read()};
}

// upper: which triangle is given. alone: the values are also computed without the vectors.
template <typename T>
void expect_eigh(tuff_context context, const std::vector<Matrix>& matrices, const MatrixCase& row, bool upper,
                 bool alone, const std::string& what) {
  const uint64_t n = row.n;
  const double limit = kThreshold * static_cast<double>(n) * kEpsilon<T>;
  std::vector<Matrix> stored;
  for (const Matrix& matrix : matrices) stored.push_back(one_triangle(matrix, upper, NAN));
  const EighResult got = eigh<T>(context, stored, upper, true, row.padding, row.shift);
  for (uint64_t i = 0; i < matrices.size(); ++i) {
    EXPECT_EQ(got.info[i], 0) << what;
    const Matrix &a = matrices[i], &v = got.vectors[i];
    for (uint64_t j = 1; j < n; ++j) ASSERT_LE(got.values[i](0, j - 1), got.values[i](0, j)) << what;
    EXPECT_LE((a * v - v * diagonal(n, n, got.values[i])).norm(), limit * a.norm()) << what << " of " << n;
    EXPECT_LE(off_orthonormal(v), limit) << what << " of " << n;
  }
  if (!alone) return;
  const EighResult values = eigh<T>(context, stored, upper, false, row.padding, row.shift);
  for (uint64_t i = 0; i < matrices.size(); ++i) {
    expect_same(values.values[i], got.values[i], "values without vectors");
  }
}

using Eigh = Table<MatrixCase>;
TEST_P(Eigh, ResidualsAreBelowLapacksThreshold) {
  if (row().dtype == TUFF_F64 && !supports_f64(context())) GTEST_SKIP() << "no f64";
  with_matrix_type(row().dtype, [&]<typename T>(T) {
    for (const Kind kind : kKinds) {
      if (kind == Kind::graded_columns || (kind != Kind::random && !all_kinds(row()))) continue;
      Random random(row().n + static_cast<uint64_t>(kind));
      std::vector<Matrix> matrices;
      for (uint64_t i = 0; i < row().batch; ++i) {
        matrices.push_back(symmetric(of_kind<T>(kind, row().n, row().n, random)));
      }
      const bool upper = kind == Kind::random || kind == Kind::singular;
      expect_eigh<T>(context(), matrices, row(), upper, kind == Kind::random, name_of(kind));
    }
    for (const Spectrum spectrum : kSpectra) {
      if (!all_kinds(row())) continue;
      Random random(row().n);
      const Matrix q = orthogonal(row().n, random);
      Matrix d(1, row().n);
      for (uint64_t j = 0; j < row().n; ++j) d(0, j) = value_of(spectrum, j);
      const Matrix a = symmetric(rounded<T>(q * diagonal(row().n, row().n, d) * q.transposed()));
      expect_eigh<T>(context(), {a}, row(), spectrum == Spectrum::opposite, false, name_of(spectrum));
    }
  });
}
TUFF_TABLE(Eigh, MatrixCase, squares());

// Singular values of a tall or wide matrix, and its vectors as far as they are wanted.
struct SvdResult {
  std::vector<Matrix> u, values, vt;
  std::vector<int32_t> info;
};

template <typename T>
SvdResult svd(tuff_context context, const std::vector<Matrix>& matrices, bool left, bool right, uint64_t padding = 0,
              uint64_t shift = 0) {
  const uint64_t m = matrices[0].rows(), n = matrices[0].cols(), k = std::min(m, n), batch = matrices.size();
  StoredMatrices<T> a(context, matrices, padding, shift),
      u(context, std::vector<Matrix>(batch, Matrix(m, k)), shift, padding),
      vt(context, std::vector<Matrix>(batch, Matrix(k, n)), padding, 1),
      values(context, std::vector<Matrix>(batch, Matrix(1, k)), padding);
  const GuardedIntegers info(context, batch);
  tuff_svd_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = kType<T>, desc.m = m, desc.n = n;
  desc.a = a, desc.lda = a.ld, desc.stride_a = a.stride, desc.values = values, desc.stride_values = values.stride;
  if (left) desc.u = u, desc.ldu = u.ld, desc.stride_u = u.stride;
  if (right) desc.vt = vt, desc.ldvt = vt.ld, desc.stride_vt = vt.stride;
  desc.info = info, desc.batch_count = batch;
  EXPECT_OK(tuff_svd(context, &desc));
  const std::vector<Matrix> after = a.read();
  for (uint64_t i = 0; i < batch; ++i) expect_same(after[i], rounded<T>(matrices[i]), "A, which is only read");
  return {u.read(), values.read(), vt.read(), info.read()};
}

// parts: the values are also computed without some of the vectors.
template <typename T>
void expect_svd(tuff_context context, const std::vector<Matrix>& matrices, const MatrixCase& row, bool parts,
                const std::string& what) {
  const uint64_t m = row.m, n = row.n, k = std::min(m, n);
  const double limit = kThreshold * static_cast<double>(std::max(m, n)) * kEpsilon<T>;
  const SvdResult got = svd<T>(context, matrices, true, true, row.padding, row.shift);
  for (uint64_t i = 0; i < matrices.size(); ++i) {
    EXPECT_EQ(got.info[i], 0) << what;
    const Matrix &a = matrices[i], &s = got.values[i];
    for (uint64_t j = 0; j < k; ++j) {
      ASSERT_GE(s(0, j), 0) << what;
      ASSERT_TRUE(j == 0 || s(0, j) <= s(0, j - 1)) << what;
    }
    EXPECT_LE((a - got.u[i] * diagonal(k, k, s) * got.vt[i]).norm(), limit * a.norm()) << what << " " << m << "x" << n;
    EXPECT_LE(off_orthonormal(got.u[i]), limit) << what << " " << m << "x" << n;
    EXPECT_LE(off_orthonormal(got.vt[i].transposed()), limit) << what << " " << m << "x" << n;
  }
  if (!parts) return;
  // Vectors that are not wanted change nothing but the rounding of the values.
  const SvdResult one = svd<T>(context, matrices, n % 2 == 0, n % 2 != 0, row.padding, row.shift),
                  none = svd<T>(context, matrices, false, false, row.padding, row.shift);
  for (uint64_t i = 0; i < matrices.size(); ++i) {
    const double most = limit * std::max(matrices[i].norm(), matrices[i].transposed().norm());
    for (uint64_t j = 0; j < k; ++j) {
      const auto value = static_cast<double>(got.values[i](0, j));
      ASSERT_NEAR(static_cast<double>(one.values[i](0, j)), value, most);
      ASSERT_NEAR(static_cast<double>(none.values[i](0, j)), value, most);
    }
    EXPECT_LE(off_orthonormal(n % 2 == 0 ? one.u[i] : one.vt[i].transposed()), limit);
  }
}

using Svd = Table<MatrixCase>;
TEST_P(Svd, ResidualsAreBelowLapacksThreshold) {
  if (row().dtype == TUFF_F64 && !supports_f64(context())) GTEST_SKIP() << "no f64";
  const uint64_t m = row().m, n = row().n, k = std::min(m, n);
  with_matrix_type(row().dtype, [&]<typename T>(T) {
    for (const Kind kind : kKinds) {
      if (kind != Kind::random && !all_kinds(row())) continue;
      Random random(m + n + static_cast<uint64_t>(kind));
      std::vector<Matrix> matrices;
      for (uint64_t i = 0; i < row().batch; ++i) matrices.push_back(of_kind<T>(kind, m, n, random));
      expect_svd<T>(context(), matrices, row(), kind == Kind::random, name_of(kind));
    }
    for (const Spectrum spectrum : kSpectra) {
      if (!all_kinds(row())) continue;
      Random random(n);
      Matrix d(1, k);
      for (uint64_t j = 0; j < k; ++j) d(0, j) = value_of(spectrum, j);
      expect_svd<T>(context(), {rounded<T>(orthogonal(m, random) * diagonal(m, n, d) * orthogonal(n, random))}, row(),
                    false, name_of(spectrum));
    }
  });
}
TUFF_TABLE(Svd, MatrixCase, rectangles());

class Spectra : public OnBackend {};

// The second difference: 2 on the diagonal, -1 beside it; its values are 2 - 2 cos(j pi / (n + 1)).
TEST_P(Spectra, OfTheSecondDifference) {
  for (const uint64_t n : {5, 32, 90}) {
    const Matrix a = drawn(n, n, [](uint64_t i, uint64_t j) {
      return i == j ? 2.0 : i == j + 1 || j == i + 1 ? -1.0 : 0;
    });
    const EighResult e = eigh<float>(context(), {a}, false, false);
    const SvdResult s = svd<float>(context(), {a}, false, false);
    for (uint64_t j = 0; j < n; ++j) {
      const double wanted =
          2 - 2 * std::cos(static_cast<double>(j + 1) * std::numbers::pi / static_cast<double>(n + 1));
      const double most = kThreshold * static_cast<double>(n) * kEpsilon<float> * 4;
      EXPECT_NEAR(static_cast<double>(e.values[0](0, j)), wanted, most);
      EXPECT_NEAR(static_cast<double>(s.values[0](0, n - 1 - j)), wanted, most);
    }
  }
}

TEST_P(Spectra, OfDiagonalsAndZeros) {
  for (const uint64_t n : {4, 40}) {
    const Matrix a = drawn(n, n, [&](uint64_t i, uint64_t j) { return i == j ? 3.0 - static_cast<double>(i % 7) : 0; });
    std::vector<double> wanted;
    for (uint64_t i = 0; i < n; ++i) wanted.push_back(static_cast<double>(a(i, i)));
    std::sort(wanted.begin(), wanted.end());
    const EighResult e = eigh<float>(context(), {a}, false, true);
    for (uint64_t i = 0; i < n; ++i) EXPECT_EQ(e.values[0](0, i), wanted[i]);
    const EighResult zero = eigh<float>(context(), {Matrix(n, n)}, true, true);
    expect_same(zero.values[0], Matrix(1, n), "of zeros");
    expect_same(zero.vectors[0], identity(n), "of zeros");
    const SvdResult s = svd<float>(context(), {Matrix(n + 3, n)}, true, true);
    expect_same(s.values[0], Matrix(1, n), "of zeros");
    EXPECT_EQ(off_orthonormal(s.u[0]), 0);
    EXPECT_EQ(off_orthonormal(s.vt[0]), 0);
    EXPECT_EQ(s.info[0] | zero.info[0], 0);
  }
}

// Matrices times a power of two have the same vectors and values times that power, to the bit.
TEST_P(Spectra, DoNotOverflowOrUnderflow) {
  for (const uint64_t n : {6, 50}) {
    Random random(n);
    const Matrix a = symmetric(of_kind<float>(Kind::random, n, n, random));
    const EighResult e = eigh<float>(context(), {a}, false, true);
    const SvdResult s = svd<float>(context(), {a}, true, true);
    for (const int power : {-100, 110}) {
      const EighResult e2 = eigh<float>(context(), {scaled(a, power)}, false, true);
      expect_same(e2.vectors[0], e.vectors[0], "eigenvectors");
      expect_same(e2.values[0], rounded<float>(scaled(e.values[0], power)), "eigenvalues");
      const SvdResult s2 = svd<float>(context(), {scaled(a, power)}, true, true);
      expect_same(s2.u[0], s.u[0], "left vectors");
      expect_same(s2.vt[0], s.vt[0], "right vectors");
      expect_same(s2.values[0], rounded<float>(scaled(s.values[0], power)), "singular values");
    }
  }
}

TEST_P(Spectra, NanAndInfinityMakeTheirMatrixNan) {
  const auto all_nan = [](const Matrix& x) {
    for (uint64_t i = 0; i < x.rows(); ++i) {
      for (uint64_t j = 0; j < x.cols(); ++j) {
        if (!std::isnan(x(i, j))) return false;
      }
    }
    return true;
  };
  for (const uint64_t n : {5, 40}) {
    Random random(n);
    std::vector<Matrix> matrices;
    for (int i = 0; i < 3; ++i) matrices.push_back(of_kind<float>(Kind::random, n, n, random));
    const EighResult e = eigh<float>(context(), matrices, false, true);
    const SvdResult s = svd<float>(context(), matrices, true, true);
    for (const double bad : {double{NAN}, double{INFINITY}, -double{INFINITY}}) {
      std::vector<Matrix> with = matrices;
      with[1](n - 1, 0) = bad;
      const EighResult e2 = eigh<float>(context(), with, false, true);
      const SvdResult s2 = svd<float>(context(), with, true, true);
      EXPECT_EQ(e2.info, (std::vector<int32_t>{0, 1, 0}));
      EXPECT_EQ(s2.info, (std::vector<int32_t>{0, 1, 0}));
      EXPECT_TRUE(all_nan(e2.values[1]) && all_nan(e2.vectors[1]));
      EXPECT_TRUE(all_nan(s2.values[1]) && all_nan(s2.u[1]) && all_nan(s2.vt[1]));
      for (const int i : {0, 2}) {
        expect_same(e2.values[i], e.values[i], "values");
        expect_same(e2.vectors[i], e.vectors[i], "vectors");
        expect_same(s2.values[i], s.values[i], "values");
        expect_same(s2.u[i], s.u[i], "left vectors");
      }
      // The other triangle is not read.
      const EighResult upper = eigh<float>(context(), with, true, false);
      EXPECT_EQ(upper.info[1], 0);
    }
  }
}

TEST_P(Spectra, OneMatrixForAll) {
  Random random(3);
  const Matrix matrix = of_kind<float>(Kind::random, 9, 9, random);
  StoredMatrices<float> a(context(), {matrix}), values(context(), std::vector<Matrix>(3, Matrix(1, 9)));
  tuff_eigh_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32, desc.n = 9, desc.a = a, desc.values = values, desc.stride_values = values.stride;
  desc.batch_count = 3;
  ASSERT_OK(tuff_eigh(context(), &desc));
  const std::vector<Matrix> got = values.read();
  const EighResult one = eigh<float>(context(), {matrix}, false, false);
  for (const Matrix& each : got) expect_same(each, one.values[0], "values");
}

TEST_P(Spectra, EmptyMatrices) {
  const GuardedIntegers info(context(), 3);
  tuff_eigh_desc eigh{};
  eigh.struct_size = sizeof eigh;
  eigh.dtype = TUFF_F32, eigh.info = info;
  EXPECT_OK(tuff_eigh(context(), &eigh));
  EXPECT_EQ(info.read(), std::vector<int32_t>(3, GuardedIntegers::kPoison));
  eigh.batch_count = 3;
  EXPECT_OK(tuff_eigh(context(), &eigh));
  EXPECT_EQ(info.read(), std::vector<int32_t>(3, 0));
  const GuardedIntegers more(context(), 3);
  tuff_svd_desc svd{};
  svd.struct_size = sizeof svd;
  svd.dtype = TUFF_F32, svd.m = 5, svd.info = more;
  EXPECT_OK(tuff_svd(context(), &svd));
  EXPECT_EQ(more.read(), std::vector<int32_t>(3, GuardedIntegers::kPoison));
  svd.batch_count = 3;
  EXPECT_OK(tuff_svd(context(), &svd));
  EXPECT_EQ(more.read(), std::vector<int32_t>(3, 0));
}
TUFF_ON_BACKENDS(Spectra);

}  // namespace
}  // namespace tuff_test::linalg_spectrum_test
