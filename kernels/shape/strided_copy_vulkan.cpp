// Planner of copies with strides.
//
//   units   Elements that are adjacent in both operands are copied as units of up to 16 bytes.
//   rows    CPU: long rows are copied by the device's own command, which is memcpy.
//   tiles   If the output is dense and its innermost axis is not the input's, both axes are processed in tiles, through
//           shared memory (permute_tile.comp) or, on a CPU, where that costs more than it saves, through registers
//           (permute_lanes.comp).
//   pairs   Neither operand is dense: each lane computes both places of each of its units (strided_pairs.comp).
//   plain   Otherwise each lane computes the place of each of its units in the other operand (strided_copy.comp).
//
// TUFF_SHAPE_VARIANT=gpu or cpu in the environment forces one kind of shapes, for tests.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "kernels/common/division.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/shape/strided_copy.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/permute_lanes.hpp"
#include "shaders/permute_tile.hpp"
#include "shaders/strided_copy.hpp"
#include "shaders/strided_pairs.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxUnits = 1u << 30;  // of one dispatch
constexpr uint64_t kShortestTiled = 16;   // tiles would be mostly empty along shorter axes
constexpr uint64_t kShortestTiledCpu = 6;
// Rows for which a CPU's copy command pays off. It takes 0.2 us per row and 0.05 ns per byte (measured on lavapipe),
// while kernels move 3 GB/s on each core.
constexpr uint64_t kShortestCopied = 1024, kMaxCopied = 1u << 16;
constexpr int64_t kMaxStride = (int64_t{1} << 31) - 1;  // kernels hold strides in 32 bits

StreamDevice describe(const DeviceTraits& traits) {
  return stream_device(traits, forced_variant<"TUFF_SHAPE_VARIANT">(), sizeof(float));
}

struct Task {
  Recorder& recorder;
  StreamDevice device;
  const char* name;
  uint64_t unit;  // bytes
  const Buffer *input, *output;
};

// Axes in units, and the places of coordinates 0 in bytes from the start of each operand. Such a place need not be a
// whole number of units; only together with the buffer's own offset is it aligned to a unit.
struct Piece {
  StridedAxes<2> axes;
  uint64_t input_first, output_first;
};

// The largest unit that both operands consist of, from their first elements on. Bytes stay single where the device has
// no 16-bit storage.
uint64_t unit_of(const DeviceTraits& traits, const StridedCopy& copy) {
  const StridedAxes<2>& axes = copy.axes;
  uint64_t unit = copy.element;
  if (axes.inner_stride(0) != 1 || axes.inner_stride(1) != 1) return unit;
  const auto fits = [&](uint64_t bytes) {
    const uint64_t elements = bytes / copy.element;
    if (axes.inner_size() % elements != 0) return false;
    if ((copy.input->offset + copy.input_first * copy.element) % bytes != 0) return false;
    if ((copy.output->offset + copy.output_first * copy.element) % bytes != 0) return false;
    for (uint32_t i = 0; i + 1 < axes.rank; ++i) {
      if (axes.strides[i][0] % static_cast<int64_t>(elements) != 0) return false;
      if (axes.strides[i][1] % static_cast<int64_t>(elements) != 0) return false;
    }
    return true;
  };
  while (unit < 16 && fits(2 * unit)) unit *= 2;
  return unit == 2 && !traits.storage16 ? copy.element : unit;
}

StridedAxes<2> axes_in_units(const StridedAxes<2>& axes, uint64_t elements) {
  const auto scale = static_cast<int64_t>(elements);
  StridedAxes<2> result;
  for (uint32_t i = 0; i < axes.rank; ++i) {
    if (i + 1 < axes.rank) {
      result.append(axes.sizes[i], {axes.strides[i][0] / scale, axes.strides[i][1] / scale});
    } else {
      result.append(axes.sizes[i] / elements, scale == 1 ? axes.strides[i] : StridedAxes<2>::Strides{1, 1});
    }
  }
  return result;
}

// The ranges of the operands, from the lowest to the highest unit of each.
struct Ranges {
  StridedAxes<2>::Span input, output;
};

