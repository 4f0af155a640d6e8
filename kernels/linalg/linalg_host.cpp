// Linear algebra on the host: the textbook algorithms, in doubles. Results are rounded to the element type at the end.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/common/last_writes.hpp"
#include "kernels/linalg/linalg_host.hpp"

namespace tuff {
namespace {

using namespace linalg;

// Triangle t of extent n as op() makes it: element (i, k).
struct TriangleView {
  const Doubles& a;
  bool transposed;
  double operator()(uint64_t i, uint64_t k) const { return transposed ? a(k, i) : a(i, k); }
};

// Solves a triangular system for one column of X; x(i) is its element i.
template <typename Element>
void substitute(const TriangleView& t, uint64_t n, bool upper, bool unit_diagonal, const Element& x) {
  for (uint64_t step = 0; step < n; ++step) {
    const uint64_t i = upper ? n - 1 - step : step;
    double value = x(i);
    for (uint64_t k = upper ? i + 1 : 0; k < (upper ? n : i); ++k) value -= t(i, k) * x(k);
    x(i) = unit_diagonal ? value : value / t(i, i);
  }
}

// NaN counts as the largest magnitude.
bool larger(double x, double y) { return std::isnan(x) ? !std::isnan(y) : std::fabs(x) > std::fabs(y); }

bool exchanges(int32_t pivot, uint64_t row, uint64_t rows) {
  return pivot >= 0 && static_cast<uint64_t>(pivot) < rows && static_cast<uint64_t>(pivot) != row;
}

}  // namespace

void host_cholesky(const CholeskyArgs& args) {
  for_each_matrix(args, args.n == 0, [&]<typename T>(T, uint64_t matrix, LastWrites& writes) {
    int32_t info = 0;
    // The factor as a lower triangle.
    const bool upper = args.triangle == TUFF_TRIANGLE_UPPER;
    const Doubles a = load<T>(args.a, matrix, args.n, args.n);
    Doubles l(args.n, args.n), result(args.n, args.n);
    for (uint64_t j = 0; j < args.n; ++j) {
      for (uint64_t i = j; i < args.n; ++i) {
        double value = upper ? a(j, i) : a(i, j);
        for (uint64_t k = 0; k < j; ++k) value -= l(i, k) * l(j, k);
        if (i == j && !(value > 0) && info == 0) info = static_cast<int32_t>(j + 1);
        l(i, j) = info != 0 ? std::numeric_limits<double>::quiet_NaN() : i == j ? std::sqrt(value) : value / l(j, j);
        result(upper ? j : i, upper ? i : j) = l(i, j);
      }
    }
    writes.add([&args, matrix, result = std::move(result)] { store<T>(result, args.a, matrix, args.n, args.n); });
    return info;
  });
}

void host_lu(const LuArgs& args) {
  for_each_matrix(args, args.steps() == 0, [&]<typename T>(T, uint64_t matrix, LastWrites& writes) {
    int32_t info = 0;
    Doubles a = load<T>(args.a, matrix, args.m, args.n);
    std::vector<int32_t> pivots(args.steps());
    for (uint64_t k = 0; k < args.steps(); ++k) {
      uint64_t pivot = k;
      for (uint64_t i = k + 1; i < args.m; ++i) {
        if (larger(a(i, k), a(pivot, k))) pivot = i;
      }
      pivots[k] = static_cast<int32_t>(pivot);
      for (uint64_t j = 0; j < args.n && pivot != k; ++j) std::swap(a(k, j), a(pivot, j));
      if (a(k, k) == 0 && info == 0) info = static_cast<int32_t>(k + 1);
      for (uint64_t i = k + 1; i < args.m; ++i) {
        if (a(k, k) != 0) a(i, k) /= a(k, k);
        for (uint64_t j = k + 1; j < args.n; ++j) a(i, j) -= a(i, k) * a(k, j);
      }
    }
    writes.add([&args, matrix, a = std::move(a), pivots = std::move(pivots)] {
      store<T>(a, args.a, matrix, args.m, args.n);
      std::copy(pivots.begin(), pivots.end(), args.pivots->host<int32_t>() + matrix * args.stride_pivots);
    });
    return info;
  });
}

void host_triangular_solve(const TriangularSolveArgs& args) {
  if (args.m == 0 || args.n == 0) return;
  const bool right = args.side == TUFF_SIDE_RIGHT;
  // X op(A) = B is op(A)^T X^T = B^T.
  const bool transposed = (args.transpose != TUFF_NO_TRANS) != right;
  const bool upper = (args.triangle == TUFF_TRIANGLE_UPPER) != transposed;
  LastWrites writes;
  for (uint64_t matrix = 0; matrix < args.batch_count; ++matrix) {
    with_type(args.dtype, [&]<typename T>(T) {
      const Doubles a = load<T>(args.a, matrix, args.extent(), args.extent());
      Doubles b = load<T>(args.b, matrix, args.m, args.n);
      for (uint64_t column = 0; column < (right ? args.m : args.n); ++column) {
        substitute({a, transposed}, args.extent(), upper, args.unit_diagonal,
                   [&](uint64_t i) -> double& { return right ? b(column, i) : b(i, column); });
      }
      writes.add([&args, matrix, b = std::move(b)] { store<T>(b, args.b, matrix, args.m, args.n); });
    });
  }
  writes.run();
}

void host_lu_solve(const LuSolveArgs& args) {
  if (args.n == 0 || args.nrhs == 0) return;
  LastWrites writes;
  for (uint64_t matrix = 0; matrix < args.batch_count; ++matrix) {
    with_type(args.dtype, [&]<typename T>(T) {
      const Doubles a = load<T>(args.a, matrix, args.n, args.n);
      Doubles b = load<T>(args.b, matrix, args.n, args.nrhs);
      const int32_t* pivots = args.pivots->host<int32_t>() + matrix * args.stride_pivots;
      const bool transposed = args.transpose != TUFF_NO_TRANS;
      for (uint64_t column = 0; column < args.nrhs; ++column) {
        const auto x = [&](uint64_t i) -> double& { return b(i, column); };
        for (uint64_t k = 0; k < args.n && !transposed; ++k) {
          if (exchanges(pivots[k], k, args.n)) std::swap(x(k), x(static_cast<uint64_t>(pivots[k])));
        }
        substitute({a, transposed}, args.n, false, !transposed, x);
        substitute({a, transposed}, args.n, true, transposed, x);
        for (uint64_t k = args.n; k-- > 0 && transposed;) {
          if (exchanges(pivots[k], k, args.n)) std::swap(x(k), x(static_cast<uint64_t>(pivots[k])));
        }
      }
      writes.add([&args, matrix, b = std::move(b)] { store<T>(b, args.b, matrix, args.n, args.nrhs); });
    });
  }
  writes.run();
}

void host_lu_determinant(const LuDeterminantArgs& args) {
  if (args.determinant == nullptr && args.sign == nullptr && args.log_magnitude == nullptr) return;
  for (uint64_t matrix = 0; matrix < args.batch_count; ++matrix) {
    with_type(args.dtype, [&]<typename T>(T) {
      // The product is fraction * 2^exponent, which neither overflows nor underflows.
      double fraction = 1;
      int64_t exponent = 0;
      for (uint64_t k = 0; k < args.n; ++k) {
        const auto element = static_cast<double>(matrix_at<T>(args.a, matrix)[k * (args.a.ld + 1)]);
        int first = 0, second = 0;
        fraction = std::frexp(fraction * std::frexp(element, &first), &second);
        // For 0, infinity and NaN the exponents are unspecified.
        if (std::isfinite(fraction) && fraction != 0) exponent += first + second;
        if (exchanges((args.pivots->host<int32_t>() + matrix * args.stride_pivots)[k], k, args.n)) fraction = -fraction;
      }
      const int scale = static_cast<int>(std::clamp<int64_t>(exponent, -5000, 5000));
      const double magnitude = std::fabs(fraction);
      double logarithm = std::log(magnitude);
      if (magnitude != 0 && std::isfinite(magnitude)) {
        // A fraction from sqrt(1/2) to sqrt(2), so that nothing cancels near 1.
        const bool low = magnitude < std::sqrt(0.5);
        logarithm =
            std::log(low ? 2 * magnitude : magnitude) + static_cast<double>(exponent - (low ? 1 : 0)) * std::log(2.0);
      }
      const double sign = std::isnan(fraction) ? fraction : fraction > 0 ? 1 : fraction < 0 ? -1 : 0;
      if (args.determinant != nullptr) {
        args.determinant->host<T>()[matrix] = static_cast<T>(std::ldexp(fraction, scale));
      }
      if (args.sign != nullptr) args.sign->host<T>()[matrix] = static_cast<T>(sign);
      if (args.log_magnitude != nullptr) args.log_magnitude->host<T>()[matrix] = static_cast<T>(logarithm);
    });
  }
}

}  // namespace tuff
