// Planner of binary operations whose operands are repeated along axes. A repeated row, column or single value is read
// as blocks of 16 bytes, or as one element per block; an operand that fits neither is gathered element by element (see
// the modes in binary_broadcast.comp).
#include <algorithm>
#include <optional>
#include <string>

#include "kernels/common/stream_device.hpp"
#include "kernels/common/strided_axes.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"
#include "kernels/shape/strided_copy.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/binary_broadcast.hpp"

namespace tuff {
namespace {

constexpr uint32_t kMaxAxes = 6;  // the kernel's limit

struct Task {
  Recorder& recorder;
  StreamDevice device;
  const elementwise::BinaryOp& op;
  int32_t dtype;
  const Buffer *a, *b, *output;
  uint64_t element() const { return dtype_size(dtype); }
  uint64_t block() const { return 4 * block_parts(dtype); }
};

struct Piece {
  StridedAxes<2> axes;
  uint64_t a_first, b_first, output_first;  // in elements
};

enum Mode { dense = 0, blocks = 1, repeated = 2, gathered = 3 };

Mode mode_of(const StridedAxes<2>& axes, size_t operand, uint64_t block) {
  if (axes.dense(operand)) return dense;
  if (axes.rank > 1 && axes.inner_size() % block != 0) return gathered;
  if (axes.inner_stride(operand) == 0) return repeated;
  for (uint32_t i = 0; i + 1 < axes.rank; ++i) {
    if (axes.strides[i][operand] % static_cast<int64_t>(block) != 0) return gathered;
  }
  return blocks;
}

void record_piece(const Task& task, const Piece& piece) {
  const DeviceTraits& traits = task.recorder.traits();
  const StridedAxes<2>& axes = piece.axes;
  const uint64_t block = task.block(), n = axes.count(), element = task.element();
  const Mode a = mode_of(axes, 0, block), b = mode_of(axes, 1, block);
  const auto aligned = [&](Mode mode, const Buffer* buffer, uint64_t first) {
    return mode == repeated || mode == gathered || aligned16(buffer, first * element);
  };
  const int vector = vector_mode(traits, aligned16(task.output, piece.output_first * element) &&
                                             aligned(a, task.a, piece.a_first) && aligned(b, task.b, piece.b_first));
  // On a CPU, computing coordinates costs more than reading the elements, so four blocks share one computation.
  const bool vec4s = task.device.cpu && a != gathered && b != gathered && axes.inner_size() % (4 * block) == 0;
  const uint64_t size = (vec4s ? 4 : 1) * block, items = n / size + n % size;
  const uint64_t run = task.device.cpu ? task.device.items_each(items, 128) : 1;
  shaders::BinaryBroadcast::Push push{.n = static_cast<uint32_t>(n), .run = static_cast<uint32_t>(run)};
  AxisDividers<kMaxAxes>(axes).store(push);
  for (uint32_t i = 0; i < axes.rank; ++i) {
    push.a_strides[i] = static_cast<int32_t>(axes.strides[axes.rank - 1 - i][0]);
    push.b_strides[i] = static_cast<int32_t>(axes.strides[axes.rank - 1 - i][1]);
  }
  KernelRequest kernel = shaders::BinaryBroadcast::request({.a = a,
                                                            .b = b,
                                                            .exact_arithmetic = traits.cpu,
                                                            .op = task.op.op,
                                                            .parts = block_parts(task.dtype),
                                                            .repeat = vec4s ? 4 : 1,
                                                            .run = task.device.fixed_run(run),
                                                            .type = task.dtype,
                                                            .vector = vector});
  kernel.streaming().constant(0, task.device.workgroup).constant(1, std::max(axes.rank, 1u));
  const uint64_t a_span = axes.span(0).elements, b_span = axes.span(1).elements;
  Dispatch dispatch(task.op.name);
  dispatch.operand(task.a, piece.a_first * element, a_span * element, Access::read)
      .operand(task.b, piece.b_first * element, b_span * element, Access::read)
      .operand(task.output, piece.output_first * element, n * element, Access::write)
      .push(push)
      .groups_linear(ceil_div(items, task.device.workgroup * run), traits)
      .work(static_cast<double>((a_span + b_span + n) * element), static_cast<double>(n) * task.op.flops);
  log(TUFF_LOG_DISPATCH, "{} {} n={}: {} axes, modes {} and {}, vector {}, {} lanes, {} times {} blocks each",
      task.op.name, dtype_name(task.dtype), n, axes.rank, static_cast<int>(a), static_cast<int>(b), vector,
      task.device.workgroup, run, size / block);
  task.recorder.dispatch(kernel, dispatch);
}

// Cuts the outermost axis until one dispatch can address each part.
void record_pieces(const Task& task, const Piece& piece) {
  const StridedAxes<2>& axes = piece.axes;
  const uint64_t count = axes.count();
  if (count <= task.device.piece) return record_piece(task, piece);
  const uint64_t inner = count / axes.sizes[0], step = std::max<uint64_t>(task.device.piece / inner, 1);
  for (uint64_t begin = 0; begin < axes.sizes[0]; begin += step) {
    Piece part{{},
               piece.a_first + begin * static_cast<uint64_t>(axes.strides[0][0]),
               piece.b_first + begin * static_cast<uint64_t>(axes.strides[0][1]),
               piece.output_first + begin * inner};
    part.axes.append(std::min(step, axes.sizes[0] - begin), axes.strides[0]);
    for (uint32_t i = 1; i < axes.rank; ++i) part.axes.append(axes.sizes[i], axes.strides[i]);
    record_pieces(task, part);
  }
}

// More axes than the kernel supports: first writes the repeated operands out in full.
void record_expanded(Recorder& recorder, const BinaryArgs& args, const StridedAxes<2>& axes) {
  const uint64_t n = axes.count(), element = dtype_size(args.dtype), room = (n * element + 255) / 256 * 256;
  const Buffer scratch = recorder.scratch(2 * room);
  Buffer expanded[2] = {scratch, scratch};
  const Buffer* operands[2] = {args.a, args.b};
  for (size_t i = 0; i < 2; ++i) {
    if (axes.dense(i)) continue;
    expanded[i].offset += i * room;
    expanded[i].bytes = room;
    StridedCopy copy{"repeat", element, operands[i], &expanded[i], 0, 0, {}};
    int64_t stride = static_cast<int64_t>(n);
    for (uint32_t d = 0; d < axes.rank; ++d) {
      stride /= static_cast<int64_t>(axes.sizes[d]);
      copy.axes.append(axes.sizes[d], {axes.strides[d][i], stride});
    }
    record_strided_copy(recorder, copy);
    operands[i] = &expanded[i];
  }
  record_binary(recorder, {args.dtype, args.op, operands[0], operands[1], args.output, n});
}

}  // namespace

void record_binary_broadcast(Recorder& recorder, const BinaryArgs& args) {
  require_storage(recorder.traits(), args.dtype);
  if (result_count(args) == 0) return;
  const StridedAxes<2> axes = broadcast_axes(args);
  if (axes.rank > kMaxAxes) return record_expanded(recorder, args, axes);
  const elementwise::BinaryOp& op = *elementwise::find(elementwise::kBinaryOps, args.op);
  const StreamDevice device =
      stream_device(recorder.traits(), forced_variant<"TUFF_ELEMENTWISE_VARIANT">(), dtype_size(args.dtype));
  record_pieces({recorder, device, op, args.dtype, args.a, args.b, args.output}, {axes, 0, 0, 0});
}

}  // namespace tuff
