// Planner of conversions. The entries are sorted by the result's major number (its column in CSC, otherwise its row)
// and then by the minor one: by two stable sorts, the minor number first, or by one if they are ordered by it already.
// Then
//
//   flags     1 where an entry differs from the one before, and their running sums: the place of each in the result
//   take      each place of the result looks up where its entries begin
//   merge     adds the entries of each place (sparse_merge.comp, with a row for each place)
//   offsets   each line of the result looks up how many places come before it
//
// A dense matrix has an entry for each element, in order, and flags where it is not zero. A dense result is looked up
// in a result in CSR, in scratch memory.
#include <algorithm>

#include "kernels/common/check.hpp"
#include "kernels/memory/memory.hpp"
#include "kernels/scan/scan.hpp"
#include "kernels/sparse/sparse_plan.hpp"
#include "planning/log.hpp"
#include "shaders/sparse_dense.hpp"
#include "shaders/sparse_flags.hpp"
#include "shaders/sparse_pick.hpp"
#include "shaders/sparse_take.hpp"

namespace tuff {
namespace {

using namespace sparse;

constexpr const char* kLabel = "sparse_convert";

// A conversion to CSR or COO, whose major numbers are rows, or to CSC, whose major numbers are columns.
struct Conversion {
  Recorder& recorder;
  const SparseConvertArgs& args;
  bool from_dense, to_dense, by_column;
  uint64_t size, index_bytes;
  uint64_t majors, minors;
  uint64_t entries;   // of the source
  uint64_t capacity;  // of the result
  // The result: offsets of the major numbers, or these numbers; minor numbers; values.
  Buffer offsets, major, minor, values;
  uint64_t result_bytes;  // of an index of the result

