// The activations of GEMMs and convolutions, and the error bound of one computed in f32 or f64.
#pragma once

#include <cstdint>

namespace tuff_test {

long double activated(int32_t activation, long double x);

// The error bound at x of an activation computed with unit roundoff u: exp is accurate to 3 + 2|y| ULP (Vulkan),
// division to 2.5 ULP, all other operations are rounded once.
double activation_error(int32_t activation, double x, double u);

// The largest slope of any activation.
inline constexpr double kSteepest = 1.13;

}  // namespace tuff_test
