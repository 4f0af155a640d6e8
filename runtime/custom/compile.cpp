// Compiles GLSL or SPIR-V to a kernel that is valid and whose interface is known.
#include <shaderc/shaderc.h>
#include <spirv-tools/libspirv.h>

#include <spirv_cross/spirv.hpp>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "planning/status.hpp"
#include "runtime/custom/compilers.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "runtime/custom/spirv_module.hpp"

namespace tuff {
namespace {

// SPIR-V 1.0 to 1.5, the versions that Vulkan 1.2 accepts.
constexpr uint32_t kFirstVersion = 0x00010000, kLastVersion = 0x00010500;

bool is_identifier(const std::string& name) {
  const auto in_name = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), in_name);
}

std::string without_last_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Returns the position of the first text that is neither space nor comment, and counts lines up to it.
size_t skip_blank(std::string_view text, size_t at, uint32_t& line) {
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    size_t end = at + 1;
    if (rest.starts_with("//")) {
      end = std::min(text.find('\n', at), text.size());
    } else if (rest.starts_with("/*")) {
      const size_t close = text.find("*/", at + 2);
      end = close == std::string_view::npos ? text.size() : close + 2;
    } else if (!std::isspace(static_cast<unsigned char>(rest[0]))) {
      break;
    }
    line += static_cast<uint32_t>(std::count(text.begin() + at, text.begin() + end, '\n'));
    at = end;
  }
  return at;
}

// For versions without compute shaders, glslang cannot parse its own declarations and writes them to standard output.
// So versions are checked before it is called.
void check_version(const CustomSource& source) {
  uint32_t line = 1;
  const size_t begin = skip_blank(source.text, 0, line);
  std::string directive;
  for (const char c : source.text.substr(begin, source.text.find('\n', begin) - begin)) {
    if (!std::isspace(static_cast<unsigned char>(c))) directive += c;
  }
  directive = directive.substr(0, std::min(directive.find("//"), directive.find("/*")));
  constexpr const char* kVersions[] = {"430", "440", "450", "460", "310es", "320es"};
  for (const char* version : kVersions) {
    if (directive == std::string("#version") + version || directive == std::string("#version") + version + "core")
      return;
  }
  fail(TUFF_ERROR_COMPILE_FAILED,
       "{}:{}: error: GLSL begins with #version 430, 440, 450, 460, 310 es or 320 es: these have compute shaders",
       source.name, line);
}

// No optimiser: drivers have their own, and declared resources must stay declared.
std::vector<uint32_t> compile_text(const CustomSource& source, std::string& warnings) {
  using Options = std::unique_ptr<shaderc_compile_options, decltype(&shaderc_compile_options_release)>;
  using Result = std::unique_ptr<shaderc_compilation_result, decltype(&shaderc_result_release)>;
  for (const CustomSource::Define& define : source.defines) {
    require(is_identifier(define.name), "defines: \"{}\" is not a valid macro name", define.name);
    require(define.value.find_first_of("\n\r") == std::string::npos, "defines: the value of {} has a line break",
            define.name);
  }
  check_version(source);
  const shaderc_compiler_t compiler = kept_shaderc();
  const Options options(shaderc_compile_options_initialize(), &shaderc_compile_options_release);
  if (!options) fail(TUFF_ERROR_OUT_OF_HOST_MEMORY, "shaderc could not be started");
  shaderc_compile_options_set_target_env(options.get(), shaderc_target_env_vulkan, shaderc_env_version_vulkan_1_2);
  // Devices have their own limits, which are checked later.
  for (const shaderc_limit limit :
       {shaderc_limit_max_compute_work_group_size_x, shaderc_limit_max_compute_work_group_size_y,
        shaderc_limit_max_compute_work_group_size_z}) {
    shaderc_compile_options_set_limit(options.get(), limit, 1 << 30);
  }
  for (const CustomSource::Define& define : source.defines) {
    shaderc_compile_options_add_macro_definition(options.get(), define.name.data(), define.name.size(),
                                                 define.value.data(), define.value.size());
  }
  const Result result(shaderc_compile_into_spv(compiler, source.text.data(), source.text.size(), shaderc_compute_shader,
                                               source.name.c_str(), "main", options.get()),
                      &shaderc_result_release);
  require_memory(result.get(), source.name);
  std::string messages = without_last_newline(shaderc_result_get_error_message(result.get()));
  if (shaderc_result_get_compilation_status(result.get()) != shaderc_compilation_status_success) {
    fail(TUFF_ERROR_COMPILE_FAILED, "{}", messages.empty() ? source.name + ": it does not compile" : messages);
  }
  warnings = std::move(messages);
  const size_t bytes = shaderc_result_get_length(result.get());
  if (bytes > kMaxModuleBytes) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "{} compiles to {} bytes of SPIR-V, at most {} are allowed", source.name, bytes,
         kMaxModuleBytes);
  }
  const auto* words = reinterpret_cast<const uint32_t*>(shaderc_result_get_bytes(result.get()));
  return {words, words + bytes / sizeof(uint32_t)};
}

