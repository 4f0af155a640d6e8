// Sparse matrices of dense blocks (BSR), compared with dense matrices of the same blocks. Exact tier: integers, whose
// sums every order gives to the bit. Bound tier: as in sparse_test.cpp, gamma of the terms + 4, relative to the sum of
// magnitudes, and the rounding of the result.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "support/bounds.hpp"
#include "support/tensor.hpp"
#include "support/typed_gemm.hpp"

namespace tuff_test::sparse_blocks_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
constexpr int32_t kByRows = TUFF_BLOCK_ORDER_ROW_MAJOR, kByColumns = TUFF_BLOCK_ORDER_COLUMN_MAJOR;

// How many blocks the rows of blocks have.
enum class Form { even, one_dense, empty, ends, power };
constexpr const char* kForms[] = {"even", "one_dense", "empty", "ends", "power"};

uint64_t blocks_in(Form form, uint64_t line, uint64_t lines, uint64_t across, Random& random) {
  switch (form) {
    case Form::even: return random.next() % 5;
    case Form::one_dense: return line == lines / 3 ? 300 : line % 7 == 0 ? 1 : 0;
    case Form::empty: return 0;
    case Form::ends: return line == 0 || line + 1 == lines ? 2 * across : 0;
    case Form::power: return std::min<uint64_t>(static_cast<uint64_t>(1 / random.uniform(1e-3f, 1)) - 1, 200);
  }
  return 0;
}

// Small integers in the exact tier, otherwise numbers from -1 to 1.
double drawn(bool whole, Random& random) { return whole ? random.integer(2) : double{random.uniform(-1, 1)}; }

// A matrix in BSR, with duplicates, unsorted rows, and a few indices out of range.
struct Bsr {
  uint64_t lines, across, block_rows, block_columns;  // lines and columns of blocks
  int32_t order;
  std::vector<int64_t> offsets, indices;
  std::vector<double> values;

  uint64_t rows() const { return lines * block_rows; }
  uint64_t columns() const { return across * block_columns; }
  uint64_t elements() const { return block_rows * block_columns; }
  uint64_t place(uint64_t row, uint64_t column) const {  // in a block
    return order == kByRows ? row * block_columns + column : column * block_rows + row;
  }
  // body(row, column, number of the value), of the blocks in range.
  template <typename Body>
  void each(const Body& body) const {
    for (uint64_t line = 0; line < lines; ++line) {
      for (int64_t e = offsets[line]; e < offsets[line + 1]; ++e) {
        const int64_t index = indices[static_cast<size_t>(e)];
        if (index < 0 || static_cast<uint64_t>(index) >= across) continue;
        for (uint64_t i = 0; i < block_rows; ++i) {
          for (uint64_t j = 0; j < block_columns; ++j) {
            body(line * block_rows + i, static_cast<uint64_t>(index) * block_columns + j,
                 static_cast<uint64_t>(e) * elements() + place(i, j));
          }
        }
      }
    }
  }
};

Bsr matrix_of(Form form, uint64_t lines, uint64_t across, uint64_t block_rows, uint64_t block_columns, int32_t order,
              bool stray, bool whole, Random& random) {
  Bsr a{lines, across, block_rows, block_columns, order, {0}, {}, {}};
  for (uint64_t line = 0; line < lines; ++line) {
    a.offsets.push_back(a.offsets.back() + static_cast<int64_t>(blocks_in(form, line, lines, across, random)));
  }
  a.indices.resize(static_cast<size_t>(a.offsets.back())), a.values.resize(a.indices.size() * a.elements());
  for (int64_t& index : a.indices) {
    index = static_cast<int64_t>(random.next() % across);
    if (stray && random.next() % 9 == 0) {
      const int64_t all[] = {-1, static_cast<int64_t>(across), INT32_MAX, INT32_MIN};
      index = all[random.next() % 4];
    }
  }
  for (double& value : a.values) value = drawn(whole, random);
  return a;
}

// As in sparse_test.cpp.
double bound_of(int32_t dtype, double steps, double size, double wanted) {
  const double unit = dtype == TUFF_F64 ? 0x1p-53 : kU, smallest = dtype == TUFF_F16 ? 0x1p-25 : 0x1p-126;
  const double bound = steps * unit / (1 - steps * unit) * size;
  return bound + unit_roundoff(dtype) * (std::fabs(wanted) + bound) * 1.001 + smallest;
}

struct ProductCase {
  Form form;
  uint64_t lines, across, block_rows, block_columns, n = 1;
  int32_t dtype = TUFF_F32, index_type = TUFF_I32, transpose = TUFF_NO_TRANS, side = TUFF_SIDE_LEFT, order = kByRows;
  uint64_t batch = 1, pad = 0, shift = 0;
  double alpha = 1, beta = 0;
  bool stray = false, whole = true, by_values = false;

