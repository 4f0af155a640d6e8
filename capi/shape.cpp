// The header's "Shapes and types" group. A flat function fills the descriptor of its _ex sibling.
#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "kernels/indexing/scatter.hpp"
#include "kernels/indexing/select.hpp"
#include "kernels/shape/shape.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

namespace {

void check_rank(uint32_t rank) { tuff::require(rank >= 1 && rank <= 8, "rank is {}, needs 1 to 8", rank); }

void permute(tuff_stream stream, const tuff_permute_desc& desc) {
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), output(target, desc.output, "output");
  target->run(tuff::operations::permute({desc.dtype, input, output, desc.shape, desc.order, desc.rank}));
}

void cast(tuff_stream stream, const tuff_cast_desc& desc) {
  tuff::require_reserved(desc.reserved);
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), output(target, desc.output, "output");
  target->run(tuff::operations::cast({desc.input_type, desc.output_type, input, output, desc.n}));
}

void slice(tuff_stream stream, tuff_slice_desc desc) {
  tuff::require_reserved(desc.reserved);
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), output(target, desc.output, "output");
  std::replace(std::begin(desc.step), std::end(desc.step), int64_t{0}, int64_t{1});
  target->run(tuff::operations::slice(
      {desc.dtype, input, output, desc.shape, desc.start, desc.out_shape, desc.step, desc.rank}));
}

void concat(tuff_stream stream, const tuff_concat_desc& desc) {
  tuff::require_reserved(desc.reserved);
  const auto target = acquire_stream(stream);
  tuff::require(desc.count == 0 || desc.inputs != nullptr, "inputs is null");
  tuff::require(desc.count == 0 || desc.sizes != nullptr, "sizes is null");
  tuff::capi::OperandArrays arrays(target, 1, desc.count);
  const auto inputs = arrays.add(desc.inputs, desc.count, "inputs");
  const Operand output(target, desc.output, "output");
  target->run(tuff::operations::concat({desc.dtype, inputs, desc.sizes, output, desc.shape, desc.rank, desc.axis}));
}

// The fields of gather and scatter that say which indices there are.
template <typename Desc>
void check_index_fields(const Desc& desc) {
  tuff::require_flag(desc.elementwise, "desc->elementwise");
  tuff::require(desc.elementwise == 0 || desc.count == 0, "desc->count is {}, needs 0 if elementwise", desc.count);
  tuff::require_flag(desc.negative, "desc->negative");
}

void scatter(tuff_stream stream, const tuff_scatter_desc& desc) {
  tuff::require_reserved(desc.reserved);
  check_index_fields(desc);
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), indices(target, desc.indices, "indices"),
      updates(target, desc.updates, "updates"), output(target, desc.output, "output");
  target->run(tuff::operations::scatter(
      {desc.dtype,
       desc.op,
       input,
       updates,
       output,
       {desc.index_type, indices, desc.shape, desc.rank, desc.axis, desc.count,
        desc.elementwise != 0 ? desc.index_shape : nullptr, desc.coordinates, desc.negative != 0}}));
}

void select(tuff_stream stream, const tuff_select_desc& desc) {
  tuff::require_flag(desc.equal_nan, "desc->equal_nan");
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), mask(target, desc.mask, "mask"),
      output(target, desc.output, "output"), indices(target, desc.indices, "indices"),
      count(target, desc.count, "count");
  target->run(tuff::operations::select({desc.dtype, desc.op, desc.mask_type != 0 ? desc.mask_type : desc.dtype,
                                        desc.index_type != 0 ? desc.index_type : TUFF_I32, desc.equal_nan != 0, input,
                                        mask, output, indices, count, desc.n, desc.capacity}));
}

void pad(tuff_stream stream, const tuff_pad_desc& desc) {
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), output(target, desc.output, "output");
  target->run(tuff::operations::pad({desc.dtype, desc.mode, input, output, desc.shape, desc.before, desc.after,
                                     desc.rank, desc.value, desc.integer}));
}

void copy_strided(tuff_stream stream, const tuff_copy_strided_desc& desc) {
  tuff::require_reserved(desc.reserved);
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), output(target, desc.output, "output");
  target->run(tuff::operations::copy_strided({desc.dtype, input, output, desc.input_first, desc.output_first,
                                              desc.input_strides, desc.output_strides, desc.shape, desc.rank}));
}

