// Planner of softmax. The axis is viewed as (outer, extent, inner):
//
//   inner = 1   softmax_rows: a row in the registers of 1 … a subgroup of lanes, or of a workgroup (GPU);
//               softmax_split_rows: longer rows, one workgroup per row, or segments where rows are few
//   inner > 1   softmax_columns: lanes along inner; where there are few, rows are distributed over segments
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
#include "shaders/softmax_columns.hpp"
#include "shaders/softmax_rows.hpp"
#include "shaders/softmax_split_rows.hpp"

namespace tuff {
namespace {

constexpr double kFlops = 45;  // rough cost per element

StreamDevice describe(const DeviceTraits& traits, int32_t dtype) {
  return stream_device(traits, forced_variant<"TUFF_SOFTMAX_VARIANT">(), dtype_size(computed_type(dtype)));
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
  uint64_t value_bytes() const { return dtype_size(computed_type(dtype)); }  // TUFF_VALUE_BYTES
  // For rows: the elements of a block, and whether the extent is not a multiple of them.
  uint64_t block() const { return 4 * block_parts(dtype); }
  bool peel() const { return extent % block() != 0; }
  // TUFF_VECTOR. `whole`: all blocks start at a multiple of the block's size within the operands.
  int vector(bool whole) const {
    return vector_mode(recorder.traits(), whole && aligned16(input) && aligned16(output) && aligned16(mask.buffer));
  }
  // TUFF_MASK of input.glsl.
  int mask_mode() const { return mask.buffer == nullptr ? 0 : mask.type == TUFF_U8 ? 2 : 1; }
};

uint64_t mask_elements(const Task& task) {
  return task.mask.buffer != nullptr ? task.mask.rows * task.extent * task.inner : 0;
}

// Adds the whole mask, because a dispatch may need any of its rows.
void add_mask(const Task& task, Dispatch& dispatch) {
  dispatch.operand(task.mask.buffer, 0, mask_elements(task) * dtype_size(task.mask.type), Access::read);
}

// Fills in the part of the push block that input.glsl uses, for a piece that starts at index `first` before the axis.
template <typename Push>
void push_input(const Task& task, uint64_t first, Push& push) {
  const uint64_t period = task.mask.rows * task.mask.repeat;
  push.scale = task.scale;
  push.mask_first = static_cast<uint32_t>(first % period);
  push.mask_rows = static_cast<uint32_t>(task.mask.rows);
  push.mask_repeat = static_cast<uint32_t>(task.mask.repeat);
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
  KernelRequest kernel =
      shaders::SoftmaxRows::request({.blocks = shape.blocks,
                                     .exact = task.extent == task.block() * shape.lanes * shape.blocks,
                                     .exact_arithmetic = task.recorder.traits().cpu,
                                     .lanes = shape.lanes,
                                     .logarithm = task.logarithm,
                                     .mask = task.mask_mode(),
                                     .parts = block_parts(task.dtype),
                                     .peel = task.peel(),
                                     .shared = shape.shared,
                                     .type = task.dtype,
                                     .vector = task.vector(!task.peel())});
  kernel.streaming().constant(0, shape.workgroup).wide(needs_wide(mask_elements(task)));
  uint64_t step = task.device.piece / task.extent;
  if (step >= 8) step -= step % 8;  // keeps pieces as aligned as the whole
  for (uint64_t row = 0; row < task.outer; row += step) {
    const uint64_t rows = std::min(step, task.outer - row);
    shaders::SoftmaxRows::Push push{.rows = static_cast<uint32_t>(rows),
                                    .extent = static_cast<uint32_t>(task.extent),
                                    .mask_extent = static_cast<uint32_t>(task.extent)};
    push_input(task, row, push);
    Dispatch dispatch = make_dispatch(task, row * task.extent, rows * task.extent, 2);
    add_mask(task, dispatch);
    dispatch.push(push).groups_linear(ceil_div(rows * shape.lanes, shape.workgroup), task.recorder.traits());
    log(TUFF_LOG_DISPATCH, "softmax {} rows={} extent={}: in registers, {} lanes of {}, {} blocks each",
        dtype_name(task.dtype), rows, task.extent, shape.lanes, shape.workgroup, shape.blocks);
    task.recorder.dispatch(kernel, dispatch);
  }
}

// ---- long rows -------------------------------------------------------------------------------------

void dispatch_split(const Task& task, int mode, uint64_t first, const shaders::SoftmaxSplitRows::Push& push,
                    const Buffer* partials, uint64_t partial_offset, uint64_t partial_count, uint32_t lanes) {
  KernelRequest kernel = shaders::SoftmaxSplitRows::request({.exact_arithmetic = task.recorder.traits().cpu,
                                                             .lanes = lanes,
                                                             .logarithm = task.logarithm,
                                                             .mask = task.mask_mode(),
                                                             .mode = mode,
                                                             .parts = block_parts(task.dtype),
                                                             .peel = task.peel(),
                                                             .shared = lanes > task.device.subgroup,
                                                             .type = task.dtype,
                                                             .unroll = task.block() == 4 ? 4 : 2,
                                                             .vector = task.vector(!task.peel())});
  kernel.streaming().constant(0, lanes).wide(needs_wide(mask_elements(task)));
  const uint64_t partial = 2 * task.value_bytes();
  const uint64_t element = task.element(), elements = uint64_t{push.rows} * push.extent;
  Dispatch dispatch("softmax");
  const Buffer* output = mode == 1 ? nullptr : task.output;
  dispatch.operand(task.input, first * element, elements * element, Access::read)
      .operand(output, output ? first * element : 0, output ? elements * element : 0, Access::write)
      .operand(partials, partial_offset * partial, partial_count * partial, mode == 2 ? Access::read : Access::write);
  add_mask(task, dispatch);
  dispatch.push(push)
      .groups_linear(uint64_t{push.rows} * push.segments, task.recorder.traits())
      .work((mode == 0 ? 3.0 : 2.0) * static_cast<double>(elements * element), kFlops * static_cast<double>(elements));
  log(TUFF_LOG_DISPATCH, "softmax {} rows={} extent={}: pass {} of long rows, {} segments of {}, {} lanes",
      dtype_name(task.dtype), push.rows, push.extent, mode, push.segments, push.segment, lanes);
  task.recorder.dispatch(kernel, dispatch);
}

// Whether each core should process one row at a time with one large workgroup, so that the rows of all cores are likely
// still in the device's cache when they are read again. Shorter rows gain nothing from it.
bool one_by_one(const Task& task) {
  constexpr uint64_t kMin = 64 << 10, kMax = 256 << 10;  // bytes of a row
  const uint64_t row = task.extent * task.element();
  return !task.device.cpu && task.outer >= task.device.cores && row > kMin && row <= kMax &&
         task.extent <= task.device.piece;
}

// Whether reading rows twice beats holding them in the registers of one of the largest workgroups, which occupies a
// core alone and leaves the memory idle while it computes. Measured on an H200 with 2,048 rows of 32,768 f16: the
// logarithm reaches 2.24 TB/s read twice and 1.88 held; softmax itself, which computes the exponentials twice when read
// twice, 1.68 and 1.84.
bool read_twice(const Task& task, const RegisterRows& shape) {
  return task.logarithm && task.element() == 2 && shape.lanes > task.device.workgroup;
}

void record_split_rows(const Task& task) {
  const bool alone = one_by_one(task);
  const uint32_t lanes = alone ? task.device.largest : task.device.workgroup;
  const RowSegments segments =
      alone ? RowSegments{1, (task.extent + 7) / 8 * 8} : cut_rows(task.device, task.outer, task.extent);
  const Buffer* partials =
      segments.count > 1 ? &task.recorder.scratch(task.outer * segments.count * 2 * task.value_bytes()) : nullptr;
  shaders::SoftmaxSplitRows::Push push{.segment = narrow(segments.size),
                                       .total_segments = narrow(segments.count),
                                       .mask_extent = task.mask.buffer != nullptr ? narrow(task.extent) : 0};

  for (int mode = partials ? 1 : 0; mode <= (partials ? 2 : 0); ++mode) {
    for_each_piece(task.device.piece, task.outer, task.extent, segments, [&](const RowPiece& piece) {
      push.rows = narrow(piece.rows);
      push.extent = narrow(piece.extent);
      push.segments = narrow(piece.segments);
      push.mask_begin = task.mask.buffer != nullptr ? narrow(piece.begin) : 0;
      push_input(task, piece.row, push);
      // The first pass writes the partial results of its own segments; the second reads those of whole rows.
      const uint64_t first = mode == 2 ? piece.row * segments.count : piece.part;
      const uint64_t partial = mode == 0 ? 0 : piece.rows * (mode == 2 ? segments.count : piece.segments);
      dispatch_split(task, mode, piece.row * task.extent + piece.begin, push, partials, first, partial, lanes);
    });
  }
}

// ---- columns ---------------------------------------------------------------------------------------

// Bytes of the maxima and sums of four columns.
uint64_t partial_bytes(const Task& task) { return 8 * task.value_bytes(); }

void dispatch_columns(const Task& task, int mode, uint64_t first, uint64_t outer, uint64_t segments,
                      const Buffer* partials) {
  const DeviceTraits& traits = task.recorder.traits();
  const StreamDevice& device = task.device;
  const uint32_t width = column_width(task.inner, task.dtype), parts = std::max(width / 4, 1u);
  // Within 64 registers of a lane.
  const bool held = mode == 0 && task.extent <= 16 / parts;
  const uint32_t unroll = !held ? 8 / parts : task.extent <= 4 ? 4 : task.extent <= 8 ? 8 : 16;
  const uint32_t workgroup = device.cpu ? device.subgroup : std::min(device.workgroup, 128u);
  const uint64_t lanes = outer * segments * (task.inner / width);
  const uint64_t rows = ceil_div(task.extent, segments);
  const uint64_t run = device.cpu ? few_values(std::min(lanes / workgroup / (8 * device.cores), 128 / rows), 1, 64) : 1;
  const uint64_t elements = outer * task.extent * task.inner;

  KernelRequest kernel = shaders::SoftmaxColumns::request({.exact_arithmetic = traits.cpu,
                                                           .held = held,
                                                           .logarithm = task.logarithm,
                                                           .mask = task.mask_mode(),
                                                           .mode = mode,
                                                           .parts = parts,
                                                           .run = device.fixed_run(run),
                                                           .type = task.dtype,
                                                           .unroll = unroll,
                                                           .vector = task.vector(width > 1),
                                                           .width = width});
  kernel.streaming().constant(0, workgroup).wide(needs_wide(std::max(elements, mask_elements(task))));
  shaders::SoftmaxColumns::Push push{.lanes = static_cast<uint32_t>(lanes),
                                     .extent = static_cast<uint32_t>(task.extent),
                                     .columns = static_cast<uint32_t>(task.inner / width),
                                     .segments = static_cast<uint32_t>(segments),
                                     .run = static_cast<uint32_t>(run)};
  push_input(task, first / (task.extent * task.inner), push);
  Dispatch dispatch("softmax");
  const Buffer* output = mode == 1 ? nullptr : task.output;
  const uint64_t element = task.element();
  dispatch.operand(task.input, first * element, elements * element, Access::read)
      .operand(output, output ? first * element : 0, output ? elements * element : 0, Access::write)
      .operand(partials, 0, partials ? lanes * parts * partial_bytes(task) : 0,
               mode == 2 ? Access::read : Access::write);
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
  // Few serial additions per lane, while the second walk, which adds up the segments, stays short; and never more
  // iterations than a CPU driver allows in a loop.
  segments = std::max(segments, std::min<uint64_t>(ceil_div(task.extent, 2048), 256));
  segments = std::max(segments, ceil_div(task.extent, 1u << 15));
  // The kernel counts rows and lanes in 32 bits. Several slabs at once span at most a piece.
  if (std::max(task.extent, segments * columns) > 0xffff0000u) {
    fail(TUFF_ERROR_UNSUPPORTED, "axis={} inner={}: {} rows of {} lanes, at most 2^32 - 2^16 of each", task.extent,
         task.inner, task.extent, segments * columns);
  }
  // As many whole slabs as fit in a piece. A larger slab is dispatched alone, with 64-bit indices if necessary.
  uint64_t step = std::max<uint64_t>(device.piece / slab, 1);
  if (step >= 8) step -= step % 8;
  step = std::min(step, task.outer);
  const Buffer* partials =
      segments > 1 ? &task.recorder.scratch(step * segments * columns * parts * partial_bytes(task)) : nullptr;
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
  Task task{recorder,
            describe(recorder.traits(), args.dtype),
            args.dtype,
            args.input,
            args.output,
            view.outer,
            view.axis,
            view.inner,
            static_cast<float>(args.scale),
            args.logarithm != 0,
            args.mask};
  if (task.mask.buffer == nullptr) {
    task.mask.rows = task.mask.repeat = 1;
  } else {
    // Rows and repeats beyond `outer` are never reached.
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
