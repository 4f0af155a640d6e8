// Determines a kernel's interface: resources and their sizes with SPIRV-Cross, accesses with SpirvModule.
#include <fmt/format.h>
#include <spirv_cross/spirv_cross_c.h>

#include <algorithm>
#include <memory>
#include <string>

#include "planning/status.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "runtime/custom/spirv_module.hpp"

namespace tuff {
namespace {

class Reflection {
 public:
  Reflection(const std::vector<uint32_t>& words, const std::string& entry) {
    if (spvc_context_create(&context_) != SPVC_SUCCESS) fail(TUFF_ERROR_OUT_OF_HOST_MEMORY, "SPIRV-Cross");
    owner_.reset(context_);
    spvc_parsed_ir ir = nullptr;
    check(spvc_context_parse_spirv(context_, words.data(), words.size(), &ir));
    check(spvc_context_create_compiler(context_, SPVC_BACKEND_NONE, ir, SPVC_CAPTURE_MODE_TAKE_OWNERSHIP, &compiler_));
    check(spvc_compiler_set_entry_point(compiler_, entry.c_str(), SpvExecutionModelGLCompute));
    check(spvc_compiler_create_shader_resources(compiler_, &declared_));
  }

  std::span<const spvc_reflected_resource> declared(spvc_resource_type type) const {
    const spvc_reflected_resource* items = nullptr;
    size_t count = 0;
    check(spvc_resources_get_resource_list_for_type(declared_, type, &items, &count));
    return {items, count};
  }
  uint32_t decoration(const spvc_reflected_resource& resource, SpvDecoration name) const {
    return spvc_compiler_get_decoration(compiler_, resource.id, name);
  }
  bool is_array(const spvc_reflected_resource& resource) const {
    return spvc_type_get_num_array_dimensions(spvc_compiler_get_type_handle(compiler_, resource.type_id)) != 0;
  }
  // A runtime-sized array counts as one element.
  uint64_t block_bytes(const spvc_reflected_resource& resource) const {
    size_t bytes = 0;
    const spvc_type type = spvc_compiler_get_type_handle(compiler_, resource.base_type_id);
    check(spvc_compiler_get_declared_struct_size_runtime_array(compiler_, type, 1, &bytes));
    return bytes;
  }
  std::vector<uint32_t> capabilities() const {
    const SpvCapability* list = nullptr;
    size_t count = 0;
    check(spvc_compiler_get_declared_capabilities(compiler_, &list, &count));
    return {list, list + count};
  }

 private:
  void check(spvc_result result) const {
    if (result == SPVC_SUCCESS) return;
    if (result == SPVC_ERROR_OUT_OF_MEMORY) fail(TUFF_ERROR_OUT_OF_HOST_MEMORY, "SPIRV-Cross ran out of memory");
    fail(TUFF_ERROR_COMPILE_FAILED, "SPIRV-Cross: {}", spvc_context_get_last_error_string(context_));
  }

