// tuff-compile: compiles one kernel for a libtuff.so that does not trust its source. The library starts it with the
// limits as arguments, sends the source, and reads one status and what goes with it. Whatever the source does to the
// compiler, it does to this process.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "planning/status.hpp"
#include "platform/process.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "runtime/custom/helper/protocol.hpp"

namespace {

// A compiler that throws through frames that were built without exceptions ends the program: end it with a reason.
[[noreturn]] void out_of_memory() { ::_exit(tuff::kHelperOutOfMemory); }

bool answer(tuff_status status, std::string_view payload) {
  std::string message(sizeof status, '\0');
  std::memcpy(message.data(), &status, sizeof status);
  message += payload;
  return tuff::platform::write_answer(message);
}

bool serve(const std::string& request) {
  tuff::CustomSource source;
  if (!tuff::from_bytes(request, source)) {
    return answer(TUFF_ERROR_INTERNAL, "tuff-compile is of another version than the library that started it");
  }
  try {
    return answer(TUFF_OK, tuff::to_bytes(tuff::compile_custom(source)));
  } catch (const tuff::Error& error) {
    return answer(error.code(), error.what());
  } catch (const std::exception& error) {
    return answer(TUFF_ERROR_COMPILE_FAILED, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::puts("tuff-compile is started by libtuff.so, for kernels whose source is not trusted.");
    return 2;
  }
  std::set_new_handler(out_of_memory);
  tuff::platform::limit_this_process(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10));
  std::string request;
  if (!tuff::platform::read_input(request, tuff::kMaxRequestBytes)) return 3;
  // No destructors of the compiler's globals: there is nothing left that they could do well.
  ::_exit(serve(request) ? 0 : 4);
}
