// Eigenvalues and eigenvectors of general matrices on the host, in doubles: Hessenberg form, the implicit double shift
// QR algorithm, back-substitution. The kernels (linalg_eig_vulkan.cpp) compute the same and say more about it.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "kernels/common/last_writes.hpp"
#include "kernels/linalg/linalg_host.hpp"

namespace tuff {
namespace linalg::eig {
namespace {

using Complex = std::complex<double>;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kLeast = 1e-290;   // far below any rounding error of a matrix of about 1
constexpr uint64_t kTries = 30;     // sweeps for each value
constexpr uint64_t kStubborn = 10;  // sweeps after which a block gets other shifts
constexpr double kLarge = 0x1p100;  // from which on a vector is scaled

// I - tau v v^T, for a v that begins with a 1: takes x to (beta, 0 …).
struct Reflection {
  double tau = 0, beta = 0;
  std::vector<double> v;
};

Reflection reflection_of(std::vector<double> x) {
  Reflection result{0, x[0], {}};
  double largest = 0, squares = 0;
  for (const double each : x) largest = std::max(largest, std::fabs(each));
  for (size_t i = 1; i < x.size(); ++i) squares += (x[i] / largest) * (x[i] / largest);
  if (!(squares > kLeast)) return result;
  const double alpha = x[0] / largest, beta = std::copysign(std::sqrt(alpha * alpha + squares), -alpha);
  for (double& each : x) each /= largest * (alpha - beta);
  x[0] = 1;
  return {(beta - alpha) / beta, beta * largest, std::move(x)};
}

// A matrix on its way to its real Schur form H = Q T Q^T.
struct Schur {
  uint64_t n;
  bool whole;  // Q is wanted, and T besides its blocks
  Doubles h, q;

  // Columns, or rows, from `at` on as many as v has; of those from `first` on and before `end`.
  void from_left(const Reflection& r, uint64_t at, uint64_t first, uint64_t end) {
    for (uint64_t j = first; j < end && r.tau != 0; ++j) {
      double sum = 0;
      for (uint64_t i = 0; i < r.v.size(); ++i) sum += r.v[i] * h(at + i, j);
      for (uint64_t i = 0; i < r.v.size(); ++i) h(at + i, j) -= r.tau * sum * r.v[i];
    }
  }
  void from_right(Doubles& x, const Reflection& r, uint64_t at, uint64_t first, uint64_t end) const {
    for (uint64_t i = first; i < end && r.tau != 0; ++i) {
      double sum = 0;
      for (uint64_t j = 0; j < r.v.size(); ++j) sum += x(i, at + j) * r.v[j];
      for (uint64_t j = 0; j < r.v.size(); ++j) x(i, at + j) -= r.tau * sum * r.v[j];
    }
  }

