// Products of two sparse matrices, and triangular systems. Exact tier: integers, whose sums every order gives to the
// bit; the places of a product are exact anyway. Bound tier of a system: |A x - b| <= gamma of the entries of a row + 4
// (alpha, the difference, the division), relative to |A| |x| + |b|, in f32 or f64, and what rounding x to the type
// changes.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "support/bounds.hpp"
#include "support/tensor.hpp"
#include "support/typed_gemm.hpp"

namespace tuff_test::sparse_products_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kUnsupported = TUFF_ERROR_UNSUPPORTED;

enum class Form { even, power, one_dense, empty, all_in_one };
constexpr const char* kForms[] = {"even", "power", "one_dense", "empty", "all_in_one"};

struct Csr {
  uint64_t rows = 0, columns = 0;
  std::vector<int64_t> offsets = {0}, indices = {};
  std::vector<double> values = {};
  uint64_t nnz() const { return indices.size(); }
  template <typename Body>
  void each(uint64_t row, const Body& body) const {  // body(column, value), of entries in range
    for (auto e = static_cast<size_t>(offsets[row]); e < static_cast<size_t>(offsets[row + 1]); ++e) {
      if (indices[e] >= 0 && static_cast<uint64_t>(indices[e]) < columns) {
        body(static_cast<uint64_t>(indices[e]), values[e]);
      }
    }
  }
};

uint64_t length_of(Form form, uint64_t row, uint64_t rows, uint64_t columns, Random& random) {
  const double u = random.uniform(1e-4f, 1);
  switch (form) {
    case Form::even: return static_cast<uint64_t>(u * 7);
    case Form::power: return std::min<uint64_t>(static_cast<uint64_t>(1 / u) - 1, 300);
    case Form::one_dense: return row == rows / 3 ? columns : row % 9 == 0 ? 1 : 0;
    case Form::empty: return 0;
    case Form::all_in_one: return row == rows / 2 ? 2'000 : 0;
  }
  return 0;
}

// With duplicates, unsorted rows, and if `stray` indices that are out of range. Values from -2 to 2.
Csr matrix_of(Form form, uint64_t rows, uint64_t columns, bool stray, Random& random) {
  Csr a{rows, columns};
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t n = length_of(form, i, rows, columns, random); n > 0; --n) {
      const int64_t all[] = {-1, static_cast<int64_t>(columns), INT32_MAX, INT32_MIN};
      a.indices.push_back(stray && random.next() % 13 == 0
                              ? all[random.next() % 4]
                              : static_cast<int64_t>(random.next() % std::max(columns, uint64_t{1})));
      a.values.push_back(random.integer(2));
    }
    a.offsets.push_back(static_cast<int64_t>(a.indices.size()));
  }
  return a;
}

template <typename Number>
std::vector<double> doubles(const std::vector<Number>& numbers) {
  return {numbers.begin(), numbers.end()};
}

// The buffers of a matrix.
struct Stored {
  TypedTensor offsets, indices, values;
  Stored(tuff_context context, const Csr& a, int32_t dtype, int32_t index_type, uint64_t shift = 0)
      : offsets(context, index_type, as_type(index_type, a.offsets), shift),
        indices(context, index_type, as_type(index_type, a.indices), shift == 0 ? 0 : 1),
        values(context, dtype, as_type(dtype, a.values), shift) {}
};

// --- products ----------------------------------------------------------------------------------------------------

struct ProductCase {
  Form a, b;
  uint64_t rows, inner, columns;
  int32_t dtype = TUFF_F32, index_type = TUFF_I32;
  bool stray = false;
  int64_t spare = 0;  // room for entries beyond those that there are; negative: for fewer
  int64_t loose = 0;  // as many terms beyond those that there are
  uint64_t shift = 0;

  double work() const { return 1e4 * static_cast<double>(rows + columns); }
  std::string name() const {
    return std::string(name_of(dtype)) + "_" + name_of(index_type) + "_" + kForms[static_cast<int>(a)] + "_by_" +
           kForms[static_cast<int>(b)] + "_" + std::to_string(rows) + "x" + std::to_string(inner) + "x" +
           std::to_string(columns) + (stray ? "_stray" : "") + "_room" + (spare < 0 ? "less" : std::to_string(spare)) +
           "_terms" + (loose < 0 ? "less" : std::to_string(loose)) + "_shift" + std::to_string(shift);
  }
};

