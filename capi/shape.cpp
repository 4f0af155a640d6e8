// The header's "Shapes and types" group. A flat function fills the descriptor of its _ex sibling.
#include <algorithm>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "runtime/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

namespace {

void check_rank(uint32_t rank) { tuff::require(rank >= 1 && rank <= 8, "rank is {}, needs 1 to 8", rank); }

void permute(tuff_stream stream, const tuff_permute_desc& desc) {
  const auto context = acquire_stream(stream);
  const Operand input(context, desc.input, "input"), output(context, desc.output, "output");
  context->backend().permute({desc.dtype, input, output, desc.shape, desc.order, desc.rank});
}

void cast(tuff_stream stream, const tuff_cast_desc& desc) {
  tuff::require(desc.reserved == 0, "desc->reserved is {}, needs 0", desc.reserved);
  const auto context = acquire_stream(stream);
  const Operand input(context, desc.input, "input"), output(context, desc.output, "output");
  context->backend().cast({desc.input_type, desc.output_type, input, output, desc.n});
}

}  // namespace

extern "C" {

tuff_status tuff_permute(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer output,
                         const uint64_t* shape, uint32_t rank, const uint32_t* order) {
  return guarded("tuff_permute", [&] {
    tuff::require(shape != nullptr, "shape is null");
    tuff::require(order != nullptr, "order is null");
    check_rank(rank);
    tuff_permute_desc desc{sizeof(tuff_permute_desc), dtype, input, output, {}, {}, rank, 0};
    std::copy_n(shape, rank, desc.shape);
    std::copy_n(order, rank, desc.order);
    permute(stream, desc);
  });
}

tuff_status tuff_permute_ex(tuff_stream stream, const tuff_permute_desc* desc) {
  return guarded("tuff_permute_ex", [&] {
    const tuff_permute_desc wanted = read_structure(desc, "desc");
    tuff::require(wanted.reserved == 0, "desc->reserved is {}, needs 0", wanted.reserved);
    permute(stream, wanted);
  });
}

tuff_status tuff_cast(tuff_stream stream, int32_t input_type, int32_t output_type, tuff_buffer input,
                      tuff_buffer output, uint64_t n) {
  return guarded("tuff_cast", [&] {
    cast(stream, {sizeof(tuff_cast_desc), input_type, output_type, 0, input, output, n});
  });
}

tuff_status tuff_cast_ex(tuff_stream stream, const tuff_cast_desc* desc) {
  return guarded("tuff_cast_ex", [&] { cast(stream, read_structure(desc, "desc")); });
}

}  // extern "C"
