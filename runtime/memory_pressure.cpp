#include "runtime/memory_pressure.hpp"

namespace tuff {
namespace {

// The callbacks that are running on this thread, innermost first.
struct Frame {
  const MemoryPressure* owner;
  const Frame* outer;
};
thread_local const Frame* innermost = nullptr;

}  // namespace

bool MemoryPressure::inside() const noexcept {
  const Frame* frame = innermost;
  while (frame != nullptr && frame->owner != this) frame = frame->outer;
  return frame != nullptr;
}

void MemoryPressure::set(tuff_memory_callback callback, void* user) {
  std::shared_ptr<Registration> next;
  if (callback != nullptr) next = std::make_shared<Registration>(Registration{callback, user});
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Registration> before = std::exchange(registration_, std::move(next));
  if (before == nullptr || inside()) return;
  left_.wait(lock, [&] { return before->running == 0; });
}

bool MemoryPressure::relieve(const MemoryShortage& shortage) {
  if (inside()) return false;
  std::shared_ptr<Registration> current;
  {
    const std::lock_guard lock(mutex_);
    if (registration_ == nullptr) return false;
    current = registration_;
    ++current->running;
  }
  tuff_memory_pressure pressure{};
  pressure.struct_size = sizeof pressure;
  pressure.status = shortage.code();
  pressure.bytes_requested = shortage.requested();
  pressure.bytes_needed = shortage.needed();
  const Frame frame{this, innermost};
  innermost = &frame;
  current->callback(current->user, &pressure);
  innermost = frame.outer;
  const std::lock_guard lock(mutex_);
  --current->running;
  left_.notify_all();
  return true;
}

}  // namespace tuff
