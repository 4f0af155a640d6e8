// Reference implementations of sparse matrices: entries one after another, in double precision.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "kernels/common/elements.hpp"
#include "kernels/common/last_writes.hpp"
#include "kernels/sparse/sparse.hpp"

namespace tuff {
namespace {

// Calls body(T{}) with the C++ type of the elements.
template <typename Body>
void with_type(int32_t dtype, const Body& body) {
  dtype == TUFF_F64 ? body(double{}) : with_float_type(dtype, body);
}

int64_t number_at(const Buffer* buffer, int32_t index_type, uint64_t i) {
  return index_type == TUFF_I64 ? buffer->host<int64_t>()[i] : int64_t{buffer->host<int32_t>()[i]};
}
void set_number(const Buffer* buffer, int32_t index_type, uint64_t i, int64_t number) {
  if (index_type == TUFF_I64) {
    buffer->host<int64_t>()[i] = number;
  } else {
    buffer->host<int32_t>()[i] = static_cast<int32_t>(number);
  }
}

// An offset as the nearest number from 0 to nnz.
uint64_t offset_at(const Buffer* offsets, int32_t index_type, uint64_t i, uint64_t nnz) {
  const int64_t offset = number_at(offsets, index_type, i);
  return offset < 0 ? 0 : std::min(static_cast<uint64_t>(offset), nnz);
}

bool in_range(int64_t index, uint64_t extent) { return index >= 0 && static_cast<uint64_t>(index) < extent; }

// Calls body(row, column, place in the block) for each element of the block at (i, j), as they are stored.
template <typename Body>
void each_element(const sparse::Blocks& blocks, uint64_t i, uint64_t j, const Body& body) {
  const bool by_rows = blocks.order == TUFF_BLOCK_ORDER_ROW_MAJOR;
  for (uint64_t at = 0; at < blocks.elements(); ++at) {
    const uint64_t row = by_rows ? at / blocks.columns : at % blocks.rows;
    const uint64_t column = by_rows ? at % blocks.columns : at / blocks.rows;
    body(i * blocks.rows + row, j * blocks.columns + column, at);
  }
}

template <typename T>
void spmm(const SpmmArgs& args, uint64_t matrix, LastWrites& writes) {
  const uint64_t rows = args.product_rows(), n = args.n;
  const auto place = [&args](uint64_t row, uint64_t column, uint64_t ld) {
    return args.on_right() ? column * ld + row : row * ld + column;
  };
  std::vector<double> sums(rows * n);
  if (args.nnz != 0 && args.alpha != 0) {
    const T* values = args.values->host<T>() + matrix * args.stride_values;
    const T* b = args.extent() == 0 ? nullptr : args.b->host<T>() + matrix * args.stride_b;
    const sparse::Blocks& blocks = args.blocks;
    const auto add = [&](uint64_t i, uint64_t j, const T& value) {
      const uint64_t row = args.sorts() ? j : i, inner = args.sorts() ? i : j;
      for (uint64_t k = 0; k < n; ++k) sums[row * n + k] += double{value} * double{b[place(inner, k, args.ldb)]};
    };
    for (uint64_t i = 0; i < args.block_rows(); ++i) {
      const uint64_t end = offset_at(args.offsets, args.index_type, i + 1, args.nnz);
      for (uint64_t e = offset_at(args.offsets, args.index_type, i, args.nnz); e < end; ++e) {
        const int64_t j = number_at(args.indices, args.index_type, e);
        if (!in_range(j, args.block_columns())) continue;
        each_element(blocks, i, static_cast<uint64_t>(j), [&](uint64_t row, uint64_t column, uint64_t at) {
          add(row, column, values[e * blocks.elements() + at]);
        });
      }
    }
  }
  writes.add([&args, place, rows, n, matrix, sums = std::move(sums)] {
    T* c = args.c->host<T>() + matrix * args.stride_c;
    for (uint64_t i = 0; i < rows; ++i) {
      for (uint64_t k = 0; k < n; ++k) {
        T& result = c[place(i, k, args.ldc)];
        const double old = args.beta == 0 ? 0 : args.beta * double{result};
        result = T(args.alpha * sums[i * n + k] + old);
      }
    }
  });
}

template <typename T>
void sddmm(const SddmmArgs& args, uint64_t matrix) {
  T* values = args.values->host<T>() + matrix * args.stride_values;
  const T* scales = args.scales == nullptr ? nullptr : args.scales->host<T>() + matrix * args.stride_scales;
  const bool reads = args.reads();
  const T* a = reads ? args.a->host<T>() + matrix * args.stride_a : nullptr;
  const T* b = reads ? args.b->host<T>() + matrix * args.stride_b : nullptr;
  const auto write = [&](int64_t row, uint64_t e) {
    const int64_t column = number_at(args.place_columns, args.index_type, e);
    double sum = 0;
    if (reads && in_range(row, args.rows) && in_range(column, args.columns)) {
      const auto i = static_cast<uint64_t>(row), j = static_cast<uint64_t>(column);
      for (uint64_t k = 0; k < args.k; ++k) {
        sum += double{a[i * args.lda + k]} * double{b[args.transposed() ? j * args.ldb + k : k * args.ldb + j]};
      }
      if (scales != nullptr) sum *= double{scales[e]};
    }
    values[e] = T(args.alpha * sum + (args.beta == 0 ? 0 : args.beta * double{values[e]}));
  };
  if (!args.offsets()) {
    for (uint64_t e = 0; e < args.nnz; ++e) write(number_at(args.place_rows, args.index_type, e), e);
    return;
  }
  for (uint64_t i = 0; i < args.rows; ++i) {
    const uint64_t end = offset_at(args.place_rows, args.index_type, i + 1, args.nnz);
    for (uint64_t e = offset_at(args.place_rows, args.index_type, i, args.nnz); e < end; ++e) {
      write(static_cast<int64_t>(i), e);
    }
  }
}

struct Entry {
  uint64_t row, column;
  double value;
};

// The entries of the source that are in range, in its order.
template <typename T>
std::vector<Entry> entries_of(const SparseConvertArgs& args) {
  std::vector<Entry> entries;
  if (args.from_format == TUFF_SPARSE_DENSE) {
    if (args.columns == 0) return entries;  // of any number of rows
    for (uint64_t i = 0; i < args.rows; ++i) {
      for (uint64_t j = 0; j < args.columns; ++j) {
        const double value{args.from_values->host<T>()[i * args.from_ld + j]};
        if (value != 0) entries.push_back({i, j, value});  // NaN is not zero
      }
    }
    return entries;
  }
  const auto add = [&](int64_t row, int64_t column, uint64_t e) {
    if (!in_range(row, args.rows) || !in_range(column, args.columns)) return;
    entries.push_back(
        {static_cast<uint64_t>(row), static_cast<uint64_t>(column), double{args.from_values->host<T>()[e]}});
  };
  if (args.nnz == 0) return entries;
  if (args.from_format == TUFF_SPARSE_COO) {
    for (uint64_t e = 0; e < args.nnz; ++e) {
      add(number_at(args.from_rows, args.index_type, e), number_at(args.from_columns, args.index_type, e), e);
    }
    return entries;
  }
  // CSR is BSR of blocks of one element.
  const bool by_rows = args.from_format != TUFF_SPARSE_CSC;
  const sparse::Blocks& blocks = args.from_blocks;
  const Buffer* const offsets = by_rows ? args.from_rows : args.from_columns;
  const Buffer* const indices = by_rows ? args.from_columns : args.from_rows;
  for (uint64_t i = 0; i < (by_rows ? args.rows / blocks.rows : args.columns); ++i) {
    const uint64_t end = offset_at(offsets, args.index_type, i + 1, args.nnz);
    for (uint64_t e = offset_at(offsets, args.index_type, i, args.nnz); e < end; ++e) {
      const int64_t index = number_at(indices, args.index_type, e);
      if (!by_rows) {
        add(index, static_cast<int64_t>(i), e);
      } else if (in_range(index, args.columns / blocks.columns)) {
        each_element(blocks, i, static_cast<uint64_t>(index), [&](uint64_t row, uint64_t column, uint64_t at) {
          add(static_cast<int64_t>(row), static_cast<int64_t>(column), e * blocks.elements() + at);
        });
      }
    }
  }
  return entries;
}

// The result in BSR, from entries in order of rows and columns, of which no two have the same place.
template <typename T>
void write_blocks(const SparseConvertArgs& args, const std::vector<Entry>& entries) {
  const sparse::Blocks& blocks = args.to_blocks;
  std::map<std::pair<uint64_t, uint64_t>, std::vector<double>> found;  // by row and column of blocks
  for (const Entry& e : entries) {
    std::vector<double>& block = found[{e.row / blocks.rows, e.column / blocks.columns}];
    block.resize(blocks.elements());
    block[e.row % blocks.rows * blocks.row_stride() + e.column % blocks.columns * blocks.column_stride()] = e.value;
  }
  if (args.count != nullptr) args.count->host<int64_t>()[0] = static_cast<int64_t>(found.size());
  uint64_t e = 0, line = 0;
  for (const auto& [place, block] : found) {
    for (; line <= place.first; ++line) set_number(args.to_rows, args.index_type, line, static_cast<int64_t>(e));
    if (e < args.capacity) {
      set_number(args.to_columns, args.index_type, e, static_cast<int64_t>(place.second));
      for (uint64_t at = 0; at < block.size(); ++at) {
        args.to_values->host<T>()[e * blocks.elements() + at] = T(block[at]);
      }
    }
    ++e;
  }
  for (; line <= args.rows / blocks.rows; ++line) {
    set_number(args.to_rows, args.index_type, line, static_cast<int64_t>(e));
  }
  for (; e < args.capacity; ++e) {
    set_number(args.to_columns, args.index_type, e, -1);
    std::fill_n(args.to_values->host<T>() + e * blocks.elements(), blocks.elements(), T(0.0));
  }
}

template <typename T>
void convert(const SparseConvertArgs& args) {
  std::vector<Entry> entries = entries_of<T>(args);
  const bool csc = args.to_format == TUFF_SPARSE_CSC;
  const auto major = [&](const Entry& e) { return csc ? e.column : e.row; };
  const auto minor = [&](const Entry& e) { return csc ? e.row : e.column; };
  std::stable_sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    return major(a) != major(b) ? major(a) < major(b) : minor(a) < minor(b);
  });
  size_t count = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (count != 0 && entries[count - 1].row == entries[i].row && entries[count - 1].column == entries[i].column) {
      entries[count - 1].value += entries[i].value;
    } else {
      entries[count++] = entries[i];
    }
  }
  entries.resize(count);
  if (args.to_format == TUFF_SPARSE_BSR) {
    write_blocks<T>(args, entries);
    return;
  }
  if (args.count != nullptr) args.count->host<int64_t>()[0] = static_cast<int64_t>(count);
  if (args.to_format == TUFF_SPARSE_DENSE) {
    for (uint64_t i = 0; i < args.rows && args.columns != 0; ++i) {
      std::fill_n(args.to_values->host<T>() + i * args.to_ld, args.columns, T(0.0));
    }
    for (const Entry& e : entries) args.to_values->host<T>()[e.row * args.to_ld + e.column] = T(e.value);
    return;
  }
  const Buffer* const offsets = args.to_format == TUFF_SPARSE_CSR ? args.to_rows : csc ? args.to_columns : nullptr;
  const Buffer* const rows = args.to_format == TUFF_SPARSE_CSR ? nullptr : args.to_rows;
  const Buffer* const columns = csc ? nullptr : args.to_columns;
  for (uint64_t i = 0; i < args.capacity; ++i) {
    const bool is = i < count;
    if (rows != nullptr) set_number(rows, args.index_type, i, is ? static_cast<int64_t>(entries[i].row) : -1);
    if (columns != nullptr) set_number(columns, args.index_type, i, is ? static_cast<int64_t>(entries[i].column) : -1);
    args.to_values->host<T>()[i] = T(is ? entries[i].value : 0.0);
  }
  if (offsets == nullptr) return;
  uint64_t e = 0;
  for (uint64_t i = 0; i <= (csc ? args.columns : args.rows); ++i) {
    while (e < count && major(entries[e]) < i) ++e;
    set_number(offsets, args.index_type, i, static_cast<int64_t>(e));
  }
}

