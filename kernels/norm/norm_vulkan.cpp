// Planner of normalisations by a row's own mean and variance:
//
//   norm_rows         the row is in the registers of 1 … a subgroup of lanes, or of a workgroup (GPU)
//   norm_split_rows   longer rows: one workgroup per row, or segments where rows are few. A residual always takes
//                     two dispatches, of which the second reads the stored sum
//
// The rows of a group norm are the groups of each image. TUFF_NORM_VARIANT=gpu or cpu in the environment forces the
// shapes of that class, for tests.
#include <algorithm>
#include <optional>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/row_plan.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/norm/norm.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/norm_rows.hpp"
#include "shaders/norm_split_rows.hpp"

namespace tuff {
namespace {

constexpr double kFlops = 10;  // rough cost per element

struct Task {
  Recorder& recorder;
  const NormArgs& args;
  StreamDevice device;
  const char* name;
  const Buffer *input, *residual;  // in the second of two passes these may differ from args
  uint64_t rows, extent, channels;

  uint64_t element() const { return dtype_size(args.dtype); }
  uint64_t block() const { return 4 * block_parts(args.dtype); }
  uint64_t weight_bytes() const { return args.channels * dtype_size(args.weight_type); }
  // TUFF_CHANNEL of norm.glsl. In mode 0 every row starts at channel 0, so blocks of weights are aligned like its
  // blocks.
  int channel_mode() const { return args.inner == 1 && args.groups == 1 ? 0 : args.inner % block() == 0 ? 1 : 2; }
  // Rows with blocks of several channels are processed element by element.
  bool peel() const { return extent % block() != 0 || channel_mode() == 2; }
  // TUFF_VECTOR.
  int vector() const {
    const bool aligned = !peel() && aligned16(input) && aligned16(residual) && aligned16(args.sum) &&
                         aligned16(args.output) && aligned16(args.weight) && aligned16(args.bias);
    return vector_mode(recorder.traits(), aligned);
  }
};

// Input, residual, weight and bias, with the tensors' range of `elements` from `first` on.
Dispatch make_dispatch(const Task& task, uint64_t first, uint64_t elements, double passes) {
  const NormArgs& args = task.args;
  const uint64_t offset = first * task.element(), bytes = elements * task.element();
  Dispatch dispatch(task.name);
  dispatch.operand(task.input, offset, bytes, Access::read)
      .operand(task.residual, offset, task.residual ? bytes : 0, Access::read)
      .operand(args.weight, 0, args.weight ? task.weight_bytes() : 0, Access::read)
      .operand(args.bias, 0, args.bias ? task.weight_bytes() : 0, Access::read)
      .work(passes * static_cast<double>(bytes), kFlops * static_cast<double>(elements));
  return dispatch;
}

// ---- rows in registers -----------------------------------------------------------------------------

void record_register_rows(const Task& task, const RegisterRows& shape) {
  const NormArgs& args = task.args;
  KernelRequest kernel = shaders::NormRows::request({.bias = args.bias != nullptr,
                                                     .blocks = shape.blocks,
                                                     .centred = args.centred,
                                                     .channel = task.channel_mode(),
                                                     .exact_arithmetic = task.recorder.traits().cpu,
                                                     .lanes = shape.lanes,
                                                     .parts = block_parts(args.dtype),
                                                     .peel = task.peel(),
                                                     .residual = task.residual != nullptr,
                                                     .shared = shape.shared,
                                                     .sum = args.sum != nullptr,
                                                     .type = args.dtype,
                                                     .vector = task.vector(),
                                                     .weight = args.weight != nullptr,
                                                     .weight_type = args.weight_type});
  kernel.streaming().constant(0, shape.workgroup);
  uint64_t step = task.device.piece / task.extent;
  if (step >= 8) step -= step % 8;  // keeps pieces as aligned as the whole
  for (uint64_t row = 0; row < task.rows; row += step) {
    const uint64_t rows = std::min(step, task.rows - row);
    const uint64_t offset = row * task.extent * task.element(), bytes = rows * task.extent * task.element();
    const shaders::NormRows::Push push{.rows = narrow(rows),
                                       .extent = narrow(task.extent),
                                       .epsilon = static_cast<float>(args.epsilon),
                                       .inner = narrow(args.inner),
                                       .channels = narrow(task.channels),
                                       .groups = narrow(args.groups),
                                       .first_row = narrow(row % args.groups)};
    Dispatch dispatch = make_dispatch(task, row * task.extent, rows * task.extent, 2);
    dispatch.operand(args.output, offset, bytes, Access::write)
        .operand(args.sum, args.sum ? offset : 0, args.sum ? bytes : 0, Access::write)
        .push(push)
        .groups_linear(ceil_div(rows * shape.lanes, shape.workgroup), task.recorder.traits());
    log(TUFF_LOG_DISPATCH, "{} {} rows={} extent={}: in registers, {} lanes of {}, {} blocks each", task.name,
        dtype_name(args.dtype), rows, task.extent, shape.lanes, shape.workgroup, shape.blocks);
    task.recorder.dispatch(kernel, dispatch);
  }
}

// ---- long rows -------------------------------------------------------------------------------------

// Bytes of a segment's mean, squares and factor.
uint64_t partial_bytes(const Task& task) { return 4 * dtype_size(computed_type(task.args.dtype)); }

void dispatch_split(const Task& task, int mode, uint64_t first, const shaders::NormSplitRows::Push& push,
                    const Buffer* partials, uint64_t partial_offset, uint64_t partial_count) {
  const NormArgs& args = task.args;
  const uint32_t lanes = task.device.workgroup;
  const uint64_t partial = partial_bytes(task);
  const Buffer* written = mode == 1 ? args.sum : args.output;
  KernelRequest kernel = shaders::NormSplitRows::request({.bias = args.bias != nullptr,
                                                          .centred = args.centred,
                                                          .channel = task.channel_mode(),
                                                          .exact_arithmetic = task.recorder.traits().cpu,
                                                          .lanes = lanes,
                                                          .mode = mode,
                                                          .parts = block_parts(args.dtype),
                                                          .peel = task.peel(),
                                                          .residual = task.residual != nullptr,
                                                          .shared = lanes > task.device.subgroup,
                                                          .sum = mode == 1 && written != nullptr,
                                                          .type = args.dtype,
                                                          .unroll = task.block() == 4 ? 4 : 2,
                                                          .vector = task.vector(),
                                                          .weight = args.weight != nullptr,
                                                          .weight_type = args.weight_type});
  kernel.streaming().constant(0, lanes);
  const uint64_t elements = uint64_t{push.rows} * push.extent;
  Dispatch dispatch = make_dispatch(task, first, elements, mode == 0 ? 3 : 2);
  dispatch
      .operand(written, written ? first * task.element() : 0, written ? elements * task.element() : 0, Access::write)
      .operand(partials, partial_offset * partial, partial_count * partial, mode == 2 ? Access::read : Access::write)
      .push(push)
      .groups_linear(uint64_t{push.rows} * push.segments, task.recorder.traits());
  log(TUFF_LOG_DISPATCH, "{} {} rows={} extent={}: pass {} of long rows, {} segments of {}, {} lanes", task.name,
      dtype_name(args.dtype), push.rows, push.extent, mode, push.segments, push.segment, lanes);
  task.recorder.dispatch(kernel, dispatch);
}

void record_split_rows(const Task& task) {
  const NormArgs& args = task.args;
  const RowSegments segments = cut_rows(task.device, task.rows, task.extent);
  const bool two = segments.count > 1 || task.residual != nullptr;
  const Buffer* partials = two ? &task.recorder.scratch(task.rows * segments.count * partial_bytes(task)) : nullptr;

  for (int mode = two ? 1 : 0; mode <= (two ? 2 : 0); ++mode) {
    Task pass = task;
    if (mode == 2 && args.sum != nullptr) pass.input = args.sum, pass.residual = nullptr;
    shaders::NormSplitRows::Push push{.segment = narrow(segments.size),
                                      .total_segments = narrow(segments.count),
                                      .last = narrow(task.extent - (segments.count - 1) * segments.size),
                                      .total = static_cast<float>(task.extent),
                                      .epsilon = static_cast<float>(args.epsilon),
                                      .inner = narrow(args.inner),
                                      .channels = narrow(task.channels),
                                      .groups = narrow(args.groups)};
    for_each_piece(task.device.piece, task.rows, task.extent, segments, [&](const RowPiece& piece) {
      push.rows = narrow(piece.rows);
      push.extent = narrow(piece.extent);
      push.segments = narrow(piece.segments);
      push.begin = narrow(piece.begin);
      push.first_row = narrow(piece.row % args.groups);
      // The first pass writes the partial results of its own segments; the second reads those of whole rows.
      const uint64_t first = mode == 2 ? piece.row * segments.count : piece.part;
      const uint64_t partial = mode == 0 ? 0 : piece.rows * (mode == 2 ? segments.count : piece.segments);
      dispatch_split(pass, mode, piece.row * task.extent + piece.begin, push, partials, first, partial);
    });
  }
}

}  // namespace

void record_norm(Recorder& recorder, const NormArgs& args) {
  require_storage(recorder.traits(), args.dtype);
  require_storage(recorder.traits(), args.weight_type);
  if (args.rows == 0) return;
  const uint64_t channels = args.channels / args.groups, extent = channels * args.inner;
  if (std::max(args.channels, extent) > 0x7fffffffu) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} is {}, rows of at most 2^31 - 1 elements are normalised",
         args.grouped ? "channels" : "cols", args.channels);
  }
  const Task task{
      recorder,
      args,
      stream_device(recorder.traits(), forced_variant<"TUFF_NORM_VARIANT">(), dtype_size(computed_type(args.dtype))),
      !args.centred  ? "rms_norm"
      : args.grouped ? "group_norm"
                     : "layer_norm",
      args.input,
      args.residual,
      args.rows * args.groups,
      extent,
      channels};
  const std::optional<RegisterRows> shape = register_rows(task.device, task.rows, task.extent, task.block());
  shape ? record_register_rows(task, *shape) : record_split_rows(task);
}

}  // namespace tuff
