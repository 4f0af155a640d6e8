// Planner of products of quantised activations with quantised weights, both integers of 8 bits. GEMM's planner
// multiplies them, with its own kernels for i8. With one scale for each operand and no zero points its epilogue does
// the rest. Otherwise it leaves sums in i32, block by block where weights have scales of blocks, and qgemm_scale.comp
// does:
//
//   signed    integers without sign become those with sign that are 128 less, and their zero points too
//   sums      of rows of A and W, which zero points of the other operand are multiplied by
//   product   of a block of k, in i32
//   scale     zero points, scales and the epilogue
//
// On NVIDIA's Hopper GPUs one kernel (native/qgemm_blocks.cpp) adds up all blocks of integers without zero points.
//
// Large products are cut into pieces of rows of A and of W, so that scratch memory stays bounded.
#include <algorithm>

#include "kernels/common/check.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/common/scratch_parts.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/quant/quant.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/gemm_epilogue.hpp"
#include "shaders/qgemm_scale.hpp"
#include "shaders/qgemm_signed.hpp"
#include "shaders/qgemm_sums.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxProducts = 1u << 26;    // of a piece
constexpr uint64_t kMaxRows = 1u << 14;        // of A, of a piece
constexpr uint64_t kMaxIntegers = 1u << 28;    // of a piece of either operand
constexpr uint64_t kMaxDispatches = 1u << 16;  // a call of more would run for hours
constexpr uint64_t kMaxK = 0x7fffffff;

// One operand of a piece: rows of k integers.
struct Side {
  bool is_unsigned;
  const Buffer* zero_points;
  Buffer integers;  // as they are stored, from the piece's first row on; later with sign
  uint64_t rows, ld;
  Buffer own, sums;  // scratch memory: the integers with sign; a sum for each block and row
  bool has_zero() const { return is_unsigned || zero_points != nullptr; }
};

struct ProductPiece {
  Side a, w;
  Buffer a_scales, a_zeros, scales, zeros, bias, residual, c;
  Buffer products, kept;
  uint64_t block, blocks;  // of k
};

uint64_t padded(uint64_t k) { return round_up(k, 4); }

StreamDevice device_of(const Recorder& recorder) {
  return stream_device(recorder.traits(), forced_variant<"TUFF_QUANT_VARIANT">(), sizeof(float));
}

GemmArgs gemm_of(const QgemmArgs& args, const Buffer* a, const Buffer* w, const Buffer* c) {
  GemmArgs gemm{};
  gemm.a_type = gemm.b_type = TUFF_I8, gemm.accumulate = TUFF_I32;
  gemm.c_type = args.c_type, gemm.precision = TUFF_PRECISION_DEFAULT;
  gemm.ta = TUFF_NO_TRANS, gemm.tb = TUFF_TRANS;
  gemm.m = args.m, gemm.n = args.n, gemm.k = args.k, gemm.alpha = 1;
  gemm.a = a, gemm.b = w, gemm.c = c;
  gemm.lda = args.lda, gemm.ldb = args.k, gemm.ldc = args.ldc;
  return gemm;
}

// Whether GEMM's own scales and epilogue are all that there is.
bool is_gemm(const QgemmArgs& args) {
  if (args.k == 0) return true;
  return args.a_type == TUFF_I8 && args.format == TUFF_QUANT_I8 && args.a_granularity == TUFF_QUANT_PER_TENSOR &&
         args.granularity == TUFF_QUANT_PER_TENSOR && args.scale_type == TUFF_F32 && args.a_zero_points == nullptr &&
         args.zero_points == nullptr;
}

void record_as_gemm(Recorder& recorder, const QgemmArgs& args) {
  GemmArgs gemm = gemm_of(args, args.a, args.weights, args.c);
  gemm.alpha = static_cast<float>(args.alpha);
  gemm.epilogue.activation = args.activation;
  if (args.k != 0) gemm.epilogue.scale_a = args.a_scales, gemm.epilogue.scale_b = args.scales;
  if (args.bias != nullptr) gemm.epilogue.bias_axis = TUFF_BIAS_COLUMNS, gemm.epilogue.bias = args.bias;
  if (args.residual != nullptr) {
    gemm.epilogue.residual = args.residual, gemm.epilogue.ld_residual = args.ld_residual;
  }
  record_gemm(recorder, gemm);
}