Dispatch make_dispatch(const Task& task, const Piece& piece, const Ranges& ranges) {
  Dispatch dispatch(task.name);
  dispatch
      .operand(task.input, piece.input_first - ranges.input.first * task.unit, ranges.input.elements * task.unit,
               Access::read)
      .operand(task.output, piece.output_first - ranges.output.first * task.unit, ranges.output.elements * task.unit,
               Access::write)
      .work(2.0 * static_cast<double>(piece.axes.count() * task.unit), 0);
  return dispatch;
}

void record_plain(const Task& task, const Piece& piece) {
  const DeviceTraits& traits = task.recorder.traits();
  const StridedAxes<2>& axes = piece.axes;
  const bool scatter = !axes.dense(1);
  const size_t strided = scatter ? 1 : 0;
  const Ranges ranges{axes.span(0), axes.span(1)};
  // Consecutive units in both operands: on a CPU a lane computes the place of the first alone.
  uint64_t repeat = 1;
  if (task.device.cpu && axes.inner_stride(0) == 1 && axes.inner_stride(1) == 1) {
    while (repeat < 4 && axes.inner_size() % (2 * repeat) == 0) repeat *= 2;
  }
  const uint64_t n = axes.count() / repeat;
  const uint32_t unroll = repeat > 1 ? 1 : task.unit < 16 || task.device.cpu ? 4 : 1;
  const uint64_t run = task.device.cpu ? task.device.items_each(n, 128, 4) : unroll;
  StridedAxes<2> repeated = axes;
  if (repeat > 1) {
    const auto times = static_cast<int64_t>(repeat);
    repeated.sizes[axes.rank - 1] /= repeat;
    repeated.strides[axes.rank - 1] = {times, times};
  }
  const uint64_t first = scatter ? ranges.output.first : ranges.input.first;
  shaders::StridedCopy::Push push{.n = static_cast<uint32_t>(n),
                                  .run = static_cast<uint32_t>(run),
                                  .first = static_cast<uint32_t>(first & 0xffffffffu),
                                  .first_high = static_cast<uint32_t>(first >> 32)};
  AxisDividers<8>(repeated).store(push);
  for (uint32_t i = 0; i < axes.rank; ++i) {
    push.strides[i] = static_cast<int32_t>(repeated.strides[axes.rank - 1 - i][strided]);
  }
  KernelRequest kernel = shaders::StridedCopy::request({.long_ = traits.cpu && traits.addresses && task.unit >= 8,
                                                        .repeat = repeat,
                                                        .run = task.device.fixed_run(run),
                                                        .unit = task.unit,
                                                        .unroll = unroll});
  kernel.streaming()
      .wide(needs_wide(std::max(ranges.input.elements, ranges.output.elements)))
      .constant(0, task.device.workgroup)
      .constant(1, std::max(axes.rank, 1u))
      .constant(2, scatter);
  Dispatch dispatch = make_dispatch(task, piece, ranges);
  dispatch.push(push).groups_linear(ceil_div(n, task.device.workgroup * run), traits);
  log(TUFF_LOG_DISPATCH, "{} n={}: units of {} bytes, {} axes, {}, {} lanes, {} times {} each", task.name, n, task.unit,
      axes.rank, scatter ? "scattered" : "gathered", task.device.workgroup, run, repeat);
  task.recorder.dispatch(kernel, dispatch);
}

