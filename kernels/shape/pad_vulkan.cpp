// Planner of pad. On a CPU, a large output is made of copies of the input and of its borders (pad_copies_vulkan.cpp);
// if most of it is the constant, or elements are removed, it is filled and what the input has is copied over it.
// Otherwise one kernel writes all: axes that are not padded are merged; elements of the innermost one are copied as
// units of up to 16 bytes.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/division.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/memory/memory.hpp"
#include "kernels/shape/pad.hpp"
#include "kernels/shape/shape.hpp"
#include "kernels/shape/strided_copy.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/pad.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxUnits = 1u << 30;     // of one dispatch
constexpr uint64_t kLeastFilled = 1u << 14;  // elements for which two dispatches cost less than computed places

struct Axis {
  uint64_t in, out;
  int64_t before;
  uint64_t stride;  // of the input
};

struct Task {
  Recorder& recorder;
  StreamDevice device;
  const PadArgs& args;
  uint64_t unit;    // bytes
  uint64_t inputs;  // units
  std::array<uint32_t, 4> value;
};

// Axes of the output in units, outermost first, and the unit of the output at coordinates 0.
struct Piece {
  std::array<Axis, 8> axes;
  uint32_t rank;
  uint64_t output;

  uint64_t count() const {
    uint64_t n = 1;
    for (uint32_t d = 0; d < rank; ++d) n *= axes[d].out;
    return n;
  }
};

void record_piece(const Task& task, const Piece& piece) {
  const DeviceTraits& traits = task.recorder.traits();
  const uint64_t n = piece.count();
  // 2 n - 1 of an axis is computed, too.
  bool wide = needs_wide(2 * task.inputs);
  std::array<uint32_t, 96> table{};
  const auto put = [&](uint32_t place, uint64_t number) {
    table[place] = static_cast<uint32_t>(number & 0xffffffffu);
    table[place + 1] = static_cast<uint32_t>(number >> 32);
  };
  for (uint32_t i = 0; i < piece.rank; ++i) {
    const Axis& axis = piece.axes[piece.rank - 1 - i];
    const Divider by = divider(static_cast<uint32_t>(axis.out));
    table[12 * i] = static_cast<uint32_t>(axis.out), table[12 * i + 1] = by.multiplier, table[12 * i + 2] = by.shift;
    put(12 * i + 4, axis.in), put(12 * i + 6, static_cast<uint64_t>(axis.before)), put(12 * i + 8, axis.stride);
    wide = wide || static_cast<uint64_t>(std::llabs(axis.before)) > kMaxUnits;
  }
  const uint32_t table_bytes = 48 * piece.rank;
  const uint64_t run = task.device.cpu ? task.device.items_each(n, 128) : task.unit < 16 ? 4 : 1;
  KernelRequest kernel = shaders::Pad::request({.long_ = traits.cpu && traits.addresses && task.unit >= 8,
                                                .mode = task.args.mode,
                                                .run = task.device.fixed_run(run),
                                                .unit = task.unit});
  kernel.streaming().wide(wide).constant(0, task.device.workgroup).constant(1, piece.rank);
  shaders::Pad::Push push{.n = static_cast<uint32_t>(n), .run = static_cast<uint32_t>(run)};
  std::copy(task.value.begin(), task.value.end(), push.value);
  Dispatch dispatch("pad");
  dispatch.operand(task.inputs == 0 ? nullptr : task.args.input, 0, task.inputs * task.unit, Access::read)
      .operand(task.args.output, piece.output * task.unit, n * task.unit, Access::write)
      .operand(&task.recorder.parameters(table.data(), table_bytes), 0, table_bytes, Access::read)
      .push(push)
      .groups_linear(ceil_div(n, task.device.workgroup * run), traits)
      .work(static_cast<double>(2 * n * task.unit), 0);
  log(TUFF_LOG_DISPATCH, "pad n={}: units of {} bytes, {} axes, {} lanes, {} each", n, task.unit, piece.rank,
      task.device.workgroup, run);
  task.recorder.dispatch(kernel, dispatch);
}

// Cuts the outermost axis until one dispatch can address each part.
void record_pieces(const Task& task, const Piece& piece) {
  const uint64_t count = piece.count();
  if (count <= kMaxUnits) return record_piece(task, piece);
  if (piece.axes[0].out == 1) {
    // The position along this axis stays, and the others are cut. A piece keeps all its axes for that reason.
    Piece rest = piece;
    std::rotate(rest.axes.begin(), rest.axes.begin() + 1, rest.axes.begin() + rest.rank);
    return record_pieces(task, rest);
  }
  const Axis& outer = piece.axes[0];
  const uint64_t inner = count / outer.out, step = std::max<uint64_t>(kMaxUnits / inner, 1);
  for (uint64_t begin = 0; begin < outer.out; begin += step) {
    Piece part = piece;
    part.axes[0].out = std::min(step, outer.out - begin);
    part.axes[0].before -= static_cast<int64_t>(begin);
    part.output += begin * inner;
    record_pieces(task, part);
  }
}

