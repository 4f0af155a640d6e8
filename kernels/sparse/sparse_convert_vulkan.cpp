// Planner of conversions. The entries are sorted by the result's major number (its column in CSC, otherwise its row)
// and then by the minor one: by two stable sorts, the minor number first, or by one if they are ordered by it already.
// Then
//
//   flags     1 where an entry differs from the one before, and their running sums: the place of each in the result
//   take      each entry that begins a place writes it to the result
//   merge     adds the entries of each place (sparse_merge.comp, with a row for each place)
//   offsets   each line of the result looks up how many places come before it
//
// A dense matrix has an entry for each element, in order, and flags where it is not zero. A dense result is looked up
// in a result in CSR, in scratch memory; one in BSR is made from COO. The elements of a source in BSR are entries
// (sparse_bsr_vulkan.cpp).
#include <algorithm>

#include "kernels/common/check.hpp"
#include "kernels/memory/memory.hpp"
#include "kernels/sparse/sparse_plan.hpp"
#include "shaders/sparse_dense.hpp"

namespace tuff {
namespace {

using namespace sparse;

constexpr const char* kLabel = "sparse_convert";

// The result is made from another one, in scratch memory: a dense one from CSR, one in BSR from COO.
bool by_scratch(const SparseConvertArgs& args) {
  return args.to_format == TUFF_SPARSE_DENSE || args.to_format == TUFF_SPARSE_BSR;
}

uint64_t dense_span(const SparseConvertArgs& args, uint64_t ld) { return Dense{args.rows, args.columns, ld, 0}.one(); }

// The result as a matrix in CSR, COO or CSC; a dense one is made from CSR and one in BSR from COO, whose buffers are in
// scratch memory.
Result result_of(const SparseConvertArgs& args) {
  const auto buffer = [](const Buffer* given) { return given != nullptr ? *given : Buffer{}; };
  const bool csc = args.to_format == TUFF_SPARSE_CSC, dense = args.from_format == TUFF_SPARSE_DENSE;
  Result r{};
  r.label = kLabel;
  r.dtype = args.dtype;
  r.from_dense = dense;
  r.majors = csc ? args.columns : args.rows, r.minors = csc ? args.rows : args.columns;
  r.entries = dense                            ? args.rows * args.columns
              : r.majors == 0 || r.minors == 0 ? 0
                                               : args.nnz * args.from_blocks.elements();
  r.count = args.to_format == TUFF_SPARSE_BSR ? nullptr : args.count, r.source = args.from_values;
  r.source_span = dense ? dense_span(args, args.from_ld) : 0;
  r.major_stride = csc ? 1 : args.from_ld, r.minor_stride = csc ? args.from_ld : 1;
  if (by_scratch(args)) {
    r.index_bytes = 4, r.capacity = r.entries;
    r.places = args.to_format == TUFF_SPARSE_BSR && args.capacity == 0;  // blocks are only counted
    return r;
  }
  r.index_bytes = dtype_size(args.index_type), r.capacity = args.capacity;
  r.minor = buffer(csc ? args.to_rows : args.to_columns);
  r.values = buffer(args.to_values);
  (args.to_format == TUFF_SPARSE_COO ? r.major : r.offsets) = buffer(csc ? args.to_columns : args.to_rows);
  return r;
}

// The lists of entries in scratch memory, of 32 bits for each.
struct Lists {
  bool ordered;  // the source's lines are the result's minor numbers: one sort is enough
  uint64_t list, second, blocks;
  uint64_t major_at, minor_at, keys_at, order_at, picked_at, place_at;
  uint64_t block_rows_at, block_columns_at;  // of a source in BSR
};

Lists place_lists(const SparseConvertArgs& args, const Result& r, ScratchLayout& layout) {
  Lists lists{};
  const bool csc = args.to_format == TUFF_SPARSE_CSC;
  lists.ordered = (args.from_format == TUFF_SPARSE_CSR && csc) || (args.from_format == TUFF_SPARSE_CSC && !csc);
  lists.list = r.from_dense ? 0 : r.entries * 4, lists.second = lists.ordered ? 0 : lists.list;
  lists.major_at = layout.add(lists.list), lists.minor_at = layout.add(lists.list);
  lists.keys_at = layout.add(lists.list), lists.order_at = layout.add(lists.list);
  lists.picked_at = layout.add(lists.second), lists.place_at = layout.add(lists.second);
  lists.blocks = args.from_format == TUFF_SPARSE_BSR && r.entries != 0 ? args.nnz * 4 : 0;
  lists.block_rows_at = layout.add(lists.blocks), lists.block_columns_at = layout.add(lists.blocks);
  return lists;
}

// Sorts the entries of a source that is not dense by major and then minor number.
void record_sorts(Recorder& recorder, const SparseConvertArgs& args, const Lists& lists, const Buffer& memory,
                  uint64_t entries) {
  const Buffer major = part_of(memory, lists.major_at, lists.list), minor = part_of(memory, lists.minor_at, lists.list),
               keys = part_of(memory, lists.keys_at, lists.list), order = part_of(memory, lists.order_at, lists.list),
               picked = part_of(memory, lists.picked_at, lists.second),
               place = part_of(memory, lists.place_at, lists.second);
  const bool csc = args.to_format == TUFF_SPARSE_CSC;
  const bool columns = args.from_format == TUFF_SPARSE_CSC;  // the source's lines are columns
  const uint64_t majors = csc ? args.columns : args.rows, minors = csc ? args.rows : args.columns;
  const Buffer& rows_to = csc ? minor : major;
  const Buffer& columns_to = csc ? major : minor;
  const Blocks& blocks = args.from_blocks;
  const Entries source{kLabel,
                       dtype_size(args.index_type),
                       args.from_format != TUFF_SPARSE_COO,
                       columns ? args.from_columns : args.from_rows,
                       columns ? args.from_rows : args.from_columns,
                       (columns ? args.columns : args.rows) / blocks.rows,
                       (columns ? args.rows : args.columns) / blocks.columns,
                       args.nnz};
  if (args.from_format == TUFF_SPARSE_BSR) {
    const Buffer block_rows = part_of(memory, lists.block_rows_at, lists.blocks),
                 block_columns = part_of(memory, lists.block_columns_at, lists.blocks);
    record_expand(recorder, blocks, source, {&block_rows, &block_columns}, {&rows_to, &columns_to});
  } else {
    record_keys(recorder, source, columns ? Keys{&columns_to, &rows_to} : Keys{&rows_to, &columns_to});
  }
  if (lists.ordered) {
    record_order(recorder, major, entries, majors, keys, order);
    return;
  }
  record_sorted(recorder, kLabel, major, minor, majors, minors, entries, {&keys, &order, &picked, &place});
}

void record_dense(Recorder& recorder, const SparseConvertArgs& args, const Result& r) {
  const uint64_t n = args.rows * args.columns, span = dense_span(args, args.to_ld), size = dtype_size(args.dtype);
  const Items items = items_of(recorder, n);
  const bool some = r.capacity != 0;
  KernelRequest kernel = shaders::SparseDense::request({.run = items.fixed, .some = some, .type = args.dtype});
  kernel.streaming().constant(0, items.workgroup).wide(needs_wide(span));
  Dispatch dispatch(kLabel);
  dispatch.operand(some ? &r.offsets : nullptr, 0, (args.rows + 1) * 4, Access::read)
      .operand(some ? &r.minor : nullptr, 0, r.capacity * 4, Access::read)
      .operand(some ? &r.values : nullptr, 0, r.capacity * size, Access::read)
      .operand(args.to_values, 0, span * size, Access::write)
      .push(shaders::SparseDense::Push{.n = static_cast<uint32_t>(n),
                                       .run = static_cast<uint32_t>(items.run),
                                       .columns = static_cast<uint32_t>(args.columns),
                                       .ld = low_word(args.to_ld),
                                       .ld_high = high_word(args.to_ld)})
      .groups_linear(items.groups, recorder.traits())
      .work(static_cast<double>(n * (size + 8)), static_cast<double>(n * 8));
  recorder.dispatch(kernel, dispatch);
}

// The result in BSR, from `coo`.
BlocksResult blocks_of(const SparseConvertArgs& args, const Result& coo) {
  return {args.dtype,     dtype_size(args.index_type),
          args.rows,      args.columns,
          coo.capacity,   coo.major,
          coo.minor,      coo.values,
          args.to_blocks, args.capacity,
          args.to_rows,   args.to_columns,
          args.to_values, args.count};
}

void record(Recorder& recorder, const SparseConvertArgs& args) {
  Result result = result_of(args);
  const bool in_scratch = by_scratch(args), some = result.entries != 0, to_blocks = args.to_format == TUFF_SPARSE_BSR;
  ScratchLayout layout;
  const ResultCut cut = cut_result(recorder, result, layout);
  const Lists lists = place_lists(args, result, layout);
  const BlocksCut blocks = to_blocks ? cut_blocks(recorder, blocks_of(args, result), layout) : BlocksCut{};
  const uint64_t minor = in_scratch ? result.capacity * 4 : 0,
                 lines = to_blocks            ? minor
                         : in_scratch && some ? (args.rows + 1) * 4
                                              : 0,
                 values = in_scratch ? result.capacity * dtype_size(args.dtype) : 0;
  const uint64_t lines_at = layout.add(lines), minor_at = layout.add(minor), values_at = layout.add(values);
  const Buffer memory = recorder.scratch(std::max<uint64_t>(layout.bytes(), 256), Scratch::outermost);
  if (in_scratch) {
    (to_blocks ? result.major : result.offsets) = part_of(memory, lines_at, lines);
    result.minor = part_of(memory, minor_at, minor);
    result.values = part_of(memory, values_at, values);
  }
  const Buffer keys = part_of(memory, lists.keys_at, lists.list), order = part_of(memory, lists.order_at, lists.list),
               by_place = part_of(memory, lists.minor_at, lists.list);
  if (!result.from_dense && some) record_sorts(recorder, args, lists, memory, result.entries);
  record_result(recorder, result, cut, memory, {&keys, &order, &by_place});
  if (args.to_format == TUFF_SPARSE_DENSE) record_dense(recorder, args, result);
  if (to_blocks) record_blocks(recorder, blocks_of(args, result), blocks, memory);
}

}  // namespace

void record_sparse_convert(Recorder& recorder, const SparseConvertArgs& args) {
  require_type(recorder.traits(), args.dtype);
  const bool dense = args.from_format == TUFF_SPARSE_DENSE || args.to_format == TUFF_SPARSE_DENSE;
  require_numbers(args.rows, "rows"), require_numbers(args.columns, "columns");
  if (dense) require_numbers(args.rows * args.columns, "rows * columns");
  if (args.from_format != TUFF_SPARSE_DENSE) {
    require_numbers(args.nnz, "nnz");
    require_numbers(args.nnz * args.from_blocks.elements(), "nnz, in elements,");
  }
  if (args.to_format == TUFF_SPARSE_BSR && args.capacity != 0) {
    require_numbers(checked_mul(args.capacity, args.to_blocks.elements(), "capacity"), "capacity, in elements,");
  }
  if (args.to_format != TUFF_SPARSE_DENSE && args.capacity >= kMax) {
    fail(TUFF_ERROR_UNSUPPORTED, "capacity is {}: at most 2^31 - 2 on a device", args.capacity);
  }
  if (args.to_format == TUFF_SPARSE_DENSE && args.rows * args.columns == 0) {  // every index is out of range
    if (args.count != nullptr) record_fill(recorder, *args.count, 0, sizeof(int64_t), {});
    return;
  }
  record(recorder, args);
}

}  // namespace tuff
