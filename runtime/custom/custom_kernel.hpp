// Custom kernels, which callers bring: their description, what is known about them after compilation, and the steps in
// between. This code is independent of the device: it runs both in the library and in its helper, tuff-compile.
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

// The parts of tuff_kernel_desc that affect compilation.
struct CustomSource {
  struct Define {
    std::string name, value;
  };
  struct Constant {
    uint32_t id;
    uint64_t bits;
  };

  int32_t language = TUFF_KERNEL_GLSL;
  std::string text;                             // GLSL or PTX, or SPIR-V as bytes
  std::string name = "kernel", entry = "main";  // PTX: no entry is the only one
  std::vector<Define> defines;
  std::vector<Constant> constants;
  bool in_bounds = false;    // apply keep_in_bounds()
  bool zero_shared = false;  // also zero shared memory, with an initialiser that the device supports
  bool proven = false;       // the driver has compiled it in another process; cached on disk separately
  // PTX only. These are not serialised: the driver compiles PTX, in this process, and caches it itself.
  std::array<uint32_t, 3> workgroup_size{};  // zeros: as the entry point requires
  uint32_t shared_bytes = 0;                 // for the launch, in addition to what the module declares
};

// What a launch needs to know, taken from the module.
struct KernelInterface {
  struct Binding {
    bool used = false, read = false, written = false;
    uint64_t min_bytes = 0;  // counts a runtime-sized array as one element
  };
  std::vector<Binding> bindings;  // indexed by binding number, up to the highest declared
  uint32_t push_bytes = 0;
  std::array<uint32_t, 3> workgroup_size{1, 1, 1};
  uint64_t loop_iterations = 0;        // of the longest loop whose iteration count is known
  uint64_t shared_bytes = 0;           // in std430 layout, which is how Vulkan counts
  std::vector<uint32_t> capabilities;  // SPIR-V's numbers

  // PTX only, not serialised either.
  struct Parameter {
    bool is_buffer;
    uint32_t at;  // the binding number, or the offset in the push constants
  };
  std::string entry;
  std::vector<Parameter> parameters;  // in the order of the entry point
  uint32_t dynamic_shared_bytes = 0;
  uint64_t alignment = 1;  // of buffers
  bool overlaps = false;   // buffers may overlap
};

struct CompiledKernel {
  std::vector<uint32_t> words;  // SPIR-V, with specialisation constants replaced by their values
  std::string warnings;
  KernelInterface interface;
};

// A kernel whose variables or values need more memory per invocation is rejected: drivers allocate it on their stacks
// and crash if it does not fit.
constexpr uint64_t kMaxPrivateBytes = 64 << 10;
// Limit for SPIR-V, from the caller or the compiler.
constexpr uint64_t kMaxModuleBytes = 16 << 20;
// Limit for modules from untrusted source: the driver compiles them in this process, which cannot be interrupted.
constexpr uint64_t kMaxUntrustedModuleBytes = 1 << 20;

// Runs all steps in this process: GLSL to SPIR-V, validation, specialisation, reflection. Throws COMPILE_FAILED with
// the compiler's message, LIMIT_EXCEEDED, UNSUPPORTED, INVALID_ARGUMENT.
CompiledKernel compile_custom(const CustomSource& source);

// The same in a separate process, which is limited in time and memory and may crash.
struct CompileLimits {
  uint64_t milliseconds, memory_bytes;
};
CompiledKernel compile_isolated(const CustomSource& source, const CompileLimits& limits);

// A compiled kernel that the driver compiles in such a process first. A kernel that crashes the driver there is
// rejected.
struct DriverTrial {
  std::string name, entry;
  std::vector<uint32_t> words;
  std::vector<uint32_t> bindings;  // the numbers of the bindings in use
  uint32_t push_bytes = 0;
  bool robust = false;
  bool cpu = false;                                    // a CPU device, whose driver needs nothing under /dev
  std::array<uint8_t, 16> device{}, pipeline_cache{};  // UUIDs of the device and of the driver's build
};
// Throws COMPILE_FAILED, LIMIT_EXCEEDED (after limits.milliseconds), or UNSUPPORTED if the driver does not run there.
void try_driver(const DriverTrial& trial, const CompileLimits& limits);

// --- the steps -------------------------------------------------------------------------------------------

// SPIR-V from untrusted bytes. Checks the size, magic number, version and instruction lengths.
std::vector<uint32_t> spirv_from_bytes(std::string_view bytes);
// Throws COMPILE_FAILED with SPIRV-Tools' message.
void validate_spirv(const std::vector<uint32_t>& words, const std::string& name);
// Replaces specialisation constants with values. INVALID_ARGUMENT for an id that the module does not have.
void specialise(std::vector<uint32_t>& words, std::span<const CustomSource::Constant> constants);
// Returns the module with every index into its own variables clamped to their size (keep_bounds.cpp); valid input gives
// valid output. COMPILE_FAILED, UNSUPPORTED or LIMIT_EXCEEDED for what cannot be bounded. `module` describes `words`.
class SpirvModule;
uint64_t longest_loop(const std::vector<uint32_t>& words, const SpirvModule& module);  // iterations; 0: unknown
std::vector<uint32_t> keep_in_bounds(const std::vector<uint32_t>& words, const SpirvModule& module, bool zero_shared);
// `words` is a valid module. UNSUPPORTED for a resource that is not a storage buffer in set 0.
KernelInterface reflect(const std::vector<uint32_t>& words, const std::string& entry);
// Every buffer that the entry point names counts as read and written. COMPILE_FAILED for text that is not PTX, as far
// as this needs to read it; INVALID_ARGUMENT for another entry or workgroup size than the module has.
// UNSUPPORTED for a parameter that points to memory of a larger alignment than every allocation has: a launch checks
// where a buffer begins in its allocation.
constexpr uint32_t kMaxPtxPushBytes = 256;
constexpr uint64_t kMaxBufferAlignment = 256;
KernelInterface reflect_ptx(const CustomSource& source);

// --- serialisation, for pipes and files ------------------------------------------------------------------

std::string to_bytes(const CustomSource& source);
std::string to_bytes(const CompiledKernel& kernel);
std::string to_bytes(const DriverTrial& trial);
// Returns false for bytes that to_bytes() did not produce.
bool from_bytes(std::string_view bytes, CustomSource& source);
bool from_bytes(std::string_view bytes, CompiledKernel& kernel);
bool from_bytes(std::string_view bytes, DriverTrial& trial);

// --- launches --------------------------------------------------------------------------------------------

struct Buffer;
struct ExtensionCall;
struct LaunchArgs {
  std::span<const Buffer* const> buffers;
  const void* push = nullptr;
  uint32_t push_bytes = 0;
  std::array<uint32_t, 3> groups{1, 1, 1};
  const ExtensionCall* call = nullptr;  // for a registered operation: messages name its arguments
};
bool buffers_overlap(const Buffer& a, const Buffer& b);
struct LaunchLimits {
  uint64_t max_range, alignment;
  std::array<uint32_t, 3> max_groups;
};
void check_launch(const KernelInterface& kernel, const LaunchArgs& args, const LaunchLimits& limits);

}  // namespace tuff
