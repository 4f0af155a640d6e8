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
#include "kernels/quant/stored_weights.hpp"
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
  constexpr uint64_t kMaxSteps = 32;
  const uint64_t scales = 16 / dtype_size(args.scale_type), zeros = 8 / format_of(args.format).bits();
  const uint64_t steps = scales * std::min<uint64_t>(args.block_size, uint64_t{1} << 31) / Wgmma::kStep;
  if (steps < 2 || steps > kMaxSteps || args.k % (steps * Wgmma::kStep) != 0) return 0;
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

// The kernel that computes it, but for its tile, if there is one.
std::optional<Wgmma> kernel_for(const DeviceTraits& traits, const QgemmArgs& args) {
  if (!traits.hopper || !has_format(args.format) || (args.a_type != TUFF_F16 && args.a_type != TUFF_BF16)) return {};
  if (args.k == 0 || args.k % Wgmma::kStep != 0 || std::max({args.m, args.n, args.k}) > kMaxIndex / 256) return {};
  const bool blocks = args.granularity == TUFF_QUANT_PER_BLOCK;
  if (blocks && (args.block_size < kMinBlock || !std::has_single_bit(args.block_size))) return {};
  const Wgmma kernel = kernel_of(args);
  if (!kernel.legal()) return {};
  const bool small = args.format == TUFF_QUANT_Q4_0 || args.format == TUFF_QUANT_Q8_0;
  if (!is_aligned(args.weights, small ? 4 : 16) || !is_aligned(args.a, 16)) return {};
  if (blocks && (!is_aligned(args.scales, kernel.scale_bytes()) || !is_aligned(args.zero_points, 4))) return {};
  if (args.m > 1 && args.lda % 8 != 0) return {};
  // Offsets in A have 32 bits, in units of 16 bytes; those of leading dimensions are in bytes.
  if (args.m > 1 && (std::max(args.ldc, args.residual != nullptr ? args.ld_residual : 0) > kMaxIndex / 4 ||
                     args.lda > kMaxIndex * 8 / args.m)) {
    return {};
  }
  return kernel;
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
double time_of(uint64_t cores, const QgemmArgs& args, const Wgmma& kernel, const Variant& variant) {
  const uint64_t rounds = ceil_div(tiles_of(args, variant), cores);
  const uint64_t steps = args.k / Wgmma::kStep / (variant.rows == 64 ? 2 : 1);
  return static_cast<double>(rounds) * (static_cast<double>(steps) * (variant.step + more_of(kernel)) + kEnds);
}

// That of the other ways. With few rows of A, eight numbers to a lane; with more, weights are dequantised first at the
// speed of memory, and multiplied by GEMM's tiles of 128 x 128 or 128 x 256.
double time_of_others(uint64_t cores, const QgemmArgs& args) {
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
    const auto rounds = static_cast<double>(ceil_div(tiles, cores));
    const double time = rounds * (static_cast<double>(args.k / Wgmma::kStep) * kSteps[i] + kEnds);
    if (i == 0 || time < least) least = time;
  }
  return (2 * weights + static_cast<double>(Stored(args).bytes())) / kBytesPerMicrosecond + kPass + least;
}

// The number of the fastest tile, if there is one, and it is faster than the other ways.
std::optional<uint32_t> choose(uint64_t cores, const QgemmArgs& args, const Wgmma& kernel,
                               const std::optional<std::string>& forced) {
  std::optional<uint32_t> best;
  double least = 0;
  for (uint32_t i = 0; i < std::size(kVariants); ++i) {
    const Variant& variant = kVariants[i];
    if ((forced && *forced != variant.name) || refusals.has(i)) continue;
    if (variant.rows == 64 && args.k % (2 * Wgmma::kStep) != 0) continue;
    const double time = time_of(cores, args, kernel, variant);
    if (best && time >= least) continue;
    best = i;
    least = time;
  }
  if (!forced && best && least >= time_of_others(cores, args)) return {};
  return best;
}

Wgmma::Push push_of(const Stored& stored, const Variant& variant) {
  const QgemmArgs& args = stored.args;
  Wgmma::Push push{};
  set_rows(push, args, args.lda / 8);
  push.k = narrow(args.k);
  push.tiles_n = narrow(ceil_div(args.n, variant.rows));
  push.tiles_m = narrow(ceil_div(args.m, variant.columns));
  push.tiles = narrow(tiles_of(args, variant));
  push.row_bytes = narrow(stored_bytes(stored.format, args.k));
  push.row_scales = narrow(scales_of_row(args));
  push.block_shift = stored.block_shift(1);
  return push;
}

}  // namespace

bool is_wgmma_variant(std::string_view name) {
  return std::any_of(std::begin(kVariants), std::end(kVariants), [&](const Variant& row) { return name == row.name; });
}

bool record_wgmma(Recorder& recorder, const QgemmArgs& args, const std::optional<std::string>& forced) {
  const DeviceTraits& traits = recorder.traits();
  std::optional<Wgmma> found = kernel_for(traits, args);
  if (!found) return false;
  Wgmma& kernel = *found;
  const uint64_t cores = stream_device(traits, std::nullopt, sizeof(float)).cores;
  const std::optional<uint32_t> chosen = choose(cores, args, kernel, forced);
  if (!chosen) return false;
  const Variant& variant = kVariants[*chosen];
  kernel.rows = variant.rows;
  kernel.columns = variant.columns;
  kernel.edge = args.n % variant.rows != 0 || args.m % variant.columns != 0 || args.activation == TUFF_ACTIVATION_GELU;
  const Stored stored(args);
  const Wgmma::Push push = push_of(stored, variant);
  const uint64_t rows = args.m * (args.k * dtype_size(args.a_type) + args.n * dtype_size(args.c_type));
  Dispatch dispatch("qgemm native");
  stored.operands(dispatch);
  add_rows(dispatch, args);
  dispatch.push(push)
      .groups(static_cast<uint32_t>(std::min<uint64_t>(push.tiles, cores * kernel.blocks())))
      .work(stored.read() + static_cast<double>(rows), operations_of(args))
      .variant(variant.name);
  log(TUFF_LOG_DISPATCH, "qgemm {} by {} {}x{}x{}: {}, {} tiles", dtype_name(args.a_type), stored.format.name, args.m,
      args.n, args.k, variant.name, push.tiles);
  return refusals.dispatch(recorder, kernel.request(), dispatch, "qgemm", *chosen);
}

}  // namespace tuff::quant
