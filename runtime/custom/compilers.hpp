// shaderc, SPIRV-Tools and SPIRV-Cross keep tables in static objects, which are destroyed at process exit.
#pragma once

#include <string>

struct shaderc_compilation_result;
struct shaderc_compiler;

namespace tuff {

// Throws UNSUPPORTED once those objects are destroyed. Call it before calling any of the compilers.
void require_compilers();

// The compiler of this process, for any thread. With it glslang's tables of built-in functions are kept, about 12 MiB:
// a compiler for each compilation computes them anew, which takes longer (70 ms) than compiling most kernels.
shaderc_compiler* kept_shaderc();

// Throws OUT_OF_HOST_MEMORY if that is why there is no result: shaderc has caught an exception of its own then, and
// gives no result, or an internal error without a message.
void require_memory(shaderc_compilation_result* result, const std::string& name);

}  // namespace tuff