void record_pairs(const Task& task, const Piece& piece) {
  const DeviceTraits& traits = task.recorder.traits();
  const StridedAxes<2>& axes = piece.axes;
  const Ranges ranges{axes.span(0), axes.span(1)};
  std::array<uint32_t, 40> table{};
  for (uint32_t i = 0; i < axes.rank; ++i) {
    const uint32_t d = axes.rank - 1 - i;
    const auto size = static_cast<uint32_t>(axes.sizes[d]);
    const Divider by = divider(size);
    uint32_t* words = table.data() + 5 * size_t{i};
    words[0] = size, words[1] = by.multiplier, words[2] = by.shift;
    words[3] = static_cast<uint32_t>(axes.strides[d][0]), words[4] = static_cast<uint32_t>(axes.strides[d][1]);
  }
  const uint32_t table_bytes = 20 * axes.rank;
  const uint64_t n = axes.count(), run = task.device.cpu ? task.device.items_each(n, 128) : task.unit < 16 ? 4 : 1;
  KernelRequest kernel = shaders::StridedPairs::request({.long_ = traits.cpu && traits.addresses && task.unit >= 8,
                                                         .run = task.device.fixed_run(run),
                                                         .unit = task.unit});
  kernel.streaming()
      .wide(needs_wide(std::max(ranges.input.elements, ranges.output.elements)))
      .constant(0, task.device.workgroup)
      .constant(1, axes.rank);
  Dispatch dispatch = make_dispatch(task, piece, ranges);
  dispatch.operand(&task.recorder.parameters(table.data(), table_bytes), 0, table_bytes, Access::read)
      .push(shaders::StridedPairs::Push{.n = static_cast<uint32_t>(n),
                                        .run = static_cast<uint32_t>(run),
                                        .input_first = static_cast<uint32_t>(ranges.input.first & 0xffffffffu),
                                        .input_first_high = static_cast<uint32_t>(ranges.input.first >> 32),
                                        .output_first = static_cast<uint32_t>(ranges.output.first & 0xffffffffu),
                                        .output_first_high = static_cast<uint32_t>(ranges.output.first >> 32)})
      .groups_linear(ceil_div(n, task.device.workgroup * run), traits);
  log(TUFF_LOG_DISPATCH, "{} n={}: units of {} bytes, {} axes, both strided, {} lanes, {} each", task.name, n,
      task.unit, axes.rank, task.device.workgroup, run);
  task.recorder.dispatch(kernel, dispatch);
}

// How the two axes of a transpose are cut.
struct Tiling {
  uint64_t across, along;  // elements of a tile
  uint64_t run;            // CPU: blocks along that a workgroup processes
  bool vec4s;              // CPU: rows of both operands consist of aligned vec4s
  bool pairs;              // GPU: rows consist of aligned pairs of two-byte elements
};

// Whether the sizes of the two axes and all strides and bases are multiples of `elements`.
bool made_of(const Task& task, const Piece& piece, uint32_t across, int64_t elements) {
  const StridedAxes<2>& axes = piece.axes;
  const auto whole = static_cast<uint64_t>(elements);
  for (uint32_t i = 0; i < axes.rank; ++i) {
    const bool along = i + 1 == axes.rank;
    if ((i == across || along) && axes.sizes[i] % whole != 0) return false;
    if (i != across && axes.strides[i][0] % elements != 0) return false;
    if (!along && axes.strides[i][1] % elements != 0) return false;
  }
  const uint64_t bytes = whole * task.unit;
  return (task.input->offset + piece.input_first) % bytes == 0 &&
         (task.output->offset + piece.output_first) % bytes == 0;
}

uint64_t gpu_tile(const Task& task) { return task.unit == 8 ? 32 : 64; }

Tiling tiling_of(const Task& task, const Piece& piece, uint32_t across) {
  const StridedAxes<2>& axes = piece.axes;
  if (!task.device.cpu) {
    const uint64_t tile = gpu_tile(task);
    return {tile, tile, 0, false, task.unit == 2 && made_of(task, piece, across, 2)};
  }
  Tiling tiling{64, 8, 1, task.unit < 8 && made_of(task, piece, across, 4), false};
  const uint64_t blocks = axes.count() / (tiling.across * tiling.along);
  tiling.run = few_values(std::min(blocks / (8 * task.device.cores), ceil_div(axes.inner_size(), tiling.along)), 1, 64);
  tiling.along *= tiling.run;
  return tiling;
}

