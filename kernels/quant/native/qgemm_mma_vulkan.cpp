// Plans products with integers and a few rows of A for NVIDIA's Hopper GPUs: a kernel in PTX (qgemm_mma.cpp).
#include <algorithm>
#include <bit>
#include <optional>

#include "kernels/common/check.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/native/refusals.hpp"
#include "kernels/quant/native/qgemm_mma.hpp"
#include "kernels/quant/quant.hpp"
#include "planning/arithmetic.hpp"
#include "planning/log.hpp"

namespace tuff::quant {
namespace {

Refusals refusals;
constexpr uint64_t kMinRows = 16, kMinLength = 128;  // of weights
constexpr uint64_t kMaxIndex = 0x7fffffff;

// What the text of the kernel depends on.
Mma kernel_of(const DeviceTraits& traits, const QgemmArgs& args) {
  const Format& format = format_of(args.format);
  Mma kernel;
  kernel.type = args.a_type;
  kernel.c_type = args.c_type;
  kernel.bits = format.bits();
  kernel.negative = format.least < 0;
  kernel.scales = static_cast<uint32_t>(std::min<uint64_t>(scales_of_row(args), 2));
  kernel.scale_type = args.scale_type;
  kernel.zeros = args.zero_points != nullptr;
  while (kernel.columns < args.m) kernel.columns *= 2;
  kernel.tiles = ceil_div(args.n, 32) >= stream_device(traits, std::nullopt, sizeof(float)).cores ? 2 : 1;
  kernel.whole = args.k % kernel.step() == 0;
  kernel.bias = args.bias != nullptr;
  kernel.residual = args.residual != nullptr;
  kernel.activation = args.activation;
  return kernel;
}

// The kernel that computes it, if there is one.
std::optional<Mma> kernel_for(const DeviceTraits& traits, const QgemmArgs& args) {
  if (!traits.hopper || refusals.has(0) || args.m > Mma::kMaxColumns) return {};
  if (!format_of(args.format).integers() || (args.a_type != TUFF_F16 && args.a_type != TUFF_BF16)) return {};
  if (args.n < kMinRows || args.k < kMinLength || std::max(args.n, args.k) > kMaxIndex) return {};
  if (std::max({args.lda, args.ldc, args.residual != nullptr ? args.ld_residual : 0}) > kMaxIndex) return {};
  const Mma kernel = kernel_of(traits, args);
  if (!kernel.legal() || args.k % kernel.piece() != 0) return {};
  const uint64_t block = args.block_size;
  if (kernel.scales == 2 && (block < kernel.piece() || !std::has_single_bit(block))) return {};
  if (ceil_div(args.n, kernel.rows()) > traits.max_groups[0]) return {};
  if (!aligned16(args.weights) || !aligned16(args.a)) return {};
  if (args.m > 1 && args.lda * dtype_size(args.a_type) % 16 != 0) return {};
  return kernel;
}

}  // namespace

bool record_mma(Recorder& recorder, const QgemmArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  const std::optional<Mma> chosen = kernel_for(traits, args);
  if (!chosen) return false;
  const Mma& kernel = *chosen;
  const uint64_t row_scales = scales_of_row(args);
  const Mma::Push push{
      .n = narrow(args.n),
      .m = narrow(args.m),
      .k = narrow(args.k),
      .row_scales = narrow(row_scales),
      .block_shift = kernel.scales == 2 ? static_cast<uint32_t>(std::min(std::countr_zero(args.block_size), 31)) : 0,
      .lda = args.m == 1 ? 0 : narrow(args.lda),
      .ldc = args.m == 1 ? 0 : narrow(args.ldc),
      .ld_residual = args.m == 1 || args.residual == nullptr ? 0 : narrow(args.ld_residual),
      .alpha = static_cast<float>(args.alpha),
  };
  const uint64_t weights = stored_bytes(format_of(args.format), args.n * args.k),
                 scales = (row_scales == 0 ? 1 : args.n * row_scales) * dtype_size(args.scale_type);
  const uint64_t a_size = dtype_size(args.a_type), c_size = dtype_size(args.c_type);
  const auto footprint = [&](uint64_t ld, uint64_t columns) { return (args.m - 1) * ld + columns; };
  Dispatch dispatch("qgemm native");
  dispatch.operand(args.weights, 0, weights, Access::read)
      .operand(args.scales, 0, scales, Access::read)
      .operand(args.a, 0, footprint(args.lda, args.k) * a_size, Access::read)
      .operand(args.c, 0, footprint(args.ldc, args.n) * c_size, Access::write)
      .operand(args.bias, 0, args.bias != nullptr ? args.n * c_size : 0, Access::read)
      .operand(args.residual, 0, args.residual != nullptr ? footprint(args.ld_residual, args.n) * c_size : 0,
               Access::read)
      .push(push)
      .groups(narrow(ceil_div(args.n, kernel.rows())))
      .work(static_cast<double>(weights + scales),
            2.0 * static_cast<double>(args.m * args.n) * static_cast<double>(args.k))
      .variant("mma");
  if (kernel.zeros) {
    const uint64_t numbers = row_scales == 0 ? 1 : args.n * row_scales;
    dispatch.operand(args.zero_points, 0, stored_bytes(format_of(args.format), numbers), Access::read);
  }
  log(TUFF_LOG_DISPATCH, "qgemm {} by {} {}x{}x{}: mma, {} rows of weights and {} of A in a block",
      dtype_name(args.a_type), format_of(args.format).name, args.m, args.n, args.k, kernel.rows(), kernel.columns);
  return refusals.dispatch(recorder, kernel.request(), dispatch, "qgemm", 0);
}

}  // namespace tuff::quant
