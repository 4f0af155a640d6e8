// Planner of products of sparse matrices with dense ones: the merge path in chunks (sparse_merge.comp; on CPU devices
// sparse_rows.comp; on GPUs sparse_tiles.comp for few columns; with blocks sparse_blocks.comp, on GPUs
// sparse_block_rows.comp for few columns), then the partial sums of rows that several chunks share, list by list
// (sparse_fold.comp; after the kernels for few columns by sparse_runs.comp).
// Where the product needs the columns of a matrix in CSR as rows, its entries are sorted by column first, and read
// through the permutation.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "kernels/common/check.hpp"
#include "kernels/sort/sort.hpp"
#include "kernels/sparse/sparse_plan.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "shaders/sparse_blocks.hpp"
#include "shaders/sparse_fold.hpp"
#include "shaders/sparse_keys.hpp"
#include "shaders/sparse_merge.hpp"
#include "shaders/sparse_offsets.hpp"
#include "shaders/sparse_rows.hpp"
#include "shaders/sparse_runs.hpp"
#include "shaders/sparse_tiles.hpp"

namespace tuff {
namespace sparse {
namespace {

// Steps of a lane on a CPU device: a lane's loops are bounded there (kernels/common/loop_limit.hpp), and those of eight
// lanes add up.
constexpr uint64_t kShortest = 64, kLongest = 4096;
// For a workgroup's share in sparse_rows.comp, whose loops run at most twice for each step.
constexpr uint64_t kShortestShare = 512, kLongestShare = 16384;
constexpr uint64_t kTileItems = 8;  // steps of an invocation of sparse_tiles.comp, whose workgroups have a column each
constexpr uint64_t kShortestGpu = 16, kLongestGpu = 1u << 20;
constexpr uint64_t kFoldChunk = 64;  // entries of a list that a lane adds
constexpr uint64_t kMaxLast = 256;   // entries of the last list, which one lane adds

// The entries of the lists, until one is short enough.
uint64_t first_list(const MergeCut& cut) { return 2 * cut.parts; }
uint64_t next_list(uint64_t entries) { return entries > kMaxLast ? 2 * ceil_div(entries, kFoldChunk) : 0; }

// Columns that the lanes of sparse_blocks.comp have, and how many parts there are beside one another in a matrix.
uint64_t across(const MergeCut& cut) { return cut.width / std::max<uint64_t>(cut.tall, 1); }
uint64_t matrix_blocks(const Merge& merge, const MergeCut& cut) {
  return ceil_div(merge.n, across(cut)) * (cut.tall == 0 ? 1 : ceil_div(merge.block.rows, cut.tall));
}

// Rows of a block that a lane takes: few rows beyond the block's, and many that share the elements of B.
uint64_t rows_of_lane(uint64_t rows) {
  const auto cost = [rows](uint64_t tall) { return ceil_div(rows, tall) * (tall + 1); };
  uint64_t best = 4;
  for (uint64_t tall = 3; tall != 0; --tall) {
    if (cost(tall) < cost(best)) best = tall;
  }
  return best;
}

// SparseMerge, SparseBlocks, SparseRows and SparseTiles have the same operands and parameters.
template <typename Shader>
void dispatch_parts(Recorder& recorder, const Merge& merge, const MergeCut& cut, uint64_t first, uint64_t count,
                    const PartialSums& list, KernelRequest kernel) {
  const StreamDevice device = device_of(recorder);
  const uint64_t lanes = cut.parts * count, size = dtype_size(merge.dtype);
  kernel.streaming().constant(0, device.workgroup).wide(is_wide(merge, cut));
  const auto alpha = scalar_words(merge.alpha, merge.dtype), beta = scalar_words(merge.beta, merge.dtype);
  Dispatch dispatch(merge.label);
  add_operands(recorder, dispatch, merge, list, cut.columns(count));
  dispatch
      .push(typename Shader::Push{.lanes = static_cast<uint32_t>(lanes),
                                  .blocks = static_cast<uint32_t>(count),
                                  .first = static_cast<uint32_t>(first),
                                  .matrix_blocks = static_cast<uint32_t>(matrix_blocks(merge, cut)),
                                  .n = static_cast<uint32_t>(merge.n),
                                  .chunk = static_cast<uint32_t>(cut.chunk),
                                  .alpha = {alpha[0], alpha[1]},
                                  .beta = {beta[0], beta[1]}})
      .groups_linear(cut.of_lanes() ? ceil_div(lanes, device.workgroup) : lanes, recorder.traits())
      .work(static_cast<double>(merge.nnz) * static_cast<double>(merge.block.elements() * size + merge.index_bytes) +
                static_cast<double>((merge.nnz + merge.rows) * count * size),
            2.0 * static_cast<double>(merge.nnz) * static_cast<double>(merge.block.columns * cut.columns(count)));
  log(TUFF_LOG_DISPATCH, "{} {}: {} chunks of {} steps, {} blocks of {} columns, groups of {}{}", merge.label,
      dtype_name(merge.dtype), cut.parts, cut.chunk, count, cut.width, device.workgroup,
      cut.share == Share::rows     ? " by rows"
      : cut.share == Share::tiles  ? " by tiles"
      : cut.share == Share::blocks ? " of blocks"
                                   : "");
  recorder.dispatch(kernel, dispatch);
}

void dispatch_merge(Recorder& recorder, const Merge& merge, const MergeCut& cut, uint64_t first, uint64_t count,
                    const PartialSums& list) {
  const bool empty = merge.nnz == 0, sums = merge.b == nullptr, permuted = merge.permutation != nullptr && !empty;
  if (cut.share == Share::tiles) {
    const uint64_t threads = device_of(recorder).workgroup;
    return dispatch_parts<shaders::SparseTiles>(recorder, merge, cut, first, count, list,
                                                shaders::SparseTiles::request({.index_bytes = merge.index_bytes,
                                                                               .items = cut.chunk / threads,
                                                                               .permuted = permuted,
                                                                               .sums = sums,
                                                                               .threads = threads,
                                                                               .type = merge.dtype}));
  }
  if (cut.share == Share::block_rows) return dispatch_block_rows(recorder, merge, cut, list);
  if (cut.share == Share::blocks) {
    return dispatch_parts<shaders::SparseBlocks>(
        recorder, merge, cut, first, count, list,
        shaders::SparseBlocks::request({.index_bytes = merge.index_bytes,
                                        .permuted = permuted,
                                        .tall = static_cast<int64_t>(cut.tall),
                                        .type = merge.dtype,
                                        .width = static_cast<int64_t>(across(cut))}));
  }
  if (cut.share == Share::lanes) {
    return dispatch_parts<shaders::SparseMerge>(recorder, merge, cut, first, count, list,
                                                shaders::SparseMerge::request({.empty = empty,
                                                                               .index_bytes = merge.index_bytes,
                                                                               .permuted = permuted,
                                                                               .sums = sums,
                                                                               .type = merge.dtype,
                                                                               .width = cut.width}));
  }
  KernelRequest kernel = shaders::SparseRows::request({.beta = merge.beta != 0,
                                                       .empty = empty,
                                                       .index_bytes = merge.index_bytes,
                                                       .permuted = permuted,
                                                       .sums = sums,
                                                       .type = merge.dtype,
                                                       .width = cut.width});
  const uint64_t size = dtype_size(merge.dtype);
  kernel.texels(0, merge.index_bytes).texels(1, merge.index_bytes).texels(2, size).texels(3, 4).texels(4, size);
  dispatch_parts<shaders::SparseRows>(recorder, merge, cut, first, count, list, kernel);
}

void dispatch_fold(Recorder& recorder, const Merge& merge, const MergeCut& cut, uint64_t first, uint64_t count,
                   const PartialSums& list, const PartialSums* next) {
  const StreamDevice device = device_of(recorder);
  const bool last = next == nullptr;
  const uint64_t chunk = last ? list.entries : kFoldChunk, columns = cut.columns(count), size = dtype_size(merge.dtype);
  const uint64_t lanes = ceil_div(list.entries, chunk) * columns;
  KernelRequest kernel = shaders::SparseFold::request(
      {.last = last, .tall = static_cast<int64_t>(cut.tall), .type = merge.dtype, .width = cut.width});
  kernel.streaming().constant(0, device.workgroup).wide(is_wide(merge, cut));
  const MergeTable table = table_of(merge);
  const auto alpha = scalar_words(merge.alpha, merge.dtype), beta = scalar_words(merge.beta, merge.dtype);
  Dispatch dispatch(merge.label);
  dispatch.operand(&list.keys, 0, list.entries * 4, Access::read)
      .operand(&list.values, 0, list.entries * columns * value_bytes(merge), Access::read)
      .operand(merge.c, 0, merge.c_span * size, Access::read_write)
      .operand(last ? nullptr : &next->keys, 0, last ? 0 : next->entries * 4, Access::write)
      .operand(last ? nullptr : &next->values, 0, last ? 0 : next->entries * columns * value_bytes(merge),
               Access::write)
      .operand(&recorder.parameters(table.words.data(), sizeof table.words), 0, sizeof table.words, Access::read)
      .push(shaders::SparseFold::Push{.lanes = static_cast<uint32_t>(lanes),
                                      .columns = static_cast<uint32_t>(columns),
                                      .entries = static_cast<uint32_t>(list.entries),
                                      .chunk = static_cast<uint32_t>(chunk),
                                      .first = static_cast<uint32_t>(first),
                                      .matrix_blocks = static_cast<uint32_t>(matrix_blocks(merge, cut)),
                                      .n = static_cast<uint32_t>(merge.n),
                                      .alpha = {alpha[0], alpha[1]},
                                      .beta = {beta[0], beta[1]}})
      .groups_linear(ceil_div(lanes, device.workgroup), recorder.traits())
      .work(static_cast<double>(list.entries * columns * value_bytes(merge)),
            static_cast<double>(list.entries * columns));
  recorder.dispatch(kernel, dispatch);
}

// The only list after sparse_tiles.comp and sparse_block_rows.comp.
void dispatch_runs(Recorder& recorder, const Merge& merge, const MergeCut& cut, uint64_t first, uint64_t count,
                   const PartialSums& list) {
  const StreamDevice device = device_of(recorder);
  const uint64_t lanes = cut.parts * count, size = dtype_size(merge.dtype),
                 offsets = (merge.rows + 1) * merge.index_bytes;
  KernelRequest kernel = shaders::SparseRuns::request(
      {.blocks = cut.share == Share::block_rows, .index_bytes = merge.index_bytes, .type = merge.dtype});
  kernel.streaming().constant(0, device.workgroup).wide(is_wide(merge, cut));
  const MergeTable table = table_of(merge);
  const auto alpha = scalar_words(merge.alpha, merge.dtype), beta = scalar_words(merge.beta, merge.dtype);
  Dispatch dispatch(merge.label);
  dispatch.operand(merge.offsets, 0, offsets, Access::read)
      .operand(&list.keys, 0, list.entries * 4, Access::read)
      .operand(&list.values, 0, list.entries * count * value_bytes(merge), Access::read)
      .operand(merge.c, 0, merge.c_span * size, Access::read_write)
      .operand(&recorder.parameters(table.words.data(), sizeof table.words), 0, sizeof table.words, Access::read)
      .push(shaders::SparseRuns::Push{.lanes = static_cast<uint32_t>(lanes),
                                      .parts = static_cast<uint32_t>(cut.parts),
                                      .columns = static_cast<uint32_t>(count),
                                      .first = static_cast<uint32_t>(first),
                                      .matrix_blocks = static_cast<uint32_t>(merge.n),
                                      .chunk = static_cast<uint32_t>(cut.chunk),
                                      .alpha = {alpha[0], alpha[1]},
                                      .beta = {beta[0], beta[1]}})
      .groups_linear(ceil_div(lanes, device.workgroup), recorder.traits())
      .work(static_cast<double>(lanes * (8 + 2 * value_bytes(merge))), static_cast<double>(2 * lanes));
  recorder.dispatch(kernel, dispatch);
}

}  // namespace

MergeTable table_of(const Merge& merge) {
  return MergeTable({merge.rows, merge.nnz, merge.extent, merge.b_row, merge.b_column, merge.c_row, merge.c_column,
                     merge.stride_values, merge.stride_b, merge.stride_c, merge.block.rows, merge.block.columns,
                     merge.block.row_stride, merge.block.column_stride});
}

uint64_t value_bytes(const Merge& merge) { return std::max<uint64_t>(dtype_size(merge.dtype), 4); }

bool is_wide(const Merge& merge, const MergeCut& cut) {
  const uint64_t list = first_list(cut) * cut.columns(cut.at_once);
  return needs_wide(
      std::max({merge.rows + merge.nnz, merge.extent, merge.values_span, merge.b_span, merge.c_span, list}));
}

void add_operands(Recorder& recorder, Dispatch& dispatch, const Merge& merge, const PartialSums& list,
                  uint64_t columns) {
  const uint64_t size = dtype_size(merge.dtype);
  const bool empty = merge.nnz == 0, sums = merge.b == nullptr;
  const MergeTable table = table_of(merge);
  const auto read = [&](const Buffer* buffer, uint64_t bytes) {
    dispatch.operand(bytes == 0 ? nullptr : buffer, 0, bytes, Access::read);
  };
  read(merge.offsets, empty ? 0 : (merge.rows + 1) * merge.index_bytes);
  read(merge.indices, empty || sums ? 0 : merge.nnz * merge.index_bytes);
  read(merge.values, empty ? 0 : merge.values_span * size);
  read(merge.permutation, empty || merge.permutation == nullptr ? 0 : merge.nnz * 4);
  read(merge.b, empty || sums ? 0 : merge.b_span * size);
  dispatch.operand(merge.c, 0, merge.c_span * size, merge.beta == 0 ? Access::write : Access::read_write)
      .operand(&list.keys, 0, list.entries * 4, Access::write)
      .operand(&list.values, 0, list.entries * columns * value_bytes(merge), Access::write)
      .operand(&recorder.parameters(table.words.data(), sizeof table.words), 0, sizeof table.words, Access::read);
}

std::array<uint32_t, 2> scalar_words(double value, int32_t dtype) {
  if (dtype == TUFF_F64) {
    const auto bits = std::bit_cast<uint64_t>(value);
    return {low_word(bits), high_word(bits)};
  }
  return {std::bit_cast<uint32_t>(static_cast<float>(value)), 0};
}

StreamDevice device_of(const Recorder& recorder) {
  return stream_device(recorder.traits(), forced_variant<"TUFF_SPARSE_VARIANT">(), sizeof(float));
}

Items items_of(const Recorder& recorder, uint64_t n) {
  const StreamDevice device = device_of(recorder);
  const uint64_t run = device.cpu ? device.items_each(n, 128) : 4;
  return {run, ceil_div(n, device.workgroup * run), device.fixed_run(run), device.workgroup};
}

void require_numbers(uint64_t count, const char* name) {
  if (count > kMax) fail(TUFF_ERROR_UNSUPPORTED, "{} is {}: at most 2^31 - 1 on a device", name, count);
}

// sparse_rows.comp is written for subgroups that are workgroups, and for numbers of 32 bits.
bool can_by_rows(const Recorder& recorder, const Merge& merge) {
  const DeviceTraits& traits = recorder.traits();
  const StreamDevice device = device_of(recorder);
  const uint64_t most = std::max({merge.rows + merge.nnz, merge.extent, merge.values_span, merge.b_span, merge.c_span});
  return device.cpu && device.subgroup >= 2 && device.subgroup <= 32 && traits.subgroup_arithmetic &&
         traits.subgroup_shuffle && traits.subgroup_ballot && !needs_wide(most);
}

// Steps of a workgroup of sparse_tiles.comp: fewer where they leave multiprocessors without work. 0 if the device
// cannot.
uint64_t tile_steps(const Recorder& recorder, const Merge& merge) {
  const DeviceTraits& traits = recorder.traits();
  const StreamDevice device = device_of(recorder);
  if (device.cpu || merge.n > kFewColumns || merge.nnz == 0 || device.workgroup % device.subgroup != 0) return 0;
  if (!traits.subgroup_arithmetic || !traits.subgroup_shuffle || !traits.subgroup_ballot) return 0;
  const uint64_t threads = device.workgroup, wanted = 4 * device.cores;
  uint64_t items = kTileItems;
  while (items > 1 && (merge.rows + merge.nnz) / (threads * items) * merge.n * merge.batch_count < wanted) items /= 2;
  const auto fits = [&] {
    return shaders::SparseTiles::shared_bytes(
               {.items = static_cast<int64_t>(items), .threads = static_cast<int64_t>(threads), .type = merge.dtype}) <=
           traits.shared_bytes;
  };
  while (items > 1 && !fits()) items /= 2;
  return fits() ? threads * items : 0;
}

MergeCut cut_merge(const Recorder& recorder, const Merge& merge) {
  const StreamDevice device = device_of(recorder);
  MergeCut cut{};
  if (merge.has_blocks() && cut_block_rows(recorder, merge, cut)) return cut;
  const uint64_t tile = merge.has_blocks() ? 0 : tile_steps(recorder, merge);
  cut.share = merge.has_blocks()             ? Share::blocks
              : can_by_rows(recorder, merge) ? Share::rows
              : tile != 0                    ? Share::tiles
                                             : Share::lanes;
  // More columns share the loads of an entry; fewer keep a GPU's neighbouring lanes on neighbouring elements.
  cut.width = cut.share == Share::tiles ? 1 : merge.n == 1 || (!device.cpu && merge.n < 64) ? 1 : merge.n < 4 ? 2 : 4;
  if (cut.share == Share::blocks) cut.tall = rows_of_lane(merge.block.rows), cut.width *= cut.tall;
  cut.blocks = checked_mul(matrix_blocks(merge, cut), merge.batch_count, "n");
  if (cut.blocks > kMax)
    fail(TUFF_ERROR_UNSUPPORTED, "{} columns of {} matrices are too many", merge.n, merge.batch_count);
  const uint64_t steps = checked_add(merge.rows, merge.nnz, "nnz");
  const uint64_t wanted =
      device.cpu ? 8 * device.cores * (cut.share == Share::rows ? 1 : device.workgroup) : uint64_t{1} << 18;
  const uint64_t parts = std::max<uint64_t>(wanted / cut.blocks, 1), chunk = ceil_div(steps, parts);
  // A step of a block is as long as the block has columns.
  const auto steps_of = [&](uint64_t entries) { return std::max<uint64_t>(entries / (merge.block.columns + 1), 1); };
  cut.chunk = cut.share == Share::tiles    ? tile
              : cut.share == Share::blocks ? std::clamp(chunk, steps_of(device.cpu ? kShortest : kShortestGpu),
                                                        steps_of(device.cpu ? kLongest : kLongestGpu))
              : cut.share == Share::rows   ? std::clamp(chunk, kShortestShare, kLongestShare)
              : device.cpu                 ? std::clamp(chunk, kShortest, kLongest)
                                           : std::clamp(chunk, kShortestGpu, kLongestGpu);
  cut.parts = ceil_div(steps, cut.chunk);
  if (cut.parts > kMaxLanes) fail(TUFF_ERROR_UNSUPPORTED, "{} rows and {} entries are too many", merge.rows, merge.nnz);
  const uint64_t one = first_list(cut) * cut.width * value_bytes(merge);
  cut.at_once = std::min({cut.blocks, std::max<uint64_t>(kMaxList / one, 1), kMaxLanes / cut.parts});
  constexpr uint64_t kMaxDispatches = 1u << 16;  // a call of more would run for hours
  if (cut.blocks / cut.at_once > kMaxDispatches) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} rows and {} entries for {} columns of {} matrices are too many", merge.rows,
         merge.nnz, merge.n, merge.batch_count);
  }
  return cut;
}

