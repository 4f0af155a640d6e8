#include "runtime/custom/compilers.hpp"

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

}  // namespace tuff
