// Eigenvalues and singular values on the host, by Jacobi's method in doubles, one rotation after another.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/common/last_writes.hpp"
#include "kernels/linalg/linalg_host.hpp"

namespace tuff {
namespace linalg {

bool scale(Doubles& x, uint64_t rows, uint64_t columns, int& exponent) {
  double largest = 0;
  exponent = 0;
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < columns; ++j) {
      if (!std::isfinite(x(i, j))) return false;
      largest = std::max(largest, std::fabs(x(i, j)));
    }
  }
  if (largest != 0) std::frexp(largest, &exponent);
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < columns; ++j) x(i, j) = std::ldexp(x(i, j), -exponent);
  }
  return true;
}

double norm_of(const Doubles& x, uint64_t rows, uint64_t columns) {
  double squares = 0;
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < columns; ++j) squares += x(i, j) * x(i, j);
  }
  return std::sqrt(squares);
}

Doubles identity(uint64_t n) {
  Doubles result(n, n);
  for (uint64_t i = 0; i < n; ++i) result(i, i) = 1;
  return result;
}

namespace {

constexpr int kMaxSweeps = 30;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

struct Rotation {
  double c, s;
  void apply(double& p, double& q) const {
    const double former = p;
    p = c * former - s * q;
    q = s * former + c * q;
  }
};

// The rotation of columns p and q of a symmetric matrix that makes its element `off` between them zero.
Rotation rotation_of(double p, double q, double off) {
  const double cotangent = (q - p) / (2 * off), size = std::fabs(cotangent);  // of twice the angle
  const double t = std::copysign(size < 1e100 ? 1 / (size + std::sqrt(size * size + 1)) : 0.5 / size, cotangent);
  const double c = 1 / std::sqrt(t * t + 1);
  return {c, t * c};
}

// Repeats sweep(), which returns how many rotations it needed, until it is 0. Returns info.
template <typename Sweep>
int32_t sweeps(const Sweep& sweep) {
  for (int i = 0; i < kMaxSweeps; ++i) {
    if (sweep() == 0) return 0;
  }
  return 2;
}

// Makes x diagonal by rotations, whose product is w.
int32_t diagonalise(Doubles& x, Doubles& w, uint64_t n) {
  const double least = kEpsilon / 8 * norm_of(x, n, n);
  return sweeps([&] {
    uint64_t rotations = 0;
    for (uint64_t p = 0; p < n; ++p) {
      for (uint64_t q = p + 1; q < n; ++q) {
        if (!(std::fabs(x(p, q)) > least)) continue;
        const Rotation rotation = rotation_of(x(p, p), x(q, q), x(p, q));
        for (uint64_t i = 0; i < n; ++i) rotation.apply(x(i, p), x(i, q));
        for (uint64_t i = 0; i < n; ++i) rotation.apply(x(p, i), x(q, i));
        for (uint64_t i = 0; i < n; ++i) rotation.apply(w(i, p), w(i, q));
        x(p, q) = x(q, p) = 0;
        ++rotations;
      }
    }
    return rotations;
  });
}

// Makes the rows of x orthogonal by rotations, whose product is the transpose of w.
int32_t orthogonalise(Doubles& x, Doubles& w, uint64_t n) {
  const double least = kEpsilon / 8 * norm_of(x, n, n), relative = kEpsilon * std::sqrt(static_cast<double>(n));
  const auto product = [&](uint64_t p, uint64_t q) {
    double sum = 0;
    for (uint64_t i = 0; i < n; ++i) sum += x(p, i) * x(q, i);
    return sum;
  };
  return sweeps([&] {
    uint64_t rotations = 0;
    for (uint64_t p = 0; p < n; ++p) {
      for (uint64_t q = p + 1; q < n; ++q) {
        const double pp = product(p, p), qq = product(q, q), pq = product(p, q);
        const double longer = std::sqrt(std::max(pp, qq)), shorter = std::sqrt(std::min(pp, qq));
        if (!(std::fabs(pq) > longer * std::max(least, relative * shorter))) continue;
        Rotation rotation = rotation_of(pp, qq, pq);
        if (pp < qq) rotation = {rotation.s, -rotation.c};  // a quarter turn more: the longer one comes first
        for (uint64_t i = 0; i < n; ++i) rotation.apply(x(p, i), x(q, i));
        for (uint64_t i = 0; i < n; ++i) rotation.apply(w(i, p), w(i, q));
        ++rotations;
      }
    }
    return rotations;
  });
}

// The places of numbers in ascending or descending order; those of equal ones keep theirs.
std::vector<uint64_t> order_of(const std::vector<double>& keys, bool descending) {
  std::vector<uint64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint64_t a, uint64_t b) {
    return keys[a] == keys[b] ? a < b : descending ? keys[a] > keys[b] : keys[a] < keys[b];
  });
  return order;
}

struct Svd {
  std::vector<double> values;
  Doubles left, right;  // m x n and n x n
  int32_t info;
};

