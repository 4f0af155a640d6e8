// Sparse matrices, compared with dense ones computed from the same entries. Exact tier: integers, whose sums every
// order gives to the bit. Bound tier: |C - C'| <= gamma of the terms + 4 (alpha, beta * C, their sum, a product in each
// term), relative to the sum of magnitudes, and the rounding of the result.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "support/bounds.hpp"
#include "support/tensor.hpp"
#include "support/typed_gemm.hpp"

namespace tuff_test::sparse_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kUnsupported = TUFF_ERROR_UNSUPPORTED;

// How long the rows are.
enum class Form { even, power, one_dense, empty, ends, all_in_one };
constexpr const char* kForms[] = {"even", "power", "one_dense", "empty", "ends", "all_in_one"};

std::vector<uint64_t> lengths(Form form, uint64_t rows, uint64_t columns, Random& random) {
  std::vector<uint64_t> result(rows);
  for (uint64_t i = 0; i < rows; ++i) {
    const double u = random.uniform(1e-4f, 1);
    switch (form) {
      case Form::even: result[i] = static_cast<uint64_t>(u * 9); break;
      case Form::power: result[i] = std::min<uint64_t>(static_cast<uint64_t>(1 / u) - 1, 2000); break;
      case Form::one_dense: result[i] = i == rows / 3 ? columns : i % 50 == 0 ? 1 : 0; break;
      case Form::empty: break;
      case Form::ends: result[i] = i == 0 || i + 1 == rows ? 700 : 0; break;
      case Form::all_in_one: result[i] = i == rows / 2 ? 9'000 : 0; break;
    }
  }
  return result;
}

// A matrix in CSR, with duplicates, unsorted rows, and a few indices out of range.
struct Csr {
  uint64_t rows, columns;
  std::vector<int64_t> offsets, indices;
  std::vector<double> values;
  uint64_t nnz() const { return indices.size(); }

  // body(row, column, number of the entry), for those in range.
  template <typename Body>
  void each(const Body& body) const {
    for (uint64_t i = 0; i < rows; ++i) {
      for (int64_t e = offsets[i]; e < offsets[i + 1]; ++e) {
        const int64_t column = indices[static_cast<size_t>(e)];
        if (column >= 0 && static_cast<uint64_t>(column) < columns) {
          body(i, static_cast<uint64_t>(column), static_cast<uint64_t>(e));
        }
      }
    }
  }
};

// Small integers in the exact tier, otherwise numbers from -1 to 1.
double drawn(bool whole, Random& random) { return whole ? random.integer(2) : double{random.uniform(-1, 1)}; }

Csr matrix_of(Form form, uint64_t rows, uint64_t columns, bool stray, bool whole, Random& random) {
  Csr a{rows, columns, {0}, {}, {}};
  for (const uint64_t length : lengths(form, rows, columns, random)) {
    a.offsets.push_back(a.offsets.back() + static_cast<int64_t>(length));
  }
  a.indices.resize(static_cast<size_t>(a.offsets.back())), a.values.resize(a.indices.size());
  for (size_t e = 0; e < a.indices.size(); ++e) {
    a.indices[e] = columns == 0 ? 0 : static_cast<int64_t>(random.next() % columns);
    if (stray && random.next() % 13 == 0) {
      const int64_t all[] = {-1, static_cast<int64_t>(columns), INT32_MAX, INT32_MIN};
      a.indices[e] = all[random.next() % 4];
    }
    a.values[e] = drawn(whole, random);
  }
  return a;
}

// How far a sum may be from `wanted`: gamma of so many steps, relative to the sum of magnitudes, in f32 or f64; then it
// is rounded once to the type (the host's, from f64).
double bound_of(int32_t dtype, double steps, double size, double wanted) {
  const double unit = dtype == TUFF_F64 ? 0x1p-53 : kU, smallest = dtype == TUFF_F16 ? 0x1p-25 : 0x1p-126;
  const double bound = steps * unit / (1 - steps * unit) * size;
  return bound + unit_roundoff(dtype) * (std::fabs(wanted) + bound) * 1.001 + smallest;
}

struct ProductCase {
  Form form;
  uint64_t rows, columns, n = 1;
  int32_t dtype = TUFF_F32, index_type = TUFF_I32, transpose = TUFF_NO_TRANS, side = TUFF_SIDE_LEFT;
  uint64_t batch = 1, pad = 0, shift = 0;
  double alpha = 1, beta = 0;
  bool stray = false, whole = true, by_values = false;

