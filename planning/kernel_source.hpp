// GLSL as the build embeds it.
#pragma once

#include <cstdint>
#include <span>

namespace tuff {

// Values that a define may have: from first to last, both included.
struct LegalRange {
  int64_t first, last;
};

// A define that a shader declares (cmake/shaders.py), with its legal values.
struct DefineInfo {
  const char* name;
  std::span<const LegalRange> legal;
};

// One GLSL source, embedded at build from kernels/<family>/<name>.comp as tuff::shaders::<name>.
struct KernelSource {
  const char* name;
  const char* glsl;
  std::span<const DefineInfo> defines = {};  // none: they are not declared
};

namespace shaders {

// Every kernel's source, and what goes before each of them (planning/prelude.glsl). The build defines them.
extern const std::span<const KernelSource* const> all;
extern const KernelSource prelude;

}  // namespace shaders
}  // namespace tuff
