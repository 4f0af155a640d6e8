// Sparse matrices. Values are integers whose sums every type's arithmetic holds exactly, so that devices and the host
// agree to the bit. Offsets ascend, as they must; indices may be out of range.
#include <algorithm>
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

void draw_spmm(Draft& d) {
  const int32_t dtype = draw_type(d), index_type = draw_index(d);
  const bool transposed = d.shape.one_in(3), right = d.shape.one_in(3), padded = d.shape.one_in(2);
  const uint64_t rows = draw_extent(d, 40), columns = draw_extent(d, 40);
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
  const uint64_t stride_values = batch > 1 && d.shape.one_in(2) ? nnz + (padded ? d.loose().below(6) : 0) : 0;
  d.set("stride_values", stride_values), d.set("stride_b", b.stride), d.set("stride_c", c.stride);
  const uint64_t results = footprint(c.axes(batch));
  const bool reads = results != 0 && nnz != 0;
  Operand& offsets = d.input("offsets", index_type, reads ? rows + 1 : 0, Fill::offsets, static_cast<double>(nnz));
  offsets.keep_values = true;
  d.input("indices", index_type, reads ? nnz : 0, Fill::indices, static_cast<double>(columns));
  d.input("values", dtype, reads ? (batch - 1) * stride_values + nnz : 0);
  d.input("b", dtype, reads ? footprint(b.axes(batch)) : 0);
  Operand& output = d.output("c", dtype, results);
  output.axes = c.axes(batch);
  if (beta != 0) output.read = true;
  d.suits = [&d, reads, beta, nnz] {
    const Seen& old = d.of("c").seen;
    if (beta != 0 && !(old.integral && old.most < 64)) return false;
    if (!reads) return true;
    const Seen &a = d.of("values").seen, &x = d.of("b").seen;
    return ascends(d.of("offsets")) && a.integral && x.integral &&
           2 * static_cast<double>(nnz) * a.most * x.most + 64 < kExact;
  };
}

void draw_sparse_convert(Draft& d) {
  const int32_t dtype = draw_type(d), index_type = draw_index(d);
  const auto format = [&] { return static_cast<int32_t>(d.shape.between(TUFF_SPARSE_COO, TUFF_SPARSE_DENSE)); };
  const int32_t from = format(), to = format();
  const bool from_dense = from == TUFF_SPARSE_DENSE, to_dense = to == TUFF_SPARSE_DENSE, padded = d.shape.one_in(2);
  const uint64_t rows = std::min<uint64_t>(draw_extent(d, 30), 900),
                 columns = std::min<uint64_t>(draw_extent(d, 30), 900);
  const uint64_t nnz = d.extent(d.shape.one_in(8) ? 0 : d.shape.between(1, 200), 0, 200);
  const uint64_t capacity = d.extent(d.shape.one_in(4) ? d.shape.below(20) : nnz + d.shape.below(9), 0, 300);
  d.set("dtype", dtype), d.set("index_type", index_type), d.set("from_format", from), d.set("to_format", to);
  d.set("rows", rows), d.set("columns", columns), d.set("nnz", nnz), d.set("capacity", capacity);
  const Stored dense_from = draw_dense(d, "from_ld", rows, columns, 1, padded && from_dense, false);
  const Stored dense_to = draw_dense(d, "to_ld", rows, columns, 1, padded && to_dense, false);
  // Offsets, or indices of `extent`.
  const auto numbers = [&](const char* name, int32_t lines, uint64_t extent) {
    const bool offsets = from == lines;
    Operand& operand = d.input(name, index_type, offsets ? extent + 1 : nnz, offsets ? Fill::offsets : Fill::indices,
                               static_cast<double>(offsets ? nnz : extent));
    operand.keep_values = offsets;
  };
  if (!from_dense) numbers("from_rows", TUFF_SPARSE_CSR, rows), numbers("from_columns", TUFF_SPARSE_CSC, columns);
  d.input("from_values", dtype, from_dense ? footprint(dense_from.axes(1)) : nnz, Fill::integers, 2);
  if (!to_dense) {
    d.output("to_rows", index_type, to == TUFF_SPARSE_CSR ? rows + 1 : capacity);
    d.output("to_columns", index_type, to == TUFF_SPARSE_CSC ? columns + 1 : capacity);
  }
  Operand& values = d.output("to_values", dtype, to_dense ? footprint(dense_to.axes(1)) : capacity);
  if (to_dense) values.axes = dense_to.axes(1);
  if (d.free.one_in(2)) d.output("count", TUFF_I64, 1);
  d.suits = [&d, from, nnz] {
    const Seen& seen = d.of("from_values").seen;
    if (from == TUFF_SPARSE_CSR && !ascends(d.of("from_rows"))) return false;
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

constexpr Description kSparse[] = {
    {"tuff_spmm", "sparse", draw_spmm},
    {"tuff_sparse_convert", "sparse", draw_sparse_convert},
    {"tuff_sddmm", "sparse", draw_sddmm},
};

}  // namespace

std::span<const Description> describe_sparse() { return kSparse; }

}  // namespace tuff_fuzz
