#include "runtime/graveyard.hpp"

#include <utility>
#include <vector>

#include "planning/log.hpp"
#include "platform/mutex.hpp"
#include "platform/never_destroyed.hpp"

namespace tuff {
namespace {

// Never destroyed: the device may still be working at process exit.
struct Graveyard {
  Mutex mutex{LockRank::graveyard};
  std::vector<std::unique_ptr<ComputeBackend>> backends;
};

Graveyard& graveyard() {
  static NeverDestroyed<Graveyard> instance;
  return *instance;
}

}  // namespace

void end_backend(std::unique_ptr<ComputeBackend> backend, bool wait) noexcept {
  sweep_graveyard();
  if (backend == nullptr || backend->at_rest(wait)) return;
  Graveyard& all = graveyard();
  try {
    log(TUFF_LOG_WARNING,
        "a context was destroyed while its device was still working: the objects that the device uses are kept until "
        "it has finished");
    const std::lock_guard lock(all.mutex);
    all.backends.reserve(all.backends.size() + 1);
    all.backends.push_back(std::move(backend));
  } catch (...) {
    // No memory for the list: the backend is never destroyed.
    [[maybe_unused]] const ComputeBackend* kept = backend.release();
  }
}

size_t sweep_graveyard() noexcept {
  Graveyard& all = graveyard();
  for (;;) {
    std::unique_ptr<ComputeBackend> rested;
    const std::lock_guard lock(all.mutex);
    for (auto& backend : all.backends) {
      if (!backend->at_rest(false)) continue;
      rested = std::move(backend);
      std::swap(backend, all.backends.back());
      all.backends.pop_back();
      break;
    }
    if (rested == nullptr) return all.backends.size();
  }
}

}  // namespace tuff
