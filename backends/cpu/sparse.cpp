// Products of sparse matrices with dense and sparse ones, and triangular systems, row by row: sums in double precision,
// in the order of the entries, rounded once. So results do not depend on the number of threads.
#include <bit>
#include <vector>

#include "backends/cpu/device.hpp"

namespace tuff_cpu {
namespace {

// Calls body(T{}, I{}) with the C++ types of elements and of indices.
template <typename Body>
bool with_types(int32_t dtype, int32_t index_type, const Body& body) {
  const auto with_index = [&]<typename T>(T) {
    if (index_type == TUFF_I32) return body(T{}, int32_t{}), true;
    if (index_type == TUFF_I64) return body(T{}, int64_t{}), true;
    return false;
  };
  if (dtype == TUFF_F64) return with_index(double{});
  if (dtype == TUFF_F32) return with_index(float{});
  if (dtype == TUFF_F16) return with_index(Half{});
  if (dtype == TUFF_BF16) return with_index(Bfloat{});
  return false;
}

template <typename T>
double number(T x) {
  return static_cast<double>(wide(x));
}
double number(double x) { return x; }
template <typename T>
void store(double x, T& result) {
  round_to(static_cast<float>(x), result);
}
void store(double x, double& result) { result = x; }

// A matrix in CSR, whose content may be anything: offsets are taken as the nearest numbers from 0 to nnz, entries out
// of range are left out.
template <typename T, typename I>
struct Matrix {
  const I *offsets, *indices;
  const T* values;
  uint64_t rows, columns, nnz;

  uint64_t offset(uint64_t i) const {
    const I x = offsets[i];
    return x < 0 ? 0 : std::min(static_cast<uint64_t>(x), nnz);
  }
  bool has(uint64_t e) const { return indices[e] >= 0 && static_cast<uint64_t>(indices[e]) < columns; }
  // body(entry, column)
  template <typename Body>
  void each(uint64_t row, const Body& body) const {
    for (uint64_t e = offset(row), end = offset(row + 1); e < end; ++e) {
      if (has(e)) body(e, static_cast<uint64_t>(indices[e]));
    }
  }
};

// Rows in parts of about the same work, in order: more parts than threads, because rows differ.
std::vector<uint64_t> parts_of(const std::vector<uint64_t>& work, int threads) {
  uint64_t total = 0;
  for (const uint64_t w : work) total += w + 1;
  const uint64_t many = threads == 1 ? 1 : static_cast<uint64_t>(threads) * 8;
  const uint64_t each = std::max<uint64_t>(total / many + 1, 4096);
  std::vector<uint64_t> firsts{0};
  uint64_t sum = 0;
  for (uint64_t i = 0; i < work.size(); ++i) {
    if (sum >= each) firsts.push_back(i), sum = 0;
    sum += work[i] + 1;
  }
  firsts.push_back(work.size());
  return firsts;
}

// ---- A set of columns --------------------------------------------------------------------------

// Bits for columns, and above them a bit for each word that has one, level by level: adding a column costs a word or
// two, and going through them in order costs what they are, however far apart.
class Columns {
 public:
  explicit Columns(uint64_t count) {
    do {
      count = (count + 63) / 64;
      levels_.emplace_back(count);
    } while (count > 1);
  }
  // False if it was there.
  bool add(uint64_t column) {
    uint64_t* word = &levels_[0][column / 64];
    const uint64_t bit = uint64_t{1} << column % 64;
    if ((*word & bit) != 0) return false;
    const bool first = *word == 0;
    *word |= bit;
    if (first) mark(column / 64);
    return true;
  }
  // Calls body(column) in order, and forgets them all.
  template <typename Body>
  void take(const Body& body) {
    take_level(levels_.size() - 1, 0, body);
  }

