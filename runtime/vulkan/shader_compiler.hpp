// GLSL to SPIR-V with shaderc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planning/recorder.hpp"

namespace tuff {

// What the device can be told about floats: see DeviceTraits.
struct FloatControls {
  bool rounds_f16 = false, preserves_f32 = false;
};

// The complete text to compile: #version, the defines, the prelude, the kernel.
std::string kernel_text(const KernelRequest& kernel, const KernelForm& form, const FloatControls& controls);

// Throws COMPILE_FAILED with the compiler's log.
std::vector<uint32_t> compile_glsl(const std::string& name, const std::string& text);

}  // namespace tuff
