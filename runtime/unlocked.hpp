// The opposite of std::lock_guard.
#pragma once

#include "platform/mutex.hpp"

namespace tuff {

// Releases a held lock for the lifetime of this object.
class Unlocked {
 public:
  explicit Unlocked(std::unique_lock<Mutex>& lock) : lock_(lock) { lock_.unlock(); }
  ~Unlocked() { lock_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  std::unique_lock<Mutex>& lock_;
};

}  // namespace tuff
