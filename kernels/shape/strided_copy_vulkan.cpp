// Planner of copies with strides.
//
//   units   Elements that lie side by side in both operands are copied as units of up to 16 bytes.
//   tiles   GPU, output dense: where the innermost axes of input and output differ, both are gone through row by row
//           by way of shared memory (permute_tile.comp). A CPU's caches do that, and shared memory there costs more.
//   plain   otherwise: each lane finds the place of its units by itself (strided_copy.comp).
//
// TUFF_SHAPE_VARIANT=gpu or cpu in the environment forces one kind of shapes, for tests.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "kernels/common/stream_device.hpp"
#include "kernels/shape/strided_copy.hpp"
#include "runtime/log.hpp"
#include "runtime/platform/platform.hpp"
#include "runtime/vulkan/recorder.hpp"
#include "shaders.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMostUnits = 1u << 30;                // of one dispatch
constexpr uint64_t kShortestTiled = 16;                  // an axis that a tile would be mostly empty along
constexpr int64_t kMostStride = (int64_t{1} << 31) - 1;  // strides are 32-bit numbers in kernels

struct Task {
  Recorder& recorder;
  StreamDevice device;
  const char* name;
  uint64_t unit;  // bytes
  const Buffer *input, *output;
};

// In units: where the operands' coordinates 0 are.
struct Piece {
  StridedAxes<2> axes;
  uint64_t input_first, output_first;
};

