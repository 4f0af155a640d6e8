#include "planners/kernel_facts.hpp"

#include <shaderc/shaderc.h>
#include <xxhash.h>

#include <memory>
#include <spirv_cross/spirv.hpp>
#include <vector>

#include "planning/status.hpp"
#include "runtime/custom/spirv_module.hpp"
#include "runtime/vulkan/shader_compiler.hpp"

namespace tuff_test {
namespace {

uint64_t key_of(const tuff::KernelRequest& kernel, const tuff::KernelForm& form) {
  std::array<uint64_t, 2 * (tuff::KernelRequest::kMaxDefines + tuff::KernelRequest::kMaxConstants) + 4> words{};
  size_t count = 0;
  words[count++] = reinterpret_cast<uintptr_t>(&kernel.source());
  words[count++] = (kernel.is_wide() ? 1u : 0u) | (form.addresses ? 2u : 0u) | (form.group_rows ? 4u : 0u) |
                   (form.far ? 8u : 0u) | static_cast<uint64_t>(kernel.matrices()) << 8;
  for (uint32_t i = 0; i < kernel.define_count(); ++i) {
    words[count++] = reinterpret_cast<uintptr_t>(kernel.defines()[i].name);
    words[count++] = static_cast<uint64_t>(kernel.defines()[i].value);
  }
  for (uint32_t i = 0; i < kernel.constant_count(); ++i) {
    words[count++] = kernel.constants()[i].id;
    words[count++] = kernel.constants()[i].value;
  }
  return XXH3_64bits(words.data(), count * sizeof words[0]);
}

// Compiles without optimisations, which change none of the facts.
std::vector<uint32_t> compiled_fast(const tuff::KernelRequest& kernel, const tuff::KernelForm& form) {
  using Compiler = std::unique_ptr<shaderc_compiler, decltype(&shaderc_compiler_release)>;
  using Options = std::unique_ptr<shaderc_compile_options, decltype(&shaderc_compile_options_release)>;
  using Result = std::unique_ptr<shaderc_compilation_result, decltype(&shaderc_result_release)>;
  static const Compiler compiler(shaderc_compiler_initialize(), &shaderc_compiler_release);
  const Options options(shaderc_compile_options_initialize(), &shaderc_compile_options_release);
  shaderc_compile_options_set_target_env(options.get(), shaderc_target_env_vulkan, shaderc_env_version_vulkan_1_2);
  const std::string text = tuff::kernel_text(kernel, form, {});
  const Result result(shaderc_compile_into_spv(compiler.get(), text.data(), text.size(), shaderc_compute_shader,
                                               kernel.source().name, "main", options.get()),
                      &shaderc_result_release);
  if (shaderc_result_get_compilation_status(result.get()) != shaderc_compilation_status_success) {
    tuff::fail(TUFF_ERROR_COMPILE_FAILED, "{} does not compile: {}", kernel.source().name,
               shaderc_result_get_error_message(result.get()));
  }
  const auto* words = reinterpret_cast<const uint32_t*>(shaderc_result_get_bytes(result.get()));
  return {words, words + shaderc_result_get_length(result.get()) / sizeof(uint32_t)};
}

// Sets the module's specialisation constants to the values of the request.
void specialise(std::vector<uint32_t>& words, const tuff::KernelRequest& kernel) {
  std::unordered_map<uint32_t, uint32_t> values;  // by the IDs of the constants in the module
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    const uint32_t op = words[at] & 0xffff;
    if (op == spv::OpDecorate && words[at + 2] == spv::DecorationSpecId) {
      for (uint32_t i = 0; i < kernel.constant_count(); ++i) {
        if (kernel.constants()[i].id == words[at + 3]) values[words[at + 1]] = kernel.constants()[i].value;
      }
    } else if (op == spv::OpSpecConstant && values.contains(words[at + 2])) {
      words[at + 3] = values[words[at + 2]];
    }
  }
}

KernelFact facts_of(const std::vector<uint32_t>& words, bool by_slots) {
  uint32_t entry = 0;
  std::unordered_map<uint32_t, uint32_t> slots;  // by variable
  tuff::for_each_instruction(words, [&](tuff::SpirvInstruction instruction) {
    const uint32_t op = tuff::opcode(instruction);
    if (op == spv::OpEntryPoint) entry = instruction[2];
    if (op == spv::OpDecorate && instruction[2] == spv::DecorationBinding) slots[instruction[1]] = instruction[3];
  });
  const tuff::SpirvModule module(words, entry);
  KernelFact fact;
  fact.workgroup = module.workgroup_size();
  fact.shared_bytes = module.shared_bytes();
  fact.by_slots = by_slots;
  for (const auto& [variable, slot] : slots) {
    if (module.writes(variable)) fact.writes |= 1u << slot;
  }
  return fact;
}

}  // namespace

const KernelFact* KernelFacts::of(const tuff::KernelRequest& kernel, const tuff::KernelForm& form) {
  ++asked_;
  const uint64_t key = key_of(kernel, form);
  const auto found = facts_.find(key);
  if (found != facts_.end()) return &found->second;
  if (facts_.size() >= most_) {
    ++unknown_;
    return nullptr;
  }
  std::vector<uint32_t> words = compiled_fast(kernel, form);
  specialise(words, kernel);
  return &facts_.emplace(key, facts_of(words, !form.addresses)).first->second;
}

}  // namespace tuff_test