 private:
  void mark(uint64_t word) {
    for (size_t level = 1; level < levels_.size(); ++level, word /= 64) {
      uint64_t& above = levels_[level][word / 64];
      const bool first = above == 0;
      above |= uint64_t{1} << word % 64;
      if (!first) return;
    }
  }
  template <typename Body>
  void take_level(size_t level, uint64_t at, const Body& body) {
    uint64_t& stored = levels_[level][at];
    for (uint64_t word = stored; word != 0; word &= word - 1) {
      const uint64_t below = at * 64 + static_cast<uint64_t>(std::countr_zero(word));
      if (level == 0) {
        body(below);
      } else {
        take_level(level - 1, below, body);
      }
    }
    stored = 0;
  }

  std::vector<std::vector<uint64_t>> levels_;
};

// ---- Sparse times sparse -----------------------------------------------------------------------

// The rows of a part of C, one behind the other: in memory of their own, or in C itself, where there may be less room.
template <typename T, typename I>
struct Rows {
  I* columns = nullptr;
  T* values = nullptr;
  uint64_t room = 0, count = 0;  // entries beyond the room are counted only
  uint64_t begin = 0;            // of its entries in C
  Scratch<I> own_columns;
  Scratch<T> own_values;

  void make_room(uint64_t entries) {  // memory that is not written to costs nothing
    own_columns = Scratch<I>(entries), own_values = Scratch<T>(entries);
    columns = own_columns.get(), values = own_values.get(), room = entries;
  }
};

// A place for each column of a row. Sums are not initialised: those of columns that are not found are not used.
struct Accumulator {
  explicit Accumulator(uint64_t columns) : sums(columns), found(columns) {}
  Scratch<double> sums;
  Columns found;
};

// Gustavson's algorithm (1978): a row of C is a sum of rows of B.
template <typename T, typename I>
void multiply_part(const Matrix<T, I>& a, const Matrix<T, I>& b, uint64_t first, uint64_t last, Accumulator& own,
                   uint64_t* lengths, Rows<T, I>& rows) {
  double* const sums = own.sums.get();
  Columns& found = own.found;
  for (uint64_t i = first; i < last; ++i) {
    a.each(i, [&](uint64_t e, uint64_t k) {
      const double factor = number(a.values[e]);
      b.each(k, [&](uint64_t f, uint64_t column) {
        const double product = factor * number(b.values[f]);
        sums[column] = found.add(column) ? product : sums[column] + product;
      });
    });
    const uint64_t before = rows.count;
    found.take([&](uint64_t column) {
      if (rows.count < rows.room) {
        rows.columns[rows.count] = static_cast<I>(column);
        store(sums[column], rows.values[rows.count]);
      }
      ++rows.count;
    });
    lengths[i] = rows.count - before;
  }
}

// For all parts, on all threads: the first part in C, where the others follow when it is known how long they are. All
// memory is allocated before C is written to. No exception leaves a thread's work.
template <typename T, typename I>
void multiply_rows(const Device& device, const Matrix<T, I>& a, const Matrix<T, I>& b,
                   const std::vector<uint64_t>& firsts, const std::vector<uint64_t>& terms,
                   std::vector<uint64_t>& lengths, std::vector<Rows<T, I>>& parts) {
  for (size_t part = 1; part < parts.size(); ++part) {
    uint64_t most = 0;
    for (uint64_t i = firsts[part]; i < firsts[part + 1]; ++i) most += std::min(terms[i], b.columns);
    parts[part].make_room(most);
  }
  bool failed = false;
#pragma omp parallel num_threads(std::min(device.threads, static_cast <int>(parts.size())))
  {
    std::unique_ptr<Accumulator> own;
    try {
      own = std::make_unique<Accumulator>(b.columns);
    } catch (...) {  // there is no memory
#pragma omp atomic write
      failed = true;
    }
#pragma omp barrier
    if (!failed) {
#pragma omp for schedule(dynamic)
      for (int64_t p = 0; p < static_cast<int64_t>(parts.size()); ++p) {
        const auto part = static_cast<size_t>(p);
        multiply_part(a, b, firsts[part], firsts[part + 1], *own, lengths.data(), parts[part]);
      }
    }
  }
  if (failed) throw std::bad_alloc();
}

// The terms of each row.
template <typename T, typename I>
std::vector<uint64_t> terms_of(const Matrix<T, I>& a, const Matrix<T, I>& b) {
  std::vector<uint64_t> lengths(b.rows), terms(a.rows);
  for_each(b.rows, b.nnz / b.rows + 1, [&](uint64_t k) {
    uint64_t count = 0;
    b.each(k, [&](uint64_t, uint64_t) { ++count; });
    lengths[k] = count;
  });
  for_each(a.rows, a.nnz / a.rows + 1, [&](uint64_t i) {
    uint64_t count = 0;
    a.each(i, [&](uint64_t, uint64_t k) { count += lengths[k]; });
    terms[i] = count;
  });
  return terms;
}

template <typename T, typename I>
void write_result(const tuff_spgemm_desc& call, std::vector<Rows<T, I>>& parts, const std::vector<uint64_t>& lengths) {
  I* const offsets = at<I>(call.c_offsets);
  uint64_t count = 0;
  for (uint64_t i = 0; i < call.rows; ++i) {
    offsets[i] = static_cast<I>(count);
    count += lengths[i];
  }
  offsets[call.rows] = static_cast<I>(count);
  if (call.count != 0) *at<int64_t>(call.count) = static_cast<int64_t>(count);
  if (call.capacity == 0) return;
  I* const indices = at<I>(call.c_indices);
  T* const values = at<T>(call.c_values);
  for (size_t p = 1; p < parts.size(); ++p) parts[p].begin = parts[p - 1].begin + parts[p - 1].count;
  for_each(parts.size() - 1, count / parts.size(), [&](uint64_t before) {
    const Rows<T, I>& rows = parts[before + 1];
    const uint64_t begin = std::min(rows.begin, call.capacity);
    const uint64_t some = std::min(rows.count, call.capacity - begin);
    std::copy_n(rows.columns, some, indices + begin);
    std::copy_n(rows.values, some, values + begin);
  });
  for (uint64_t e = count; e < call.capacity; ++e) indices[e] = I{-1}, store(0, values[e]);
}

template <typename T, typename I>
void multiply(const Device& device, const tuff_spgemm_desc& call) {
  const Matrix<T, I> a{at<const I>(call.a_offsets),
                       at<const I>(call.a_indices),
                       at<const T>(call.a_values),
                       call.rows,
                       call.inner,
                       call.a_nnz};
  const Matrix<T, I> b{at<const I>(call.b_offsets),
                       at<const I>(call.b_indices),
                       at<const T>(call.b_values),
                       call.inner,
                       call.columns,
                       call.b_nnz};
  std::vector<uint64_t> terms = terms_of(a, b), lengths(call.rows);
  uint64_t total = 0;
  for (const uint64_t t : terms) total += t;
  const std::vector<uint64_t> firsts = parts_of(terms, device.threads);
  std::vector<Rows<T, I>> parts(firsts.size() - 1);
  if (call.capacity != 0) {
    parts[0].columns = at<I>(call.c_indices), parts[0].values = at<T>(call.c_values), parts[0].room = call.capacity;
  }
  if (total <= call.max_terms) multiply_rows(device, a, b, firsts, terms, lengths, parts);
  if (call.terms != 0) *at<int64_t>(call.terms) = static_cast<int64_t>(total);
  write_result<T, I>(call, parts, lengths);
}

// ---- Sparse times dense ------------------------------------------------------------------------

// The entries of each column, as those of rows: which they are, and the row of each.
template <typename T, typename I>
struct ByColumn {
  std::vector<uint64_t> begins, entries, rows;

