#include "runtime/vulkan/shader_compiler.hpp"

#include <fmt/format.h>
#include <shaderc/shaderc.h>

#include <memory>

#include "planning/kernel_source.hpp"
#include "planning/status.hpp"
#include "runtime/custom/compilers.hpp"
#include "runtime/vulkan/precise_spirv.hpp"

namespace tuff {

std::string kernel_text(const KernelRequest& kernel, const KernelForm& form, const FloatControls& controls) {
  std::string text = "#version 460\n";
  text +=
      fmt::format("#define TUFF_ADDRESSES {}\n#define TUFF_WIDE {}\n#define TUFF_FAR {}\n#define TUFF_GROUP_ROWS {}\n",
                  form.addresses ? 1 : 0, kernel.is_wide() ? 1 : 0, form.far ? 1 : 0, form.group_rows ? 1 : 0);
  if (form.texels != 0) text += "#define TUFF_TEXELS 1\n";
  // bf16 modules are f16 modules whose 16-bit type is reinterpreted afterwards; that would break conversions to true
  // f16.
  const bool has_f16 = kernel.matrices() != Matrices::bf16;
  const bool rounds_f16 = controls.rounds_f16 && has_f16;
  text += fmt::format("#define TUFF_ROUNDS_F16 {}\n", rounds_f16 ? 1 : 0);
  text += fmt::format("#define TUFF_PRESERVES_F32 {}\n", controls.preserves_f32 && !rounds_f16 ? 1 : 0);
  if (kernel.matrices() != Matrices::none) {
    text += fmt::format("#define TUFF_KHR_MATRICES {}\n", TUFF_SHADERC_KHR_MATRICES);
    text += fmt::format("#define TUFF_MATRICES_INT8 {}\n", kernel.matrices() == Matrices::int8 ? 1 : 0);
    // Not used by any kernel, but the cache is keyed by the text, and f16 and bf16 differ in nothing else.
    text += fmt::format("#define TUFF_MATRICES {}\n", static_cast<int>(kernel.matrices()));
  }
  for (uint32_t i = 0; i < kernel.define_count(); ++i) {
    text += fmt::format("#define {} {}\n", kernel.defines()[i].name, kernel.defines()[i].value);
  }
  text += shaders::prelude.glsl;
  text += fmt::format("\n#line 1 // {}\n", kernel.source().name);
  const std::string_view glsl = kernel.source().glsl;
  if (kernel.body() == nullptr) return text.append(glsl);
  constexpr std::string_view kPlace = "\nTUFF_BODY\n";
  const size_t place = glsl.find(kPlace);
  if (place == std::string_view::npos) fail(TUFF_ERROR_INTERNAL, "{} has no place for a body", kernel.source().name);
  text.append(glsl.substr(0, place + 1)).append(kernel.body()->text);
  return text.append(glsl.substr(place + kPlace.size() - 1));
}

std::vector<uint32_t> compile_glsl(const std::string& name, const std::string& text) {
  using Options = std::unique_ptr<shaderc_compile_options, decltype(&shaderc_compile_options_release)>;
  using Result = std::unique_ptr<shaderc_compilation_result, decltype(&shaderc_result_release)>;
  require_compilers();
  const shaderc_compiler_t compiler = kept_shaderc();
  const Options options(shaderc_compile_options_initialize(), &shaderc_compile_options_release);
  if (!options) fail(TUFF_ERROR_OUT_OF_HOST_MEMORY, "shaderc could not be started");
  shaderc_compile_options_set_target_env(options.get(), shaderc_target_env_vulkan, shaderc_env_version_vulkan_1_2);
  shaderc_compile_options_set_optimization_level(options.get(), shaderc_optimization_level_performance);
  const Result result(shaderc_compile_into_spv(compiler, text.data(), text.size(), shaderc_compute_shader, name.c_str(),
                                               "main", options.get()),
                      &shaderc_result_release);
  require_memory(result.get(), name);
  if (shaderc_result_get_compilation_status(result.get()) != shaderc_compilation_status_success) {
    fail(TUFF_ERROR_COMPILE_FAILED, "{} does not compile: {}", name, shaderc_result_get_error_message(result.get()));
  }
  const auto* words = reinterpret_cast<const uint32_t*>(shaderc_result_get_bytes(result.get()));
  return keep_precise({words, words + shaderc_result_get_length(result.get()) / sizeof(uint32_t)});
}

}  // namespace tuff
