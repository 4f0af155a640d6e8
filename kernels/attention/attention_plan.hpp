// Shared by the attention planners: the shape as passed to kernels, the operands, and the defines of the kernels.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string_view>

#include "kernels/attention/attention.hpp"
#include "kernels/common/check.hpp"
#include "planning/recorder.hpp"
#include "shaders/attention_common.hpp"

namespace tuff::attention {

// The push constants of a call; for an extended call, whose shape is in memory, only groups, key_begin and key_end.
using PlainPush = shaders::attention_common_push::Push<uint32_t, false>;
using Progress = shaders::attention_common_push::Push<uint32_t, true>;
template <typename Index>
using ExtendedShape = shaders::attention_common_push::AttentionShape<Index>;

// Sequences are shorter than this, so that positions and windows fit into signed 32-bit numbers.
constexpr uint64_t kMaxSequence = uint64_t{1} << 30;
// From so many query rows on products limit a call, not memory.
constexpr uint64_t kManyRows = 48;
// Workgroups of a dispatch, so that their numbers fit into 32 bits after Dispatch::groups_linear() has rounded up.
constexpr uint64_t kMaxGroups = std::numeric_limits<uint32_t>::max() - 65535;

template <typename Index>
void put_strides(const AttentionStrides& from, Index& batch, Index& head, Index& row) {
  batch = static_cast<Index>(from.batch), head = static_cast<Index>(from.head), row = static_cast<Index>(from.row);
}
// Fills in what an AttentionShape and an AttentionBackwardShape have in common, but the sizes.
template <typename Shape>
void put_positions(const AttentionArgs& args, Shape& shape) {
  put_strides(args.q_strides, shape.q_batch, shape.q_head, shape.q_row);
  put_strides(args.k_strides, shape.k_batch, shape.k_head, shape.k_row);
  put_strides(args.v_strides, shape.v_batch, shape.v_head, shape.v_row);
  put_strides(args.o_strides, shape.o_batch, shape.o_head, shape.o_row);
  put_strides(args.bias_strides, shape.bias_batch, shape.bias_head, shape.bias_row);
  put_strides(args.mask_strides, shape.mask_batch, shape.mask_head, shape.mask_row);
  const auto window = [](uint64_t size) {
    return static_cast<uint32_t>(size == 0 ? kMaxSequence : std::min(size, kMaxSequence));
  };
  shape.left = window(args.window_left);
  shape.right = args.causal != TUFF_CAUSAL_NONE ? 1 : window(args.window_right);
  shape.scale = static_cast<float>(args.scale);
  shape.cap = static_cast<float>(args.softcap);
  shape.present = (args.q_lengths != nullptr ? 2u : 0u) | (args.kv_lengths != nullptr ? 4u : 0u) |
                  (args.causal == TUFF_CAUSAL_BOTTOM_RIGHT ? 8u : 0u);
}
// Row i's position is key i plus this.
inline int32_t diagonal_of(const AttentionArgs& args) {
  return args.causal == TUFF_CAUSAL_BOTTOM_RIGHT
             ? static_cast<int32_t>(static_cast<int64_t>(args.seq_kv) - static_cast<int64_t>(args.seq_q))
             : 0;
}

// A call as the kernels see it: their defines and parameters.
struct Call {
  Call(const DeviceTraits& traits, const AttentionArgs& wanted, uint64_t scratch_elements);

  AttentionArgs args;  // with heads and batch elements merged if there are too many heads
  bool wide = false, extended = false, causal = false, scaled = false;
  uint64_t elements[4] = {};                  // of q, k, v, o
  uint32_t key_scales = 0, value_scales = 0;  // their slots; 0: there are none

