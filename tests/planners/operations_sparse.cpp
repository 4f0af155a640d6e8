// Draws the arguments of the operations of sparse matrices.
#include <algorithm>
#include <numeric>

#include "kernels/sparse/sparse.hpp"
#include "planners/draw.hpp"

namespace tuff_test {
namespace {

using tuff::dtype_size;

constexpr uint64_t kMax32 = (uint64_t{1} << 31) - 1;

// Sizes that indices of the type can name.
uint64_t draw_numbered(Call& call, int32_t index_type) {
  return index_type == TUFF_I32 ? std::min(call.size(), kMax32) : call.size();
}

// The elements that so many rows, or parts of a batch, reach over, which begin at multiples of a stride.
uint64_t span(uint64_t count, uint64_t one, uint64_t stride) {
  return count == 0 || one == 0 ? 0 : plus(times(count - 1, stride), one);
}

const tuff::Buffer* read_partly(Call& call, const char* name, uint64_t elements, uint64_t element, bool partly) {
  const tuff::Buffer* const buffer = call.input(name, elements, element);
  if (partly) call.read_partly(buffer);
  return buffer;
}

}  // namespace

// Blocks of BSR, and sizes that they divide.
tuff::sparse::Blocks draw_blocks(Call& call, bool is) {
  if (!is) return {};
  Numbers& n = call.numbers;
  const auto extent = [&] { return n.coin(4) ? n.below(1'100) + 1 : n.below(9) + 1; };
  const tuff::sparse::Blocks blocks{extent(), extent(), static_cast<int32_t>(n.below(2))};
  call.tell("block_rows", blocks.rows), call.tell("block_columns", blocks.columns);
  call.tell("block_order", blocks.order);
  return blocks;
}
uint64_t divided(uint64_t size, uint64_t block) { return size - size % block; }

void draw_spmm(Call& call) {
  Numbers& n = call.numbers;
  tuff::SpmmArgs& args = call.keep(tuff::SpmmArgs{});
  args.dtype = call.type_of(tuff::sparse::kTypes), args.index_type = n.one_of<int32_t>({TUFF_I32, TUFF_I64});
  args.transpose = static_cast<int32_t>(n.below(3)), args.side = static_cast<int32_t>(n.below(2));
  args.rows = call.size(), args.columns = draw_numbered(call, args.index_type);
  args.nnz = n.coin(8) ? 0 : draw_numbered(call, args.index_type);
  args.blocks = draw_blocks(call, n.coin(3));
  args.rows = divided(args.rows, args.blocks.rows), args.columns = divided(args.columns, args.blocks.columns);
  args.n = n.coin(3) ? 1 : call.size(), args.batch_count = n.coin() ? 1 : call.size();
  args.alpha = n.coin(6) ? 0 : 1.5, args.beta = n.coin() ? 0 : -1;
  call.tell("dtype", args.dtype), call.tell("index_type", args.index_type), call.tell("transpose", args.transpose);
  call.tell("side", args.side), call.tell("rows", args.rows), call.tell("columns", args.columns);
  call.tell("nnz", args.nnz), call.tell("n", args.n), call.tell("batch", args.batch_count);
  call.tell("alpha", args.alpha), call.tell("beta", args.beta);
  const bool padded = n.coin(3);
  const auto leading = [&](uint64_t columns) { return plus(columns, padded ? n.below(20) : 0); };
  args.ldb = leading(args.on_right() ? args.op_rows() : args.n);
  args.ldc = leading(args.on_right() ? args.op_columns() : args.n);
  const uint64_t one_b =
      args.on_right() ? span(args.n, args.op_rows(), args.ldb) : span(args.op_columns(), args.n, args.ldb);
  const uint64_t one_c =
      args.on_right() ? span(args.n, args.op_columns(), args.ldc) : span(args.op_rows(), args.n, args.ldc);
  const uint64_t elements = times(args.nnz, args.blocks.elements());
  args.stride_b = n.coin(3) ? 0 : one_b, args.stride_values = n.coin() ? 0 : elements;
  args.stride_c = plus(one_c, padded ? n.below(30) : 0);
  const auto all = [&](uint64_t one, uint64_t stride) { return span(args.batch_count, one, stride); };
  const uint64_t results = all(one_c, args.stride_c);
  const bool reads = results != 0 && args.nnz != 0;
  // Nothing is added where alpha is 0, or a sum has no terms.
  const bool unused = args.alpha == 0 || args.rows == 0 || args.columns == 0;
  const uint64_t index = dtype_size(args.index_type), size = dtype_size(args.dtype);
  args.offsets = read_partly(call, "offsets", reads ? plus(args.block_rows(), 1) : 0, index, unused);
  args.indices = read_partly(call, "indices", reads ? args.nnz : 0, index, unused);
  args.values = read_partly(call, "values", reads ? all(elements, args.stride_values) : 0, size, unused);
  args.b = read_partly(call, "b", reads ? all(one_b, args.stride_b) : 0, size, unused);
  args.c = call.output("c", results, size);
  set(call, tuff::operations::spmm, args);
}

void draw_sparse_convert(Call& call) {
  Numbers& n = call.numbers;
  tuff::SparseConvertArgs& args = call.keep(tuff::SparseConvertArgs{});
  args.dtype = call.type_of(tuff::sparse::kTypes), args.index_type = n.one_of<int32_t>({TUFF_I32, TUFF_I64});
  args.from_format = static_cast<int32_t>(n.below(5)), args.to_format = static_cast<int32_t>(n.below(5));
  const bool from_dense = args.from_format == TUFF_SPARSE_DENSE, to_dense = args.to_format == TUFF_SPARSE_DENSE;
  args.rows = draw_numbered(call, args.index_type), args.columns = draw_numbered(call, args.index_type);
  if (from_dense && args.index_type == TUFF_I32 && times(args.rows, args.columns) > kMax32) {
    args.columns = kMax32 / args.rows;
  }
  args.nnz = n.coin(8) ? 0 : draw_numbered(call, args.index_type);
  args.capacity = n.coin(8) ? 0 : draw_numbered(call, args.index_type);
  args.from_blocks = draw_blocks(call, args.from_format == TUFF_SPARSE_BSR);
  args.to_blocks = draw_blocks(call, args.to_format == TUFF_SPARSE_BSR);
  args.rows = divided(args.rows, std::lcm(args.from_blocks.rows, args.to_blocks.rows));
  args.columns = divided(args.columns, std::lcm(args.from_blocks.columns, args.to_blocks.columns));
  if (args.index_type == TUFF_I32) args.nnz = std::min(args.nnz, kMax32 / args.from_blocks.elements());
  // Entries are in scratch memory, whatever the operands' sizes are.
  if (args.from_format == TUFF_SPARSE_BSR && args.nnz <= kMax32) {
    args.nnz = std::min(args.nnz, (uint64_t{1} << 25) / args.from_blocks.elements());
  }
  args.from_ld = plus(args.columns, n.coin(3) ? n.below(20) : 0);
  args.to_ld = plus(args.columns, n.coin(3) ? n.below(20) : 0);
  call.tell("dtype", args.dtype), call.tell("index_type", args.index_type), call.tell("from", args.from_format);
  call.tell("to", args.to_format), call.tell("rows", args.rows), call.tell("columns", args.columns);
  call.tell("nnz", args.nnz), call.tell("capacity", args.capacity);
  const uint64_t index = dtype_size(args.index_type), size = dtype_size(args.dtype);
  // A matrix without rows or columns has no entries that are read; nor are values if none of the result is wanted.
  const uint64_t entries =
      from_dense ? span(args.rows, args.columns, args.from_ld) : times(args.nnz, args.from_blocks.elements());
  const bool nothing = args.rows == 0 || args.columns == 0;
  const bool no_result = !to_dense && args.capacity == 0;
  const auto input = [&](const char* name, int32_t lines, uint64_t extent) -> const tuff::Buffer* {
    if (from_dense) return nullptr;
    const bool offsets = args.from_format == lines || (args.from_format == TUFF_SPARSE_BSR && lines == TUFF_SPARSE_CSR);
    return read_partly(call, name, offsets ? plus(extent, 1) : args.nnz, index, nothing || args.nnz == 0);
  };
  args.from_rows = input("from_rows", TUFF_SPARSE_CSR, args.rows / args.from_blocks.rows);
  args.from_columns = input("from_columns", TUFF_SPARSE_CSC, args.columns);
  args.from_values = read_partly(call, "from_values", entries, size, nothing || no_result);
  const auto output = [&](const char* name, int32_t lines, uint64_t extent) -> const tuff::Buffer* {
    if (to_dense) return nullptr;
    const bool offsets = args.to_format == lines || (args.to_format == TUFF_SPARSE_BSR && lines == TUFF_SPARSE_CSR);
    return call.output(name, offsets ? plus(extent, 1) : args.capacity, index);
  };
  args.to_rows = output("to_rows", TUFF_SPARSE_CSR, args.rows / args.to_blocks.rows);
  args.to_columns = output("to_columns", TUFF_SPARSE_CSC, args.columns);
  args.to_values = call.output(
      "to_values",
      to_dense ? span(args.rows, args.columns, args.to_ld) : times(args.capacity, args.to_blocks.elements()), size);
  if (n.coin()) args.count = call.output("count", 1, 8);
  set(call, tuff::operations::sparse_convert, args);
}

void draw_sddmm(Call& call) {
  Numbers& n = call.numbers;
  tuff::SddmmArgs& args = call.keep(tuff::SddmmArgs{});
  args.dtype = call.type_of(tuff::sparse::kTypes), args.index_type = n.one_of<int32_t>({TUFF_I32, TUFF_I64});
  args.format = n.coin() ? TUFF_SPARSE_COO : TUFF_SPARSE_CSR, args.transpose = static_cast<int32_t>(n.below(3));
  args.rows = draw_numbered(call, args.index_type), args.columns = draw_numbered(call, args.index_type);
  args.nnz = n.coin(8) ? 0 : draw_numbered(call, args.index_type);
  args.k = n.coin(8) ? 0 : call.size(), args.batch_count = n.coin() ? 1 : call.size();
  args.alpha = n.coin(6) ? 0 : 1.5, args.beta = n.coin() ? 0 : -1;
  call.tell("dtype", args.dtype), call.tell("index_type", args.index_type), call.tell("format", args.format);
  call.tell("transpose", args.transpose), call.tell("rows", args.rows), call.tell("columns", args.columns);
  call.tell("nnz", args.nnz), call.tell("k", args.k), call.tell("batch", args.batch_count);
  call.tell("alpha", args.alpha), call.tell("beta", args.beta);
  const bool padded = n.coin(3);
  args.lda = plus(args.k, padded ? n.below(20) : 0);
  args.ldb = plus(args.transposed() ? args.k : args.columns, padded ? n.below(20) : 0);
  const uint64_t one_a = span(args.rows, args.k, args.lda);
  const uint64_t one_b =
      args.transposed() ? span(args.columns, args.k, args.ldb) : span(args.k, args.columns, args.ldb);
  args.stride_a = n.coin(3) ? 0 : one_a, args.stride_b = n.coin(3) ? 0 : one_b;
  args.stride_scales = n.coin() ? 0 : args.nnz, args.stride_values = plus(args.nnz, padded ? n.below(30) : 0);
  const auto all = [&](uint64_t one, uint64_t stride) { return span(args.batch_count, one, stride); };
  const uint64_t results = all(args.nnz, args.stride_values);
  const bool writes = results != 0, unused = !args.reads();
  const uint64_t index = dtype_size(args.index_type), size = dtype_size(args.dtype);
  const uint64_t places = args.offsets() ? plus(args.rows, 1) : args.nnz;
  args.place_rows =
      read_partly(call, "place_rows", writes ? places : 0, index, args.offsets() ? args.rows == 0 : unused);
  args.place_columns = read_partly(call, "place_columns", writes ? args.nnz : 0, index, unused);
  args.a = read_partly(call, "a", writes ? all(one_a, args.stride_a) : 0, size, unused);
  args.b = read_partly(call, "b", writes ? all(one_b, args.stride_b) : 0, size, unused);
  if (n.coin()) {
    args.scales = read_partly(call, "scales", writes ? all(args.nnz, args.stride_scales) : 0, size, unused);
  }
  // By offsets, values of no row stay as they are, and without rows all do.
  args.values = call.output("values", results, size, !args.offsets() || args.rows != 0);
  set(call, tuff::operations::sddmm, args);
}

void draw_spgemm(Call& call) {
  Numbers& n = call.numbers;
  tuff::SpgemmArgs& args = call.keep(tuff::SpgemmArgs{});
  args.dtype = call.type_of(tuff::sparse::kTypes), args.index_type = n.one_of<int32_t>({TUFF_I32, TUFF_I64});
  const auto size = [&](uint64_t none) { return n.coin(none) ? 0 : draw_numbered(call, args.index_type); };
  args.rows = size(16), args.inner = size(16), args.columns = size(16), args.a_nnz = size(8), args.b_nnz = size(8);
  args.max_terms = size(5), args.capacity = size(6);
  // Terms are in scratch memory, whatever the operands' sizes are.
  if (args.max_terms <= kMax32) args.max_terms = std::min(args.max_terms, uint64_t{1} << 25);
  call.tell("dtype", args.dtype), call.tell("index_type", args.index_type), call.tell("rows", args.rows);
  call.tell("inner", args.inner), call.tell("columns", args.columns), call.tell("a_nnz", args.a_nnz);
  call.tell("b_nnz", args.b_nnz), call.tell("max_terms", args.max_terms), call.tell("capacity", args.capacity);
  const uint64_t index = dtype_size(args.index_type), element = dtype_size(args.dtype);
  const bool counts = n.coin(), tells = n.coin();
  // Places are read to count terms, and values to multiply them; neither if there is nothing to do.
  const bool no_places = !args.multiplies() || (args.max_terms == 0 && !tells);
  const bool no_values = no_places || args.max_terms == 0;
  args.a_offsets = read_partly(call, "a_offsets", args.a_nnz == 0 ? 0 : plus(args.rows, 1), index, no_places);
  args.a_indices = read_partly(call, "a_indices", args.a_nnz, index, no_places);
  args.a_values = read_partly(call, "a_values", args.a_nnz, element, no_values);
  args.b_offsets = read_partly(call, "b_offsets", args.b_nnz == 0 ? 0 : plus(args.inner, 1), index, no_places);
  args.b_indices = read_partly(call, "b_indices", args.b_nnz, index, no_places);
  args.b_values = read_partly(call, "b_values", args.b_nnz, element, no_values);
  args.c_offsets = call.output("c_offsets", plus(args.rows, 1), index);
  args.c_indices = call.output("c_indices", args.capacity, index);
  args.c_values = call.output("c_values", args.capacity, element);
  if (counts) args.count = call.output("count", 1, 8);
  if (tells) args.terms = call.output("terms", 1, 8);
  set(call, tuff::operations::spgemm, args);
}

void draw_sparse_triangular_solve(Call& call) {
  Numbers& n = call.numbers;
  tuff::SparseTriangularSolveArgs& args = call.keep(tuff::SparseTriangularSolveArgs{});
  args.dtype = call.type_of(tuff::sparse::kTypes), args.index_type = n.one_of<int32_t>({TUFF_I32, TUFF_I64});
  args.triangle = static_cast<int32_t>(n.below(2)), args.transpose = static_cast<int32_t>(n.below(3));
  args.unit_diagonal = n.coin(), args.levels_ready = n.coin();
  args.rows = std::min(draw_numbered(call, args.index_type), kMax32);
  args.nnz = n.coin(8) ? 0 : draw_numbered(call, args.index_type);
  args.n = n.coin(8) ? 0 : n.coin(3) ? 1 : call.size();
  args.alpha = n.coin(6) ? 0 : 1.5;
  const bool padded = n.coin(3);
  args.ldb = plus(args.n, padded ? n.below(20) : 0), args.ldx = plus(args.n, padded ? n.below(20) : 0);
  call.tell("dtype", args.dtype), call.tell("index_type", args.index_type), call.tell("triangle", args.triangle);
  call.tell("transpose", args.transpose), call.tell("levels_ready", args.levels_ready), call.tell("rows", args.rows);
  call.tell("nnz", args.nnz), call.tell("n", args.n);
  const uint64_t index = dtype_size(args.index_type), size = dtype_size(args.dtype);
  const bool some = args.rows != 0, reads = some && args.nnz != 0, has_levels = some && (args.levels_ready || n.coin());
  const bool nothing = args.n == 0 && (args.levels_ready || !has_levels);
  args.offsets = read_partly(call, "offsets", reads ? plus(args.rows, 1) : 0, index, nothing);
  args.indices = read_partly(call, "indices", reads ? args.nnz : 0, index, nothing);
  args.values = read_partly(call, "values", reads && args.n != 0 ? args.nnz : 0, size, nothing);
  if (has_levels) {
    const uint64_t numbers = plus(times(args.rows, 2), 1);
    args.levels =
        args.levels_ready ? read_partly(call, "levels", numbers, 4, nothing) : call.output("levels", numbers, 4);
  }
  args.b = call.input("b", span(args.rows, args.n, args.ldb), size);
  args.x = call.output("x", span(args.rows, args.n, args.ldx), size);
  set(call, tuff::operations::sparse_triangular_solve, args);
}

}  // namespace tuff_test
