// The header's "Operations" group but for the matrix products (gemm.cpp) and the normalisations (norm.cpp). A flat
// function fills the descriptor of its _ex sibling; both then take the same path, which turns handles into buffers and
// hands everything else to the backend as it is.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "runtime/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

namespace {

void check_reserved(int64_t reserved) { tuff::require(reserved == 0, "desc->reserved is {}, needs 0", reserved); }

void conv2d(tuff_stream stream, const tuff_conv2d_desc& desc) {
  const auto context = acquire_stream(stream);
  const Operand input(context, desc.input, "input"), filter(context, desc.filter, "filter"),
      output(context, desc.output, "output");
  tuff::Conv2dArgs args{};
  args.dtype = desc.dtype;
  args.input = input;
  args.filter = filter;
  args.output = output;
  std::copy_n(desc.in_shape, 4, args.in_shape.begin());
  std::copy_n(desc.filter_shape, 4, args.filter_shape.begin());
  std::copy_n(desc.out_shape, 4, args.out_shape.begin());
  std::copy_n(desc.stride, 2, args.stride.begin());
  std::copy_n(desc.padding, 2, args.padding.begin());
  std::copy_n(desc.dilation, 2, args.dilation.begin());
  context->backend().conv2d(args);
}

void attention(tuff_stream stream, const tuff_attention_desc& desc) {
  const auto context = acquire_stream(stream);
  const Operand q(context, desc.q, "q"), k(context, desc.k, "k"), v(context, desc.v, "v"), o(context, desc.o, "o");
  context->backend().attention({desc.dtype, q, k, v, o, desc.batch, desc.heads, desc.seq_q, desc.seq_kv, desc.head_dim,
                                desc.scale, desc.causal});
}

// shape apart: a flat caller's array holds rank sizes, a descriptor's eight.
void reduce(tuff_stream stream, const tuff_reduce_desc& desc, const uint64_t* shape) {
  const auto context = acquire_stream(stream);
  const Operand input(context, desc.input, "input"), output(context, desc.output, "output");
  context->backend().reduce({desc.dtype, desc.op, input, output, shape, desc.rank, desc.axis});
}

void softmax(tuff_stream stream, const tuff_softmax_desc& desc, const uint64_t* shape) {
  const auto context = acquire_stream(stream);
  const Operand input(context, desc.input, "input"), output(context, desc.output, "output"),
      mask(context, desc.mask, "mask");
  const int32_t mask_type = desc.mask_type != 0 ? desc.mask_type : desc.dtype;
  const uint64_t mask_repeat = desc.mask_repeat != 0 ? desc.mask_repeat : 1;
  context->backend().softmax({desc.dtype,
                              input,
                              output,
                              shape,
                              desc.rank,
                              desc.axis,
                              desc.scale != 0 ? desc.scale : 1.0,
                              desc.logarithm,
                              {mask, mask_type, desc.mask_rows, mask_repeat}});
}

void unary(tuff_stream stream, const tuff_unary_desc& desc) {
  const auto context = acquire_stream(stream);
  const Operand input(context, desc.input, "input"), output(context, desc.output, "output");
  context->backend().unary({desc.dtype, desc.op, input, output, desc.n, desc.alpha});
}

void binary(tuff_stream stream, const tuff_binary_desc& desc) {
  const auto context = acquire_stream(stream);
  const Operand a(context, desc.a, "a"), b(context, desc.b, "b"), output(context, desc.output, "output");
  context->backend().binary({desc.dtype, desc.op, a, b, output, desc.n, desc.rank, desc.a_shape, desc.b_shape});
}

}  // namespace

