// Planner of products with quantised weights. Kernels that read weights as they are stored take
//   up to 32 rows of A beside integers, on NVIDIA's Hopper GPUs: native/qgemm_mma.cpp;
//   more rows there, and other formats: native/qgemm_wgmma.cpp;
//   up to kFew rows of A, where tiles suit up to kFewOfCpu: qgemm_rows.comp, which reads the weights once;
//   as many as are worth packing, on CPU devices: qgemm_pack.comp, which dequantises them into the panels of GEMM's
//   planner;
//   any other number, on CPU devices with subgroups of 2 to 16 and from kMinN rows of weights on: qgemm_tile.comp,
//   which dequantises them for each of its tiles.
// Otherwise weights are dequantised to A's type, as many rows at a time as fit scratch memory, and multiplied by GEMM's
// planner. Products whose A is quantised are computed in integers: qgemm_integers_vulkan.cpp.
//
// TUFF_QUANT_VARIANT=gpu or cpu in the environment forces the shapes of that kind of device, for tests;
// TUFF_QGEMM_VARIANT a kernel in PTX where it computes the product (mma, wgmma_128x256, ...), or none: "plain".
#include <algorithm>
#include <bit>

#include "kernels/common/check.hpp"
#include "kernels/common/kernels_for.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/gemm/panels/panel_source.hpp"
#include "kernels/quant/quant.hpp"
#include "kernels/quant/stored_weights.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/gemm_epilogue.hpp"
#include "shaders/qgemm_pack.hpp"
#include "shaders/qgemm_rows.hpp"
#include "shaders/qgemm_tile.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxScratch = 1u << 26;  // elements
constexpr uint64_t kFew = 4;                // rows of A that the kernel for few rows takes
constexpr uint64_t kFewOfCpu = 2;           // where tiles suit too, which are as fast with three
constexpr uint64_t kMinN = 16;              // rows of weights for tiles: they compute WIDTH * COLS
constexpr uint64_t kRowsOfMma = 16;         // rows of A from which on wgmma is faster with 4 bits …
constexpr uint64_t kManyWeights = 4096;     // … and so many rows of weights, which keep all multiprocessors busy
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

// Whether kernels can read the weights as they are stored: rows of whole items of eight numbers that have one scale.
bool has_items(const QgemmArgs& args) {
  const quant::Format& format = quant::format_of(args.format);
  if (args.k == 0 || args.k % 8 != 0 || std::max(args.k, args.n) > kMaxIndex) return false;
  if (!format.integers()) return true;
  if (args.weights->offset % format.bits() != 0) return false;
  return args.granularity != TUFF_QUANT_PER_BLOCK || (args.block_size >= 8 && std::has_single_bit(args.block_size));
}

// Whether 32 bits index A, C and the residual.
bool has_short_rows(const QgemmArgs& args) {
  const uint64_t furthest = std::max({args.lda, args.ldc, args.residual != nullptr ? args.ld_residual : 0});
  return args.m == 1 || furthest <= (kMaxIndex - std::max(args.k, args.n)) / args.m;
}

// Whether the kernel for few rows of A computes it.
bool suits_few(const DeviceTraits& traits, const StreamDevice& device, const QgemmArgs& args) {
  if (args.m > kFew || !has_items(args) || !has_short_rows(args) || !traits.subgroup_arithmetic) return false;
  // A subgroup of a CPU device takes up to eight parts of a workgroup's rows.
  return !traits.cpu || 8 * (args.k / 8 / device.subgroup + 1) < kMaxLoopIterationsCpu;
}

// Whether the kernel with tiles in registers does. On other devices it would need a variant of its own.
bool suits_tiles(const DeviceTraits& traits, const StreamDevice& device, const QgemmArgs& args) {
  if (!traits.cpu || !device.cpu || !traits.subgroup_shuffle) return false;
  if (traits.subgroup_size < 2 || traits.subgroup_size > 16) return false;
  return args.n >= kMinN && has_items(args) && has_short_rows(args) && args.k / 8 < kMaxLoopIterationsCpu;
}

// Rows of A of a tile, in units of the subgroup size. Larger tiles dequantise less often, and take longer to compile:
// on Mesa 22.3 half a second, one and a half, and four.
uint32_t row_blocks(const DeviceTraits& traits, const QgemmArgs& args) {
  const double operations = quant::operations_of(args);
  if (args.m <= traits.subgroup_size || operations < 1.5e7) return 1;
  return args.m <= 2 * traits.subgroup_size || operations < 2e8 ? 2 : 4;
}

