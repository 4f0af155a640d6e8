// Draws the arguments of quantisation and of products with quantised weights.
#include <algorithm>

#include "kernels/quant/quant.hpp"
#include "planners/draw.hpp"

namespace tuff_test {
namespace {

using tuff::dtype_size;

constexpr int32_t kQuantFormats[] = {TUFF_QUANT_I8,   TUFF_QUANT_U8,   TUFF_QUANT_I4,   TUFF_QUANT_U4,
                                     TUFF_QUANT_Q4_0, TUFF_QUANT_Q4_1, TUFF_QUANT_Q5_0, TUFF_QUANT_Q5_1,
                                     TUFF_QUANT_Q8_0, TUFF_QUANT_Q4_K, TUFF_QUANT_Q5_K, TUFF_QUANT_Q6_K};

uint64_t quant_bytes(const tuff::quant::Format& format, uint64_t numbers) {
  return times(numbers / format.block + (numbers % format.block != 0 ? 1 : 0), format.block_bytes);
}

// Quantised numbers have elements of a byte, and blocks those of two.
struct QuantStored {
  uint64_t elements, size;
};
QuantStored quant_operand(const tuff::quant::Format& format, uint64_t numbers) {
  const uint64_t size = format.integers() ? 1 : 2, bytes = quant_bytes(format, numbers);
  return {bytes == UINT64_MAX ? bytes : bytes / size, size};
}

uint64_t draw_quant_block(Numbers& n, Call& call) {
  return n.coin() ? n.one_of<uint64_t>({8, 32, 64, 128}) : n.coin(8) ? plus(call.size(), 1) : 1 + n.below(40);
}

void draw_quant(Call& call, bool dequantize) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  tuff::QuantArgs& args = call.keep(tuff::QuantArgs{});
  args.format = kQuantFormats[n.below(dequantize ? std::size(kQuantFormats) : 4)];
  const tuff::quant::Format& format = tuff::quant::format_of(args.format);
  uint64_t& last = shape.sizes[shape.rank - 1];
  if (!format.integers()) last = times(last, format.block);
  args.dtype = call.float_type(), args.scale_type = call.float_type();
  if (!dequantize) args.quotient_type = call.float_type();
  args.shape = shape.sizes.data(), args.rank = shape.rank, args.axis = shape.axis;
  if (format.integers()) args.granularity = static_cast<int32_t>(n.below(3));
  uint64_t scales = 1;
  if (args.granularity == TUFF_QUANT_PER_AXIS) scales = shape.sizes[shape.axis];
  if (args.granularity == TUFF_QUANT_PER_BLOCK) {
    args.block_size = draw_quant_block(n, call);
    Shape blocks = shape;
    uint64_t& along = blocks.sizes[shape.axis];
    along = along / args.block_size + (along % args.block_size != 0 ? 1 : 0);
    scales = blocks.elements();
  }
  call.tell("format", args.format), call.tell("dtype", args.dtype), call.tell("scale_type", args.scale_type);
  call.tell("quotient_type", args.quotient_type), call.tell("granularity", args.granularity);
  call.tell("block_size", args.block_size);
  const uint64_t count = shape.elements();
  if (count == 0) scales = 0;
  const QuantStored quantised = quant_operand(format, count);
  if (dequantize) {
    args.quantised = call.input("input", quantised.elements, quantised.size);
  } else {
    args.values = call.input("input", count, dtype_size(args.dtype));
  }
  if (format.integers()) {
    args.scales = call.input("scales", scales, dtype_size(args.scale_type));
    args.zero_points = call.perhaps("zero_points", quant_bytes(format, scales), 1);
  }
  if (dequantize) {
    args.values = call.output("output", count, dtype_size(args.dtype));
  } else {
    args.quantised = call.output("output", quantised.elements, quantised.size);
  }
  set(call, dequantize ? tuff::operations::dequantize : tuff::operations::quantize, args);
}

}  // namespace

void draw_quantize(Call& call) { draw_quant(call, false); }
void draw_dequantize(Call& call) { draw_quant(call, true); }

