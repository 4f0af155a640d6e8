// What a unary operation of f16 or bf16 may return.
#pragma once

#include <cmath>
#include <cstdlib>
#include <string_view>

#include "support/typed_gemm.hpp"
#include "support/unary_operations.hpp"

namespace tuff_test {

// Short forms of functions call the device's exp2, log2, inversesqrt and reciprocal. Those of GPUs are more accurate
// than Vulkan demands, within some 2 ULP. A CPU's driver need not be, and only has to compute them if it is made to:
// 3 ULP (Vulkan, exp2 near 0) and a rounding more.
inline double ulps_of_driver() {
  const char* const variant = std::getenv("TUFF_ELEMENTWISE_VARIANT");
  return variant != nullptr && std::string_view(variant) == "gpu" ? 4 : 0;
}

// Whether a result is what some value within the promised error, that of f32, rounds to. A denormal argument or result
// may have been flushed to a zero of its sign, and a denormal result of bf16 cut.
inline bool acceptable16(const Operation& operation, int32_t dtype, float x, float got) {
  const auto close = [&](double argument) {
    const double want = operation.reference(argument);
    if (std::isnan(want)) return std::isnan(got);
    if (denormal(want) && std::fabs(got) <= (operation.ulps != 0 ? std::fabs(rounded(dtype, want)) : 0)) {
      return std::signbit(got) == std::signbit(want);
    }
    const double more = operation.ulps != 0 ? ulps_of_driver() : 0;
    const double error = std::isinf(want) ? 0 : (operation.allowed(argument) + more) * ulp(want);
    if (!(got >= rounded(dtype, want - error) && got <= rounded(dtype, want + error))) return false;
    return operation.ulps != 0 || operation.op == TUFF_UNARY_RELU || std::signbit(got) == std::signbit(want);
  };
  return close(x) || (denormal(x) && close(std::copysign(0.0, x)));
}

}  // namespace tuff_test
