#include "kernels/quant/quant.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/common/check.hpp"
#include "kernels/common/describe.hpp"
#include "kernels/gemm/gemm.hpp"
#include "planning/arithmetic.hpp"

namespace tuff {
namespace quant {
namespace {

constexpr Format kFormats[] = {
    {TUFF_QUANT_I8, "i8", 1, 1, -128, 127},    {TUFF_QUANT_U8, "u8", 1, 1, 0, 255},
    {TUFF_QUANT_I4, "i4", 2, 1, -8, 7},        {TUFF_QUANT_U4, "u4", 2, 1, 0, 15},
    {TUFF_QUANT_Q4_0, "q4_0", 32, 18, 0, 0},   {TUFF_QUANT_Q4_1, "q4_1", 32, 20, 0, 0},
    {TUFF_QUANT_Q5_0, "q5_0", 32, 22, 0, 0},   {TUFF_QUANT_Q5_1, "q5_1", 32, 24, 0, 0},
    {TUFF_QUANT_Q8_0, "q8_0", 32, 34, 0, 0},   {TUFF_QUANT_Q4_K, "q4_K", 256, 144, 0, 0},
    {TUFF_QUANT_Q5_K, "q5_K", 256, 176, 0, 0}, {TUFF_QUANT_Q6_K, "q6_K", 256, 210, 0, 0},
};

}  // namespace

const Format& format_of(int32_t number, std::string_view name) {
  const auto* found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [number](const Format& format) { return format.number == number; });
  require(found != std::end(kFormats), "{} is {}, needs a TUFF_QUANT_I8 … TUFF_QUANT_Q6_K", name, number);
  return *found;
}

uint64_t stored_bytes(const Format& format, uint64_t numbers) {
  return checked_mul(ceil_div(numbers, format.block), format.block_bytes, "shape");
}

uint64_t Places::scales() const {
  if (granularity == TUFF_QUANT_PER_TENSOR) return 1;
  return granularity == TUFF_QUANT_PER_AXIS ? axis : outer * blocks * inner;
}

uint64_t Places::scale_of(uint64_t element) const {
  if (granularity == TUFF_QUANT_PER_TENSOR) return 0;
  const uint64_t i = element % inner, a = element / inner % axis, o = element / inner / axis;
  return granularity == TUFF_QUANT_PER_AXIS ? a : (o * blocks + a / block) * inner + i;
}

Places places_of(const QuantArgs& args) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  const uint64_t block = args.granularity == TUFF_QUANT_PER_BLOCK ? args.block_size : 1;
  return {args.granularity, view.outer, view.axis, view.inner, block, ceil_div(view.axis, block)};
}

uint64_t scales_of_row(const QgemmArgs& args) {
  if (args.granularity == TUFF_QUANT_PER_TENSOR) return 0;
  return args.granularity == TUFF_QUANT_PER_AXIS ? 1 : ceil_div(args.k, args.block_size);
}

Weights::Weights(const QgemmArgs& all, uint64_t first, uint64_t rows)
    : args{all.format,
           all.quantised() ? all.c_type : all.a_type,
           all.scale_type,
           0,
           all.granularity,
           nullptr,
           &scales_,
           &zero_points_,
           &weights_,
           nullptr,
           2,
           all.granularity == TUFF_QUANT_PER_BLOCK ? 1u : 0u,
           all.block_size},
      shape_{rows, all.k} {
  const Format& format = format_of(all.format);
  args.shape = shape_.data();
  weights_ = moved(all.weights, stored_bytes(format, first * all.k), TUFF_U8);
  if (format.integers()) {
    const uint64_t before = first * scales_of_row(all);
    scales_ = moved(all.scales, before, all.scale_type);
    zero_points_ = moved(all.zero_points, stored_bytes(format, before), TUFF_U8);
  }
  if (all.scales == nullptr) args.scales = nullptr;
  if (all.zero_points == nullptr) args.zero_points = nullptr;
}

}  // namespace quant

bool QgemmArgs::quantised() const { return quant::kActivations.has(a_type); }

namespace {

CallText describe(const QuantArgs& args) {
  return {fmt::format("{} {} {}", quant::format_of(args.format).name, dtype_name(args.dtype),
                      describe_sizes(args.shape, args.rank)),
          args.dtype};
}

CallText describe_product(const QgemmArgs& args) {
  return {fmt::format("{} by {} {}x{}x{}", dtype_name(args.a_type), quant::format_of(args.format).name, args.m, args.n,
                      args.k),
          args.a_type};
}

}  // namespace

namespace operations {
const OperationOf<QuantArgs> quantize =
    define_operation<QuantArgs, check_quantize, host_quantize, record_quantize, describe>("quantize", kFloatTypes);
const OperationOf<QuantArgs> dequantize =
    define_operation<QuantArgs, check_dequantize, host_dequantize, record_dequantize, describe>("dequantize",
                                                                                                kFloatTypes);
const OperationOf<QgemmArgs> qgemm =
    define_operation<QgemmArgs, check_qgemm, host_qgemm, record_qgemm, describe_product>(
        "qgemm", kFloatTypes | quant::kActivations);
}  // namespace operations

}  // namespace tuff
