// Argument checks of sparse matrices. What is in the buffers is not known here: host and device take indices and
// offsets as the header says.
#include <fmt/format.h>

#include <initializer_list>
#include <iterator>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/sparse/sparse.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxOffset = (uint64_t{1} << 31) - 1;  // of type i32

// An operand as far as the call uses it.
struct Used {
  const char* name;
  const Buffer* buffer;
  uint64_t bytes;
};

template <typename Detail>
Used use(const Buffer* buffer, const char* name, uint64_t elements, int32_t dtype, const Detail& detail) {
  const uint64_t bytes = checked_mul(elements, dtype_size(dtype), name);
  check_operand(buffer, name, elements, dtype, detail);
  return {name, elements == 0 ? nullptr : buffer, bytes};
}

void check_apart(const Used& output, std::initializer_list<Used> others) {
  for (const Used& other : others) {
    check_overlap(output.buffer, output.name, output.bytes, other.buffer, other.name, other.bytes, false);
  }
}

void check_types(int32_t dtype, int32_t index_type, const char* what) {
  check_known_type(dtype, "dtype");
  check_type(dtype, sparse::kTypes, what);
  check_known_type(index_type, "index_type");
  if (!sparse::kIndexTypes.has(index_type)) {
    fail(TUFF_ERROR_UNSUPPORTED, "index_type is {}, needs {}", dtype_name(index_type), names_of(sparse::kIndexTypes));
  }
}

// Numbers below `extent` are indices, and those up to nnz offsets.
void check_extent(uint64_t extent, const char* name, int32_t index_type, uint64_t most32 = uint64_t{1} << 31) {
  require(index_type != TUFF_I32 || extent <= most32, "index_type is i32, and {} is {}, at most {}", name, extent,
          most32);
}

// Elements of a dense matrix and a batch of them.
uint64_t footprint(const sparse::Dense& dense, uint64_t batch_count, const char* name) {
  if (dense.rows == 0 || dense.columns == 0 || batch_count == 0) return 0;
  const uint64_t one = checked_add(checked_mul(dense.rows - 1, dense.ld, name), dense.columns, name);
  return checked_add(checked_mul(batch_count - 1, dense.stride, name), one, name);
}

void check_ld(uint64_t ld, uint64_t columns, const char* name) {
  require(ld >= columns, "{} is {}, must be at least {}", name, ld, columns);
}

void check_format(int32_t format, const char* name) {
  require(format >= TUFF_SPARSE_COO && format <= TUFF_SPARSE_BSR, "{} is {}, needs a TUFF_SPARSE_*", name, format);
}

// `prefix` is that of the fields' names.
void check_blocks(const sparse::Blocks& blocks, uint64_t rows, uint64_t columns, const char* prefix) {
  require(blocks.order == TUFF_BLOCK_ORDER_ROW_MAJOR || blocks.order == TUFF_BLOCK_ORDER_COLUMN_MAJOR,
          "{}block_order is {}, needs a TUFF_BLOCK_ORDER_*", prefix, blocks.order);
  require(rows % blocks.rows == 0, "{}block_rows is {}, must divide rows, which is {}", prefix, blocks.rows, rows);
  require(columns % blocks.columns == 0, "{}block_columns is {}, must divide columns, which is {}", prefix,
          blocks.columns, columns);
}

}  // namespace

sparse::Dense sparse::dense_b(const SpmmArgs& args) {
  return args.on_right() ? Dense{args.n, args.op_rows(), args.ldb, args.stride_b}
                         : Dense{args.op_columns(), args.n, args.ldb, args.stride_b};
}
sparse::Dense sparse::dense_c(const SpmmArgs& args) {
  return args.on_right() ? Dense{args.n, args.op_columns(), args.ldc, args.stride_c}
                         : Dense{args.op_rows(), args.n, args.ldc, args.stride_c};
}

