// shaderc, SPIRV-Tools and SPIRV-Cross keep tables in static objects, which are destroyed at process exit.
#pragma once

namespace tuff {

// Throws UNSUPPORTED once those objects are destroyed. Call it before calling any of the compilers.
void require_compilers();

// Call it before starting shaderc. It keeps one compiler for the process, and with it glslang's tables of built-in functions,
// about 12 MiB. Otherwise each compilation computes them anew, which takes longer (70 ms) than compiling most kernels.
void keep_shaderc();

}  // namespace tuff
