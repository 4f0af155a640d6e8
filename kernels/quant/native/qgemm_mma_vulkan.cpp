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
#include "kernels/quant/stored_weights.hpp"
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
  const Stored stored(args);
  Mma::Push push{};
  set_rows(push, args, args.lda);
  push.k = narrow(args.k);
  push.row_scales = narrow(scales_of_row(args));
  push.block_shift = stored.block_shift(1);
  Dispatch dispatch("qgemm native");
  stored.add_weights(dispatch);
  add_rows(dispatch, args);
  if (kernel.zeros) stored.add_zeros(dispatch);
  dispatch.push(push)
      .groups(narrow(ceil_div(args.n, kernel.rows())))
      .work(stored.read(), operations_of(args))
      .variant("mma");
  log(TUFF_LOG_DISPATCH, "qgemm {} by {} {}x{}x{}: mma, {} rows of weights and {} of A in a block",
      dtype_name(args.a_type), stored.format.name, args.m, args.n, args.k, kernel.rows(), kernel.columns);
  return refusals.dispatch(recorder, kernel.request(), dispatch, "qgemm", 0);
}

}  // namespace tuff::quant
