// The feature names of tuff_supports that do not depend on the device.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace tuff {

// An element type, an operation, or an operation with its type ("gemm.f32") that this version computes.
inline bool computes(std::string_view feature) {
  constexpr std::string_view kType = "f32";
  constexpr std::string_view kOperations[] = {"gemm",   "batched_gemm", "conv2d", "attention",
                                              "reduce", "softmax",      "unary",  "binary"};
  if (feature == kType) return true;
  if (feature.ends_with(kType) && feature.size() > kType.size() && feature[feature.size() - kType.size() - 1] == '.') {
    feature.remove_suffix(kType.size() + 1);
  }
  return std::find(std::begin(kOperations), std::end(kOperations), feature) != std::end(kOperations);
}

}  // namespace tuff
