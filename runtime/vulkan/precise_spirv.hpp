// Keeps GLSL's `precise` in modules whose loops the compiler unrolled.
#pragma once

#include <cstdint>
#include <vector>

namespace tuff {

// SPIRV-Tools copies an unrolled loop's instructions without their NoContraction decoration: all iterations but the
// first may then be evaluated in another order, differently from kernel to kernel. If a module has the decoration
// anywhere, all of its floating-point additions, subtractions, multiplications and divisions get it. Other modules are
// left unchanged.
std::vector<uint32_t> keep_precise(std::vector<uint32_t> module);

}  // namespace tuff
