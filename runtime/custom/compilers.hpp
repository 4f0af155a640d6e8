// shaderc, SPIRV-Tools and SPIRV-Cross keep tables in static objects, which go when the process ends.
#pragma once

namespace tuff {

// Throws UNSUPPORTED once they are gone. To be asked before any of them is called.
void require_compilers();

}  // namespace tuff
