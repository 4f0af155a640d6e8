// Probe of how a subgroup of 32 holds the elements of its cooperative matrices, which Vulkan has no query for.
#pragma once

#include "planning/probe.hpp"

namespace tuff {

// Holds if, of 16 x 16 matrices of 16-bit inputs and of f32 sums, lane l of 32 has rows l / 4 and l / 4 + 8, columns
// l % 4 * 2, + 1, + 8 and + 9: elements 0 to 3 are those of the first row, and 4 to 7 those of the second.
extern const Probe matrix_quads;

}  // namespace tuff