std::array<uint64_t, 3> list_sizes(const MergeCut& cut) {
  if (cut.has_runs()) return {first_list(cut), 0, 0};
  const uint64_t first = first_list(cut), second = next_list(first);
  return {first, second, next_list(second)};
}

uint64_t merge_memory(const Merge& merge, const MergeCut& cut) {
  ScratchLayout layout;
  const uint64_t columns = cut.columns(cut.at_once);
  for (const uint64_t count : list_sizes(cut)) {
    layout.add(count * 4), layout.add(count * columns * value_bytes(merge));
  }
  return layout.bytes();
}

void record_merge(Recorder& recorder, const Merge& merge, const MergeCut& cut, const Buffer& memory) {
  const uint64_t columns = cut.columns(cut.at_once);
  ScratchLayout layout;
  std::array<PartialSums, 3> lists;
  const std::array<uint64_t, 3> most = list_sizes(cut);
  for (size_t i = 0; i < lists.size(); ++i) {
    const uint64_t keys = most[i] * 4, values = most[i] * columns * value_bytes(merge);
    const uint64_t keys_at = layout.add(keys), values_at = layout.add(values);
    lists[i] = {part_of(memory, keys_at, keys), part_of(memory, values_at, values), most[i]};
  }
  for (uint64_t first = 0; first < cut.blocks; first += cut.at_once) {
    const uint64_t count = std::min(cut.at_once, cut.blocks - first);
    dispatch_merge(recorder, merge, cut, first, count, lists[0]);
    if (cut.parts == 1) continue;  // all rows are complete
    if (cut.has_runs()) {
      dispatch_runs(recorder, merge, cut, first, count, lists[0]);
      continue;
    }
    // The first list, then two in turn.
    size_t from = 0;
    for (uint64_t n = most[0];;) {
      PartialSums list = lists[from];
      list.entries = n;
      const uint64_t next = next_list(n);
      const size_t to = from == 1 ? 2 : 1;
      PartialSums after = lists[to];
      after.entries = next;
      dispatch_fold(recorder, merge, cut, first, count, list, next == 0 ? nullptr : &after);
      if (next == 0) break;
      n = next, from = to;
    }
  }
}

