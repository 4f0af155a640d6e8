// Planner of sorts. The axis is viewed as (outer, extent, inner), whose outer * inner rows are sorted independently:
//
//   rows that fit shared memory    sort_rows, in one dispatch
//   the first k, few, of a row     sort_rows keeps the first k of each segment, until what is left fits. On GPUs the
//                                  first segments are long, and read once
//   longer rows                    a radix sort from the lowest digit of 8 bits to the highest (radix.glsl): for each
//                                  digit, counts in each chunk, their running sums, and the move
//
// Rows are taken in batches, which bounds scratch memory. Chunks and segments depend only on the sizes and the device;
// results do not depend on them.
#include <algorithm>
#include <bit>

#include "kernels/common/check.hpp"
#include "kernels/common/float_bits.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/scan/scan.hpp"
#include "kernels/sort/sort.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/radix_count.hpp"
#include "shaders/radix_move.hpp"
#include "shaders/sort_rows.hpp"

namespace tuff {
namespace {

constexpr uint64_t kBatch = 1u << 26;        // elements whose rows are sorted at a time, if a row is not longer
constexpr uint64_t kMaxExtent = 0xffc00000;  // ends of chunks are computed in 32 bits
constexpr uint32_t kDigitBits = 8;           // of a radix sort; booleans have 1
// A workgroup's subgroups and an invocation's elements in a tile. With indices, which are stored too, larger tiles are
// better (H200): more of what is stored side by side.
constexpr uint32_t kSubgroups = 8, kSubgroupsWithIndices = 16, kMaxThreads = 1024;
constexpr int64_t kItems = 16, kItemsWithIndices = 14, kItemsOf8Bytes = 8;
constexpr uint64_t kPiecesPerCore = 64;    // chunks that GPUs need for full use: more only add counters
constexpr uint64_t kShortestChunk = 2048;  // of an invocation: three loops over the counters should cost less
constexpr uint64_t kLongestChunk = kMaxLoopIterationsCpu - (3u << kDigitBits);
constexpr uint64_t kStreamItems = 8, kMinTile = 256, kSegmentsPerCore = 8;  // of long segments
constexpr double kFlops = 20;  // rough operations for an element and a pass

// How a kernel makes keys of elements: TUFF_FORM, and the largest magnitude that is no NaN.
struct KeyForm {
  int form;
  uint32_t infinity;
};
KeyForm key_form(int32_t dtype) {
  switch (dtype) {
    case TUFF_F32:
    case TUFF_F16:
    case TUFF_BF16:
    case TUFF_F64:
    case TUFF_F8_E4M3:
    case TUFF_F8_E5M2: return {2, largest_magnitude(dtype)};
    case TUFF_I8:
    case TUFF_I16:
    case TUFF_I32:
    case TUFF_I64: return {1, 0};
    case TUFF_BOOL: return {3, 0};
    default: return {0, 0};
  }
}

struct Sort {
  Recorder& recorder;
  const SortArgs& args;
  StreamDevice device;
  AxisView view;
  uint64_t k, unit;
  KeyForm key;
  uint32_t flip;