// The side's integers with sign, in scratch memory.
void record_signed(Recorder& recorder, Side& side, uint64_t k) {
  const StreamDevice device = device_of(recorder);
  const uint64_t n = side.rows * padded(k) / 4, run = device.cpu ? device.items_each(n, 128) : 4;
  const uint64_t bytes = (side.rows - 1) * side.ld + k;
  KernelRequest kernel = shaders::QgemmSigned::request(
      {.run = device.fixed_run(run), .vector = side.integers.offset % 4 == 0 && side.ld % 4 == 0});
  kernel.streaming().constant(0, device.workgroup).wide(needs_wide(std::max(bytes, 4 * n)));
  Dispatch dispatch("qgemm signed");
  dispatch.operand(&side.integers, 0, bytes, Access::read)
      .operand(&side.own, 0, 4 * n, Access::write)
      .push(shaders::QgemmSigned::Push{.n = narrow(n), .run = narrow(run), .k = narrow(k), .ld = narrow(side.ld)})
      .groups_linear(ceil_div(n, device.workgroup * run), recorder.traits())
      .work(static_cast<double>(8 * n), static_cast<double>(n));
  recorder.dispatch(kernel, dispatch);
  side.integers = side.own, side.ld = padded(k);
}

void record_sums(Recorder& recorder, const Side& side, uint64_t k, uint64_t block, uint64_t blocks) {
  const StreamDevice device = device_of(recorder);
  const uint64_t count = side.rows * blocks, each = device.workgroup / device.subgroup;
  const uint64_t bytes = (side.rows - 1) * side.ld + k;
  const bool fours = side.integers.offset % 4 == 0 && side.ld % 4 == 0 && (blocks == 1 || block % 4 == 0);
  KernelRequest kernel = shaders::QgemmSums::request({.vector = fours});
  kernel.streaming().constant(0, device.workgroup).wide(needs_wide(std::max(bytes, count)));
  Dispatch dispatch("qgemm sums");
  dispatch.operand(&side.integers, 0, bytes, Access::read)
      .operand(&side.sums, 0, count * 4, Access::write)
      .push(shaders::QgemmSums::Push{.count = narrow(count),
                                     .each = narrow(each),
                                     .rows = narrow(side.rows),
                                     .ld = narrow(side.ld),
                                     .k = narrow(k),
                                     .part = narrow(block)})
      .groups_linear(ceil_div(count, each), recorder.traits())
      .work(static_cast<double>(side.rows * k), static_cast<double>(side.rows * k));
  recorder.dispatch(kernel, dispatch);
}

// The epilogue of block `b` of k, whose products are there; or, `summed`, of the sum of all blocks.
void record_scale(Recorder& recorder, const QgemmArgs& args, const ProductPiece& piece, uint64_t b,
                  bool summed = false) {
  const DeviceTraits& traits = recorder.traits();
  const StreamDevice device = device_of(recorder);
  const uint64_t n = piece.a.rows * piece.w.rows, run = device.cpu ? device.items_each(n, 128) : 4,
                 scales = quant::scales_of_row(args);
  const bool first = b == 0 && !summed, last = b + 1 == piece.blocks,
             a_rows = args.a_granularity == TUFF_QUANT_PER_AXIS;
  const uint64_t scale_size = dtype_size(args.scale_type), c_size = dtype_size(args.c_type);
  const uint64_t a_count = a_rows ? piece.a.rows : 1, w_count = scales == 0 ? 1 : piece.w.rows * scales;
  const auto rows_of = [&](uint64_t ld) { return (piece.a.rows - 1) * ld + piece.w.rows; };
  const shaders::GemmEpilogue epilogue{.activation = last ? args.activation : int32_t{TUFF_ACTIVATION_NONE},
                                       .bias_axis = last && args.bias != nullptr ? TUFF_BIAS_COLUMNS : TUFF_BIAS_NONE,
                                       .c_type = args.c_type,
                                       .exact_arithmetic = traits.cpu,
                                       .residual = last && args.residual != nullptr};
  KernelRequest kernel = shaders::QgemmScale::request({.a_rows = a_rows,
                                                       .a_unsigned = piece.a.is_unsigned,
                                                       .a_zeros = args.a_zero_points != nullptr,
                                                       .epilogue = epilogue,
                                                       .first = first,
                                                       .last = last,
                                                       .run = device.fixed_run(run),
                                                       .scale = args.scale_type,
                                                       .summed = summed,
                                                       .w_unsigned = piece.w.is_unsigned,
                                                       .w_zeros = args.zero_points != nullptr});
  kernel.streaming().constant(0, device.workgroup).wide(needs_wide(std::max({rows_of(args.ldc), n, w_count})));
  Dispatch dispatch("qgemm scale");
  const auto read = [&](bool is, const Buffer& buffer, uint64_t bytes) {
    dispatch.operand(is ? &buffer : nullptr, 0, bytes, Access::read);
  };
  const Buffer a_sums = part_of(piece.a.sums, b * piece.a.rows * 4, piece.a.rows * 4),
               w_sums = part_of(piece.w.sums, b * piece.w.rows * 4, piece.w.rows * 4);
  read(!summed, piece.products, n * 4);
  read(!summed, piece.scales, w_count * scale_size);
  read(args.zero_points != nullptr, piece.zeros, w_count);
  read(last, piece.a_scales, a_count * scale_size);
  read(args.a_zero_points != nullptr, piece.a_zeros, a_count);
  read(piece.w.has_zero(), a_sums, piece.a.rows * 4);
  read(piece.a.has_zero(), w_sums, piece.w.rows * 4);
  dispatch.operand(first && last ? nullptr : &piece.kept, 0, n * 4, Access::read_write)
      .operand(last ? &piece.c : nullptr, 0, rows_of(args.ldc) * c_size, Access::write);
  read(last && args.bias != nullptr, piece.bias, piece.w.rows * c_size);
  read(last && args.residual != nullptr, piece.residual, rows_of(args.ld_residual) * c_size);
  dispatch
      .push(shaders::QgemmScale::Push{.n = narrow(n),
                                      .run = narrow(run),
                                      .columns = narrow(piece.w.rows),
                                      .ldc = piece.a.rows == 1 ? 0 : narrow(args.ldc),
                                      .ld_residual = piece.a.rows == 1 ? 0 : narrow(args.ld_residual),
                                      .scales = narrow(scales),
                                      .block = narrow(b),
                                      .terms = narrow(std::min(piece.block, args.k - b * piece.block)),
                                      .alpha = static_cast<float>(args.alpha)})
      .groups_linear(ceil_div(n, device.workgroup * run), traits)
      .work(static_cast<double>(n * (4 + c_size)), static_cast<double>(8 * n));
  recorder.dispatch(kernel, dispatch);
}

