#include "runtime/vulkan/prewarm.hpp"

#include <cstdlib>
#include <exception>
#include <set>

#include "planning/log.hpp"
#include "platform/never_destroyed.hpp"
#include "platform/platform.hpp"

namespace tuff {
namespace {

// The running threads. A process may exit with open contexts, and the exit handlers of drivers and compilers must not
// run while a thread is using them. The registry is never destroyed.
struct Registry {
  Mutex mutex{LockRank::prewarm_registry};
  std::set<Prewarm*> running;
  uint32_t forks = platform::fork_generation();
};

Registry& registry() {
  static NeverDestroyed<Registry> instance;
  return *instance;
}

// The object whose thread this is.
constinit thread_local const Prewarm* running_here = nullptr;

void stop_all() noexcept {
  Registry& all = registry();
  if (platform::fork_generation() != all.forks) return;  // the threads exist only in the parent
  const std::lock_guard lock(all.mutex);
  for (Prewarm* prewarm : all.running) prewarm->stop();
}

}  // namespace

Prewarm::Prewarm(std::vector<ListedKernel> kernels, Build build, Done done)
    : kernels_(std::move(kernels)), build_(std::move(build)), done_(std::move(done)) {
  for (const ListedKernel& kernel : kernels_) items_.try_emplace(kernel.line);
  if (items_.empty()) return;
  // Registered after the driver was loaded, so that it runs before the driver's handlers. Libraries loaded for the
  // first pipeline come later: see run().
  static const int registered = std::atexit(stop_all);
  if (registered != 0) {
    log(TUFF_LOG_WARNING, "prewarm: no exit handler can be registered");
    return;
  }
  to_build_ = items_.size();
  Registry& all = registry();
  std::unique_lock lock(all.mutex);
  try {
    all.running.insert(this);
    const platform::SignalsBlocked blocked;  // the application's signal handlers must run on its own threads
    thread_ = std::thread([this] { run(); });
  } catch (const std::exception& error) {  // a system limit, or no memory
    all.running.erase(this);
    to_build_ = 0;
    lock.unlock();
    log(TUFF_LOG_WARNING, "prewarm: no thread can be started: {}", error.what());
  }
}

void Prewarm::run() {
  running_here = this;
  // An exit handler joins this thread, whatever locks the thread that ends the process holds in a log callback.
  const LockFloor floor(LockRank::prewarm_thread);
  for (const ListedKernel& kernel : kernels_) {
    Item* item = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || callers_ == 0; });
      if (stopping_) return;
      item = &items_.at(kernel.line);
      if (item->state != State::listed) continue;
      item->state = State::building;
    }
    std::optional<Pipeline> pipeline;
    try {
      pipeline = build_(kernel);
    } catch (const std::exception& error) {
      log(TUFF_LOG_INFO, "prewarm: {}: {}", kernel.kernel.source().name, error.what());
    }
    {
      const std::lock_guard lock(mutex_);
      item->state = pipeline ? State::built : State::taken;
      if (pipeline) item->pipeline = *pipeline;
    }
    if (pipeline) built_.fetch_add(1, std::memory_order_relaxed);
    to_build_.fetch_sub(1, std::memory_order_relaxed);
    changed_.notify_all();
    // Again, now that the compilers have been used and have registered their exit handlers.
    [[maybe_unused]] static const int registered = std::atexit(stop_all);
  }
  try {
    done_(built());
  } catch (const std::exception& error) {
    log(TUFF_LOG_INFO, "prewarm: {}", error.what());
  }
}

void Prewarm::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  // Called on the prewarm thread itself, if a log callback ends the process: it will compile nothing more. Another
  // thread may be joining it, and holds the mutex.
  if (running_here == this) return;
  const std::lock_guard lock(joining_);
  if (thread_.joinable()) thread_.join();
}

Prewarm::~Prewarm() {
  stop();
  const std::lock_guard lock(registry().mutex);
  registry().running.erase(this);
}

Prewarm::Turn::Turn(Prewarm* prewarm, const std::string& line) : prewarm_(prewarm) {
  if (prewarm_ == nullptr) return;
  std::unique_lock lock(prewarm_->mutex_);
  if (const auto found = prewarm_->items_.find(line); found != prewarm_->items_.end()) {
    Item& item = found->second;
    prewarm_->changed_.wait(lock, [&] { return item.state != State::building; });
    if (item.state == State::built) {
      item.state = State::taken;
      pipeline_ = item.pipeline;
      prewarm_ = nullptr;
      return;
    }
    if (item.state == State::listed) prewarm_->to_build_.fetch_sub(1, std::memory_order_relaxed);
    item.state = State::taken;
  }
  ++prewarm_->callers_;
}

Prewarm::Turn::~Turn() {
  if (prewarm_ == nullptr) return;
  {
    const std::lock_guard lock(prewarm_->mutex_);
    --prewarm_->callers_;
  }
  prewarm_->changed_.notify_all();
}

}  // namespace tuff