  // The defines of every kernel of the call.
  shaders::AttentionCommon defines(const DeviceTraits& traits) const {
    return {.bias = args.bias == nullptr ? 0 : args.bias_type,
            .cap = args.softcap != 0,
            .causal = causal && !extended,
            .exact_arithmetic = traits.cpu,
            .extended = extended,
            .key_format = args.k_stored.as,
            .key_scales = key_scales,
            .mask = args.mask != nullptr,
            .type = args.dtype,
            .value_format = args.v_stored.as,
            .value_scales = value_scales};
  }
  // Adds q, k, v, o, the scratch memory if the kernel has any, and the operands of an extended call.
  void operands(Recorder& recorder, Dispatch& dispatch, const Buffer* scratch, uint64_t scratch_bytes,
                Access access) const;
  void push(Dispatch& dispatch, const Progress& progress) const;
  // Blocks of keys and values are bound as texels, where the device reads these faster.
  void bind_blocks(KernelRequest& kernel) const {
    if (in_blocks(args.k_stored.as)) kernel.texels(1, 2);
    if (in_blocks(args.v_stored.as)) kernel.texels(2, 2);
  }
  // Whether q, k, v and o can all be read and written `piece` elements at a time.
  bool in_pieces_of(uint64_t piece) const;
  // The number of keys up to the last one that some row sees.
  uint64_t keys_seen() const;
  double bytes() const;
  double operations() const;
  // The whole shape, with 64-bit strides if the call is wide.
  template <typename Index>
  ExtendedShape<Index> extended_shape() const;

 private:
  struct Option {
    const Buffer* buffer;
    uint64_t bytes;
    Access access;
  };
  static constexpr uint32_t kFirstOption = 6;
  // The operands from slot kFirstOption on, without scales.
  std::array<Option, 5> options() const;
  // Fills in strides and sizes of a PlainPush or ExtendedShape.
  template <typename Shape>
  void put_shape(Shape& shape) const;
};

// Each records the call and returns true if this kind of kernel is best for it, or if a variant in its table is forced;
// otherwise returns false. `forced` may be empty, or a name in another table.
bool record_matrices(Recorder& recorder, const AttentionArgs& args, std::string_view forced);
bool record_split(Recorder& recorder, const AttentionArgs& args, std::string_view forced);
bool record_native(Recorder& recorder, const AttentionArgs& args, std::string_view forced);
bool record_decode(Recorder& recorder, const AttentionArgs& args, std::string_view forced);
// Dequantises keys and values first, and records the call without such, if that is best.
bool record_dequantised(Recorder& recorder, const AttentionArgs& args, std::string_view forced);
bool is_dequantised_variant(std::string_view name);
// Whether the device has cooperative matrices of this type; whether this call can use them.
bool has_matrices(const DeviceTraits& traits, int32_t dtype);
bool multiplies(const DeviceTraits& traits, const Call& call);
bool is_matrix_variant(std::string_view name);
bool is_decode_variant(std::string_view name);
bool is_native_variant(std::string_view name);
bool is_split_variant(std::string_view name);

// native/attention_native_vulkan.cpp. Kernels in PTX take scores of -infinity from finite bf16 numbers, whose sums left
// the range of f32, as they are: with these scales the error bound of such scores is infinite.
bool has_usual_scale(const AttentionArgs& args);
uint32_t lengths_of(const AttentionArgs& args);  // Wgmma::lengths
// With a bias or soft cap: with larger scales, scaled scores and a bias could add up to more than f32 holds.
inline constexpr double kMaxScoreScale = 0x1p40;
// Whether bias and mask can be read in pieces, as long as a fourth of a step's keys allow.
bool options_in_pieces(const AttentionArgs& args, uint32_t keys);
// Adds q_lengths, kv_lengths, bias, mask and ScoreNumbers (score_options.hpp), as far as there are such.
void score_operands(Recorder& recorder, Dispatch& dispatch, const AttentionArgs& args);

// The parts that keys are cut into, each of a tile of `rows` query rows of all heads that share a kv head: outputs,
// references and sums of weights (STATISTICS of attention_common.glsl).
struct Parts {
  uint32_t keys = 0;  // of a part
  uint32_t count = 0;
};
uint64_t bytes_of_part(uint32_t rows, const AttentionArgs& args);
bool merges_on(const DeviceTraits& traits);
// Records the pass that adds up the parts (attention_merge_vulkan.cpp).
void merge_parts(Recorder& recorder, const Call& call, uint32_t rows, const Parts& parts, const Buffer& scratch,
                 uint64_t scratch_bytes);

}  // namespace tuff::attention
