// Rewrites a module that was compiled from GL_NV_cooperative_matrix into SPV_KHR_cooperative_matrix, which is what
// devices run (and run faster: 295 against 179 TFLOP/s with the same source on an H200). For compilers that
// know the older extension alone.
#pragma once

#include <cstdint>
#include <vector>

#include "planning/recorder.hpp"

namespace tuff {

// Throws INTERNAL if the module is none that the rewriting knows: a matrix type in two uses, an unknown word.
// Works on a module with KHR instructions too, where all that is left to do is bf16: the 16-bit type of the
// matrices, which the source calls f16, becomes bfloat16.
std::vector<uint32_t> rewrite_matrices(const std::vector<uint32_t>& module, Matrices matrices);

}  // namespace tuff
