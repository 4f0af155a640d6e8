// The header's "Quantisation" group.
#include "kernels/quant/quant.hpp"
#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

namespace {

int32_t type_or(int32_t type, int32_t otherwise) { return type != 0 ? type : otherwise; }

}  // namespace

extern "C" {

tuff_status tuff_quantize(tuff_stream stream, const tuff_quantize_desc* given) {
  return guarded("tuff_quantize", [&] {
    const tuff_quantize_desc desc = read_structure(given, "desc");
    const auto target = acquire_stream(stream);
    const Operand input(target, desc.input, "input"), scales(target, desc.scales, "scales"),
        zero_points(target, desc.zero_points, "zero_points"), output(target, desc.output, "output");
    const int32_t scale_type = type_or(desc.scale_type, desc.dtype);
    target->run(tuff::operations::quantize({desc.format, desc.dtype, scale_type,
                                            type_or(desc.quotient_type, scale_type), desc.granularity, input, scales,
                                            zero_points, output, desc.shape, desc.rank, desc.axis, desc.block_size}));
  });
}

tuff_status tuff_dequantize(tuff_stream stream, const tuff_dequantize_desc* given) {
  return guarded("tuff_dequantize", [&] {
    const tuff_dequantize_desc desc = read_structure(given, "desc");
    tuff::require_reserved(desc.reserved);
    const auto target = acquire_stream(stream);
    const Operand input(target, desc.input, "input"), scales(target, desc.scales, "scales"),
        zero_points(target, desc.zero_points, "zero_points"), output(target, desc.output, "output");
    target->run(tuff::operations::dequantize({desc.format, desc.dtype, type_or(desc.scale_type, desc.dtype), 0,
                                              desc.granularity, output, scales, zero_points, input, desc.shape,
                                              desc.rank, desc.axis, desc.block_size}));
  });
}

tuff_status tuff_qgemm(tuff_stream stream, const tuff_qgemm_desc* given) {
  return guarded("tuff_qgemm", [&] {
    const tuff_qgemm_desc desc = read_structure(given, "desc");
    tuff::require_reserved(desc.reserved), tuff::require_reserved(desc.reserved2, "desc->reserved2");
    const auto target = acquire_stream(stream);
    const Operand a(target, desc.a, "a"), weights(target, desc.weights, "weights"),
        scales(target, desc.scales, "scales"), zero_points(target, desc.zero_points, "zero_points"),
        bias(target, desc.bias, "bias"), residual(target, desc.residual, "residual"), c(target, desc.c, "c"),
        a_scales(target, desc.a_scales, "a_scales"), a_zero_points(target, desc.a_zero_points, "a_zero_points");
    const int32_t otherwise = tuff::quant::kActivations.has(desc.a_type) ? TUFF_F32 : desc.a_type;
    target->run(tuff::operations::qgemm({desc.format,
                                         desc.a_type,
                                         type_or(desc.c_type, otherwise),
                                         type_or(desc.scale_type, otherwise),
                                         desc.granularity,
                                         desc.activation,
                                         desc.m,
                                         desc.n,
                                         desc.k,
                                         desc.alpha != 0 ? desc.alpha : 1.0,
                                         a,
                                         weights,
                                         scales,
                                         zero_points,
                                         bias,
                                         residual,
                                         c,
                                         desc.lda != 0 ? desc.lda : desc.k,
                                         desc.ldc != 0 ? desc.ldc : desc.n,
                                         desc.ld_residual != 0 ? desc.ld_residual : desc.n,
                                         desc.block_size,
                                         desc.a_granularity,
                                         a_scales,
                                         a_zero_points}));
  });
}

}  // extern "C"
