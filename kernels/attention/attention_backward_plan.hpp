// Shared by the planners of attention's gradients: the shape as passed to kernels, and their defines.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/attention/attention_backward.hpp"
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
  float headroom;
  bool bounds;  // of slopes, which f16 could not hold otherwise
};
void record_sums(const Call& call, const Powers* powers = nullptr);

inline constexpr std::string_view kNative = "native_128x64";
// Records the call and returns true if kernels in PTX compute it (native/attention_backward_native_vulkan.cpp).
bool record_native(Call& call, std::string_view forced);

inline constexpr const char* kProducts = "products";
// Records the call and returns true if it can be cut into parts of bounded memory
// (attention_backward_products_vulkan.cpp).
bool record_products(const Call& call);
// The gradient by the bias where there are no batch elements or heads: zeros, or nothing.
void record_no_pairs(const Call& call);

}  // namespace tuff::attention_backward