// Sizes that kernels in PTX take.
void draw_whole_qgemm(Numbers& n, tuff::QgemmArgs& args) {
  args.m = n.coin() ? 1 + n.below(40) : 32 * (1 + n.below(20));
  args.n = 32 * (1 + n.below(40)), args.k = 128 * (1 + n.below(12));
  if (args.quantised()) args.a_type = TUFF_I8;
}

void draw_qgemm(Call& call) {
  Numbers& n = call.numbers;
  tuff::QgemmArgs& args = call.keep(tuff::QgemmArgs{});
  args.format = kQuantFormats[n.below(std::size(kQuantFormats))];
  const tuff::quant::Format& format = tuff::quant::format_of(args.format);
  args.a_type = call.float_type(), args.c_type = call.float_type(), args.scale_type = call.float_type();
  const bool takes_integers = args.format == TUFF_QUANT_I8 || args.format == TUFF_QUANT_U8;
  if (takes_integers && n.coin()) args.a_type = n.one_of<int32_t>({TUFF_I8, TUFF_U8});
  if (args.quantised()) args.a_granularity = static_cast<int32_t>(n.below(2));
  args.activation = static_cast<int32_t>(n.below(6)), args.alpha = 1;
  args.m = n.coin() ? 1 + n.below(5) : call.size(), args.n = call.size(), args.k = call.size();
  if (!format.integers()) args.k = times(args.k, format.block);
  const bool whole = n.coin(3);
  if (whole) draw_whole_qgemm(n, args);
  uint64_t scales = 1;
  if (format.integers()) args.granularity = static_cast<int32_t>(n.below(3));
  if (args.granularity == TUFF_QUANT_PER_AXIS) scales = args.n;
  if (args.granularity == TUFF_QUANT_PER_BLOCK) {
    args.block_size = whole && n.coin() ? uint64_t{32} << n.below(4) : draw_quant_block(n, call);
    scales = times(args.n, args.k / args.block_size + (args.k % args.block_size != 0 ? 1 : 0));
  }
  args.lda = plus(args.k, n.coin() ? 0 : n.below(9) * (whole ? 16 : 1));
  args.ldc = plus(args.n, n.coin() ? 0 : n.below(9));
  args.ld_residual = args.ldc;
  call.tell("format", args.format), call.tell("a_type", args.a_type), call.tell("c_type", args.c_type);
  call.tell("m", args.m), call.tell("n", args.n), call.tell("k", args.k);
  call.tell("granularity", args.granularity), call.tell("block_size", args.block_size);
  call.tell("lda", args.lda), call.tell("ldc", args.ldc), call.tell("activation", args.activation);
  call.tell("a_granularity", args.a_granularity);
  const bool empty = args.m == 0 || args.n == 0, sums = !empty && args.k != 0;
  const auto footprint = [&](uint64_t ld, uint64_t cols) {
    return empty || cols == 0 ? 0 : plus(times(args.m - 1, ld), cols);
  };
  args.a = call.input("a", footprint(args.lda, args.k), dtype_size(args.a_type));
  if (args.lda != args.k) call.read_partly(args.a);
  const QuantStored weights = quant_operand(format, sums ? times(args.n, args.k) : 0);
  args.weights = call.input("weights", weights.elements, weights.size);
  if (format.integers()) {
    args.scales = call.input("scales", sums ? scales : 0, dtype_size(args.scale_type));
    args.zero_points = call.perhaps("zero_points", quant_bytes(format, sums ? scales : 0), 1);
  }
  if (args.quantised()) {
    args.a_scales = call.input("a_scales", sums ? args.a_scale_count() : 0, dtype_size(args.scale_type));
    args.a_zero_points = call.perhaps("a_zero_points", sums ? args.a_scale_count() : 0, 1);
  }
  args.bias = call.perhaps("bias", empty ? 0 : args.n, dtype_size(args.c_type));
  args.residual = call.perhaps("residual", footprint(args.ld_residual, args.n), dtype_size(args.c_type));
  if (args.residual != nullptr && args.ld_residual != args.n) call.read_partly(args.residual);
  args.c = call.output("c", footprint(args.ldc, args.n), dtype_size(args.c_type), args.ldc == args.n || args.m <= 1);
  set(call, tuff::operations::qgemm, args);
}

}  // namespace tuff_test
