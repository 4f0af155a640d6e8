// shaderc, SPIRV-Tools and SPIRV-Cross keep tables in static objects, which are destroyed at process exit.
#pragma once

struct shaderc_compiler;

namespace tuff {

// Throws UNSUPPORTED once those objects are destroyed. Call it before calling any of the compilers.
void require_compilers();

// The compiler of this process, for any thread. With it glslang's tables of built-in functions are kept, about 12 MiB:
// a compiler for each compilation computes them anew, which takes longer (70 ms) than compiling most kernels.
shaderc_compiler* kept_shaderc();

}  // namespace tuff
