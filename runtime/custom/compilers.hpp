// shaderc, SPIRV-Tools and SPIRV-Cross keep tables in static objects, which are destroyed at process exit.
#pragma once

namespace tuff {

// Throws UNSUPPORTED once those objects are destroyed. Call it before calling any of the compilers.
void require_compilers();

}  // namespace tuff