  uint64_t index_bytes() const { return args.indices != nullptr ? dtype_size(args.index_type) : 0; }
  uint32_t digit_bits() const { return args.dtype == TUFF_BOOL ? 1 : kDigitBits; }
  uint32_t digits() const { return 1u << digit_bits(); }
};

// Rows first_row … first_row + rows - 1 of the slabs outer … outer + outers - 1. Several slabs are taken as a whole.
struct Batch {
  uint64_t outer, outers, first_row, rows;
};

// The ranges of a batch's slabs in the caller's tensors.
struct Slabs {
  uint64_t input, inputs, output, outputs;  // elements
};
Slabs slabs_of(const Sort& sort, const Batch& batch) {
  const uint64_t in = sort.view.axis * sort.view.inner, out = sort.k * sort.view.inner;
  return {batch.outer * in, batch.outers * in, batch.outer * out, batch.outers * out};
}

Sort sort_of(Recorder& recorder, const SortArgs& args) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  const uint64_t unit = dtype_size(args.dtype);
  const uint32_t all = 0xffffffffu >> (unit < 4 ? 32 - 8 * unit : 0);
  return {recorder,
          args,
          stream_device(recorder.traits(), forced_variant<"TUFF_SORT_VARIANT">(), unit),
          view,
          args.k != 0 ? args.k : view.axis,
          unit,
          key_form(args.dtype),
          args.descending ? all : 0};
}

// Items that sort_rows takes of a segment: as many as fit shared memory, a power of two.
uint64_t longest_segment(const Sort& sort) {
  const uint64_t item = std::max<uint64_t>(sort.unit, 4) + 4, bytes = sort.recorder.traits().shared_bytes;
  if (sort.device.cpu) return std::clamp<uint64_t>(std::bit_floor(bytes / (2 * item * sort.device.workgroup)), 2, 512);
  return std::min<uint64_t>(std::bit_floor(bytes / item), sort.unit == 8 ? 1024 : 2048);
}

// One dispatch of sort_rows: of each row's `items` items, keeps `keep` of every segment of `length`. Segments longer
// than the tile, a power of two, are read once.
struct Stage {
  uint64_t items, length, tile, keep;
  const Buffer* scratch;
  uint64_t candidates, results;  // offsets in scratch; unused where the stage is the first or the last
  bool first, last;
};

void dispatch_rows(const Sort& sort, const Batch& batch, const Stage& stage) {
  const DeviceTraits& traits = sort.recorder.traits();
  const SortArgs& args = sort.args;
  const Slabs slabs = slabs_of(sort, batch);
  const uint32_t workgroup = sort.device.workgroup;
  const uint64_t segments = ceil_div(stage.items, stage.length), pieces = batch.rows * segments;
  // A lane of a workgroup that shares segments compares at least one pair of items.
  const uint64_t most = std::bit_floor(traits.shared_bytes / (std::max<uint64_t>(sort.unit, 4) + 4));
  const bool streams = stage.length > stage.tile;
  const uint64_t tile =
      streams ? stage.tile : std::max(stage.tile, std::min<uint64_t>(std::bit_floor(2 * workgroup), most));
  const bool values = stage.last && args.values != nullptr;
  const uint64_t index = stage.last ? sort.index_bytes() : 4;
  KernelRequest kernel = shaders::SortRows::request({.candidates = !stage.first,
                                                     .form = sort.key.form,
                                                     .index_bytes = stage.last ? index : 0,
                                                     .items = streams ? static_cast<int64_t>(kStreamItems) : 0,
                                                     .lanes = sort.device.cpu ? workgroup : 0,
                                                     .last = stage.last,
                                                     .length = stage.tile,
                                                     .tile = sort.device.cpu ? 0 : static_cast<int64_t>(tile),
                                                     .unit = sort.unit,
                                                     .values = values});
  kernel.streaming().constant(0, workgroup).wide(needs_wide(slabs.inputs));
  const shaders::SortRows::Push push{.pieces = static_cast<uint32_t>(pieces),
                                     .segments = static_cast<uint32_t>(segments),
                                     .items = static_cast<uint32_t>(stage.items),
                                     .keep = static_cast<uint32_t>(stage.keep),
                                     .segment = static_cast<uint32_t>(stage.length),
                                     .extent = static_cast<uint32_t>(sort.view.axis),
                                     .first_row = static_cast<uint32_t>(batch.first_row),
                                     .inner = static_cast<uint32_t>(sort.view.inner),
                                     .flip = sort.flip,
                                     .infinity = sort.key.infinity};
  Dispatch dispatch("sort");
  const uint64_t kept = pieces * stage.keep;
  dispatch.operand(args.input, slabs.input * sort.unit, slabs.inputs * sort.unit, Access::read)
      .operand(stage.first ? nullptr : stage.scratch, stage.candidates, batch.rows * stage.items * 4, Access::read)
      .operand(values ? args.values : nullptr, slabs.output * sort.unit, slabs.outputs * sort.unit, Access::write);
  if (stage.last) {
    dispatch.operand(args.indices, slabs.output * index, slabs.outputs * index, Access::write);
  } else {
    dispatch.operand(stage.scratch, stage.results, kept * 4, Access::write);
  }
  const double elements = static_cast<double>(batch.rows * stage.items);
  dispatch.push(push)
      .groups_linear(ceil_div(pieces, sort.device.cpu ? workgroup : tile / stage.tile), traits)
      .work(elements * static_cast<double>(2 * sort.unit), elements * kFlops * std::bit_width(stage.tile));
  log(TUFF_LOG_DISPATCH, "sort {}: {} segments of {} items, {} kept of each, groups of {}", dtype_name(args.dtype),
      pieces, stage.length, stage.keep, workgroup);
  sort.recorder.dispatch(kernel, dispatch);
}

// The length of a GPU's first segments of rows of which it keeps few elements: one for each row, or so many that the
// device is full. 0 if rows are too short.
uint64_t streamed_length(const Sort& sort, uint64_t rows, uint64_t tile) {
  const uint64_t items = sort.view.axis;
  if (sort.device.cpu || items <= 2 * tile) return 0;
  const uint64_t wanted = ceil_div(kSegmentsPerCore * sort.device.cores, rows);
  return ceil_div(items, std::clamp<uint64_t>(wanted, 1, ceil_div(items, 4 * tile)));
}

// Sorts the rows of a batch whose rows fit, or finds their first k by stages.
void sort_rows(const Sort& sort, const Batch& batch, uint64_t longest) {
  const uint64_t tile = std::clamp<uint64_t>(std::bit_ceil(4 * sort.k), std::min(kMinTile, longest), longest);
  const uint64_t streamed = streamed_length(sort, batch.rows, tile);
  const auto kept = [&](uint64_t items, uint64_t length) { return ceil_div(items, length) * sort.k; };
  uint64_t items = sort.view.axis, length = streamed != 0 ? streamed : longest;
  const Buffer* scratch = nullptr;
  const uint64_t first_bytes = round_up(batch.rows * kept(items, length) * 4, 256);
  if (items > length) {
    const uint64_t second = kept(kept(items, length), longest);
    scratch = &sort.recorder.scratch(first_bytes + batch.rows * second * 4, Scratch::outer);
  }
  uint64_t from = first_bytes, into = 0;
  for (bool first = true;; first = false) {
    const bool last = items <= length, streams = first && streamed != 0;
    const uint64_t whole = last && !streams ? std::max<uint64_t>(std::bit_ceil(items), 2) : length;
    dispatch_rows(sort, batch, {items, whole, streams ? tile : whole, sort.k, scratch, from, into, first, last});
    if (last) return;
    items = kept(items, length);
    length = longest;
    std::swap(from, into);
  }
}

// Elements of a batch between passes: [row][place]. The source of the first pass and the target of the last are the
// caller's.
struct Place {
  const Buffer *elements, *indices;
  uint64_t element_offset, index_offset, element_bytes, index_bytes;
  uint64_t first_row, inner, extent;
};

struct Chunks {
  uint64_t count, size;  // of a row
  uint32_t lanes;        // TUFF_LANES
  uint32_t workgroup, subgroups, items;
};

// How a workgroup of a GPU shares tiles: as many subgroups as its shared memory allows.
shaders::RadixMove::SharedBytes tile_of(const Sort& sort) {
  const DeviceTraits& traits = sort.recorder.traits();
  const uint32_t subgroup = sort.device.subgroup;
  const bool indices = sort.args.indices != nullptr;
  const uint32_t most = indices ? kSubgroupsWithIndices : kSubgroups;
  shaders::RadixMove::SharedBytes tile{.bits = sort.digit_bits(),
                                       .items = sort.unit == 8 ? kItemsOf8Bytes
                                                : indices      ? kItemsWithIndices
                                                               : kItems,
                                       .subgroups = 1,
                                       .threads = 1,
                                       .unit = static_cast<int64_t>(sort.unit)};
  for (uint32_t subgroups = std::min(most, std::max(std::min(max_along_x(traits), kMaxThreads) / subgroup, 1u));;
       subgroups /= 2) {
    tile.subgroups = subgroups;
    tile.threads = subgroups * subgroup;
    if (subgroups == 1 || shaders::RadixMove::shared_bytes(tile) <= traits.shared_bytes) return tile;
  }
}

Chunks cut_rows(const Sort& sort, uint64_t rows) {
  const StreamDevice& device = sort.device;
  const uint64_t extent = sort.view.axis;
  if (!device.cpu) {
    const auto shape = tile_of(sort);
    const uint64_t tile = shape.threads * shape.items, tiles = ceil_div(extent, tile);
    const uint64_t size = tile * ceil_div(rows * tiles, kPiecesPerCore * device.cores + rows);
    return {ceil_div(extent, size),
            size,
            0,
            static_cast<uint32_t>(shape.threads),
            static_cast<uint32_t>(shape.subgroups),
            static_cast<uint32_t>(shape.items)};
  }
  const uint64_t wanted = ceil_div(4 * device.cores * device.workgroup, rows);
  const uint64_t size = std::clamp(round_up(ceil_div(extent, wanted), 4), kShortestChunk, kLongestChunk / 4 * 4);
  // Each has a column of counters in shared memory.
  const uint64_t column = 4 * sort.digits();
  const auto lanes =
      static_cast<uint32_t>(std::clamp<uint64_t>(sort.recorder.traits().shared_bytes / column, 1, device.workgroup));
  return {ceil_div(extent, size), size, lanes, lanes, 1, 1};
}

// TUFF_WORDS.
bool begins_at_words(const Sort& sort, const Batch& batch, const Place& from, const Chunks& chunks) {
  const bool rows = (batch.rows == 1 && from.first_row == 0) || from.extent % 4 == 0;
  const bool adjacent = from.inner == 1 && rows && (from.elements->offset + from.element_offset) % 4 == 0;
  return chunks.lanes != 0 && sort.unit == 1 && adjacent && chunks.size % 4 == 0;
}

void count_digits(const Sort& sort, const Batch& batch, const Place& from, const Chunks& chunks, uint32_t shift,
                  const Buffer& counts) {
  const DeviceTraits& traits = sort.recorder.traits();
  const uint64_t pieces = batch.rows * chunks.count;
  KernelRequest kernel = shaders::RadixCount::request({.bits = sort.digit_bits(),
                                                       .form = sort.key.form,
                                                       .lanes = chunks.lanes,
                                                       .unit = sort.unit,
                                                       .words = begins_at_words(sort, batch, from, chunks)});
  kernel.streaming()
      .constant(0, chunks.workgroup)
      .wide(needs_wide(std::max(from.element_bytes / sort.unit, counts.bytes / 4)));
  const shaders::RadixCount::Push push{.pieces = static_cast<uint32_t>(pieces),
                                       .chunks = static_cast<uint32_t>(chunks.count),
                                       .chunk = static_cast<uint32_t>(chunks.size),
                                       .extent = static_cast<uint32_t>(sort.view.axis),
                                       .first_row = static_cast<uint32_t>(from.first_row),
                                       .inner = static_cast<uint32_t>(from.inner),
                                       .shift = shift,
                                       .flip = sort.flip,
                                       .infinity = sort.key.infinity};
  Dispatch dispatch("sort");
  const double elements = static_cast<double>(batch.rows * sort.view.axis);
  dispatch.operand(from.elements, from.element_offset, from.element_bytes, Access::read)
      .operand(&counts, 0, counts.bytes, Access::write)
      .push(push)
      .groups_linear(chunks.lanes != 0 ? ceil_div(pieces, chunks.lanes) : pieces, traits)
      .work(elements * static_cast<double>(sort.unit), elements * kFlops);
  sort.recorder.dispatch(kernel, dispatch);
}

void move_elements(const Sort& sort, const Batch& batch, const Place& from, const Place& to, const Chunks& chunks,
                   uint32_t shift, const Buffer& counts, uint64_t index) {
  const DeviceTraits& traits = sort.recorder.traits();
  const uint64_t pieces = batch.rows * chunks.count;
  const int carry = to.indices == nullptr ? 0 : from.indices == nullptr ? 1 : 2;
  KernelRequest kernel = shaders::RadixMove::request({.bits = sort.digit_bits(),
                                                      .carry = carry,
                                                      .form = sort.key.form,
                                                      .index_bytes = index,
                                                      .items = chunks.items,
                                                      .lanes = chunks.lanes,
                                                      .narrow = sort.device.subgroup <= 32,
                                                      .subgroups = chunks.subgroups,
                                                      .threads = chunks.lanes != 0 ? 0 : chunks.workgroup,
                                                      .unit = sort.unit,
                                                      .values = to.elements != nullptr,
                                                      .words = begins_at_words(sort, batch, from, chunks)});
  const uint64_t most = std::max(from.element_bytes, to.element_bytes) / sort.unit;
  kernel.streaming()
      .constant(0, chunks.workgroup)
      .wide(needs_wide(std::max({most, to.index_bytes / index, counts.bytes / 4})));
  const shaders::RadixMove::Push push{.pieces = static_cast<uint32_t>(pieces),
                                      .chunks = static_cast<uint32_t>(chunks.count),
                                      .chunk = static_cast<uint32_t>(chunks.size),
                                      .extent = static_cast<uint32_t>(sort.view.axis),
                                      .first_row = static_cast<uint32_t>(from.first_row),
                                      .inner = static_cast<uint32_t>(from.inner),
                                      .to_first_row = static_cast<uint32_t>(to.first_row),
                                      .to_inner = static_cast<uint32_t>(to.inner),
                                      .to_extent = static_cast<uint32_t>(to.extent),
                                      .shift = shift,
                                      .flip = sort.flip,
                                      .infinity = sort.key.infinity};
  Dispatch dispatch("sort");
  const double elements = static_cast<double>(batch.rows * sort.view.axis);
  dispatch.operand(from.elements, from.element_offset, from.element_bytes, Access::read)
      .operand(carry == 2 ? from.indices : nullptr, from.index_offset, from.index_bytes, Access::read)
      .operand(&counts, 0, counts.bytes, Access::read)
      .operand(to.elements, to.element_offset, to.element_bytes, Access::write)
      .operand(to.indices, to.index_offset, to.index_bytes, Access::write)
      .push(push)
      .groups_linear(chunks.lanes != 0 ? ceil_div(pieces, chunks.lanes) : pieces, traits)
      .work(elements * static_cast<double>(2 * sort.unit + 8), elements * kFlops);
  log(TUFF_LOG_DISPATCH, "sort {}: {} rows of {} chunks of {} elements, bits {} on, groups of {}",
      dtype_name(sort.args.dtype), batch.rows, chunks.count, chunks.size, shift, chunks.workgroup);
  sort.recorder.dispatch(kernel, dispatch);
}

void radix_sort(const Sort& sort, const Batch& batch) {
  const SortArgs& args = sort.args;
  const uint64_t elements = batch.rows * sort.view.axis, index = sort.index_bytes();
  const Chunks chunks = cut_rows(sort, batch.rows);
  const uint64_t counters = batch.rows * sort.digits() * chunks.count;
  const uint32_t passes = args.dtype == TUFF_BOOL ? 1
                          : args.bits != 0        ? ceil_div(args.bits, kDigitBits)
                                                  : static_cast<uint32_t>(sort.unit);
  // Scratch: the counters, then up to two places for elements and indices.
  const uint64_t counter_bytes = round_up(counters * 4, 256), element_bytes = elements * sort.unit;
  const uint64_t index_bytes = index != 0 ? elements * 4 : 0;
  const uint64_t place_bytes = round_up(element_bytes, 256) + round_up(index_bytes, 256);
  const uint64_t places = std::min(passes - 1, 2u);
  const Buffer& scratch = sort.recorder.scratch(counter_bytes + places * place_bytes, Scratch::outer);
  Buffer counts = scratch;
  counts.bytes = counters * 4;

  const Slabs slabs = slabs_of(sort, batch);
  Place from{args.input,      nullptr,         slabs.input * sort.unit, 0, slabs.inputs * sort.unit, 0,
             batch.first_row, sort.view.inner, sort.view.axis};
  for (uint32_t pass = 0; pass < passes; ++pass) {
    const bool last = pass + 1 == passes;
    const uint32_t shift = pass * kDigitBits;
    Place to{};
    if (last) {
      to = {args.values,
            args.indices,
            slabs.output * sort.unit,
            slabs.output * index,
            slabs.outputs * sort.unit,
            slabs.outputs * index,
            batch.first_row,
            sort.view.inner,
            sort.k};
    } else {
      const uint64_t offset = counter_bytes + pass % 2 * place_bytes;
      to = {&scratch,
            index != 0 ? &scratch : nullptr,
            offset,
            offset + round_up(element_bytes, 256),
            element_bytes,
            index_bytes,
            0,
            1,
            sort.view.axis};
    }
    count_digits(sort, batch, from, chunks, shift, counts);
    const uint64_t shape[2] = {batch.rows, counters / batch.rows};
    record_scan(sort.recorder, {ScanOp::sum, TUFF_I32, &counts, &counts, shape, 2, 1, true, false});
    move_elements(sort, batch, from, to, chunks, shift, counts, last && index != 0 ? index : 4);
    from = to;
  }
}

}  // namespace

