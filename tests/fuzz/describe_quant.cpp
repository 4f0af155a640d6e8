// Quantisation, and products with quantised weights.
#include <algorithm>

#include "fuzz/draft.hpp"

namespace tuff_fuzz {
namespace {

struct Format {
  int32_t number;
  uint64_t numbers, bytes;  // of a block
};
constexpr Format kFormats[] = {{TUFF_QUANT_I8, 1, 1},       {TUFF_QUANT_U8, 1, 1},       {TUFF_QUANT_I4, 2, 1},
                               {TUFF_QUANT_U4, 2, 1},       {TUFF_QUANT_Q4_0, 32, 18},   {TUFF_QUANT_Q4_1, 32, 20},
                               {TUFF_QUANT_Q5_0, 32, 22},   {TUFF_QUANT_Q5_1, 32, 24},   {TUFF_QUANT_Q8_0, 32, 34},
                               {TUFF_QUANT_Q4_K, 256, 144}, {TUFF_QUANT_Q5_K, 256, 176}, {TUFF_QUANT_Q6_K, 256, 210}};
constexpr size_t kIntegers = 4;

uint64_t stored(const Format& format, uint64_t numbers) {
  return (numbers + format.numbers - 1) / format.numbers * format.bytes;
}

// Draws how elements of a shape share scales, and sets it. Returns the number of scales.
uint64_t draw_scales(Draft& d, const std::vector<uint64_t>& shape, size_t axis) {
  Draw& draw = d.shape;
  const int32_t granularity = static_cast<int32_t>(draw.below(3));
  d.set("granularity", granularity);
  if (granularity == TUFF_QUANT_PER_TENSOR) return 1;
  if (granularity == TUFF_QUANT_PER_AXIS) return shape[axis];
  const uint64_t block = draw.one_in(2) ? draw.of<uint64_t>({8, 16, 32}) : draw.between(1, 40);
  d.set("block_size", block);
  uint64_t count = 1;
  for (size_t i = 0; i < shape.size(); ++i) count *= i == axis ? (shape[i] + block - 1) / block : shape[i];
  return count;
}

void draw_quant(Draft& d, bool dequantize) {
  Draw& draw = d.shape;
  const Format& format =
      kFormats[dequantize && draw.one_in(2) ? draw.below(std::size(kFormats)) : draw.below(kIntegers)];
  const bool integers = format.numbers <= 2;
  std::vector<uint64_t> shape(draw.between(1, 4));
  for (uint64_t& size : shape) size = d.extent(draw_size(draw, shape.size() > 2 ? 12 : 40));
  if (!integers) shape.back() = std::max<uint64_t>(shape.back() / 8, 1) * format.numbers;
  const uint64_t count = product(shape);
  const int32_t dtype = draw_float(draw);
  const size_t axis = draw.below(shape.size());
  d.set("format", format.number), d.set("dtype", dtype);
  d.set("rank", shape.size()), d.set("axis", axis);
  d.list("shape", shape);
  int32_t scale_type = dtype;
  if (draw.one_in(2)) d.set("scale_type", scale_type = draw_float(draw));
  if (!dequantize && draw.one_in(2)) d.set("quotient_type", draw_float(draw));
  const uint64_t scales = integers ? draw_scales(d, shape, axis) : 0;
  const bool empty = count == 0;
  // All bits of every operand are valid: NaN and denormals are defined.
  const int32_t bytes_type = integers ? TUFF_U8 : TUFF_U16;
  const uint64_t bytes = empty ? 0 : stored(format, count) / (integers ? 1 : 2);
  if (dequantize) {
    d.input("input", bytes_type, bytes, Fill::anything);
  } else {
    d.input("input", dtype, count, draw.one_in(2) ? Fill::anything : Fill::integers, 300);
  }
  if (integers) {
    d.input("scales", scale_type, empty ? 0 : scales, draw.one_in(2) ? Fill::anything : Fill::powers);
    if (draw.one_in(2)) d.input("zero_points", TUFF_U8, empty ? 0 : stored(format, scales), Fill::anything);
  }
  if (dequantize) {
    d.output("output", dtype, count);
  } else {
    d.output("output", TUFF_U8, bytes);
  }
}

// Small integers throughout, so that sums are exact in any order, and weights too when they are rounded to 16 bits.
void draw_qgemm(Draft& d) {
  Draw& draw = d.shape;
  const bool integers = draw.one_in(3);  // A is quantised
  const int32_t a_type = integers ? draw.of<int32_t>({TUFF_I8, TUFF_U8}) : draw_float(draw);
  const Format& format = kFormats[integers             ? draw.below(2)
                                  : a_type == TUFF_F32 ? draw.below(kIntegers)
                                                       : draw.between(2, 3)];
  const uint64_t m = d.extent(draw_size(draw, draw.one_in(2) ? 5 : 40)), n = d.extent(draw_size(draw, 40)),
                 k = d.extent(draw_size(draw, draw.one_in(2) ? 130 : 24) * (draw.one_in(2) ? 8 : 1));
  d.set("format", format.number), d.set("a_type", a_type);
  d.set("m", m), d.set("n", n), d.set("k", k);
  int32_t c_type = integers ? int32_t{TUFF_F32} : a_type, scale_type = c_type;
  if (draw.one_in(2)) d.set("c_type", c_type = draw_float(draw));
  if (draw.one_in(2)) d.set("scale_type", scale_type = draw_float(draw));
  d.real("alpha", draw.of({0.0, 1.0, -2.0}));
  const int32_t granularity = static_cast<int32_t>(draw.below(3));
  d.set("granularity", granularity);
  uint64_t each = 0;
  if (granularity == TUFF_QUANT_PER_BLOCK) {
    const uint64_t block = draw.one_in(2) ? draw.of<uint64_t>({8, 16, 32, 64, 128}) : draw.between(1, 40);
    d.set("block_size", block);
    each = (k + block - 1) / block;
  } else if (granularity == TUFF_QUANT_PER_AXIS) {
    each = 1;
  }
  const bool padded = d.loose().one_in(2), empty = m == 0 || n == 0, sums = !empty && k != 0;
  const auto matrix = [&](uint64_t columns, const char* leading) {
    const uint64_t row = columns + (padded ? d.loose().below(4) : 0);
    if (padded) d.set(leading, std::max<uint64_t>(row, 1));
    return std::vector<Axis>{{m, std::max<uint64_t>(row, 1)}, {columns, 1}};
  };
  const std::vector<Axis> a = matrix(k, "lda"), c = matrix(n, "ldc");
  d.input("a", a_type, sums ? footprint(a) : 0, a_type == TUFF_U8 ? Fill::positive : Fill::integers, 3);
  if (integers) {
    const bool rows = draw.one_in(2);
    if (rows) d.set("a_granularity", TUFF_QUANT_PER_AXIS);
    d.input("a_scales", scale_type, sums ? (rows ? m : 1) : 0, Fill::powers);
    if (draw.one_in(2)) {
      d.input("a_zero_points", a_type, sums ? (rows ? m : 1) : 0, a_type == TUFF_U8 ? Fill::positive : Fill::integers,
              3);
    }
  }
  d.input("weights", TUFF_U8, sums ? stored(format, n * k) : 0, Fill::anything);
  const uint64_t scales = each == 0 ? 1 : n * each;
  d.input("scales", scale_type, sums ? scales : 0, Fill::powers);
  if (draw.one_in(2)) d.input("zero_points", TUFF_U8, sums ? stored(format, scales) : 0, Fill::anything);
  if (draw.one_in(2)) d.input("bias", c_type, empty ? 0 : n);
  if (draw.one_in(3)) {
    const std::vector<Axis> residual = matrix(n, "ld_residual");
    d.input("residual", c_type, empty ? 0 : footprint(residual));
  }
  if (draw.one_in(3)) d.set("activation", draw.of<int32_t>({TUFF_ACTIVATION_RELU, TUFF_ACTIVATION_RELU6}));
  Operand& output = d.output("c", c_type, empty ? 0 : footprint(c));
  output.axes = c;
  d.suits = [&d, k] {
    double a_most = 0, a_scale = 1, added = 0;
    for (const Operand& operand : d.operands) {
      const std::string_view name = operand.name;
      if (operand.elements == 0 || !operand.read || name == "weights" || name == "zero_points") continue;
      if (!operand.seen.integral) return false;
      if ((name == "scales" || name == "a_scales") && operand.seen.most > 2) return false;
      if (name == "a" || name == "a_zero_points") a_most += operand.seen.most;
      if (name == "a_scales") a_scale = operand.seen.most;
      if (name == "bias" || name == "residual") added += operand.seen.most;
    }
    // Weights are at most 255 * 2, and alpha at most 2.
    return a_most <= 64 && a_scale * a_most * 255 * 2 * static_cast<double>(k) * 2 + added < 0x1p23;
  };
}

constexpr Description kQuant[] = {
    {"tuff_quantize", "quant", [](Draft& d) { draw_quant(d, false); }},
    {"tuff_dequantize", "quant", [](Draft& d) { draw_quant(d, true); }},
    {"tuff_qgemm", "quant", draw_qgemm},
};

}  // namespace

std::span<const Description> describe_quant() { return kQuant; }

}  // namespace tuff_fuzz
