#include "runtime/custom/compilers.hpp"

#include <shaderc/shaderc.h>

#include <atomic>

#include "planning/status.hpp"

namespace tuff {
namespace {

constinit std::atomic<bool> gone{false};

// Its destructor runs together with those of the compilers' static libraries, which are registered when the same
// library is loaded: no application code runs in between.
struct Mark {
  ~Mark() { gone.store(true, std::memory_order_relaxed); }
};
[[maybe_unused]] const Mark mark;

}  // namespace

void require_compilers() {
  if (!gone.load(std::memory_order_relaxed)) [[likely]] {
    return;
  }
  fail(TUFF_ERROR_UNSUPPORTED, "the process is exiting: kernels that are not in the cache can no longer be compiled");
}

shaderc_compiler* kept_shaderc() {
  // Never released: nothing may run at process exit. A failure leaves it to the next call.
  static const shaderc_compiler_t kept = [] {
    const shaderc_compiler_t compiler = shaderc_compiler_initialize();
    if (compiler == nullptr) fail(TUFF_ERROR_OUT_OF_HOST_MEMORY, "shaderc could not be started");
    return compiler;
  }();
  return kept;
}

void require_memory(shaderc_compilation_result* result, const std::string& name) {
  if (result != nullptr &&
      (shaderc_result_get_compilation_status(result) != shaderc_compilation_status_internal_error ||
       *shaderc_result_get_error_message(result) != '\0')) {
    return;
  }
  fail(TUFF_ERROR_OUT_OF_HOST_MEMORY, "shaderc ran out of memory on {}", name);
}

}  // namespace tuff
