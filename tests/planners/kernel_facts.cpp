#include "planners/kernel_facts.hpp"

#include <shaderc/shaderc.h>
#include <xxhash.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <spirv_cross/spirv.hpp>
#include <vector>

#include "planners/convergence.hpp"
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
  words[count++] = kernel.body() != nullptr ? kernel.body()->hash : 0;
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
std::vector<uint32_t> compiled_fast(const tuff::KernelRequest& kernel, const std::string& text) {
  using Compiler = std::unique_ptr<shaderc_compiler, decltype(&shaderc_compiler_release)>;
  using Options = std::unique_ptr<shaderc_compile_options, decltype(&shaderc_compile_options_release)>;
  using Result = std::unique_ptr<shaderc_compilation_result, decltype(&shaderc_result_release)>;
  static const Compiler compiler(shaderc_compiler_initialize(), &shaderc_compiler_release);
  const Options options(shaderc_compile_options_initialize(), &shaderc_compile_options_release);
  shaderc_compile_options_set_target_env(options.get(), shaderc_target_env_vulkan, shaderc_env_version_vulkan_1_2);
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

// The optimised form, in which functions are inlined and variables are values, of kernels with operations in question.
void add_convergence(KernelFact& fact, const std::vector<uint32_t>& fast, const tuff::KernelRequest& kernel,
                     const std::string& text) {
  if (!has_common_operations(fast)) return;
  std::vector<uint32_t> words = tuff::compile_glsl(kernel.source().name, text);
  specialise(words, kernel);
  const Convergence convergence = convergence_of(words);
  fact.operations = convergence.operations;
  fact.by_subgroup = convergence.by_subgroup;
  fact.diverging = static_cast<uint32_t>(convergence.findings.size());
  if (convergence.findings.empty()) return;
  std::printf("%s\n", kernel.source().name);
  for (const std::string& finding : convergence.findings) std::printf("  %s\n", finding.c_str());
}

// To be changed with what is stored, so that a file of an earlier build is not misread.
constexpr uint64_t kVersion = 2;

// The same in every process.
uint64_t stored_key_of(const tuff::KernelRequest& kernel, const tuff::KernelForm& form, const std::string& text) {
  uint64_t key = XXH3_64bits_withSeed(text.data(), text.size(), 2 * kVersion + (form.addresses ? 1 : 0));
  for (uint32_t i = 0; i < kernel.constant_count(); ++i) {
    const uint32_t words[] = {kernel.constants()[i].id, kernel.constants()[i].value};
    key = XXH3_64bits_withSeed(words, sizeof words, key);
  }
  return key;
}

struct StoredFact {
  uint64_t key;
  KernelFact fact;
};
static_assert(std::is_trivially_copyable_v<StoredFact>);

using File = std::unique_ptr<std::FILE, decltype(&std::fclose)>;

}  // namespace

KernelFacts::KernelFacts(uint64_t most, std::string file, bool converges)
    : converges_(converges), most_(most), file_(std::move(file)) {
  const File from(std::fopen(file_.c_str(), "rb"), &std::fclose);
  StoredFact row{};
  while (from && std::fread(&row, sizeof row, 1, from.get()) == 1) stored_[row.key] = row.fact;
}

KernelFacts::~KernelFacts() {
  if (file_.empty() || compiled_ == 0) return;
  const std::string name = file_ + "." + std::to_string(getpid());
  {
    const File to(std::fopen(name.c_str(), "wb"), &std::fclose);
    for (const auto& [key, fact] : stored_) {
      StoredFact row{};
      row.key = key, row.fact = fact;
      if (!to || std::fwrite(&row, sizeof row, 1, to.get()) != 1) return;
    }
  }
  std::rename(name.c_str(), file_.c_str());
}

const KernelFact* KernelFacts::of(const tuff::KernelRequest& kernel, const tuff::KernelForm& form) {
  ++asked_;
  const uint64_t key = key_of(kernel, form);
  const auto found = facts_.find(key);
  if (found != facts_.end()) return &found->second;
  if (compiled_ >= most_ && stored_.empty()) {
    ++unknown_;
    return nullptr;
  }
  const std::string text = tuff::kernel_text(kernel, form, {});
  const uint64_t stored_key = stored_key_of(kernel, form, text) ^ (converges_ ? 1 : 0);
  if (const auto stored = stored_.find(stored_key); stored != stored_.end()) {
    return &facts_.emplace(key, stored->second).first->second;
  }
  if (compiled_ >= most_) {
    ++unknown_;
    return nullptr;
  }
  std::vector<uint32_t> words = compiled_fast(kernel, text);
  specialise(words, kernel);
  ++compiled_;
  KernelFact fact = facts_of(words, !form.addresses);
  if (converges_) {
    add_convergence(fact, words, kernel, text);
    KernelFact& most = converging_[kernel.source().name];
    most.operations = std::max(most.operations, fact.operations);
    most.by_subgroup = std::max(most.by_subgroup, fact.by_subgroup);
  }
  if (!file_.empty()) stored_[stored_key] = fact;
  return &facts_.emplace(key, fact).first->second;
}

}  // namespace tuff_test
