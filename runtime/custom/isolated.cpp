// The library's side of tuff-compile.
#include <csignal>
#include <cstring>
#include <system_error>

#include "planning/status.hpp"
#include "platform/platform.hpp"
#include "platform/process.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "runtime/custom/helper/protocol.hpp"

namespace tuff {
namespace {

using platform::ProcessEnd;

// Beside the library (a build folder, a wheel), or where an installed library has it. TUFF_COMPILE names another.
std::filesystem::path find_helper() {
  const auto chosen = platform::environment("TUFF_COMPILE");
  if (chosen && !platform::runs_with_other_rights()) return *chosen;
  const std::filesystem::path folder = platform::library_folder();
  std::error_code error;
  for (const char* place : {"tuff-compile", TUFF_HELPER_FROM_LIBRARY}) {
    const std::filesystem::path file = folder / place;
    if (std::filesystem::is_regular_file(file, error)) return file;
  }
  fail(TUFF_ERROR_UNSUPPORTED,
       "untrusted source is compiled by the program tuff-compile, which is neither beside the library nor at {} (from "
       "{}); install it, or name it in TUFF_COMPILE",
       TUFF_HELPER_FROM_LIBRARY, folder.string());
}

[[noreturn]] void fail_without_answer(const std::string& name, const ProcessEnd& end, const CompileLimits& limits) {
  switch (end.kind) {
    case ProcessEnd::Kind::timed_out:
      fail(TUFF_ERROR_LIMIT_EXCEEDED, "{}: compiling it took longer than {} ms", name, limits.milliseconds);
    case ProcessEnd::Kind::too_much_output:
      fail(TUFF_ERROR_LIMIT_EXCEEDED, "{}: it becomes more than {} bytes of SPIR-V", name, kMaxUntrustedModuleBytes);
    case ProcessEnd::Kind::signalled:
      if (end.code == SIGXCPU || end.code == SIGKILL) {
        fail(TUFF_ERROR_LIMIT_EXCEEDED, "{}: compiling it took more processor time or memory than it may", name);
      }
      fail(TUFF_ERROR_COMPILE_FAILED, "{}: the compiler crashed on it (signal {}): it may be nested too deeply", name,
           end.code);
    case ProcessEnd::Kind::exited:
      if (end.code == kHelperOutOfMemory) {
        fail(TUFF_ERROR_LIMIT_EXCEEDED, "{}: compiling it needs more than {} bytes of memory", name,
             limits.memory_bytes);
      }
      fail(TUFF_ERROR_COMPILE_FAILED, "{}: the compiler ended with status {}", name, end.code);
    default: fail(TUFF_ERROR_COMPILE_FAILED, "{}: the compiler ended without an answer", name);
  }
}

}  // namespace

CompiledKernel compile_isolated(const CustomSource& source, const CompileLimits& limits) {
  const std::filesystem::path helper = find_helper();
  const uint64_t cpu_seconds = limits.milliseconds / 1000 + 1;
  const ProcessEnd end =
      platform::run_program(helper, {std::to_string(cpu_seconds), std::to_string(limits.memory_bytes)},
                            to_bytes(source), limits.milliseconds, kMaxUntrustedModuleBytes + (64 << 10));
  if (end.kind == ProcessEnd::Kind::not_started) {
    fail(TUFF_ERROR_UNSUPPORTED, "untrusted source is compiled by {}, which could not be started: {}", helper.string(),
         std::generic_category().message(end.code));
  }
  tuff_status status = TUFF_OK;
  if (end.output.size() < sizeof status || end.kind == ProcessEnd::Kind::timed_out ||
      end.kind == ProcessEnd::Kind::too_much_output) {
    fail_without_answer(source.name, end, limits);
  }
  std::memcpy(&status, end.output.data(), sizeof status);
  const std::string_view payload = std::string_view(end.output).substr(sizeof status);
  if (status != TUFF_OK) throw Error(status, std::string(payload));
  CompiledKernel kernel;
  if (!from_bytes(payload, kernel)) fail_without_answer(source.name, end, limits);
  return kernel;
}

}  // namespace tuff
