// The header's "Fourier transforms" group.
#include "kernels/fft/fft.hpp"
#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "kernels/fft/dct.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

extern "C" tuff_status tuff_fft(tuff_stream stream, const tuff_fft_desc* given) {
  return guarded("tuff_fft", [&] {
    const tuff_fft_desc desc = read_structure(given, "desc");
    tuff::require_reserved(desc.reserved);
    const auto target = acquire_stream(stream);
    const Operand input(target, desc.input, "input"), output(target, desc.output, "output");
    target->run(tuff::operations::fft({desc.dtype, desc.kind, desc.inverse, desc.norm, input, output, desc.shape,
                                       desc.input_strides, desc.output_strides, desc.rank, desc.axes}));
  });
}

extern "C" tuff_status tuff_dct(tuff_stream stream, const tuff_dct_desc* given) {
  return guarded("tuff_dct", [&] {
    const tuff_dct_desc desc = read_structure(given, "desc");
    tuff::require_reserved(desc.reserved);
    const auto target = acquire_stream(stream);
    const Operand input(target, desc.input, "input"), output(target, desc.output, "output");
    target->run(tuff::operations::dct({desc.dtype, desc.kind, desc.orthogonal, desc.norm, input, output, desc.shape,
                                       desc.input_strides, desc.output_strides, desc.rank, desc.axes}));
  });
}