const char* model_name(uint32_t model) {
  switch (model) {
    case spv::ExecutionModelVertex: return "vertex";
    case spv::ExecutionModelTessellationControl:
    case spv::ExecutionModelTessellationEvaluation: return "tessellation";
    case spv::ExecutionModelGeometry: return "geometry";
    case spv::ExecutionModelFragment: return "fragment";
    case spv::ExecutionModelKernel: return "OpenCL";
    default: return "special-purpose";
  }
}

// Runs before validation, which reports the same with a longer message.
void check_entry(const std::vector<uint32_t>& words, const std::string& entry) {
  std::string others;
  uint32_t other_model = ~0u;
  bool found = false;
  for_each_instruction(words, [&](SpirvInstruction instruction) {
    if (opcode(instruction) != spv::OpEntryPoint || instruction.size() < 4) return;
    const auto* text = reinterpret_cast<const char*>(instruction.data() + 3);
    const std::string name(text, strnlen(text, (instruction.size() - 3) * sizeof(uint32_t)));
    if (name != entry) {
      others += (others.empty() ? "" : ", ") + name;
    } else if (instruction[1] == spv::ExecutionModelGLCompute) {
      found = true;
    } else {
      other_model = instruction[1];
    }
  });
  if (found) return;
  if (other_model != ~0u) {
    fail(TUFF_ERROR_UNSUPPORTED, "entry \"{}\" is a {} shader, needs a compute shader", entry, model_name(other_model));
  }
  require(false, "entry is \"{}\", the module has {}", entry, others.empty() ? "no entry points" : others);
}

}  // namespace

