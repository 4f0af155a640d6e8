// Rewrites a module compiled with GL_NV_cooperative_matrix to SPV_KHR_cooperative_matrix, which is what devices run
// (and run faster: 295 against 179 TFLOP/s with the same source on an H200). For compilers that only know the older
// extension.
#pragma once

#include <cstdint>
#include <vector>

#include "planning/recorder.hpp"

namespace tuff {

// Throws INTERNAL for a module that it cannot rewrite: a matrix type with two uses, an unknown instruction. Also
// accepts modules with KHR instructions, where only bf16 is left to do: the matrices' 16-bit type, which the source
// calls f16, becomes bfloat16.
std::vector<uint32_t> rewrite_matrices(const std::vector<uint32_t>& module, Matrices matrices);

}  // namespace tuff