void record_keys(Recorder& recorder, const Entries& entries, const Keys& keys) {
  const StreamDevice device = device_of(recorder);
  const uint64_t steps = entries.row_count + entries.nnz;
  Items items = items_of(recorder, entries.nnz);
  uint64_t lanes = 0;
  if (entries.offsets) {
    items.run = device.cpu ? std::clamp(ceil_div(steps, 8 * device.cores * device.workgroup), kShortest, kLongest)
                           : kShortestGpu;
    items.fixed = 0;
    lanes = ceil_div(steps, items.run), items.groups = ceil_div(lanes, items.workgroup);
  }
  KernelRequest kernel = shaders::SparseKeys::request(
      {.index_bytes = entries.index_bytes, .offsets = entries.offsets, .run = items.fixed});
  kernel.streaming().constant(0, items.workgroup).wide(needs_wide(steps));
  const uint64_t rows = (entries.offsets ? entries.row_count + 1 : entries.nnz) * entries.index_bytes;
  Dispatch dispatch(entries.label);
  dispatch.operand(entries.rows, 0, rows, Access::read)
      .operand(entries.columns, 0, entries.nnz * entries.index_bytes, Access::read)
      .operand(keys.rows, 0, entries.nnz * 4, Access::write)
      .operand(keys.columns, 0, entries.nnz * 4, Access::write)
      .push(shaders::SparseKeys::Push{.n = static_cast<uint32_t>(entries.nnz),
                                      .rows = static_cast<uint32_t>(entries.row_count),
                                      .columns = static_cast<uint32_t>(entries.column_count),
                                      .run = static_cast<uint32_t>(items.run),
                                      .lanes = static_cast<uint32_t>(lanes)})
      .groups_linear(items.groups, recorder.traits())
      .work(static_cast<double>(entries.nnz * (2 * entries.index_bytes + 8)), static_cast<double>(steps));
  recorder.dispatch(kernel, dispatch);
}

