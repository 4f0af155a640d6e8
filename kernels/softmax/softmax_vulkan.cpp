// Planner of softmax. The axis is viewed as (outer, extent, inner):
//
//   inner = 1   softmax_rows: a row in the registers of 1 … a subgroup of lanes, or of a workgroup (GPU);
//               softmax_split_rows: longer rows, one group for each, or segments where rows are few
//   inner > 1   softmax_columns: lanes along inner; where there are few, rows are dealt out to segments
//
// TUFF_SOFTMAX_VARIANT=gpu or cpu in the environment forces the shapes of that class, for tests.
#include <algorithm>
#include <optional>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/row_plan.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/softmax/softmax.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders.hpp"

namespace tuff {
namespace {

constexpr double kFlops = 45;  // a rough price for one element

StreamDevice describe(const DeviceTraits& traits) {
  return stream_device(traits, forced_variant<"TUFF_SOFTMAX_VARIANT">(), sizeof(float));
}

struct Task {
  Recorder& recorder;
  StreamDevice device;
  int32_t dtype;
  const Buffer *input, *output;
  uint64_t outer, extent, inner;
  float scale;
  bool logarithm;
  SoftmaxMask mask;

  uint64_t element() const { return dtype_size(dtype); }
  // Of rows: elements of a block, and whether they are no whole number of them.
  uint64_t block() const { return 4 * block_parts(dtype); }
  bool peel() const { return extent % block() != 0; }
  // TUFF_VECTOR, where all blocks start at a multiple of one's size within the operands.
  int vector(bool whole) const {
    return vector_mode(recorder.traits(), whole && aligned16(input) && aligned16(output) && aligned16(mask.buffer));
  }
};

// What all kernels have: TUFF_MASK 0 none, 1 added, 2 bytes (input.glsl).
KernelRequest make_kernel(const Task& task, const KernelSource& source, uint32_t parts, bool whole) {
  KernelRequest kernel(source);
  kernel.streaming();
  kernel.define("TUFF_TYPE", task.dtype)
      .define("TUFF_PARTS", parts)
      .define("TUFF_VECTOR", task.vector(whole))
      .define("TUFF_EXACT_ARITHMETIC", task.recorder.traits().cpu)
      .define("TUFF_LOGARITHM", task.logarithm)
      .define("TUFF_MASK", task.mask.buffer == nullptr ? 0
                           : task.mask.type == TUFF_U8 ? 2
                                                       : 1);
  return kernel;
}

uint64_t mask_elements(const Task& task) {
  return task.mask.buffer != nullptr ? task.mask.rows * task.extent * task.inner : 0;
}

// The mask as a whole: any of its rows may come up.
void add_mask(const Task& task, Dispatch& dispatch) {
  dispatch.operand(task.mask.buffer, 0, mask_elements(task) * dtype_size(task.mask.type), Access::read);
}

struct InputPush {
  float scale;
  uint32_t mask_first, mask_rows, mask_repeat;
};

// Of a piece that begins at this index before the axis.
InputPush input_push(const Task& task, uint64_t first) {
  const uint64_t period = task.mask.rows * task.mask.repeat;
  return {task.scale, static_cast<uint32_t>(first % period), static_cast<uint32_t>(task.mask.rows),
          static_cast<uint32_t>(task.mask.repeat)};
}

Dispatch make_dispatch(const Task& task, uint64_t first, uint64_t elements, double passes) {
  Dispatch dispatch("softmax");
  dispatch.operand(task.input, first * task.element(), elements * task.element(), Access::read)
      .operand(task.output, first * task.element(), elements * task.element(), Access::write)
      .work(passes * static_cast<double>(elements * task.element()), kFlops * static_cast<double>(elements));
  return dispatch;
}

// ---- rows in registers -----------------------------------------------------------------------------

void record_register_rows(const Task& task, const RegisterRows& shape) {
  KernelRequest kernel = make_kernel(task, shaders::softmax_rows, block_parts(task.dtype), !task.peel());
  kernel.define("TUFF_LANES", shape.lanes)
      .define("TUFF_SHARED", shape.shared)
      .define("TUFF_BLOCKS", shape.blocks)
      .define("TUFF_PEEL", task.peel())
      .define("TUFF_EXACT", task.extent == task.block() * shape.lanes * shape.blocks)
      .constant(0, shape.workgroup)
      .wide(needs_wide(mask_elements(task)));
  uint64_t step = task.device.piece / task.extent;
  if (step >= 8) step -= step % 8;  // keeps the alignment of the whole
  for (uint64_t row = 0; row < task.outer; row += step) {
    const uint64_t rows = std::min(step, task.outer - row);
    struct Push {
      uint32_t rows, extent;
      InputPush input;
      uint32_t mask_extent, mask_begin;
    } push{static_cast<uint32_t>(rows), static_cast<uint32_t>(task.extent), input_push(task, row),
           static_cast<uint32_t>(task.extent), 0};
    Dispatch dispatch = make_dispatch(task, row * task.extent, rows * task.extent, 2);
    add_mask(task, dispatch);
    dispatch.push(push).groups_linear(ceil_div(rows * shape.lanes, shape.workgroup), task.recorder.traits());
    log(TUFF_LOG_DISPATCH, "softmax {} rows={} extent={}: in registers, {} lanes of {}, {} blocks each",
        dtype_name(task.dtype), rows, task.extent, shape.lanes, shape.workgroup, shape.blocks);
    task.recorder.dispatch(kernel, dispatch);
  }
}

// ---- long rows -------------------------------------------------------------------------------------

struct SplitPush {
  uint32_t rows, extent, segments, segment, total_segments;
  InputPush input;
  uint32_t mask_extent, mask_begin;
};

void dispatch_split(const Task& task, int mode, uint64_t first, const SplitPush& push, const Buffer* partials,
                    uint64_t partial_offset, uint64_t partial_count, uint32_t lanes) {
  KernelRequest kernel = make_kernel(task, shaders::softmax_split_rows, block_parts(task.dtype), !task.peel());
  kernel.define("TUFF_MODE", mode)
      .define("TUFF_LANES", lanes)
      .define("TUFF_SHARED", lanes > task.device.subgroup)
      .define("TUFF_PEEL", task.peel())
      .define("TUFF_UNROLL", task.block() == 4 ? 4 : 2)
      .constant(0, lanes)
      .wide(needs_wide(mask_elements(task)));
  constexpr uint64_t kPartial = 2 * sizeof(float);
  const uint64_t element = task.element(), elements = uint64_t{push.rows} * push.extent;
  Dispatch dispatch("softmax");
  const Buffer* output = mode == 1 ? nullptr : task.output;
  dispatch.operand(task.input, first * element, elements * element, Access::read)
      .operand(output, output ? first * element : 0, output ? elements * element : 0, Access::write)
      .operand(partials, partial_offset * kPartial, partial_count * kPartial, mode == 2 ? Access::read : Access::write);
  add_mask(task, dispatch);
  dispatch.push(push)
      .groups_linear(uint64_t{push.rows} * push.segments, task.recorder.traits())
      .work((mode == 0 ? 3.0 : 2.0) * static_cast<double>(elements * element), kFlops * static_cast<double>(elements));
  log(TUFF_LOG_DISPATCH, "softmax {} rows={} extent={}: pass {} of long rows, {} segments of {}, {} lanes",
      dtype_name(task.dtype), push.rows, push.extent, mode, push.segments, push.segment, lanes);
  task.recorder.dispatch(kernel, dispatch);
}

// A core has one row at a time, by one large group, where what all cores have then is likely to be still in the
// device's cache when it is read the second time. Shorter rows gain nothing by it.
bool one_by_one(const Task& task) {
  constexpr uint64_t kLeast = 64 << 10, kMost = 256 << 10;  // bytes of a row
  const uint64_t row = task.extent * task.element();
  return !task.device.cpu && task.outer >= task.device.cores && row > kLeast && row <= kMost &&
         task.extent <= task.device.piece;
}

// Whether rows are better read twice than held by one of the largest groups, which has a core to itself and leaves the
// memory idle while it computes: measured on an H200 at 2,048 rows of 32,768 f16, the logarithm 2.24 TB/s read twice
// and 1.88 held, softmax itself, with twice the exponentials then, 1.68 and 1.84.
bool read_twice(const Task& task, const RegisterRows& shape) {
  return task.logarithm && task.element() == 2 && shape.lanes > task.device.workgroup;
}

void record_split_rows(const Task& task) {
  const bool alone = one_by_one(task);
  const uint32_t lanes = alone ? task.device.largest : task.device.workgroup;
  const RowSegments segments =
      alone ? RowSegments{1, (task.extent + 7) / 8 * 8} : cut_rows(task.device, task.outer, task.extent);
  const uint64_t piece = task.device.piece;
  const Buffer* partials =
      segments.count > 1 ? &task.recorder.scratch(task.outer * segments.count * 2 * sizeof(float)) : nullptr;
  const auto narrow = [](uint64_t value) { return static_cast<uint32_t>(value); };

  for (int mode = partials ? 1 : 0; mode <= (partials ? 2 : 0); ++mode) {
    if (task.extent <= piece) {
      uint64_t step = piece / task.extent;
      if (step >= 8) step -= step % 8;
      for (uint64_t row = 0; row < task.outer; row += step) {
        const uint64_t rows = std::min(step, task.outer - row);
        const SplitPush push{
            narrow(rows),           narrow(task.extent),   narrow(segments.count), narrow(segments.size),
            narrow(segments.count), input_push(task, row), narrow(task.extent),    0};
        dispatch_split(task, mode, row * task.extent, push, partials, row * segments.count,
                       partials ? rows * segments.count : 0, lanes);
      }
      continue;
    }
    const uint64_t step = piece / segments.size;
    for (uint64_t row = 0; row < task.outer; ++row) {
      for (uint64_t s = 0; s < segments.count; s += step) {
        const uint64_t count = std::min(step, segments.count - s);
        const uint64_t begin = s * segments.size;
        const SplitPush push{1,
                             narrow(std::min(count * segments.size, task.extent - begin)),
                             narrow(count),
                             narrow(segments.size),
                             narrow(segments.count),
                             input_push(task, row),
                             narrow(task.extent),
                             narrow(begin)};
        // The first pass writes its own segments, the second reads those of the whole row.
        dispatch_split(task, mode, row * task.extent + begin, push, partials,
                       row * segments.count + (mode == 1 ? s : 0), mode == 1 ? count : segments.count, lanes);
      }
    }
  }
}

// ---- columns ---------------------------------------------------------------------------------------

constexpr uint64_t kPartial = 8 * sizeof(float);  // maxima and sums of four columns

void dispatch_columns(const Task& task, int mode, uint64_t first, uint64_t outer, uint64_t segments,
                      const Buffer* partials) {
  const DeviceTraits& traits = task.recorder.traits();
  const StreamDevice& device = task.device;
  const uint32_t width = column_width(task.inner, task.dtype), parts = std::max(width / 4, 1u);
  // 64 registers of a lane.
  const bool held = mode == 0 && task.extent <= 16 / parts;
  const uint32_t unroll = !held ? 8 / parts : task.extent <= 4 ? 4 : task.extent <= 8 ? 8 : 16;
  const uint32_t workgroup = device.cpu ? device.subgroup : std::min(device.workgroup, 128u);
  const uint64_t lanes = outer * segments * (task.inner / width);
  const uint64_t rows = ceil_div(task.extent, segments);
  const uint64_t run = device.cpu ? few_values(std::min(lanes / workgroup / (8 * device.cores), 128 / rows), 1, 64) : 1;
  const uint64_t elements = outer * task.extent * task.inner;

  KernelRequest kernel = make_kernel(task, shaders::softmax_columns, parts, width > 1);
  kernel.define("TUFF_MODE", mode)
      .define("TUFF_WIDTH", width)
      .define("TUFF_UNROLL", unroll)
      .define("TUFF_HELD", held)
      .define("TUFF_RUN", device.fixed_run(run))
      .constant(0, workgroup)
      .wide(needs_wide(std::max(elements, mask_elements(task))));
  struct Push {
    uint32_t lanes, extent, columns, segments, run;
    InputPush input;
  } push{static_cast<uint32_t>(lanes),
         static_cast<uint32_t>(task.extent),
         static_cast<uint32_t>(task.inner / width),
         static_cast<uint32_t>(segments),
         static_cast<uint32_t>(run),
         input_push(task, first / (task.extent * task.inner))};
  Dispatch dispatch("softmax");
  const Buffer* output = mode == 1 ? nullptr : task.output;
  const uint64_t element = task.element();
  dispatch.operand(task.input, first * element, elements * element, Access::read)
      .operand(output, output ? first * element : 0, output ? elements * element : 0, Access::write)
      .operand(partials, 0, partials ? lanes * parts * kPartial : 0, mode == 2 ? Access::read : Access::write);
  add_mask(task, dispatch);
  dispatch.push(push)
      .groups_linear(ceil_div(lanes, workgroup * run), traits)
      .work((held || mode == 1 ? 2.0 : 3.0) * static_cast<double>(elements * element),
            kFlops * static_cast<double>(elements));
  log(TUFF_LOG_DISPATCH, "softmax {} outer={} extent={} inner={}: pass {} of columns by {}, {} segments, {} lanes",
      dtype_name(task.dtype), outer, task.extent, task.inner, mode, width, segments, workgroup);
  task.recorder.dispatch(kernel, dispatch);
}

void record_columns(const Task& task) {
  const StreamDevice& device = task.device;
  const uint64_t slab = task.extent * task.inner;
  const uint32_t width = column_width(task.inner, task.dtype), parts = std::max(width / 4, 1u);
  const uint64_t columns = task.inner / width;
  const uint64_t wanted = device.cores * (device.cpu ? 4 * device.subgroup : 512);
  uint64_t segments = 1;
  if (task.outer * columns < wanted / 2 && task.extent >= 64) {
    segments = std::clamp<uint64_t>(ceil_div(wanted, task.outer * columns), 1, task.extent / 32);
  }
  // Few serial additions of a lane while the second walk, which adds up the segments, stays short; and never
  // more than a CPU driver's loops run.
  segments = std::max(segments, std::min<uint64_t>(ceil_div(task.extent, 2048), 256));
  segments = std::max(segments, ceil_div(task.extent, 1u << 15));
  // What they are counted by has 32 bits; several slabs at once have no more than a piece.
  if (std::max(task.extent, segments * columns) > 0xffff0000u) {
    fail(TUFF_ERROR_UNSUPPORTED, "axis={} inner={}: {} rows of {} lanes, at most 2^32 - 2^16 of each", task.extent,
         task.inner, task.extent, segments * columns);
  }
  // Whole slabs that a piece holds; a larger slab goes alone, with 64-bit indices if need be.
  uint64_t step = std::max<uint64_t>(device.piece / slab, 1);
  if (step >= 8) step -= step % 8;
  step = std::min(step, task.outer);
  const Buffer* partials =
      segments > 1 ? &task.recorder.scratch(step * segments * columns * parts * kPartial) : nullptr;
  for (uint64_t outer = 0; outer < task.outer; outer += step) {
    const uint64_t count = std::min(step, task.outer - outer);
    for (int mode = partials ? 1 : 0; mode <= (partials ? 2 : 0); ++mode) {
      dispatch_columns(task, mode, outer * slab, count, segments, partials);
    }
  }
}

}  // namespace

void record_softmax(Recorder& recorder, const SoftmaxArgs& args) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  require_storage(recorder.traits(), args.dtype);
  if (view.outer == 0 || view.axis == 0 || view.inner == 0) return;
  Task task{
      recorder,   describe(recorder.traits()),    args.dtype,          args.input, args.output, view.outer, view.axis,
      view.inner, static_cast<float>(args.scale), args.logarithm != 0, args.mask};
  if (task.mask.buffer == nullptr) {
    task.mask.rows = task.mask.repeat = 1;
  } else {
    // More never comes up.
    task.mask.rows = task.mask.rows == 0 ? view.outer : std::min(task.mask.rows, view.outer);
    task.mask.repeat = std::min(task.mask.repeat, view.outer);
    if (task.mask.type == TUFF_U8 && !recorder.traits().storage8) {
      fail(TUFF_ERROR_UNSUPPORTED, "mask_type is u8, and the device has no 8-bit storage");
    }
    if (std::max(view.outer, view.axis) > 0x7fffffffu) {
      fail(TUFF_ERROR_UNSUPPORTED, "shape is outer={} axis={} inner={}, a mask goes with at most 2^31 - 1 of each",
           view.outer, view.axis, view.inner);
    }
  }
  if (task.extent == 1 && task.mask.buffer == nullptr) {  // every element is a row
    task.outer *= task.inner;
    task.inner = 1;
  }
  if (task.inner > 1) return record_columns(task);
  const std::optional<RegisterRows> shape = register_rows(task.device, task.outer, task.extent, task.block());
  shape && !read_twice(task, *shape) ? record_register_rows(task, *shape) : record_split_rows(task);
}

}  // namespace tuff
