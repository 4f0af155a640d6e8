// What the planners of sparse matrices share.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/common/scratch_parts.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/sparse/sparse.hpp"
#include "planning/arithmetic.hpp"
#include "planning/recorder.hpp"

namespace tuff::sparse {

// Numbers of 32 bits that count entries, rows and columns stay below this.
constexpr uint64_t kMax = (uint64_t{1} << 31) - 1;

// Numbers of 64 bits for a kernel, as low and high words (sums.glsl).
template <size_t N>
struct NumberTable {
  explicit NumberTable(const std::array<uint64_t, N>& numbers) {
    for (size_t i = 0; i < N; ++i) {
      words[2 * i] = low_word(numbers[i]);
      words[2 * i + 1] = high_word(numbers[i]);
    }
  }
  std::array<uint32_t, 2 * N> words;
};

// The bits of a value that a kernel computes with.
std::array<uint32_t, 2> scalar_words(double value, int32_t dtype);

StreamDevice device_of(const Recorder& recorder);

// The blocks of a matrix in BSR as a product takes them, whose rows may be the columns of the matrix: extents, and
// elements of a block from one row or column to the next.
struct ProductBlocks {
  uint64_t rows = 1, columns = 1, row_stride = 1, column_stride = 1;
  uint64_t elements() const { return rows * columns; }
};

// A product, or sums of the entries of rows, by the merge path (sparse_merge.comp, sparse_rows.comp; with blocks,
// sparse_blocks.comp, where rows, extent and nnz count blocks, and strides elements).
struct Merge {
  const char* label;
  int32_t dtype;
  uint64_t index_bytes;  // of offsets and indices
  uint64_t rows, nnz, extent;
  const Buffer *offsets, *indices, *values;
  const Buffer* permutation;  // null: entries are in the order of the rows
  const Buffer* b;            // null: sums of entries
  const Buffer* c;
  uint64_t b_row, b_column, c_row, c_column;  // strides
  uint64_t stride_values, stride_b, stride_c;
  uint64_t n, batch_count;
  uint64_t values_span, b_span, c_span;  // elements of the operands
  double alpha, beta;
  ProductBlocks block;