void check_spmm(const SpmmArgs& args) {
  check_types(args.dtype, args.index_type, "spmm");
  check_transpose(args.transpose, "transpose");
  require(args.side == TUFF_SIDE_LEFT || args.side == TUFF_SIDE_RIGHT, "side is {}, must be TUFF_SIDE_LEFT or _RIGHT",
          args.side);
  check_blocks(args.blocks, args.rows, args.columns, "");
  check_extent(args.block_columns(), args.blocks.columns == 1 ? "columns" : "columns / block_columns", args.index_type);
  check_extent(args.nnz, "nnz", args.index_type, kMaxOffset);
  const sparse::Dense b = sparse::dense_b(args), c = sparse::dense_c(args);
  check_ld(args.ldb, b.columns, "ldb");
  check_ld(args.ldc, c.columns, "ldc");
  const uint64_t results = footprint(c, args.batch_count, "c");
  if (results == 0) return;
  require(args.batch_count == 1 || args.stride_c >= c.one(), "stride_c is {}, must be at least {}", args.stride_c,
          c.one());
  const auto detail = [&] {
    return fmt::format("rows={} columns={} nnz={} blocks={}x{} n={} ldb={} ldc={} batch_count={}", args.rows,
                       args.columns, args.nnz, args.blocks.rows, args.blocks.columns, args.n, args.ldb, args.ldc,
                       args.batch_count);
  };
  const Used used_c = use(args.c, "c", results, args.dtype, detail);
  if (args.nnz == 0) return;
  const uint64_t offsets = checked_add(args.block_rows(), 1, "rows");
  const uint64_t values = checked_add(checked_mul(args.batch_count - 1, args.stride_values, "stride_values"),
                                      checked_mul(args.nnz, args.blocks.elements(), "nnz"), "stride_values");
  check_apart(used_c, {use(args.offsets, "offsets", offsets, args.index_type, detail),
                       use(args.indices, "indices", args.nnz, args.index_type, detail),
                       use(args.values, "values", values, args.dtype, detail),
                       use(args.b, "b", footprint(b, args.batch_count, "b"), args.dtype, detail)});
}

sparse::Dense sparse::dense_a(const SddmmArgs& args) { return {args.rows, args.k, args.lda, args.stride_a}; }
sparse::Dense sparse::dense_b(const SddmmArgs& args) {
  return args.transposed() ? Dense{args.columns, args.k, args.ldb, args.stride_b}
                           : Dense{args.k, args.columns, args.ldb, args.stride_b};
}

void check_sddmm(const SddmmArgs& args) {
  check_types(args.dtype, args.index_type, "sddmm");
  require(args.format == TUFF_SPARSE_COO || args.format == TUFF_SPARSE_CSR,
          "place_format is {}, needs TUFF_SPARSE_COO or TUFF_SPARSE_CSR", args.format);
  check_transpose(args.transpose, "transpose");
  if (!args.offsets()) check_extent(args.rows, "rows", args.index_type);
  check_extent(args.columns, "columns", args.index_type);
  check_extent(args.nnz, "nnz", args.index_type, kMaxOffset);
  const sparse::Dense a = sparse::dense_a(args), b = sparse::dense_b(args);
  check_ld(args.lda, a.columns, "lda");
  check_ld(args.ldb, b.columns, "ldb");
  if (args.nnz == 0 || args.batch_count == 0) return;
  require(args.batch_count == 1 || args.stride_values >= args.nnz, "stride_values is {}, must be at least {}",
          args.stride_values, args.nnz);
  const auto detail = [&] {
    return fmt::format("rows={} columns={} nnz={} k={} lda={} ldb={} batch_count={}", args.rows, args.columns, args.nnz,
                       args.k, args.lda, args.ldb, args.batch_count);
  };
  const auto list = [&](uint64_t stride, const char* name) {
    return checked_add(checked_mul(args.batch_count - 1, stride, name), args.nnz, name);
  };
  const Used values = use(args.values, "values", list(args.stride_values, "stride_values"), args.dtype, detail);
  const uint64_t places = args.offsets() ? checked_add(args.rows, 1, "rows") : args.nnz;
  check_apart(values, {use(args.place_rows, "place_rows", places, args.index_type, detail),
                       use(args.place_columns, "place_columns", args.nnz, args.index_type, detail),
                       use(args.a, "a", footprint(a, args.batch_count, "a"), args.dtype, detail),
                       use(args.b, "b", footprint(b, args.batch_count, "b"), args.dtype, detail)});
  if (args.scales == nullptr) return;
  const Used scales = use(args.scales, "scales", list(args.stride_scales, "stride_scales"), args.dtype, detail);
  const bool same = args.batch_count == 1 || args.stride_scales == args.stride_values;
  check_overlap(values.buffer, values.name, values.bytes, scales.buffer, scales.name, scales.bytes, same);
}