  uint64_t dense_span(uint64_t ld) const { return Dense{args.rows, args.columns, ld, 0}.one(); }
};

// What sorting leaves: major numbers in order, where each entry was, and minor numbers by where they were.
struct Sorted {
  const Buffer *keys, *order, *minor;
};

void record_pick(Recorder& recorder, const Buffer& from, const Buffer& places, uint64_t n, const Buffer& to) {
  const Items items = items_of(recorder, n);
  KernelRequest kernel = shaders::SparsePick::request({.run = items.fixed});
  kernel.streaming().constant(0, items.workgroup);
  Dispatch dispatch(kLabel);
  dispatch.operand(&from, 0, n * 4, Access::read)
      .operand(&places, 0, n * 4, Access::read)
      .operand(&to, 0, n * 4, Access::write)
      .push(shaders::SparsePick::Push{.n = static_cast<uint32_t>(n), .run = static_cast<uint32_t>(items.run)})
      .groups_linear(items.groups, recorder.traits())
      .work(static_cast<double>(n * 12), 0);
  recorder.dispatch(kernel, dispatch);
}

// The strides of a dense source in the order of the result.
struct Strides {
  uint64_t major, minor;
};
Strides strides_of(const Conversion& c) {
  return c.by_column ? Strides{1, c.args.from_ld} : Strides{c.args.from_ld, 1};
}

void record_flags(const Conversion& c, const Sorted& sorted, const Buffer& flags) {
  const Items items = items_of(c.recorder, c.entries);
  const uint64_t span = c.from_dense ? c.dense_span(c.args.from_ld) : 0, list = c.from_dense ? 0 : c.entries * 4;
  KernelRequest kernel =
      shaders::SparseFlags::request({.dense = c.from_dense, .run = items.fixed, .type = c.args.dtype});
  kernel.streaming().constant(0, items.workgroup).wide(needs_wide(span));
  const Strides strides = strides_of(c);
  Dispatch dispatch(kLabel);
  dispatch.operand(c.from_dense ? nullptr : sorted.keys, 0, list, Access::read)
      .operand(c.from_dense ? nullptr : sorted.order, 0, list, Access::read)
      .operand(c.from_dense ? nullptr : sorted.minor, 0, list, Access::read)
      .operand(c.from_dense ? c.args.from_values : nullptr, 0, span * c.size, Access::read)
      .operand(&flags, 0, c.entries * 4, Access::write)
      .push(shaders::SparseFlags::Push{.n = static_cast<uint32_t>(c.entries),
                                       .run = static_cast<uint32_t>(items.run),
                                       .majors = static_cast<uint32_t>(c.majors),
                                       .minors = static_cast<uint32_t>(c.minors),
                                       .major_stride = low_word(strides.major),
                                       .major_stride_high = high_word(strides.major),
                                       .minor_stride = low_word(strides.minor),
                                       .minor_stride_high = high_word(strides.minor)})
      .groups_linear(items.groups, c.recorder.traits())
      .work(static_cast<double>(c.entries * 16), static_cast<double>(c.entries));
  c.recorder.dispatch(kernel, dispatch);
  const uint64_t shape = c.entries;
  record_scan(c.recorder, {ScanOp::sum, TUFF_I32, &flags, &flags, &shape, 1, 0, false, false});
}

void record_take(const Conversion& c, const Sorted& sorted, const Buffer& flags, const Buffer& runs) {
  const Items items = items_of(c.recorder, c.capacity + 1);
  const bool some = c.entries != 0, lists = some && !c.from_dense;
  const uint64_t span = c.from_dense && some ? c.dense_span(c.args.from_ld) : 0, list = c.entries * 4;
  const uint64_t numbers = c.capacity * c.result_bytes;
  const bool major = c.major.bytes != 0 && numbers != 0;
  KernelRequest kernel = shaders::SparseTake::request({.count = c.args.count != nullptr,
                                                       .dense = c.from_dense,
                                                       .index_bytes = c.result_bytes,
                                                       .major = major,
                                                       .room = c.capacity != 0,
                                                       .run = items.fixed,
                                                       .some = some,
                                                       .type = c.args.dtype});
  kernel.streaming().constant(0, items.workgroup).wide(needs_wide(span));
  const Strides strides = strides_of(c);
  Dispatch dispatch(kLabel);
  const auto read = [&](bool is, const Buffer* buffer, uint64_t bytes) {
    dispatch.operand(is ? buffer : nullptr, 0, is ? bytes : 0, Access::read);
  };
  const auto write = [&](bool is, const Buffer* buffer, uint64_t bytes) {
    dispatch.operand(is ? buffer : nullptr, 0, is ? bytes : 0, Access::write);
  };
  read(lists, sorted.keys, list);
  read(lists, sorted.order, list);
  read(lists, sorted.minor, list);
  read(span != 0, c.args.from_values, span * c.size);
  read(some, &flags, list);
  write(major, &c.major, numbers);
  write(numbers != 0, &c.minor, numbers);
  write(c.from_dense && c.capacity != 0, &c.values, c.capacity * c.size);
  write(!c.from_dense, &runs, (c.capacity + 1) * 4);
  write(c.args.count != nullptr, c.args.count, 8);
  dispatch
      .push(shaders::SparseTake::Push{.n = static_cast<uint32_t>(c.entries),
                                      .run = static_cast<uint32_t>(items.run),
                                      .majors = static_cast<uint32_t>(c.majors),
                                      .minors = static_cast<uint32_t>(c.minors),
                                      .capacity = static_cast<uint32_t>(c.capacity),
                                      .major_stride = low_word(strides.major),
                                      .major_stride_high = high_word(strides.major),
                                      .minor_stride = low_word(strides.minor),
                                      .minor_stride_high = high_word(strides.minor)})
      .groups_linear(items.groups, c.recorder.traits())
      .work(static_cast<double>(c.capacity * 64), static_cast<double>(c.capacity * 32));
  c.recorder.dispatch(kernel, dispatch);
}

void record_dense(const Conversion& c) {
  const SparseConvertArgs& args = c.args;
  const uint64_t n = args.rows * args.columns, span = c.dense_span(args.to_ld);
  if (n == 0) return;
  const Items items = items_of(c.recorder, n);
  const bool some = c.capacity != 0;
  KernelRequest kernel = shaders::SparseDense::request({.run = items.fixed, .some = some, .type = args.dtype});
  kernel.streaming().constant(0, items.workgroup).wide(needs_wide(span));
  Dispatch dispatch(kLabel);
  dispatch.operand(some ? &c.offsets : nullptr, 0, (args.rows + 1) * 4, Access::read)
      .operand(some ? &c.minor : nullptr, 0, c.capacity * 4, Access::read)
      .operand(some ? &c.values : nullptr, 0, c.capacity * c.size, Access::read)
      .operand(args.to_values, 0, span * c.size, Access::write)
      .push(shaders::SparseDense::Push{.n = static_cast<uint32_t>(n),
                                       .run = static_cast<uint32_t>(items.run),
                                       .columns = static_cast<uint32_t>(args.columns),
                                       .ld = low_word(args.to_ld),
                                       .ld_high = high_word(args.to_ld)})
      .groups_linear(items.groups, c.recorder.traits())
      .work(static_cast<double>(n * (c.size + 8)), static_cast<double>(n * 8));
  c.recorder.dispatch(kernel, dispatch);
}

// The sums of the entries of each place: a product with ones of a matrix that has a row for each place.
// Without offsets and permutation, which are in scratch memory.
Merge sums_of(const Conversion& c) {
  Merge merge{};
  merge.label = kLabel;
  merge.dtype = c.args.dtype;
  merge.index_bytes = 4;
  merge.rows = c.capacity, merge.nnz = c.entries;
  merge.values = c.args.from_values, merge.c = &c.values;
  merge.b_row = merge.b_column = 0, merge.c_row = 1, merge.c_column = 0;
  merge.n = merge.batch_count = 1;
  merge.values_span = c.entries, merge.c_span = c.capacity;
  merge.alpha = 1, merge.beta = 0;
  return merge;
}

void record(Recorder& recorder, const SparseConvertArgs& args) {
  const auto buffer = [](const Buffer* given) { return given != nullptr ? *given : Buffer{}; };
  const bool csc = args.to_format == TUFF_SPARSE_CSC;
  Conversion c{.recorder = recorder,
               .args = args,
               .from_dense = args.from_format == TUFF_SPARSE_DENSE,
               .to_dense = args.to_format == TUFF_SPARSE_DENSE,
               .by_column = csc,
               .size = dtype_size(args.dtype),
               .index_bytes = dtype_size(args.index_type),
               .majors = csc ? args.columns : args.rows,
               .minors = csc ? args.rows : args.columns,
               .entries = 0,
               .capacity = 0,
               .offsets = {},
               .major = {},
               .minor = buffer(csc ? args.to_rows : args.to_columns),
               .values = buffer(args.to_values),
               .result_bytes = dtype_size(args.index_type)};
  c.entries = c.from_dense ? args.rows * args.columns : c.majors == 0 || c.minors == 0 ? 0 : args.nnz;
  c.capacity = c.to_dense ? c.entries : args.capacity;
  if (args.to_format == TUFF_SPARSE_COO) {
    c.major = buffer(args.to_rows);
  } else {
    c.offsets = buffer(csc ? args.to_columns : args.to_rows);
  }

  const uint64_t list = c.entries * 4;
  // The source's lines, as rows of a matrix in CSR, and whether they are the result's minor numbers.
  const bool offsets = args.from_format == TUFF_SPARSE_CSR || args.from_format == TUFF_SPARSE_CSC;
  const bool ordered = (args.from_format == TUFF_SPARSE_CSR && csc) || (args.from_format == TUFF_SPARSE_CSC && !csc);
  Merge merge{};
  MergeCut cut{};
  ScratchLayout layout;
  uint64_t memory_bytes = 0;
  const bool sums = !c.from_dense && c.capacity != 0;
  if (sums) {
    merge = sums_of(c);
    cut = cut_merge(recorder, merge);
    memory_bytes = merge_memory(merge, cut);
  }
  const uint64_t memory_at = layout.add(memory_bytes), flags_at = layout.add(list);
  const uint64_t lists = c.from_dense ? 0 : list, second = ordered ? 0 : lists;
  const uint64_t major_at = layout.add(lists), minor_at = layout.add(lists), keys_at = layout.add(lists),
                 order_at = layout.add(lists), picked_at = layout.add(second), place_at = layout.add(second);
  const uint64_t run_bytes = c.from_dense ? 0 : (c.capacity + 1) * 4, runs_at = layout.add(run_bytes);
  const uint64_t dense_offsets = c.to_dense ? (args.rows + 1) * 4 : 0, dense_minor = c.to_dense ? c.capacity * 4 : 0,
                 dense_values = c.to_dense ? c.capacity * c.size : 0;
  const uint64_t dense_offsets_at = layout.add(dense_offsets), dense_minor_at = layout.add(dense_minor),
                 dense_values_at = layout.add(dense_values);
  const Buffer memory = recorder.scratch(std::max<uint64_t>(layout.bytes(), 256), Scratch::outermost);
  const Buffer flags = part_of(memory, flags_at, list), major = part_of(memory, major_at, lists),
               minor = part_of(memory, minor_at, lists), keys = part_of(memory, keys_at, lists),
               order = part_of(memory, order_at, lists), picked = part_of(memory, picked_at, second),
               place = part_of(memory, place_at, second), runs = part_of(memory, runs_at, run_bytes);
  if (c.to_dense) {
    c.offsets = part_of(memory, dense_offsets_at, dense_offsets);
    c.minor = part_of(memory, dense_minor_at, dense_minor);
    c.values = part_of(memory, dense_values_at, dense_values);
    c.result_bytes = 4;
  }

  Sorted sorted{&keys, &order, &minor};
  if (!c.from_dense && c.entries != 0) {
    const bool columns = args.from_format == TUFF_SPARSE_CSC;  // the source's lines are columns
    const Buffer& rows_to = csc ? minor : major;
    const Buffer& columns_to = csc ? major : minor;
    const Entries entries{kLabel,
                          c.index_bytes,
                          offsets,
                          columns ? args.from_columns : args.from_rows,
                          columns ? args.from_rows : args.from_columns,
                          columns ? args.columns : args.rows,
                          columns ? args.rows : args.columns,
                          c.entries};
    record_keys(recorder, entries, columns ? Keys{&columns_to, &rows_to} : Keys{&rows_to, &columns_to});
    if (ordered) {
      record_order(recorder, major, c.entries, keys, order);
    } else {
      record_order(recorder, minor, c.entries, keys, place);  // the sorted minor numbers are not needed
      record_pick(recorder, major, place, c.entries, picked);
      record_order(recorder, picked, c.entries, keys, major);  // the major numbers are not needed any more
      record_pick(recorder, place, major, c.entries, order);
    }
  }
  if (c.entries != 0) record_flags(c, sorted, flags);
  if (c.capacity != 0 || args.count != nullptr) record_take(c, sorted, flags, runs);
  if (sums) {
    merge.offsets = &runs, merge.permutation = &order;
    record_merge(recorder, merge, cut, part_of(memory, memory_at, memory_bytes));
  }
  if (c.offsets.bytes != 0 && !(c.to_dense && c.entries == 0)) {
    record_offsets(recorder, {kLabel, &keys, &flags, &c.offsets, c.result_bytes, c.entries, c.majors, c.minors,
                              c.from_dense && c.entries != 0});
  }
  if (c.to_dense) record_dense(c);
}

}  // namespace

void record_sparse_convert(Recorder& recorder, const SparseConvertArgs& args) {
  require_type(recorder.traits(), args.dtype);
  const bool dense = args.from_format == TUFF_SPARSE_DENSE || args.to_format == TUFF_SPARSE_DENSE;
  require_numbers(args.rows, "rows"), require_numbers(args.columns, "columns");
  if (dense) require_numbers(args.rows * args.columns, "rows * columns");
  if (args.from_format != TUFF_SPARSE_DENSE) require_numbers(args.nnz, "nnz");
  if (args.to_format != TUFF_SPARSE_DENSE && args.capacity >= kMost) {
    fail(TUFF_ERROR_UNSUPPORTED, "capacity is {}: at most 2^31 - 2 on a device", args.capacity);
  }
  if (args.to_format == TUFF_SPARSE_DENSE && args.rows * args.columns == 0) {  // every index is out of range
    if (args.count != nullptr) record_fill(recorder, *args.count, 0, sizeof(int64_t), {});
    return;
  }
  record(recorder, args);
}

}  // namespace tuff