// Whether one kernel can add up all blocks, which has then been recorded.
bool record_sums_of_blocks(Recorder& recorder, const QgemmArgs& args, const ProductPiece& piece) {
  if (piece.blocks == 1 || piece.a.has_zero() || piece.w.has_zero()) return false;
  return quant::record_block_sums(recorder, {.a = &piece.a.integers,
                                             .weights = &piece.w.integers,
                                             .scales = &piece.scales,
                                             .sums = &piece.kept,
                                             .scale_type = args.scale_type,
                                             .rows = piece.a.rows,
                                             .columns = piece.w.rows,
                                             .k = args.k,
                                             .lda = piece.a.ld,
                                             .ldw = piece.w.ld,
                                             .block = piece.block});
}

void record_piece(Recorder& recorder, const QgemmArgs& args, ProductPiece& piece) {
  for (Side* side : {&piece.a, &piece.w}) {
    if (side->is_unsigned) record_signed(recorder, *side, args.k);
  }
  if (piece.w.has_zero()) record_sums(recorder, piece.a, args.k, piece.block, piece.blocks);
  if (piece.a.has_zero()) record_sums(recorder, piece.w, args.k, piece.block, piece.blocks);
  if (record_sums_of_blocks(recorder, args, piece)) return record_scale(recorder, args, piece, piece.blocks - 1, true);
  for (uint64_t b = 0; b < piece.blocks; ++b) {
    const uint64_t from = b * piece.block;
    const Buffer a = moved(&piece.a.integers, from, TUFF_I8), w = moved(&piece.w.integers, from, TUFF_I8);
    GemmArgs gemm = gemm_of(args, &a, &w, &piece.products);
    gemm.c_type = TUFF_I32;
    gemm.m = piece.a.rows, gemm.n = piece.w.rows, gemm.k = std::min(piece.block, args.k - from);
    gemm.lda = piece.a.ld, gemm.ldb = piece.w.ld, gemm.ldc = piece.w.rows;
    record_gemm(recorder, gemm);
    record_scale(recorder, args, piece, b);
  }
}

