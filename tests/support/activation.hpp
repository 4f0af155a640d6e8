// The activations of products and convolutions, and how far one computed in f32 or f64 may be from the exact one.
#pragma once

#include <cstdint>

namespace tuff_test {

long double activated(int32_t activation, long double x);

// How far an activation computed with roundoff u may be from the exact one at x: exp to 3 + 2|y| ULP (Vulkan), division
// to 2.5 ULP, the other operations rounded.
double activation_error(int32_t activation, double x, double u);

// No activation is steeper.
inline constexpr double kSteepest = 1.13;

}  // namespace tuff_test
