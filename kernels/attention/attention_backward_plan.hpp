// Shared by the planners of attention's gradients: the shape as passed to kernels, and their defines.
#pragma once

#include <cstdint>

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
  Buffer sums;  // the rows' numbers, and the lengths behind them

  const DeviceTraits& traits() const { return recorder.traits(); }
  uint64_t sums_bytes() const { return (forward.rows() + forward.batch) * 8; }
  uint64_t sharing() const { return forward.heads / forward.kv_heads; }
  shaders::AttentionBackwardCommon defines() const {
    return {.bias = forward.bias == nullptr ? 0 : forward.bias_type,
            .cap = forward.softcap != 0,
            .exact_arithmetic = traits().cpu,
            .mask = forward.mask != nullptr,
            .type = forward.dtype};
  }
  Dispatch& shape(Dispatch& dispatch) const;

 private:
  template <typename Index>
  Shape<Index> shape_of() const;
};

inline constexpr const char* kProducts = "products";
// Records the call and returns true if it can be cut into parts of bounded memory
// (attention_backward_products_vulkan.cpp).
bool record_products(const Call& call);

}  // namespace tuff::attention_backward
