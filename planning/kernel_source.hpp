// GLSL as the build embeds it.
#pragma once

#include <span>

namespace tuff {

// One GLSL source, embedded at build from kernels/<family>/<name>.comp as tuff::shaders::<name>.
struct KernelSource {
  const char* name;
  const char* glsl;
};

namespace shaders {

// Every kernel's source, and what goes before each of them (planning/prelude.glsl). The build defines them.
extern const std::span<const KernelSource* const> all;
extern const KernelSource prelude;

}  // namespace shaders
}  // namespace tuff
