// Planner of argmax and argmin: one stage, or two where few results cover many elements (reduce_arg.comp).
#include <algorithm>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/reduce_ops.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/reduce_arg.hpp"

namespace tuff {
namespace {

struct Stage {
  uint64_t outer, extent, inner, segments, length;
  uint64_t results() const { return outer * segments * inner; }
};

struct Task {
  Recorder& recorder;
  StreamDevice device;
  const reduce::Op& op;
  int32_t dtype;   // 0: partial results
  uint32_t words;  // of a key
  uint32_t index_bytes;
  bool last;
  const Buffer *input, *output;

  uint64_t partial() const { return words == 1 ? 8 : 16; }  // bytes: a key and a row's index
};

// Invocations that share a result.
uint32_t lanes_of(const StreamDevice& device, const Stage& stage) {
  if (stage.inner > 1 || stage.length <= (device.cpu ? 64 : 8)) return 1;
  return stage.length <= 4096 ? device.subgroup : device.workgroup;
}

void cut(const StreamDevice& device, Stage& stage) {
  const uint64_t wanted = device.cores * (device.cpu ? 4 * device.subgroup : 1024);
  const uint64_t lanes = lanes_of(device, stage), have = stage.outer * stage.inner * lanes;
  const uint64_t shortest = stage.inner > 1 ? 64 : 4096;
  uint64_t segments = 1;
  if (have < wanted / 2 && stage.extent >= 2 * shortest) segments = ceil_div(wanted, have);
  segments = std::clamp<uint64_t>(segments, 1, std::max<uint64_t>(stage.extent / shortest, 1));
  // Limits the iterations of one invocation's loop: see kernels/common/loop_limit.hpp.
  segments = std::max(segments, ceil_div(stage.extent, lanes << 15));
  stage.length = (ceil_div(stage.extent, segments) + 7) / 8 * 8;  // whole blocks of 16 bytes
  stage.segments = ceil_div(stage.extent, stage.length);
}

// Elements in 16 bytes if these are floats of at most 32 bits, and rows are aligned to 16 bytes and consist of whole
// blocks; otherwise 0.
uint64_t block_of(const Task& task, const Stage& stage) {
  if (!kFloatTypes.has(task.dtype) || stage.inner > 1 || !aligned16(task.input)) return 0;
  const uint64_t block = 16 / dtype_size(task.dtype);
  return stage.extent % block == 0 && stage.length % block == 0 ? block : 0;
}

void record_stage(const Task& task, const Stage& stage) {
  const DeviceTraits& traits = task.recorder.traits();
  const uint64_t block = block_of(task, stage);
  const uint32_t lanes = lanes_of(task.device, stage);
  const uint64_t from = task.dtype == 0 ? task.partial() : dtype_size(task.dtype),
                 to = task.last ? task.index_bytes : task.partial();
  const uint64_t slab = stage.extent * stage.inner;
  const uint64_t step = std::max<uint64_t>(task.device.piece / slab, 1);
  for (uint64_t outer = 0; outer < stage.outer; outer += step) {
    Stage part = stage;
    part.outer = std::min(step, stage.outer - outer);
    const shaders::ReduceArg::Push push{.results = static_cast<uint32_t>(part.results()),
                                        .extent = static_cast<uint32_t>(stage.extent),
                                        .inner = static_cast<uint32_t>(stage.inner),
                                        .segments = static_cast<uint32_t>(stage.segments),
                                        .rows = static_cast<uint32_t>(stage.length)};
    const uint64_t elements = part.outer * slab, first = outer * stage.segments * stage.inner;
    KernelRequest kernel = shaders::ReduceArg::request({.block = block != 0,
                                                        .lanes = lanes,
                                                        .last = task.last,
                                                        .minimum = task.op.op == TUFF_REDUCE_ARGMIN,
                                                        .parts = block == 8 ? 2 : 1,
                                                        .shared = lanes > task.device.subgroup,
                                                        .type = task.dtype,
                                                        .vector = vector_mode(traits, block != 0),
                                                        .words = task.words,
                                                        .y_bytes = task.index_bytes});
    kernel.streaming().wide(needs_wide(elements)).constant(0, task.device.workgroup);
    Dispatch dispatch(task.op.name);
    dispatch.operand(task.input, outer * slab * from, elements * from, Access::read)
        .operand(task.output, first * to, part.results() * to, Access::write)
        .push(push)
        .groups_linear(ceil_div(part.results() * lanes, task.device.workgroup), traits)
        .work(static_cast<double>(elements * from + part.results() * to), static_cast<double>(elements));
    log(TUFF_LOG_DISPATCH, "{} outer={} length={} inner={} segments={}: {} lanes of {}", task.op.name, part.outer,
        stage.extent, stage.inner, stage.segments, lanes, task.device.workgroup);
    task.recorder.dispatch(kernel, dispatch);
  }
}

}  // namespace

void record_reduce_arg(Recorder& recorder, const ReduceArgs& args) {
  const reduce::Op& op = *reduce::find(args.op);
  const AxisView view = reduce::view_of(args);
  if (view.outer == 0 || view.inner == 0) return;
  const uint64_t size = dtype_size(args.dtype);
  const uint32_t words = size == 8 ? 2 : 1;
  const auto index_bytes = static_cast<uint32_t>(dtype_size(reduce::output_type(op, args.dtype, args.output_type)));
  const StreamDevice device = stream_device(recorder.traits(), forced_variant<"TUFF_REDUCE_VARIANT">(),
                                            words == 2 ? 16 : sizeof(float));  // a partial result is 8 or 16 bytes
  if (std::max(view.inner, view.axis) > 0x7fffffffu) {
    fail(TUFF_ERROR_UNSUPPORTED, "axis={} inner={}, at most 2^31 - 1 of each", view.axis, view.inner);
  }
  Stage stage{view.outer, view.axis, view.inner, 1, view.axis};
  cut(device, stage);
  if (stage.segments * stage.inner > 0x7fffffffu) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} results of one outer index, at most 2^31 - 1", stage.segments * stage.inner);
  }
  Task task{recorder, device, op, args.dtype, words, index_bytes, true, args.input, args.output};
  if (stage.segments == 1) {
    record_stage(task, stage);
    return;
  }
  const Buffer* partials = &recorder.scratch(stage.results() * task.partial());
  task.last = false, task.output = partials;
  record_stage(task, stage);
  const Stage second{stage.outer, stage.segments, stage.inner, 1, stage.segments};
  task.dtype = 0, task.last = true, task.input = partials, task.output = args.output;
  record_stage(task, second);
}

}  // namespace tuff