// The axis that is innermost in the input, if tiling pays: both axes are long, and the device has room for a tile.
std::optional<uint32_t> across_axis(const Task& task, const StridedAxes<2>& axes) {
  if (axes.rank < 2 || task.unit > 8 || !axes.dense(1)) return std::nullopt;
  const uint64_t shortest = task.device.cpu ? kShortestTiledCpu : kShortestTiled;
  if (!task.device.cpu) {
    const uint64_t tile = gpu_tile(task), held = std::max<uint64_t>(task.unit, 4);
    if (tile * (tile + 1) * held > task.recorder.traits().shared_bytes) return std::nullopt;
    if (tile * tile / 4 % task.device.workgroup != 0 || task.device.workgroup % tile != 0) return std::nullopt;
  }
  if (axes.inner_size() < shortest) return std::nullopt;
  std::optional<uint32_t> across;
  for (uint32_t i = 0; i < axes.rank; ++i) {
    if (axes.strides[i][0] < 0) return std::nullopt;
    if (!across && i + 1 < axes.rank && axes.strides[i][0] == 1 && axes.sizes[i] >= shortest) across = i;
  }
  return across;
}

// The push block of either tile kernel: Push is that of permute_lanes.comp or permute_tile.comp.
template <typename Push>
Push tiles_push(const StridedAxes<2>& axes, const Tiling& tiling, uint32_t across) {
  const uint32_t along = axes.rank - 1;
  Push push;
  push.across = static_cast<uint32_t>(axes.sizes[across]);
  push.along = static_cast<uint32_t>(axes.sizes[along]);
  push.across_tiles = static_cast<uint32_t>(ceil_div(axes.sizes[across], tiling.across));
  push.along_tiles = static_cast<uint32_t>(ceil_div(axes.sizes[along], tiling.along));
  push.groups = push.across_tiles * push.along_tiles;
  push.input_stride = static_cast<uint32_t>(axes.strides[along][0]);
  push.output_stride = static_cast<uint32_t>(axes.strides[across][1]);
  uint32_t rank = 0;
  for (uint32_t i = axes.rank; i-- > 0;) {
    if (i == across || i == along) continue;
    if (rank < 5) push.batch_sizes[rank] = static_cast<uint32_t>(axes.sizes[i]);
    push.input_strides[rank] = static_cast<uint32_t>(axes.strides[i][0]);
    push.output_strides[rank++] = static_cast<uint32_t>(axes.strides[i][1]);
    push.groups *= static_cast<uint32_t>(axes.sizes[i]);
  }
  return push;
}

void record_tiles(const Task& task, const Piece& piece, uint32_t across) {
  const DeviceTraits& traits = task.recorder.traits();
  const StridedAxes<2>& axes = piece.axes;
  const Tiling tiling = tiling_of(task, piece, across);
  const Ranges ranges{axes.span(0), axes.span(1)};
  const auto record = [&](KernelRequest& kernel, const auto& push) {
    kernel.streaming()
        .wide(needs_wide(std::max(ranges.input.elements, ranges.output.elements)))
        .constant(0, task.device.workgroup)
        .constant(2, axes.rank - 2);
    Dispatch dispatch = make_dispatch(task, piece, ranges);
    dispatch.push(push).groups_linear(push.groups, traits);
    log(TUFF_LOG_DISPATCH, "{} of {} bytes: {} tiles of {}x{} across {} and along {}", task.name, task.unit,
        push.groups, tiling.across, tiling.along, axes.sizes[across], axes.sizes[axes.rank - 1]);
    task.recorder.dispatch(kernel, dispatch);
  };
  if (task.device.cpu) {
    KernelRequest kernel = shaders::PermuteLanes::request({.long_ = traits.addresses && task.unit == 8,
                                                           .run = task.device.fixed_run(tiling.run),
                                                           .unit = task.unit,
                                                           .vec4s = tiling.vec4s});
    auto push = tiles_push<shaders::PermuteLanes::Push>(axes, tiling, across);
    push.run = static_cast<uint32_t>(tiling.run);
    record(kernel, push);
  } else {
    KernelRequest kernel = shaders::PermuteTile::request({.pairs = tiling.pairs, .unit = task.unit});
    kernel.constant(1, static_cast<uint32_t>(tiling.across));
    record(kernel, tiles_push<shaders::PermuteTile::Push>(axes, tiling, across));
  }
}

