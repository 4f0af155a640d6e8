// Planner of what conversions and products of sparse matrices have in common: sorted entries become a matrix, in which
// those of the same place are one, their sum.
#include <algorithm>

#include "kernels/scan/scan.hpp"
#include "kernels/sparse/sparse_plan.hpp"
#include "shaders/sparse_flags.hpp"
#include "shaders/sparse_pick.hpp"
#include "shaders/sparse_take.hpp"

namespace tuff::sparse {
namespace {

void record_flags(Recorder& recorder, const Result& r, const Sorted& sorted, const Buffer& flags) {
  const Items items = items_of(recorder, r.entries);
  const uint64_t span = r.from_dense ? r.source_span : 0, list = r.from_dense ? 0 : r.entries * 4;
  KernelRequest kernel = shaders::SparseFlags::request({.dense = r.from_dense, .run = items.fixed, .type = r.dtype});
  kernel.streaming().constant(0, items.workgroup).wide(needs_wide(span));
  Dispatch dispatch(r.label);
  dispatch.operand(r.from_dense ? nullptr : sorted.keys, 0, list, Access::read)
      .operand(r.from_dense ? nullptr : sorted.order, 0, list, Access::read)
      .operand(r.from_dense ? nullptr : sorted.minor, 0, list, Access::read)
      .operand(r.from_dense ? r.source : nullptr, 0, span * dtype_size(r.dtype), Access::read)
      .operand(&flags, 0, r.entries * 4, Access::write)
      .push(shaders::SparseFlags::Push{.n = static_cast<uint32_t>(r.entries),
                                       .run = static_cast<uint32_t>(items.run),
                                       .majors = static_cast<uint32_t>(r.majors),
                                       .minors = static_cast<uint32_t>(r.minors),
                                       .major_stride = low_word(r.major_stride),
                                       .major_stride_high = high_word(r.major_stride),
                                       .minor_stride = low_word(r.minor_stride),
                                       .minor_stride_high = high_word(r.minor_stride)})
      .groups_linear(items.groups, recorder.traits())
      .work(static_cast<double>(r.entries * 16), static_cast<double>(r.entries));
  recorder.dispatch(kernel, dispatch);
  const uint64_t shape = r.entries;
  record_scan(recorder, {ScanOp::sum, TUFF_I32, &flags, &flags, &shape, 1, 0, false, false});
}

void record_take(Recorder& recorder, const Result& r, const Sorted& sorted, const Buffer& flags, const Buffer& runs) {
  const Items items = items_of(recorder, std::max(r.entries, r.capacity + 1));
  const bool some = r.entries != 0, lists = some && !r.from_dense;
  const uint64_t span = r.from_dense && some ? r.source_span : 0, list = r.entries * 4;
  const uint64_t numbers = r.capacity * r.index_bytes, size = dtype_size(r.dtype);
  const bool major = r.major.bytes != 0 && numbers != 0;
  KernelRequest kernel = shaders::SparseTake::request({.count = r.count != nullptr,
                                                       .dense = r.from_dense,
                                                       .index_bytes = r.index_bytes,
                                                       .major = major,
                                                       .room = r.capacity != 0,
                                                       .run = items.fixed,
                                                       .some = some,
                                                       .type = r.dtype});
  kernel.streaming().constant(0, items.workgroup).wide(needs_wide(span));
  Dispatch dispatch(r.label);
  const auto read = [&](bool is, const Buffer* buffer, uint64_t bytes) {
    dispatch.operand(is ? buffer : nullptr, 0, is ? bytes : 0, Access::read);
  };
  const auto write = [&](bool is, const Buffer* buffer, uint64_t bytes) {
    dispatch.operand(is ? buffer : nullptr, 0, is ? bytes : 0, Access::write);
  };
  read(lists, sorted.keys, list);
  read(lists, sorted.order, list);
  read(lists, sorted.minor, list);
  read(span != 0, r.source, span * size);
  read(some, &flags, list);
  write(major, &r.major, numbers);
  write(numbers != 0, &r.minor, numbers);
  write(r.from_dense && r.capacity != 0, &r.values, r.capacity * size);
  write(!r.from_dense, &runs, (r.capacity + 1) * 4);
  write(r.count != nullptr, r.count, 8);
  dispatch
      .push(shaders::SparseTake::Push{.n = static_cast<uint32_t>(r.entries),
                                      .run = static_cast<uint32_t>(items.run),
                                      .majors = static_cast<uint32_t>(r.majors),
                                      .minors = static_cast<uint32_t>(r.minors),
                                      .capacity = static_cast<uint32_t>(r.capacity),
                                      .major_stride = low_word(r.major_stride),
                                      .major_stride_high = high_word(r.major_stride),
                                      .minor_stride = low_word(r.minor_stride),
                                      .minor_stride_high = high_word(r.minor_stride)})
      .groups_linear(items.groups, recorder.traits())
      .work(static_cast<double>(r.entries * 8 + r.capacity * 16), static_cast<double>(r.entries + r.capacity));
  recorder.dispatch(kernel, dispatch);
}

// The sums of the entries of each place: a product with ones of a matrix that has a row for each place.
// Without buffers, which may be in scratch memory.
Merge sums_of(const Result& r) {
  Merge merge{};
  merge.label = r.label;
  merge.dtype = r.dtype;
  merge.index_bytes = 4;
  merge.rows = r.capacity, merge.nnz = r.entries;
  merge.b_row = merge.b_column = 0, merge.c_row = 1, merge.c_column = 0;
  merge.n = merge.batch_count = 1;
  merge.values_span = r.entries, merge.c_span = r.capacity;
  merge.alpha = 1, merge.beta = 0;
  return merge;
}

}  // namespace

void record_pick(Recorder& recorder, const char* label, const Buffer& from, const Buffer& places, uint64_t n,
                 const Buffer& to) {
  const Items items = items_of(recorder, n);
  KernelRequest kernel = shaders::SparsePick::request({.run = items.fixed});
  kernel.streaming().constant(0, items.workgroup);
  Dispatch dispatch(label);
  dispatch.operand(&from, 0, n * 4, Access::read)
      .operand(&places, 0, n * 4, Access::read)
      .operand(&to, 0, n * 4, Access::write)
      .push(shaders::SparsePick::Push{.n = static_cast<uint32_t>(n), .run = static_cast<uint32_t>(items.run)})
      .groups_linear(items.groups, recorder.traits())
      .work(static_cast<double>(n * 12), 0);
  recorder.dispatch(kernel, dispatch);
}

void record_sorted(Recorder& recorder, const char* label, const Buffer& major, const Buffer& minor, uint64_t majors,
                   uint64_t minors, uint64_t entries, const SortLists& lists) {
  // The sorted minor numbers are not needed.
  record_order(recorder, minor, entries, minors, *lists.keys, *lists.place);
  record_pick(recorder, label, major, *lists.place, entries, *lists.picked);
  record_order(recorder, *lists.picked, entries, majors, *lists.keys, major);  // nor the major numbers any more
  record_pick(recorder, label, *lists.place, major, entries, *lists.order);
}

ResultCut cut_result(const Recorder& recorder, const Result& result, ScratchLayout& layout) {
  ResultCut cut{};
  cut.sums = !result.from_dense && !result.places && result.capacity != 0;
  if (cut.sums) {
    cut.merge = sums_of(result);
    cut.cut = cut_merge(recorder, cut.merge);
    cut.memory = merge_memory(cut.merge, cut.cut);
  }
  cut.flags = result.entries * 4, cut.runs = result.from_dense ? 0 : (result.capacity + 1) * 4;
  cut.memory_at = layout.add(cut.memory), cut.flags_at = layout.add(cut.flags), cut.runs_at = layout.add(cut.runs);
  return cut;
}

void record_result(Recorder& recorder, const Result& result, const ResultCut& cut, const Buffer& memory,
                   const Sorted& sorted) {
  const Buffer flags = part_of(memory, cut.flags_at, cut.flags), runs = part_of(memory, cut.runs_at, cut.runs);
  if (result.entries != 0) record_flags(recorder, result, sorted, flags);
  if (result.capacity != 0 || result.count != nullptr) record_take(recorder, result, sorted, flags, runs);
  if (cut.sums) {
    Merge merge = cut.merge;
    merge.offsets = &runs, merge.permutation = sorted.order;
    merge.values = result.source, merge.c = &result.values;
    record_merge(recorder, merge, cut.cut, part_of(memory, cut.memory_at, cut.memory));
  }
  if (result.offsets.bytes == 0) return;
  record_offsets(recorder, {result.label, sorted.keys, &flags, &result.offsets, result.index_bytes, result.entries,
                            result.majors, result.minors, result.from_dense && result.entries != 0});
}

}  // namespace tuff::sparse
