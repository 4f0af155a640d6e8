// Matrices of linear algebra's tests: as they compute with them, in memory between guards, and with factors that are
// known exactly.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "support/harness.hpp"
#include "support/tensor.hpp"

namespace tuff_test {

template <typename T>
constexpr int32_t kType = std::is_same_v<T, double> ? TUFF_F64 : TUFF_F32;
template <typename T>
constexpr double kEpsilon = std::numeric_limits<T>::epsilon();

// A matrix as tests compute with it.
class Matrix {
 public:
  Matrix() = default;
  Matrix(uint64_t rows, uint64_t cols) : rows_(rows), cols_(cols), values_(rows * cols) {}
  uint64_t rows() const { return rows_; }
  uint64_t cols() const { return cols_; }
  long double& operator()(uint64_t i, uint64_t j) { return values_[i * cols_ + j]; }
  long double operator()(uint64_t i, uint64_t j) const { return values_[i * cols_ + j]; }
  Matrix transposed() const {
    Matrix result(cols_, rows_);
    for (uint64_t i = 0; i < rows_; ++i) {
      for (uint64_t j = 0; j < cols_; ++j) result(j, i) = (*this)(i, j);
    }
    return result;
  }
  void swap_rows(uint64_t i, uint64_t k) {
    for (uint64_t j = 0; j < cols_; ++j) std::swap((*this)(i, j), (*this)(k, j));
  }
  // The largest sum of magnitudes of a column.
  double norm() const {
    double most = 0;
    for (uint64_t j = 0; j < cols_; ++j) {
      long double sum = 0;
      for (uint64_t i = 0; i < rows_; ++i) sum += std::fabs((*this)(i, j));
      most = std::isnan(sum) ? INFINITY : std::max(most, static_cast<double>(sum));
    }
    return most;
  }

 private:
  uint64_t rows_ = 0, cols_ = 0;
  std::vector<long double> values_;
};

inline Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows(), b.cols());
  for (uint64_t i = 0; i < a.rows(); ++i) {
    for (uint64_t k = 0; k < a.cols(); ++k) {
      if (a(i, k) == 0) continue;
      for (uint64_t j = 0; j < b.cols(); ++j) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}
inline Matrix operator-(Matrix a, const Matrix& b) {
  for (uint64_t i = 0; i < a.rows(); ++i) {
    for (uint64_t j = 0; j < a.cols(); ++j) a(i, j) -= b(i, j);
  }
  return a;
}

inline Matrix drawn(uint64_t rows, uint64_t cols, const std::function<double(uint64_t, uint64_t)>& draw) {
  Matrix result(rows, cols);
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < cols; ++j) result(i, j) = draw(i, j);
  }
  return result;
}

inline Matrix identity(uint64_t n) {
  return drawn(n, n, [](uint64_t i, uint64_t j) { return i == j ? 1.0 : 0; });
}

// A matrix times 2^power.
inline Matrix scaled(const Matrix& a, int power) {
  return drawn(a.rows(), a.cols(),
               [&](uint64_t i, uint64_t j) { return std::ldexp(static_cast<double>(a(i, j)), power); });
}

// The matrices of a batch in memory: rows `ld` apart, matrices `stride` apart, numbers between them and around them
// that must stay as they are.
template <typename T>
class StoredMatrices {
 public:
  StoredMatrices(tuff_context context, const std::vector<Matrix>& matrices, uint64_t padding = 0, uint64_t shift = 0)
      : context_(context), rows_(matrices.at(0).rows()), cols_(matrices.at(0).cols()), count_(matrices.size()) {
    ld = cols_ + padding;
    stride = rows_ == 0 ? 0 : (rows_ - 1) * ld + cols_ + padding;
    first_ = kAround + shift;
    elements_ = std::max<uint64_t>((count_ - 1) * stride + (rows_ == 0 ? 0 : (rows_ - 1) * ld + cols_), 1);
    before_.assign(first_ + elements_ + kAround, static_cast<T>(-777));
    each([&](uint64_t matrix, uint64_t i, uint64_t j, T& value) { value = static_cast<T>(matrices[matrix](i, j)); });
    whole_ = OwnBuffer(context, before_.size() * sizeof(T));
    EXPECT_OK(tuff_copy_htod(context, whole_, 0, before_.data(), before_.size() * sizeof(T)));
    tuff_buffer view = 0;
    EXPECT_OK(tuff_view(whole_, first_ * sizeof(T), elements_ * sizeof(T), &view));
    view_ = OwnBuffer(view);
  }
  operator tuff_buffer() const { return view_; }  // NOLINT(google-explicit-constructor)

