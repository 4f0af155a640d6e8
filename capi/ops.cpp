// Entry points of the header's "Operations" group, except for GEMM (gemm.cpp), convolutions (conv.cpp), attention
// (attention.cpp) and normalisations (norm.cpp). A flat function fills in the descriptor of its _ex sibling; both then
// take the same path, which resolves handles to buffers and passes everything else to the backend unchanged.

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/random/dropout.hpp"
#include "kernels/random/random.hpp"
#include "kernels/random/variates.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/scan/scan.hpp"
#include "kernels/softmax/softmax.hpp"
#include "kernels/sort/sort.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

namespace {

// The shape is passed separately: a flat caller's array has rank sizes, a descriptor's has eight.
void reduce(tuff_stream stream, const tuff_reduce_desc& desc, const uint64_t* shape) {
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), output(target, desc.output, "output");
  target->run(tuff::operations::reduce({desc.dtype, desc.op, input, output, shape, desc.rank, desc.axis,
                                        desc.axis_count, desc.output_type, desc.correction}));
}

void scan(tuff_stream stream, const tuff_scan_desc& desc, tuff::ScanOp op,
          const tuff::OperationOf<tuff::ScanArgs>& operation) {
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), output(target, desc.output, "output");
  target->run(operation(
      {op, desc.dtype, input, output, desc.shape, desc.rank, desc.axis, desc.exclusive != 0, desc.reverse != 0}));
}

void softmax(tuff_stream stream, const tuff_softmax_desc& desc, const uint64_t* shape) {
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), output(target, desc.output, "output"),
      mask(target, desc.mask, "mask");
  const int32_t mask_type = desc.mask_type != 0 ? desc.mask_type : desc.dtype;
  const uint64_t mask_repeat = desc.mask_repeat != 0 ? desc.mask_repeat : 1;
  target->run(tuff::operations::softmax({desc.dtype,
                                         input,
                                         output,
                                         shape,
                                         desc.rank,
                                         desc.axis,
                                         desc.scale != 0 ? desc.scale : 1.0,
                                         desc.logarithm,
                                         {mask, mask_type, desc.mask_rows, mask_repeat}}));
}

void unary(tuff_stream stream, const tuff_unary_desc& desc) {
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), output(target, desc.output, "output");
  target->run(tuff::operations::unary({desc.dtype, desc.op, input, output, desc.n, desc.alpha}));
}

void binary(tuff_stream stream, const tuff_binary_desc& desc) {
  const auto target = acquire_stream(stream);
  const Operand a(target, desc.a, "a"), b(target, desc.b, "b"), output(target, desc.output, "output");
  target->run(
      tuff::operations::binary({desc.dtype, desc.op, a, b, output, desc.n, desc.rank, desc.a_shape, desc.b_shape}));
}

}  // namespace

