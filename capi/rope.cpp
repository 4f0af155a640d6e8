// Entry points of the header's "Positions" group. The flat function fills in the descriptor of its _ex sibling.
#include <algorithm>
#include <array>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "kernels/position/rope.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

namespace {

// The caller's strides, or those of dense heads if all are 0.
std::array<uint64_t, 3> strides_of(const uint64_t strides[3], const tuff_rope_desc& desc) {
  if (std::any_of(strides, strides + 3, [](uint64_t stride) { return stride != 0; })) {
    return {strides[0], strides[1], strides[2]};
  }
  // These products can wrap only if the product of all four sizes does, which is checked before use, or if that is 0.
  const uint64_t head = desc.seq * desc.head_dim;
  return {desc.heads * head, head, desc.head_dim};
}

void rope(tuff_stream stream, const tuff_rope_desc& desc) {
  tuff::require_reserved(desc.reserved);
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), output(target, desc.output, "output"),
      positions(target, desc.positions, "positions");
  target->run(tuff::operations::rope({desc.dtype, input, output, positions, desc.batch, desc.heads, desc.seq,
                                      desc.head_dim, desc.rotary_dim, strides_of(desc.input_strides, desc),
                                      strides_of(desc.output_strides, desc), desc.positions_stride, desc.offset,
                                      desc.base, desc.interleaved}));
}

}  // namespace

extern "C" {

tuff_status tuff_rope(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer output, uint64_t batch,
                      uint64_t heads, uint64_t seq, uint64_t head_dim, int64_t offset, double base) {
  return guarded("tuff_rope", [&] {
    tuff_rope_desc desc{};
    desc.dtype = dtype;
    desc.input = input;
    desc.output = output;
    desc.batch = batch;
    desc.heads = heads;
    desc.seq = seq;
    desc.head_dim = desc.rotary_dim = head_dim;
    desc.offset = offset;
    desc.base = base;
    rope(stream, desc);
  });
}

tuff_status tuff_rope_ex(tuff_stream stream, const tuff_rope_desc* desc) {
  return guarded("tuff_rope_ex", [&] {
    tuff_rope_desc wanted = read_structure(desc, "desc");
    if (wanted.rotary_dim == 0) wanted.rotary_dim = wanted.head_dim;
    if (wanted.base == 0) wanted.base = 10000;
    rope(stream, wanted);
  });
}

}  // extern "C"