  bool has_blocks() const { return block.elements() != 1; }
};

// How the merge path is cut: a part is a lane's (sparse_merge.comp; sparse_blocks.comp), a workgroup's
// (sparse_rows.comp, for CPU devices; sparse_tiles.comp, for few columns on GPUs), or a subgroup's
// (sparse_block_rows.comp, likewise).
enum class Share : uint8_t { lanes, blocks, rows, tiles, block_rows };
struct MergeCut {
  Share share;
  uint64_t width;    // columns of a part; of sparse_blocks.comp its sums, in `tall` rows
  uint64_t tall;     // 0 without blocks, and of sparse_block_rows.comp
  uint64_t blocks;   // of these, of the whole batch; of sparse_block_rows.comp the list's columns
  uint64_t at_once;  // blocks of one dispatch
  uint64_t chunk, parts;
  uint64_t columns(uint64_t count) const { return count * width; }
  bool of_lanes() const { return share == Share::lanes || share == Share::blocks; }
  // Whether sparse_runs.comp adds what the parts leave, from one list.
  bool has_runs() const { return share == Share::tiles || share == Share::block_rows; }
};
MergeCut cut_merge(const Recorder& recorder, const Merge& merge);
// Bytes of the lists of partial sums.
uint64_t merge_memory(const Merge& merge, const MergeCut& cut);
void record_merge(Recorder& recorder, const Merge& merge, const MergeCut& cut, const Buffer& memory);

// Columns of B up to which GPUs have a kernel of their own.
constexpr uint64_t kFewColumns = 8;
// Bytes of a list of partial sums, and lanes of a dispatch.
constexpr uint64_t kMaxList = 1u << 28, kMaxLanes = 1u << 30;

struct PartialSums {
  Buffer keys, values;
  uint64_t entries;
};

// What the kernels of a product have in common: the table T, and the operands, of which `columns` are those of the
// list.
using MergeTable = NumberTable<14>;
MergeTable table_of(const Merge& merge);
uint64_t value_bytes(const Merge& merge);  // of a partial sum
bool is_wide(const Merge& merge, const MergeCut& cut);
void add_operands(Recorder& recorder, Dispatch& dispatch, const Merge& merge, const PartialSums& list,
                  uint64_t columns);

// Products with blocks and few columns on GPUs (sparse_block_rows_vulkan.cpp); false: the kernel does not compute it.
bool cut_block_rows(const Recorder& recorder, const Merge& merge, MergeCut& cut);
void dispatch_block_rows(Recorder& recorder, const Merge& merge, const MergeCut& cut, const PartialSums& list);

// Entries with numbers of 32 bits: rows and columns, where an entry out of range has `rows` and `columns`.
struct Keys {
  const Buffer *rows, *columns;
};
// The entries of a matrix in COO (row indices), or CSR (row offsets).
struct Entries {
  const char* label;
  uint64_t index_bytes;
  bool offsets;
  const Buffer *rows, *columns;
  uint64_t row_count, column_count, nnz;
};
void record_keys(Recorder& recorder, const Entries& entries, const Keys& keys);

// Sorts n numbers of 32 bits that are at most `most`, stably: `sorted` receives them and `permutation` where each was.
void record_order(Recorder& recorder, const Buffer& numbers, uint64_t n, uint64_t most, const Buffer& sorted,
                  const Buffer& permutation);

// Offsets of sorted numbers (sparse_offsets.comp). flags: null, or the running sums of flags.
struct Offsets {
  const char* label;
  const Buffer *keys, *flags, *offsets;
  uint64_t index_bytes;
  uint64_t n, majors, minors;
  bool dense;
};
void record_offsets(Recorder& recorder, const Offsets& offsets);

// A matrix in CSR or COO (major numbers are rows) or CSC (columns) that entries become, or the elements of a dense
// matrix that are not zero (sparse_result_vulkan.cpp).
struct Result {
  const char* label;
  int32_t dtype;         // of the entries' values, and of the result's
  uint64_t index_bytes;  // of the result's numbers
  uint64_t majors, minors;
  uint64_t entries;   // of the source
  uint64_t capacity;  // of the result
  // Offsets of the major numbers, or these numbers (without bytes: not wanted); minor numbers; values.
  Buffer offsets, major, minor, values;
  const Buffer* count;   // null: not wanted
  const Buffer* source;  // the entries' values, or the dense matrix
  bool from_dense;
  bool places;                                       // values are not written
  uint64_t source_span, major_stride, minor_stride;  // of the dense matrix, in elements
};

// What sorting entries leaves: major numbers in order, where each entry was, and minor numbers by where they were.
struct Sorted {
  const Buffer *keys, *order, *minor;
};

// The scratch memory of record_result(), which depends on sizes only.
struct ResultCut {
  bool sums;  // values are sums of entries
  Merge merge;
  MergeCut cut;
  uint64_t flags, runs, memory;           // bytes
  uint64_t flags_at, runs_at, memory_at;  // places
};
ResultCut cut_result(const Recorder& recorder, const Result& result, ScratchLayout& layout);
// Marks where an entry of the result begins, counts the marks, and writes each entry. sorted: unused if from_dense.
void record_result(Recorder& recorder, const Result& result, const ResultCut& cut, const Buffer& memory,
                   const Sorted& sorted);

// Lists of 32 bits for each entry, in which record_sorted() sorts.
struct SortLists {
  const Buffer *keys, *order, *picked, *place;
};
// Sorts entries by major and then minor number, by two stable sorts. `keys` receives the major numbers in order and
// `order` where each entry was; `major` is used for other numbers.
void record_sorted(Recorder& recorder, const char* label, const Buffer& major, const Buffer& minor, uint64_t majors,
                   uint64_t minors, uint64_t entries, const SortLists& lists);

// The rows and columns of all elements of blocks, from those of the blocks, `source`; both lists are written.
void record_expand(Recorder& recorder, const Blocks& blocks, const Entries& source, const Keys& of_blocks,
                   const Keys& of_elements);

// A matrix in BSR that one in COO becomes, which is sorted and has each place once, in scratch memory with numbers of
// 32 bits (sparse_bsr_vulkan.cpp).
struct BlocksResult {
  int32_t dtype;
  uint64_t index_bytes;  // of the result
  uint64_t rows, columns, entries;
  Buffer entry_rows, entry_columns, entry_values;
  Blocks blocks;
  uint64_t capacity;
  const Buffer *to_rows, *to_columns, *to_values, *count;
};
struct BlocksCut {
  ResultCut result;
  uint64_t list;  // bytes
  std::array<uint64_t, 6> lists_at;
};
BlocksCut cut_blocks(const Recorder& recorder, const BlocksResult& result, ScratchLayout& layout);
void record_blocks(Recorder& recorder, const BlocksResult& result, const BlocksCut& cut, const Buffer& memory);

// to[i] = from[places[i]], of n numbers of 32 bits.
void record_pick(Recorder& recorder, const char* label, const Buffer& from, const Buffer& places, uint64_t n,
                 const Buffer& to);

// The run of a kernel whose lanes each process items one after another, and the dispatch's workgroups.
struct Items {
  uint64_t run, groups;
  int64_t fixed;  // TUFF_RUN
  uint32_t workgroup;
};
Items items_of(const Recorder& recorder, uint64_t n);

void require_numbers(uint64_t count, const char* name);

}  // namespace tuff::sparse
