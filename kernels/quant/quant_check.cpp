// Checks the arguments of quantize, dequantize and qgemm.
#include <fmt/format.h>

#include <cmath>

#include "kernels/common/check.hpp"
#include "kernels/common/describe.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/quant/quant.hpp"

namespace tuff {
namespace {

using quant::Format;

// The enumerators, and what formats and granularities exclude.
void check_choice(const Format& format, int32_t granularity, uint64_t block_size, const Buffer* scales,
                  const Buffer* zero_points) {
  require(granularity >= TUFF_QUANT_PER_TENSOR && granularity <= TUFF_QUANT_PER_BLOCK,
          "granularity is {}, needs TUFF_QUANT_PER_TENSOR, _PER_AXIS or _PER_BLOCK", granularity);
  if (!format.integers()) {
    require(granularity == TUFF_QUANT_PER_TENSOR, "granularity is {}, needs 0: blocks of {} have their own scales",
            granularity, format.name);
    require(scales == nullptr, "scales are given, and blocks of {} have their own", format.name);
    require(zero_points == nullptr, "zero_points are given, and {} has none", format.name);
  }
  if (granularity == TUFF_QUANT_PER_BLOCK) {
    require(block_size >= 1, "block_size is 0, needs at least 1 with TUFF_QUANT_PER_BLOCK");
  } else {
    require(block_size == 0, "block_size is {}, needs 0 without TUFF_QUANT_PER_BLOCK", block_size);
  }
}

constexpr uint64_t kMaxAlong = 0x7fffffff;  // the kernels' coordinates have 32 bits

// The operands of a tensor that is not empty: bytes of its quantised numbers, scales, zero points.
struct Sizes {
  uint64_t quantised, scales, zero_points;
};
Sizes check_stored(const QuantArgs& args, const char* quantised_name) {
  const Format& format = quant::format_of(args.format);
  const quant::Places places = quant::places_of(args);
  if (args.granularity != TUFF_QUANT_PER_TENSOR) {
    if (places.axis > kMaxAlong || places.inner > kMaxAlong) {
      fail(TUFF_ERROR_UNSUPPORTED,
           "shape has {} elements along the axis and {} after it, at most 2^31 - 1 are supported", places.axis,
           places.inner);
    }
  }
  const uint64_t elements = checked_mul(checked_mul(places.outer, places.axis, "shape"), places.inner, "shape");
  const uint64_t bytes = quant::stored_bytes(format, elements), count = places.scales();
  const auto detail = [&] { return fmt::format("{} {}", format.name, describe_sizes(args.shape, args.rank)); };
  if (format.integers()) {
    check_operand(args.quantised, quantised_name, bytes, TUFF_U8, detail);
    const auto scales = [&] { return fmt::format("{} of them for {}", count, detail()); };
    check_operand(args.scales, "scales", count, args.scale_type, scales);
    const uint64_t zero_bytes = quant::stored_bytes(format, count);
    if (args.zero_points != nullptr) check_operand(args.zero_points, "zero_points", zero_bytes, TUFF_U8, scales);
    return {bytes, count * dtype_size(args.scale_type), zero_bytes};
  }
  check_operand(args.quantised, quantised_name, bytes / 2, TUFF_U16, detail);
  return {bytes, 0, 0};
}

void check_common(const QuantArgs& args) {
  const Format& format = quant::format_of(args.format);
  check_float_type(args.dtype, "dtype");
  check_float_type(args.scale_type, "scale_type");
  check_choice(format, args.granularity, args.block_size, args.scales, args.zero_points);
  check_axis(args.shape, args.rank, args.axis);
  const uint64_t last = args.shape[args.rank - 1];
  require(format.integers() || last % format.block == 0, "shape ends with {}, blocks of {} have {} elements", last,
          format.name, format.block);
}

void check_values(const QuantArgs& args, const char* name, uint64_t elements) {
  check_operand(args.values, name, elements, args.dtype, [&] { return describe_sizes(args.shape, args.rank); });
}

}  // namespace

void check_quantize(const QuantArgs& args) {
  const Format& format = quant::format_of(args.format);
  require(format.integers(), "format is {}, needs TUFF_QUANT_I8, _U8, _I4 or _U4", format.name);
  check_common(args);
  check_float_type(args.quotient_type, "quotient_type");
  const uint64_t elements = checked_product({args.shape, args.rank}, "shape");
  if (elements == 0) return;
  check_values(args, "input", elements);
  const Sizes sizes = check_stored(args, "output");
  check_overlap(args.quantised, "output", sizes.quantised, args.values, "input", elements * dtype_size(args.dtype),
                false);
  check_overlap(args.quantised, "output", sizes.quantised, args.scales, "scales", sizes.scales, false);
  check_overlap(args.quantised, "output", sizes.quantised, args.zero_points, "zero_points", sizes.zero_points, false);
}

void check_dequantize(const QuantArgs& args) {
  check_common(args);
  const uint64_t elements = checked_product({args.shape, args.rank}, "shape");
  if (elements == 0) return;
  const Sizes sizes = check_stored(args, "input");
  check_values(args, "output", elements);
  const uint64_t bytes = elements * dtype_size(args.dtype);
  check_overlap(args.values, "output", bytes, args.quantised, "input", sizes.quantised, false);
  check_overlap(args.values, "output", bytes, args.scales, "scales", sizes.scales, false);
  check_overlap(args.values, "output", bytes, args.zero_points, "zero_points", sizes.zero_points, false);
}

namespace {

// What an A that is quantised needs, and what another one excludes.
void check_activations(const QgemmArgs& args, const Format& format) {
  check_known_type(args.a_type, "a_type");
  constexpr ElementTypes kTypes = kFloatTypes | quant::kActivations;
  if (!kTypes.has(args.a_type)) {
    fail(TUFF_ERROR_UNSUPPORTED, "a_type is {}, and qgemm takes {}", dtype_name(args.a_type), names_of(kTypes));
  }
  if (!args.quantised()) {
    require(args.a_scales == nullptr, "a_scales are given, and a_type is {}", dtype_name(args.a_type));
    require(args.a_zero_points == nullptr, "a_zero_points are given, and a_type is {}", dtype_name(args.a_type));
    require(args.a_granularity == 0, "a_granularity is {}, needs 0: a_type is {}", args.a_granularity,
            dtype_name(args.a_type));
    return;
  }
  require(args.a_granularity == TUFF_QUANT_PER_TENSOR || args.a_granularity == TUFF_QUANT_PER_AXIS,
          "a_granularity is {}, needs TUFF_QUANT_PER_TENSOR or _PER_AXIS", args.a_granularity);
  if (args.format != TUFF_QUANT_I8 && args.format != TUFF_QUANT_U8) {
    fail(TUFF_ERROR_UNSUPPORTED, "format is {}: with a_type {} weights are of TUFF_QUANT_I8 or TUFF_QUANT_U8",
         format.name, dtype_name(args.a_type));
  }
}

// Scales and zero points of an A that is quantised, as the sums use them.
void check_activation_scales(const QgemmArgs& args, uint64_t c_bytes) {
  const uint64_t count = args.a_scale_count();
  const auto detail = [&] { return fmt::format("{} of them for m={}", count, args.m); };
  check_operand(args.a_scales, "a_scales", count, args.scale_type, detail);
  if (args.a_zero_points != nullptr) check_operand(args.a_zero_points, "a_zero_points", count, args.a_type, detail);
  check_overlap(args.c, "c", c_bytes, args.a_scales, "a_scales", count * dtype_size(args.scale_type), false);
  check_overlap(args.c, "c", c_bytes, args.a_zero_points, "a_zero_points", count, false);
}

}  // namespace

void check_qgemm(const QgemmArgs& args) {
  const Format& format = quant::format_of(args.format);
  check_activations(args, format);
  check_float_type(args.c_type, "c_type");
  check_float_type(args.scale_type, "scale_type");
  check_activation(args.activation);
  check_choice(format, args.granularity, args.block_size, args.scales, args.zero_points);
  require(std::isfinite(static_cast<float>(args.alpha)), "alpha is {}, needs a finite number in the range of f32",
          args.alpha);
  require(args.k % format.block == 0 || format.integers(), "k is {}, blocks of {} have {} elements", args.k,
          format.name, format.block);
  require(args.lda >= args.k || args.m <= 1, "lda is {}, needs at least k={}", args.lda, args.k);
  require(args.ldc >= args.n || args.m <= 1, "ldc is {}, needs at least n={}", args.ldc, args.n);
  require(args.ld_residual >= args.n || args.m <= 1 || args.residual == nullptr,
          "ld_residual is {}, needs at least n={}", args.ld_residual, args.n);
  if (args.m == 0 || args.n == 0) return;
  const auto footprint = [&](uint64_t ld, uint64_t cols, const char* name) {
    return cols == 0 ? 0 : checked_add(args.m == 1 ? 0 : checked_mul(args.m - 1, ld, name), cols, name);
  };
  const auto detail = [&] { return fmt::format("m={} n={} k={}", args.m, args.n, args.k); };
  const uint64_t a = footprint(args.lda, args.k, "a"), c = footprint(args.ldc, args.n, "c");
  const uint64_t residual = args.residual != nullptr ? footprint(args.ld_residual, args.n, "residual") : 0;
  const uint64_t bias = args.bias != nullptr ? args.n : 0;
  check_operand(args.a, "a", a, args.a_type, detail);
  check_operand(args.bias, "bias", bias, args.c_type, detail);
  check_operand(args.residual, "residual", residual, args.c_type, detail);
  check_operand(args.c, "c", c, args.c_type, detail);
  const uint64_t c_size = dtype_size(args.c_type), c_bytes = c * c_size;
  check_overlap(args.c, "c", c_bytes, args.a, "a", a * dtype_size(args.a_type), false);
  check_overlap(args.c, "c", c_bytes, args.bias, "bias", bias * c_size, false);
  check_overlap(args.c, "c", c_bytes, args.residual, "residual", residual * c_size,
                args.m == 1 || args.ld_residual == args.ldc);
  if (args.k == 0) return;
  if (args.quantised()) check_activation_scales(args, c_bytes);
  checked_product({args.n, args.k}, "n and k");
  const quant::Weights weights(args, 0, args.n);
  const Sizes stored = check_stored(weights.args, "weights");
  check_overlap(args.c, "c", c_bytes, args.weights, "weights", stored.quantised, false);
  check_overlap(args.c, "c", c_bytes, args.scales, "scales", stored.scales, false);
  check_overlap(args.c, "c", c_bytes, args.zero_points, "zero_points", stored.zero_points, false);
}

}  // namespace tuff