std::vector<ProductCase> products() {
  std::vector<ProductCase> all;
  const Form forms[] = {Form::even, Form::power, Form::one_dense, Form::empty, Form::all_in_one};
  for (const Form a : forms) {
    for (const Form b : forms) all.push_back({a, b, 60, 45, 70, TUFF_F32, TUFF_I32, true, 5, 3});
  }
  all.push_back({Form::even, Form::even, 1, 1, 1});
  all.push_back({Form::even, Form::even, 1, 500, 1});
  all.push_back({Form::one_dense, Form::one_dense, 3, 300, 3});
  all.push_back({Form::even, Form::power, 900, 700, 800});
  // The number of a line that entries out of range have, and the last one of a line, take 8 bits or 9 to sort.
  all.push_back({Form::even, Form::even, 255, 256, 257, TUFF_F32, TUFF_I32, true, 1, 1});
  all.push_back({Form::even, Form::even, 256, 255, 256, TUFF_F32, TUFF_I64, true, 1, 1});
  all.push_back({Form::even, Form::power, 200, 170, 90, TUFF_F16, TUFF_I32, true, 7, 0, 3});
  all.push_back({Form::even, Form::even, 200, 170, 90, TUFF_BF16, TUFF_I64, true, 0, 1000, 1});
  all.push_back({Form::power, Form::even, 200, 170, 90, TUFF_F64, TUFF_I64, true, -9, 0, 2});
  all.push_back({Form::power, Form::even, 200, 170, 90, TUFF_F32, TUFF_I64, true, -9, 4000, 5});
  all.push_back({Form::even, Form::even, 50, 40, 30, TUFF_F32, TUFF_I32, false, 10, -1});
  for (const auto& [rows, inner, columns] : {std::array<uint64_t, 3>{0, 5, 6}, {5, 0, 6}, {5, 6, 0}}) {
    all.push_back({Form::even, Form::even, rows, inner, columns, TUFF_F32, TUFF_I32, false, 3, 2});
  }
  return all;
}

class SparseProducts : public Table<ProductCase> {};

TEST_P(SparseProducts, AsDense) {
  const ProductCase& s = row();
  Random random(s.rows * 13 + s.columns * 5 + static_cast<uint64_t>(s.a) * 7 + static_cast<uint64_t>(s.b));
  const Csr a = matrix_of(s.a, s.rows, s.inner, s.stray, random),
            b = matrix_of(s.b, s.inner, s.columns, s.stray, random);
  std::vector<int64_t> offsets{0}, indices;
  std::vector<double> values;
  int64_t terms = 0;
  for (uint64_t i = 0; i < s.rows; ++i) {
    std::map<uint64_t, double> line;
    a.each(i, [&](uint64_t k, double x) { b.each(k, [&](uint64_t j, double y) { line[j] += x * y, ++terms; }); });
    for (const auto& [j, value] : line) indices.push_back(static_cast<int64_t>(j)), values.push_back(value);
    offsets.push_back(static_cast<int64_t>(indices.size()));
  }
  const int64_t max_terms = std::max<int64_t>(terms + s.loose, 0);
  if (max_terms < terms) {  // nothing is multiplied
    offsets.assign(offsets.size(), 0), indices.clear(), values.clear();
  }
  const auto found = static_cast<int64_t>(indices.size());
  const auto capacity = static_cast<uint64_t>(std::max<int64_t>(found + s.spare, 0));
  indices.resize(capacity, -1), values.resize(capacity, 0);
  for (double& value : values) value = held(s.dtype, value);

  const Stored left(context(), a, s.dtype, s.index_type, s.shift), right(context(), b, s.dtype, s.index_type, s.shift);
  const auto blank = [](int32_t dtype, uint64_t count) { return Bytes(count * size_of(dtype), 0x6b); };
  const TypedTensor c_offsets(context(), s.index_type, blank(s.index_type, s.rows + 1), s.shift),
      c_indices(context(), s.index_type, blank(s.index_type, capacity), 1),
      c_values(context(), s.dtype, blank(s.dtype, capacity), s.shift),
      count(context(), TUFF_I64, blank(TUFF_I64, 1), 1), of_terms(context(), TUFF_I64, blank(TUFF_I64, 1), 1);
  tuff_spgemm_desc desc{};
  desc.struct_size = sizeof desc, desc.dtype = s.dtype, desc.index_type = s.index_type;
  desc.rows = s.rows, desc.inner = s.inner, desc.columns = s.columns, desc.a_nnz = a.nnz(), desc.b_nnz = b.nnz();
  desc.capacity = capacity, desc.a_offsets = left.offsets, desc.a_indices = left.indices, desc.a_values = left.values;
  desc.b_offsets = right.offsets, desc.b_indices = right.indices, desc.b_values = right.values;
  desc.c_offsets = c_offsets, desc.c_indices = c_indices, desc.c_values = c_values;
  desc.terms = of_terms, desc.count = count;
  const auto numbers = [](const TypedTensor& x) { return numbers_of(TUFF_I64, x.read()); };
  ASSERT_OK(tuff_spgemm(context(), &desc));  // with max_terms 0 it only counts
  EXPECT_EQ(numbers(of_terms), std::vector<double>{static_cast<double>(terms)});
  EXPECT_EQ(numbers(count), std::vector<double>{0});
  EXPECT_EQ(numbers_of(s.index_type, c_offsets.read()), std::vector<double>(s.rows + 1));
  EXPECT_EQ(numbers_of(s.index_type, c_indices.read()), std::vector<double>(capacity, -1));
  desc.max_terms = static_cast<uint64_t>(max_terms);
  ASSERT_OK(tuff_spgemm(context(), &desc));
  EXPECT_EQ(numbers(of_terms), std::vector<double>{static_cast<double>(terms)});
  EXPECT_EQ(numbers(count), std::vector<double>{static_cast<double>(found)});
  EXPECT_EQ(numbers_of(s.index_type, c_offsets.read()), doubles(offsets));
  EXPECT_EQ(numbers_of(s.index_type, c_indices.read()), doubles(indices));
  EXPECT_EQ(numbers_of(s.dtype, c_values.read()), values);
}
TUFF_TABLE(SparseProducts, ProductCase, products());

