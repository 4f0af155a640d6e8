// QR factorisations on the host, by Householder reflections in doubles.
#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/common/last_writes.hpp"
#include "kernels/linalg/linalg_host.hpp"

namespace tuff {
namespace linalg {
namespace {

// A reflection I - tau v v^T; v begins with a 1 in row `first`.
struct Reflection {
  double tau = 0;
  uint64_t first = 0;
  std::vector<double> v;

  void apply(Doubles& x, uint64_t from, uint64_t columns) const {
    for (uint64_t j = from; j < columns && tau != 0; ++j) {
      double sum = 0;
      for (uint64_t i = 0; i < v.size(); ++i) sum += v[i] * x(first + i, j);
      for (uint64_t i = 0; i < v.size(); ++i) x(first + i, j) -= tau * sum * v[i];
    }
  }
};

// The reflection that takes column k to a multiple of the unit vector k, from row k down.
Reflection reflection_of(const Doubles& a, uint64_t k, uint64_t m) {
  Reflection result{0, k, std::vector<double>(m - k)};
  double largest = 0, squares = 0;
  for (uint64_t i = k; i < m; ++i) {
    largest = std::isnan(a(i, k)) ? a(i, k) : std::max(largest, std::fabs(a(i, k)));
    if (std::isnan(largest)) break;
  }
  int exponent = 0;
  if (largest != 0 && std::isfinite(largest)) std::frexp(largest, &exponent);
  for (uint64_t i = k; i < m; ++i) {
    result.v[i - k] = std::ldexp(a(i, k), -exponent);
    if (i > k) squares += result.v[i - k] * result.v[i - k];
  }
  const double alpha = result.v[0];
  result.v[0] = 1;
  if (squares == 0) return result;
  const double beta = std::copysign(std::sqrt(alpha * alpha + squares), -alpha);
  result.tau = (beta - alpha) / beta;
  for (uint64_t i = 1; i < m - k; ++i) result.v[i] /= alpha - beta;
  return result;
}

}  // namespace

void householder(Doubles& a, uint64_t m, uint64_t n, Doubles* q, uint64_t q_columns) {
  const uint64_t steps = std::min(m, n);
  std::vector<Reflection> reflections;
  for (uint64_t k = 0; k < steps; ++k) {
    reflections.push_back(reflection_of(a, k, m));
    reflections.back().apply(a, k, n);
    for (uint64_t i = k + 1; i < m; ++i) a(i, k) = 0;
  }
  for (uint64_t k = steps; k-- > 0 && q != nullptr;) reflections[k].apply(*q, k, q_columns);
}

}  // namespace linalg

void host_qr(const QrArgs& args) {
  using namespace linalg;
  const bool wanted = args.q.buffer != nullptr && args.q_columns != 0;
  if (args.m == 0 || (args.n == 0 && !wanted)) return;
  LastWrites writes;
  for (uint64_t matrix = 0; matrix < args.batch_count; ++matrix) {
    with_type(args.dtype, [&]<typename T>(T) {
      Doubles a = args.n != 0 ? load<T>(args.a, matrix, args.m, args.n) : Doubles(args.m, 0);
      Doubles q(args.m, wanted ? args.q_columns : 0);
      for (uint64_t i = 0; i < args.q_columns && wanted; ++i) q(i, i) = 1;
      householder(a, args.m, args.n, wanted ? &q : nullptr, args.q_columns);
      writes.add([&args, wanted, matrix, a = std::move(a), q = std::move(q)] {
        if (args.n != 0) store<T>(a, args.a, matrix, args.m, args.n);
        if (wanted) store<T>(q, args.q, matrix, args.m, args.q_columns);
      });
    });
  }
  writes.run();
}

}  // namespace tuff