void record_piece(const Task& task, const Piece& piece) {
  const std::optional<uint32_t> across = across_axis(task, piece.axes);
  if (across) return record_tiles(task, piece, *across);
  piece.axes.dense(0) || piece.axes.dense(1) ? record_plain(task, piece) : record_pairs(task, piece);
}

// Whether the copy is of long rows, which a CPU device copies faster by its own command than by its lanes.
bool are_rows(const StridedCopy& copy) {
  const StridedAxes<2>& axes = copy.axes;
  if (axes.rank > 2 || axes.inner_stride(0) != 1 || axes.inner_stride(1) != 1) return false;
  const uint64_t row = axes.inner_size() * copy.element, rows = axes.count() / axes.inner_size();
  return row >= kShortestCopied && rows <= kMaxCopied &&
         (axes.rank < 2 || (axes.strides[0][0] >= 0 && axes.strides[0][1] >= 0));
}

void record_rows(Recorder& recorder, const StridedCopy& copy) {
  const StridedAxes<2>& axes = copy.axes;
  const uint64_t row = axes.inner_size() * copy.element, rows = axes.count() / axes.inner_size();
  const uint64_t pitch = copy.element * (axes.rank == 2);
  recorder.copy_rows({copy.output, copy.output_first * copy.element, static_cast<uint64_t>(axes.strides[0][1]) * pitch},
                     {copy.input, copy.input_first * copy.element, static_cast<uint64_t>(axes.strides[0][0]) * pitch},
                     row, rows);
}

// Cuts the outermost axis until one dispatch can address each part.
void record_pieces(const Task& task, const Piece& piece) {
  const StridedAxes<2>& axes = piece.axes;
  const uint64_t count = axes.count();
  const auto reached = [&](uint32_t i) {
    return std::max(std::llabs(axes.strides[i][0]), std::llabs(axes.strides[i][1])) <= kMaxStride;
  };
  bool reach = true;
  for (uint32_t i = 0; i < axes.rank; ++i) reach = reach && reached(i);
  if (count <= kMaxUnits && reach) return record_piece(task, piece);
  if (!reach && count <= kMaxUnits && axes.rank > 1 && reached(0)) {
    fail(TUFF_ERROR_UNSUPPORTED, "elements of one axis are 2^31 units of {} bytes or more apart", task.unit);
  }
  const uint64_t step = reached(0) ? std::max<uint64_t>(kMaxUnits / (count / axes.sizes[0]), 1) : 1;
  for (uint64_t begin = 0; begin < axes.sizes[0]; begin += step) {
    Piece part{{},
               piece.input_first + begin * static_cast<uint64_t>(axes.strides[0][0]) * task.unit,
               piece.output_first + begin * static_cast<uint64_t>(axes.strides[0][1]) * task.unit};
    part.axes.append(std::min(step, axes.sizes[0] - begin), axes.strides[0]);
    for (uint32_t i = 1; i < axes.rank; ++i) part.axes.append(axes.sizes[i], axes.strides[i]);
    record_pieces(task, part);
  }
}

}  // namespace

void check_strided_copy(Recorder& recorder, const StridedCopy& copy) {
  const DeviceTraits& traits = recorder.traits();
  const uint64_t unit = unit_of(traits, copy);
  if ((unit != 1 || traits.storage8) && (unit != 2 || traits.storage16)) return;
  if (describe(traits).cpu && are_rows(copy)) return;
  fail(TUFF_ERROR_UNSUPPORTED, "elements have {} bytes, and the device has no such storage", unit);
}

void record_strided_copy(Recorder& recorder, const StridedCopy& copy) {
  const StreamDevice device = describe(recorder.traits());
  if (device.cpu && are_rows(copy)) return record_rows(recorder, copy);
  check_strided_copy(recorder, copy);
  const uint64_t unit = unit_of(recorder.traits(), copy), elements = unit / copy.element;
  const Task task{recorder, device, copy.name, unit, copy.input, copy.output};
  record_pieces(
      task, {axes_in_units(copy.axes, elements), copy.input_first * copy.element, copy.output_first * copy.element});
}

}  // namespace tuff
