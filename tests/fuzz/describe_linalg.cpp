// Linear algebra. What any order of operations may compute is bounded element by element: a number with the radius
// within which every implementation's result lies. Where a choice (a pivot, whether a matrix is positive definite)
// depends on the rounding, results are not judged.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "fuzz/matrices.hpp"

namespace tuff_fuzz {
namespace {

// A value and the largest distance from it.
struct Near {
  double value = 0, radius = 0;
  double most() const { return std::fabs(value) + radius; }
  double least() const { return std::fabs(value) - radius; }
};

// Both the device's and the host's results are within it; a device's quotient and root have a few units.
double unit_of(int32_t dtype) { return dtype == TUFF_F64 ? 0x1p-52 : 0x1p-23; }

// Below the type's normal range an operation is off by more than a unit: a device may take such operands and results
// for 0.
double least_normal(double unit) { return unit == 0x1p-52 ? 0x1p-1022 : 0x1p-126; }

// a - sum of products, in any order.
class Difference {
 public:
  explicit Difference(Near a) : value_(a.value), radius_(a.radius), size_(a.most()) {}
  void subtract(const Near& a, const Near& b) {
    value_ -= a.value * b.value;
    radius_ += a.most() * b.most() - std::fabs(a.value * b.value);
    size_ += a.most() * b.most();
    largest_ = std::max({largest_, a.most(), b.most()});
    ++terms_;
  }
  Near result(double unit) const {
    if (terms_ == 0 || size_ == 0) return {value_, radius_};
    return {value_, radius_ + (terms_ + 3) * (unit * size_ + least_normal(unit) * (1 + largest_))};
  }

 private:
  double value_, radius_, size_, largest_ = 0;
  int terms_ = 0;
};

Near quotient(const Near& a, const Near& b, double unit) {
  const double value = a.value / b.value;
  if (a.most() == 0) return {value, 0};
  const double least = least_normal(unit);
  return {value,
          (a.radius + least + std::fabs(value) * b.radius) / b.least() + 4 * unit * (a.most() / b.least()) + least};
}

bool usable(const Near& x) { return x.most() < 1e30; }

// One matrix of a batch while a call is predicted.
class Matrix {
 public:
  Matrix(const Operand& operand, const Stored& stored, uint64_t index)
      : cols_(stored.cols), values_(stored.rows * stored.cols) {
    for (uint64_t i = 0; i < stored.rows; ++i) {
      for (uint64_t j = 0; j < stored.cols; ++j) (*this)(i, j).value = operand.values[stored.at(index, i, j)];
    }
  }
  Near& operator()(uint64_t i, uint64_t j) { return values_[i * cols_ + j]; }
  const Near& operator()(uint64_t i, uint64_t j) const { return values_[i * cols_ + j]; }

