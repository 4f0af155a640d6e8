// tuff-compile: compiles one kernel for a libtuff.so that does not trust its source. The library starts it with the
// limits as arguments, sends the source, and reads a status and the result. If the source crashes the compiler, or its
// SPIR-V the driver, only this process is affected.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "planning/status.hpp"
#include "platform/confine.hpp"
#include "platform/process.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "runtime/custom/helper/driver.hpp"
#include "runtime/custom/helper/protocol.hpp"

namespace {

using tuff::platform::Needs;

// A compiler built without exception support would abort if bad_alloc passed through its frames. Exit with a reason
// instead.
[[noreturn]] void out_of_memory() { ::_exit(tuff::kHelperOutOfMemory); }

bool send(std::string_view message) {
  const auto length = static_cast<uint32_t>(message.size());
  std::string framed(sizeof length, '\0');
  std::memcpy(framed.data(), &length, sizeof length);
  framed += message;
  return tuff::platform::write_answer(framed);
}

bool answer(tuff_status status, std::string_view payload) {
  std::string message(sizeof status, '\0');
  std::memcpy(message.data(), &status, sizeof status);
  message += payload;
  return send(message);
}

// Answers with the result of work(), or with the error that it throws.
template <typename Work>
bool serve(const Work& work) {
  try {
    return answer(TUFF_OK, work());
  } catch (const tuff::Error& error) {
    return answer(error.code(), error.what());
  } catch (const std::exception& error) {
    return answer(TUFF_ERROR_COMPILE_FAILED, error.what());
  }
}

constexpr const char* kOtherVersion = "tuff-compile has another version than the library that started it";

int compile(uint64_t seconds, uint64_t memory_bytes) {
  std::string confinement = tuff::platform::forbid_files(Needs::compiler);
  tuff::platform::limit_this_process(seconds, memory_bytes);
  confinement += ", " + tuff::platform::forbid_calls(Needs::compiler);
  std::string request;
  if (!send(confinement) || !tuff::platform::read_input(request, tuff::kMaxRequestBytes)) return 3;
  tuff::CustomSource source;
  if (!tuff::from_bytes(request, source)) return answer(TUFF_ERROR_INTERNAL, kOtherVersion) ? 0 : 4;
  return serve([&] { return tuff::to_bytes(tuff::compile_custom(source)); }) ? 0 : 4;
}

// The driver is trusted and the module is not: only file access is restricted before the driver starts.
int try_driver(uint64_t milliseconds, uint64_t memory_bytes) {
  std::string request;
  if (!tuff::platform::read_input(request, tuff::kMaxRequestBytes)) return 3;
  tuff::DriverTrial trial;
  if (!tuff::from_bytes(request, trial)) return send("") && answer(TUFF_ERROR_INTERNAL, kOtherVersion) ? 0 : 4;
  const Needs needs = trial.cpu ? Needs::cpu_driver : Needs::device_driver;
  std::string confinement = tuff::platform::forbid_files(needs);
  const auto work = [&]() -> std::string {
    tuff::DriverCompiler driver(trial);
    confinement += ", " + tuff::platform::forbid_calls(needs);
    if (!send(confinement)) ::_exit(4);
    tuff::platform::limit_this_process_from_now(milliseconds, memory_bytes);
    driver.compile(trial);
    return {};
  };
  return serve(work) ? 0 : 4;
}

}  // namespace

int main(int argc, char** argv) {
  const bool driver = argc == 4 && std::strcmp(argv[3], "driver") == 0;
  if (argc != 3 && !driver) {
    std::puts("tuff-compile is started by libtuff.so, for kernels whose source is not trusted.");
    return 2;
  }
  std::set_new_handler(out_of_memory);
  const uint64_t time = std::strtoull(argv[1], nullptr, 10), memory_bytes = std::strtoull(argv[2], nullptr, 10);
  // Skip the global destructors of compilers and drivers: nothing that they do is needed any more.
  ::_exit(driver ? try_driver(time, memory_bytes) : compile(time, memory_bytes));
}