  spvc_context context_ = nullptr;
  std::unique_ptr<spvc_context_s, decltype(&spvc_context_destroy)> owner_{nullptr, &spvc_context_destroy};
  spvc_compiler compiler_ = nullptr;
  spvc_resources declared_ = nullptr;
};

struct Refused {
  spvc_resource_type type;
  const char* name;
};
constexpr Refused kRefused[] = {
    {SPVC_RESOURCE_TYPE_UNIFORM_BUFFER, "a uniform buffer"},
    {SPVC_RESOURCE_TYPE_STORAGE_IMAGE, "an image"},
    {SPVC_RESOURCE_TYPE_SAMPLED_IMAGE, "a sampler"},
    {SPVC_RESOURCE_TYPE_SEPARATE_IMAGE, "a texture"},
    {SPVC_RESOURCE_TYPE_SEPARATE_SAMPLERS, "a sampler"},
    {SPVC_RESOURCE_TYPE_SUBPASS_INPUT, "a subpass input"},
    {SPVC_RESOURCE_TYPE_ATOMIC_COUNTER, "an atomic counter"},
    {SPVC_RESOURCE_TYPE_ACCELERATION_STRUCTURE, "an acceleration structure"},
    {SPVC_RESOURCE_TYPE_STAGE_INPUT, "a stage input"},
    {SPVC_RESOURCE_TYPE_STAGE_OUTPUT, "a stage output"},
};

std::string_view resource_name(const spvc_reflected_resource& resource) {
  return resource.name != nullptr && *resource.name != '\0' ? resource.name : "without a name";
}

void check_resource_types(const Reflection& module) {
  for (const Refused& refused : kRefused) {
    for (const spvc_reflected_resource& resource : module.declared(refused.type)) {
      fail(TUFF_ERROR_UNSUPPORTED, "the kernel declares {} ({}); only storage buffers and push constants can be bound",
           refused.name, resource_name(resource));
    }
  }
}

void check_place(const Reflection& module, const spvc_reflected_resource& buffer) {
  const uint32_t set = module.decoration(buffer, SpvDecorationDescriptorSet);
  if (set != 0) {
    fail(TUFF_ERROR_UNSUPPORTED, "buffer {} is in set {}; buffers are bound in set 0", resource_name(buffer), set);
  }
  const uint32_t binding = module.decoration(buffer, SpvDecorationBinding);
  if (binding >= TUFF_KERNEL_MAX_BINDINGS) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "buffer {} has binding {}; bindings are 0 to {}", resource_name(buffer), binding,
         TUFF_KERNEL_MAX_BINDINGS - 1);
  }
  if (module.is_array(buffer)) {
    fail(TUFF_ERROR_UNSUPPORTED, "binding {} ({}) is an array of buffers; each buffer needs its own binding", binding,
         resource_name(buffer));
  }
}

uint32_t entry_function(const std::vector<uint32_t>& words, const std::string& entry) {
  uint32_t id = 0;
  for_each_instruction(words, [&](SpirvInstruction instruction) {
    if (opcode(instruction) != SpvOpEntryPoint || instruction[1] != SpvExecutionModelGLCompute) return;
    if (entry == reinterpret_cast<const char*>(instruction.data() + 3)) id = instruction[2];
  });
  return id;
}

}  // namespace

KernelInterface reflect(const std::vector<uint32_t>& words, const std::string& entry) {
  const SpirvModule facts(words, entry_function(words, entry));
  const Reflection module(facts.with_values(), entry);
  check_resource_types(module);
  KernelInterface found;
  for (const spvc_reflected_resource& buffer : module.declared(SPVC_RESOURCE_TYPE_STORAGE_BUFFER)) {
    check_place(module, buffer);
    const uint32_t number = module.decoration(buffer, SpvDecorationBinding);
    found.bindings.resize(std::max<size_t>(found.bindings.size(), number + 1));
    if (!facts.uses(buffer.id)) continue;
    // A binding may be declared several times with different block types.
    KernelInterface::Binding& binding = found.bindings[number];
    binding.used = true;
    binding.read = binding.read || facts.reads(buffer.id);
    binding.written = binding.written || facts.writes(buffer.id);
    binding.min_bytes = std::max(binding.min_bytes, module.block_bytes(buffer));
  }
  for (const spvc_reflected_resource& block : module.declared(SPVC_RESOURCE_TYPE_PUSH_CONSTANT)) {
    found.push_bytes = std::max(found.push_bytes, static_cast<uint32_t>(module.block_bytes(block)));
  }
  found.workgroup_size = facts.workgroup_size();
  found.loop_iterations = longest_loop(words, facts);
  found.shared_bytes = facts.shared_bytes();
  found.capabilities = module.capabilities();
  if (const uint64_t bytes = facts.private_bytes(); bytes > kMaxPrivateBytes) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "each invocation needs {} bytes for its variables, at most {} are allowed", bytes,
         kMaxPrivateBytes);
  }
  return found;
}

}  // namespace tuff