extern "C" {

tuff_status tuff_reduce(tuff_stream stream, int32_t dtype, int32_t op, tuff_buffer input, tuff_buffer output,
                        const uint64_t* shape, uint32_t rank, uint32_t axis) {
  return guarded("tuff_reduce", [&] {
    tuff::require(shape != nullptr, "shape is null");
    reduce(stream, {sizeof(tuff_reduce_desc), dtype, op, rank, input, output, {}, axis, 0, 0, 0, 0}, shape);
  });
}

tuff_status tuff_reduce_ex(tuff_stream stream, const tuff_reduce_desc* desc) {
  return guarded("tuff_reduce_ex", [&] {
    const tuff_reduce_desc wanted = read_structure(desc, "desc");
    tuff::require_reserved(wanted.reserved);
    reduce(stream, wanted, wanted.shape);
  });
}

tuff_status tuff_cumsum(tuff_stream stream, const tuff_scan_desc* desc) {
  return guarded("tuff_cumsum",
                 [&] { scan(stream, read_structure(desc, "desc"), tuff::ScanOp::sum, tuff::operations::cumsum); });
}

tuff_status tuff_cumprod(tuff_stream stream, const tuff_scan_desc* desc) {
  return guarded("tuff_cumprod",
                 [&] { scan(stream, read_structure(desc, "desc"), tuff::ScanOp::product, tuff::operations::cumprod); });
}

tuff_status tuff_cummax(tuff_stream stream, const tuff_scan_desc* desc) {
  return guarded("tuff_cummax",
                 [&] { scan(stream, read_structure(desc, "desc"), tuff::ScanOp::maximum, tuff::operations::cummax); });
}

tuff_status tuff_cummin(tuff_stream stream, const tuff_scan_desc* desc) {
  return guarded("tuff_cummin",
                 [&] { scan(stream, read_structure(desc, "desc"), tuff::ScanOp::minimum, tuff::operations::cummin); });
}

tuff_status tuff_cumlogsumexp(tuff_stream stream, const tuff_scan_desc* desc) {
  return guarded("tuff_cumlogsumexp", [&] {
    scan(stream, read_structure(desc, "desc"), tuff::ScanOp::log_sum_exp, tuff::operations::cumlogsumexp);
  });
}

tuff_status tuff_sort(tuff_stream stream, const tuff_sort_desc* desc) {
  return guarded("tuff_sort", [&] {
    const tuff_sort_desc wanted = read_structure(desc, "desc");
    const auto target = acquire_stream(stream);
    const Operand input(target, wanted.input, "input"), values(target, wanted.values, "values"),
        indices(target, wanted.indices, "indices");
    target->run(
        tuff::operations::sort({wanted.dtype, input, values, indices, wanted.shape, wanted.rank, wanted.axis, wanted.k,
                                wanted.index_type != 0 ? wanted.index_type : TUFF_I32, wanted.descending != 0}));
  });
}

tuff_status tuff_unary(tuff_stream stream, int32_t dtype, int32_t op, tuff_buffer input, tuff_buffer output,
                       uint64_t n) {
  return guarded("tuff_unary", [&] { unary(stream, {sizeof(tuff_unary_desc), dtype, op, 0, input, output, n, 0}); });
}

tuff_status tuff_unary_ex(tuff_stream stream, const tuff_unary_desc* desc) {
  return guarded("tuff_unary_ex", [&] {
    const tuff_unary_desc wanted = read_structure(desc, "desc");
    tuff::require_reserved(wanted.reserved);
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
    const tuff_binary_desc wanted = read_structure(desc, "desc");
    tuff::require_reserved(wanted.reserved);
    tuff::require_reserved(wanted.reserved2, "desc->reserved2");
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
    const tuff_softmax_desc wanted = read_structure(desc, "desc");
    softmax(stream, wanted, wanted.shape);
  });
}

tuff_status tuff_random(tuff_stream stream, const tuff_random_desc* desc) {
  return guarded("tuff_random", [&] {
    const tuff_random_desc wanted = read_structure(desc, "desc");
    tuff::require_reserved(wanted.reserved);
    const auto target = acquire_stream(stream);
    const Operand output(target, wanted.output, "output");
    target->run(tuff::operations::random(
        {wanted.dtype, wanted.distribution, output, wanted.n, wanted.seed, wanted.sequence, wanted.offset, wanted.low,
         wanted.high, wanted.mean, wanted.deviation, wanted.scale, wanted.probability, wanted.least, wanted.most}));
  });
}

tuff_status tuff_variates(tuff_stream stream, const tuff_variates_desc* desc) {
  return guarded("tuff_variates", [&] {
    const tuff_variates_desc wanted = read_structure(desc, "desc");
    tuff::require_reserved(wanted.reserved);
    const auto target = acquire_stream(stream);
    const Operand output(target, wanted.output, "output"), first(target, wanted.first, "first"),
        second(target, wanted.second, "second"), third(target, wanted.third, "third");
    target->run(tuff::operations::variates({wanted.dtype,
                                            wanted.distribution,
                                            output,
                                            wanted.n,
                                            wanted.seed,
                                            wanted.sequence,
                                            wanted.offset,
                                            {first, second, third},
                                            {wanted.first_value, wanted.second_value, wanted.third_value}}));
  });
}

tuff_status tuff_dropout(tuff_stream stream, const tuff_dropout_desc* desc) {
  return guarded("tuff_dropout", [&] {
    const tuff_dropout_desc wanted = read_structure(desc, "desc");
    const auto target = acquire_stream(stream);
    const Operand input(target, wanted.input, "input"), output(target, wanted.output, "output"),
        mask(target, wanted.mask, "mask");
    target->run(tuff::operations::dropout({wanted.dtype, input, output, mask, wanted.n, wanted.seed, wanted.sequence,
                                           wanted.offset, wanted.probability}));
  });
}

}  // extern "C"
