// The library's side of tuff-compile.
#include <csignal>
#include <cstring>
#include <optional>
#include <system_error>

#include "planning/log.hpp"
#include "planning/status.hpp"
#include "platform/platform.hpp"
#include "platform/process.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "runtime/custom/helper/protocol.hpp"

namespace tuff {
namespace {

using platform::ProcessEnd;

// The time a driver may take to start on a busy machine; does not count against the kernel's time.
constexpr uint64_t kDriverStartMilliseconds = 60'000;
constexpr uint64_t kMaxWords = 64 << 10;  // for messages, in bytes

// Next to the library (a build folder, a wheel), or where an installation puts it. TUFF_COMPILE overrides both.
std::filesystem::path find_helper() {
  if (const auto chosen = platform::environment("TUFF_COMPILE")) {
    std::filesystem::path file(*chosen);
    if (file.is_absolute()) return file;
    fail(TUFF_ERROR_UNSUPPORTED, "TUFF_COMPILE is {}, needs the absolute path of the program tuff-compile", *chosen);
  }
  const std::filesystem::path folder = platform::library_folder();
  std::error_code error;
  for (const char* place : {"tuff-compile", TUFF_HELPER_FROM_LIBRARY}) {
    std::filesystem::path file = folder / place;
    // If the library's folder is unknown, the path is relative; anybody could have put such a file into the working
    // directory.
    if (file.is_absolute() && std::filesystem::is_regular_file(file, error)) return file;
  }
  fail(TUFF_ERROR_UNSUPPORTED,
       "untrusted source is compiled by the program tuff-compile, which is neither beside the library nor at {} (from "
       "{}); install it, or name it in TUFF_COMPILE",
       TUFF_HELPER_FROM_LIBRARY, folder.string());
}

// What the helper is doing, for messages.
struct Work {
  const std::string& name;
  const char* who;  // "the compiler", "the driver"
  const CompileLimits& limits;
};

[[noreturn]] void fail_without_answer(const Work& work, const ProcessEnd& end) {
  const auto& [name, who, limits] = work;
  switch (end.kind) {
    case ProcessEnd::Kind::timed_out:
      fail(TUFF_ERROR_LIMIT_EXCEEDED, "{}: compiling it took longer than {} ms", name, limits.milliseconds);
    case ProcessEnd::Kind::too_much_output:
      fail(TUFF_ERROR_LIMIT_EXCEEDED, "{}: it compiles to more than {} bytes of SPIR-V", name,
           kMaxUntrustedModuleBytes);
    case ProcessEnd::Kind::signalled:
      if (end.code == SIGALRM) {
        fail(TUFF_ERROR_LIMIT_EXCEEDED, "{}: {} took longer than {} ms to compile it", name, who, limits.milliseconds);
      }
      if (end.code == SIGXCPU || end.code == SIGKILL) {
        fail(TUFF_ERROR_LIMIT_EXCEEDED, "{}: compiling it took more CPU time or memory than allowed", name);
      }
      fail(TUFF_ERROR_COMPILE_FAILED, "{}: {} crashed on it (signal {}, in a separate process)", name, who, end.code);
    case ProcessEnd::Kind::exited:
      if (end.code == kHelperOutOfMemory) {
        fail(TUFF_ERROR_LIMIT_EXCEEDED, "{}: compiling it needs more than {} bytes of memory", name,
             limits.memory_bytes);
      }
      fail(TUFF_ERROR_COMPILE_FAILED, "{}: {} ended with status {}", name, who, end.code);
    default: fail(TUFF_ERROR_COMPILE_FAILED, "{}: {} ended without an answer", name, who);
  }
}

std::optional<std::string_view> take_message(std::string_view& output) {
  uint32_t length = 0;
  if (output.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, output.data(), sizeof length);
  if (output.size() - sizeof length < length) return std::nullopt;
  const std::string_view message = output.substr(sizeof length, length);
  output.remove_prefix(sizeof length + length);
  return message;
}

struct HelperAnswer {
  ProcessEnd end;
  std::optional<std::string> payload;  // nullopt: it ended without one
};

// Throws the error that the helper answers.
HelperAnswer ask(const Work& work, const std::vector<std::string>& arguments, std::string_view request,
                 uint64_t milliseconds, const std::vector<std::string>& environment) {
  const std::filesystem::path helper = find_helper();
  HelperAnswer answer{platform::run_program(helper, arguments, request, milliseconds,
                                            kMaxUntrustedModuleBytes + kMaxWords, environment),
                      std::nullopt};
  const ProcessEnd& end = answer.end;
  if (end.kind == ProcessEnd::Kind::not_started) {
    fail(TUFF_ERROR_UNSUPPORTED, "untrusted source is compiled by {}, which could not be started: {}", helper.string(),
         std::generic_category().message(end.code));
  }
  if (end.kind == ProcessEnd::Kind::timed_out || end.kind == ProcessEnd::Kind::too_much_output) return answer;
  std::string_view output = end.output;
  const auto confinement = take_message(output);
  if (!confinement) return answer;
  log(TUFF_LOG_DEBUG, "tuff-compile, for {}: {}", work.name, *confinement);
  const auto message = take_message(output);
  tuff_status status = TUFF_OK;
  if (!message || message->size() < sizeof status) return answer;
  std::memcpy(&status, message->data(), sizeof status);
  answer.payload = message->substr(sizeof status);
  if (status != TUFF_OK) throw Error(status, std::move(*answer.payload));
  return answer;
}

}  // namespace

CompiledKernel compile_isolated(const CustomSource& source, const CompileLimits& limits) {
  const Work work{source.name, "the compiler", limits};
  const uint64_t cpu_seconds = limits.milliseconds / 1000 + 1;
  const HelperAnswer answer = ask(work, {std::to_string(cpu_seconds), std::to_string(limits.memory_bytes)},
                                  to_bytes(source), limits.milliseconds, {});
  CompiledKernel kernel;
  if (!answer.payload || !from_bytes(*answer.payload, kernel)) fail_without_answer(work, answer.end);
  return kernel;
}

void try_driver(const DriverTrial& trial, const CompileLimits& limits) {
  // The variables that decide which driver is loaded and how it compiles.
  constexpr std::string_view kVariables[] = {"VK_DRIVER_FILES=",
                                             "VK_ICD_FILENAMES=",
                                             "VK_ADD_DRIVER_FILES=",
                                             "LD_LIBRARY_PATH=",
                                             "XDG_DATA_",
                                             "XDG_CONFIG_",
                                             "HOME=",
                                             "GALLIVM_",
                                             "LP_",
                                             "MESA_",
                                             "RADV_",
                                             "ANV_",
                                             "INTEL_DEBUG="};
  std::vector<std::string> environment = platform::environment_of(kVariables);
  // Disables layers, the driver's own caches, and all threads that are not needed.
  for (const char* variable : {"VK_LOADER_LAYERS_DISABLE=~all~", "MESA_SHADER_CACHE_DISABLE=true",
                               "MESA_GLSL_CACHE_DISABLE=true", "__GL_SHADER_DISK_CACHE=0", "LP_NUM_THREADS=1"}) {
    const std::string_view text = variable;
    std::erase_if(environment, [&](const std::string& other) {
      return std::string_view(other).starts_with(text.substr(0, text.find('=') + 1));
    });
    environment.emplace_back(text);
  }
  const Work work{trial.name, "the driver", limits};
  const HelperAnswer answer =
      ask(work, {std::to_string(limits.milliseconds), std::to_string(limits.memory_bytes), "driver"}, to_bytes(trial),
          limits.milliseconds + kDriverStartMilliseconds, environment);
  if (answer.payload) return;
  if (answer.end.output.empty()) {
    fail(TUFF_ERROR_UNSUPPORTED, "{}: the driver must first compile it in a separate process, but does not start there",
         trial.name);
  }
  fail_without_answer(work, answer.end);
}

}  // namespace tuff