// The entries of row i of a matrix in CSR that are in range: body(entry, column).
template <typename Body>
void each_entry(const Buffer* offsets, const Buffer* indices, int32_t index_type, uint64_t i, uint64_t nnz,
                uint64_t columns, const Body& body) {
  if (nnz == 0) return;
  const uint64_t end = offset_at(offsets, index_type, i + 1, nnz);
  for (uint64_t e = offset_at(offsets, index_type, i, nnz); e < end; ++e) {
    const int64_t column = number_at(indices, index_type, e);
    if (in_range(column, columns)) body(e, static_cast<uint64_t>(column));
  }
}

// Calls body(entry of A, entry of B, column) for each term of row i.
template <typename Body>
void each_term(const SpgemmArgs& args, uint64_t i, const Body& body) {
  each_entry(args.a_offsets, args.a_indices, args.index_type, i, args.a_nnz, args.inner, [&](uint64_t a, uint64_t k) {
    each_entry(args.b_offsets, args.b_indices, args.index_type, k, args.b_nnz, args.columns,
               [&](uint64_t b, uint64_t column) { body(a, b, column); });
  });
}

template <typename T>
void spgemm(const SpgemmArgs& args) {
  uint64_t terms = 0, count = 0;
  for (uint64_t i = 0; i < args.rows; ++i) each_term(args, i, [&](uint64_t, uint64_t, uint64_t) { ++terms; });
  const bool multiplies = terms <= args.max_terms;
  std::map<uint64_t, double> row;
  std::vector<uint64_t> offsets(args.rows);
  std::vector<std::pair<uint64_t, double>> entries;  // those that there is room for
  for (uint64_t i = 0; i < args.rows; ++i) {
    offsets[i] = count;
    if (!multiplies) continue;
    row.clear();
    each_term(args, i, [&](uint64_t a, uint64_t b, uint64_t column) {
      row[column] += double{args.a_values->host<T>()[a]} * double{args.b_values->host<T>()[b]};
    });
    for (const auto& entry : row) {
      if (count++ < args.capacity) entries.emplace_back(entry);
    }
  }
  // Nothing is allocated from here on: a call that fails for that has changed nothing.
  if (args.terms != nullptr) args.terms->host<int64_t>()[0] = static_cast<int64_t>(terms);
  for (uint64_t i = 0; i < args.rows; ++i) {
    set_number(args.c_offsets, args.index_type, i, static_cast<int64_t>(offsets[i]));
  }
  for (uint64_t i = 0; i < entries.size(); ++i) {
    set_number(args.c_indices, args.index_type, i, static_cast<int64_t>(entries[i].first));
    args.c_values->host<T>()[i] = T(entries[i].second);
  }
  set_number(args.c_offsets, args.index_type, args.rows, static_cast<int64_t>(count));
  if (args.count != nullptr) args.count->host<int64_t>()[0] = static_cast<int64_t>(count);
  for (uint64_t i = count; i < args.capacity; ++i) {
    set_number(args.c_indices, args.index_type, i, -1);
    args.c_values->host<T>()[i] = T(0.0);
  }
}