  void to_hessenberg();
  bool to_schur();
  uint64_t small_before(uint64_t last, uint64_t tries, double norm) const;
  std::array<Complex, 2> shifts(uint64_t low, uint64_t last, uint64_t tries) const;
  void sweep(uint64_t low, uint64_t last, uint64_t tries);
  bool has_block(uint64_t i) const { return i + 1 < n && h(i + 1, i) != 0; }
  std::vector<Complex> values() const;
  std::vector<Complex> vector(uint64_t place, Complex value, double least) const;
};

void Schur::to_hessenberg() {
  for (uint64_t k = 0; k + 2 < n; ++k) {
    std::vector<double> x;
    for (uint64_t i = k + 1; i < n; ++i) x.push_back(h(i, k));
    const Reflection r = reflection_of(std::move(x));
    from_left(r, k + 1, k + 1, n);
    from_right(h, r, k + 1, 0, n);
    if (whole) from_right(q, r, k + 1, 0, n);
    for (uint64_t i = k + 1; i < n; ++i) h(i, k) = i == k + 1 ? r.beta : 0;
  }
}

// The last row up to `last` before which the subdiagonal element is small; 0: there is none.
uint64_t Schur::small_before(uint64_t last, uint64_t tries, double norm) const {
  const double least = (tries >= kStubborn ? kEpsilon : kLeast) * norm;
  uint64_t low = last;
  for (; low > 0; --low) {
    const double neighbours = std::fabs(h(low - 1, low - 1)) + std::fabs(h(low, low));
    if (std::fabs(h(low, low - 1)) <= std::max(kEpsilon * neighbours, least)) break;
  }
  return low;
}

// The eigenvalues of a 2 x 2 matrix, without cancellation (linalg_schur_values.comp).
std::array<Complex, 2> of_block(double p, double q, double r, double s) {
  const double d = (p - s) / 2, size = std::max({std::fabs(d), std::fabs(q), std::fabs(r)});
  if (size == 0) return {p, s};
  const double square = d / size * d + std::max(std::fabs(q), std::fabs(r)) / size *
                                           std::copysign(std::min(std::fabs(q), std::fabs(r)), q * r);
  const double z = std::sqrt(size) * std::sqrt(std::fabs(square));
  if (square < 0) return {Complex(s + d, z), Complex(s + d, -z)};
  const double sum = d + std::copysign(z, d);
  return {s + sum, sum == 0 ? s : s - q / sum * r};
}

std::array<Complex, 2> Schur::shifts(uint64_t low, uint64_t last, uint64_t tries) const {
  if (tries % kStubborn == 0) {
    const uint64_t at = tries % (2 * kStubborn) == 0 ? last - 2 : low, corner = at == low ? low : last;
    const double size = std::fabs(h(at + 1, at)) + std::fabs(h(at + 2, at + 1)), p = 0.75 * size + h(corner, corner);
    return of_block(p, -0.4375 * size, size, p);
  }
  const double end = h(last, last);
  std::array<Complex, 2> both = of_block(h(last - 1, last - 1), h(last - 1, last), h(last, last - 1), end);
  if (both[0].imag() != 0) return both;
  const bool first = std::fabs(both[0].real() - end) <= std::fabs(both[1].real() - end);
  both[first ? 1 : 0] = both[first ? 0 : 1];
  return both;
}

void Schur::sweep(uint64_t low, uint64_t last, uint64_t tries) {
  const std::array<Complex, 2> s = shifts(low, last, tries);
  const double sum = (s[0] + s[1]).real(), product = (s[0] * s[1]).real();
  const uint64_t end = whole ? n : last + 1, first = whole ? 0 : low;
  for (uint64_t k = low; k < last; ++k) {
    const bool three = k + 2 <= last;
    std::vector<double> x;
    if (k == low) {
      x = {h(k, k) * (h(k, k) - sum) + product + h(k, k + 1) * h(k + 1, k),
           h(k + 1, k) * (h(k, k) + h(k + 1, k + 1) - sum), h(k + 1, k) * h(k + 2, k + 1)};
    } else {
      x = {h(k, k - 1), h(k + 1, k - 1)};
      if (three) x.push_back(h(k + 2, k - 1));
    }
    const Reflection r = reflection_of(std::move(x));
    from_left(r, k, k, end);
    from_right(h, r, k, first, std::min(k + 3, last) + 1);
    if (whole) from_right(q, r, k, 0, n);
    if (k > low) h(k, k - 1) = r.beta, h(k + 1, k - 1) = 0;
    if (k > low && three) h(k + 2, k - 1) = 0;
  }
}

// False: there are values that 30 sweeps for each do not separate.
bool Schur::to_schur() {
  const double norm = norm_of(h, n, n);
  uint64_t rest = n, tries = 0, sweeps = 0;
  while (rest > 0) {
    const uint64_t last = rest - 1, low = small_before(last, tries, norm);
    if (low > 0) h(low, low - 1) = 0;
    if (low + 1 >= last) {
      rest = low, tries = 0;
    } else {
      if (++sweeps > kTries * n) return false;
      sweep(low, last, ++tries);
    }
  }
  return true;
}

std::vector<Complex> Schur::values() const {
  std::vector<Complex> result;
  while (result.size() < n) {
    const uint64_t i = result.size();
    if (!has_block(i)) {
      result.emplace_back(h(i, i));
      continue;
    }
    const std::array<Complex, 2> both = of_block(h(i, i), h(i, i + 1), h(i + 1, i), h(i + 1, i + 1));
    result.insert(result.end(), both.begin(), both.end());
  }
  return result;
}

Complex divisor(Complex given, double least) { return std::abs(given) < least ? least : given; }

// An eigenvector of T for the value in this place of its diagonal, by back-substitution.
std::vector<Complex> Schur::vector(uint64_t place, Complex value, double least) const {
  std::vector<Complex> x(n);
  const uint64_t top = place > 0 && has_block(place - 1) ? place - 1 : place;
  uint64_t above = top;
  x[place] = 1;
  if (has_block(top)) {
    const Complex p = h(top, top) - value, s = h(top + 1, top + 1) - value;
    const double right = h(top, top + 1), r = h(top + 1, top);
    const bool upper = std::abs(p) + std::fabs(right) >= std::abs(s) + std::fabs(r);
    x[top] = upper ? Complex(right) : -s, x[top + 1] = upper ? -p : Complex(r);
    const double size = std::max(std::abs(x[top]), std::abs(x[top + 1]));
    x[top] /= size, x[top + 1] /= size;
  }
  const auto side = [&](uint64_t row, uint64_t from) {
    Complex sum = 0;
    for (uint64_t j = from; j < n; ++j) sum -= h(row, j) * x[j];
    return sum;
  };
  while (above > 0) {
    const uint64_t row = above - 1;
    if (row > 0 && has_block(row - 1)) {
      const uint64_t former = row - 1;
      Complex p = h(former, former) - value, right = h(former, row), r = h(row, former), s = h(row, row) - value;
      Complex f = side(former, above), g = side(row, above);
      if (std::abs(p) < std::abs(r)) std::swap(p, r), std::swap(right, s), std::swap(f, g);
      const Complex factor = r / divisor(p, least);
      x[row] = (g - factor * f) / divisor(s - factor * right, least);
      x[former] = (f - right * x[row]) / divisor(p, least);
      above = former;
    } else {
      x[row] = side(row, above) / divisor(h(row, row) - value, least);
      above = row;
    }
    const double largest = std::max(std::abs(x[above]), std::abs(x[row]));
    for (uint64_t j = 0; j < n && largest > kLarge; ++j) x[j] /= largest;
  }
  return x;
}

// Length 1, and the component of largest magnitude real.
void make_unit(std::vector<Complex>& x, bool real) {
  double squares = 0, largest = 0;
  size_t place = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double size = std::abs(x[i]);
    squares += size * size;
    if (size > largest) largest = size, place = i;
  }
  const Complex turn = real ? Complex(1) : std::conj(x[place]) / largest;
  for (Complex& each : x) each *= turn / std::sqrt(squares);
  x[place] = x[place].real();
}

struct Result {
  int32_t info;
  std::vector<Complex> values;
  std::vector<std::vector<Complex>> vectors;
};

// Of a scaled matrix.
Result eig_of(Doubles& a, uint64_t n, bool vectors) {
  Schur schur{n, vectors, a, identity(vectors ? n : 0)};
  const double least = std::max(kEpsilon * norm_of(a, n, n), kLeast);
  schur.to_hessenberg();
  if (!schur.to_schur()) return {2, {}, {}};
  Result result{0, schur.values(), {}};
  for (uint64_t j = 0; j < n && vectors; ++j) {
    const double imaginary = result.values[j].imag();
    std::vector<Complex> x(n);
    if (imaginary < 0) {
      for (uint64_t i = 0; i < n; ++i) x[i] = std::conj(result.vectors[j - 1][i]);
    } else {
      const std::vector<Complex> y = schur.vector(j, result.values[j], least);
      for (uint64_t i = 0; i < n; ++i) {
        for (uint64_t k = 0; k < n; ++k) x[i] += schur.q(i, k) * y[k];
      }
      make_unit(x, imaginary == 0);
    }
    result.vectors.push_back(std::move(x));
  }
  return result;
}

template <typename T>
void store_complex(Complex value, T* to) {
  to[0] = static_cast<T>(value.real()), to[1] = static_cast<T>(value.imag());
}

}  // namespace
}  // namespace linalg::eig