// How many rows of A and of W a piece has.
struct ProductCut {
  uint64_t rows, columns;
};
ProductCut cut_of(const QgemmArgs& args, uint64_t blocks) {
  const uint64_t most = std::max<uint64_t>(kMaxIntegers / padded(args.k), 1);
  const uint64_t rows = std::min({args.m, kMaxRows, most});
  const ProductCut cut{rows, std::min({args.n, std::max<uint64_t>(kMaxProducts / rows, 1), most})};
  const uint64_t pieces = checked_mul(ceil_div(args.m, cut.rows), ceil_div(args.n, cut.columns), "m and n");
  if (blocks > kMaxDispatches || pieces > kMaxDispatches / blocks) {
    fail(TUFF_ERROR_UNSUPPORTED, "m={} n={} k={} with {} blocks of k are too many for a device: at most 2^16 products",
         args.m, args.n, args.k, blocks);
  }
  return cut;
}

void take_memory(Recorder& recorder, const QgemmArgs& args, ProductPiece& piece) {
  const uint64_t n = piece.a.rows * piece.w.rows, k = padded(args.k);
  const auto sums = [&](const Side& side, const Side& other) {
    return other.has_zero() ? side.rows * piece.blocks * 4 : 0;
  };
  const auto own = [&](const Side& side) { return side.is_unsigned ? side.rows * k : 0; };
  take_scratch(recorder,
               {{&piece.products, n * 4},
                {&piece.kept, piece.blocks == 1 ? 0 : n * 4},
                {&piece.a.own, own(piece.a)},
                {&piece.w.own, own(piece.w)},
                {&piece.a.sums, sums(piece.a, piece.w)},
                {&piece.w.sums, sums(piece.w, piece.a)}},
               Scratch::outer);
}

void check_device(const Recorder& recorder, const QgemmArgs& args, uint64_t block) {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, TUFF_I8), require_storage(traits, args.c_type), require_storage(traits, args.scale_type);
  const uint64_t furthest =
      std::max({args.k, args.n, args.lda, args.ldc, args.residual != nullptr ? args.ld_residual : 0});
  if (furthest > kMaxK && !is_gemm(args)) {
    fail(TUFF_ERROR_UNSUPPORTED, "n={} k={} lda={} ldc={}: at most 2^31 - 1 on a device", args.n, args.k, args.lda,
         args.ldc);
  }
  const uint64_t most = uint64_t{kMaxLoopIterationsCpu} * std::max(traits.subgroup_size, 1u);
  if (traits.cpu && block > most) fail(TUFF_ERROR_UNSUPPORTED, "k is {}: at most {} on a CPU device", args.k, most);
}

}  // namespace

void quant::record_integers(Recorder& recorder, const QgemmArgs& args) {
  const uint64_t block = args.granularity == TUFF_QUANT_PER_BLOCK ? std::min(args.block_size, args.k) : args.k;
  check_device(recorder, args, block);
  if (is_gemm(args)) return record_as_gemm(recorder, args);
  const uint64_t blocks = ceil_div(args.k, block), scales = scales_of_row(args);
  const bool a_rows = args.a_granularity == TUFF_QUANT_PER_AXIS;
  const ProductCut cut = cut_of(args, blocks);
  log(TUFF_LOG_DISPATCH, "qgemm {} by {} {}x{}x{}: {} products in i32 of {}x{}", dtype_name(args.a_type),
      format_of(args.format).name, args.m, args.n, args.k, blocks, cut.rows, cut.columns);
  for (uint64_t row = 0; row < args.m; row += cut.rows) {
    for (uint64_t column = 0; column < args.n; column += cut.columns) {
      ProductPiece piece{};
      piece.block = block, piece.blocks = blocks;
      piece.a.is_unsigned = args.a_type == TUFF_U8, piece.w.is_unsigned = args.format == TUFF_QUANT_U8;
      piece.a.zero_points = args.a_zero_points, piece.w.zero_points = args.zero_points;
      piece.a.rows = std::min(cut.rows, args.m - row), piece.w.rows = std::min(cut.columns, args.n - column);
      piece.a.ld = args.lda, piece.w.ld = args.k;
      piece.a.integers = moved(args.a, row * args.lda, TUFF_I8);
      piece.w.integers = moved(args.weights, column * args.k, TUFF_I8);
      piece.a_scales = moved(args.a_scales, a_rows ? row : 0, args.scale_type);
      piece.a_zeros = moved(args.a_zero_points, a_rows ? row : 0, TUFF_I8);
      piece.scales = moved(args.scales, column * scales, args.scale_type);
      piece.zeros = moved(args.zero_points, column * scales, TUFF_I8);
      piece.bias = moved(args.bias, column, args.c_type);
      piece.residual = moved(args.residual, row * args.ld_residual + column, args.c_type);
      piece.c = moved(args.c, row * args.ldc + column, args.c_type);
      take_memory(recorder, args, piece);
      record_piece(recorder, args, piece);
    }
  }
}

}  // namespace tuff