  // Waits, reads everything back, and checks what is between and around the matrices.
  std::vector<Matrix> read() {
    std::vector<T> now(before_.size());
    EXPECT_OK(tuff_copy_dtoh(context_, now.data(), whole_, 0, now.size() * sizeof(T)));
    std::vector<Matrix> result(count_, Matrix(rows_, cols_));
    each_of(now, [&](uint64_t matrix, uint64_t i, uint64_t j, T& value) { result[matrix](i, j) = value; });
    std::vector<T> around = now, wanted = before_;
    for (std::vector<T>* all : {&around, &wanted}) {
      each_of(*all, [](uint64_t, uint64_t, uint64_t, T& value) { value = 0; });
    }
    EXPECT_EQ(around, wanted) << "what is between or around the matrices was changed";
    return result;
  }

  uint64_t ld = 0, stride = 0;

 private:
  static constexpr uint64_t kAround = 32;
  template <typename Body>
  void each_of(std::vector<T>& all, const Body& body) const {
    for (uint64_t matrix = 0; matrix < count_; ++matrix) {
      for (uint64_t i = 0; i < rows_; ++i) {
        for (uint64_t j = 0; j < cols_; ++j) body(matrix, i, j, all[first_ + matrix * stride + i * ld + j]);
      }
    }
  }
  template <typename Body>
  void each(const Body& body) {
    each_of(before_, body);
  }

  tuff_context context_;
  uint64_t rows_, cols_, count_, first_, elements_;
  std::vector<T> before_;
  OwnBuffer whole_, view_;
};

// 32-bit integers between guards.
class GuardedIntegers {
 public:
  static constexpr int32_t kPoison = 0x5a5a5a5a;
  GuardedIntegers(tuff_context context, uint64_t count, int32_t value = kPoison) : context_(context), count_(count) {
    std::vector<int32_t> all(count + 2 * kAround, kPoison);
    std::fill(all.begin() + kAround, all.end() - kAround, value);
    set(all);
  }
  GuardedIntegers(tuff_context context, const std::vector<int32_t>& values) : context_(context), count_(values.size()) {
    std::vector<int32_t> all(count_ + 2 * kAround, kPoison);
    std::copy(values.begin(), values.end(), all.begin() + kAround);
    set(all);
  }
  operator tuff_buffer() const { return view_; }  // NOLINT(google-explicit-constructor)
  std::vector<int32_t> read() const {
    std::vector<int32_t> all(count_ + 2 * kAround);
    EXPECT_OK(tuff_copy_dtoh(context_, all.data(), whole_, 0, all.size() * 4));
    const std::vector<int32_t> guard(kAround, kPoison);
    EXPECT_TRUE(std::equal(guard.begin(), guard.end(), all.begin()));
    EXPECT_TRUE(std::equal(guard.begin(), guard.end(), all.end() - kAround));
    return {all.begin() + kAround, all.end() - kAround};
  }