 private:
  uint64_t cols_;
  std::vector<Near> values_;
};

using Radii = std::shared_ptr<std::vector<double>>;

Radii allow(Operand& operand) {
  const auto radii = std::make_shared<std::vector<double>>();
  operand.allowed = [radii](uint64_t index, double) { return index < radii->size() ? (*radii)[index] : 0.0; };
  return radii;
}

// Writes the radii of a matrix. False if a number is too large to be judged.
bool keep(const Matrix& matrix, const Stored& stored, uint64_t index, std::vector<double>& radii) {
  for (uint64_t i = 0; i < stored.rows; ++i) {
    for (uint64_t j = 0; j < stored.cols; ++j) {
      if (!usable(matrix(i, j))) return false;
      radii[stored.at(index, i, j)] = matrix(i, j).radius;
    }
  }
  return true;
}

bool finite(const Operand& operand) {
  return std::all_of(operand.values.begin(), operand.values.end(), [](double x) { return std::fabs(x) < 1e10; });
}

int32_t draw_type(Draft& d) { return d.shape.of<int32_t>({TUFF_F32, TUFF_F32, TUFF_F64}); }

// An extent of a matrix. Steps are cubic in it, here and in the host backend: a test that sets sizes of thousands would
// wait for minutes.
uint64_t draw_extent(Draft& d, uint64_t drawn, uint64_t usual = 40) {
  return std::min<uint64_t>(d.extent(drawn, 0, usual), 300);
}

uint64_t draw_batch(Draft& d) { return d.extent(d.shape.one_in(12) ? 0 : d.shape.between(1, 5), 0, 5); }

Operand& in_place(Draft& d, const char* name, int32_t dtype, const Stored& matrix, uint64_t batch) {
  Operand& operand = d.output(name, dtype, footprint(matrix.axes(batch)));
  operand.read = true, operand.keep_values = true;
  operand.axes = matrix.axes(batch);
  return operand;
}

// --- factorisations ----------------------------------------------------------------------------------------------

// Results of a matrix whose step fails are NaN, which the radii do not concern.
bool predict_cholesky(Matrix& a, uint64_t n, bool upper, double unit) {
  const auto at = [&](uint64_t i, uint64_t j) -> Near& { return upper ? a(j, i) : a(i, j); };
  for (uint64_t j = 0; j < n; ++j) {
    for (uint64_t i = j; i < n; ++i) {
      Difference rest(at(i, j));
      for (uint64_t k = 0; k < j; ++k) rest.subtract(at(i, k), at(j, k));
      const Near value = rest.result(unit);
      if (i == j) {
        if (value.value + value.radius <= 0) {
          for (uint64_t r = j; r < n; ++r) {
            for (uint64_t c = j; c <= r; ++c) at(r, c) = {};
          }
          return true;
        }
        if (value.value - value.radius <= 0) return false;
        const double root = std::sqrt(value.value);
        at(i, j) = {root, value.radius / std::sqrt(value.least()) + 4 * unit * root};
      } else {
        at(i, j) = quotient(value, at(j, j), unit);
      }
    }
  }
  return true;
}

void draw_cholesky(Draft& d) {
  const int32_t dtype = draw_type(d);
  const bool upper = d.shape.one_in(2);
  const uint64_t n = draw_extent(d, draw_size(d.shape, 70)), batch = draw_batch(d);
  const Stored a = stored(d, n, n, batch, d.shape.one_in(2), false);
  d.set("dtype", dtype), d.set("triangle", upper ? TUFF_TRIANGLE_UPPER : TUFF_TRIANGLE_LOWER);
  d.set("n", n), d.set("batch_count", batch), d.set("stride_a", a.stride);
  set_leading(d, "lda", a);
  Operand& operand = in_place(d, "a", dtype, a, batch);
  operand.fill = Fill::positive;
  const Radii radii = allow(operand);
  const int place = d.index_of("a");
  if (d.shape.one_in(2)) d.output("info", TUFF_I32, batch);
  d.suits = [&d, place, a, n, upper, batch, radii, unit = unit_of(dtype)] {
    const Operand& matrices = d.operands[static_cast<size_t>(place)];
    radii->assign(matrices.elements, 0);
    for (uint64_t i = 0; i < batch && n != 0; ++i) {
      if (!finite(matrices)) return false;
      Matrix matrix(matrices, a, i);
      if (!predict_cholesky(matrix, n, upper, unit)) return false;
      for (uint64_t r = 0; r < n; ++r) {
        for (uint64_t c = 0; c < r; ++c) (upper ? matrix(r, c) : matrix(c, r)) = {};  // zeros
      }
      if (!keep(matrix, a, i, *radii)) return false;
    }
    return true;
  };
}

bool predict_lu(Matrix& a, uint64_t m, uint64_t n, double unit) {
  // Element (i, j) before its last step.
  const auto reduced = [&](uint64_t i, uint64_t j, uint64_t steps) {
    Difference rest(a(i, j));
    for (uint64_t k = 0; k < steps; ++k) rest.subtract(a(i, k), a(k, j));
    return rest.result(unit);
  };
  for (uint64_t k = 0; k < std::min(m, n); ++k) {
    std::vector<Near> column(m);
    uint64_t pivot = k;
    for (uint64_t i = k; i < m; ++i) {
      column[i] = reduced(i, k, k);
      if (std::fabs(column[i].value) > std::fabs(column[pivot].value)) pivot = i;
    }
    for (uint64_t i = k; i < m; ++i) {
      const bool exact = column[i].radius == 0 && column[pivot].radius == 0;
      if (i != pivot && !exact && column[i].most() >= column[pivot].least()) return false;
    }
    const Near largest = column[pivot];
    if (largest.radius != 0 && largest.least() <= 0) return false;
    std::swap(column[k], column[pivot]);
    for (uint64_t j = 0; j < n && pivot != k; ++j) std::swap(a(k, j), a(pivot, j));
    a(k, k) = largest;
    for (uint64_t i = k + 1; i < m; ++i) a(i, k) = largest.value == 0 ? column[i] : quotient(column[i], largest, unit);
    for (uint64_t j = k + 1; j < n; ++j) a(k, j) = reduced(k, j, k);
  }
  return true;
}

void draw_lu(Draft& d) {
  const int32_t dtype = draw_type(d);
  const uint64_t m = draw_extent(d, draw_size(d.shape, 70)),
                 n = draw_extent(d, d.shape.one_in(2) ? m : draw_size(d.shape, 70)), batch = draw_batch(d);
  const Stored a = stored(d, m, n, batch, d.shape.one_in(2), false);
  const uint64_t steps = std::min(m, n), gap = d.shape.one_in(3) ? d.loose().below(4) : 0;
  d.set("dtype", dtype), d.set("m", m), d.set("n", n), d.set("batch_count", batch), d.set("stride_a", a.stride);
  set_leading(d, "lda", a);
  d.set("stride_pivots", gap == 0 && d.free.one_in(2) ? 0 : steps + gap);
  const Radii radii = allow(in_place(d, "a", dtype, a, batch));
  const int place = d.index_of("a");
  const std::vector<Axis> pivots = {{steps == 0 ? 0 : batch, steps + gap}, {steps, 1}};
  d.output("pivots", TUFF_I32, footprint(pivots)).axes = pivots;
  if (d.shape.one_in(2)) d.output("info", TUFF_I32, batch);
  d.suits = [&d, place, a, m, n, batch, radii, unit = unit_of(dtype)] {
    const Operand& matrices = d.operands[static_cast<size_t>(place)];
    radii->assign(matrices.elements, 0);
    for (uint64_t i = 0; i < batch && m != 0 && n != 0; ++i) {
      if (!finite(matrices)) return false;
      Matrix matrix(matrices, a, i);
      if (!predict_lu(matrix, m, n, unit) || !keep(matrix, a, i, *radii)) return false;
    }
    return true;
  };
}

// --- systems -----------------------------------------------------------------------------------------------------

// Substitution in place of X, whose element i of one right side is x(i); t(i, k) is the triangle.
template <typename Triangle, typename Element>
bool predict_solve(const Triangle& t, uint64_t n, bool upper, bool unit_diagonal, double unit, const Element& x) {
  for (uint64_t step = 0; step < n; ++step) {
    const uint64_t i = upper ? n - 1 - step : step;
    Difference rest(x(i));
    for (uint64_t k = upper ? i + 1 : 0; k < (upper ? n : i); ++k) rest.subtract(t(i, k), x(k));
    x(i) = rest.result(unit);
    if (unit_diagonal) continue;
    if (t(i, i).least() <= 0) return false;
    x(i) = quotient(x(i), t(i, i), unit);
    if (!usable(x(i))) return false;
  }
  return true;
}

void draw_triangular_solve(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_type(d), transpose = static_cast<int32_t>(draw.below(3));
  const bool right = draw.one_in(2), upper = draw.one_in(2), unit_diagonal = draw.one_in(3);
  const uint64_t m = draw_extent(d, draw_size(draw, 70)), n = draw_extent(d, draw_size(draw, 70)),
                 batch = draw_batch(d), extent = right ? n : m;
  const bool padded = draw.one_in(2), empty = m == 0 || n == 0;
  const Stored a = stored(d, extent, extent, batch, padded, draw.one_in(4)), b = stored(d, m, n, batch, padded, false);
  d.set("dtype", dtype), d.set("side", right ? TUFF_SIDE_RIGHT : TUFF_SIDE_LEFT);
  d.set("triangle", upper ? TUFF_TRIANGLE_UPPER : TUFF_TRIANGLE_LOWER), d.set("transpose", transpose);
  d.set("unit_diagonal", unit_diagonal ? 1 : 0), d.set("m", m), d.set("n", n), d.set("batch_count", batch);
  set_leading(d, "lda", a), set_leading(d, "ldb", b);
  d.set("stride_a", a.stride), d.set("stride_b", b.stride);
  d.input("a", dtype, empty ? 0 : footprint(a.axes(batch)), Fill::powers).keep_values = true;
  const Radii radii = allow(in_place(d, "b", dtype, b, batch));
  d.suits = [&d, a, b, right, upper, unit_diagonal, transpose, m, n, batch, extent, radii, unit = unit_of(dtype)] {
    const Operand &triangles = d.of("a"), &sides = d.of("b");
    radii->assign(sides.elements, 0);
    const bool flipped = (transpose != TUFF_NO_TRANS) != right;
    for (uint64_t i = 0; i < batch && m != 0 && n != 0; ++i) {
      if (!finite(triangles) || !finite(sides)) return false;
      const Matrix t(triangles, a, i);
      Matrix x(sides, b, i);
      for (uint64_t side = 0; side < (right ? m : n); ++side) {
        const bool solved =
            predict_solve([&](uint64_t r, uint64_t c) { return flipped ? t(c, r) : t(r, c); }, extent, upper != flipped,
                          unit_diagonal, unit, [&](uint64_t r) -> Near& { return right ? x(side, r) : x(r, side); });
        if (!solved) return false;
      }
      if (!keep(x, b, i, *radii)) return false;
    }
    return true;
  };
}

// The pivots that a call reads, some of which are no rows; returns the distance between those of two matrices.
uint64_t draw_pivots(Draft& d, const Stored& a, uint64_t n, uint64_t batch, bool none) {
  const bool repeats = a.stride == 0;
  const uint64_t stride = repeats ? 0 : n + (d.shape.one_in(3) ? d.loose().below(4) : 0);
  d.set("stride_pivots", stride == n && d.free.one_in(2) ? 0 : stride);
  const std::vector<Axis> axes = {{n == 0 ? 0 : batch, stride}, {n, 1}};
  d.input("pivots", TUFF_I32, none ? 0 : footprint(axes), Fill::indices, static_cast<double>(n)).keep_values = true;
  return stride;
}

// Calls body(k, pivot) for each exchange.
template <typename Body>
void each_exchange(const Operand& pivots, uint64_t first, uint64_t n, bool reverse, const Body& body) {
  for (uint64_t step = 0; step < n; ++step) {
    const uint64_t k = reverse ? n - 1 - step : step;
    const double pivot = pivots.values[first + k];
    if (pivot >= 0 && pivot < static_cast<double>(n)) body(k, static_cast<uint64_t>(pivot));
  }
}

void draw_lu_solve(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_type(d), transpose = static_cast<int32_t>(draw.below(3));
  const uint64_t n = draw_extent(d, draw_size(draw, 70)), nrhs = draw_extent(d, draw_size(draw, 40), 20),
                 batch = draw_batch(d);
  const bool padded = draw.one_in(2), empty = n == 0 || nrhs == 0;
  const Stored a = stored(d, n, n, batch, padded, draw.one_in(4)), b = stored(d, n, nrhs, batch, padded, false);
  d.set("dtype", dtype), d.set("transpose", transpose), d.set("n", n), d.set("nrhs", nrhs);
  d.set("batch_count", batch), d.set("stride_a", a.stride), d.set("stride_b", b.stride);
  set_leading(d, "lda", a), set_leading(d, "ldb", b);
  d.input("a", dtype, empty ? 0 : footprint(a.axes(batch)), Fill::powers).keep_values = true;
  const uint64_t stride_pivots = draw_pivots(d, a, n, batch, empty);
  const Radii radii = allow(in_place(d, "b", dtype, b, batch));
  d.suits = [&d, a, b, transpose, n, nrhs, batch, stride_pivots, radii, unit = unit_of(dtype)] {
    const Operand &factors = d.of("a"), &pivots = d.of("pivots"), &sides = d.of("b");
    radii->assign(sides.elements, 0);
    const bool flipped = transpose != TUFF_NO_TRANS;
    for (uint64_t i = 0; i < batch && n != 0 && nrhs != 0; ++i) {
      if (!finite(factors) || !finite(sides)) return false;
      const Matrix lu(factors, a, i);
      Matrix x(sides, b, i);
      const uint64_t first = i * stride_pivots;
      for (uint64_t side = 0; side < nrhs; ++side) {
        const auto element = [&](uint64_t r) -> Near& { return x(r, side); };
        const auto exchange = [&](uint64_t r, uint64_t other) { std::swap(x(r, side), x(other, side)); };
        const auto t = [&](uint64_t r, uint64_t c) { return flipped ? lu(c, r) : lu(r, c); };
        if (!flipped) each_exchange(pivots, first, n, false, exchange);
        if (!predict_solve(t, n, false, !flipped, unit, element)) return false;
        if (!predict_solve(t, n, true, flipped, unit, element)) return false;
        if (flipped) each_exchange(pivots, first, n, true, exchange);
      }
      if (!keep(x, b, i, *radii)) return false;
    }
    return true;
  };
}

void draw_lu_determinant(Draft& d) {
  const int32_t dtype = draw_type(d);
  const uint64_t n = draw_extent(d, draw_size(d.shape, 70)), batch = draw_batch(d);
  const Stored a = stored(d, n, n, batch, d.shape.one_in(2), d.shape.one_in(4));
  d.set("dtype", dtype), d.set("n", n), d.set("batch_count", batch), d.set("stride_a", a.stride);
  set_leading(d, "lda", a);
  const bool determinant = !d.shape.one_in(4), sign = d.shape.one_in(2), logarithm = d.shape.one_in(2);
  const bool none = !determinant && !sign && !logarithm;
  d.input("a", dtype, none ? 0 : footprint(a.axes(batch)), Fill::powers).keep_values = true;
  draw_pivots(d, a, n, batch, none);
  const double unit = unit_of(dtype) * static_cast<double>(2 * n + 8);
  if (determinant) {
    d.output("determinant", dtype, batch).allowed = [unit](uint64_t, double y) { return unit * std::fabs(y); };
  }
  if (sign) d.output("sign", dtype, batch);
  if (logarithm) {
    d.output("log_magnitude", dtype, batch).allowed = [unit](uint64_t, double y) { return unit * (1 + std::fabs(y)); };
  }
  d.suits = [&d, none] {
    const Operand& factors = d.of("a");
    return none ||
           std::all_of(factors.values.begin(), factors.values.end(), [](double x) { return std::fabs(x) <= 4; });
  };
}

// --- orthogonal factors --------------------------------------------------------------------------------------------

// Signs of columns, and bases of the spaces of equal values, depend on the rounding. These results are therefore not
// judged here, but by their residuals (tests/linalg_qr_test.cpp, linalg_spectrum_test.cpp, linalg_eig_test.cpp); what
// surrounds them is.
bool not_judged() { return false; }

void draw_qr(Draft& d) {
  const int32_t dtype = draw_type(d);
  const uint64_t m = draw_extent(d, draw_size(d.shape, 70)),
                 n = draw_extent(d, d.shape.one_in(2) ? m : draw_size(d.shape, 70)), batch = draw_batch(d);
  const bool wanted = !d.shape.one_in(4), padded = d.shape.one_in(2);
  const uint64_t steps = std::min(m, n), columns = d.shape.one_in(2) ? steps : steps + d.loose().below(m - steps + 1);
  const Stored a = stored(d, m, n, batch, padded, false), q = stored(d, m, columns, batch, padded, false);
  d.set("dtype", dtype), d.set("m", m), d.set("n", n), d.set("batch_count", batch), d.set("stride_a", a.stride);
  set_leading(d, "lda", a);
  d.set("columns_q", columns == steps && d.free.one_in(2) ? 0 : columns), d.set("stride_q", q.stride);
  set_leading(d, "ldq", q);
  in_place(d, "a", dtype, a, batch);
  if (wanted) d.output("q", dtype, footprint(q.axes(batch))).axes = q.axes(batch);
  d.suits = not_judged;
}

// A row of `count` numbers for each matrix.
void draw_values(Draft& d, int32_t dtype, uint64_t count, uint64_t batch, bool padded) {
  const Stored values = stored(d, 1, count, batch, padded, false);
  d.set("stride_values", values.stride == count && d.free.one_in(2) ? 0 : values.stride);
  d.output("values", dtype, footprint(values.axes(batch))).axes = values.axes(batch);
}

void draw_eigh(Draft& d) {
  const int32_t dtype = draw_type(d);
  const uint64_t n = std::min<uint64_t>(draw_extent(d, draw_size(d.shape, 50)), 100), batch = draw_batch(d);
  const bool vectors = !d.shape.one_in(3), padded = d.shape.one_in(2);
  const Stored a = stored(d, n, n, batch, padded, d.shape.one_in(4)), v = stored(d, n, n, batch, padded, false);
  d.set("dtype", dtype), d.set("triangle", d.shape.one_in(2) ? TUFF_TRIANGLE_UPPER : TUFF_TRIANGLE_LOWER);
  d.set("n", n), d.set("batch_count", batch), d.set("stride_a", a.stride), d.set("stride_vectors", v.stride);
  set_leading(d, "lda", a), set_leading(d, "ld_vectors", v);
  d.input("a", dtype, footprint(a.axes(batch)));
  draw_values(d, dtype, n, batch, padded);
  if (vectors) d.output("vectors", dtype, footprint(v.axes(batch))).axes = v.axes(batch);
  if (d.shape.one_in(2)) d.output("info", TUFF_I32, batch);
  d.suits = not_judged;
}

void draw_eig(Draft& d) {
  const int32_t dtype = draw_type(d), results = dtype == TUFF_F64 ? TUFF_C128 : TUFF_C64;
  const uint64_t n = std::min<uint64_t>(draw_extent(d, draw_size(d.shape, 50)), 80), batch = draw_batch(d);
  const bool vectors = !d.shape.one_in(3), padded = d.shape.one_in(2);
  const Stored a = stored(d, n, n, batch, padded, d.shape.one_in(4)), v = stored(d, n, n, batch, padded, false);
  d.set("dtype", dtype), d.set("n", n), d.set("batch_count", batch);
  d.set("stride_a", a.stride), d.set("stride_vectors", v.stride);
  set_leading(d, "lda", a), set_leading(d, "ld_vectors", v);
  d.input("a", dtype, footprint(a.axes(batch)));
  draw_values(d, results, n, batch, padded);
  if (vectors) d.output("vectors", results, footprint(v.axes(batch))).axes = v.axes(batch);
  if (d.shape.one_in(2)) d.output("info", TUFF_I32, batch);
  d.suits = not_judged;
}

void draw_svd(Draft& d) {
  const int32_t dtype = draw_type(d);
  const uint64_t m = std::min<uint64_t>(draw_extent(d, draw_size(d.shape, 50)), 100),
                 n = std::min<uint64_t>(draw_extent(d, draw_size(d.shape, 50)), 100), k = std::min(m, n),
                 batch = draw_batch(d);
  const bool left = !d.shape.one_in(3), right = !d.shape.one_in(3), padded = d.shape.one_in(2);
  const Stored a = stored(d, m, n, batch, padded, d.shape.one_in(4)), u = stored(d, m, k, batch, padded, false),
               vt = stored(d, k, n, batch, padded, false);
  d.set("dtype", dtype), d.set("m", m), d.set("n", n), d.set("batch_count", batch);
  d.set("stride_a", a.stride), d.set("stride_u", u.stride), d.set("stride_vt", vt.stride);
  set_leading(d, "lda", a), set_leading(d, "ldu", u), set_leading(d, "ldvt", vt);
  d.input("a", dtype, footprint(a.axes(batch)));
  draw_values(d, dtype, k, batch, padded);
  if (left) d.output("u", dtype, footprint(u.axes(batch))).axes = u.axes(batch);
  if (right) d.output("vt", dtype, footprint(vt.axes(batch))).axes = vt.axes(batch);
  if (d.shape.one_in(2)) d.output("info", TUFF_I32, batch);
  d.suits = not_judged;
}

constexpr Description kLinalg[] = {
    {"tuff_cholesky", "linalg", draw_cholesky},
    {"tuff_lu", "linalg", draw_lu},
    {"tuff_triangular_solve", "linalg", draw_triangular_solve},
    {"tuff_lu_solve", "linalg", draw_lu_solve},
    {"tuff_lu_determinant", "linalg", draw_lu_determinant},
    {"tuff_qr", "linalg", draw_qr},
    {"tuff_eigh", "linalg", draw_eigh},
    {"tuff_eig", "linalg", draw_eig},
    {"tuff_svd", "linalg", draw_svd},
};

}  // namespace

std::span<const Description> describe_linalg() { return kLinalg; }

}  // namespace tuff_fuzz
