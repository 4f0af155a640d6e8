// How a subgroup of 32 holds its cooperative matrices, which no query of Vulkan tells.
#pragma once

#include "planning/probe.hpp"

namespace tuff {

// Of 16 x 16 matrices of 16-bit inputs, and of sums in f32, lane l of 32 holds rows l / 4 and l / 4 + 8, columns
// l % 4 * 2, + 1, + 8 and + 9, as elements 0 to 3 of the first row and 4 to 7 of the second.
extern const Probe matrix_quads;

}  // namespace tuff
