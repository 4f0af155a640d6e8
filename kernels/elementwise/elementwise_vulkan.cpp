// Planner of unary and binary operations. Both use one kernel, whose lanes process blocks of 16 bytes (map.glsl).
//
//   GPU   256 invocations, one block each: the launch itself keeps enough loads in flight. Many elements of 16 bits
//         and a long function: two, since so many launches slow it down (gelu of 2^27 on an H200: 3.3 TB/s, not 3.8)
//   CPU   one subgroup per workgroup with a long run, which amortises the cost of a workgroup (about 100 ns), and
//         64-bit loads (blocks.glsl). The driver's compiler is slow (exp of 20 numbers takes a quarter of a second), so
//         each function is instantiated as few times as speed allows
//
// TUFF_ELEMENTWISE_VARIANT=gpu or cpu in the environment forces one of them, for tests; gpu also selects the arithmetic
// for devices whose division and square root are not exact.
#include <algorithm>
#include <string>

#include "kernels/common/stream_device.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/binary.hpp"
#include "shaders/unary.hpp"

namespace tuff {
namespace {

struct Variant {
  const char* name;
  uint32_t lanes;   // workgroup size
  uint32_t run;     // blocks per lane
  uint32_t unroll;  // blocks in flight; divides run
};

// Operations per element from which arithmetic rather than memory limits a CPU.
constexpr double kLong = 20;

// From here on lanes of a GPU can have two blocks.
constexpr uint64_t kManyBlocks = uint64_t{1} << 19;

// `narrow`: a function of one operand of 16 bits.
Variant choose(const StreamDevice& device, uint64_t blocks, bool narrow, double flops) {
  if (!device.cpu) return {"gpu", device.workgroup, narrow && flops >= kLong && blocks >= kManyBlocks ? 2u : 1u, 1};
  // A short operation needs about a thousand elements to be worth a workgroup: fewer take less time than launching it.
  const bool is_long = flops >= kLong;
  const auto run = static_cast<uint32_t>(device.items_each(blocks, 128, is_long ? 4 : 32));  // a multiple of 4
  return {"cpu", device.workgroup, run, is_long ? 1u : 4u};
}

struct Task {
  const char* op_name;
  int32_t op, dtype;
  const Buffer* inputs[2];
  uint32_t input_count;
  const Buffer* output;
  uint64_t n;
  double flops;
  float alpha;
};

// Shader is Unary or Binary, whose defines and push blocks are alike.
template <typename Shader>
void record(Recorder& recorder, const Task& task) {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, task.dtype);
  if (task.n == 0) return;
  const uint32_t parts = block_parts(task.dtype);
  const auto blocks_in = [parts](uint64_t elements) { return parts == 2 ? elements / 8 : elements / 4; };
  const uint64_t element = dtype_size(task.dtype);
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_ELEMENTWISE_VARIANT">(), element);
  const Variant variant = choose(device, blocks_in(task.n), parts == 2 && task.input_count == 1, task.flops);
  bool aligned = aligned16(task.output);
  for (uint32_t i = 0; i < task.input_count; ++i) aligned = aligned && aligned16(task.inputs[i]);
  const int vector = vector_mode(traits, aligned);

  KernelRequest kernel = Shader::request({.exact_arithmetic = traits.cpu && device.cpu,
                                          .op = task.op,
                                          .parts = parts,
                                          .run = device.fixed_run(variant.run),
                                          .tail_blocks = !device.cpu,
                                          .type = task.dtype,
                                          .unroll = variant.unroll,
                                          .vector = vector});
  kernel.streaming().constant(0, variant.lanes);

  for (uint64_t begin = 0; begin < task.n; begin += device.piece) {
    const uint64_t count = std::min(device.piece, task.n - begin);
    const uint64_t offset = begin * element, bytes = count * element;
    Dispatch dispatch(task.op_name);
    for (uint32_t i = 0; i < task.input_count; ++i) dispatch.operand(task.inputs[i], offset, bytes, Access::read);
    const uint64_t blocks = blocks_in(count), items = blocks + (count - blocks * 4 * parts);
    const uint64_t groups = ceil_div(items, uint64_t{variant.lanes} * variant.run);
    dispatch.operand(task.output, offset, bytes, Access::write)
        .push(typename Shader::Push{static_cast<uint32_t>(count), variant.run, task.alpha})
        .groups_linear(groups, traits)
        .work(static_cast<double>(bytes) * (task.input_count + 1), static_cast<double>(count) * task.flops);
    log(TUFF_LOG_DISPATCH, "{} {} n={}: {}, {} lanes, {} blocks each, vector {}, {} groups", task.op_name,
        dtype_name(task.dtype), count, variant.name, variant.lanes, variant.run, vector, groups);
    recorder.dispatch(kernel, dispatch);
  }
}

}  // namespace

void record_unary(Recorder& recorder, const UnaryArgs& args) {
  const elementwise::UnaryOp& op = *elementwise::find(elementwise::kUnaryOps, args.op);
  record<shaders::Unary>(
      recorder,
      {op.name, op.op, args.dtype, {args.input, nullptr}, 1, args.output, args.n, op.flops, alpha_of(op, args.alpha)});
}

void record_binary(Recorder& recorder, const BinaryArgs& args) {
  if (repeats_an_operand(args)) return record_binary_broadcast(recorder, args);
  const elementwise::BinaryOp& op = *elementwise::find(elementwise::kBinaryOps, args.op);
  record<shaders::Binary>(
      recorder, {op.name, op.op, args.dtype, {args.a, args.b}, 2, args.output, result_count(args), op.flops, 0});
}

}  // namespace tuff