// For a scaled m x n matrix with m >= n: see linalg_jacobi_vulkan.cpp.
Svd svd_of(Doubles& a, uint64_t m, uint64_t n) {
  Doubles q(m, n);
  for (uint64_t i = 0; i < n; ++i) q(i, i) = 1;
  householder(a, m, n, &q, n);
  Doubles w = identity(n);
  Svd result{std::vector<double>(n), Doubles(m, n), identity(n), orthogonalise(a, w, n)};
  std::vector<double> keys(n);
  for (uint64_t j = 0; j < n; ++j) {
    double squares = 0;
    for (uint64_t i = 0; i < n; ++i) squares += a(j, i) * a(j, i);
    keys[j] = std::sqrt(squares);
  }
  const std::vector<uint64_t> order = order_of(keys, true);
  Doubles sorted(n, n);
  for (uint64_t j = 0; j < n; ++j) {
    result.values[j] = keys[order[j]];
    for (uint64_t i = 0; i < n; ++i) sorted(i, j) = a(order[j], i);
    for (uint64_t i = 0; i < m; ++i) {
      double sum = 0;
      for (uint64_t k = 0; k < n; ++k) sum += q(i, k) * w(k, order[j]);
      result.left(i, j) = sum;
    }
  }
  householder(sorted, n, n, &result.right, n);
  for (uint64_t j = 0; j < n; ++j) {
    for (uint64_t i = 0; i < n && sorted(j, j) < 0; ++i) result.right(i, j) = -result.right(i, j);
  }
  return result;
}

void fill_nan(Doubles& x, uint64_t rows, uint64_t columns) {
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < columns; ++j) x(i, j) = std::numeric_limits<double>::quiet_NaN();
  }
}

template <typename T>
void store_values(const std::vector<double>& values, int exponent, const Buffer* to, uint64_t first) {
  for (uint64_t i = 0; i < values.size(); ++i)
    to->host<T>()[first + i] = static_cast<T>(std::ldexp(values[i], exponent));
}

}  // namespace
}  // namespace linalg

void host_eigh(const EighArgs& args) {
  using namespace linalg;
  const uint64_t n = args.n;
  for_each_matrix(args, n == 0, [&]<typename T>(T, uint64_t matrix, LastWrites& writes) {
    int32_t info = 0;
    Doubles x = load<T>(args.a, matrix, n, n), w = identity(n), sorted(n, n);
    for (uint64_t i = 0; i < n; ++i) {
      for (uint64_t j = 0; j < i; ++j) {
        if (args.triangle == TUFF_TRIANGLE_UPPER) {
          x(i, j) = x(j, i);
        } else {
          x(j, i) = x(i, j);
        }
      }
    }
    int exponent = 0;
    std::vector<double> keys(n, std::numeric_limits<double>::quiet_NaN()), values = keys;
    if (!scale(x, n, n, exponent)) {
      info = 1;
      fill_nan(sorted, n, n);
    } else {
      info = diagonalise(x, w, n);
      for (uint64_t i = 0; i < n; ++i) keys[i] = x(i, i);
      const std::vector<uint64_t> order = order_of(keys, false);
      for (uint64_t j = 0; j < n; ++j) {
        values[j] = keys[order[j]];
        for (uint64_t i = 0; i < n; ++i) sorted(i, j) = w(i, order[j]);
      }
    }
    writes.add([&args, matrix, n, exponent, values = std::move(values), sorted = std::move(sorted)] {
      store_values<T>(values, exponent, args.values, matrix * args.stride_values);
      if (args.vectors.buffer != nullptr) store<T>(sorted, args.vectors, matrix, n, n);
    });
    return info;
  });
}

void host_svd(const SvdArgs& args) {
  using namespace linalg;
  const uint64_t k = args.steps(), more = std::max(args.m, args.n);
  for_each_matrix(args, k == 0, [&]<typename T>(T, uint64_t matrix, LastWrites& writes) {
    const Doubles given = load<T>(args.a, matrix, args.m, args.n);
    const bool wide = args.m < args.n;
    Doubles a(more, k);
    for (uint64_t i = 0; i < args.m; ++i) {
      for (uint64_t j = 0; j < args.n; ++j) (wide ? a(j, i) : a(i, j)) = given(i, j);
    }
    int exponent = 0;
    Svd svd{std::vector<double>(k, std::numeric_limits<double>::quiet_NaN()), Doubles(more, k), Doubles(k, k), 1};
    if (scale(a, more, k, exponent)) {
      svd = svd_of(a, more, k);
    } else {
      fill_nan(svd.left, more, k);
      fill_nan(svd.right, k, k);
    }
    Doubles u(args.m, k), vt(k, args.n);
    for (uint64_t j = 0; j < k; ++j) {
      for (uint64_t i = 0; i < args.m; ++i) u(i, j) = wide ? svd.right(i, j) : svd.left(i, j);
      for (uint64_t i = 0; i < args.n; ++i) vt(j, i) = wide ? svd.left(i, j) : svd.right(i, j);
    }
    writes.add([&args, matrix, k, exponent, values = std::move(svd.values), u = std::move(u), vt = std::move(vt)] {
      store_values<T>(values, exponent, args.values, matrix * args.stride_values);
      if (args.u.buffer != nullptr) store<T>(u, args.u, matrix, args.m, k);
      if (args.vt.buffer != nullptr) store<T>(vt, args.vt, matrix, k, args.n);
    });
    return svd.info;
  });
}

}  // namespace tuff