void host_eig(const EigArgs& args) {
  using namespace linalg;
  const uint64_t n = args.n;
  for_each_matrix(args, n == 0, [&]<typename T>(T, uint64_t matrix, LastWrites& writes) {
    const bool wanted = args.vectors.buffer != nullptr;
    Doubles a = load<T>(args.a, matrix, n, n);
    int exponent = 0;
    eig::Result result{1, {}, {}};
    if (scale(a, n, n, exponent)) result = eig::eig_of(a, n, wanted);
    const int32_t info = result.info;
    if (info != 0) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      result.values.assign(n, {nan, nan});
      if (wanted) result.vectors.assign(n, result.values);
    }
    for (eig::Complex& value : result.values) {
      value = {std::ldexp(value.real(), exponent), std::ldexp(value.imag(), exponent)};
    }
    writes.add([&args, matrix, result = std::move(result)] {
      T* const values = args.values->host<T>() + 2 * matrix * args.stride_values;
      for (size_t j = 0; j < result.values.size(); ++j) eig::store_complex(result.values[j], values + 2 * j);
      for (size_t j = 0; j < result.vectors.size(); ++j) {
        T* const column = args.vectors.buffer->host<T>() + 2 * (matrix * args.vectors.stride + j);
        for (size_t i = 0; i < result.vectors[j].size(); ++i) {
          eig::store_complex(result.vectors[j][i], column + 2 * i * args.vectors.ld);
        }
      }
    });
    return info;
  });
}

}  // namespace tuff
