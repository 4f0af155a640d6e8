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
                     args.q_lengths == nullptr && args.kv_lengths == nullptr && args.k_stored.scales == nullptr &&
                     args.v_stored.scales == nullptr;
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

// Numbers in blocks are read in 16-bit words, and 8-bit floats one by one.
void check_storage(const DeviceTraits& traits, int32_t stored, const char* name) {
  if (stored == 0) return;
  if (!(in_blocks(stored) ? traits.storage16 : traits.storage8)) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} is quantised, and the device has no {}-bit storage", name,
         in_blocks(stored) ? 16 : 8);
  }
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
  check_storage(traits, args.k_stored.as, "k");
  check_storage(traits, args.v_stored.as, "v");
  elements[0] = args.q_elements(), elements[1] = args.k_elements();
  elements[2] = args.v_elements(), elements[3] = args.o_elements();
  const uint64_t most = std::max({elements[0], elements[1], elements[2], elements[3], args.bias_elements(),
                                  args.mask_elements(), args.lse == nullptr ? 0 : args.rows(), args.k_scale_elements(),
                                  args.v_scale_elements(), scratch_elements});
  // Strides of axes with one element are unused, but are passed to the kernels.
  const auto large = [](const AttentionStrides& s) { return needs_wide(std::max({s.batch, s.head, s.row})); };
  wide = needs_wide(most) || large(args.q_strides) || large(args.k_strides) || large(args.v_strides) ||
         large(args.o_strides) || large(args.bias_strides) || large(args.mask_strides) ||
         large(args.k_stored.scale_strides) || large(args.v_stored.scale_strides);
  causal = args.causal != TUFF_CAUSAL_NONE;
  scaled = args.bias != nullptr || args.softcap != 0;
  // 64-bit strides leave no room in the push block either.
  extended = wide || scaled || args.mask != nullptr || args.window_left != 0 || args.window_right != 0 ||
             args.q_lengths != nullptr || args.kv_lengths != nullptr || args.lse != nullptr ||
             args.k_stored.scales != nullptr || args.v_stored.scales != nullptr;
  // Scales take the slots of options that are absent.
  const std::array<Option, 5> all = options();
  size_t next = 0;
  const auto slot_of = [&](const Buffer* scales) -> uint32_t {
    if (scales == nullptr) return 0;
    while (next < all.size() && all[next].buffer != nullptr) ++next;
    if (next == all.size()) {
      fail(TUFF_ERROR_UNSUPPORTED,
           "k_scales, v_scales, bias, mask, lse, q_lengths and kv_lengths: this version takes at most five of them");
    }
    return kFirstOption + static_cast<uint32_t>(next++);
  };
  key_scales = slot_of(args.k_stored.scales);
  value_scales = slot_of(args.v_stored.scales);
}

std::array<Call::Option, 5> Call::options() const {
  return {{{args.bias, args.bias_elements() * dtype_size(args.bias_type), Access::read},
           {args.mask, args.mask_elements(), Access::read},
           {args.lse, args.rows() * 4, Access::write},
           {args.q_lengths, args.batch * 4, Access::read},
           {args.kv_lengths, args.batch * 4, Access::read}}};
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
  put_strides(args.k_stored.scale_strides, shape.k_scale_batch, shape.k_scale_head, shape.k_scale_key);
  put_strides(args.v_stored.scale_strides, shape.v_scale_batch, shape.v_scale_head, shape.v_scale_key);
  if (args.lse != nullptr) shape.present |= 1;
  return shape;
}

template ExtendedShape<uint64_t> Call::extended_shape() const;

void Call::operands(Recorder& recorder, Dispatch& dispatch, const Buffer* scratch, uint64_t scratch_bytes,
                    Access access) const {
  const uint64_t size = dtype_size(args.dtype);
  dispatch.operand(args.q, 0, elements[0] * size, Access::read)
      .operand(args.k, 0, args.k_bytes(), Access::read)
      .operand(args.v, 0, args.v_bytes(), Access::read)
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
  dispatch.operand(parameters, 0, parameter_bytes, Access::read);
  std::array<Option, 5> all = options();
  if (key_scales != 0)
    all[key_scales - kFirstOption] = {args.k_stored.scales, args.k_scale_elements() * 4, Access::read};
  if (value_scales != 0)
    all[value_scales - kFirstOption] = {args.v_stored.scales, args.v_scale_elements() * 4, Access::read};
  for (const Option& option : all) dispatch.operand(option.buffer, 0, option.bytes, option.access);
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
  const auto even = [&](const Buffer* buffer, const AttentionStrides& strides, int32_t stored = 0) {
    if (in_blocks(stored)) return true;
    return buffer->offset % (piece * dtype_size(stored == 0 ? args.dtype : stored)) == 0 &&
           strides.batch % piece == 0 && strides.head % piece == 0 && strides.row % piece == 0;
  };
  return args.head_dim % piece == 0 && args.head_dim_v % piece == 0 && even(args.q, args.q_strides) &&
         even(args.k, args.k_strides, args.k_stored.as) && even(args.v, args.v_strides, args.v_stored.as) &&
         even(args.o, args.o_strides);
}

uint64_t Call::keys_seen() const {
  return args.kv_lengths != nullptr || args.q_lengths != nullptr
             ? args.seq_kv
             : attention_keys(args, args.seq_q - 1, args.seq_q, args.seq_kv).end;
}

double Call::bytes() const {
  const double rows = static_cast<double>(args.rows());
  const double keys = static_cast<double>(args.batch * args.kv_heads) * static_cast<double>(args.seq_kv);
  const double of_rows = static_cast<double>(dtype_size(args.dtype) * (args.head_dim + args.head_dim_v)) * rows;
  const uint64_t of_key =
      args.bytes_of(args.k_stored.as, args.head_dim) + args.bytes_of(args.v_stored.as, args.head_dim_v);
  return of_rows + static_cast<double>(of_key) * keys +
         4.0 * static_cast<double>(args.k_scale_elements() + args.v_scale_elements());
}

double Call::operations() const {
  return 2.0 * static_cast<double>(args.rows()) * static_cast<double>(args.seq_kv) *
         static_cast<double>(args.head_dim + args.head_dim_v) / (causal ? 2 : 1);
}

}  // namespace tuff::attention