// --- triangular systems ------------------------------------------------------------------------------------------

enum class Shape { random, chain, dense, diagonal, arrow, levels };  // arrow: a long row or column
constexpr const char* kShapes[] = {"random", "chain", "dense", "diagonal", "arrow", "levels"};

struct SystemCase {
  Shape shape;
  uint64_t rows, n = 1;
  int32_t dtype = TUFF_F32, index_type = TUFF_I32, triangle = TUFF_TRIANGLE_LOWER, transpose = TUFF_NO_TRANS;
  bool unit = false;
  uint64_t pad = 0, shift = 0;
  double alpha = 1;
  bool in_place = false;

  double work() const { return 1e3 * static_cast<double>(rows * n); }
  std::string name() const {
    return std::string(name_of(dtype)) + "_" + name_of(index_type) + "_" + kShapes[static_cast<int>(shape)] + "_" +
           std::to_string(rows) + "x" + std::to_string(n) + (triangle == TUFF_TRIANGLE_LOWER ? "_lower" : "_upper") +
           (transpose != TUFF_NO_TRANS ? "_transposed" : "") + (unit ? "_unit" : "") + "_pad" + std::to_string(pad) +
           "_shift" + std::to_string(shift) + (in_place ? "_in_place" : "") + (alpha == 1 ? "" : "_alpha");
  }
};

