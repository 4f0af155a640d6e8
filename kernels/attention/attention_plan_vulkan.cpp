#include "kernels/attention/attention_plan.hpp"

#include "planning/status.hpp"

namespace tuff::attention {
namespace {

constexpr uint64_t kMaxHeads = 0xffff;

bool follow(const AttentionStrides& strides, uint64_t heads) { return strides.batch == heads * strides.head; }

// The kernels count the heads of a batch element in 16 bits. With more heads, each head becomes a batch element if
// batch elements follow one another with the heads' stride.
void merge_heads(AttentionArgs& args) {
  if (args.heads <= kMaxHeads) return;
  const bool plain = args.kv_heads == args.heads && args.bias == nullptr && args.mask == nullptr &&
                     args.q_lengths == nullptr && args.kv_lengths == nullptr;
  if (!plain || !follow(args.q_strides, args.heads) || !follow(args.k_strides, args.heads) ||
      !follow(args.v_strides, args.heads) || !follow(args.o_strides, args.heads)) {
    fail(TUFF_ERROR_UNSUPPORTED, "heads is {}, this version supports at most {} with these strides and options",
         args.heads, kMaxHeads);
  }
  for (AttentionStrides* strides : {&args.q_strides, &args.k_strides, &args.v_strides, &args.o_strides}) {
    strides->batch = strides->head;
  }
  args.batch *= args.heads;
  args.heads = args.kv_heads = 1;
}

float in_float_range(double x) {
  return static_cast<float>(
      std::clamp<double>(x, std::numeric_limits<float>::min(), std::numeric_limits<float>::max()));
}

}  // namespace

Call::Call(const DeviceTraits& traits, const AttentionArgs& wanted, uint64_t scratch_elements) : args(wanted) {
  merge_heads(args);
  if (args.seq_q >= kMaxSequence || args.seq_kv >= kMaxSequence) {
    fail(TUFF_ERROR_UNSUPPORTED, "seq_q={} seq_kv={} is beyond the limits of this version", args.seq_q, args.seq_kv);
  }
  if (dtype_size(args.dtype) == 2 && !traits.storage16) {
    fail(TUFF_ERROR_UNSUPPORTED, "dtype is {}, and the device has no 16-bit storage", dtype_name(args.dtype));
  }
  if (args.mask != nullptr && !traits.storage8) {
    fail(TUFF_ERROR_UNSUPPORTED, "there is a mask, and the device has no 8-bit storage");
  }
  elements[0] = args.q_elements(), elements[1] = args.k_elements();
  elements[2] = args.v_elements(), elements[3] = args.o_elements();
  const uint64_t most = std::max({elements[0], elements[1], elements[2], elements[3], args.bias_elements(),
                                  args.mask_elements(), args.lse == nullptr ? 0 : args.rows(), scratch_elements});
  // Strides of axes with one element are unused, but are passed to the kernels.
  const auto large = [](const AttentionStrides& s) { return needs_wide(std::max({s.batch, s.head, s.row})); };
  wide = needs_wide(most) || large(args.q_strides) || large(args.k_strides) || large(args.v_strides) ||
         large(args.o_strides) || large(args.bias_strides) || large(args.mask_strides);
  causal = args.causal != TUFF_CAUSAL_NONE;
  scaled = args.bias != nullptr || args.softcap != 0;
  // 64-bit strides leave no room in the push block either.
  extended = wide || scaled || args.mask != nullptr || args.window_left != 0 || args.window_right != 0 ||
             args.q_lengths != nullptr || args.kv_lengths != nullptr || args.lse != nullptr;
}

template <typename Shape>
void Call::put_shape(Shape& shape) const {
  put_strides(args.q_strides, shape.q_batch, shape.q_head, shape.q_row);
  put_strides(args.k_strides, shape.k_batch, shape.k_head, shape.k_row);
  put_strides(args.v_strides, shape.v_batch, shape.v_head, shape.v_row);
  put_strides(args.o_strides, shape.o_batch, shape.o_head, shape.o_row);
  shape.seq_q = static_cast<uint32_t>(args.seq_q);
  shape.seq_kv = static_cast<uint32_t>(args.seq_kv);
  shape.dims = static_cast<uint32_t>(args.head_dim | args.head_dim_v << 16);
  shape.heads = static_cast<uint32_t>(args.heads | (args.heads / args.kv_heads) << 16);
  // A scale outside the range of f32 is clamped to it: softmax is one-hot or flat by then.
  shape.scale_log2 = in_float_range((scaled ? 1.0 : args.scale) * std::numbers::log2e);
  shape.diagonal = diagonal_of(args);
}

template <typename Index>
ExtendedShape<Index> Call::extended_shape() const {
  ExtendedShape<Index> shape;
  put_shape(shape);
  put_positions(args, shape);
  if (args.lse != nullptr) shape.present |= 1;
  return shape;
}

template ExtendedShape<uint64_t> Call::extended_shape() const;

void Call::operands(Recorder& recorder, Dispatch& dispatch, const Buffer* scratch, uint64_t scratch_bytes,
                    Access access) const {
  const uint64_t size = dtype_size(args.dtype);
  dispatch.operand(args.q, 0, elements[0] * size, Access::read)
      .operand(args.k, 0, elements[1] * size, Access::read)
      .operand(args.v, 0, elements[2] * size, Access::read)
      .operand(args.o, 0, elements[3] * size, Access::write);
  if (extended || scratch != nullptr) dispatch.operand(scratch, 0, scratch_bytes, access);
  if (!extended) return;
  const Buffer* parameters = nullptr;
  uint64_t parameter_bytes = 0;
  const auto told = [&](const auto& shape) {
    parameters = &recorder.parameters(&shape, sizeof shape);
    parameter_bytes = sizeof shape;
  };
  if (wide) {
    told(extended_shape<uint64_t>());
  } else {
    told(extended_shape<uint32_t>());
  }
  dispatch.operand(parameters, 0, parameter_bytes, Access::read)
      .operand(args.bias, 0, args.bias_elements() * dtype_size(args.bias_type), Access::read)
      .operand(args.mask, 0, args.mask_elements(), Access::read)
      .operand(args.lse, 0, args.rows() * 4, Access::write)
      .operand(args.q_lengths, 0, args.batch * 4, Access::read)
      .operand(args.kv_lengths, 0, args.batch * 4, Access::read);
}

void Call::push(Dispatch& dispatch, const Progress& progress) const {
  if (extended) {
    dispatch.push(progress);
    return;
  }
  PlainPush push;
  put_shape(push);
  push.groups = progress.groups;
  push.first_group = progress.first_group;
  push.key_begin = progress.key_begin;
  push.key_end = progress.key_end;
  dispatch.push(push);
}

bool Call::in_pieces_of(uint64_t piece) const {
  const auto even = [&](const Buffer* buffer, const AttentionStrides& strides) {
    return buffer->offset % (piece * dtype_size(args.dtype)) == 0 && strides.batch % piece == 0 &&
           strides.head % piece == 0 && strides.row % piece == 0;
  };
  return args.head_dim % piece == 0 && args.head_dim_v % piece == 0 && even(args.q, args.q_strides) &&
         even(args.k, args.k_strides) && even(args.v, args.v_strides) && even(args.o, args.o_strides);
}

uint64_t Call::keys_seen() const {
  return args.kv_lengths != nullptr || args.q_lengths != nullptr
             ? args.seq_kv
             : attention_keys(args, args.seq_q - 1, args.seq_q, args.seq_kv).end;
}

double Call::bytes() const {
  const double rows = static_cast<double>(args.rows());
  const double keys = static_cast<double>(args.batch * args.kv_heads) * static_cast<double>(args.seq_kv);
  return static_cast<double>(dtype_size(args.dtype) * (args.head_dim + args.head_dim_v)) * (rows + keys);
}

double Call::operations() const {
  return 2.0 * static_cast<double>(args.rows()) * static_cast<double>(args.seq_kv) *
         static_cast<double>(args.head_dim + args.head_dim_v) / (causal ? 2 : 1);
}

}  // namespace tuff::attention
