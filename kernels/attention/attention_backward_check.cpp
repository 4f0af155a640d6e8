// Checks the arguments of attention's gradients.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "kernels/attention/attention_backward.hpp"
#include "kernels/attention/attention_check.hpp"
#include "kernels/common/check.hpp"

namespace tuff {

void complete_attention_backward(AttentionBackwardArgs& args) {
  AttentionArgs& forward = args.forward;
  complete_attention(forward, true);
  const attention::TensorExtents of(forward);
  attention::complete(args.d_o_strides, of.o, "d_o");
  attention::complete(args.dq_strides, of.q, "dq");
  attention::complete(args.dk_strides, of.k, "dk");
  attention::complete(args.dv_strides, of.v, "dv");
  const auto as_bias = [](uint64_t stride, uint64_t of_bias) { return of_bias == 0 || stride == 0 ? of_bias : stride; };
  const AttentionStrides& bias = forward.bias_strides;
  args.dbias_strides = {as_bias(args.dbias_strides.batch, bias.batch), as_bias(args.dbias_strides.head, bias.head),
                        as_bias(args.dbias_strides.row, bias.row)};
}

namespace {

void check_apart_from_lengths(const AttentionArgs& forward, const Buffer* output, const char* name, uint64_t bytes) {
  check_overlap(output, name, bytes, forward.q_lengths, "q_lengths", forward.batch * 4, false);
  check_overlap(output, name, bytes, forward.kv_lengths, "kv_lengths", forward.batch * 4, false);
}

// Without a batch element or head there are no pairs, and a gradient by a bias that all share is 0. Its call needs the
// lengths that any other needs.
void check_empty(const AttentionBackwardArgs& args, const attention::Extents& of_dbias) {
  if (args.dbias == nullptr) return;
  const bool none = of_dbias.batch == 0 || of_dbias.heads == 0;
  const uint64_t elements = none ? 0 : attention::footprint(args.dbias_strides, of_dbias, "dbias");
  check_operand(args.dbias, "dbias", elements, args.forward.bias_type, [&] {
    return fmt::format("{} batch elements of {} heads of {} x {}", of_dbias.batch, of_dbias.heads, of_dbias.rows,
                       of_dbias.length);
  });
  if (none) return;
  attention::check_lengths(args.forward);
  attention::check_apart(args.dbias_strides, of_dbias, "dbias");
  check_apart_from_lengths(args.forward, args.dbias, "dbias", elements * dtype_size(args.forward.bias_type));
}

}  // namespace

void check_attention_backward(const AttentionBackwardArgs& args) {
  const AttentionArgs& forward = args.forward;
  check_float_type(forward.dtype);
  attention::check_options(forward);
  require(args.dbias == nullptr || forward.bias != nullptr, "dbias is given, and bias is TUFF_NULL_HANDLE");
  const attention::Extents of_dbias{args.bias_batch(), args.bias_heads(), args.bias_rows(), forward.seq_kv};
  if (forward.batch == 0 || forward.heads == 0) return check_empty(args, of_dbias);
  require(forward.heads % forward.kv_heads == 0, "kv_heads is {}, needs a divisor of heads={}", forward.kv_heads,
          forward.heads);
  require(args.dq != nullptr || args.dk != nullptr || args.dv != nullptr || args.dbias != nullptr,
          "dq, dk, dv and dbias are all TUFF_NULL_HANDLE, one at least is needed");

  struct Tensor {
    const Buffer* buffer;
    const char* name;
    const AttentionStrides& strides;
    attention::Extents extents;
    int32_t dtype;
    bool optional, written;
  };
  const attention::TensorExtents of(forward);
  const int32_t type = forward.dtype;
  const Tensor tensors[] = {
      {forward.q, "q", forward.q_strides, of.q, type, false, false},
      {forward.k, "k", forward.k_strides, of.k, type, false, false},
      {forward.v, "v", forward.v_strides, of.v, type, false, false},
      {forward.o, "o", forward.o_strides, of.o, type, false, false},
      {args.d_o, "d_o", args.d_o_strides, of.o, type, false, false},
      {args.dq, "dq", args.dq_strides, of.q, type, true, true},
      {args.dk, "dk", args.dk_strides, of.k, type, true, true},
      {args.dv, "dv", args.dv_strides, of.v, type, true, true},
      {args.dbias, "dbias", args.dbias_strides, of_dbias, forward.bias_type, true, true},
      {forward.bias, "bias", forward.bias_strides, of.scores, forward.bias_type, true, false},
      {forward.mask, "mask", forward.mask_strides, of.scores, TUFF_U8, true, false},
  };
  constexpr size_t kTensors = std::size(tensors);
  // All operands are measured before any is checked, so that overflows are reported first.
  std::array<uint64_t, kTensors> elements{};
  for (size_t i = 0; i < kTensors; ++i) {
    const Tensor& t = tensors[i];
    if (!t.optional || t.buffer != nullptr) elements[i] = attention::footprint(t.strides, t.extents, t.name);
  }
  const uint64_t rows = checked_product({forward.batch, forward.heads, forward.seq_q}, "lse");
  for (size_t i = 0; i < kTensors; ++i) {
    const Tensor& t = tensors[i];
    check_operand(t.buffer, t.name, elements[i], t.dtype, [&] {
      return fmt::format("{} batch elements of {} heads of {} x {} with strides {}, {}, {}", t.extents.batch,
                         t.extents.heads, t.extents.rows, t.extents.length, t.strides.batch, t.strides.head,
                         t.strides.row);
    });
  }
  check_operand(forward.lse, "lse", rows, TUFF_F32,
                [&] { return fmt::format("batch={} heads={} seq_q={}", forward.batch, forward.heads, forward.seq_q); });
  attention::check_lengths(forward);

  for (size_t i = 0; i < kTensors; ++i) {
    const Tensor& output = tensors[i];
    if (!output.written || output.buffer == nullptr) continue;
    attention::check_apart(output.strides, output.extents, output.name);
    // The operands hold this many bytes, so the multiplications cannot overflow.
    const uint64_t bytes = elements[i] * dtype_size(output.dtype);
    const auto apart_from = [&](const Buffer* buffer, const char* name, uint64_t size) {
      check_overlap(output.buffer, output.name, bytes, buffer, name, size, false);
    };
    for (size_t j = 0; j < kTensors; ++j) {
      if (j != i) apart_from(tensors[j].buffer, tensors[j].name, elements[j] * dtype_size(tensors[j].dtype));
    }
    apart_from(forward.lse, "lse", rows * 4);
    check_apart_from_lengths(forward, output.buffer, output.name, bytes);
  }
}

}  // namespace tuff