std::vector<SystemCase> systems() {
  std::vector<SystemCase> all;
  for (const Shape shape : {Shape::random, Shape::chain, Shape::dense, Shape::diagonal, Shape::arrow, Shape::levels}) {
    for (const int32_t triangle : {TUFF_TRIANGLE_LOWER, TUFF_TRIANGLE_UPPER}) {
      for (const int32_t transpose : {TUFF_NO_TRANS, TUFF_TRANS}) {
        const bool unit = (triangle == TUFF_TRIANGLE_LOWER) == (transpose == TUFF_NO_TRANS);
        all.push_back({shape, 150, 1, TUFF_F32, TUFF_I32, triangle, transpose, unit});
        all.push_back({shape, 67, 5, TUFF_F32, TUFF_I64, triangle, transpose, !unit, 3, 1, -2});
      }
    }
  }
  for (const int32_t dtype : {TUFF_F16, TUFF_BF16, TUFF_F64}) {
    all.push_back({Shape::random, 120, 3, dtype, TUFF_I32, TUFF_TRIANGLE_LOWER, TUFF_NO_TRANS, false, 2, 3});
    all.push_back({Shape::levels, 120, 3, dtype, TUFF_I64, TUFF_TRIANGLE_UPPER, TUFF_TRANS, true, 0, 1, 0.5, true});
  }
  all.push_back({Shape::random, 1});
  all.push_back({Shape::dense, 2, 300});
  all.push_back({Shape::random, 90, 4, TUFF_F32, TUFF_I32, TUFF_TRIANGLE_UPPER, TUFF_NO_TRANS, false, 2, 0, 1, true});
  // More levels, and a longer row, than one dispatch takes on a CPU device.
  all.push_back({Shape::chain, 45'000});
  all.push_back({Shape::arrow, 60'000, 2, TUFF_F32, TUFF_I32, TUFF_TRIANGLE_UPPER});
  return all;
}

// Entries of both triangles, of which one is ignored; duplicates; a few out of range. Rows are dominated by their
// diagonal.
Csr system_of(const SystemCase& s, Random& random) {
  std::vector<std::vector<std::pair<int64_t, double>>> lines(s.rows);
  const auto add = [&](uint64_t i, uint64_t j, double value) { lines[i].push_back({static_cast<int64_t>(j), value}); };
  const auto small = [&] { return double{random.uniform(-1, 1)} / 16; };
  const uint64_t n = s.rows;
  const bool lower = s.triangle == TUFF_TRIANGLE_LOWER;
  for (uint64_t i = 0; i < n; ++i) {
    add(i, i, 1.5), add(i, i, 0.25 + small());  // a sum
    if (s.shape == Shape::chain && i > 0) lower ? add(i, i - 1, small()) : add(i - 1, i, small());
    if (s.shape == Shape::dense) {
      for (uint64_t j = 0; j < i; ++j) lower ? add(i, j, small() / 8) : add(j, i, small() / 8);
    }
    if (s.shape == Shape::arrow) {
      const bool row_like = lower == (n % 2 == 0);
      if (i + 1 < n && row_like) lower ? add(n - 1, i, small() / 64) : add(i, n - 1, small());
      if (i > 0 && !row_like) lower ? add(i, 0, small()) : add(0, i, small() / 64);
    }
    if (s.shape == Shape::levels && i >= 13) {  // 13 rows a level
      for (int k = 0; k < 3; ++k) {
        const uint64_t j = i / 13 * 13 - 1 - random.next() % 13;
        lower ? add(i, j, small()) : add(n - 1 - i, n - 1 - j, small());
      }
    }
    if (s.shape == Shape::random) {
      for (uint64_t k = random.next() % 6; k > 0; --k) add(i, random.next() % n, small());
      if (i % 11 == 0) lines[i].push_back({-1, NAN}), lines[i].push_back({static_cast<int64_t>(n), NAN});
    }
  }
  Csr a{n, n};
  for (const auto& line : lines) {
    for (const auto& [column, value] : line) {
      a.indices.push_back(column);
      a.values.push_back(held(s.dtype, value));
    }
    a.offsets.push_back(static_cast<int64_t>(a.indices.size()));
  }
  return a;
}

// op(A), of the triangle, by rows: body(row, column, value).
void each_of_triangle(const SystemCase& s, const Csr& a, const std::function<void(uint64_t, uint64_t, double)>& body) {
  for (uint64_t i = 0; i < a.rows; ++i) {
    a.each(i, [&](uint64_t j, double value) {
      if (s.triangle == TUFF_TRIANGLE_LOWER ? j > i : j < i) return;
      if (s.unit && i == j) return;
      s.transpose == TUFF_NO_TRANS ? body(i, j, value) : body(j, i, value);
    });
  }
}

std::vector<int32_t> levels_of(const SystemCase& s, const Csr& a) {
  std::vector<std::vector<uint64_t>> refers(a.rows);
  each_of_triangle(s, a, [&](uint64_t i, uint64_t j, double) {
    if (i != j) refers[i].push_back(j);
  });
  const bool forward = (s.triangle == TUFF_TRIANGLE_LOWER) == (s.transpose == TUFF_NO_TRANS);
  std::vector<int32_t> level(a.rows), result, order(a.rows);
  for (uint64_t place = 0; place < a.rows; ++place) {
    const uint64_t i = forward ? place : a.rows - 1 - place;
    for (const uint64_t j : refers[i]) level[i] = std::max(level[i], level[j] + 1);
  }
  std::iota(order.begin(), order.end(), 0);
  const auto of = [&](int32_t i) { return level[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int32_t i, int32_t j) { return of(i) < of(j); });
  int32_t below = 0;
  for (uint64_t l = 0; l <= a.rows; ++l) {
    while (static_cast<uint64_t>(below) < a.rows && of(order[static_cast<size_t>(below)]) < static_cast<int32_t>(l))
      ++below;
    result.push_back(below);
  }
  result.insert(result.end(), order.begin(), order.end());
  return result;
}

class SparseTriangular : public Table<SystemCase> {};

TEST_P(SparseTriangular, SolvesTheSystem) {
  const SystemCase& s = row();
  Random random(s.rows * 3 + s.n + static_cast<uint64_t>(s.shape));
  const Csr a = system_of(s, random);
  const Stored matrix(context(), a, s.dtype, s.index_type, s.shift);
  const uint64_t ldb = s.n + s.pad, ldx = s.in_place ? ldb : s.n + 2 * s.pad;
  const uint64_t b_span = (s.rows - 1) * ldb + s.n, x_span = (s.rows - 1) * ldx + s.n;
  std::vector<double> right(b_span);
  for (double& value : right) value = held(s.dtype, random.uniform(-1, 1));
  const TypedTensor b(context(), s.dtype, as_type(s.dtype, right), s.shift),
      x(context(), s.dtype, Bytes(x_span * size_of(s.dtype), 0x6b), s.shift),
      levels(context(), TUFF_I32, Bytes(4 * (2 * s.rows + 1), 0x6b), s.shift);
  tuff_sparse_triangular_solve_desc desc{};
  desc.struct_size = sizeof desc, desc.dtype = s.dtype, desc.index_type = s.index_type, desc.triangle = s.triangle;
  desc.transpose = s.transpose, desc.unit_diagonal = s.unit, desc.rows = s.rows, desc.nnz = a.nnz(), desc.n = s.n;
  desc.alpha = s.alpha, desc.offsets = matrix.offsets, desc.indices = matrix.indices, desc.values = matrix.values;
  desc.levels = levels, desc.b = b, desc.x = s.in_place ? static_cast<tuff_buffer>(b) : static_cast<tuff_buffer>(x);
  desc.ldb = s.pad == 0 ? 0 : ldb, desc.ldx = s.pad == 0 ? 0 : ldx;
  ASSERT_OK(tuff_sparse_triangular_solve(context(), &desc));
  const std::vector<int32_t> wanted = levels_of(s, a);
  EXPECT_EQ(numbers_of(TUFF_I32, levels.read()), doubles(wanted));
  const Bytes first = s.in_place ? b.read() : x.read();

  // The residual of each row.
  const std::vector<double> got = numbers_of(s.dtype, first);
  std::vector<double> sums(s.rows * s.n), sizes(s.rows * s.n), counts(s.rows), spread(s.rows * s.n);
  const double unit = s.dtype == TUFF_F64 ? 0x1p-53 : kU, rounding = unit_roundoff(s.dtype);
  const auto add = [&](uint64_t i, uint64_t j, double value) {
    ++counts[i];
    for (uint64_t k = 0; k < s.n; ++k) {
      const double size = std::fabs(value * got[j * ldx + k]);
      sums[i * s.n + k] += value * got[j * ldx + k], sizes[i * s.n + k] += size;
      spread[i * s.n + k] += size * rounding * 1.01 + std::fabs(value) * (s.dtype == TUFF_F16 ? 0x1p-25 : 0x1p-126);
    }
  };
  each_of_triangle(s, a, add);
  for (uint64_t i = 0; i < s.rows; ++i) {
    if (s.unit) add(i, i, 1);
    for (uint64_t k = 0; k < s.n; ++k) {
      const double goal = s.alpha * right[i * ldb + k], size = sizes[i * s.n + k] + std::fabs(goal);
      const double steps = (counts[i] + 6) * unit, bound = steps / (1 - steps) * size + spread[i * s.n + k];
      ASSERT_LE(std::fabs(sums[i * s.n + k] - goal), bound) << "row " << i << " column " << k;
    }
  }
  const auto gaps = [&](const Bytes& bytes, uint64_t ld) {
    for (uint64_t i = 0; i + 1 < s.rows; ++i) {
      for (uint64_t k = s.n; k < ld; ++k) ASSERT_EQ(bytes[(i * ld + k) * size_of(s.dtype)], 0x6b) << "gap of row " << i;
    }
  };
  if (!s.in_place) gaps(first, ldx);

  // The same with the levels that the call has left, and without asking for them.
  for (const int32_t ready : {1, 0}) {
    const TypedTensor again(context(), s.dtype, as_type(s.dtype, right), s.shift),
        more(context(), s.dtype, Bytes(x_span * size_of(s.dtype), 0x6b), s.shift);
    desc.levels_ready = ready, desc.levels = ready != 0 ? static_cast<tuff_buffer>(levels) : 0;
    desc.b = again, desc.x = s.in_place ? static_cast<tuff_buffer>(again) : static_cast<tuff_buffer>(more);
    ASSERT_OK(tuff_sparse_triangular_solve(context(), &desc));
    EXPECT_TRUE((s.in_place ? again.read() : more.read()) == first) << "levels_ready " << ready;
  }
  EXPECT_EQ(numbers_of(TUFF_I32, levels.read()), doubles(wanted));
}
TUFF_TABLE(SparseTriangular, SystemCase, systems());

// --- what is not in tables ---------------------------------------------------------------------------------------

class SparseProductsOnce : public OnBackend {};

struct System {
  TypedTensor offsets, indices, values, b, x;
  tuff_sparse_triangular_solve_desc desc{};
  System(tuff_context context, const std::vector<int32_t>& of_offsets, const std::vector<int32_t>& of_indices,
         const std::vector<float>& of_values, const std::vector<float>& right)
      : offsets(context, TUFF_I32, as_type(TUFF_I32, of_offsets)),
        indices(context, TUFF_I32, as_type(TUFF_I32, of_indices)),
        values(context, TUFF_F32, as_type(TUFF_F32, of_values)),
        b(context, TUFF_F32, as_type(TUFF_F32, right)),
        x(context, TUFF_F32, Bytes(4 * right.size(), 0x6b)) {
    desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
    desc.rows = right.size(), desc.nnz = of_indices.size(), desc.n = 1, desc.alpha = 1;
    desc.offsets = offsets, desc.indices = indices, desc.values = values, desc.b = b, desc.x = x;
  }
  std::vector<double> result() const { return numbers_of(TUFF_F32, x.read()); }
};

// The product of a square matrix with itself, of f32 with indices of i32.
struct Square {
  TypedTensor c_offsets, c_indices, c_values;
  tuff_spgemm_desc desc{};
  Square(tuff_context context, uint64_t rows, uint64_t nnz, tuff_buffer offsets, tuff_buffer indices,
         tuff_buffer values, uint64_t max_terms, uint64_t capacity)
      : c_offsets(context, TUFF_I32, Bytes(4 * (rows + 1), 0x6b)),
        c_indices(context, TUFF_I32, Bytes(4 * capacity, 0x6b)),
        c_values(context, TUFF_F32, Bytes(4 * capacity, 0x6b)) {
    desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
    desc.rows = desc.inner = desc.columns = rows, desc.a_nnz = desc.b_nnz = nnz;
    desc.max_terms = max_terms, desc.capacity = capacity;
    desc.a_offsets = desc.b_offsets = offsets, desc.a_indices = desc.b_indices = indices;
    desc.a_values = desc.b_values = values;
    desc.c_offsets = c_offsets, desc.c_indices = c_indices, desc.c_values = c_values;
  }
};

TEST_P(SparseProductsOnce, MissingAndZeroDiagonals) {
  // Row 0 has none, row 1 a zero, row 2 depends on neither, row 3 on row 0.
  System s(context(), {0, 0, 1, 2, 4}, {1, 2, 0, 3}, {0, 4, 1, 1}, {1, -1, 8, 1});
  ASSERT_OK(tuff_sparse_triangular_solve(context(), &s.desc));
  EXPECT_EQ(s.result(), (std::vector<double>{INFINITY, -INFINITY, 2, -INFINITY}));
  System none(context(), {0, 0, 0}, {0}, {7}, {0, 3});  // an entry of no row
  ASSERT_OK(tuff_sparse_triangular_solve(context(), &none.desc));
  EXPECT_TRUE(std::isnan(none.result()[0]));
  EXPECT_EQ(none.result()[1], INFINITY);
}

TEST_P(SparseProductsOnce, SystemsWithoutEntriesOrColumns) {
  const std::vector<float> right = {1, 2, 3};
  System s(context(), {0, 0, 0, 0}, {0}, {1}, right);
  s.desc.nnz = 0, s.desc.offsets = s.desc.indices = s.desc.values = 0, s.desc.unit_diagonal = 1, s.desc.alpha = 2;
  const TypedTensor levels(context(), TUFF_I32, Bytes(28, 0x6b));
  s.desc.levels = levels;
  ASSERT_OK(tuff_sparse_triangular_solve(context(), &s.desc));
  EXPECT_EQ(s.result(), (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(numbers_of(TUFF_I32, levels.read()), (std::vector<double>{0, 3, 3, 3, 0, 1, 2}));
  // Only levels, without values, B and X.
  const TypedTensor offsets(context(), TUFF_I32, as_type(TUFF_I32, std::vector<int32_t>{0, 0, 1, 2})),
      indices(context(), TUFF_I32, as_type(TUFF_I32, std::vector<int32_t>{0, 1}));
  tuff_sparse_triangular_solve_desc only = s.desc;
  only.nnz = 2, only.offsets = offsets, only.indices = indices, only.n = 0, only.b = only.x = 0;
  ASSERT_OK(tuff_sparse_triangular_solve(context(), &only));
  EXPECT_EQ(numbers_of(TUFF_I32, levels.read()), (std::vector<double>{0, 1, 2, 3, 0, 1, 2}));
  only.levels = 0;
  EXPECT_OK(tuff_sparse_triangular_solve(context(), &only));  // nothing to do
  only.rows = 0, only.n = 4, only.nnz = 9, only.offsets = only.indices = 0;
  EXPECT_OK(tuff_sparse_triangular_solve(context(), &only));
  const TypedTensor begin(context(), TUFF_I32, Bytes(4, 0x6b));
  only.levels = begin;
  ASSERT_OK(tuff_sparse_triangular_solve(context(), &only));
  EXPECT_EQ(numbers_of(TUFF_I32, begin.read()), (std::vector<double>{0}));
}

// Whatever is in the buffers, nothing outside the operands is written (guards check it), and calls end.
TEST_P(SparseProductsOnce, AnyContentIsHarmless) {
  Random random(9);
  for (int round = 0; round < 25; ++round) {
    const uint64_t rows = 1 + random.next() % 300, nnz = 1 + random.next() % 900;
    std::vector<int32_t> offsets(rows + 1), indices(nnz), of_levels(2 * rows + 1);
    for (int32_t& offset : offsets) offset = static_cast<int32_t>(random.next() >> (random.next() % 40 + 24));
    for (int32_t& index : indices) index = static_cast<int32_t>(random.next() >> (random.next() % 30 + 32));
    for (int32_t& level : of_levels) level = static_cast<int32_t>(random.next() >> (random.next() % 30 + 32));
    System s(context(), offsets, indices, std::vector<float>(nnz, 1), std::vector<float>(rows, 1));
    const TypedTensor levels(context(), TUFF_I32, as_type(TUFF_I32, of_levels));
    s.desc.levels = levels, s.desc.levels_ready = 1;
    s.desc.transpose = static_cast<int32_t>(random.next() % 2),
    s.desc.triangle = static_cast<int32_t>(random.next() % 2);
    ASSERT_OK(tuff_sparse_triangular_solve(context(), &s.desc));
    s.desc.levels_ready = 0;
    ASSERT_OK(tuff_sparse_triangular_solve(context(), &s.desc));
    s.x.read(), s.b.read(), s.values.read(), levels.read();  // their guards
    const Square product(context(), rows, nnz, s.offsets, s.indices, s.values, random.next() % 20'000, nnz);
    ASSERT_OK(tuff_spgemm(context(), &product.desc));
    product.c_offsets.read(), product.c_indices.read(), product.c_values.read();
  }
}

// Offsets of some rows of a larger matrix, as a view, describe these rows.
TEST_P(SparseProductsOnce, OffsetsNeedNotBeginAtZero) {
  System s(context(), {2, 3, 5}, {9, 9, 0, 0, 1, 9}, {100, 100, 2, 1, 4, 100}, {6, 11});
  ASSERT_OK(tuff_sparse_triangular_solve(context(), &s.desc));
  EXPECT_EQ(s.result(), (std::vector<double>{3, 2}));
  // The same two rows, [2 0; 1 4], squared: [4 0; 6 16], with -1 behind.
  const Square product(context(), 2, 6, s.offsets, s.indices, s.values, 9, 4);
  ASSERT_OK(tuff_spgemm(context(), &product.desc));
  EXPECT_EQ(numbers_of(TUFF_I32, product.c_offsets.read()), (std::vector<double>{0, 1, 3}));
  EXPECT_EQ(numbers_of(TUFF_I32, product.c_indices.read()), (std::vector<double>{0, 0, 1, -1}));
  EXPECT_EQ(numbers_of(TUFF_F32, product.c_values.read()), (std::vector<double>{4, 6, 16, 0}));
}

// More terms than numbers of 32 bits count: 70,000 entries of A in one column meet 70,000 of B in one row.
TEST_P(SparseProductsOnce, TermsBeyond32Bits) {
  if (!vulkan()) GTEST_SKIP() << "4.9e9 terms";
  constexpr uint64_t kMany = 70'000;
  const TypedTensor a_offsets(context(), TUFF_I32, [] {
    std::vector<int32_t> offsets(kMany + 1);
    std::iota(offsets.begin(), offsets.end(), 0);
    return as_type(TUFF_I32, offsets);
  }());
  const TypedTensor zeros(context(), TUFF_I32, Bytes(4 * kMany)), values(context(), TUFF_F32, Bytes(4 * kMany)),
      b_offsets(context(), TUFF_I32, as_type(TUFF_I32, std::vector<int32_t>{0, kMany})),
      c_offsets(context(), TUFF_I32, Bytes(4 * (kMany + 1), 0x6b)), terms(context(), TUFF_I64, Bytes(8)),
      count(context(), TUFF_I64, Bytes(8, 0x6b));
  tuff_spgemm_desc desc{};
  desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
  desc.rows = kMany, desc.inner = 1, desc.columns = 5, desc.a_nnz = desc.b_nnz = kMany, desc.max_terms = 1000;
  desc.a_offsets = a_offsets, desc.a_indices = desc.b_indices = zeros, desc.a_values = desc.b_values = values;
  desc.b_offsets = b_offsets, desc.c_offsets = c_offsets, desc.terms = terms, desc.count = count;
  ASSERT_OK(tuff_spgemm(context(), &desc));
  EXPECT_EQ(numbers_of(TUFF_I64, terms.read()), std::vector<double>{static_cast<double>(kMany * kMany)});
  EXPECT_EQ(numbers_of(TUFF_I64, count.read()), std::vector<double>{0});
  EXPECT_EQ(numbers_of(TUFF_I32, c_offsets.read()), std::vector<double>(kMany + 1));
}

TEST_P(SparseProductsOnce, TheSameBitsEveryTime) {
  Random random(21);
  Csr a = matrix_of(Form::power, 700, 700, false, random);
  for (double& value : a.values) value = random.uniform(-1, 1);
  const Stored matrix(context(), a, TUFF_F32, TUFF_I32);
  Bytes product, solution;
  for (int round = 0; round < 3; ++round) {
    constexpr uint64_t kRoom = 200'000;
    const Square square(context(), 700, a.nnz(), matrix.offsets, matrix.indices, matrix.values, kRoom, kRoom);
    ASSERT_OK(tuff_spgemm(context(), &square.desc));
    const TypedTensor b(context(), TUFF_F32, Bytes(4 * 700, 0x3f)), x(context(), TUFF_F32, Bytes(4 * 700));
    tuff_sparse_triangular_solve_desc solve{};
    solve.struct_size = sizeof solve, solve.dtype = TUFF_F32, solve.index_type = TUFF_I32, solve.unit_diagonal = 1;
    solve.rows = 700, solve.nnz = a.nnz(), solve.n = 1, solve.alpha = 1, solve.offsets = matrix.offsets;
    solve.indices = matrix.indices, solve.values = matrix.values, solve.b = b, solve.x = x;
    ASSERT_OK(tuff_sparse_triangular_solve(context(), &solve));
    if (round == 0) product = square.c_values.read(), solution = x.read();
    EXPECT_TRUE(square.c_values.read() == product);
    EXPECT_TRUE(x.read() == solution);
  }
  EXPECT_NE(numbers_of(TUFF_F32, product)[0], 0);
}

TEST_P(SparseProductsOnce, WrongProducts) {
  const char* const f = "tuff_spgemm";
  System s(context(), {0, 1, 2}, {0, 1}, {1, 2}, {1, 1});
  const Square square(context(), 2, 2, s.offsets, s.indices, s.values, 4, 2);
  const auto with = [&](auto change) {
    tuff_spgemm_desc desc = square.desc;
    change(desc);
    return tuff_spgemm(context(), &desc);
  };
  using Desc = tuff_spgemm_desc;
  EXPECT_FAILS(with([](Desc& d) { d.dtype = 99; }), kArgument, f, "dtype");
  EXPECT_FAILS(with([](Desc& d) { d.dtype = TUFF_I32; }), kUnsupported, f, "dtype");
  EXPECT_FAILS(with([](Desc& d) { d.index_type = TUFF_U32; }), kUnsupported, f, "index_type");
  EXPECT_FAILS(with([](Desc& d) { d.a_nnz = 300; }), kArgument, f, "a_indices");
  EXPECT_FAILS(with([](Desc& d) { d.b_nnz = 300; }), kArgument, f, "b_indices");
  EXPECT_FAILS(with([](Desc& d) { d.rows = 300; }), kArgument, f, "a_offsets");
  EXPECT_FAILS(with([](Desc& d) { d.inner = 300; }), kArgument, f, "b_offsets");
  EXPECT_FAILS(with([](Desc& d) { d.rows = ~0ull; }), kArgument, f, "rows");
  EXPECT_FAILS(with([](Desc& d) { d.inner = ~0ull; }), kArgument, f, "inner");
  EXPECT_FAILS(with([](Desc& d) { d.columns = (1ull << 31) + 1; }), kArgument, f, "columns");
  EXPECT_FAILS(with([](Desc& d) { d.max_terms = 1ull << 31; }), kArgument, f, "max_terms");
  EXPECT_FAILS(with([](Desc& d) { d.capacity = 300; }), kArgument, f, "c_indices");
  EXPECT_FAILS(with([](Desc& d) { d.capacity = 1ull << 31; }), kArgument, f, "capacity");
  EXPECT_FAILS(with([](Desc& d) { d.c_values = d.a_values; }), kArgument, f, "c_values");
  EXPECT_FAILS(with([](Desc& d) { d.c_indices = d.b_indices; }), kArgument, f, "c_indices");
  EXPECT_FAILS(with([](Desc& d) { d.c_offsets = d.c_indices, d.capacity = 0, d.rows = 1, d.count = d.c_indices; }),
               kArgument, f, "count");
  EXPECT_FAILS(with([](Desc& d) { d.count = d.terms = d.c_values, d.capacity = 0; }), kArgument, f, "terms");
  EXPECT_FAILS(with([](Desc& d) { d.c_offsets = 0; }), TUFF_ERROR_INVALID_HANDLE, f, "c_offsets");
  EXPECT_FAILS(with([](Desc& d) { d.reserved = 1; }), kArgument, f, "reserved");
  EXPECT_EQ(square.c_offsets.read(), Bytes(12, 0x6b));
  EXPECT_OK(with([](Desc&) {}));
  EXPECT_EQ(numbers_of(TUFF_F32, square.c_values.read()), (std::vector<double>{1, 4}));
}

TEST_P(SparseProductsOnce, WrongSystems) {
  const char* const f = "tuff_sparse_triangular_solve";
  System s(context(), {0, 1, 2}, {0, 1}, {1, 2}, {1, 1});
  const TypedTensor levels(context(), TUFF_I32, Bytes(20));
  const auto with = [&](auto change) {
    tuff_sparse_triangular_solve_desc desc = s.desc;
    change(desc);
    return tuff_sparse_triangular_solve(context(), &desc);
  };
  using Desc = tuff_sparse_triangular_solve_desc;
  EXPECT_FAILS(with([](Desc& d) { d.dtype = TUFF_I32; }), kUnsupported, f, "dtype");
  EXPECT_FAILS(with([](Desc& d) { d.index_type = 0; }), kArgument, f, "index_type");
  EXPECT_FAILS(with([](Desc& d) { d.triangle = 2; }), kArgument, f, "triangle");
  EXPECT_FAILS(with([](Desc& d) { d.transpose = 3; }), kArgument, f, "transpose");
  EXPECT_FAILS(with([](Desc& d) { d.unit_diagonal = 2; }), kArgument, f, "unit_diagonal");
  EXPECT_FAILS(with([](Desc& d) { d.levels_ready = -1; }), kArgument, f, "levels_ready");
  EXPECT_FAILS(with([](Desc& d) { d.levels_ready = 1; }), kArgument, f, "levels");
  EXPECT_FAILS(with([](Desc& d) { d.reserved = 1; }), kArgument, f, "reserved");
  EXPECT_FAILS(with([](Desc& d) { d.n = 2, d.ldb = 1; }), kArgument, f, "ldb");
  EXPECT_FAILS(with([](Desc& d) { d.n = 2, d.ldx = 1; }), kArgument, f, "ldx");
  EXPECT_FAILS(with([](Desc& d) { d.n = 99; }), kArgument, f, "b");
  EXPECT_FAILS(with([](Desc& d) { d.n = 1ull << 63; }), kArgument, f, "b");
  EXPECT_FAILS(with([](Desc& d) { d.rows = 99; }), kArgument, f, "offsets");
  EXPECT_FAILS(with([](Desc& d) { d.rows = ~0ull, d.index_type = TUFF_I64; }), kArgument, f, "rows");
  EXPECT_FAILS(with([](Desc& d) { d.nnz = 99; }), kArgument, f, "indices");
  EXPECT_FAILS(with([](Desc& d) { d.x = d.values; }), kArgument, f, "x");
  EXPECT_FAILS(with([&](Desc& d) { d.levels = levels, d.x = levels; }), kArgument, f, "x");
  EXPECT_FAILS(with([](Desc& d) { d.x = d.b, d.ldx = 3; }), kArgument, f, "x");
  EXPECT_FAILS(with([&](Desc& d) { d.levels = s.x; }), kArgument, f, "levels");
  EXPECT_FAILS(with([](Desc& d) { d.values = 0; }), TUFF_ERROR_INVALID_HANDLE, f, "values");
  EXPECT_EQ(s.x.read(), Bytes(8, 0x6b));
  EXPECT_OK(with([](Desc&) {}));
  EXPECT_EQ(s.result(), (std::vector<double>{1, 0.5}));
}
TUFF_ON_BACKENDS(SparseProductsOnce);

}  // namespace
}  // namespace tuff_test::sparse_products_test