bool reads_a_as_vectors(const QgemmArgs& args) {
  return args.a->offset % (4 * dtype_size(args.a_type)) == 0 && (args.m == 1 || args.lda % 4 == 0);
}

shaders::GemmEpilogue epilogue_of(const DeviceTraits& traits, const QgemmArgs& args) {
  return {.activation = args.activation,
          .bias_axis = args.bias != nullptr ? TUFF_BIAS_COLUMNS : TUFF_BIAS_NONE,
          .c_type = args.c_type,
          .exact_arithmetic = traits.cpu,
          .residual = args.residual != nullptr};
}

// The operands of a kernel that computes C from weights as they are stored.
template <typename Push>
Dispatch product(const quant::Stored& stored) {
  const QgemmArgs& args = stored.args;
  Push push{};
  quant::set_rows(push, args, args.lda);
  stored.describe(push);
  Dispatch dispatch("qgemm");
  stored.operands(dispatch);
  quant::add_rows(dispatch, args);
  dispatch.push(push).work(stored.read(), quant::operations_of(args));
  return dispatch;
}

void record_few(Recorder& recorder, const StreamDevice& device, const QgemmArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  const quant::Stored stored(args);
  const uint32_t workgroup =
      device.cpu ? device.subgroup : std::max(device.subgroup, std::min(128u, max_along_x(traits)));
  const uint64_t rows = device.cpu ? (args.n == 1 ? 1 : args.m > 2 ? 2 : 4) : args.n >= 64 * device.cores ? 2 : 1;
  const uint64_t group_rows = !device.cpu ? workgroup / device.subgroup * rows : args.n > 4 ? 16 : rows;
  KernelRequest kernel = shaders::QgemmRows::request({.a_type = args.a_type,
                                                      .bits = stored.bits(),
                                                      .count = args.m,
                                                      .epilogue = epilogue_of(traits, args),
                                                      .format = stored.blocks(),
                                                      .group_rows = group_rows,
                                                      .negative = stored.format.least < 0,
                                                      .rows = rows,
                                                      .scale = args.scale_type,
                                                      .vector_a = reads_a_as_vectors(args),
                                                      .zeros = args.zero_points != nullptr});
  kernel.streaming().constant(0, workgroup).wide(needs_wide(args.n * args.k));
  Dispatch dispatch = product<shaders::QgemmRows::Push>(stored);
  dispatch.groups_linear(ceil_div(args.n, group_rows), traits).variant("rows");
  log(TUFF_LOG_DISPATCH, "qgemm {} by {} {}x{}x{}: {} rows of weights in a workgroup of {}, {}",
      dtype_name(args.a_type), stored.format.name, args.m, args.n, args.k, group_rows, workgroup,
      kernels_for(device.cpu));
  recorder.dispatch(kernel, dispatch);
}

void record_tiles(Recorder& recorder, const QgemmArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  const quant::Stored stored(args);
  const uint32_t width = traits.subgroup_size, cols = 4, blocks = row_blocks(traits, args);
  KernelRequest kernel = shaders::QgemmTile::request({.a_type = args.a_type,
                                                      .bits = stored.bits(),
                                                      .cols = cols,
                                                      .epilogue = epilogue_of(traits, args),
                                                      .format = stored.blocks(),
                                                      .negative = stored.format.least < 0,
                                                      .row_blocks = blocks,
                                                      .scale = args.scale_type,
                                                      .vector_a = reads_a_as_vectors(args),
                                                      .width = width,
                                                      .zeros = args.zero_points != nullptr});
  kernel.wide(needs_wide(args.n * args.k));
  const uint64_t tiles = ceil_div(args.m, uint64_t{blocks} * width) * ceil_div(args.n, uint64_t{cols} * width);
  Dispatch dispatch = product<shaders::QgemmTile::Push>(stored);
  dispatch.groups_linear(tiles, traits).variant("tiles");
  log(TUFF_LOG_DISPATCH, "qgemm {} by {} {}x{}x{}: tiles of {}x{}, {}", dtype_name(args.a_type), stored.format.name,
      args.m, args.n, args.k, blocks * width, cols * width, kernels_for(true));
  recorder.dispatch(kernel, dispatch);
}

