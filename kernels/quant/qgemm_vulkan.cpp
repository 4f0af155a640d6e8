// Planner of products with quantised weights. With one to four rows of A, a kernel reads the weights once, as they are
// stored. Otherwise they are dequantised to A's type, as many rows at a time as fit scratch memory, and multiplied by
// GEMM's planner.
//
// TUFF_QUANT_VARIANT=gpu or cpu in the environment forces the shapes of that kind of device, for tests.
#include <algorithm>
#include <bit>

#include "kernels/common/check.hpp"
#include "kernels/common/kernels_for.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/quant/quant.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/qgemm_rows.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxScratch = 1u << 26;  // elements
constexpr uint64_t kFew = 4;                // rows of A that the kernel for few rows takes
constexpr uint64_t kMaxIndex = 0x7fffffff;  // it indexes everything but weights and scales with 32 bits

GemmArgs product_of(const QgemmArgs& args, const Buffer& weights, const Buffer& c, const Buffer& bias,
                    const Buffer& residual, uint64_t rows) {
  GemmArgs gemm{};
  gemm.a_type = gemm.b_type = args.a_type;
  gemm.c_type = args.c_type;
  gemm.accumulate = gemm.sum_type();
  gemm.precision = TUFF_PRECISION_DEFAULT;
  gemm.ta = TUFF_NO_TRANS;
  gemm.tb = TUFF_TRANS;
  gemm.m = args.m;
  gemm.n = rows;
  gemm.k = args.k;
  gemm.alpha = static_cast<float>(args.alpha);
  gemm.a = args.a;
  gemm.b = &weights;
  gemm.c = &c;
  gemm.lda = args.lda;
  gemm.ldb = args.k;
  gemm.ldc = args.ldc;
  gemm.epilogue.activation = args.activation;
  if (args.bias != nullptr) {
    gemm.epilogue.bias_axis = TUFF_BIAS_COLUMNS;
    gemm.epilogue.bias = &bias;
  }
  if (args.residual != nullptr) {
    gemm.epilogue.residual = &residual;
    gemm.epilogue.ld_residual = args.ld_residual;
  }
  return gemm;
}

void require_devices(const DeviceTraits& traits, const QgemmArgs& args) {
  const bool integers = quant::format_of(args.format).integers();
  require_storage(traits, args.a_type);
  require_storage(traits, args.c_type);
  require_storage(traits, integers ? TUFF_U8 : TUFF_F16);
  if (integers) require_storage(traits, args.scale_type);
}

// Whether the kernel for few rows of A computes it: rows of weights are whole items of eight numbers that have one
// scale.
bool suits_few(const DeviceTraits& traits, const StreamDevice& device, const QgemmArgs& args) {
  const quant::Format& format = quant::format_of(args.format);
  if (args.m > kFew || args.k == 0 || args.k % 8 != 0 || !traits.subgroup_arithmetic) return false;
  const uint64_t furthest = std::max({args.lda, args.ldc, args.residual != nullptr ? args.ld_residual : 0});
  const uint64_t longest = std::max(args.k, args.n);
  if (longest > kMaxIndex || (args.m > 1 && furthest > (kMaxIndex - longest) / kFew)) return false;
  // A subgroup of a CPU device takes up to eight parts of a workgroup's rows.
  if (traits.cpu && 8 * (args.k / 8 / device.subgroup + 1) >= kMaxLoopIterationsCpu) return false;
  if (!format.integers()) return true;
  if (args.weights->offset % format.bits() != 0) return false;
  return args.granularity != TUFF_QUANT_PER_BLOCK || (args.block_size >= 8 && std::has_single_bit(args.block_size));
}