 private:
  static constexpr int64_t kAround = 5;
  void set(const std::vector<int32_t>& all) {
    whole_ = OwnBuffer(context_, all.size() * 4);
    EXPECT_OK(tuff_copy_htod(context_, whole_, 0, all.data(), all.size() * 4));
    tuff_buffer view = 0;
    EXPECT_OK(tuff_view(whole_, kAround * 4, std::max<uint64_t>(count_, 1) * 4, &view));
    view_ = OwnBuffer(view);
  }
  tuff_context context_;
  uint64_t count_;
  OwnBuffer whole_, view_;
};

struct MatrixCase {
  int32_t dtype;
  uint64_t m, n;
  uint64_t batch = 1, padding = 0, shift = 0;
  std::string name() const {
    return std::string(dtype == TUFF_F64 ? "f64_" : "f32_") + std::to_string(m) + "x" + std::to_string(n) + "_batch" +
           std::to_string(batch) + (padding != 0 ? "_padded" + std::to_string(padding) : "");
  }
  double work() const { return static_cast<double>(batch * m * n) * static_cast<double>(std::min(m, n)) / 8; }
};

inline bool supports_f64(tuff_context context) {
  int32_t yes = 0;
  EXPECT_OK(tuff_supports(context, "lu.f64", &yes));
  return yes != 0;
}

template <typename Body>
void with_matrix_type(int32_t dtype, const Body& body) {
  dtype == TUFF_F64 ? body(double{}) : body(float{});
}

// A triangle of small integers with 1, 2 or 4 on its diagonal. Few elements of a row are not zero, so that sums stay
// small.
inline Matrix small_triangle(uint64_t n, bool upper, bool unit, Random& random) {
  return drawn(n, n, [&](uint64_t i, uint64_t j) -> double {
    if (i == j) return unit ? 1 : static_cast<double>(1 << (random.next() % 3));
    if (upper ? i > j : i < j) return 0;
    return random.next() % 8 == 0 ? static_cast<double>(random.integer(2)) : 0;
  });
}

template <typename T>
tuff_cholesky_desc cholesky_of(const StoredMatrices<T>& a, uint64_t n, uint64_t batch, bool upper, tuff_buffer info) {
  tuff_cholesky_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = kType<T>;
  desc.triangle = upper ? TUFF_TRIANGLE_UPPER : TUFF_TRIANGLE_LOWER;
  desc.n = n, desc.a = a, desc.lda = a.ld, desc.stride_a = a.stride, desc.info = info, desc.batch_count = batch;
  return desc;
}

template <typename T>
tuff_lu_desc lu_of(const StoredMatrices<T>& a, const MatrixCase& row, tuff_buffer pivots, tuff_buffer info) {
  tuff_lu_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = kType<T>;
  desc.m = row.m, desc.n = row.n, desc.a = a, desc.lda = a.ld, desc.stride_a = a.stride;
  desc.pivots = pivots, desc.info = info, desc.batch_count = row.batch;
  return desc;
}

// Its elements of one triangle, with `other` in the other one.
inline Matrix one_triangle(const Matrix& a, bool upper, double other) {
  return drawn(a.rows(), a.cols(), [&](uint64_t i, uint64_t j) {
    return (upper ? i <= j : i >= j) ? static_cast<double>(a(i, j)) : other;
  });
}

inline void expect_same(const Matrix& got, const Matrix& wanted, const std::string& what) {
  for (uint64_t i = 0; i < got.rows(); ++i) {
    for (uint64_t j = 0; j < got.cols(); ++j) {
      const bool same = std::isnan(wanted(i, j)) ? std::isnan(got(i, j)) : got(i, j) == wanted(i, j);
      ASSERT_TRUE(same) << what << " element (" << i << ", " << j << ") is " << static_cast<double>(got(i, j))
                        << ", not " << static_cast<double>(wanted(i, j));
    }
  }
}

// A = P L U with elements of L of at most 1/2 below its diagonal of ones, so that the pivots are certain.
struct Factors {
  Matrix lu, a;
  std::vector<int32_t> pivots;
};