// Weights that are dequantised into panels.
class Panels final : public gemm::PanelSource {
 public:
  explicit Panels(const QgemmArgs& args) : stored_(args) {}
  void pack(Recorder& recorder, const gemm::PanelPiece& piece) const override {
    const QgemmArgs& args = stored_.args;
    KernelRequest kernel = shaders::QgemmPack::request({.bits = stored_.bits(),
                                                        .depth = piece.depth,
                                                        .format = stored_.blocks(),
                                                        .negative = stored_.format.least < 0,
                                                        .rows = piece.panel_rows,
                                                        .scale = args.scale_type,
                                                        .zeros = args.zero_points != nullptr});
    kernel.packed().wide(needs_wide(args.n * args.k));
    shaders::QgemmPack::Push push{};
    stored_.describe(push);
    push.first_row = static_cast<uint32_t>(piece.first);
    push.rows = static_cast<uint32_t>(piece.first + piece.rows);
    push.first_item = static_cast<uint32_t>(piece.first_step / 8);
    push.end_item = static_cast<uint32_t>((piece.first_step + piece.steps) / 8);
    const uint64_t blocks = ceil_div(piece.steps, uint64_t{piece.depth});
    const uint64_t packed = piece.panels * piece.panel_rows * blocks * piece.depth;
    Dispatch dispatch("qgemm pack");
    stored_.operands(dispatch);
    dispatch.operand(piece.to, piece.offset, packed * 4, Access::write).push(push);
    dispatch.groups(static_cast<uint32_t>(piece.panels), static_cast<uint32_t>(blocks));
    dispatch.work(4.0 * static_cast<double>(packed) + stored_.read() * static_cast<double>(piece.rows * piece.steps) /
                                                          static_cast<double>(args.n * args.k),
                  4.0 * static_cast<double>(packed));
    log(TUFF_LOG_DISPATCH, "qgemm {} by {} {}x{}x{}: dequantised into panels, {}", dtype_name(args.a_type),
        stored_.format.name, args.m, piece.rows, piece.steps, kernels_for(true));
    recorder.dispatch(kernel, dispatch);
  }

 private:
  quant::Stored stored_;
};

// By a kernel in PTX, if one computes it. For tests, the environment may name one.
bool record_native(Recorder& recorder, const QgemmArgs& args) {
  const std::optional<std::string>& forced = forced_variant<"TUFF_QGEMM_VARIANT">();
  if (!forced) {
    const bool small = args.m <= kRowsOfMma || args.n < kManyWeights || quant::format_of(args.format).bits() != 4;
    if (small && quant::record_mma(recorder, args)) return true;
    return quant::record_wgmma(recorder, args, std::nullopt) || quant::record_mma(recorder, args);
  }
  if (*forced == "plain") return false;
  if (*forced == "mma") return quant::record_mma(recorder, args);
  require(quant::is_wgmma_variant(*forced), "TUFF_QGEMM_VARIANT={} is not a variant of qgemm", *forced);
  return quant::record_wgmma(recorder, args, forced);
}

}  // namespace

void record_qgemm(Recorder& recorder, const QgemmArgs& args) {
  require_devices(recorder.traits(), args);
  if (args.m == 0 || args.n == 0) return;
  if (args.quantised()) return quant::record_integers(recorder, args);
  const std::optional<std::string>& forced = forced_variant<"TUFF_QUANT_VARIANT">();
  if (!forced && record_native(recorder, args)) return;
  const StreamDevice device = stream_device(recorder.traits(), forced, sizeof(float));
  const DeviceTraits& traits = recorder.traits();
  const bool tiles = suits_tiles(traits, device, args);
  if ((!tiles || args.m <= kFewOfCpu) && suits_few(traits, device, args)) return record_few(recorder, device, args);
  if (device.cpu && has_items(args)) {
    const Buffer none;  // GEMM's planner asks where B begins; it is not read
    GemmArgs gemm = product_of(args, none, *args.c, args.bias != nullptr ? *args.bias : none,
                               args.residual != nullptr ? *args.residual : none, args.n);
    gemm.b_type = TUFF_F32;
    if (gemm::record_gemm_with_panels(recorder, gemm, Panels(args))) return;
  }
  if (tiles) return record_tiles(recorder, args);
  // Pieces begin at even rows, so that packed numbers of 4 bits begin at a byte.
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