void check_sparse_convert(const SparseConvertArgs& args) {
  check_types(args.dtype, args.index_type, "sparse_convert");
  check_format(args.from_format, "from_format");
  check_format(args.to_format, "to_format");
  check_extent(args.rows, "rows", args.index_type);
  check_extent(args.columns, "columns", args.index_type);
  check_blocks(args.from_blocks, args.rows, args.columns, "from_");
  check_blocks(args.to_blocks, args.rows, args.columns, "to_");
  const bool from_dense = args.from_format == TUFF_SPARSE_DENSE, to_dense = args.to_format == TUFF_SPARSE_DENSE;
  const uint64_t most = from_dense ? checked_mul(args.rows, args.columns, "rows")
                                   : checked_mul(args.nnz, args.from_blocks.elements(), "nnz");
  const bool from_blocks = args.from_blocks.elements() != 1;
  check_extent(most,
               from_dense    ? "rows * columns"
               : from_blocks ? "nnz, in elements,"
                             : "nnz",
               args.index_type, kMaxOffset);
  if (!to_dense) check_extent(args.capacity, "capacity", args.index_type, kMaxOffset);
  const auto detail = [&] {
    return fmt::format("rows={} columns={} nnz={} capacity={}", args.rows, args.columns, args.nnz, args.capacity);
  };
  // The buffers of a matrix, by its format.
  const auto matrix = [&](int32_t format, const sparse::Blocks& blocks, const Buffer* rows, const Buffer* columns,
                          const Buffer* values, const char* const names[3], uint64_t entries, uint64_t ld,
                          const char* ld_name, Used used[3]) {
    const uint64_t all_rows = checked_add(args.rows / blocks.rows, 1, "rows"),
                   all_columns = checked_add(args.columns, 1, "columns");
    if (format == TUFF_SPARSE_DENSE) {
      check_ld(ld, args.columns, ld_name);
      require(rows == nullptr && columns == nullptr, "{} and {} must be TUFF_NULL_HANDLE for a dense matrix", names[0],
              names[1]);
      const uint64_t elements = footprint({args.rows, args.columns, ld, 0}, 1, names[2]);
      used[0] = {names[0], nullptr, 0}, used[1] = {names[1], nullptr, 0};
      used[2] = use(values, names[2], elements, args.dtype, detail);
      return;
    }
    const bool by_rows = format == TUFF_SPARSE_CSR || format == TUFF_SPARSE_BSR;
    used[0] = use(rows, names[0], by_rows ? all_rows : entries, args.index_type, detail);
    used[1] = use(columns, names[1], format == TUFF_SPARSE_CSC ? all_columns : entries, args.index_type, detail);
    used[2] = use(values, names[2], checked_mul(entries, blocks.elements(), names[2]), args.dtype, detail);
  };
  constexpr const char* kFrom[3] = {"from_rows", "from_columns", "from_values"};
  constexpr const char* kTo[3] = {"to_rows", "to_columns", "to_values"};
  Used from[3], to[3];
  matrix(args.from_format, args.from_blocks, args.from_rows, args.from_columns, args.from_values, kFrom, args.nnz,
         args.from_ld, "from_ld", from);
  matrix(args.to_format, args.to_blocks, args.to_rows, args.to_columns, args.to_values, kTo, args.capacity, args.to_ld,
         "to_ld", to);
  Used count{"count", nullptr, 0};
  if (args.count != nullptr) count = use(args.count, "count", 1, TUFF_I64, detail);
  check_apart(to[0], {from[0], from[1], from[2]});
  check_apart(to[1], {from[0], from[1], from[2], to[0]});
  check_apart(to[2], {from[0], from[1], from[2], to[0], to[1]});
  check_apart(count, {from[0], from[1], from[2], to[0], to[1], to[2]});
}

