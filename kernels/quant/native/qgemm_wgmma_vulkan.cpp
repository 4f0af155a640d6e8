// Plans products with quantised weights and many rows of A for NVIDIA's Hopper GPUs: a kernel in PTX (qgemm_wgmma.cpp).
#include <algorithm>
#include <bit>
#include <optional>

#include "kernels/common/check.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/native/refusals.hpp"
#include "kernels/quant/native/qgemm_wgmma.hpp"
#include "kernels/quant/quant.hpp"
#include "planning/arithmetic.hpp"
#include "planning/log.hpp"

namespace tuff::quant {
namespace {

struct Variant {
  const char* name;
  uint32_t rows, columns;
  double step;  // µs of a step, or of one of each group, on an H200 with integers of 4 bits
};
constexpr Variant kVariants[] = {
    {"wgmma_64x16", 64, 16, 0.48},   {"wgmma_64x32", 64, 32, 0.48},     {"wgmma_64x64", 64, 64, 0.50},
    {"wgmma_64x128", 64, 128, 0.75}, {"wgmma_128x16", 128, 16, 0.31},   {"wgmma_128x32", 128, 32, 0.31},
    {"wgmma_128x64", 128, 64, 0.34}, {"wgmma_128x128", 128, 128, 0.47}, {"wgmma_128x256", 128, 256, 0.72},
};
Refusals refusals;
constexpr uint64_t kMaxIndex = 0x7fffffff;
constexpr uint64_t kMinBlock = 16;

bool is_aligned(const Buffer* buffer, uint64_t bytes) { return buffer == nullptr || buffer->offset % bytes == 0; }

bool has_format(int32_t format) {
  return format_of(format).integers() || format == TUFF_QUANT_Q4_0 || format == TUFF_QUANT_Q8_0 ||
         format == TUFF_QUANT_Q4_K;
}

// Steps of 16 bytes of a row's scales, if they can be loaded at once.
uint32_t period_of(const QgemmArgs& args) {
  constexpr uint64_t kMostSteps = 32;
  const uint64_t scales = 16 / dtype_size(args.scale_type), zeros = 8 / format_of(args.format).bits();
  const uint64_t steps = scales * std::min<uint64_t>(args.block_size, uint64_t{1} << 31) / Wgmma::kStep;
  if (steps < 2 || steps > kMostSteps || args.k % (steps * Wgmma::kStep) != 0) return 0;
  return is_aligned(args.scales, 16) && is_aligned(args.zero_points, scales / zeros) ? static_cast<uint32_t>(steps) : 0;
}

// What the text of the kernel depends on but for its tile.
Wgmma kernel_of(const QgemmArgs& args) {
  const bool integers = format_of(args.format).integers();
  Wgmma kernel;
  kernel.type = args.a_type;
  kernel.c_type = args.c_type;
  kernel.format = args.format;
  kernel.scales = !integers                                  ? 0
                  : args.granularity == TUFF_QUANT_PER_BLOCK ? 2
                                                             : args.granularity == TUFF_QUANT_PER_AXIS;
  kernel.scale_type = integers ? args.scale_type : int32_t{TUFF_F16};
  if (kernel.block_scales()) {
    kernel.per_step = static_cast<uint32_t>(Wgmma::kStep / std::clamp<uint64_t>(args.block_size, 1, Wgmma::kStep));
    kernel.period = period_of(args);
  }
  kernel.zeros = args.zero_points != nullptr;
  const uint64_t c_size = dtype_size(args.c_type);
  kernel.vector = args.c_type != TUFF_F32 && args.n % 4 == 0 && is_aligned(args.c, 4 * c_size) &&
                  (args.m == 1 || args.ldc % 4 == 0);
  kernel.bias = args.bias != nullptr;
  kernel.residual = args.residual != nullptr;
  kernel.activation = args.activation;
  kernel.edge = true;  // where it matters, see record_wgmma()
  return kernel;
}

// Whether the kernel computes it.
bool computes(const DeviceTraits& traits, const QgemmArgs& args) {
  if (!traits.hopper || !has_format(args.format) || (args.a_type != TUFF_F16 && args.a_type != TUFF_BF16)) return false;
  if (args.k == 0 || args.k % Wgmma::kStep != 0 || std::max({args.m, args.n, args.k}) > kMaxIndex / 256) return false;
  const bool blocks = args.granularity == TUFF_QUANT_PER_BLOCK;
  if (blocks && (args.block_size < kMinBlock || !std::has_single_bit(args.block_size))) return false;
  const Wgmma kernel = kernel_of(args);
  if (!kernel.legal()) return false;
  const bool small = args.format == TUFF_QUANT_Q4_0 || args.format == TUFF_QUANT_Q8_0;
  if (!is_aligned(args.weights, small ? 4 : 16) || !is_aligned(args.a, 16)) return false;
  if (blocks && (!is_aligned(args.scales, kernel.scale_bytes()) || !is_aligned(args.zero_points, 4))) return false;
  if (args.m > 1 && args.lda % 8 != 0) return false;
  // Offsets in A have 32 bits, in units of 16 bytes; those of leading dimensions are in bytes.
  if (args.m > 1 && (std::max(args.ldc, args.residual != nullptr ? args.ld_residual : 0) > kMaxIndex / 4 ||
                     args.lda > kMaxIndex * 8 / args.m)) {
    return false;
  }
  return true;
}

uint64_t multiprocessors(const DeviceTraits& traits) {
  return stream_device(traits, std::nullopt, sizeof(float)).cores;
}

uint64_t tiles_of(const QgemmArgs& args, const Variant& variant) {
  return ceil_div(args.n, variant.rows) * ceil_div(args.m, variant.columns);
}

// What a step takes longer than with integers of 4 bits, in µs.
double more_of(const Wgmma& kernel) {
  switch (kernel.format) {
    case TUFF_QUANT_Q4_0: return 0.06;
    case TUFF_QUANT_Q8_0: return 0.30;
    case TUFF_QUANT_Q4_K: return 0.22;
    default: return (kernel.in_floats() ? 0.20 : 0.0) + (kernel.zeros ? 0.04 : 0.0);
  }
}

constexpr double kEnds = 1;  // µs of a tile outside the loop over k

// In µs, as measured on an H200.
double time_of(const DeviceTraits& traits, const QgemmArgs& args, const Wgmma& kernel, const Variant& variant) {
  const uint64_t rounds = ceil_div(tiles_of(args, variant), multiprocessors(traits));
  const uint64_t steps = args.k / Wgmma::kStep / (variant.rows == 64 ? 2 : 1);
  return static_cast<double>(rounds) * (static_cast<double>(steps) * (variant.step + more_of(kernel)) + kEnds);
}

// That of the other ways. With few rows of A, eight numbers to a lane; with more, weights are dequantised first at the
// speed of memory, and multiplied by GEMM's tiles of 128 x 128 or 128 x 256.
double time_of_others(const DeviceTraits& traits, const QgemmArgs& args) {
  constexpr uint64_t kFew = 4;
  constexpr double kSteps[] = {0.42, 0.70}, kBytesPerMicrosecond = 3.3e6, kPass = 5;
  const double weights = static_cast<double>(args.n) * static_cast<double>(args.k);
  if (args.m <= kFew) {
    const double each = args.format == TUFF_QUANT_Q4_K ? 0.62e-6 : 0.40e-6;
    return weights * (each + 0.1e-6 * static_cast<double>(args.m)) + 2;
  }
  double least = 0;
  for (uint32_t i = 0; i < 2; ++i) {
    const uint64_t tiles = ceil_div(args.m, 128) * ceil_div(args.n, uint64_t{128} << i);
    const auto rounds = static_cast<double>(ceil_div(tiles, multiprocessors(traits)));
    const double time = rounds * (static_cast<double>(args.k / Wgmma::kStep) * kSteps[i] + kEnds);
    if (i == 0 || time < least) least = time;
  }
  const auto stored = static_cast<double>(stored_bytes(format_of(args.format), args.n * args.k));
  return (2 * weights + stored) / kBytesPerMicrosecond + kPass + least;
}

// The number of the fastest tile, if there is one, and it is faster than the other ways.
std::optional<uint32_t> choose(const DeviceTraits& traits, const QgemmArgs& args, const Wgmma& kernel,
                               const std::optional<std::string>& forced) {
  std::optional<uint32_t> best;
  double least = 0;
  for (uint32_t i = 0; i < std::size(kVariants); ++i) {
    const Variant& variant = kVariants[i];
    if ((forced && *forced != variant.name) || refusals.has(i)) continue;
    if (variant.rows == 64 && args.k % (2 * Wgmma::kStep) != 0) continue;
    const double time = time_of(traits, args, kernel, variant);
    if (best && time >= least) continue;
    best = i;
    least = time;
  }
  if (!forced && best && least >= time_of_others(traits, args)) return {};
  return best;
}

Wgmma::Push push_of(const QgemmArgs& args, const Variant& variant) {
  const Format& format = format_of(args.format);
  const bool blocks = args.granularity == TUFF_QUANT_PER_BLOCK;
  Wgmma::Push push{};
  push.n = narrow(args.n);
  push.m = narrow(args.m);
  push.k = narrow(args.k);
  push.tiles_n = narrow(ceil_div(args.n, variant.rows));
  push.tiles_m = narrow(ceil_div(args.m, variant.columns));
  push.tiles = narrow(tiles_of(args, variant));
  push.row_bytes = narrow(stored_bytes(format, args.k));
  push.row_scales = format.integers() ? narrow(scales_of_row(args)) : 0;
  push.block_shift = blocks ? static_cast<uint32_t>(std::min(std::countr_zero(args.block_size), 31)) : 0;
  if (args.m > 1) {
    push.lda = narrow(args.lda / 8);
    push.ldc = narrow(args.ldc);
    push.ld_residual = args.residual != nullptr ? narrow(args.ld_residual) : 0;
  }
  push.alpha = static_cast<float>(args.alpha);
  return push;
}

}  // namespace

bool is_wgmma_variant(std::string_view name) {
  return std::any_of(std::begin(kVariants), std::end(kVariants), [&](const Variant& row) { return name == row.name; });
}

bool record_wgmma(Recorder& recorder, const QgemmArgs& args, const std::optional<std::string>& forced) {
  const DeviceTraits& traits = recorder.traits();
  if (!computes(traits, args)) return false;
  Wgmma kernel = kernel_of(args);
  const std::optional<uint32_t> chosen = choose(traits, args, kernel, forced);
  if (!chosen) return false;
  const Variant& variant = kVariants[*chosen];
  kernel.rows = variant.rows;
  kernel.columns = variant.columns;
  kernel.edge = args.n % variant.rows != 0 || args.m % variant.columns != 0 || args.activation == TUFF_ACTIVATION_GELU;
  const Wgmma::Push push = push_of(args, variant);
  const Format& format = format_of(args.format);
  const uint64_t weights = stored_bytes(format, args.n * args.k);
  const uint64_t count = !format.integers() ? 0 : kernel.scales == 0 ? 1 : args.n * scales_of_row(args);
  const uint64_t a_size = dtype_size(args.a_type), c_size = dtype_size(args.c_type);
  const auto footprint = [&](uint64_t ld, uint64_t columns) { return (args.m - 1) * ld + columns; };
  Dispatch dispatch("qgemm native");
  dispatch.operand(args.weights, 0, weights, Access::read)
      .operand(args.scales, 0, count * dtype_size(args.scale_type), Access::read)
      .operand(args.zero_points, 0, args.zero_points != nullptr ? stored_bytes(format, count) : 0, Access::read)
      .operand(args.a, 0, footprint(args.lda, args.k) * a_size, Access::read)
      .operand(args.c, 0, footprint(args.ldc, args.n) * c_size, Access::write)
      .operand(args.bias, 0, args.bias != nullptr ? args.n * c_size : 0, Access::read)
      .operand(args.residual, 0, args.residual != nullptr ? footprint(args.ld_residual, args.n) * c_size : 0,
               Access::read)
      .push(push)
      .groups(static_cast<uint32_t>(std::min<uint64_t>(push.tiles, multiprocessors(traits) * kernel.blocks())))
      .work(static_cast<double>(weights + count * dtype_size(args.scale_type) +
                                args.m * (args.k * a_size + args.n * c_size)),
            2.0 * static_cast<double>(args.m * args.n) * static_cast<double>(args.k))
      .variant(variant.name);
  log(TUFF_LOG_DISPATCH, "qgemm {} by {} {}x{}x{}: {}, {} tiles", dtype_name(args.a_type), format.name, args.m, args.n,
      args.k, variant.name, push.tiles);
  return refusals.dispatch(recorder, kernel.request(), dispatch, "qgemm", *chosen);
}

}  // namespace tuff::quant