  std::string name() const {
    return std::string(name_of(dtype)) + "_" + name_of(index_type) + "_" + kForms[static_cast<int>(form)] + "_" +
           std::to_string(rows) + "x" + std::to_string(columns) + "_n" + std::to_string(n) +
           (transpose != TUFF_NO_TRANS ? "_transposed" : "") + (side == TUFF_SIDE_RIGHT ? "_right" : "") + "_batch" +
           std::to_string(batch) + "_pad" + std::to_string(pad) + "_shift" + std::to_string(shift) +
           (beta != 0 ? "_beta" : "") + (alpha != 1 ? "_alpha" : "") + (stray ? "_stray" : "") +
           (whole ? "" : "_bound") + (by_values ? "_values" : "");
  }
  double work() const { return static_cast<double>((10 * rows + 10'000) * n * batch); }
};

std::vector<ProductCase> products() {
  std::vector<ProductCase> all;
  uint32_t turn = 0;
  // Options vary from case to case, out of step with one another.
  const auto add = [&](ProductCase row) {
    row.transpose = turn % 3 == 1 ? TUFF_TRANS : TUFF_NO_TRANS,
    row.side = turn % 5 < 2 ? TUFF_SIDE_RIGHT : TUFF_SIDE_LEFT;
    row.index_type = turn % 2 != 0 ? TUFF_I64 : TUFF_I32;
    row.pad = turn % 4, row.shift = turn % 7, row.batch = turn % 6 == 5 ? 3 : 1, row.by_values = turn % 12 == 5;
    row.alpha = turn % 4 == 2 ? -2 : 1, row.beta = turn % 3 == 2 ? -1 : 0;
    row.stray = turn % 5 == 3, row.whole = turn % 2 == 0;
    ++turn;
    all.push_back(row);
  };
  const int32_t types[] = {TUFF_F32, TUFF_F64, TUFF_F16, TUFF_BF16};
  for (int form = 0; form < 6; ++form) {
    for (const uint64_t n : {1, 2, 3, 4, 5, 17}) {
      add({static_cast<Form>(form), 1, 1, n, types[turn % 4]});
      add({static_cast<Form>(form), 37, 41, n, types[(turn + 1) % 4]});
      add({static_cast<Form>(form), 300, 70, n, types[(turn + 2) % 4]});
      add({static_cast<Form>(form), 2, 900, n, types[turn % 4]});
    }
    add({static_cast<Form>(form), 5'000, 3'000, 1, TUFF_F32});
    add({static_cast<Form>(form), 5'000, 3'000, 1, TUFF_F32});
    add({static_cast<Form>(form), 4'001, 999, 3, TUFF_F64});
  }
  // Straight products of every form, whatever the turn.
  for (int form = 0; form < 6; ++form) {
    all.push_back({static_cast<Form>(form), 20'000, 1'000, 1, TUFF_F32, TUFF_I32});
    all.push_back({static_cast<Form>(form), 3'000, 1'000, 6, TUFF_F32, TUFF_I64});
  }
  return all;
}

// Dense matrices of a batch, and where an element is.
struct Dense {
  uint64_t rows, columns, ld, stride;
  uint64_t one() const { return rows == 0 || columns == 0 ? 0 : (rows - 1) * ld + columns; }
  uint64_t all(uint64_t batch) const { return one() == 0 ? 0 : (batch - 1) * stride + one(); }
  uint64_t at(uint64_t matrix, uint64_t i, uint64_t j) const { return matrix * stride + i * ld + j; }
};

using SparseProduct = Table<ProductCase>;
TEST_P(SparseProduct, IsThatOfTheDenseMatrix) {
  const ProductCase& s = row();
  Random random(s.rows * 31 + s.columns * 7 + s.n);
  const Csr a = matrix_of(s.form, s.rows, s.columns, s.stray, s.whole, random);
  const bool flips = s.transpose != TUFF_NO_TRANS, right = s.side == TUFF_SIDE_RIGHT;
  const uint64_t op_rows = flips ? s.columns : s.rows, op_columns = flips ? s.rows : s.columns;
  const auto dense = [&](uint64_t rows, uint64_t columns, uint64_t gap) {
    Dense d{rows, columns, columns + s.pad, 0};
    d.stride = d.one() + gap;
    return d;
  };
  const Dense b = right ? dense(s.n, op_rows, s.pad) : dense(op_columns, s.n, s.pad);
  const Dense c = right ? dense(s.n, op_columns, 2 * s.pad) : dense(op_rows, s.n, 2 * s.pad);
  const uint64_t stride_values = s.by_values ? a.nnz() + s.pad : 0;
  std::vector<double> values(a.nnz() == 0 ? 0 : (s.batch - 1) * stride_values + a.nnz()), x(b.all(s.batch));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = held(s.dtype, i < a.nnz() ? a.values[i] : drawn(s.whole, random));
  }
  for (double& number : x) number = held(s.dtype, drawn(s.whole, random));
  std::vector<double> old(c.all(s.batch));
  for (double& number : old) number = s.beta == 0 ? NAN : held(s.dtype, random.integer(3));  // not read if beta is 0

  std::vector<double> sums(old.size()), sizes(old.size()), terms(old.size());
  for (uint64_t m = 0; m < s.batch; ++m) {
    a.each([&](uint64_t i, uint64_t j, uint64_t e) {
      const uint64_t to = flips ? j : i, from = flips ? i : j;  // of op(A)
      const double value = values[m * stride_values + e];
      for (uint64_t k = 0; k < s.n; ++k) {
        const double product = value * x[right ? b.at(m, k, to) : b.at(m, from, k)];
        const uint64_t at = right ? c.at(m, k, from) : c.at(m, to, k);
        sums[at] += product, sizes[at] += std::fabs(product), terms[at] += 1;
      }
    });
  }

  const TypedTensor offsets(context(), s.index_type, as_type(s.index_type, a.offsets), s.shift),
      indices(context(), s.index_type, as_type(s.index_type, a.indices), s.shift + 1),
      given(context(), s.dtype, as_type(s.dtype, values), s.shift), factors(context(), s.dtype, as_type(s.dtype, x), 1);
  const Bytes before = as_type(s.dtype, old);
  const TypedTensor result(context(), s.dtype, before, s.shift);
  tuff_spmm_desc desc{};
  desc.struct_size = sizeof desc, desc.dtype = s.dtype, desc.index_type = s.index_type;
  desc.transpose = s.transpose, desc.side = s.side, desc.rows = s.rows, desc.columns = s.columns;
  desc.nnz = a.nnz(), desc.n = s.n, desc.alpha = s.alpha, desc.beta = s.beta;
  desc.offsets = offsets, desc.indices = indices, desc.values = given, desc.b = factors, desc.c = result;
  desc.ldb = s.pad == 0 ? 0 : b.ld, desc.ldc = c.ld, desc.batch_count = s.batch;
  desc.stride_values = stride_values, desc.stride_b = b.stride, desc.stride_c = c.stride;
  ASSERT_OK(tuff_spmm(context(), &desc));
  const Bytes after = result.read();
  const std::vector<double> got = numbers_of(s.dtype, after);
  std::vector<bool> written(old.size());
  for (uint64_t m = 0; m < s.batch; ++m) {
    for (uint64_t i = 0; i < c.rows; ++i) {
      for (uint64_t j = 0; j < c.columns; ++j) {
        const uint64_t at = c.at(m, i, j);
        written[at] = true;
        const double added = s.beta == 0 ? 0 : s.beta * old[at], wanted = s.alpha * sums[at] + added;
        if (s.whole) {
          ASSERT_EQ(got[at], held(s.dtype, wanted)) << m << " " << i << " " << j;
        } else {
          const double size = std::fabs(s.alpha) * sizes[at] + std::fabs(added);
          ASSERT_NEAR(got[at], wanted, bound_of(s.dtype, terms[at] + 4, size, wanted)) << m << " " << i << " " << j;
        }
      }
    }
  }
  const uint64_t size = size_of(s.dtype);
  for (uint64_t i = 0; i < old.size(); ++i) {
    if (written[i]) continue;
    ASSERT_EQ(std::memcmp(before.data() + i * size, after.data() + i * size, size), 0) << "gap " << i;
  }
}
TUFF_TABLE(SparseProduct, ProductCase, products());

// --- conversions ------------------------------------------------------------------------------------------------

struct ConvertCase {
  Form form;
  uint64_t rows, columns;
  int32_t from, to;
  int32_t dtype = TUFF_F32, index_type = TUFF_I32;
  int64_t spare = 0;  // capacity beyond the entries that there are
  bool stray = false;
  uint64_t shift = 0, pad = 0;

  std::string name() const {
    constexpr const char* kNames[] = {"coo", "csr", "csc", "dense"};
    return std::string(kNames[from]) + "_to_" + kNames[to] + "_" + name_of(dtype) + "_" + name_of(index_type) + "_" +
           kForms[static_cast<int>(form)] + "_" + std::to_string(rows) + "x" + std::to_string(columns) +
           (spare < 0   ? "_short"
            : spare > 0 ? "_spare"
                        : "") +
           (stray ? "_stray" : "") + "_shift" + std::to_string(shift);
  }
  double work() const { return static_cast<double>(40 * (rows * columns + 10'000)); }
};

std::vector<ConvertCase> conversions() {
  std::vector<ConvertCase> all;
  uint32_t turn = 0;
  const int32_t types[] = {TUFF_F32, TUFF_F64, TUFF_F16, TUFF_BF16};
  for (int32_t from = TUFF_SPARSE_COO; from <= TUFF_SPARSE_DENSE; ++from) {
    for (int32_t to = TUFF_SPARSE_COO; to <= TUFF_SPARSE_DENSE; ++to) {
      for (int form = 0; form < 6; ++form) {
        for (const auto& [rows, columns] :
             std::vector<std::pair<uint64_t, uint64_t>>{{1, 1}, {37, 41}, {400, 90}, {3, 700}}) {
          ConvertCase row{static_cast<Form>(form), rows, columns, from, to, types[turn % 4]};
          row.index_type = turn % 3 == 1 ? TUFF_I64 : TUFF_I32, row.spare = static_cast<int64_t>(turn % 5) - 1;
          row.stray = turn % 4 == 1, row.shift = turn % 3, row.pad = turn % 2;
          ++turn;
          all.push_back(row);
        }
      }
    }
  }
  return all;
}

using SparseConvert = Table<ConvertCase>;
TEST_P(SparseConvert, SortedAndSummed) {
  const ConvertCase& s = row();
  Random random(s.rows * 13 + s.columns * 5 + static_cast<uint64_t>(s.form));
  const bool csc = s.from == TUFF_SPARSE_CSC;
  // For a matrix in CSC the lines are columns.
  const Csr a = matrix_of(s.form, csc ? s.columns : s.rows, csc ? s.rows : s.columns, s.stray, true, random);
  std::vector<double> matrix(s.rows * s.columns), values(a.nnz());
  std::vector<bool> present(matrix.size());
  std::vector<int64_t> rows(a.nnz(), -1), columns = a.indices;
  // Sums of 9,000 numbers that bf16 holds.
  const bool tiny = a.nnz() > 120;
  for (size_t e = 0; e < values.size(); ++e) values[e] = tiny ? (e % 97 == 0 ? a.values[e] : 0) : a.values[e];
  for (uint64_t i = 0; i < a.rows; ++i) {
    for (int64_t e = a.offsets[i]; e < a.offsets[i + 1]; ++e) rows[static_cast<size_t>(e)] = static_cast<int64_t>(i);
  }
  a.each([&](uint64_t i, uint64_t j, uint64_t e) {
    const uint64_t at = csc ? j * s.columns + i : i * s.columns + j;
    matrix[at] += values[e], present[at] = true;
  });
  if (csc) std::swap(rows, columns);
  if (s.from == TUFF_SPARSE_COO) {
    // In any order; sums of integers do not depend on it.
    for (size_t e = rows.size(); e > 1; --e) {
      const size_t other = random.next() % e;
      std::swap(rows[e - 1], rows[other]), std::swap(columns[e - 1], columns[other]);
      std::swap(values[e - 1], values[other]);
    }
  }
  const uint64_t from_ld = s.columns + s.pad, to_ld = s.columns + 3 * s.pad;
  if (s.from == TUFF_SPARSE_DENSE) {
    values.assign((s.rows - 1) * from_ld + s.columns, NAN);
    for (uint64_t i = 0; i < matrix.size(); ++i) {
      values[i / s.columns * from_ld + i % s.columns] = matrix[i] == 0 ? -0.0 : matrix[i];
      present[i] = matrix[i] != 0;
    }
  }
  if (s.from == TUFF_SPARSE_CSR) rows = a.offsets;
  if (csc) columns = a.offsets;

  // The result.
  std::vector<int64_t> to_rows, to_columns;
  std::vector<double> to_values;
  const bool by_column = s.to == TUFF_SPARSE_CSC;
  std::vector<int64_t> line_ends{0};
  for (uint64_t i = 0; i < (by_column ? s.columns : s.rows); ++i) {
    for (uint64_t j = 0; j < (by_column ? s.rows : s.columns); ++j) {
      const uint64_t r = by_column ? j : i, c = by_column ? i : j, at = r * s.columns + c;
      if (!present[at]) continue;
      to_rows.push_back(static_cast<int64_t>(r)), to_columns.push_back(static_cast<int64_t>(c));
      to_values.push_back(matrix[at]);
    }
    line_ends.push_back(static_cast<int64_t>(to_rows.size()));
  }
  const auto found = static_cast<int64_t>(to_rows.size());
  const auto capacity = static_cast<uint64_t>(std::max<int64_t>(found + s.spare, 0));
  to_rows.resize(capacity, -1), to_columns.resize(capacity, -1), to_values.resize(capacity, 0);
  if (s.to == TUFF_SPARSE_CSR) to_rows = line_ends;
  if (by_column) to_columns = line_ends;
  const bool to_dense = s.to == TUFF_SPARSE_DENSE, from_dense = s.from == TUFF_SPARSE_DENSE;
  if (to_dense) to_rows.clear(), to_columns.clear(), to_values.assign((s.rows - 1) * to_ld + s.columns, 0);

  const TypedTensor in_rows(context(), s.index_type, as_type(s.index_type, rows), s.shift),
      in_columns(context(), s.index_type, as_type(s.index_type, columns), 1),
      in_values(context(), s.dtype, as_type(s.dtype, values), s.shift);
  const auto blank = [](int32_t dtype, uint64_t count) { return Bytes(count * size_of(dtype), 0x6b); };
  const TypedTensor out_rows(context(), s.index_type, blank(s.index_type, to_rows.size()), s.shift),
      out_columns(context(), s.index_type, blank(s.index_type, to_columns.size()), 1),
      out_values(context(), s.dtype, blank(s.dtype, to_values.size()), s.shift),
      count(context(), TUFF_I64, blank(TUFF_I64, 1), 1);
  tuff_sparse_convert_desc desc{};
  desc.struct_size = sizeof desc, desc.dtype = s.dtype, desc.index_type = s.index_type;
  desc.from_format = s.from, desc.to_format = s.to, desc.rows = s.rows, desc.columns = s.columns;
  desc.nnz = a.nnz(), desc.capacity = capacity, desc.from_values = in_values, desc.to_values = out_values;
  if (!from_dense) desc.from_rows = in_rows, desc.from_columns = in_columns;
  if (!to_dense) desc.to_rows = out_rows, desc.to_columns = out_columns;
  desc.from_ld = s.pad == 0 ? 0 : from_ld, desc.to_ld = s.pad == 0 ? 0 : to_ld, desc.count = count;
  ASSERT_OK(tuff_sparse_convert(context(), &desc));
  EXPECT_EQ(numbers_of(TUFF_I64, count.read()), std::vector<double>{static_cast<double>(found)});
  if (to_dense) {
    const Bytes got = out_values.read();
    for (uint64_t i = 0; i < s.rows; ++i) {
      for (uint64_t j = 0; j < to_ld && i * to_ld + j < to_values.size(); ++j) {
        const uint64_t at = i * to_ld + j;
        if (j < s.columns) {
          ASSERT_EQ(element(s.dtype, got, at), matrix[i * s.columns + j]) << i << " " << j;
        } else {
          ASSERT_EQ(got[at * size_of(s.dtype)], 0x6b) << "gap of row " << i;
        }
      }
    }
    return;
  }
  const auto numbers = [](const std::vector<int64_t>& x) { return std::vector<double>(x.begin(), x.end()); };
  EXPECT_EQ(numbers_of(s.index_type, out_rows.read()), numbers(to_rows));
  EXPECT_EQ(numbers_of(s.index_type, out_columns.read()), numbers(to_columns));
  EXPECT_EQ(numbers_of(s.dtype, out_values.read()), to_values);
}
TUFF_TABLE(SparseConvert, ConvertCase, conversions());

// --- what is not in tables ---------------------------------------------------------------------------------------

class SparseOnce : public OnBackend {};

struct Product {
  tuff_spmm_desc desc{};
  TypedTensor offsets, indices, values, b, c;
  Product(tuff_context context, const std::vector<int32_t>& of_offsets, const std::vector<int32_t>& of_indices,
          const std::vector<float>& of_values, const std::vector<float>& of_b, uint64_t rows)
      : offsets(context, TUFF_I32, as_type(TUFF_I32, of_offsets)),
        indices(context, TUFF_I32, as_type(TUFF_I32, of_indices)),
        values(context, TUFF_F32, as_type(TUFF_F32, of_values)),
        b(context, TUFF_F32, as_type(TUFF_F32, of_b)),
        c(context, TUFF_F32, Bytes(4 * rows, 0x6b)) {
    desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
    desc.rows = rows, desc.columns = of_b.size(), desc.nnz = of_indices.size(), desc.n = 1, desc.alpha = 1;
    desc.offsets = offsets, desc.indices = indices, desc.values = values, desc.b = b, desc.c = c;
    desc.batch_count = 1;
  }
  std::vector<double> result() const { return numbers_of(TUFF_F32, c.read()); }
};

// Whatever is in the buffers, nothing outside the operands is written (guards check it), every result is written, and
// the call succeeds.
TEST_P(SparseOnce, AnyContentIsHarmless) {
  Random random(5);
  for (int round = 0; round < 40; ++round) {
    const uint64_t rows = 1 + random.next() % 700, nnz = 1 + random.next() % 3'000, columns = 1 + random.next() % 90;
    std::vector<int32_t> offsets(rows + 1), indices(nnz);
    for (int32_t& offset : offsets) offset = static_cast<int32_t>(random.next() >> (random.next() % 40 + 24));
    for (int32_t& index : indices) index = static_cast<int32_t>(random.next() >> (random.next() % 30 + 32));
    Product product(context(), offsets, indices, std::vector<float>(nnz, 1), std::vector<float>(columns, 1), rows);
    ASSERT_OK(tuff_spmm(context(), &product.desc));
    product.c.read(), product.values.read(), product.b.read();  // their guards
    product.desc.transpose = TUFF_TRANS;
    const TypedTensor b(context(), TUFF_F32, as_type(TUFF_F32, std::vector<float>(rows, 1))),
        c(context(), TUFF_F32, Bytes(4 * columns, 0x6b));
    product.desc.b = b, product.desc.c = c;
    ASSERT_OK(tuff_spmm(context(), &product.desc));
    c.read();
    const TypedTensor to_rows(context(), TUFF_I32, Bytes(4 * nnz)), to_columns(context(), TUFF_I32, Bytes(4 * nnz)),
        to_values(context(), TUFF_F32, Bytes(4 * nnz));
    tuff_sparse_convert_desc convert{};
    convert.struct_size = sizeof convert, convert.dtype = TUFF_F32, convert.index_type = TUFF_I32;
    convert.from_format = TUFF_SPARSE_CSR, convert.to_format = TUFF_SPARSE_COO, convert.rows = rows;
    convert.columns = columns, convert.nnz = convert.capacity = nnz, convert.from_rows = product.offsets;
    convert.from_columns = product.indices, convert.from_values = product.values;
    convert.to_rows = to_rows, convert.to_columns = to_columns, convert.to_values = to_values;
    ASSERT_OK(tuff_sparse_convert(context(), &convert));
    to_rows.read(), to_columns.read(), to_values.read();
  }
}

// Offsets of some rows of a larger matrix, as a view, describe these rows.
TEST_P(SparseOnce, OffsetsNeedNotBeginAtZero) {
  const std::vector<int32_t> offsets = {2, 2, 5, 6}, indices = {0, 1, 0, 1, 2, 2, 0, 1};
  Product product(context(), offsets, indices, {100, 100, 1, 2, 4, 8, 100, 100}, {1, 10, 100}, 3);
  ASSERT_OK(tuff_spmm(context(), &product.desc));
  EXPECT_EQ(product.result(), (std::vector<double>{0, 1 + 20 + 400, 800}));
  // Offsets beyond the entries count as their number.
  Product beyond(context(), {-5, 2, 1 << 30, INT32_MAX}, {0, 1, 2}, {1, 2, 4}, {1, 10, 100}, 3);
  ASSERT_OK(tuff_spmm(context(), &beyond.desc));
  EXPECT_EQ(beyond.result(), (std::vector<double>{21, 400, 0}));
}

TEST_P(SparseOnce, InfinitiesAndNanStayInTheirRows) {
  const float inf = INFINITY;
  // The entry that is out of range meets no element of B, and an infinity there makes no NaN.
  Product product(context(), {0, 1, 2, 3, 4}, {0, 7, 1, -1}, {1, 1, 2, NAN}, {inf, 3}, 4);
  ASSERT_OK(tuff_spmm(context(), &product.desc));
  const std::vector<double> got = product.result();
  EXPECT_EQ(got[0], INFINITY);
  EXPECT_EQ(got[1], 0);
  EXPECT_EQ(got[2], 6);
  EXPECT_EQ(got[3], 0);
}

TEST_P(SparseOnce, NothingToMultiply) {
  const std::vector<float> old = {1, 2, 3};
  const TypedTensor c(context(), TUFF_F32, as_type(TUFF_F32, old));
  tuff_spmm_desc desc{};
  desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
  desc.rows = 3, desc.columns = 5, desc.n = 1, desc.alpha = 1, desc.beta = 2, desc.batch_count = 1, desc.c = c;
  ASSERT_OK(tuff_spmm(context(), &desc));  // no entries, and no buffers for them
  EXPECT_EQ(numbers_of(TUFF_F32, c.read()), (std::vector<double>{2, 4, 6}));
  desc.beta = 0;
  ASSERT_OK(tuff_spmm(context(), &desc));
  EXPECT_EQ(numbers_of(TUFF_F32, c.read()), (std::vector<double>{0, 0, 0}));
  for (const auto size : {&tuff_spmm_desc::rows, &tuff_spmm_desc::n, &tuff_spmm_desc::batch_count}) {
    tuff_spmm_desc none = desc;
    none.*size = 0, none.c = 0, none.nnz = 7;
    EXPECT_OK(tuff_spmm(context(), &none));
  }
  // A matrix without columns has entries, of which all are out of range.
  const TypedTensor offsets(context(), TUFF_I32, as_type(TUFF_I32, std::vector<int32_t>{0, 1, 1, 2})),
      indices(context(), TUFF_I32, Bytes(8)), values(context(), TUFF_F32, as_type(TUFF_F32, std::vector<float>{1, 2}));
  desc.columns = 0, desc.nnz = 2, desc.offsets = offsets, desc.indices = indices, desc.values = values;
  ASSERT_OK(tuff_spmm(context(), &desc));
  EXPECT_EQ(numbers_of(TUFF_F32, c.read()), (std::vector<double>{0, 0, 0}));
}

TEST_P(SparseOnce, TheSameBitsEveryTime) {
  Random random(11);
  const Csr a = matrix_of(Form::power, 3'000, 500, false, false, random);
  const std::vector<int32_t> offsets(a.offsets.begin(), a.offsets.end()), indices(a.indices.begin(), a.indices.end());
  const std::vector<float> values(a.values.begin(), a.values.end());
  std::vector<float> x(500);
  for (float& number : x) number = random.uniform(-1, 1);
  Bytes first;
  for (int round = 0; round < 5; ++round) {
    Product product(context(), offsets, indices, values, x, 3'000);
    ASSERT_OK(tuff_spmm(context(), &product.desc));
    const Bytes got = product.c.read();
    if (round == 0) first = got;
    EXPECT_TRUE(got == first);
  }
}

// Zeros that are stored stay entries; sums that cancel too; -0 of a dense matrix is none.
TEST_P(SparseOnce, StoredZerosStay) {
  const TypedTensor rows(context(), TUFF_I32, as_type(TUFF_I32, std::vector<int32_t>{1, 0, 1, 0})),
      columns(context(), TUFF_I32, as_type(TUFF_I32, std::vector<int32_t>{2, 1, 2, 0})),
      values(context(), TUFF_F32, as_type(TUFF_F32, std::vector<float>{3, 0, -3, 5})),
      offsets(context(), TUFF_I32, Bytes(12)), indices(context(), TUFF_I32, Bytes(16)),
      sums(context(), TUFF_F32, Bytes(16));
  tuff_sparse_convert_desc desc{};
  desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
  desc.from_format = TUFF_SPARSE_COO, desc.to_format = TUFF_SPARSE_CSR, desc.rows = 2, desc.columns = 3;
  desc.nnz = desc.capacity = 4, desc.from_rows = rows, desc.from_columns = columns, desc.from_values = values;
  desc.to_rows = offsets, desc.to_columns = indices, desc.to_values = sums;
  ASSERT_OK(tuff_sparse_convert(context(), &desc));
  EXPECT_EQ(numbers_of(TUFF_I32, offsets.read()), (std::vector<double>{0, 2, 3}));
  EXPECT_EQ(numbers_of(TUFF_I32, indices.read()), (std::vector<double>{0, 1, 2, -1}));
  EXPECT_EQ(numbers_of(TUFF_F32, sums.read()), (std::vector<double>{5, 0, 0, 0}));
}

TEST_P(SparseOnce, WrongProducts) {
  const char* const f = "tuff_spmm";
  Product p(context(), {0, 1, 2}, {0, 1}, {1, 2}, {1, 10, 100}, 2);
  const auto with = [&](auto change) {
    tuff_spmm_desc desc = p.desc;
    change(desc);
    return tuff_spmm(context(), &desc);
  };
  using Desc = tuff_spmm_desc;
  EXPECT_OK(with([](Desc&) {}));
  const Bytes before = p.c.read();
  EXPECT_FAILS(with([](Desc& d) { d.dtype = 99; }), kArgument, f, "dtype");
  EXPECT_FAILS(with([](Desc& d) { d.dtype = TUFF_I32; }), kUnsupported, f, "dtype");
  EXPECT_FAILS(with([](Desc& d) { d.index_type = 0; }), kArgument, f, "index_type");
  EXPECT_FAILS(with([](Desc& d) { d.index_type = TUFF_U32; }), kUnsupported, f, "index_type");
  EXPECT_FAILS(with([](Desc& d) { d.transpose = 3; }), kArgument, f, "transpose");
  EXPECT_FAILS(with([](Desc& d) { d.side = 2; }), kArgument, f, "side");
  EXPECT_FAILS(with([](Desc& d) { d.ldb = 1, d.n = 2; }), kArgument, f, "ldb");
  EXPECT_FAILS(with([](Desc& d) { d.nnz = 300; }), kArgument, f, "indices");
  EXPECT_FAILS(with([](Desc& d) { d.rows = 300; }), kArgument, f, "c");
  EXPECT_FAILS(with([](Desc& d) { d.columns = 400; }), kArgument, f, "b");
  EXPECT_FAILS(with([](Desc& d) { d.columns = (1ull << 31) + 1; }), kArgument, f, "columns");
  EXPECT_FAILS(with([](Desc& d) { d.nnz = 1ull << 31; }), kArgument, f, "nnz");
  EXPECT_FAILS(with([](Desc& d) { d.rows = ~0ull; }), kArgument, f, "c");
  EXPECT_FAILS(with([](Desc& d) { d.n = 1ull << 62, d.ldb = d.ldc = 0; }), kArgument, f, "c");
  EXPECT_FAILS(with([](Desc& d) { d.batch_count = 2; }), kArgument, f, "stride_c");
  EXPECT_FAILS(with([](Desc& d) { d.batch_count = 1ull << 62, d.stride_c = 1ull << 3; }), kArgument, f, "c");
  EXPECT_FAILS(with([](Desc& d) { d.c = d.b; }), kArgument, f, "c");
  EXPECT_FAILS(with([](Desc& d) { d.b = 0; }), TUFF_ERROR_INVALID_HANDLE, f, "b");
  EXPECT_FAILS(with([](Desc& d) { d.offsets = 0; }), TUFF_ERROR_INVALID_HANDLE, f, "offsets");
  EXPECT_TRUE(p.c.read() == before);
}

// Rows without columns are nothing to look at, however many there are.
TEST_P(SparseOnce, AnyNumberOfRowsWithoutColumns) {
  const TypedTensor none(context(), TUFF_F32, {}), count(context(), TUFF_I64, Bytes(8, 1));
  tuff_sparse_convert_desc desc{};
  desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.index_type = TUFF_I64;
  desc.from_format = TUFF_SPARSE_DENSE, desc.to_format = TUFF_SPARSE_COO, desc.rows = (1ull << 31) - 1;
  desc.from_values = none, desc.count = count;
  ASSERT_OK(tuff_sparse_convert(context(), &desc));
  EXPECT_EQ(count.read(), Bytes(8));
  desc.rows = 1ull << 62;
  if (GetParam() == "host") {
    EXPECT_OK(tuff_sparse_convert(context(), &desc));
  }
}

TEST_P(SparseOnce, WrongConversions) {
  const char* const f = "tuff_sparse_convert";
  const TypedTensor rows(context(), TUFF_I32, Bytes(16)), columns(context(), TUFF_I32, Bytes(16)),
      values(context(), TUFF_F32, Bytes(16)), to_rows(context(), TUFF_I32, Bytes(16)),
      to_columns(context(), TUFF_I32, Bytes(16)), to_values(context(), TUFF_F32, Bytes(16));
  const auto with = [&](auto change) {
    tuff_sparse_convert_desc desc{};
    desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
    desc.from_format = TUFF_SPARSE_COO, desc.to_format = TUFF_SPARSE_CSR, desc.rows = 3, desc.columns = 2;
    desc.nnz = desc.capacity = 4, desc.from_rows = rows, desc.from_columns = columns, desc.from_values = values;
    desc.to_rows = to_rows, desc.to_columns = to_columns, desc.to_values = to_values;
    change(desc);
    return tuff_sparse_convert(context(), &desc);
  };
  using Desc = tuff_sparse_convert_desc;
  EXPECT_OK(with([](Desc&) {}));
  EXPECT_FAILS(with([](Desc& d) { d.from_format = 5; }), kArgument, f, "from_format");
  EXPECT_FAILS(with([](Desc& d) { d.to_format = -1; }), kArgument, f, "to_format");
  EXPECT_FAILS(with([](Desc& d) { d.dtype = TUFF_BOOL; }), kUnsupported, f, "dtype");
  EXPECT_FAILS(with([](Desc& d) { d.index_type = TUFF_U64; }), kUnsupported, f, "index_type");
  EXPECT_FAILS(with([](Desc& d) { d.nnz = 500; }), kArgument, f, "from_rows");
  EXPECT_FAILS(with([](Desc& d) { d.capacity = 500; }), kArgument, f, "to_columns");
  EXPECT_FAILS(with([](Desc& d) { d.rows = 400; }), kArgument, f, "to_rows");
  EXPECT_FAILS(with([](Desc& d) { d.rows = (1ull << 31) + 1; }), kArgument, f, "rows");
  EXPECT_FAILS(with([](Desc& d) { d.columns = (1ull << 31) + 1; }), kArgument, f, "columns");
  EXPECT_FAILS(with([](Desc& d) { d.to_rows = d.from_rows; }), kArgument, f, "to_rows");
  EXPECT_FAILS(with([](Desc& d) { d.to_columns = d.to_rows; }), kArgument, f, "to_columns");
  EXPECT_FAILS(with([](Desc& d) { d.count = d.to_values; }), kArgument, f, "count");
  EXPECT_FAILS(with([](Desc& d) { d.to_format = TUFF_SPARSE_DENSE; }), kArgument, f, "to_rows");
  EXPECT_FAILS(with([](Desc& d) { d.to_format = TUFF_SPARSE_DENSE, d.to_rows = d.to_columns = 0, d.to_ld = 1; }),
               kArgument, f, "to_ld");
  EXPECT_FAILS(with([](Desc& d) { d.to_format = TUFF_SPARSE_DENSE, d.to_rows = d.to_columns = 0, d.to_ld = 99; }),
               kArgument, f, "to_values");
  EXPECT_FAILS(with([](Desc& d) {
                 d.from_format = TUFF_SPARSE_DENSE, d.from_rows = d.from_columns = 0, d.index_type = TUFF_I64;
                 d.rows = d.columns = 1ull << 40;
               }),
               kArgument, f, "rows");
}
TUFF_ON_BACKENDS(SparseOnce);

// --- products at places -------------------------------------------------------------------------------------------

struct SampledCase {
  Form form;
  uint64_t rows, columns, k;
  int32_t dtype = TUFF_F32, index_type = TUFF_I32, format = TUFF_SPARSE_CSR, transpose = TUFF_NO_TRANS;
  uint64_t batch = 1, pad = 0, shift = 0;
  double alpha = 1, beta = 0;
  bool stray = false, whole = true, scaled = false, in_place = false;

  std::string name() const {
    return std::string(name_of(dtype)) + "_" + name_of(index_type) + "_" + kForms[static_cast<int>(form)] + "_" +
           std::to_string(rows) + "x" + std::to_string(columns) + "_k" + std::to_string(k) +
           (format == TUFF_SPARSE_COO ? "_coo" : "_csr") + (transpose != TUFF_NO_TRANS ? "_transposed" : "") +
           "_batch" + std::to_string(batch) + "_pad" + std::to_string(pad) + "_shift" + std::to_string(shift) +
           (beta != 0 ? "_beta" : "") + (alpha != 1 ? "_alpha" : "") + (stray ? "_stray" : "") +
           (whole ? "" : "_bound") + (scaled ? "_scaled" : "") + (in_place ? "_in_place" : "");
  }
  double work() const { return static_cast<double>((10 * rows + 10'000) * k * batch); }
};

std::vector<SampledCase> sampled() {
  std::vector<SampledCase> all;
  uint32_t turn = 0;
  const auto add = [&](SampledCase row) {
    row.format = turn % 2 == 0 ? TUFF_SPARSE_CSR : TUFF_SPARSE_COO;
    row.transpose = turn % 3 == 1 ? TUFF_TRANS : TUFF_NO_TRANS;
    row.index_type = turn % 5 < 2 ? TUFF_I64 : TUFF_I32;
    row.batch = turn % 4 == 3 ? 3 : 1, row.pad = turn % 7 < 3 ? 5 : 0, row.shift = turn % 5;
    row.beta = turn % 3 == 2 ? -1 : 0, row.alpha = turn % 7 == 4 ? 2 : 1;
    row.scaled = turn % 4 < 2, row.in_place = turn % 8 == 1, row.stray = turn % 3 == 0;
    ++turn;
    all.push_back(row);
  };
  constexpr int32_t kTypes[] = {TUFF_F32, TUFF_F16, TUFF_BF16, TUFF_F64};
  for (const Form form : {Form::even, Form::power, Form::one_dense, Form::empty, Form::ends, Form::all_in_one}) {
    for (const uint64_t k : {1u, 3u, 4u, 33u}) add({form, 70, 50, k, kTypes[turn % 4]});
  }
  for (const uint64_t k : {0u, 5u, 64u, 257u}) {
    for (const int32_t dtype : kTypes)
      add({Form::even, 41, 31, k, dtype, TUFF_I32, 0, 0, 1, 0, 0, 1, 0, false, k <= 5});
  }
  add({Form::even, 1, 1, 7}), add({Form::power, 3000, 3, 2}), add({Form::even, 2, 5000, 3});
  return all;
}

using SampledProduct = Table<SampledCase>;
TEST_P(SampledProduct, IsThatOfTheDenseMatrices) {
  const SampledCase& s = row();
  Random random(s.rows * 31 + s.columns * 7 + s.k);
  const Csr places = matrix_of(s.form, s.rows, s.columns, s.stray, true, random);
  const uint64_t nnz = places.nnz();
  const bool flips = s.transpose != TUFF_NO_TRANS, coo = s.format == TUFF_SPARSE_COO;
  const auto dense = [&](uint64_t rows, uint64_t columns) {
    Dense d{rows, columns, columns + s.pad, 0};
    d.stride = d.one() + s.pad;
    return d;
  };
  const Dense a = dense(s.rows, s.k), b = flips ? dense(s.columns, s.k) : dense(s.k, s.columns);
  const uint64_t stride = nnz + s.pad, count = nnz == 0 ? 0 : (s.batch - 1) * stride + nnz;
  const auto numbers = [&](uint64_t n) {
    std::vector<double> all(n);
    for (double& x : all) x = held(s.dtype, drawn(s.whole, random));
    return all;
  };
  const std::vector<double> x = numbers(a.all(s.batch)), y = numbers(b.all(s.batch)), scales = numbers(count);
  std::vector<double> old = s.in_place ? scales : numbers(count);
  if (s.beta == 0 && !s.in_place) std::fill(old.begin(), old.end(), NAN);  // not read
  std::vector<int64_t> rows_of(nnz);
  for (uint64_t i = 0; i < s.rows; ++i) {
    for (int64_t e = places.offsets[i]; e < places.offsets[i + 1]; ++e) {
      rows_of[static_cast<size_t>(e)] =
          s.stray && coo && e % 11 == 5 ? (e % 2 == 0 ? -1 : INT32_MAX) : static_cast<int64_t>(i);
    }
  }
  const TypedTensor place_rows(context(), s.index_type, as_type(s.index_type, coo ? rows_of : places.offsets), s.shift),
      place_columns(context(), s.index_type, as_type(s.index_type, places.indices), s.shift + 1),
      left(context(), s.dtype, as_type(s.dtype, x), 1), right(context(), s.dtype, as_type(s.dtype, y), s.shift),
      factors(context(), s.dtype, as_type(s.dtype, scales), 3);
  const Bytes before = as_type(s.dtype, old);
  const TypedTensor result(context(), s.dtype, before, s.shift);
  tuff_sddmm_desc desc{};
  desc.struct_size = sizeof desc, desc.dtype = s.dtype, desc.index_type = s.index_type, desc.place_format = s.format;
  desc.transpose = s.transpose, desc.rows = s.rows, desc.columns = s.columns, desc.nnz = nnz, desc.k = s.k;
  desc.alpha = s.alpha, desc.beta = s.beta, desc.place_rows = place_rows, desc.place_columns = place_columns;
  desc.a = left, desc.b = right, desc.values = result, desc.lda = s.pad == 0 ? 0 : a.ld, desc.ldb = b.ld;
  desc.scales = s.in_place ? tuff_buffer{result} : s.scaled ? tuff_buffer{factors} : 0;
  desc.stride_a = a.stride, desc.stride_b = b.stride, desc.stride_scales = desc.stride_values = stride;
  desc.batch_count = s.batch;
  ASSERT_OK(tuff_sddmm(context(), &desc));
  const Bytes after = result.read();
  const std::vector<double> got = numbers_of(s.dtype, after);
  // A sum of k products, a scale, alpha, beta * C and their sum.
  const double steps = static_cast<double>(s.k) + 5;
  for (uint64_t m = 0; m < s.batch && nnz != 0; ++m) {
    for (uint64_t e = 0; e < nnz; ++e) {
      const uint64_t at = m * stride + e;
      const int64_t i = rows_of[e], j = places.indices[e];
      double sum = 0, size = 0;
      if (i >= 0 && static_cast<uint64_t>(i) < s.rows && j >= 0 && static_cast<uint64_t>(j) < s.columns) {
        const auto row = static_cast<uint64_t>(i), column = static_cast<uint64_t>(j);
        for (uint64_t k = 0; k < s.k; ++k) {
          const double product = x[a.at(m, row, k)] * y[flips ? b.at(m, column, k) : b.at(m, k, column)];
          sum += product, size += std::fabs(product);
        }
        const double scale = s.alpha * (desc.scales != 0 ? scales[at] : 1);
        sum *= scale, size *= std::fabs(scale);
      }
      const double added = s.beta == 0 ? 0 : s.beta * old[at], wanted = sum + added;
      if (s.whole) {
        ASSERT_EQ(got[at], held(s.dtype, wanted)) << m << " " << e;
        continue;
      }
      ASSERT_NEAR(got[at], wanted, bound_of(s.dtype, steps, size + std::fabs(added), wanted)) << m << " " << e;
    }
    if (m + 1 == s.batch) break;
    const uint64_t gap = (m * stride + nnz) * size_of(s.dtype);
    ASSERT_EQ(std::memcmp(before.data() + gap, after.data() + gap, (stride - nnz) * size_of(s.dtype)), 0) << "gap";
  }
}
TUFF_TABLE(SampledProduct, SampledCase, sampled());

class SampledOnce : public OnBackend {};

// Four places in CSR of a 3 x 2 product with k = 2, of which each is the sum of a row's numbers times 10 or 100.
struct Sampled {
  explicit Sampled(tuff_context context, const std::vector<int32_t>& rows = {0, 1, 3, 4})
      : offsets(context, TUFF_I32, as_type(TUFF_I32, rows)),
        indices(context, TUFF_I32, as_type(TUFF_I32, std::vector<int32_t>{0, 1, 0, 1})),
        a(context, TUFF_F32, as_type(TUFF_F32, std::vector<float>{1, 2, 3, 4, 5, 6})),
        b(context, TUFF_F32, as_type(TUFF_F32, std::vector<float>{10, 100, 10, 100})),
        values(context, TUFF_F32, as_type(TUFF_F32, std::vector<float>{-7, -7, -7, -7})) {
    desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
    desc.place_format = TUFF_SPARSE_CSR, desc.rows = 3, desc.columns = 2, desc.nnz = 4, desc.k = 2, desc.alpha = 1;
    desc.place_rows = offsets, desc.place_columns = indices, desc.a = a, desc.b = b, desc.values = values;
    desc.batch_count = 1;
  }
  TypedTensor offsets, indices, a, b, values;
  tuff_sddmm_desc desc{};
};

TEST_P(SampledOnce, AnyContentIsHarmless) {
  const auto got = [&](const std::vector<int32_t>& rows) {
    Sampled p(context(), rows);
    EXPECT_OK(tuff_sddmm(context(), &p.desc));
    return numbers_of(TUFF_F32, p.values.read());
  };
  EXPECT_EQ(got({0, 1, 3, 4}), (std::vector<double>{30, 700, 70, 1100}));
  EXPECT_EQ(got({0, 0, 4, 4}), (std::vector<double>{70, 700, 70, 700}));
  // What belongs to no row is not written; offsets out of range are the nearest that are not.
  EXPECT_EQ(got({1, 2, 2, 3}), (std::vector<double>{-7, 300, 110, -7}));
  EXPECT_EQ(got({-9, 1, 3, INT32_MAX}), (std::vector<double>{30, 700, 70, 1100}));
  EXPECT_EQ(got({4, 4, 4, 4}), (std::vector<double>{-7, -7, -7, -7}));
  got({3, INT32_MIN, INT32_MAX, 0});  // decrease: any values, guarded by the tensor
}

TEST_P(SampledOnce, NothingToAdd) {
  Sampled p(context());
  p.desc.k = 0, p.desc.a = p.desc.b = 0, p.desc.beta = 2;
  EXPECT_OK(tuff_sddmm(context(), &p.desc));
  EXPECT_EQ(numbers_of(TUFF_F32, p.values.read()), (std::vector<double>{-14, -14, -14, -14}));
  p.desc.beta = 0;
  EXPECT_OK(tuff_sddmm(context(), &p.desc));
  EXPECT_EQ(numbers_of(TUFF_F32, p.values.read()), (std::vector<double>{0, 0, 0, 0}));
  Sampled q(context());
  q.desc.nnz = 0, q.desc.place_rows = q.desc.place_columns = q.desc.a = q.desc.b = q.desc.values = 0;
  EXPECT_OK(tuff_sddmm(context(), &q.desc));
  p.desc.batch_count = 0;
  EXPECT_OK(tuff_sddmm(context(), &p.desc));
}

TEST_P(SampledOnce, InfinitiesOfOthersAreNotMultiplied) {
  Sampled p(context());
  const TypedTensor b(context(), TUFF_F32, as_type(TUFF_F32, std::vector<float>{INFINITY, 100, 10, 100})),
      stray(context(), TUFF_I32, as_type(TUFF_I32, std::vector<int32_t>{-1, 1, 2, 1}));
  p.desc.b = b, p.desc.place_columns = stray;
  EXPECT_OK(tuff_sddmm(context(), &p.desc));
  EXPECT_EQ(numbers_of(TUFF_F32, p.values.read()), (std::vector<double>{0, 700, 0, 1100}));
}

TEST_P(SampledOnce, WrongCalls) {
  const char* const f = "tuff_sddmm";
  Sampled p(context());
  const TypedTensor scales(context(), TUFF_F32, Bytes(64));
  const auto with = [&](auto change) {
    tuff_sddmm_desc desc = p.desc;
    change(desc);
    return tuff_sddmm(context(), &desc);
  };
  using Desc = tuff_sddmm_desc;
  EXPECT_OK(with([](Desc&) {}));
  const Bytes before = p.values.read();
  EXPECT_FAILS(with([](Desc& d) { d.dtype = 99; }), kArgument, f, "dtype");
  EXPECT_FAILS(with([](Desc& d) { d.dtype = TUFF_I32; }), kUnsupported, f, "dtype");
  EXPECT_FAILS(with([](Desc& d) { d.index_type = TUFF_U32; }), kUnsupported, f, "index_type");
  EXPECT_FAILS(with([](Desc& d) { d.place_format = TUFF_SPARSE_CSC; }), kArgument, f, "place_format");
  EXPECT_FAILS(with([](Desc& d) { d.place_format = TUFF_SPARSE_DENSE; }), kArgument, f, "place_format");
  EXPECT_FAILS(with([](Desc& d) { d.transpose = 3; }), kArgument, f, "transpose");
  EXPECT_FAILS(with([](Desc& d) { d.lda = 1; }), kArgument, f, "lda");
  EXPECT_FAILS(with([](Desc& d) { d.ldb = 1; }), kArgument, f, "ldb");
  EXPECT_FAILS(with([](Desc& d) { d.nnz = 300; }), kArgument, f, "values");
  EXPECT_FAILS(with([](Desc& d) { d.nnz = 1ull << 31; }), kArgument, f, "nnz");
  EXPECT_FAILS(with([](Desc& d) { d.rows = 400; }), kArgument, f, "place_rows");
  EXPECT_FAILS(with([](Desc& d) { d.rows = ~0ull; }), kArgument, f, "rows");
  EXPECT_FAILS(with([](Desc& d) { d.columns = (1ull << 31) + 1; }), kArgument, f, "columns");
  EXPECT_FAILS(with([](Desc& d) { d.k = 400; }), kArgument, f, "a");
  EXPECT_FAILS(with([](Desc& d) { d.k = 1ull << 62, d.lda = d.ldb = 0; }), kArgument, f, "a");
  EXPECT_FAILS(with([](Desc& d) { d.batch_count = 2; }), kArgument, f, "stride_values");
  EXPECT_FAILS(with([](Desc& d) { d.batch_count = 1ull << 62, d.stride_values = 8; }), kArgument, f, "stride_values");
  EXPECT_FAILS(with([](Desc& d) { d.values = d.b; }), kArgument, f, "values");
  EXPECT_FAILS(with([](Desc& d) { d.a = 0; }), TUFF_ERROR_INVALID_HANDLE, f, "a");
  EXPECT_FAILS(with([](Desc& d) { d.place_rows = 0; }), TUFF_ERROR_INVALID_HANDLE, f, "place_rows");
  EXPECT_FAILS(
      with([&](Desc& d) { d.batch_count = 2, d.values = d.scales = scales, d.stride_values = 4, d.stride_scales = 0; }),
      kArgument, f, "values");
  EXPECT_TRUE(p.values.read() == before);
}
TUFF_ON_BACKENDS(SampledOnce);

}  // namespace
}  // namespace tuff_test::sparse_test