std::vector<uint32_t> spirv_from_bytes(std::string_view bytes) {
  constexpr size_t kHeader = 5 * sizeof(uint32_t);
  require(bytes.size() >= kHeader && bytes.size() % sizeof(uint32_t) == 0,
          "source is {} bytes, SPIR-V is a multiple of 4 and at least {}", bytes.size(), kHeader);
  std::vector<uint32_t> words(bytes.size() / sizeof(uint32_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  require(words[0] == spv::MagicNumber,
          "source begins with {:#010x}, SPIR-V with {:#010x} in this machine's byte order", words[0],
          +spv::MagicNumber);
  require(words[1] >= kFirstVersion && words[1] <= kLastVersion,
          "source is SPIR-V of version {:#x}, needs {:#x} to {:#x} (1.0 to 1.5)", words[1], kFirstVersion,
          kLastVersion);
  for (size_t at = 5; at < words.size();) {
    const uint32_t count = words[at] >> 16;
    require(count != 0 && count <= words.size() - at,
            "source: the SPIR-V instruction at word {} has {} words, {} are left", at, count, words.size() - at);
    at += count;
  }
  return words;
}

void validate_spirv(const std::vector<uint32_t>& words, const std::string& name) {
  const std::unique_ptr<spv_context_t, decltype(&spvContextDestroy)> context(spvContextCreate(SPV_ENV_VULKAN_1_2),
                                                                             &spvContextDestroy);
  spv_diagnostic diagnostic = nullptr;
  const spv_result_t result = spvValidateBinary(context.get(), words.data(), words.size(), &diagnostic);
  const std::unique_ptr<spv_diagnostic_t, decltype(&spvDiagnosticDestroy)> owner(diagnostic, &spvDiagnosticDestroy);
  if (result == SPV_SUCCESS) return;
  const char* text = diagnostic != nullptr && diagnostic->error != nullptr ? diagnostic->error : "no reason was given";
  fail(TUFF_ERROR_COMPILE_FAILED, "{}: its SPIR-V is not valid: {}", name, without_last_newline(text));
}

void specialise(std::vector<uint32_t>& words, std::span<const CustomSource::Constant> constants) {
  if (constants.empty()) return;
  std::unordered_map<uint32_t, uint32_t> numbers;        // by result id
  std::unordered_map<uint32_t, SpirvInstruction> types;  // integer and float types
  for_each_instruction(words, [&](SpirvInstruction instruction) {
    if (opcode(instruction) == spv::OpDecorate && instruction[2] == spv::DecorationSpecId) {
      numbers[instruction[1]] = instruction[3];
    } else if (opcode(instruction) == spv::OpTypeInt || opcode(instruction) == spv::OpTypeFloat) {
      types[instruction[1]] = instruction;
    }
  });
  std::unordered_map<uint32_t, uint64_t> values;
  for (const CustomSource::Constant& constant : constants) {
    require(values.emplace(constant.id, constant.bits).second, "constants: id {} occurs twice", constant.id);
    const bool known =
        std::any_of(numbers.begin(), numbers.end(), [&](const auto& number) { return number.second == constant.id; });
    require(known, "constants: the kernel has no specialisation constant of id {}", constant.id);
  }
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    const uint32_t op = words[at] & 0xffff, count = words[at] >> 16;
    const bool boolean = op == spv::OpSpecConstantTrue || op == spv::OpSpecConstantFalse;
    if (!boolean && op != spv::OpSpecConstant) continue;
    const auto number = numbers.find(words[at + 2]);
    if (number == numbers.end()) continue;
    const auto value = values.find(number->second);
    if (value == values.end()) continue;
    uint64_t bits = value->second;
    if (const auto type = types.find(words[at + 1]); type != types.end() && type->second[2] < 32) {
      // A narrow number fills its whole word, sign-extended or zero-extended.
      const uint32_t unused = 64 - type->second[2];
      const bool has_sign = opcode(type->second) == spv::OpTypeInt && type->second[3] == 1;
      bits =
          has_sign ? static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused) : bits << unused >> unused;
    }
    if (boolean) {
      words[at] = count << 16 | (bits != 0 ? +spv::OpSpecConstantTrue : +spv::OpSpecConstantFalse);
    } else {
      words[at + 3] = static_cast<uint32_t>(bits);
      if (count > 4) words[at + 4] = static_cast<uint32_t>(bits >> 32);
    }
  }
}

CompiledKernel compile_custom(const CustomSource& source) {
  require_compilers();
  CompiledKernel kernel;
  if (source.language == TUFF_KERNEL_GLSL) {
    kernel.words = compile_text(source, kernel.warnings);
  } else {
    kernel.words = spirv_from_bytes(source.text);
    check_entry(kernel.words, source.entry);
  }
  validate_spirv(kernel.words, source.name);
  specialise(kernel.words, source.constants);
  kernel.interface = reflect(kernel.words, source.entry);
  if (source.in_bounds) {
    kernel.words = keep_in_bounds(kernel.words, SpirvModule(kernel.words, 0), source.zero_shared);
    try {
      validate_spirv(kernel.words, source.name);
    } catch (const Error& error) {  // it was valid before keep_in_bounds()
      fail(TUFF_ERROR_INTERNAL, "kept in bounds, {}", error.what());
    }
  }
  return kernel;
}

}  // namespace tuff