  // False if rows share entries, so that there may be more than the lists of a matrix hold.
  bool fill(const Matrix<T, I>& a) {
    begins.assign(a.columns + 1, 0);
    uint64_t count = 0;
    for (uint64_t i = 0; i < a.rows; ++i) {
      const uint64_t begin = a.offset(i), end = a.offset(i + 1);
      count += end > begin ? end - begin : 0;
      if (count > a.nnz) return false;
      a.each(i, [&](uint64_t, uint64_t column) { ++begins[column + 1]; });
    }
    for (uint64_t j = 0; j < a.columns; ++j) begins[j + 1] += begins[j];
    entries.resize(begins[a.columns]), rows.resize(begins[a.columns]);
    std::vector<uint64_t> next(begins.begin(), begins.end() - 1);
    for (uint64_t i = 0; i < a.rows; ++i) {
      a.each(i, [&](uint64_t e, uint64_t column) { entries[next[column]] = e, rows[next[column]++] = i; });
    }
    return true;
  }
  template <typename Body>
  void each(uint64_t column, const Body& body) const {
    for (uint64_t at = begins[column]; at < begins[column + 1]; ++at) body(entries[at], rows[at]);
  }
};

// Dense operands: element (i, k) of B is b[i * b_inner + k * b_column], where i is the index that sums run over.
template <typename T>
struct DenseOperands {
  const T *values, *b;
  T* c;
  uint64_t b_inner, b_column, c_row, c_column;
  double alpha, beta;
};

// Row `row` of the product, for `width` columns from `first` on. `lines` has its entries.
template <uint64_t kWidth, typename T, typename Lines>
void row_product(const Lines& lines, const DenseOperands<T>& d, uint64_t row, uint64_t first, uint64_t width) {
  double sums[kWidth] = {};
  if (d.alpha != 0) {
    lines.each(row, [&](uint64_t e, uint64_t i) {
      const double value = number(d.values[e]);
      const T* const b = d.b + i * d.b_inner + first * d.b_column;
      for (uint64_t k = 0; k < (kWidth == 1 ? 1 : width); ++k) sums[k] += value * number(b[k * d.b_column]);
    });
  }
  for (uint64_t k = 0; k < width; ++k) {
    T& result = d.c[row * d.c_row + (first + k) * d.c_column];
    const double old = d.beta == 0 ? 0 : d.beta * number(result);
    store(d.alpha * sums[k] + old, result);
  }
}

template <typename T, typename Lines>
void dense_product(const Lines& lines, const DenseOperands<T>& d, const std::vector<uint64_t>& firsts, uint64_t n) {
  constexpr uint64_t kWidth = 16;
  const auto parts = static_cast<int64_t>(firsts.size()) - 1;
#pragma omp parallel for schedule(dynamic) if (parts > 1)
  for (int64_t p = 0; p < parts; ++p) {
    const auto part = static_cast<size_t>(p);
    for (uint64_t row = firsts[part]; row < firsts[part + 1]; ++row) {
      if (n == 1) {
        row_product<1>(lines, d, row, 0, 1);
      } else {
        for (uint64_t k = 0; k < n; k += kWidth) row_product<kWidth>(lines, d, row, k, std::min(kWidth, n - k));
      }
    }
  }
}

template <typename T, typename I>
tuff_status multiply_dense(const Device& device, const tuff_spmm_desc& call) {
  const bool right = call.side == TUFF_SIDE_RIGHT, sorts = (call.transpose != TUFF_NO_TRANS) != right;
  const bool reads = call.alpha != 0 && call.nnz != 0;
  const Matrix<T, I> a{
      at<const I>(call.offsets), at<const I>(call.indices), nullptr, reads ? call.rows : 0, call.columns, call.nnz};
  const uint64_t rows = sorts ? call.columns : call.rows;
  std::vector<uint64_t> work(rows);
  ByColumn<T, I> sorted;
  if (reads && sorts) {
    if (!sorted.fill(a)) return TUFF_ERROR_UNSUPPORTED;
    for (uint64_t i = 0; i < rows; ++i) work[i] = (sorted.begins[i + 1] - sorted.begins[i]) * call.n;
  } else if (reads) {
    for (uint64_t i = 0; i < rows; ++i) work[i] = (a.offset(i + 1) - std::min(a.offset(i), a.offset(i + 1))) * call.n;
  }
  const std::vector<uint64_t> firsts = parts_of(work, device.threads);
  for (uint64_t m = 0; m < call.batch_count; ++m) {
    const DenseOperands<T> d{reads ? at<const T>(call.values) + m * call.stride_values : nullptr,
                             reads ? at<const T>(call.b) + m * call.stride_b : nullptr,
                             at<T>(call.c) + m * call.stride_c,
                             right ? 1 : call.ldb,
                             right ? call.ldb : 1,
                             right ? 1 : call.ldc,
                             right ? call.ldc : 1,
                             reads ? call.alpha : 0,
                             call.beta};
    sorts ? dense_product(sorted, d, firsts, call.n) : dense_product(a, d, firsts, call.n);
  }
  return TUFF_OK;
}

// ---- Triangular systems ------------------------------------------------------------------------

// A triangle op(A), gone through by rows of A, in the order in which op(A) is solved.
template <typename T, typename I>
struct Triangle {
  Matrix<T, I> a;
  bool lower, transposed, ones;

