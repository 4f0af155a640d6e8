// Planner of products of matrices in BSR with few columns on GPUs (sparse_block_rows.comp).
#include <algorithm>
#include <bit>

#include "kernels/sparse/sparse_plan.hpp"
#include "planning/log.hpp"
#include "shaders/sparse_block_rows.hpp"

namespace tuff::sparse {
namespace {

// Shares of the path for each core, measured on an H200: about two for each subgroup that it runs at once, and fewer
// where a share leaves many sums for sparse_runs.comp.
constexpr uint64_t kShares = 64, kFewerShares = 24, kFewSums = 8;
constexpr uint64_t kFewestElements = 512;  // of a share
constexpr uint64_t kFewestColumns = 64;    // of a share's blocks together: each leaves two sums for a row
constexpr uint64_t kMaxSums = 16;          // of a lane

// How the kernel reads a block, and what its lanes have.
struct Layout {
  bool down;             // columns of a block are contiguous
  uint64_t unit;         // elements of a piece
  bool fours;            // of elements, in A
  uint32_t fours_of_b;   // TUFF_VECTOR_B
  uint64_t tall, width;  // pieces of a lane with sums of their own; columns
  uint64_t tiles;        // of rows of a block
};

bool is_down(const ProductBlocks& block) {
  const bool by_rows = block.column_stride == 1 && (block.row_stride == block.columns || block.rows == 1);
  return !by_rows || block.columns == 1;
}

// Elements of a piece: four, which may be one access, or another number up to seven that divides a row, or column.
// Neighbouring lanes then read neighbouring pieces element by element, the later ones from the cache.
uint64_t unit_of(uint64_t along) {
  for (const uint64_t unit : {4, 7, 6, 5, 3, 2}) {
    if (along % unit == 0) return unit;
  }
  return 1;
}

bool begins_four(const Buffer& buffer, uint64_t size) { return buffer.offset % std::min<uint64_t>(4 * size, 16) == 0; }

Layout layout_of(const Merge& merge, uint64_t lanes) {
  const ProductBlocks& block = merge.block;
  const uint64_t size = dtype_size(merge.dtype);
  Layout out{};
  out.down = is_down(block);
  const uint64_t along = out.down ? block.rows : block.columns;
  out.unit = unit_of(along);
  out.width = std::min<uint64_t>(std::bit_ceil(merge.n), 8);
  const bool b_begins = merge.stride_b % 4 == 0 && begins_four(*merge.b, size);
  out.fours = out.unit == 4 && merge.stride_values % 4 == 0 && begins_four(*merge.values, size);
  if (b_begins && out.unit == 4 && !out.down && merge.b_row == 1 && (merge.n == 1 || merge.b_column % 4 == 0)) {
    out.fours_of_b = 1;
  } else if (b_begins && merge.n % 4 == 0 && out.width == merge.n && merge.b_column == 1 && merge.b_row % 4 == 0) {
    out.fours_of_b = 2;
  }
  const uint64_t fast = along / out.unit, slow = out.down ? block.columns : block.rows;
  const uint64_t fast_lanes = ceil_div(fast, ceil_div(fast, lanes)), slow_lanes = std::min(slow, lanes / fast_lanes);
  const uint64_t pieces = out.down ? ceil_div(fast, fast_lanes) : ceil_div(slow, slow_lanes);
  const uint64_t most = std::min<uint64_t>(kMaxSums / (out.width * (out.down ? out.unit : 1)), 8);
  out.tall = std::min(std::bit_ceil(pieces), std::bit_floor(std::max<uint64_t>(most, 1)));
  out.tiles = ceil_div(pieces, out.tall);
  return out;
}

// Subgroups of a share.
uint64_t across(const Merge& merge, const Layout& layout) {
  return layout.tiles * ceil_div(merge.n, layout.width) * merge.batch_count;
}

}  // namespace

bool cut_block_rows(const Recorder& recorder, const Merge& merge, MergeCut& cut) {
  const DeviceTraits& traits = recorder.traits();
  const StreamDevice device = device_of(recorder);
  if (device.cpu || merge.n > kFewColumns || merge.nnz == 0 || merge.batch_count > kMaxLanes) return false;
  if (!traits.subgroup_arithmetic || !traits.subgroup_shuffle || !traits.subgroup_ballot) return false;
  if (device.subgroup < 4 || device.workgroup % device.subgroup != 0) return false;
  const ProductBlocks& block = merge.block;
  const uint64_t subgroups = across(merge, layout_of(merge, device.subgroup));
  const uint64_t columns = block.rows * merge.n * merge.batch_count;
  const uint64_t steps = merge.rows + merge.nnz,
                 wanted =
                     std::max<uint64_t>((columns <= kFewSums ? kShares : kFewerShares) * device.cores / subgroups, 1);
  const uint64_t chunk = std::max(
      {ceil_div(steps, wanted), ceil_div(kFewestElements, block.elements()), ceil_div(kFewestColumns, block.columns)});
  const uint64_t parts = ceil_div(steps, chunk);
  if (chunk > kMax || parts > kMaxLanes / std::max(columns, subgroups)) return false;
  if (2 * parts * columns > kMaxList / value_bytes(merge)) return false;
  cut = {};
  cut.share = Share::block_rows;
  cut.width = 1, cut.blocks = cut.at_once = columns;
  cut.chunk = chunk, cut.parts = parts;
  return true;
}

void dispatch_block_rows(Recorder& recorder, const Merge& merge, const MergeCut& cut, const PartialSums& list) {
  const StreamDevice device = device_of(recorder);
  const Layout layout = layout_of(merge, device.subgroup);
  const uint64_t subgroups = across(merge, layout), items = cut.parts * subgroups, size = dtype_size(merge.dtype);
  KernelRequest kernel =
      shaders::SparseBlockRows::request({.down = layout.down,
                                         .index_bytes = merge.index_bytes,
                                         .permuted = merge.permutation != nullptr,
                                         .piece = static_cast<int64_t>(layout.unit),
                                         .tall = static_cast<int64_t>(layout.tall),
                                         .type = merge.dtype,
                                         .unroll = layout.tall <= 2 && layout.tall * layout.width <= 4 ? 2 : 1,
                                         .vector_a = layout.fours,
                                         .vector_b = layout.fours_of_b,
                                         .width = static_cast<int64_t>(layout.width)});
  kernel.streaming().constant(0, device.workgroup).wide(is_wide(merge, cut));
  const auto alpha = scalar_words(merge.alpha, merge.dtype), beta = scalar_words(merge.beta, merge.dtype);
  Dispatch dispatch(merge.label);
  add_operands(recorder, dispatch, merge, list, cut.blocks);
  dispatch
      .push(shaders::SparseBlockRows::Push{.items = static_cast<uint32_t>(items),
                                           .across = static_cast<uint32_t>(subgroups),
                                           .tiles = static_cast<uint32_t>(layout.tiles),
                                           .column_tiles = static_cast<uint32_t>(ceil_div(merge.n, layout.width)),
                                           .n = static_cast<uint32_t>(merge.n),
                                           .chunk = static_cast<uint32_t>(cut.chunk),
                                           .alpha = {alpha[0], alpha[1]},
                                           .beta = {beta[0], beta[1]}})
      .groups_linear(ceil_div(items, device.workgroup / device.subgroup), recorder.traits())
      .work(static_cast<double>(merge.nnz) * static_cast<double>(merge.block.elements() * size + merge.index_bytes) +
                static_cast<double>((merge.nnz * merge.block.columns + merge.rows * merge.block.rows) * merge.n *
                                    merge.batch_count * size),
            2.0 * static_cast<double>(merge.nnz * merge.block.elements()) *
                static_cast<double>(merge.n * merge.batch_count));
  log(TUFF_LOG_DISPATCH, "{} {}: {} shares of {} steps in rows of blocks, {} subgroups each, groups of {}", merge.label,
      dtype_name(merge.dtype), cut.parts, cut.chunk, subgroups, device.workgroup);
  recorder.dispatch(kernel, dispatch);
}

}  // namespace tuff::sparse