extern "C" {

tuff_status tuff_conv2d(tuff_stream stream, int32_t dtype, tuff_buffer input, const uint64_t in_shape[4],
                        tuff_buffer filter, const uint64_t filter_shape[4], tuff_buffer output,
                        const uint64_t out_shape[4], const uint64_t stride[2], const uint64_t padding[2]) {
  return guarded("tuff_conv2d", [&] {
    tuff::require(in_shape != nullptr, "in_shape is null");
    tuff::require(filter_shape != nullptr, "filter_shape is null");
    tuff::require(out_shape != nullptr, "out_shape is null");
    tuff::require(stride != nullptr, "stride is null");
    tuff::require(padding != nullptr, "padding is null");
    tuff_conv2d_desc desc{};
    desc.dtype = dtype;
    desc.input = input;
    desc.filter = filter;
    desc.output = output;
    std::copy_n(in_shape, 4, desc.in_shape);
    std::copy_n(filter_shape, 4, desc.filter_shape);
    std::copy_n(out_shape, 4, desc.out_shape);
    std::copy_n(stride, 2, desc.stride);
    std::copy_n(padding, 2, desc.padding);
    std::fill_n(desc.dilation, 2, uint64_t{1});
    conv2d(stream, desc);
  });
}

tuff_status tuff_conv2d_ex(tuff_stream stream, const tuff_conv2d_desc* desc) {
  return guarded("tuff_conv2d_ex", [&] {
    tuff_conv2d_desc wanted = read_structure(desc, "desc");
    std::replace(std::begin(wanted.stride), std::end(wanted.stride), uint64_t{0}, uint64_t{1});
    std::replace(std::begin(wanted.dilation), std::end(wanted.dilation), uint64_t{0}, uint64_t{1});
    conv2d(stream, wanted);
  });
}

tuff_status tuff_attention(tuff_stream stream, int32_t dtype, tuff_buffer q, tuff_buffer k, tuff_buffer v,
                           tuff_buffer o, uint64_t batch, uint64_t heads, uint64_t seq_q, uint64_t seq_kv,
                           uint64_t head_dim, double scale, int32_t causal) {
  return guarded("tuff_attention", [&] {
    attention(stream, {sizeof(tuff_attention_desc), dtype, q, k, v, o, batch, heads, seq_q, seq_kv, head_dim, scale,
                       causal, 0});
  });
}

tuff_status tuff_attention_ex(tuff_stream stream, const tuff_attention_desc* desc) {
  return guarded("tuff_attention_ex", [&] {
    tuff_attention_desc wanted = read_structure(desc, "desc");
    check_reserved(wanted.reserved);
    // head_dim 0 is left for the operation's check.
    if (wanted.scale == 0 && wanted.head_dim != 0) wanted.scale = 1 / std::sqrt(static_cast<double>(wanted.head_dim));
    attention(stream, wanted);
  });
}

tuff_status tuff_reduce(tuff_stream stream, int32_t dtype, int32_t op, tuff_buffer input, tuff_buffer output,
                        const uint64_t* shape, uint32_t rank, uint32_t axis) {
  return guarded("tuff_reduce", [&] {
    tuff::require(shape != nullptr, "shape is null");
    reduce(stream, {sizeof(tuff_reduce_desc), dtype, op, rank, input, output, {}, axis, 0}, shape);
  });
}

tuff_status tuff_reduce_ex(tuff_stream stream, const tuff_reduce_desc* desc) {
  return guarded("tuff_reduce_ex", [&] {
    const tuff_reduce_desc wanted = read_structure(desc, "desc");
    check_reserved(wanted.reserved);
    reduce(stream, wanted, wanted.shape);
  });
}

tuff_status tuff_unary(tuff_stream stream, int32_t dtype, int32_t op, tuff_buffer input, tuff_buffer output,
                       uint64_t n) {
  return guarded("tuff_unary", [&] { unary(stream, {sizeof(tuff_unary_desc), dtype, op, 0, input, output, n, 0}); });
}

tuff_status tuff_unary_ex(tuff_stream stream, const tuff_unary_desc* desc) {
  return guarded("tuff_unary_ex", [&] {
    const tuff_unary_desc wanted = read_structure(desc, "desc", offsetof(tuff_unary_desc, alpha));
    check_reserved(wanted.reserved);
    unary(stream, wanted);
  });
}

tuff_status tuff_binary(tuff_stream stream, int32_t dtype, int32_t op, tuff_buffer a, tuff_buffer b, tuff_buffer output,
                        uint64_t n) {
  return guarded("tuff_binary", [&] {
    binary(stream, {sizeof(tuff_binary_desc), dtype, op, 0, a, b, output, n, 0, 0, {}, {}});
  });
}

tuff_status tuff_binary_ex(tuff_stream stream, const tuff_binary_desc* desc) {
  return guarded("tuff_binary_ex", [&] {
    const tuff_binary_desc wanted = read_structure(desc, "desc", offsetof(tuff_binary_desc, rank));
    check_reserved(wanted.reserved);
    check_reserved(wanted.reserved2);
    binary(stream, wanted);
  });
}

tuff_status tuff_softmax(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer output,
                         const uint64_t* shape, uint32_t rank, uint32_t axis) {
  return guarded("tuff_softmax", [&] {
    tuff::require(shape != nullptr, "shape is null");
    tuff_softmax_desc desc{};
    desc.dtype = dtype;
    desc.input = input;
    desc.output = output;
    desc.rank = rank;
    desc.axis = axis;
    softmax(stream, desc, shape);
  });
}

tuff_status tuff_softmax_ex(tuff_stream stream, const tuff_softmax_desc* desc) {
  return guarded("tuff_softmax_ex", [&] {
    const tuff_softmax_desc wanted = read_structure(desc, "desc", offsetof(tuff_softmax_desc, scale));
    softmax(stream, wanted, wanted.shape);
  });
}

}  // extern "C"