// An entry of op(A) in its row, of its triangle or its diagonal.
struct Factor {
  uint64_t column;
  double value;
};

template <typename T>
void triangular_solve(const SparseTriangularSolveArgs& args) {
  const uint64_t rows = args.rows;
  std::vector<std::vector<Factor>> matrix(rows);
  for (uint64_t i = 0; i < rows; ++i) {
    each_entry(args.offsets, args.indices, args.index_type, i, args.nnz, rows, [&](uint64_t e, uint64_t j) {
      const bool wanted = args.triangle == TUFF_TRIANGLE_LOWER ? j <= i : j >= i;
      const double value = args.n == 0 ? 0.0 : double{args.values->host<T>()[e]};
      if (wanted) matrix[args.transposed() ? j : i].push_back({args.transposed() ? i : j, value});
    });
  }
  // Rows in an order in which each refers to earlier ones.
  const auto at = [&](uint64_t place) { return args.forward() ? place : rows - 1 - place; };
  std::vector<uint64_t> level(rows);
  for (uint64_t place = 0; place < rows; ++place) {
    const uint64_t i = at(place);
    for (const Factor& f : matrix[i]) {
      if (f.column != i) level[i] = std::max(level[i], level[f.column] + 1);
    }
  }
  std::vector<double> solved(rows);
  // Nothing is allocated after the levels are written.
  if (args.levels != nullptr && !args.levels_ready) {
    std::vector<uint64_t> order(rows);
    for (uint64_t i = 0; i < rows; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](uint64_t a, uint64_t b) { return level[a] < level[b]; });
    int32_t* const levels = args.levels->host<int32_t>();
    uint64_t below = 0;
    for (uint64_t l = 0; l <= rows; ++l) {
      while (below < rows && level[order[below]] < l) ++below;
      levels[l] = static_cast<int32_t>(below);
    }
    for (uint64_t i = 0; i < rows; ++i) levels[rows + 1 + i] = static_cast<int32_t>(order[i]);
  }
  for (uint64_t k = 0; rows != 0 && k < args.n; ++k) {
    for (uint64_t place = 0; place < rows; ++place) {
      const uint64_t i = at(place);
      double sum = 0, diagonal = args.unit_diagonal ? 1 : 0;
      for (const Factor& f : matrix[i]) {
        if (f.column != i) {
          sum += f.value * solved[f.column];
        } else if (!args.unit_diagonal) {
          diagonal += f.value;
        }
      }
      solved[i] = (args.alpha * double{args.b->host<T>()[i * args.ldb + k]} - sum) / diagonal;
      args.x->host<T>()[i * args.ldx + k] = T(solved[i]);
    }
  }
}

}  // namespace

void host_spmm(const SpmmArgs& args) {
  if (sparse::dense_c(args).one() == 0) return;
  LastWrites writes;
  with_type(args.dtype, [&]<typename T>(T) {
    for (uint64_t i = 0; i < args.batch_count; ++i) spmm<T>(args, i, writes);
  });
  writes.run();
}

void host_sddmm(const SddmmArgs& args) {
  if (args.nnz == 0) return;
  with_type(args.dtype, [&]<typename T>(T) {
    for (uint64_t i = 0; i < args.batch_count; ++i) sddmm<T>(args, i);
  });
}

void host_sparse_convert(const SparseConvertArgs& args) {
  with_type(args.dtype, [&]<typename T>(T) { convert<T>(args); });
}

void host_spgemm(const SpgemmArgs& args) {
  with_type(args.dtype, [&]<typename T>(T) { spgemm<T>(args); });
}

void host_sparse_triangular_solve(const SparseTriangularSolveArgs& args) {
  if (args.n == 0 && (args.levels == nullptr || args.levels_ready)) return;
  with_type(args.dtype, [&]<typename T>(T) { triangular_solve<T>(args); });
}

}  // namespace tuff
