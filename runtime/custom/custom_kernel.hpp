// Kernels that callers bring: what they are asked for by, what is known of them once they are compiled, and the
// steps between. Nothing here knows a device: the same code runs in the library and in tuff-compile, its helper.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuff/tuff.h"

namespace tuff {

// tuff_kernel_desc, as far as it decides what is compiled.
struct CustomSource {
  struct Define {
    std::string name, value;
  };
  struct Constant {
    uint32_t id;
    uint64_t bits;
  };

  int32_t language = TUFF_KERNEL_GLSL;
  std::string text;  // GLSL, or the bytes of SPIR-V
  std::string name = "kernel", entry = "main";
  std::vector<Define> defines;
  std::vector<Constant> constants;
  bool in_bounds = false;    // as keep_in_bounds() has it
  bool zero_shared = false;  // and shared memory begins with zeros, by an initialiser that the device knows
  bool proven = false;       // the driver has compiled it elsewhere: what is kept of it on disk is kept apart
};

// What a launch has to know, as the module says it.
struct KernelInterface {
  struct Binding {
    bool used = false, read = false, written = false;
    uint64_t min_bytes = 0;  // with one element of an array without a size
  };
  std::vector<Binding> bindings;  // by their number, up to the highest that is declared
  uint32_t push_bytes = 0;
  std::array<uint32_t, 3> workgroup_size{1, 1, 1};
  uint64_t loop_iterations = 0;        // of the longest loop whose number of them can be seen
  uint64_t shared_bytes = 0;           // as std430 lays them out, which is how Vulkan counts
  std::vector<uint32_t> capabilities;  // SPIR-V's numbers
};

struct CompiledKernel {
  std::vector<uint32_t> words;  // SPIR-V; specialisation constants have become their values
  std::string warnings;
  KernelInterface interface;
};

// A kernel whose variables or values need more memory for each invocation is refused: drivers take it from their
// stacks, and do not survive what does not fit.
constexpr uint64_t kMaxPrivateBytes = 64 << 10;
// Of SPIR-V, from the caller or from the compiler.
constexpr uint64_t kMaxModuleBytes = 16 << 20;
// Of what comes from untrusted source: the driver compiles it in this process, for as long as it takes.
constexpr uint64_t kMaxUntrustedModuleBytes = 1 << 20;

// All of it, in this process: GLSL to SPIR-V, validation, specialisation, reflection.
// Throws COMPILE_FAILED with the compiler's text, LIMIT_EXCEEDED, UNSUPPORTED, INVALID_ARGUMENT.
CompiledKernel compile_custom(const CustomSource& source);

// The same in a process of its own, which may use so much time and memory and may crash.
struct CompileLimits {
  uint64_t milliseconds, memory_bytes;
};
CompiledKernel compile_isolated(const CustomSource& source, const CompileLimits& limits);

// A kernel that is compiled, to be compiled by the driver in such a process first: what a driver dies of is refused.
struct DriverTrial {
  std::string name, entry;
  std::vector<uint32_t> words;
  std::vector<uint32_t> bindings;  // the numbers of those that are used
  uint32_t push_bytes = 0;
  bool robust = false;
  bool processor = false;                              // the device is one: its driver needs no other
  std::array<uint8_t, 16> device{}, pipeline_cache{};  // UUIDs of the device and of the driver's build
};
// Throws COMPILE_FAILED, LIMIT_EXCEEDED (after its milliseconds), UNSUPPORTED where the driver does not run there.
void try_driver(const DriverTrial& trial, const CompileLimits& limits);

// --- the steps -------------------------------------------------------------------------------------------

// SPIR-V from bytes that may be anything: size, magic number, version and the lengths of its instructions are right.
std::vector<uint32_t> spirv_from_bytes(std::string_view bytes);
// Throws COMPILE_FAILED with what SPIRV-Tools says.
void validate_spirv(const std::vector<uint32_t>& words, const std::string& name);
// Puts values in place of specialisation constants. INVALID_ARGUMENT for a number that the module does not have.
void specialise(std::vector<uint32_t>& words, std::span<const CustomSource::Constant> constants);
// The same module with every index into its own variables below their size: keep_bounds.cpp. Valid if that was.
// COMPILE_FAILED, UNSUPPORTED, LIMIT_EXCEEDED for what cannot be bounded. `module` is of these words.
class SpirvModule;
uint64_t longest_loop(const std::vector<uint32_t>& words, const SpirvModule& module);  // 0: none is known
std::vector<uint32_t> keep_in_bounds(const std::vector<uint32_t>& words, const SpirvModule& module, bool zero_shared);
// Of a module that is valid. UNSUPPORTED for a resource that is no storage buffer in set 0.
KernelInterface reflect(const std::vector<uint32_t>& words, const std::string& entry);

// --- as bytes, for pipes and files -----------------------------------------------------------------------

std::string to_bytes(const CustomSource& source);
std::string to_bytes(const CompiledKernel& kernel);
std::string to_bytes(const DriverTrial& trial);
// False for bytes that are not what to_bytes() made.
bool from_bytes(std::string_view bytes, CustomSource& source);
bool from_bytes(std::string_view bytes, CompiledKernel& kernel);
bool from_bytes(std::string_view bytes, DriverTrial& trial);

// --- launches --------------------------------------------------------------------------------------------

struct Buffer;
struct LaunchArgs {
  std::span<const Buffer* const> buffers;
  const void* push = nullptr;
  uint32_t push_bytes = 0;
  std::array<uint32_t, 3> groups{1, 1, 1};
};
struct LaunchLimits {
  uint64_t max_range, alignment;
  std::array<uint32_t, 3> max_groups;
};
void check_launch(const KernelInterface& kernel, const LaunchArgs& args, const LaunchLimits& limits);

}  // namespace tuff