void gather(tuff_stream stream, const tuff_gather_desc& desc) {
  check_index_fields(desc);
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), indices(target, desc.indices, "indices"),
      output(target, desc.output, "output");
  target->run(tuff::operations::gather({desc.dtype, desc.index_type, input, indices, output, desc.shape, desc.rank,
                                        desc.axis, desc.count, desc.elementwise != 0 ? desc.index_shape : nullptr,
                                        desc.coordinates, desc.negative != 0}));
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
    tuff::require_reserved(wanted.reserved);
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

tuff_status tuff_slice(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer output, const uint64_t* shape,
                       uint32_t rank, const uint64_t* start, const int64_t* step, const uint64_t* out_shape) {
  return guarded("tuff_slice", [&] {
    tuff::require(shape != nullptr, "shape is null");
    tuff::require(start != nullptr, "start is null");
    tuff::require(out_shape != nullptr, "out_shape is null");
    check_rank(rank);
    tuff_slice_desc desc{sizeof(tuff_slice_desc), dtype, input, output, {}, {}, {}, {}, rank, 0};
    std::copy_n(shape, rank, desc.shape);
    std::copy_n(start, rank, desc.start);
    std::copy_n(out_shape, rank, desc.out_shape);
    for (uint32_t i = 0; step != nullptr && i < rank; ++i) {
      tuff::require(step[i] != 0, "step[{}] is 0", i);
      desc.step[i] = step[i];
    }
    slice(stream, desc);
  });
}

tuff_status tuff_slice_ex(tuff_stream stream, const tuff_slice_desc* desc) {
  return guarded("tuff_slice_ex", [&] { slice(stream, read_structure(desc, "desc")); });
}

tuff_status tuff_concat(tuff_stream stream, int32_t dtype, const tuff_buffer* inputs, const uint64_t* sizes,
                        uint32_t count, tuff_buffer output, const uint64_t* shape, uint32_t rank, uint32_t axis) {
  return guarded("tuff_concat", [&] {
    tuff::require(shape != nullptr, "shape is null");
    check_rank(rank);
    tuff_concat_desc desc{sizeof(tuff_concat_desc), dtype, inputs, sizes, count, rank, output, {}, axis, 0};
    std::copy_n(shape, rank, desc.shape);
    concat(stream, desc);
  });
}

tuff_status tuff_concat_ex(tuff_stream stream, const tuff_concat_desc* desc) {
  return guarded("tuff_concat_ex", [&] { concat(stream, read_structure(desc, "desc")); });
}

tuff_status tuff_gather(tuff_stream stream, int32_t dtype, int32_t index_type, tuff_buffer input, tuff_buffer indices,
                        tuff_buffer output, const uint64_t* shape, uint32_t rank, uint32_t axis, uint64_t count) {
  return guarded("tuff_gather", [&] {
    tuff::require(shape != nullptr, "shape is null");
    check_rank(rank);
    tuff_gather_desc desc{};
    desc.dtype = dtype;
    desc.index_type = index_type;
    desc.input = input;
    desc.indices = indices;
    desc.output = output;
    std::copy_n(shape, rank, desc.shape);
    desc.rank = rank;
    desc.axis = axis;
    desc.count = count;
    gather(stream, desc);
  });
}

tuff_status tuff_gather_ex(tuff_stream stream, const tuff_gather_desc* desc) {
  return guarded("tuff_gather_ex", [&] { gather(stream, read_structure(desc, "desc")); });
}

tuff_status tuff_scatter(tuff_stream stream, const tuff_scatter_desc* desc) {
  return guarded("tuff_scatter", [&] { scatter(stream, read_structure(desc, "desc")); });
}

tuff_status tuff_select(tuff_stream stream, const tuff_select_desc* desc) {
  return guarded("tuff_select", [&] { select(stream, read_structure(desc, "desc")); });
}

tuff_status tuff_pad(tuff_stream stream, const tuff_pad_desc* desc) {
  return guarded("tuff_pad", [&] { pad(stream, read_structure(desc, "desc")); });
}

tuff_status tuff_copy_strided(tuff_stream stream, const tuff_copy_strided_desc* desc) {
  return guarded("tuff_copy_strided", [&] { copy_strided(stream, read_structure(desc, "desc")); });
}

}  // extern "C"
