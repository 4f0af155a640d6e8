// Sparse matrices. Values are integers whose sums every type's arithmetic holds exactly, so that devices and the host
// agree to the bit. Offsets ascend, as they must; indices may be out of range.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/matrices.hpp"

namespace tuff_fuzz {
namespace {

constexpr double kExact = 0x1p24;  // sums of integers below this are exact in f32

// A dense matrix, whose leading dimension is set.
Stored draw_dense(Draft& d, const char* leading, uint64_t rows, uint64_t cols, uint64_t batch, bool padded,
                  bool repeat) {
  const Stored dense = stored(d, rows, cols, batch, padded, repeat);
  set_leading(d, leading, dense);
  return dense;
}

// Whether offsets ascend.
bool ascends(const Operand& offsets) { return std::is_sorted(offsets.values.begin(), offsets.values.end()); }

int32_t draw_type(Draft& d) { return d.shape.of<int32_t>({TUFF_F32, TUFF_F32, TUFF_F16, TUFF_BF16, TUFF_F64}); }
int32_t draw_index(Draft& d) { return d.shape.of<int32_t>({TUFF_I32, TUFF_I64}); }
// Sums are computed in rows * n numbers by the host backend.
uint64_t draw_extent(Draft& d, uint64_t usual) {
  return std::min<uint64_t>(d.extent(draw_size(d.shape, usual), 0, usual), 3000);
}

// The blocks of a matrix in BSR, or of another one: 1 x 1.
struct Blocks {
  uint64_t rows = 1, columns = 1;
  uint64_t elements() const { return rows * columns; }
  // The nearest extents that they divide.
  uint64_t whole_rows(uint64_t count) const { return count - count % rows; }
  uint64_t whole_columns(uint64_t count) const { return count - count % columns; }
};
Blocks draw_blocks(Draft& d, bool is, const std::string& prefix) {
  if (!is) return {};
  const auto extent = [&] { return d.shape.one_in(6) ? 16 : d.shape.between(1, 6); };
  const Blocks blocks{extent(), extent()};
  d.set(prefix + "block_rows", blocks.rows), d.set(prefix + "block_columns", blocks.columns);
  d.set(prefix + "block_order", d.shape.of<int32_t>({TUFF_BLOCK_ORDER_ROW_MAJOR, TUFF_BLOCK_ORDER_COLUMN_MAJOR}));
  return blocks;
}

void draw_spmm(Draft& d) {
  const int32_t dtype = draw_type(d), index_type = draw_index(d);
  const bool transposed = d.shape.one_in(3), right = d.shape.one_in(3), padded = d.shape.one_in(2);
  const Blocks blocks = draw_blocks(d, d.shape.one_in(3), "");
  const uint64_t rows = blocks.whole_rows(draw_extent(d, 40)), columns = blocks.whole_columns(draw_extent(d, 40));
  const uint64_t nnz = d.extent(d.shape.one_in(8) ? 0 : d.shape.between(1, 200), 0, 200);
  const uint64_t n = d.shape.one_in(3) ? 1 : std::min<uint64_t>(draw_extent(d, 9), 300);
  const uint64_t batch = d.shape.one_in(2) ? 1 : d.extent(d.shape.one_in(12) ? 0 : d.shape.between(1, 4), 0, 4);
  const double alpha = d.shape.of({1.0, 1.0, -2.0, 0.0}), beta = d.shape.of({0.0, 0.0, 1.0, -1.0});
  const uint64_t from = transposed ? rows : columns, to = transposed ? columns : rows;
  d.set("dtype", dtype), d.set("index_type", index_type), d.set("side", right ? TUFF_SIDE_RIGHT : TUFF_SIDE_LEFT);
  d.set("transpose", transposed ? d.shape.of<int32_t>({TUFF_TRANS, TUFF_CONJ_TRANS}) : int32_t{TUFF_NO_TRANS});
  d.set("rows", rows), d.set("columns", columns), d.set("nnz", nnz), d.set("n", n), d.set("batch_count", batch);
  d.real("alpha", alpha), d.real("beta", beta);
  // B is n x rows of op(A) on the right.
  const Stored b = right ? draw_dense(d, "ldb", n, to, batch, padded, d.shape.one_in(3))
                         : draw_dense(d, "ldb", from, n, batch, padded, d.shape.one_in(3));
  const Stored c =
      right ? draw_dense(d, "ldc", n, from, batch, padded, false) : draw_dense(d, "ldc", to, n, batch, padded, false);
  const uint64_t elements = nnz * blocks.elements();
  const uint64_t stride_values = batch > 1 && d.shape.one_in(2) ? elements + (padded ? d.loose().below(6) : 0) : 0;
  d.set("stride_values", stride_values), d.set("stride_b", b.stride), d.set("stride_c", c.stride);
  const uint64_t results = footprint(c.axes(batch));
  const bool reads = results != 0 && nnz != 0;
  Operand& offsets =
      d.input("offsets", index_type, reads ? rows / blocks.rows + 1 : 0, Fill::offsets, static_cast<double>(nnz));
  offsets.keep_values = true;
  d.input("indices", index_type, reads ? nnz : 0, Fill::indices, static_cast<double>(columns / blocks.columns));
  d.input("values", dtype, reads ? (batch - 1) * stride_values + elements : 0);
  d.input("b", dtype, reads ? footprint(b.axes(batch)) : 0);
  Operand& output = d.output("c", dtype, results);
  output.axes = c.axes(batch);
  if (beta != 0) output.read = true;
  d.suits = [&d, reads, beta, terms = nnz * std::max(blocks.rows, blocks.columns)] {
    const Seen& old = d.of("c").seen;
    if (beta != 0 && !(old.integral && old.most < 64)) return false;
    if (!reads) return true;
    const Seen &a = d.of("values").seen, &x = d.of("b").seen;
    return ascends(d.of("offsets")) && a.integral && x.integral &&
           2 * static_cast<double>(terms) * a.most * x.most + 64 < kExact;
  };
}

void draw_sparse_convert(Draft& d) {
  const int32_t dtype = draw_type(d), index_type = draw_index(d);
  const auto format = [&] { return static_cast<int32_t>(d.shape.between(TUFF_SPARSE_COO, TUFF_SPARSE_BSR)); };
  const int32_t from = format(), to = format();
  const bool from_dense = from == TUFF_SPARSE_DENSE, to_dense = to == TUFF_SPARSE_DENSE, padded = d.shape.one_in(2);
  const Blocks from_blocks = draw_blocks(d, from == TUFF_SPARSE_BSR, "from_"),
               to_blocks = draw_blocks(d, to == TUFF_SPARSE_BSR, "to_");
  const auto shared_extent = [&](uint64_t first, uint64_t second) {
    const uint64_t one = std::lcm(first, second);
    return std::min<uint64_t>(draw_extent(d, 30), 900) / one * one;
  };
  const uint64_t rows = shared_extent(from_blocks.rows, to_blocks.rows),
                 columns = shared_extent(from_blocks.columns, to_blocks.columns);
  const uint64_t nnz = d.extent(d.shape.one_in(8) ? 0 : d.shape.between(1, 200), 0, 200);
  const uint64_t capacity = d.extent(d.shape.one_in(4) ? d.shape.below(20) : nnz + d.shape.below(9), 0, 300);
  d.set("dtype", dtype), d.set("index_type", index_type), d.set("from_format", from), d.set("to_format", to);
  d.set("rows", rows), d.set("columns", columns), d.set("nnz", nnz), d.set("capacity", capacity);
  const Stored dense_from = draw_dense(d, "from_ld", rows, columns, 1, padded && from_dense, false);
  const Stored dense_to = draw_dense(d, "to_ld", rows, columns, 1, padded && to_dense, false);
  // Offsets, or indices of `extent`.
  const auto numbers = [&](const char* name, int32_t lines, uint64_t extent) {
    const bool offsets = from == lines || (from == TUFF_SPARSE_BSR && lines == TUFF_SPARSE_CSR);
    Operand& operand = d.input(name, index_type, offsets ? extent + 1 : nnz, offsets ? Fill::offsets : Fill::indices,
                               static_cast<double>(offsets ? nnz : extent));
    operand.keep_values = offsets;
  };
  if (!from_dense) {
    numbers("from_rows", TUFF_SPARSE_CSR, rows / from_blocks.rows);
    numbers("from_columns", TUFF_SPARSE_CSC, columns / from_blocks.columns);
  }
  d.input("from_values", dtype, from_dense ? footprint(dense_from.axes(1)) : nnz * from_blocks.elements(),
          Fill::integers, 2);
  if (!to_dense) {
    const bool by_rows = to == TUFF_SPARSE_CSR || to == TUFF_SPARSE_BSR;
    d.output("to_rows", index_type, by_rows ? rows / to_blocks.rows + 1 : capacity);
    d.output("to_columns", index_type, to == TUFF_SPARSE_CSC ? columns + 1 : capacity);
  }
  Operand& values =
      d.output("to_values", dtype, to_dense ? footprint(dense_to.axes(1)) : capacity * to_blocks.elements());
  if (to_dense) values.axes = dense_to.axes(1);
  if (d.free.one_in(2)) d.output("count", TUFF_I64, 1);
  d.suits = [&d, from, nnz] {
    const Seen& seen = d.of("from_values").seen;
    if ((from == TUFF_SPARSE_CSR || from == TUFF_SPARSE_BSR) && !ascends(d.of("from_rows"))) return false;
    if (from == TUFF_SPARSE_CSC && !ascends(d.of("from_columns"))) return false;
    return seen.integral && seen.most * static_cast<double>(std::max<uint64_t>(nnz, 1)) < kExact;
  };
}

void draw_sddmm(Draft& d) {
  const int32_t dtype = draw_type(d), index_type = draw_index(d);
  const bool csr = d.shape.one_in(2), transposed = d.shape.one_in(2), padded = d.shape.one_in(2);
  const uint64_t rows = std::min<uint64_t>(draw_extent(d, 40), 900),
                 columns = std::min<uint64_t>(draw_extent(d, 40), 900);
  const uint64_t nnz = d.extent(d.shape.one_in(8) ? 0 : d.shape.between(1, 200), 0, 200);
  const uint64_t k = std::min<uint64_t>(draw_extent(d, 20), 300);
  const uint64_t batch = d.shape.one_in(2) ? 1 : d.extent(d.shape.one_in(12) ? 0 : d.shape.between(1, 4), 0, 4);
  const double alpha = d.shape.of({1.0, 1.0, -2.0, 0.0}), beta = d.shape.of({0.0, 0.0, 1.0, -1.0});
  d.set("dtype", dtype), d.set("index_type", index_type);
  d.set("place_format", csr ? TUFF_SPARSE_CSR : TUFF_SPARSE_COO);
  d.set("transpose", transposed ? d.shape.of<int32_t>({TUFF_TRANS, TUFF_CONJ_TRANS}) : int32_t{TUFF_NO_TRANS});
  d.set("rows", rows), d.set("columns", columns), d.set("nnz", nnz), d.set("k", k), d.set("batch_count", batch);
  d.real("alpha", alpha), d.real("beta", beta);
  const Stored a = draw_dense(d, "lda", rows, k, batch, padded, d.shape.one_in(3));
  const Stored b = transposed ? draw_dense(d, "ldb", columns, k, batch, padded, d.shape.one_in(3))
                              : draw_dense(d, "ldb", k, columns, batch, padded, d.shape.one_in(3));
  const bool scaled = d.shape.one_in(2);
  const uint64_t stride_scales = batch > 1 && d.shape.one_in(2) ? nnz + (padded ? d.loose().below(6) : 0) : 0;
  const uint64_t stride_values = batch > 1 ? nnz + (padded ? d.loose().below(6) : 0) : 0;
  d.set("stride_a", a.stride), d.set("stride_b", b.stride);
  d.set("stride_scales", stride_scales), d.set("stride_values", stride_values);
  const bool writes = nnz != 0 && batch != 0;
  if (writes) {
    Operand& places = d.input("place_rows", index_type, csr ? rows + 1 : nnz, csr ? Fill::offsets : Fill::indices,
                              static_cast<double>(csr ? nnz : rows));
    places.keep_values = csr;
    d.input("place_columns", index_type, nnz, Fill::indices, static_cast<double>(columns));
    d.input("a", dtype, footprint(a.axes(batch)), Fill::integers, 3);
    d.input("b", dtype, footprint(b.axes(batch)), Fill::integers, 3);
    if (scaled) d.input("scales", dtype, (batch - 1) * stride_scales + nnz, Fill::integers, 3);
  }
  Operand& output = d.output("values", dtype, writes ? (batch - 1) * stride_values + nnz : 0);
  output.axes = {{batch, stride_values}, {nnz, 1}};
  if (beta != 0 || csr) output.read = true;  // in CSR, values of no row stay as they are
  d.suits = [&d, writes, csr, scaled, beta, k] {
    const Seen& old = d.of("values").seen;
    if (beta != 0 && !(old.integral && old.most < 64)) return false;
    if (!writes) return true;
    if (csr && !ascends(d.of("place_rows"))) return false;
    const Seen &left = d.of("a").seen, &right = d.of("b").seen;
    if (!left.integral || !right.integral || (scaled && !d.of("scales").seen.integral)) return false;
    const double scale = scaled ? d.of("scales").seen.most : 1;
    return 2 * static_cast<double>(k) * left.most * right.most * std::max(scale, 1.0) + 64 < kExact;
  };
}

void draw_spgemm(Draft& d) {
  const int32_t dtype = draw_type(d), index_type = draw_index(d);
  const auto extent = [&] { return std::min<uint64_t>(draw_extent(d, 30), 900); };
  const auto entries = [&] { return d.extent(d.shape.one_in(8) ? 0 : d.shape.between(1, 120), 0, 120); };
  const uint64_t rows = extent(), inner = extent(), columns = extent(), a_nnz = entries(), b_nnz = entries();
  // Usually enough; each entry of A meets all of B in one row at most.
  const uint64_t most = std::min<uint64_t>(a_nnz * b_nnz, 3000);
  const uint64_t max_terms = d.extent(d.shape.one_in(6) ? 0 : d.shape.one_in(4) ? d.shape.below(40) : most, 0, 3000);
  const uint64_t capacity = d.extent(d.shape.one_in(4) ? d.shape.below(20) : most / 2 + d.shape.below(9), 0, 1500);
  d.set("dtype", dtype), d.set("index_type", index_type), d.set("rows", rows), d.set("inner", inner);
  d.set("columns", columns), d.set("a_nnz", a_nnz), d.set("b_nnz", b_nnz), d.set("max_terms", max_terms);
  d.set("capacity", capacity);
  const auto offsets = [&](const char* name, uint64_t lines, uint64_t nnz) {
    d.input(name, index_type, nnz == 0 ? 0 : lines + 1, Fill::offsets, static_cast<double>(nnz)).keep_values = true;
  };
  offsets("a_offsets", rows, a_nnz), offsets("b_offsets", inner, b_nnz);
  d.input("a_indices", index_type, a_nnz, Fill::indices, static_cast<double>(inner));
  d.input("b_indices", index_type, b_nnz, Fill::indices, static_cast<double>(columns));
  d.input("a_values", dtype, a_nnz, Fill::integers, 3), d.input("b_values", dtype, b_nnz, Fill::integers, 3);
  d.output("c_offsets", index_type, rows + 1), d.output("c_indices", index_type, capacity);
  d.output("c_values", dtype, capacity);
  if (d.free.one_in(2)) d.output("count", TUFF_I64, 1);
  if (d.free.one_in(2)) d.output("terms", TUFF_I64, 1);
  d.suits = [&d, a_nnz, b_nnz] {
    const Seen &a = d.of("a_values").seen, &b = d.of("b_values").seen;
    return ascends(d.of("a_offsets")) && ascends(d.of("b_offsets")) && a.integral && b.integral &&
           a.most * b.most * static_cast<double>(std::max<uint64_t>(a_nnz * b_nnz, 1)) < kExact;
  };
}

// A system whose solution is one of integers: the diagonal is ones. With another one only levels are wanted.
void draw_sparse_triangular_solve(Draft& d) {
  const int32_t dtype = d.shape.of<int32_t>({TUFF_F32, TUFF_F32, TUFF_F64}), index_type = draw_index(d);
  const bool upper = d.shape.one_in(2), unit = !d.shape.one_in(4), padded = d.shape.one_in(2);
  // Levels of any content are given only where nothing is left to do: tests/sparse_products_test.cpp has them
  // otherwise.
  const bool ready = d.shape.one_in(9);
  const int32_t transpose = static_cast<int32_t>(d.shape.below(3));
  const uint64_t rows = std::min<uint64_t>(draw_extent(d, 40), 900);
  const uint64_t nnz = d.extent(d.shape.one_in(6) ? 0 : d.shape.between(1, 90), 0, 90);
  const uint64_t n = !unit || ready ? 0 : d.shape.one_in(3) ? 1 : std::min<uint64_t>(draw_extent(d, 9), 300);
  const double alpha = d.shape.of({1.0, 1.0, -2.0, 0.0});
  d.set("dtype", dtype), d.set("index_type", index_type), d.set("transpose", transpose);
  d.set("triangle", upper ? TUFF_TRIANGLE_UPPER : TUFF_TRIANGLE_LOWER), d.set("unit_diagonal", unit ? 1 : 0);
  d.set("rows", rows), d.set("nnz", nnz), d.set("n", n), d.set("levels_ready", ready ? 1 : 0);
  d.real("alpha", alpha);
  const Stored b = draw_dense(d, "ldb", rows, n, 1, padded, false), x = draw_dense(d, "ldx", rows, n, 1, padded, false);
  const bool reads = rows != 0 && nnz != 0;
  d.input("offsets", index_type, reads ? rows + 1 : 0, Fill::offsets, static_cast<double>(nnz)).keep_values = true;
  d.input("indices", index_type, reads ? nnz : 0, Fill::indices, static_cast<double>(rows)).keep_values = true;
  d.input("values", dtype, reads && n != 0 ? nnz : 0, Fill::integers, 2).keep_values = true;
  d.input("b", dtype, footprint(b.axes(1)), Fill::integers, 3);
  d.output("x", dtype, footprint(x.axes(1))).axes = x.axes(1);
  if (ready) {
    d.input("levels", TUFF_I32, rows == 0 ? 0 : 2 * rows + 1, Fill::anything);
  } else if (rows != 0 && d.free.one_in(2)) {
    d.output("levels", TUFF_I32, 2 * rows + 1);
  }
  d.suits = [&d, rows, nnz, n, alpha, forward = upper == (transpose != TUFF_NO_TRANS), transpose] {
    const Operand &offsets = d.of("offsets"), &indices = d.of("indices"), &values = d.of("values");
    if (!ascends(offsets)) return false;
    if (rows == 0 || n == 0) return true;
    const Seen &right = d.of("b").seen, &factors = d.of("values").seen;
    if (!right.integral || !factors.integral) return false;
    // The largest that each row can become, by the sizes of all entries, whichever triangle they are in.
    std::vector<double> most(rows, std::abs(alpha) * right.most);
    std::vector<std::vector<std::pair<uint64_t, double>>> refers(rows);
    for (uint64_t i = 0; i < rows && nnz != 0; ++i) {
      for (auto e = static_cast<uint64_t>(std::clamp(offsets.values[i], 0.0, static_cast<double>(nnz)));
           e < static_cast<uint64_t>(std::clamp(offsets.values[i + 1], 0.0, static_cast<double>(nnz))); ++e) {
        const double index = indices.values[e];
        if (!(index >= 0 && index < static_cast<double>(rows))) continue;
        const auto j = static_cast<uint64_t>(index);
        const uint64_t row = transpose != TUFF_NO_TRANS ? j : i, column = transpose != TUFF_NO_TRANS ? i : j;
        if (forward ? column < row : column > row) refers[row].push_back({column, std::abs(values.values[e])});
      }
    }
    for (uint64_t place = 0; place < rows; ++place) {
      const uint64_t row = forward ? place : rows - 1 - place;
      for (const auto& [column, size] : refers[row]) most[row] += size * most[column];
      if (!(most[row] < kExact)) return false;
    }
    return true;
  };
}

constexpr Description kSparse[] = {
    {"tuff_spmm", "sparse", draw_spmm},
    {"tuff_sparse_convert", "sparse", draw_sparse_convert},
    {"tuff_sddmm", "sparse", draw_sddmm},
    {"tuff_spgemm", "sparse", draw_spgemm},
    {"tuff_sparse_triangular_solve", "sparse", draw_sparse_triangular_solve},
};

}  // namespace

std::span<const Description> describe_sparse() { return kSparse; }

}  // namespace tuff_fuzz