void record_order(Recorder& recorder, const Buffer& numbers, uint64_t n, uint64_t most, const Buffer& sorted,
                  const Buffer& permutation) {
  const auto bits = static_cast<uint32_t>(std::bit_width(most | 1));
  record_sort(recorder, {TUFF_U32, &numbers, &sorted, &permutation, &n, 1, 0, 0, TUFF_U32, false, bits});
}

void record_offsets(Recorder& recorder, const Offsets& offsets) {
  const Items items = items_of(recorder, offsets.majors + 1);
  const bool summed = offsets.flags != nullptr;
  KernelRequest kernel = shaders::SparseOffsets::request({.dense = offsets.dense,
                                                          .index_bytes = offsets.index_bytes,
                                                          .run = items.fixed,
                                                          .some = offsets.n != 0,
                                                          .summed = summed});
  kernel.streaming().constant(0, items.workgroup).wide(needs_wide(offsets.majors + 1));
  Dispatch dispatch(offsets.label);
  const bool reads = !offsets.dense && offsets.n != 0;
  dispatch.operand(reads ? offsets.keys : nullptr, 0, offsets.n * 4, Access::read)
      .operand(summed && offsets.n != 0 ? offsets.flags : nullptr, 0, offsets.n * 4, Access::read)
      .operand(offsets.offsets, 0, (offsets.majors + 1) * offsets.index_bytes, Access::write)
      .push(shaders::SparseOffsets::Push{.n = static_cast<uint32_t>(offsets.n),
                                         .run = static_cast<uint32_t>(items.run),
                                         .majors = static_cast<uint32_t>(offsets.majors),
                                         .minors = static_cast<uint32_t>(offsets.minors)})
      .groups_linear(items.groups, recorder.traits())
      .work(static_cast<double>(offsets.majors * 32), static_cast<double>(offsets.majors * 32));
  recorder.dispatch(kernel, dispatch);
}

}  // namespace sparse