void check_spgemm(const SpgemmArgs& args) {
  check_types(args.dtype, args.index_type, "spgemm");
  check_extent(args.inner, "inner", args.index_type);
  check_extent(args.columns, "columns", args.index_type);
  check_extent(args.a_nnz, "a_nnz", args.index_type, kMaxOffset);
  check_extent(args.b_nnz, "b_nnz", args.index_type, kMaxOffset);
  check_extent(args.capacity, "capacity", args.index_type, kMaxOffset);
  // No more entries than terms, which offsets count.
  check_extent(args.max_terms, "max_terms", args.index_type, kMaxOffset);
  const auto detail = [&] {
    return fmt::format("rows={} inner={} columns={} a_nnz={} b_nnz={} max_terms={} capacity={}", args.rows, args.inner,
                       args.columns, args.a_nnz, args.b_nnz, args.max_terms, args.capacity);
  };
  const auto numbers = [&](const Buffer* buffer, const char* name, uint64_t elements) {
    return use(buffer, name, elements, args.index_type, detail);
  };
  const uint64_t rows = checked_add(args.rows, 1, "rows"), inner = checked_add(args.inner, 1, "inner");
  // The offsets of a matrix without entries are not read.
  const Used a[3] = {numbers(args.a_offsets, "a_offsets", args.a_nnz == 0 ? 0 : rows),
                     numbers(args.a_indices, "a_indices", args.a_nnz),
                     use(args.a_values, "a_values", args.a_nnz, args.dtype, detail)};
  const Used b[3] = {numbers(args.b_offsets, "b_offsets", args.b_nnz == 0 ? 0 : inner),
                     numbers(args.b_indices, "b_indices", args.b_nnz),
                     use(args.b_values, "b_values", args.b_nnz, args.dtype, detail)};
  Used results[5] = {numbers(args.c_offsets, "c_offsets", rows),
                     numbers(args.c_indices, "c_indices", args.capacity),
                     use(args.c_values, "c_values", args.capacity, args.dtype, detail),
                     {"count", nullptr, 0},
                     {"terms", nullptr, 0}};
  if (args.count != nullptr) results[3] = use(args.count, "count", 1, TUFF_I64, detail);
  if (args.terms != nullptr) results[4] = use(args.terms, "terms", 1, TUFF_I64, detail);
  for (size_t i = 0; i < std::size(results); ++i) {
    check_apart(results[i], {a[0], a[1], a[2], b[0], b[1], b[2]});
    for (size_t j = 0; j < i; ++j) check_apart(results[i], {results[j]});
  }
}

void check_sparse_triangular_solve(const SparseTriangularSolveArgs& args) {
  check_types(args.dtype, args.index_type, "sparse_triangular_solve");
  check_triangle(args.triangle);
  check_transpose(args.transpose, "transpose");
  check_extent(args.rows, "rows", args.index_type);
  check_extent(args.nnz, "nnz", args.index_type, kMaxOffset);
  check_ld(args.ldb, args.n, "ldb");
  check_ld(args.ldx, args.n, "ldx");
  require(!args.levels_ready || args.levels != nullptr || args.rows == 0,
          "levels_ready is 1 and levels is TUFF_NULL_HANDLE");
  if (args.levels != nullptr) {
    require(args.rows < uint64_t{1} << 31, "levels are i32, and rows is {}, at most 2^31 - 1", args.rows);
  }
  if (args.rows == 0) return;
  const auto detail = [&] {
    return fmt::format("rows={} nnz={} n={} ldb={} ldx={}", args.rows, args.nnz, args.n, args.ldb, args.ldx);
  };
  const bool reads = args.nnz != 0;
  const uint64_t offsets = checked_add(args.rows, 1, "rows");
  const Used a[3] = {use(args.offsets, "offsets", reads ? offsets : 0, args.index_type, detail),
                     use(args.indices, "indices", args.nnz, args.index_type, detail),
                     use(args.values, "values", args.n == 0 ? 0 : args.nnz, args.dtype, detail)};
  const Used b = use(args.b, "b", footprint({args.rows, args.n, args.ldb, 0}, 1, "b"), args.dtype, detail);
  const Used x = use(args.x, "x", footprint({args.rows, args.n, args.ldx, 0}, 1, "x"), args.dtype, detail);
  check_apart(x, {a[0], a[1], a[2]});
  check_overlap(x.buffer, x.name, x.bytes, b.buffer, b.name, b.bytes, args.ldb == args.ldx);
  if (args.levels == nullptr) return;
  const Used levels =
      use(args.levels, "levels", checked_add(checked_mul(args.rows, 2, "rows"), 1, "rows"), TUFF_I32, detail);
  check_apart(x, {levels});
  if (!args.levels_ready) check_apart(levels, {a[0], a[1], a[2], b});
}

}  // namespace tuff
