// GLSL to SPIR-V by shaderc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planning/recorder.hpp"

namespace tuff {

// The whole text that is compiled: #version, the defines, the prelude, the kernel.
std::string kernel_text(const KernelRequest& kernel, const KernelForm& form, bool rounds_f16);

// Throws COMPILE_FAILED with the compiler's log.
std::vector<uint32_t> compile_glsl(const std::string& name, const std::string& text);

}  // namespace tuff