namespace {

using namespace sparse;

// Rows and columns of a block, which a lane takes in one step: longer loops would be too long for a CPU device.
constexpr uint64_t kLargestBlock = 1024;

Merge merge_of(const SpmmArgs& args) {
  const Dense b = dense_b(args), c = dense_c(args);
  Merge merge{};
  merge.label = "spmm";
  merge.dtype = args.dtype;
  merge.index_bytes = dtype_size(args.index_type);
  merge.rows = args.product_rows();
  merge.extent = args.extent();
  merge.nnz = args.alpha == 0 || merge.extent == 0 || args.rows == 0 || args.columns == 0 ? 0 : args.nnz;
  merge.offsets = args.offsets, merge.indices = args.indices, merge.values = args.values;
  merge.b = args.b, merge.c = args.c;
  merge.b_row = args.on_right() ? 1 : args.ldb, merge.b_column = args.on_right() ? args.ldb : 1;
  merge.c_row = args.on_right() ? 1 : args.ldc, merge.c_column = args.on_right() ? args.ldc : 1;
  // Strides of a batch of one may be any number.
  const bool batch = args.batch_count > 1;
  merge.stride_values = batch ? args.stride_values : 0, merge.stride_b = batch ? args.stride_b : 0;
  merge.stride_c = batch ? args.stride_c : 0;
  merge.n = args.n, merge.batch_count = args.batch_count;
  merge.values_span = merge.nnz == 0 ? 0 : (args.batch_count - 1) * args.stride_values + args.nnz;
  merge.b_span = merge.nnz == 0 ? 0 : b.span(args.batch_count), merge.c_span = c.span(args.batch_count);
  merge.alpha = args.alpha, merge.beta = args.beta;
  return merge;
}

// The product of blocks, of which there are some.
void set_blocks(Merge& merge, const SpmmArgs& args) {
  const Blocks& blocks = args.blocks;
  merge.block = {blocks.rows, blocks.columns, blocks.row_stride(), blocks.column_stride()};
  if (args.sorts()) {
    std::swap(merge.block.rows, merge.block.columns);
    std::swap(merge.block.row_stride, merge.block.column_stride);
  }
  merge.rows /= merge.block.rows, merge.extent /= merge.block.columns;
  merge.values_span = (args.batch_count - 1) * args.stride_values + args.nnz * blocks.elements();
}

void record(Recorder& recorder, const SpmmArgs& args) {
  Merge merge = merge_of(args);
  if (args.blocks.elements() != 1 && merge.nnz != 0) set_blocks(merge, args);
  const MergeCut cut = cut_merge(recorder, merge);
  const bool sorts = args.sorts() && merge.nnz != 0;
  const uint64_t nnz = merge.nnz;
  ScratchLayout layout;
  const uint64_t memory_at = layout.add(merge_memory(merge, cut));
  if (!sorts) {
    const Buffer memory = recorder.scratch(layout.bytes(), Scratch::outermost);
    record_merge(recorder, merge, cut, part_of(memory, memory_at, layout.bytes()));
    return;
  }
  const uint64_t lines = args.block_columns(), list = nnz * 4, offset_bytes = (lines + 1) * 4;
  const uint64_t rows_at = layout.add(list), columns_at = layout.add(list), sorted_at = layout.add(list),
                 order_at = layout.add(list), offsets_at = layout.add(offset_bytes);
  const Buffer memory = recorder.scratch(layout.bytes(), Scratch::outermost);
  const Buffer rows = part_of(memory, rows_at, list), columns = part_of(memory, columns_at, list),
               sorted = part_of(memory, sorted_at, list), order = part_of(memory, order_at, list),
               offsets = part_of(memory, offsets_at, offset_bytes);
  record_keys(recorder, {"spmm", merge.index_bytes, true, args.offsets, args.indices, args.block_rows(), lines, nnz},
              {&rows, &columns});
  record_order(recorder, columns, nnz, lines, sorted, order);
  record_offsets(recorder, {"spmm", &sorted, nullptr, &offsets, 4, nnz, lines, 0, false});
  merge.index_bytes = 4;
  merge.offsets = &offsets, merge.indices = &rows, merge.permutation = &order;
  record_merge(recorder, merge, cut, part_of(memory, memory_at, rows_at));
}

}  // namespace

void record_spmm(Recorder& recorder, const SpmmArgs& args) {
  require_type(recorder.traits(), args.dtype);
  if (dense_c(args).one() == 0 || args.batch_count == 0) return;
  if (args.product_rows() >= 0xffffffffu) {
    fail(TUFF_ERROR_UNSUPPORTED, "the product has {} rows: at most 2^32 - 2 on a device", args.product_rows());
  }
  if (args.n > kMax) fail(TUFF_ERROR_UNSUPPORTED, "n is {}: at most 2^31 - 1 on a device", args.n);
  if (std::max(args.blocks.rows, args.blocks.columns) > kLargestBlock) {
    fail(TUFF_ERROR_UNSUPPORTED, "blocks of {} x {} elements: at most {} rows and columns on a device",
         args.blocks.rows, args.blocks.columns, kLargestBlock);
  }
  if (args.sorts()) {
    require_numbers(args.nnz, "nnz"), require_numbers(args.rows, "rows"), require_numbers(args.columns, "columns");
  }
  record(recorder, args);
}

}  // namespace tuff