// The largest unit that both operands consist of.
uint64_t unit_of(const StridedCopy& copy) {
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
  return unit;
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

// The operands' ranges: from the lowest to the highest unit of each.
struct Ranges {
  StridedAxes<2>::Span input, output;
};

Dispatch make_dispatch(const Task& task, const Piece& piece, const Ranges& ranges) {
  Dispatch dispatch(task.name);
  dispatch
      .operand(task.input, (piece.input_first - ranges.input.first) * task.unit, ranges.input.elements * task.unit,
               Access::read)
      .operand(task.output, (piece.output_first - ranges.output.first) * task.unit, ranges.output.elements * task.unit,
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
  const uint64_t n = axes.count();
  const uint32_t unroll = task.unit < 16 || task.device.cpu ? 4 : 1;
  const uint64_t run = task.device.cpu
                           ? std::clamp<uint64_t>(n / task.device.workgroup / (8 * task.device.cores) / 4 * 4, 4, 128)
                           : unroll;
  struct Push {
    uint32_t n, first;
    AxisDividers<8> axes;
    int32_t strides[8];
  } push{static_cast<uint32_t>(n),
         static_cast<uint32_t>(scatter ? ranges.output.first : ranges.input.first),
         AxisDividers<8>(axes),
         {}};
  for (uint32_t i = 0; i < axes.rank; ++i) {
    push.strides[i] = static_cast<int32_t>(axes.strides[axes.rank - 1 - i][strided]);
  }
  KernelRequest kernel(shaders::strided_copy);
  kernel.streaming()
      .wide(needs_wide(std::max(ranges.input.elements, ranges.output.elements)))
      .define("TUFF_UNIT", static_cast<int64_t>(task.unit))
      .define("TUFF_LONG", traits.cpu && traits.addresses && task.unit >= 8)
      .define("TUFF_UNROLL", unroll)
      .constant(0, task.device.workgroup)
      .constant(1, static_cast<uint32_t>(run))
      .constant(2, std::max(axes.rank, 1u))
      .constant(3, scatter);
  Dispatch dispatch = make_dispatch(task, piece, ranges);
  dispatch.push(push).groups_linear(ceil_div(n, task.device.workgroup * run), traits);
  log(TUFF_LOG_DISPATCH, "{} n={}: units of {} bytes, {} axes, {}, {} lanes, {} each", task.name, n, task.unit,
      axes.rank, scatter ? "scattered" : "gathered", task.device.workgroup, run);
  task.recorder.dispatch(kernel, dispatch);
}

// The axis that is the input's innermost, if tiles pay: both axes are long, and the device has room for a tile.
std::optional<uint32_t> across_axis(const Task& task, const StridedAxes<2>& axes, uint32_t tile) {
  if (task.device.cpu || axes.rank < 2 || task.unit > 8 || !axes.dense(1)) return std::nullopt;
  const uint64_t held = std::max<uint64_t>(task.unit, 4);
  if (tile * (tile + 1) * held > task.recorder.traits().shared_bytes) return std::nullopt;
  if (tile * tile / 4 % task.device.workgroup != 0 || task.device.workgroup % tile != 0 ||
      axes.inner_size() < kShortestTiled)
    return std::nullopt;
  for (uint32_t i = 0; i + 1 < axes.rank; ++i) {
    if (axes.strides[i][0] < 0) return std::nullopt;
    if (axes.strides[i][0] == 1 && axes.sizes[i] >= kShortestTiled) return i;
  }
  return std::nullopt;
}

void record_tiles(const Task& task, const Piece& piece, uint32_t across, uint32_t tile) {
  const DeviceTraits& traits = task.recorder.traits();
  const StridedAxes<2>& axes = piece.axes;
  const uint32_t along = axes.rank - 1;
  struct Push {
    uint32_t across, along, across_tiles, along_tiles, groups, input_stride, output_stride;
    uint32_t batch_sizes[5], input_strides[6], output_strides[6];
  } push{};
  const uint64_t across_tiles = ceil_div(axes.sizes[across], tile), along_tiles = ceil_div(axes.sizes[along], tile);
  uint64_t groups = across_tiles * along_tiles;
  uint32_t batch_rank = 0;
  for (uint32_t i = axes.rank; i-- > 0;) {
    if (i == across || i == along) continue;
    if (batch_rank < 5) push.batch_sizes[batch_rank] = static_cast<uint32_t>(axes.sizes[i]);
    push.input_strides[batch_rank] = static_cast<uint32_t>(axes.strides[i][0]);
    push.output_strides[batch_rank++] = static_cast<uint32_t>(axes.strides[i][1]);
    groups *= axes.sizes[i];
  }
  push.across = static_cast<uint32_t>(axes.sizes[across]);
  push.along = static_cast<uint32_t>(axes.sizes[along]);
  push.across_tiles = static_cast<uint32_t>(across_tiles);
  push.along_tiles = static_cast<uint32_t>(along_tiles);
  push.groups = static_cast<uint32_t>(groups);
  push.input_stride = static_cast<uint32_t>(axes.strides[along][0]);
  push.output_stride = static_cast<uint32_t>(axes.strides[across][1]);
  const Ranges ranges{axes.span(0), axes.span(1)};
  KernelRequest kernel(shaders::permute_tile);
  kernel.streaming()
      .wide(needs_wide(std::max(ranges.input.elements, ranges.output.elements)))
      .define("TUFF_UNIT", static_cast<int64_t>(task.unit))
      .constant(0, task.device.workgroup)
      .constant(1, tile)
      .constant(2, batch_rank);
  Dispatch dispatch = make_dispatch(task, piece, ranges);
  dispatch.push(push).groups_linear(groups, traits);
  log(TUFF_LOG_DISPATCH, "{} of {} bytes: {} tiles of {}x{} across {} and along {}", task.name, task.unit, groups, tile,
      tile, axes.sizes[across], axes.sizes[along]);
  task.recorder.dispatch(kernel, dispatch);
}

void record_piece(const Task& task, const Piece& piece) {
  const uint32_t tile = task.unit == 8 ? 32 : 64;
  const std::optional<uint32_t> across = across_axis(task, piece.axes, tile);
  across ? record_tiles(task, piece, *across, tile) : record_plain(task, piece);
}

// Cuts the outermost axis until a dispatch reaches what is left.
void record_pieces(const Task& task, const Piece& piece) {
  const StridedAxes<2>& axes = piece.axes;
  const uint64_t count = axes.count();
  const auto reached = [&](uint32_t i) {
    return std::max(std::llabs(axes.strides[i][0]), std::llabs(axes.strides[i][1])) <= kMostStride;
  };
  bool reach = true;
  for (uint32_t i = 0; i < axes.rank; ++i) reach = reach && reached(i);
  if (count <= kMostUnits && reach) return record_piece(task, piece);
  if (!reach && count <= kMostUnits && axes.rank > 1 && reached(0)) {
    fail(TUFF_ERROR_UNSUPPORTED, "elements of one axis lie 2^31 units of {} bytes apart or more", task.unit);
  }
  const uint64_t step = reached(0) ? std::max<uint64_t>(kMostUnits / (count / axes.sizes[0]), 1) : 1;
  for (uint64_t begin = 0; begin < axes.sizes[0]; begin += step) {
    Piece part{{},
               piece.input_first + begin * static_cast<uint64_t>(axes.strides[0][0]),
               piece.output_first + begin * static_cast<uint64_t>(axes.strides[0][1])};
    part.axes.append(std::min(step, axes.sizes[0] - begin), axes.strides[0]);
    for (uint32_t i = 1; i < axes.rank; ++i) part.axes.append(axes.sizes[i], axes.strides[i]);
    record_pieces(task, part);
  }
}

}  // namespace

void record_strided_copy(Recorder& recorder, const StridedCopy& copy) {
  const uint64_t unit = unit_of(copy), elements = unit / copy.element;
  const DeviceTraits& traits = recorder.traits();
  if ((unit == 1 && !traits.storage8) || (unit == 2 && !traits.storage16)) {
    fail(TUFF_ERROR_UNSUPPORTED, "elements of {} bytes are copied, and the device has no such storage", unit);
  }
  const Task task{recorder,   stream_device(traits, platform::environment_once<"TUFF_SHAPE_VARIANT">(), sizeof(float)),
                  copy.name,  unit,
                  copy.input, copy.output};
  record_pieces(task, {axes_in_units(copy.axes, elements), copy.input_first / elements, copy.output_first / elements});
}

}  // namespace tuff