void record_few(Recorder& recorder, const StreamDevice& device, const QgemmArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  const quant::Format& format = quant::format_of(args.format);
  const bool integers = format.integers();
  const uint32_t workgroup =
      device.cpu ? device.subgroup : std::max(device.subgroup, std::min(128u, max_along_x(traits)));
  const uint64_t rows = device.cpu ? (args.n == 1 ? 1 : args.m > 2 ? 2 : 4) : args.n >= 64 * device.cores ? 2 : 1;
  const uint64_t group_rows = !device.cpu ? workgroup / device.subgroup * rows : args.n > 4 ? 16 : rows;
  const uint64_t a_size = dtype_size(args.a_type), c_size = dtype_size(args.c_type);
  const bool aligned = args.a->offset % (4 * a_size) == 0 && (args.m == 1 || args.lda % 4 == 0);
  const uint64_t each = quant::scales_of_row(args), scales = each == 0 ? 1 : args.n * each;
  const uint64_t weights = quant::stored_bytes(format, args.n * args.k);
  KernelRequest kernel =
      shaders::QgemmRows::request({.a_type = args.a_type,
                                   .bits = integers ? format.bits() : 8,
                                   .count = args.m,
                                   .epilogue = {.activation = args.activation,
                                                .bias_axis = args.bias != nullptr ? TUFF_BIAS_COLUMNS : TUFF_BIAS_NONE,
                                                .c_type = args.c_type,
                                                .exact_arithmetic = traits.cpu,
                                                .residual = args.residual != nullptr},
                                   .format = integers ? 0 : args.format,
                                   .group_rows = group_rows,
                                   .negative = format.least < 0,
                                   .rows = rows,
                                   .scale = args.scale_type,
                                   .vector_a = aligned,
                                   .zeros = args.zero_points != nullptr});
  kernel.streaming().constant(0, workgroup).wide(needs_wide(args.n * args.k));
  shaders::QgemmRows::Push push{};
  push.n = static_cast<uint32_t>(args.n);
  push.items = static_cast<uint32_t>(args.k / 8);
  if (args.m > 1) {
    push.lda = static_cast<uint32_t>(args.lda);
    push.ldc = static_cast<uint32_t>(args.ldc);
    if (args.residual != nullptr) push.ld_residual = static_cast<uint32_t>(args.ld_residual);
  }
  push.scales = static_cast<uint32_t>(each);
  const bool blocks = args.granularity == TUFF_QUANT_PER_BLOCK;
  push.block_shift = blocks ? std::min(31u, static_cast<uint32_t>(std::countr_zero(args.block_size / 8))) : 31u;
  push.alpha = static_cast<float>(args.alpha);
  const auto footprint = [&](uint64_t ld, uint64_t cols) { return (args.m - 1) * ld + cols; };
  Dispatch dispatch("qgemm");
  dispatch.operand(args.weights, 0, weights, Access::read)
      .operand(args.scales, 0, scales * dtype_size(args.scale_type), Access::read)
      .operand(args.zero_points, 0, quant::stored_bytes(format, scales), Access::read)
      .operand(args.a, 0, footprint(args.lda, args.k) * a_size, Access::read)
      .operand(args.c, 0, footprint(args.ldc, args.n) * c_size, Access::write)
      .operand(args.bias, 0, args.n * c_size, Access::read)
      .operand(args.residual, 0, footprint(args.ld_residual, args.n) * c_size, Access::read)
      .push(push)
      .groups_linear(ceil_div(args.n, group_rows), traits)
      .work(static_cast<double>(weights + scales * dtype_size(args.scale_type)),
            2.0 * static_cast<double>(args.m * args.n) * static_cast<double>(args.k))
      .variant("rows");
  log(TUFF_LOG_DISPATCH, "qgemm {} by {} {}x{}x{}: {} rows of weights in a workgroup of {}, {}",
      dtype_name(args.a_type), format.name, args.m, args.n, args.k, group_rows, workgroup, kernels_for(device.cpu));
  recorder.dispatch(kernel, dispatch);
}

}  // namespace

void record_qgemm(Recorder& recorder, const QgemmArgs& args) {
  require_devices(recorder.traits(), args);
  if (args.m == 0 || args.n == 0) return;
  const StreamDevice device = stream_device(recorder.traits(), forced_variant<"TUFF_QUANT_VARIANT">(), sizeof(float));
  if (suits_few(recorder.traits(), device, args)) return record_few(recorder, device, args);
  // Pieces begin at even rows, so that packed numbers of 4 bits begin at a byte.
  const DeviceTraits& traits = recorder.traits();
  const uint64_t room = traits.addresses
                            ? kMaxScratch
                            : std::min(kMaxScratch, (traits.max_range - kDescriptorSlack) / dtype_size(args.a_type));
  const uint64_t fitting = args.k == 0 ? args.n : std::max<uint64_t>(room / args.k / 2 * 2, 2);
  for (uint64_t first = 0; first < args.n; first += fitting) {
    const uint64_t rows = std::min(fitting, args.n - first);
    const Buffer c = moved(args.c, first, args.c_type), bias = moved(args.bias, first, args.c_type),
                 residual = moved(args.residual, first, args.c_type);
    Buffer dense;
    if (args.k != 0) {
      dense = recorder.scratch(rows * args.k * dtype_size(args.a_type), Scratch::outer);
      quant::Weights weights(args, first, rows);
      weights.args.values = &dense;
      log(TUFF_LOG_DISPATCH, "qgemm {} by {} {}x{}x{}: dequantised first", dtype_name(args.a_type),
          quant::format_of(args.format).name, args.m, rows, args.k);
      record_dequantize(recorder, weights.args);
    }
    record_gemm(recorder, product_of(args, dense, c, bias, residual, rows));
  }
}

}  // namespace tuff