inline Factors exact_factors(uint64_t m, uint64_t n, Random& random) {
  const uint64_t k = std::min(m, n);
  const Matrix l = drawn(m, k, [&](uint64_t i, uint64_t j) -> double {
    if (i <= j) return i == j ? 1 : 0;
    return random.next() % 8 == 0 ? static_cast<double>(random.integer(1)) / 2 : 0;
  });
  const Matrix u = drawn(k, n, [&](uint64_t i, uint64_t j) -> double {
    if (i > j) return 0;
    if (i == j) return (random.next() % 2 != 0 ? 1 : -1) * static_cast<double>(1 << (random.next() % 3));
    return random.next() % 8 == 0 ? 2 * static_cast<double>(random.integer(2)) : 0;
  });
  Factors result{Matrix(m, n), l * u, std::vector<int32_t>(k)};
  for (uint64_t i = 0; i < m; ++i) {
    for (uint64_t j = 0; j < n; ++j) result.lu(i, j) = i > j ? l(i, j) : u(i, j);
  }
  for (uint64_t i = 0; i < k; ++i) result.pivots[i] = static_cast<int32_t>(i + random.next() % (m - i));
  for (uint64_t i = k; i-- > 0;) result.a.swap_rows(i, static_cast<uint64_t>(result.pivots[i]));
  return result;
}

inline constexpr double kThreshold = 30;  // of LAPACK's residual tests

// How far columns are from being orthonormal.
inline double off_orthonormal(const Matrix& q) {
  Matrix product = q.transposed() * q;
  for (uint64_t i = 0; i < product.rows(); ++i) product(i, i) -= 1;
  return product.norm();
}

// An orthogonal matrix: the product of up to 20 reflections by random vectors.
inline Matrix orthogonal(uint64_t n, Random& random) {
  Matrix q = identity(n);
  for (uint64_t step = 0; step < std::min<uint64_t>(n, 20); ++step) {
    std::vector<long double> v(n);
    long double squares = 0;
    for (long double& x : v) x = random.uniform(-1, 1), squares += x * x;
    for (uint64_t j = 0; j < n && squares > 0; ++j) {
      long double sum = 0;
      for (uint64_t i = 0; i < n; ++i) sum += v[i] * q(i, j);
      for (uint64_t i = 0; i < n; ++i) q(i, j) -= 2 * sum / squares * v[i];
    }
  }
  return q;
}

// Its elements as a type stores them.
template <typename T>
Matrix rounded(const Matrix& a) {
  return drawn(a.rows(), a.cols(),
               [&](uint64_t i, uint64_t j) { return static_cast<double>(static_cast<T>(a(i, j))); });
}

enum class Kind : uint8_t { random, graded_rows, graded_columns, hilbert, singular };
inline constexpr Kind kKinds[] = {Kind::random, Kind::graded_rows, Kind::graded_columns, Kind::hilbert, Kind::singular};

template <typename T>
Matrix of_kind(Kind kind, uint64_t m, uint64_t n, Random& random) {
  Matrix a = drawn(m, n, [&](uint64_t i, uint64_t j) -> double {
    const double value = static_cast<double>(random.uniform(-1, 1));
    switch (kind) {
      case Kind::graded_rows: return std::ldexp(value, -static_cast<int>(i % 40));
      case Kind::graded_columns: return std::ldexp(value, -static_cast<int>(j % 40));
      case Kind::hilbert: return 1.0 / static_cast<double>(i + j + 1);
      case Kind::singular: return double{random.integer(3)};
      default: return value;
    }
  });
  // Columns that repeat, and one of zeros.
  for (uint64_t i = 0; i < m && kind == Kind::singular; ++i) {
    a(i, n / 2) = 0;
    if (n > 3) a(i, n - 1) = a(i, 0);
  }
  for (uint64_t i = 0; i < m; ++i) {
    for (uint64_t j = 0; j < n; ++j) a(i, j) = static_cast<T>(a(i, j));
  }
  return a;
}

}  // namespace tuff_test
