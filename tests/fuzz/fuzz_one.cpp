// Entry point for libFuzzer (option TUFF_FUZZ): each input is a program. It runs on the host backend and, if
// TUFF_TEST_BACKENDS names vulkan, on a device beside it.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fuzz/program.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const char* const backends = std::getenv("TUFF_TEST_BACKENDS");
  static tuff_fuzz::World world(backends != nullptr && std::strstr(backends, "vulkan") != nullptr);
  try {
    tuff_fuzz::run_program(world, {data, size});
  } catch (const tuff_fuzz::Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.text.c_str());
    std::abort();
  }
  return 0;
}
