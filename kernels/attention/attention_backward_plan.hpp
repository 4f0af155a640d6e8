// Shared by the planners of attention's gradients: the shape as passed to kernels, and their defines.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/attention/attention_backward.hpp"
#include "kernels/common/scratch_parts.hpp"
#include "planning/recorder.hpp"
#include "shaders/attention_backward_common.hpp"
#include "shaders/attention_backward_sums.hpp"

namespace tuff::attention_backward {

template <typename Index>
using Shape = shaders::attention_backward_sums_push::AttentionBackwardShape<Index>;

// A call as the kernels see it.
struct Call {
  Call(Recorder& on, const AttentionBackwardArgs& wanted) : recorder(on), args(wanted), forward(wanted.forward) {}

  Recorder& recorder;
  const AttentionBackwardArgs& args;
  const AttentionArgs& forward;
  bool wide = false;
  Buffer sums;  // the rows' numbers, behind them the lengths, and then room for two bounds of slopes

  const DeviceTraits& traits() const { return recorder.traits(); }
  uint64_t sums_bytes() const { return bounds_at() + 8; }
  uint64_t bounds_at() const { return (forward.rows() + forward.batch) * 8; }
  uint64_t sharing() const { return forward.heads / forward.kv_heads; }
  shaders::AttentionBackwardCommon defines() const {
    return {.bias = forward.bias == nullptr ? 0 : forward.bias_type,
            .cap = forward.softcap != 0,
            .exact_arithmetic = traits().cpu,
            .mask = forward.mask != nullptr,
            .type = forward.dtype};
  }
  Dispatch& shape(Dispatch& dispatch) const { return shape(dispatch, wide); }
  Dispatch& shape(Dispatch& dispatch, bool with_wide_strides) const;

 private:
  template <typename Index>
  Shape<Index> shape_of() const;
};

// What a kernel computes.
struct Side {
  bool keys;           // it owns keys, not query rows
  bool first, second;  // dk or dq; dv
};
// The work of a kernel that computes every pair anew.
struct Work {
  double bytes, operations;
};
Work work_of(const Call& call, const Side& side);

// What the pass over the rows writes of each row: log-sum-exp and D, or what kernels in PTX need in their place
// (POWERS of attention_backward_sums.comp).
struct Powers {
  float headroom, factor;
  bool bounds;  // of slopes, which f16 could not hold otherwise
};
void record_sums(const Call& call, const Powers* powers = nullptr);

// Invocations of a workgroup of the kernels that process elements.
uint32_t streaming_threads(const DeviceTraits& traits);

// Rows of one head of q in each group of heads that share keys, or keys.
struct Block {
  uint64_t first, count;
};

// The gradient by the bias, made of the slopes of pairs (attention_backward_bias_vulkan.cpp). It is the slopes
// themselves, or what they add up to along axes that share an element: rows by a reduction of each block, batch
// elements and heads block after block. Sums are in place if they are f32, otherwise in scratch memory first.
class BiasGradient {
 public:
  explicit BiasGradient(const Call& call);

  bool wanted() const { return call_.args.dbias != nullptr; }
  const bool capped;  // slopes are those without the soft cap's factor
  // In scratch memory, however many heads a part has.
  uint64_t sum_bytes() const;
  // Scratch memory for parts of so many heads, and blocks of so many keys.
  void place(ScratchLayout& layout, uint64_t heads, uint64_t keys);

  // Slopes of a block of pairs in dense f32: of `units` kv heads from `first` on among those of all batch elements,
  // each with `sharing` heads of q, of which these are number `sharer`.
  struct Slopes {
    const Buffer* values;
    uint64_t first, units, heads, sharing, sharer;
    Block rows, keys;
  };
  void record_begin(const Buffer& scratch) const;
  void record_add(const Buffer& scratch, const Slopes& slopes) const;
  void record_end(const Buffer& scratch) const;
  // Where there are no batch elements or heads: zeros, or nothing.
  void record_no_pairs() const;

 private:
  struct Kernel;
  struct Place;
  void record(const Kernel& kernel) const;
  void record_all(const Buffer& scratch, bool zeros, bool in_place) const;
  Place place_of(const Buffer& scratch, bool in_place) const;
  bool writes() const { return shared_axes_ == 0 && !shared_rows_; }

  const Call& call_;
  const int32_t type_;
  const uint32_t shared_axes_;  // as attention_backward_bias.comp has them
  const bool shared_rows_, in_place_;
  uint64_t batch_ = 0, heads_ = 0, rows_ = 0;  // of the gradient
  uint64_t at_ = 0, rows_at_ = 0;              // in scratch memory: sums; of a block's rows
};

inline constexpr std::string_view kNative = "native_128x64";
// Records the call and returns true if kernels in PTX compute it (native/attention_backward_native_vulkan.cpp).
bool record_native(Call& call, std::string_view forced);

inline constexpr const char* kProducts = "products";
// Records the call and returns true if it can be cut into parts of bounded memory
// (attention_backward_products_vulkan.cpp).
bool record_products(const Call& call);

}  // namespace tuff::attention_backward