// Returns false, and has recorded nothing, where the kernel is to write everything.
bool record_filled(Recorder& recorder, const PadArgs& args, const std::array<uint64_t, 8>& shape) {
  const StreamDevice device = stream_device(recorder.traits(), forced_variant<"TUFF_SHAPE_VARIANT">(), sizeof(float));
  const uint64_t size = dtype_size(args.dtype), elements = checked_product({shape.data(), args.rank}, "shape");
  const bool words = elements * size % 4 == 0 && args.output->offset % 8 == 0;
  if (!device.cpu || args.mode != TUFF_PAD_CONSTANT || elements < kLeastFilled || size > 8 || !words) return false;
  const StridedCopy copy = copy_of_padded(args, shape);
  const bool copies = copy.axes.count() != 0;
  if (copies) check_strided_copy(recorder, copy);
  log(TUFF_LOG_DISPATCH, "pad n={}: filled, and {} elements copied, {} lanes", elements, copies ? copy.axes.count() : 0,
      device.workgroup);
  record_fill(recorder, *args.output, 0, elements * size, pad_pattern(args));
  if (copies) record_strided_copy(recorder, copy);
  return true;
}

}  // namespace

StridedCopy copy_of_padded(const PadArgs& args, const std::array<uint64_t, 8>& shape) {
  StridedCopy copy{"pad", dtype_size(args.dtype), args.input, args.output, 0, 0, {}};
  std::array<StridedAxes<2>::Strides, 8> strides{};
  std::array<uint64_t, 8> counts{};
  int64_t input = 1, output = 1;
  for (uint32_t d = args.rank; d-- > 0;) {
    const uint64_t added = args.before[d] > 0 ? static_cast<uint64_t>(args.before[d]) : 0;
    const uint64_t removed = args.before[d] < 0 ? uint64_t{0} - static_cast<uint64_t>(args.before[d]) : 0;
    const bool some = removed < args.shape[d] && added < shape[d];
    counts[d] = some ? std::min(args.shape[d] - removed, shape[d] - added) : 0;
    copy.input_first += removed * static_cast<uint64_t>(input);
    copy.output_first += added * static_cast<uint64_t>(output);
    strides[d] = {input, output};
    input *= static_cast<int64_t>(args.shape[d]);
    output *= static_cast<int64_t>(shape[d]);
  }
  for (uint32_t d = 0; d < args.rank; ++d) copy.axes.append(counts[d], strides[d]);
  return copy;
}

void record_pad(Recorder& recorder, const PadArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, args.dtype);
  const std::array<uint64_t, 8> shape = padded_shape(args);
  if (checked_product({shape.data(), args.rank}, "shape") == 0) return;
  if (record_pad_copies(recorder, args, shape) || record_filled(recorder, args, shape)) return;
  const uint64_t size = dtype_size(args.dtype);
  Piece piece{{}, 0, 0};
  uint64_t inputs = 1;
  for (uint32_t d = args.rank; d-- > 0; inputs *= args.shape[d]) {
    // Innermost first; reversed below.
    const Axis axis{args.shape[d], shape[d], args.before[d], inputs};
    const bool whole = args.before[d] == 0 && args.after[d] == 0;
    if (whole && axis.out == 1) continue;
    Axis* inside = piece.rank == 0 ? nullptr : &piece.axes[piece.rank - 1];
    if (whole && inside != nullptr && inside->before == 0 && inside->in == inside->out) {
      inside->in *= axis.in;
      inside->out = inside->in;
    } else {
      piece.axes[piece.rank++] = axis;
    }
  }
  if (piece.rank == 0) piece.axes[piece.rank++] = {1, 1, 0, 1};
  uint64_t unit = size;
  Axis& innermost = piece.axes[0];
  if (innermost.before == 0 && innermost.in == innermost.out && innermost.stride == 1) {
    const uint64_t all = innermost.in * size | args.input->offset | args.output->offset;
    unit = std::min<uint64_t>(all & (~all + 1), 16);
    if (unit == 2 && !traits.storage16) unit = size;
    const uint64_t elements = unit / size;
    innermost.in /= elements, innermost.out /= elements;
    for (uint32_t d = 1; d < piece.rank; ++d) piece.axes[d].stride /= elements;
    inputs /= elements;
  }
  std::reverse(piece.axes.begin(), piece.axes.begin() + piece.rank);
  Task task{recorder, stream_device(traits, forced_variant<"TUFF_SHAPE_VARIANT">(), sizeof(float)),
            args,     unit,
            inputs,   pad_pattern(args)};
  record_pieces(task, piece);
}

}  // namespace tuff
