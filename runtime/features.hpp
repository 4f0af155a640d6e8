// The feature names of tuff_supports that are about what Tuff computes.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace tuff {

// Element types that a device can compute with besides f32.
struct ElementTypes {
  bool f16, bf16, f64, i8;
};

// An element type ("f16"), an operation, or an operation with its type ("gemm.f16") that this version computes on a
// device with these types.
inline bool computes(std::string_view feature, const ElementTypes& types) {
  constexpr std::string_view kOperations[] = {
      "gemm",      "batched_gemm", "conv1d",   "conv2d",     "conv3d",     "conv_transpose2d",
      "attention", "reduce",       "softmax",  "unary",      "binary",     "permute",
      "cast",      "slice",        "concat",   "gather",     "max_pool",   "avg_pool",
      "rope",      "layer_norm",   "rms_norm", "group_norm", "batch_norm", "resize"};
  const auto is_operation = [&](std::string_view name) {
    return std::find(std::begin(kOperations), std::end(kOperations), name) != std::end(kOperations);
  };
  // What products know.
  const auto multiplies = [&](std::string_view type) {
    return type == "f32" || (type == "f16" && types.f16) || (type == "bf16" && types.bf16) ||
           (type == "f64" && types.f64) || (type == "i8" && types.i8);
  };
  if (is_operation(feature) || multiplies(feature)) return true;
  const size_t dot = feature.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view operation = feature.substr(0, dot), type = feature.substr(dot + 1);
  if (operation == "gemm" || operation == "batched_gemm") return multiplies(type);
  // What moves elements of any type.
  constexpr std::string_view kMoving[] = {"permute", "cast", "slice", "concat", "gather"};
  if (std::find(std::begin(kMoving), std::end(kMoving), operation) != std::end(kMoving)) {
    constexpr std::string_view kWide[] = {"f32", "f64", "i32", "u32"};
    if (type == "u8") return types.i8;
    return multiplies(type) || std::find(std::begin(kWide), std::end(kWide), type) != std::end(kWide);
  }
  // What the rest computes in f32, from the types of 16 bits too.
  if (is_operation(operation) && (type == "f16" || type == "bf16")) return multiplies(type);
  return is_operation(operation) && type == "f32";
}

}  // namespace tuff