  std::string name() const {
    return std::string(name_of(dtype)) + "_" + name_of(index_type) + "_" + kForms[static_cast<int>(form)] + "_" +
           std::to_string(lines) + "x" + std::to_string(across) + "_of_" + std::to_string(block_rows) + "x" +
           std::to_string(block_columns) + (order == kByRows ? "" : "_by_columns") + "_n" + std::to_string(n) +
           (transpose != TUFF_NO_TRANS ? "_transposed" : "") + (side == TUFF_SIDE_RIGHT ? "_right" : "") + "_batch" +
           std::to_string(batch) + "_pad" + std::to_string(pad) + "_shift" + std::to_string(shift) +
           (beta != 0 ? "_beta" : "") + (alpha != 1 ? "_alpha" : "") + (stray ? "_stray" : "") +
           (whole ? "" : "_bound") + (by_values ? "_values" : "");
  }
  double work() const {
    return static_cast<double>((6 * lines + 1'000) * block_rows * block_columns * (n + 1) * batch);
  }
};

constexpr int32_t kTypes[] = {TUFF_F32, TUFF_F64, TUFF_F16, TUFF_BF16};

std::vector<ProductCase> products() {
  std::vector<ProductCase> all;
  uint32_t turn = 0;
  // Options vary from case to case, out of step with one another.
  const auto add = [&](ProductCase row) {
    row.dtype = kTypes[turn % 4], row.index_type = turn % 5 < 2 ? TUFF_I64 : TUFF_I32;
    row.transpose = turn % 3 == 1 ? TUFF_TRANS : TUFF_NO_TRANS;
    row.side = turn % 5 < 2 ? TUFF_SIDE_RIGHT : TUFF_SIDE_LEFT;
    row.order = turn % 7 < 3 ? kByColumns : kByRows;
    row.pad = turn % 4, row.shift = turn % 7, row.batch = turn % 6 == 5 ? 3 : 1, row.by_values = turn % 12 == 5;
    row.alpha = turn % 4 == 2 ? -2 : 1, row.beta = turn % 3 == 2 ? -1 : 0;
    row.stray = turn % 5 == 3, row.whole = turn % 3 != 0;
    ++turn;
    all.push_back(row);
  };
  constexpr std::pair<uint64_t, uint64_t> kBlocks[] = {{1, 1}, {1, 2}, {2, 1}, {3, 5},
                                                       {4, 4}, {5, 3}, {7, 6}, {16, 16}};
  for (const Form form : {Form::even, Form::one_dense, Form::empty, Form::ends, Form::power}) {
    for (const auto& [r, c] : kBlocks) {
      for (const uint64_t n : {1, 2, 5}) add({form, 13, 11, r, c, n});
    }
    add({form, 1, 1, 3, 5, 4}), add({form, 700, 90, 3, 5, 1}), add({form, 300, 40, 4, 2, 70});
    add({form, 2, 3, 100, 33, 3});
  }
  // Straight products, whatever the turn; a block as large as devices take, and rows that many chunks share.
  all.push_back({Form::even, 1'500, 300, 4, 4, 1});
  all.push_back({Form::power, 400, 80, 16, 16, 8});
  all.push_back({Form::even, 2, 2, 1'024, 3, 2});
  all.push_back({Form::ends, 2, 3, 2, 1'024, 2});
  all.push_back({Form::one_dense, 6, 50, 3, 64, 9, TUFF_F32, TUFF_I64, TUFF_NO_TRANS, TUFF_SIDE_LEFT, kByColumns});
  // Few columns, aligned: rows and columns of blocks in fours and not, blocks that lanes share and blocks that each
  // lane has several pieces of, one tile of a block's rows and more, short rows of blocks together and a long one among
  // them.
  constexpr std::pair<uint64_t, uint64_t> kAligned[] = {{4, 4},   {8, 8},   {16, 16}, {32, 8}, {8, 64}, {2, 4},
                                                        {12, 20}, {64, 64}, {1, 32},  {32, 1}, {3, 3},  {200, 2}};
  uint32_t which = 0;
  for (const auto& [r, c] : kAligned) {
    for (const int32_t order : {kByRows, kByColumns}) {
      for (const uint64_t n : {1, 2, 3, 8}) {
        const int32_t dtype = kTypes[which % 4], side = which % 5 == 4 ? TUFF_SIDE_RIGHT : TUFF_SIDE_LEFT;
        const Form form = which % 3 == 0 ? Form::power : which % 3 == 1 ? Form::even : Form::one_dense;
        const uint64_t lines = r * c > 1'000 ? 20 : 150;
        ProductCase row{form,          lines, 24,   r, c, n, dtype, which % 7 == 3 ? TUFF_I64 : TUFF_I32,
                        TUFF_NO_TRANS, side,  order};
        row.transpose = side == TUFF_SIDE_RIGHT ? TUFF_TRANS : TUFF_NO_TRANS;  // nothing is sorted
        row.batch = which % 6 == 5 ? 2 : 1, row.whole = which % 4 != 3, row.beta = which % 5 == 2 ? -1 : 0;
        row.stray = which % 7 == 2, row.by_values = row.batch == 2;
        ++which;
        all.push_back(row);
      }
    }
  }
  return all;
}

// Dense matrices of a batch, and where an element is.
struct Dense {
  uint64_t rows, columns, ld, stride;
  uint64_t one() const { return (rows - 1) * ld + columns; }
  uint64_t all(uint64_t batch) const { return (batch - 1) * stride + one(); }
  uint64_t at(uint64_t matrix, uint64_t i, uint64_t j) const { return matrix * stride + i * ld + j; }
};

using SparseBlockProduct = Table<ProductCase>;
TEST_P(SparseBlockProduct, IsThatOfTheDenseMatrix) {
  const ProductCase& s = row();
  Random random(s.lines * 31 + s.across * 7 + s.n + s.block_rows);
  const Bsr a = matrix_of(s.form, s.lines, s.across, s.block_rows, s.block_columns, s.order, s.stray, s.whole, random);
  const bool flips = s.transpose != TUFF_NO_TRANS, right = s.side == TUFF_SIDE_RIGHT;
  const uint64_t op_rows = flips ? a.columns() : a.rows(), op_columns = flips ? a.rows() : a.columns();
  const auto dense = [&](uint64_t rows, uint64_t columns, uint64_t gap) {
    Dense d{rows, columns, columns + s.pad, 0};
    d.stride = d.one() + gap;
    return d;
  };
  const Dense b = right ? dense(s.n, op_rows, s.pad) : dense(op_columns, s.n, s.pad);
  const Dense c = right ? dense(s.n, op_columns, 2 * s.pad) : dense(op_rows, s.n, 2 * s.pad);
  const uint64_t stored = a.values.size(), stride_values = s.by_values ? stored + s.pad : 0;
  std::vector<double> values(stored == 0 ? 0 : (s.batch - 1) * stride_values + stored), x(b.all(s.batch));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = held(s.dtype, i < stored ? a.values[i] : drawn(s.whole, random));
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
  desc.transpose = s.transpose, desc.side = s.side, desc.rows = a.rows(), desc.columns = a.columns();
  desc.nnz = a.indices.size(), desc.n = s.n, desc.alpha = s.alpha, desc.beta = s.beta;
  desc.offsets = offsets, desc.indices = indices, desc.values = given, desc.b = factors, desc.c = result;
  desc.ldb = s.pad == 0 ? 0 : b.ld, desc.ldc = c.ld, desc.batch_count = s.batch;
  desc.stride_values = stride_values, desc.stride_b = b.stride, desc.stride_c = c.stride;
  desc.block_rows = static_cast<uint32_t>(s.block_rows), desc.block_columns = static_cast<uint32_t>(s.block_columns);
  desc.block_order = s.order;
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
    if (!written[i]) {
      ASSERT_EQ(std::memcmp(before.data() + i * size, after.data() + i * size, size), 0) << "gap " << i;
    }
  }
}
TUFF_TABLE(SparseBlockProduct, ProductCase, products());

// --- conversions ------------------------------------------------------------------------------------------------

// The buffers of a matrix in one format. For a dense one rows and columns are empty.
struct Stored {
  std::vector<int64_t> rows, columns;
  std::vector<double> values;
  uint64_t entries = 0;
};

// The result of a conversion: elements that are entries, by place.
using Places = std::map<std::pair<uint64_t, uint64_t>, double>;

struct ConvertCase {
  Form form;
  uint64_t lines, across, block_rows, block_columns;  // of the source in BSR
  int32_t to;
  uint64_t to_rows = 1, to_columns = 1;  // blocks of a result in BSR
  int32_t dtype = TUFF_F32, index_type = TUFF_I32, order = kByRows, to_order = kByRows;
  int64_t spare = 0;
  bool stray = false;

  std::string name() const {
    constexpr const char* kNames[] = {"coo", "csr", "csc", "dense", "bsr"};
    return std::string(kForms[static_cast<int>(form)]) + "_" + std::to_string(lines) + "x" + std::to_string(across) +
           "_of_" + std::to_string(block_rows) + "x" + std::to_string(block_columns) +
           (order == kByRows ? "" : "_by_columns") + "_to_" + kNames[to] + std::to_string(to_rows) + "x" +
           std::to_string(to_columns) + (to_order == kByRows ? "" : "_by_columns") + "_" + name_of(dtype) + "_" +
           name_of(index_type) +
           (spare < 0   ? "_short"
            : spare > 0 ? "_spare"
                        : "") +
           (stray ? "_stray" : "");
  }
  double work() const { return static_cast<double>(300 * lines * block_rows * across * block_columns + 100'000); }
};

std::vector<ConvertCase> conversions() {
  std::vector<ConvertCase> all;
  uint32_t turn = 0;
  for (const Form form : {Form::even, Form::one_dense, Form::empty, Form::ends}) {
    for (const auto& [r, c] : std::vector<std::pair<uint64_t, uint64_t>>{{1, 1}, {3, 5}, {4, 2}, {16, 16}}) {
      for (int32_t to = TUFF_SPARSE_COO; to <= TUFF_SPARSE_BSR; ++to) {
        ConvertCase row{form, 12, 10, r, c, to};
        if (to == TUFF_SPARSE_BSR) row.to_rows = turn % 2 == 0 ? 2 * r : 3, row.to_columns = turn % 3 == 0 ? 2 : 5 * c;
        row.dtype = kTypes[turn % 4], row.index_type = turn % 3 == 1 ? TUFF_I64 : TUFF_I32;
        row.order = turn % 5 < 2 ? kByColumns : kByRows, row.to_order = turn % 7 < 3 ? kByColumns : kByRows;
        row.spare = static_cast<int64_t>(turn % 5) - 1, row.stray = turn % 4 == 1;
        ++turn;
        all.push_back(row);
      }
    }
  }
  return all;
}

// The buffers that a conversion of these places gives, with `spare` entries (blocks) more or less than there are.
Stored stored_as(const Places& places, int32_t format, uint64_t rows, uint64_t columns, const Bsr& blocks,
                 int64_t spare) {
  Stored s;
  if (format == TUFF_SPARSE_DENSE) {
    s.values.resize(rows * columns);
    for (const auto& [place, value] : places) s.values[place.first * columns + place.second] = value;
    s.entries = places.size();
    return s;
  }
  // Numbers of lines and of entries in them, and their values.
  std::map<std::pair<uint64_t, uint64_t>, std::vector<double>> found;
  const bool csc = format == TUFF_SPARSE_CSC, bsr = format == TUFF_SPARSE_BSR;
  const uint64_t r = bsr ? blocks.block_rows : 1, c = bsr ? blocks.block_columns : 1;
  for (const auto& [place, value] : places) {
    const uint64_t i = place.first / r, j = place.second / c;
    std::vector<double>& values = found[csc ? std::pair{j, i} : std::pair{i, j}];
    values.resize(r * c);
    values[bsr ? blocks.place(place.first % r, place.second % c) : 0] = value;
  }
  const auto room = static_cast<uint64_t>(std::max<int64_t>(static_cast<int64_t>(found.size()) + spare, 0));
  std::vector<int64_t> majors, minors, offsets{0};
  for (const auto& [place, values] : found) {
    majors.push_back(static_cast<int64_t>(place.first)), minors.push_back(static_cast<int64_t>(place.second));
    s.values.insert(s.values.end(), values.begin(), values.end());
  }
  for (uint64_t line = 0; line < (csc ? columns : rows / r); ++line) {
    offsets.push_back(std::upper_bound(majors.begin(), majors.end(), static_cast<int64_t>(line)) - majors.begin());
  }
  s.entries = found.size();
  majors.resize(room, -1), minors.resize(room, -1), s.values.resize(room * r * c);
  s.rows = csc ? minors : format == TUFF_SPARSE_COO ? majors : offsets;
  s.columns = csc ? offsets : minors;
  return s;
}

// Converts, and compares with what is wanted.
void check_conversion(tuff_context context, tuff_sparse_convert_desc desc, const Stored& from, const Stored& wanted) {
  const int32_t index = desc.index_type, dtype = desc.dtype;
  const TypedTensor rows(context, index, as_type(index, from.rows), 1),
      columns(context, index, as_type(index, from.columns)), values(context, dtype, as_type(dtype, from.values), 2);
  const auto blank = [](int32_t type, uint64_t count) { return Bytes(count * size_of(type), 0x6b); };
  const TypedTensor to_rows(context, index, blank(index, wanted.rows.size())),
      to_columns(context, index, blank(index, wanted.columns.size()), 1),
      to_values(context, dtype, blank(dtype, wanted.values.size()), 1), count(context, TUFF_I64, blank(TUFF_I64, 1));
  if (desc.from_format != TUFF_SPARSE_DENSE) desc.from_rows = rows, desc.from_columns = columns;
  if (desc.to_format != TUFF_SPARSE_DENSE) desc.to_rows = to_rows, desc.to_columns = to_columns;
  desc.from_values = values, desc.to_values = to_values, desc.count = count, desc.nnz = from.entries;
  ASSERT_OK(tuff_sparse_convert(context, &desc));
  const auto numbers = [](const std::vector<int64_t>& x) { return std::vector<double>(x.begin(), x.end()); };
  EXPECT_EQ(numbers_of(TUFF_I64, count.read()), std::vector<double>{static_cast<double>(wanted.entries)});
  EXPECT_EQ(numbers_of(index, to_rows.read()), numbers(wanted.rows));
  EXPECT_EQ(numbers_of(index, to_columns.read()), numbers(wanted.columns));
  EXPECT_EQ(numbers_of(dtype, to_values.read()), wanted.values);
}

// From BSR to each format, and from each format to BSR.
using SparseBlockConvert = Table<ConvertCase>;
TEST_P(SparseBlockConvert, FromAndToBlocks) {
  const ConvertCase& s = row();
  Random random(s.lines + 31 * s.block_rows + 7 * s.block_columns + static_cast<uint64_t>(s.form));
  Bsr a = matrix_of(s.form, s.lines, s.across, s.block_rows, s.block_columns, s.order, s.stray, true, random);
  // Sums that bf16 holds.
  for (size_t i = 0; i < a.values.size(); ++i) a.values[i] = a.indices.size() > 60 && i % 5 != 0 ? 0 : a.values[i];
  Places places;
  a.each([&](uint64_t i, uint64_t j, uint64_t e) { places[{i, j}] += a.values[e]; });
  const Bsr to{0, 0, s.to_rows, s.to_columns, s.to_order, {}, {}, {}};
  tuff_sparse_convert_desc desc{};
  desc.struct_size = sizeof desc, desc.dtype = s.dtype, desc.index_type = s.index_type;
  desc.rows = a.rows(), desc.columns = a.columns();
  desc.from_format = TUFF_SPARSE_BSR, desc.to_format = s.to;
  desc.from_block_rows = static_cast<uint32_t>(s.block_rows);
  desc.from_block_columns = static_cast<uint32_t>(s.block_columns), desc.from_block_order = s.order;
  desc.to_block_rows = static_cast<uint32_t>(s.to_rows), desc.to_block_columns = static_cast<uint32_t>(s.to_columns);
  desc.to_block_order = s.to_order;
  const Stored source{a.offsets, a.indices, a.values, a.indices.size()};
  const Stored wanted = stored_as(places, s.to, a.rows(), a.columns(), to, s.spare);
  desc.capacity = s.to == TUFF_SPARSE_BSR ? wanted.values.size() / to.elements() : wanted.values.size();
  check_conversion(context(), desc, source, wanted);

  // Back: the same places in the other format, in full, as blocks of the first kind.
  const Stored other = stored_as(places, s.to, a.rows(), a.columns(), to, 0);
  if (s.to == TUFF_SPARSE_DENSE) {
    std::erase_if(places, [](const auto& place) { return place.second == 0; });
  } else if (s.to == TUFF_SPARSE_BSR) {  // all elements of its blocks are entries
    Places all;
    for (const auto& [place, value] : places) {
      const uint64_t i = place.first / s.to_rows * s.to_rows, j = place.second / s.to_columns * s.to_columns;
      for (uint64_t k = 0; k < to.elements(); ++k) all[{i + k / s.to_columns, j + k % s.to_columns}] += 0;
    }
    for (const auto& [place, value] : places) all[place] = value;
    places = all;
  }
  const Stored back = stored_as(places, TUFF_SPARSE_BSR, a.rows(), a.columns(), a, s.spare);
  std::swap(desc.from_format, desc.to_format), std::swap(desc.from_block_rows, desc.to_block_rows);
  std::swap(desc.from_block_columns, desc.to_block_columns), std::swap(desc.from_block_order, desc.to_block_order);
  desc.capacity = back.columns.size();
  check_conversion(context(), desc, other, back);
}
TUFF_TABLE(SparseBlockConvert, ConvertCase, conversions());

// --- what is not in tables ---------------------------------------------------------------------------------------

class SparseBlocksOnce : public OnBackend {};

// Two rows of three blocks of 2 x 2.
struct Product {
  tuff_spmm_desc desc{};
  TypedTensor offsets, indices, values, b, c;
  Product(tuff_context context, const std::vector<int32_t>& of_offsets, const std::vector<int32_t>& of_indices,
          const std::vector<float>& of_values, const std::vector<float>& of_b)
      : offsets(context, TUFF_I32, as_type(TUFF_I32, of_offsets)),
        indices(context, TUFF_I32, as_type(TUFF_I32, of_indices)),
        values(context, TUFF_F32, as_type(TUFF_F32, of_values)),
        b(context, TUFF_F32, as_type(TUFF_F32, of_b)),
        c(context, TUFF_F32, Bytes(16, 0x6b)) {
    desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
    desc.rows = 4, desc.columns = 6, desc.nnz = of_indices.size(), desc.n = 1, desc.alpha = 1, desc.batch_count = 1;
    desc.offsets = offsets, desc.indices = indices, desc.values = values, desc.b = b, desc.c = c;
    desc.block_rows = desc.block_columns = 2;
  }
  std::vector<double> result() const { return numbers_of(TUFF_F32, c.read()); }
};

TEST_P(SparseBlocksOnce, ABlockOutOfRangeIsNotMultiplied) {
  const float inf = INFINITY;
  // A block that is out of range makes no NaN of an infinity, in it or in B.
  Product p(context(), {0, 2, 5}, {0, 3, -1, 2, INT32_MAX},
            {1, 2, 3, 4, inf, inf, NAN, inf, inf, 1, 1, 1, 1, 0, 0, 1, NAN, 1, 1, 1}, {1, 10, inf, inf, 5, 7});
  ASSERT_OK(tuff_spmm(context(), &p.desc));
  EXPECT_EQ(p.result(), (std::vector<double>{21, 43, 5, 7}));
  p.desc.block_order = kByColumns;
  ASSERT_OK(tuff_spmm(context(), &p.desc));
  EXPECT_EQ(p.result(), (std::vector<double>{31, 42, 5, 7}));
  // Offsets of the second row alone, as those of a matrix of one row of blocks.
  tuff_buffer view = 0;
  ASSERT_OK(tuff_view(p.offsets, 4, 8, &view));
  const OwnBuffer second(view);
  p.desc.rows = 2, p.desc.offsets = second;
  ASSERT_OK(tuff_spmm(context(), &p.desc));
  EXPECT_EQ((std::vector<double>{p.result()[0], p.result()[1]}), (std::vector<double>{5, 7}));
}

TEST_P(SparseBlocksOnce, AnyContentIsHarmless) {
  Random random(5);
  for (int round = 0; round < 20; ++round) {
    const uint64_t lines = 1 + random.next() % 90, nnz = 1 + random.next() % 300, across = 1 + random.next() % 40;
    const uint64_t r = 1 + random.next() % 6, c = 1 + random.next() % 6;
    std::vector<int32_t> offsets(lines + 1), indices(nnz);
    for (int32_t& offset : offsets) offset = static_cast<int32_t>(random.next() >> (random.next() % 40 + 24));
    for (int32_t& index : indices) index = static_cast<int32_t>(random.next() >> (random.next() % 30 + 32));
    const TypedTensor o(context(), TUFF_I32, as_type(TUFF_I32, offsets)),
        i(context(), TUFF_I32, as_type(TUFF_I32, indices)), v(context(), TUFF_F32, Bytes(4 * nnz * r * c)),
        b(context(), TUFF_F32, Bytes(4 * std::max(across * c, lines * r))),
        y(context(), TUFF_F32, Bytes(4 * std::max(across * c, lines * r)));
    tuff_spmm_desc desc{};
    desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.index_type = TUFF_I32, desc.n = desc.batch_count = 1;
    desc.rows = lines * r, desc.columns = across * c, desc.nnz = nnz, desc.alpha = 1, desc.offsets = o;
    desc.indices = i, desc.values = v, desc.b = b, desc.c = y;
    desc.block_rows = static_cast<uint32_t>(r), desc.block_columns = static_cast<uint32_t>(c);
    ASSERT_OK(tuff_spmm(context(), &desc));
    desc.transpose = TUFF_TRANS;
    ASSERT_OK(tuff_spmm(context(), &desc));
    const TypedTensor rows(context(), TUFF_I32, Bytes(4 * lines + 4)), columns(context(), TUFF_I32, Bytes(4 * nnz)),
        values(context(), TUFF_F32, Bytes(4 * nnz * r * c));
    tuff_sparse_convert_desc convert{};
    convert.struct_size = sizeof convert, convert.dtype = TUFF_F32, convert.index_type = TUFF_I32;
    convert.from_format = convert.to_format = TUFF_SPARSE_BSR, convert.rows = desc.rows, convert.columns = desc.columns;
    convert.nnz = convert.capacity = nnz, convert.from_rows = o, convert.from_columns = i, convert.from_values = v;
    convert.to_rows = rows, convert.to_columns = columns, convert.to_values = values;
    convert.from_block_rows = convert.to_block_rows = desc.block_rows;
    convert.from_block_columns = convert.to_block_columns = desc.block_columns;
    ASSERT_OK(tuff_sparse_convert(context(), &convert));
    y.read(), v.read(), b.read(), rows.read(), columns.read(), values.read();  // their guards
  }
}

// Not by 0 either: a block whose index is out of range may hold anything, and so may elements of B that no block meets.
TEST_P(SparseBlocksOnce, BlocksOutOfRangeAreNotMultiplied) {
  constexpr uint64_t kLines = 40, kAcross = 3, kSide = 4;
  std::vector<int64_t> offsets(kLines + 1), indices;
  std::vector<double> values, x(kAcross * kSide, 1);
  std::fill(x.begin(), x.begin() + kSide,
            INFINITY);  // of column 0 of blocks, which is what an index may be replaced by
  for (uint64_t line = 0; line < kLines; ++line) {
    for (uint64_t e = 0; e < line % 4; ++e) {
      const bool stray = (line + e) % 3 == 0;
      indices.push_back(stray ? (e % 2 == 0 ? -1 : 3) : 1 + static_cast<int64_t>(e % 2));
      values.insert(values.end(), kSide * kSide, stray ? NAN : 2);
    }
    offsets[line + 1] = static_cast<int64_t>(indices.size());
  }
  for (const int32_t order : {kByRows, kByColumns}) {
    const TypedTensor o(context(), TUFF_I32, as_type(TUFF_I32, offsets)),
        i(context(), TUFF_I32, as_type(TUFF_I32, indices)), v(context(), TUFF_F32, as_type(TUFF_F32, values)),
        b(context(), TUFF_F32, as_type(TUFF_F32, x)), y(context(), TUFF_F32, Bytes(4 * kLines * kSide));
    tuff_spmm_desc desc{};
    desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.index_type = TUFF_I32, desc.n = desc.batch_count = 1;
    desc.rows = kLines * kSide, desc.columns = kAcross * kSide, desc.nnz = indices.size(), desc.alpha = 1;
    desc.offsets = o, desc.indices = i, desc.values = v, desc.b = b, desc.c = y;
    desc.block_rows = desc.block_columns = kSide, desc.block_order = order;
    ASSERT_OK(tuff_spmm(context(), &desc));
    const std::vector<double> got = numbers_of(TUFF_F32, y.read());
    for (uint64_t row = 0; row < got.size(); ++row) {
      double wanted = 0;
      for (int64_t e = offsets[row / kSide]; e < offsets[row / kSide + 1]; ++e) {
        const int64_t index = indices[static_cast<size_t>(e)];
        if (index == 1 || index == 2) wanted += 2 * kSide;
      }
      ASSERT_EQ(got[row], wanted) << row;
    }
  }
}

TEST_P(SparseBlocksOnce, NothingToMultiply) {
  Product p(context(), {0, 1, 2}, {0, 1}, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 1, 1, 1, 1});
  p.desc.alpha = 0;
  ASSERT_OK(tuff_spmm(context(), &p.desc));
  EXPECT_EQ(p.result(), (std::vector<double>{0, 0, 0, 0}));
  p.desc.alpha = 1, p.desc.nnz = 0, p.desc.offsets = p.desc.indices = p.desc.values = p.desc.b = 0;
  ASSERT_OK(tuff_spmm(context(), &p.desc));
  EXPECT_EQ(p.result(), (std::vector<double>{0, 0, 0, 0}));
  p.desc.columns = 0, p.desc.nnz = 2, p.desc.offsets = p.offsets, p.desc.indices = p.indices;
  p.desc.values = p.values;
  ASSERT_OK(tuff_spmm(context(), &p.desc));
  EXPECT_EQ(p.result(), (std::vector<double>{0, 0, 0, 0}));
}

TEST_P(SparseBlocksOnce, WrongBlocks) {
  const char* const f = "tuff_spmm";
  Product p(context(), {0, 1, 2}, {0, 1}, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 1, 1, 1, 1});
  const Bytes before = p.c.read();
  const auto with = [&](auto change) {
    tuff_spmm_desc desc = p.desc;
    change(desc);
    return tuff_spmm(context(), &desc);
  };
  using Desc = tuff_spmm_desc;
  EXPECT_FAILS(with([](Desc& d) { d.block_rows = 3; }), kArgument, f, "block_rows");
  EXPECT_FAILS(with([](Desc& d) { d.block_columns = 4; }), kArgument, f, "block_columns");
  EXPECT_FAILS(with([](Desc& d) { d.block_rows = ~0u; }), kArgument, f, "block_rows");
  EXPECT_FAILS(with([](Desc& d) { d.block_order = 2; }), kArgument, f, "block_order");
  EXPECT_FAILS(with([](Desc& d) { d.block_order = -1; }), kArgument, f, "block_order");
  EXPECT_FAILS(with([](Desc& d) { d.reserved2 = 1; }), kArgument, f, "reserved2");
  EXPECT_FAILS(with([](Desc& d) { d.nnz = 90; }), kArgument, f, "indices");
  EXPECT_FAILS(with([](Desc& d) { d.block_rows = 4, d.block_columns = 6; }), kArgument, f, "values");
  EXPECT_FAILS(with([](Desc& d) {
                 d.rows = d.block_rows = ~0u, d.columns = d.block_columns = ~0u, d.n = 1, d.index_type = TUFF_I64;
                 d.nnz = 1ull << 40;
               }),
               kArgument, f, "c");
  EXPECT_TRUE(p.c.read() == before);
}

TEST_P(SparseBlocksOnce, WrongConversions) {
  const char* const f = "tuff_sparse_convert";
  const TypedTensor offsets(context(), TUFF_I32, Bytes(12)), indices(context(), TUFF_I32, Bytes(8)),
      values(context(), TUFF_F32, Bytes(32)), to_rows(context(), TUFF_I32, Bytes(20)),
      to_columns(context(), TUFF_I32, Bytes(32)), to_values(context(), TUFF_F32, Bytes(32));
  const auto with = [&](auto change) {
    tuff_sparse_convert_desc desc{};
    desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.index_type = TUFF_I32;
    desc.from_format = TUFF_SPARSE_BSR, desc.to_format = TUFF_SPARSE_CSR, desc.rows = 4, desc.columns = 6;
    desc.from_block_rows = desc.from_block_columns = 2;
    desc.nnz = 2, desc.capacity = 8, desc.from_rows = offsets, desc.from_columns = indices, desc.from_values = values;
    desc.to_rows = to_rows, desc.to_columns = to_columns, desc.to_values = to_values;
    change(desc);
    return tuff_sparse_convert(context(), &desc);
  };
  using Desc = tuff_sparse_convert_desc;
  EXPECT_OK(with([](Desc&) {}));
  // For formats without blocks their extents are not read.
  EXPECT_OK(with([](Desc& d) { d.to_block_rows = 77; }));
  EXPECT_FAILS(with([](Desc& d) { d.to_block_order = 9; }), kArgument, f, "to_block_order");
  EXPECT_FAILS(with([](Desc& d) { d.from_block_rows = 3; }), kArgument, f, "from_block_rows");
  EXPECT_FAILS(with([](Desc& d) { d.from_block_columns = 5; }), kArgument, f, "from_block_columns");
  EXPECT_FAILS(with([](Desc& d) { d.from_block_order = 2; }), kArgument, f, "from_block_order");
  EXPECT_FAILS(with([](Desc& d) { d.to_format = TUFF_SPARSE_BSR, d.to_block_rows = 3; }), kArgument, f,
               "to_block_rows");
  EXPECT_FAILS(with([](Desc& d) { d.to_format = TUFF_SPARSE_BSR, d.to_block_order = -1; }), kArgument, f,
               "to_block_order");
  EXPECT_FAILS(with([](Desc& d) { d.to_format = TUFF_SPARSE_BSR, d.to_block_rows = 2, d.to_block_columns = 6; }),
               kArgument, f, "to_values");
  EXPECT_FAILS(with([](Desc& d) { d.nnz = 1ull << 30; }), kArgument, f, "nnz");
  EXPECT_FAILS(with([](Desc& d) {
                 d.to_format = TUFF_SPARSE_COO, d.rows = d.columns = 400;
                 d.from_block_rows = d.from_block_columns = 100;
               }),
               kArgument, f, "from_values");
  EXPECT_FAILS(with([](Desc& d) { d.from_format = 5; }), kArgument, f, "from_format");
}

TEST_P(SparseBlocksOnce, TheSameBitsEveryTime) {
  Random random(11);
  const Bsr a = matrix_of(Form::power, 500, 60, 5, 3, kByRows, false, false, random);
  const TypedTensor o(context(), TUFF_I32, as_type(TUFF_I32, a.offsets)),
      i(context(), TUFF_I32, as_type(TUFF_I32, a.indices)), v(context(), TUFF_F32, as_type(TUFF_F32, a.values));
  std::vector<float> x(3 * a.columns());
  for (float& number : x) number = random.uniform(-1, 1);
  const TypedTensor b(context(), TUFF_F32, as_type(TUFF_F32, x)), c(context(), TUFF_F32, Bytes(4 * 3 * a.rows()));
  tuff_spmm_desc desc{};
  desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.index_type = TUFF_I32, desc.n = 3, desc.batch_count = 1;
  desc.rows = a.rows(), desc.columns = a.columns(), desc.nnz = a.indices.size(), desc.alpha = 1, desc.offsets = o;
  desc.indices = i, desc.values = v, desc.b = b, desc.c = c, desc.block_rows = 5, desc.block_columns = 3;
  Bytes first;
  for (int round = 0; round < 5; ++round) {
    ASSERT_OK(tuff_spmm(context(), &desc));
    const Bytes got = c.read();
    if (round == 0) first = got;
    EXPECT_TRUE(got == first);
  }
}
TUFF_ON_BACKENDS(SparseBlocksOnce);

}  // namespace
}  // namespace tuff_test::sparse_blocks_test