  uint64_t at(uint64_t place) const { return lower != transposed ? place : a.rows - 1 - place; }
  // The entries of row i of A beside the diagonal: body(entry, column). Returns the diagonal.
  template <typename Body>
  double each(uint64_t i, const Body& body) const {
    double diagonal = ones ? 1 : 0;
    a.each(i, [&](uint64_t e, uint64_t j) {
      if (j == i) {
        if (!ones && a.values != nullptr) diagonal += number(a.values[e]);
      } else if ((j < i) == lower) {
        body(e, j);
      }
    });
    return diagonal;
  }
};

// Offsets of levels, and the rows by level.
template <typename T, typename I>
void find_levels(const Triangle<T, I>& triangle, int32_t* levels) {
  const uint64_t rows = triangle.a.rows;
  std::vector<uint64_t> level(rows), next(rows + 1);
  for (uint64_t place = 0; place < rows; ++place) {
    const uint64_t i = triangle.at(place);
    triangle.each(i, [&](uint64_t, uint64_t j) {
      uint64_t& later = triangle.transposed ? level[j] : level[i];
      later = std::max(later, (triangle.transposed ? level[i] : level[j]) + 1);
    });
  }
  for (const uint64_t l : level) ++next[l + 1];  // a level is below `rows`
  for (uint64_t l = 0; l < rows; ++l) next[l + 1] += next[l];
  for (uint64_t l = 0; l <= rows; ++l) levels[l] = static_cast<int32_t>(next[l]);
  for (uint64_t i = 0; i < rows; ++i) levels[rows + 1 + next[level[i]]++] = static_cast<int32_t>(i);
}

// `width` columns from `first` on; y has kWidth numbers for each row.
template <uint64_t kWidth, typename T, typename I>
void solve_columns(const Triangle<T, I>& triangle, const tuff_sparse_triangular_solve_desc& call, uint64_t first,
                   uint64_t width, double* y) {
  const T* const b = at<const T>(call.b) + first;
  T* const x = at<T>(call.x) + first;
  const uint64_t some = kWidth == 1 ? 1 : width;
  if (triangle.transposed) std::fill_n(y, call.rows * kWidth, 0.0);
  for (uint64_t place = 0; place < call.rows; ++place) {
    const uint64_t i = triangle.at(place);
    double* const own = y + i * kWidth;
    double sums[kWidth] = {};
    const auto solve = [&](double diagonal) {
      for (uint64_t k = 0; k < some; ++k) {
        own[k] = (call.alpha * number(b[i * call.ldb + k]) - sums[k]) / diagonal;
        store(own[k], x[i * call.ldx + k]);
      }
    };
    if (!triangle.transposed) {
      solve(triangle.each(i, [&](uint64_t e, uint64_t j) {
        const double value = number(triangle.a.values[e]);
        for (uint64_t k = 0; k < some; ++k) sums[k] += value * y[j * kWidth + k];
      }));
      continue;
    }
    // y has the sums of what is solved already, which row i of A adds to for the rows that follow.
    for (uint64_t k = 0; k < some; ++k) sums[k] = own[k];
    solve(triangle.each(i, [](uint64_t, uint64_t) {}));
    triangle.each(i, [&](uint64_t e, uint64_t j) {
      const double value = number(triangle.a.values[e]);
      for (uint64_t k = 0; k < some; ++k) y[j * kWidth + k] += value * own[k];
    });
  }
}

template <typename T, typename I>
void solve(const Device& device, const tuff_sparse_triangular_solve_desc& call) {
  constexpr uint64_t kWidth = 8;
  const Triangle<T, I> triangle{{at<const I>(call.offsets), at<const I>(call.indices),
                                 call.n == 0 ? nullptr : at<const T>(call.values), call.rows, call.rows, call.nnz},
                                call.triangle == TUFF_TRIANGLE_LOWER,
                                call.transpose != TUFF_NO_TRANS,
                                call.unit_diagonal == 1};
  const uint64_t blocks = call.n == 1 ? 1 : (call.n + kWidth - 1) / kWidth;
  const uint64_t together = std::min<uint64_t>(blocks, static_cast<uint64_t>(device.threads));
  const uint64_t numbers = call.rows * (call.n == 1 ? 1 : kWidth);
  const Scratch<double> y(together * numbers);
  if (call.levels != 0 && call.levels_ready == 0) find_levels(triangle, at<int32_t>(call.levels));
  if (call.n == 1) return solve_columns<1>(triangle, call, 0, 1, y.get());
  for (uint64_t begin = 0; begin < blocks; begin += together) {
    for_each(std::min(together, blocks - begin), call.nnz + call.rows, [&](uint64_t i) {
      const uint64_t first = (begin + i) * kWidth;
      solve_columns<kWidth>(triangle, call, first, std::min(kWidth, call.n - first), y.get() + i * numbers);
    });
  }
}

}  // namespace

// More columns than this are left to Tuff: each thread has an accumulator.
constexpr uint64_t kMaxColumns = uint64_t{1} << 28;

// Whether they compute a matrix depends on its indices, so they leave it to others if they are only asked.
tuff_status spgemm(Device& device, const tuff_spgemm_desc& call) {
  if (device.asked) return TUFF_ERROR_UNSUPPORTED;
  if (call.columns > kMaxColumns) return TUFF_ERROR_UNSUPPORTED;
  const bool is =
      with_types(call.dtype, call.index_type, [&]<typename T, typename I>(T, I) { multiply<T, I>(device, call); });
  return is ? TUFF_OK : TUFF_ERROR_UNSUPPORTED;
}

tuff_status spmm(Device& device, const tuff_spmm_desc& call) {
  if (device.asked) return TUFF_ERROR_UNSUPPORTED;
  tuff_status status = TUFF_ERROR_UNSUPPORTED;
  with_types(call.dtype, call.index_type,
             [&]<typename T, typename I>(T, I) { status = multiply_dense<T, I>(device, call); });
  return status;
}

tuff_status sparse_triangular_solve(Device& device, const tuff_sparse_triangular_solve_desc& call) {
  if (device.asked) return TUFF_ERROR_UNSUPPORTED;
  const bool is =
      with_types(call.dtype, call.index_type, [&]<typename T, typename I>(T, I) { solve<T, I>(device, call); });
  return is ? TUFF_OK : TUFF_ERROR_UNSUPPORTED;
}

}  // namespace tuff_cpu
