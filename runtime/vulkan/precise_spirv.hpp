// What GLSL calls precise, in modules whose loops the compiler unrolled.
#pragma once

#include <cstdint>
#include <vector>

namespace tuff {

// SPIRV-Tools copies an unrolled loop's instructions without their NoContraction: all turns but the first may then be
// computed in another order, and differently from kernel to kernel. A module that has the decoration gets it for all of
// its additions, subtractions, multiplications and divisions of floats; another stays as it is.
std::vector<uint32_t> keep_precise(std::vector<uint32_t> module);

}  // namespace tuff