void record_sort(Recorder& recorder, const SortArgs& args) {
  require_storage(recorder.traits(), args.dtype);
  const Sort sort = sort_of(recorder, args);
  const auto& [outer, extent, inner] = sort.view;
  if (outer == 0 || extent == 0 || inner == 0) return;
  if (extent > kMaxExtent) {
    fail(TUFF_ERROR_UNSUPPORTED, "shape[{}] is {}: at most 2^32 - 2^22 elements along the axis", args.axis, extent);
  }
  if (inner > 0xffffffffu) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} elements after axis {}: at most 2^32 - 1", inner, args.axis);
  }
  const uint64_t longest = longest_segment(sort);
  const bool short_rows = extent <= longest || sort.k * 4 <= longest;
  const uint64_t rows = std::max<uint64_t>(kBatch / extent, 1), slab = extent * inner;
  // A batch is several slabs, of no more elements than a dispatch takes, or some rows of one slab.
  const uint64_t outers = std::max<uint64_t>(std::min(rows / inner, sort.device.piece / slab), 1);
  const uint64_t columns = outers > 1 ? inner : std::min(rows, inner);
  for (uint64_t o = 0; o < outer; o += outers) {
    const uint64_t count = std::min(outers, outer - o);
    for (uint64_t first = 0; first < inner; first += columns) {
      const Batch batch{o, count, first, count > 1 ? count * inner : std::min(columns, inner - first)};
      short_rows ? sort_rows(sort, batch, longest) : radix_sort(sort, batch);
    }
  }
}

}  // namespace tuff
