// What conversions from and to BSR need besides those of entries (sparse_convert_vulkan.cpp). The elements of blocks
// become entries in the order in which they are stored, so their values stay where they are:
//
//   keys, expand     row and column of each block, then of each element
//
// and blocks are made from a matrix in COO in scratch memory, which is sorted and has each place once:
//
//   keys, divide     row and column of each entry, then of its block; sorted, as those of entries are
//   result           the columns of blocks, offsets, their number, and which of the sorted entries each block has
//   assemble         each element of a block is looked up in the block's entries
#include <algorithm>

#include "kernels/sparse/sparse_plan.hpp"
#include "shaders/sparse_assemble.hpp"
#include "shaders/sparse_divide.hpp"
#include "shaders/sparse_expand.hpp"

namespace tuff::sparse {
namespace {

void record_divide(Recorder& recorder, const Blocks& blocks, uint64_t n, const Keys& keys) {
  const Items items = items_of(recorder, n);
  KernelRequest kernel = shaders::SparseDivide::request({.run = items.fixed});
  kernel.streaming().constant(0, items.workgroup);
  Dispatch dispatch("sparse_convert");
  dispatch.operand(keys.rows, 0, n * 4, Access::read_write)
      .operand(keys.columns, 0, n * 4, Access::read_write)
      .push(shaders::SparseDivide::Push{.n = static_cast<uint32_t>(n),
                                        .run = static_cast<uint32_t>(items.run),
                                        .block_rows = static_cast<uint32_t>(blocks.rows),
                                        .block_columns = static_cast<uint32_t>(blocks.columns)})
      .groups_linear(items.groups, recorder.traits())
      .work(static_cast<double>(n * 16), static_cast<double>(n * 2));
  recorder.dispatch(kernel, dispatch);
}

void record_assemble(Recorder& recorder, const BlocksResult& b, const Buffer& runs, const Buffer& order) {
  const uint64_t n = b.capacity * b.blocks.elements(), size = dtype_size(b.dtype), list = b.entries * 4;
  const Items items = items_of(recorder, n);
  const bool some = b.entries != 0;
  KernelRequest kernel = shaders::SparseAssemble::request({.run = items.fixed, .some = some, .type = b.dtype});
  kernel.streaming().constant(0, items.workgroup);
  Dispatch dispatch("sparse_convert");
  dispatch.operand(some ? &runs : nullptr, 0, (b.capacity + 1) * 4, Access::read)
      .operand(some ? &order : nullptr, 0, list, Access::read)
      .operand(some ? &b.entry_rows : nullptr, 0, list, Access::read)
      .operand(some ? &b.entry_columns : nullptr, 0, list, Access::read)
      .operand(some ? &b.entry_values : nullptr, 0, b.entries * size, Access::read)
      .operand(b.to_values, 0, n * size, Access::write)
      .push(shaders::SparseAssemble::Push{.n = static_cast<uint32_t>(n),
                                          .run = static_cast<uint32_t>(items.run),
                                          .block_rows = static_cast<uint32_t>(b.blocks.rows),
                                          .block_columns = static_cast<uint32_t>(b.blocks.columns),
                                          .row_stride = static_cast<uint32_t>(b.blocks.row_stride()),
                                          .column_stride = static_cast<uint32_t>(b.blocks.column_stride())})
      .groups_linear(items.groups, recorder.traits())
      .work(static_cast<double>(n * (size + 16)), static_cast<double>(n * 16));
  recorder.dispatch(kernel, dispatch);
}

Result result_of(const BlocksResult& b) {
  Result r{};
  r.label = "sparse_convert";
  r.dtype = b.dtype, r.index_bytes = b.index_bytes, r.places = true;
  r.majors = b.rows / b.blocks.rows, r.minors = b.columns / b.blocks.columns;
  r.entries = b.entries, r.capacity = b.capacity;
  r.offsets = *b.to_rows, r.count = b.count;
  if (b.capacity != 0) r.minor = *b.to_columns;
  return r;
}

}  // namespace

void record_expand(Recorder& recorder, const Blocks& blocks, const Entries& source, const Keys& of_blocks,
                   const Keys& of_elements) {
  const uint64_t n = source.nnz * blocks.elements();
  record_keys(recorder, source, of_blocks);
  const Items items = items_of(recorder, n);
  KernelRequest kernel = shaders::SparseExpand::request({.run = items.fixed});
  kernel.streaming().constant(0, items.workgroup);
  Dispatch dispatch(source.label);
  dispatch.operand(of_blocks.rows, 0, source.nnz * 4, Access::read)
      .operand(of_blocks.columns, 0, source.nnz * 4, Access::read)
      .operand(of_elements.rows, 0, n * 4, Access::write)
      .operand(of_elements.columns, 0, n * 4, Access::write)
      .push(shaders::SparseExpand::Push{.n = static_cast<uint32_t>(n),
                                        .run = static_cast<uint32_t>(items.run),
                                        .rows = static_cast<uint32_t>(source.row_count * blocks.rows),
                                        .columns = static_cast<uint32_t>(source.column_count * blocks.columns),
                                        .lines = static_cast<uint32_t>(source.row_count),
                                        .block_rows = static_cast<uint32_t>(blocks.rows),
                                        .block_columns = static_cast<uint32_t>(blocks.columns),
                                        .row_stride = static_cast<uint32_t>(blocks.row_stride()),
                                        .column_stride = static_cast<uint32_t>(blocks.column_stride())})
      .groups_linear(items.groups, recorder.traits())
      .work(static_cast<double>(n * 8), static_cast<double>(n * 8));
  recorder.dispatch(kernel, dispatch);
}

BlocksCut cut_blocks(const Recorder& recorder, const BlocksResult& b, ScratchLayout& layout) {
  BlocksCut cut{};
  cut.result = cut_result(recorder, result_of(b), layout);
  cut.list = b.entries * 4;
  for (uint64_t& at : cut.lists_at) at = layout.add(cut.list);
  return cut;
}

void record_blocks(Recorder& recorder, const BlocksResult& b, const BlocksCut& cut, const Buffer& memory) {
  const Result result = result_of(b);
  std::array<Buffer, 6> lists;
  for (size_t i = 0; i < lists.size(); ++i) lists[i] = part_of(memory, cut.lists_at[i], cut.list);
  auto& [rows, columns, keys, order, picked, place] = lists;
  if (b.entries != 0) {
    record_keys(recorder, {result.label, 4, false, &b.entry_rows, &b.entry_columns, b.rows, b.columns, b.entries},
                {&rows, &columns});
    record_divide(recorder, b.blocks, b.entries, {&rows, &columns});
    record_sorted(recorder, result.label, rows, columns, result.majors, result.minors, b.entries,
                  {&keys, &order, &picked, &place});
  }
  record_result(recorder, result, cut.result, memory, {&keys, &order, &columns});
  if (b.capacity == 0) return;
  record_assemble(recorder, b, part_of(memory, cut.result.runs_at, cut.result.runs), order);
}

}  // namespace tuff::sparse
