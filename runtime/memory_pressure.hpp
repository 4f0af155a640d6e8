// What happens when memory is short: the exception that says so, and the caller's callback that may free some
// before an allocation is refused.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "planning/status.hpp"

namespace tuff {

// Thrown where an allocation would succeed if less were in use.
class MemoryShortage final : public Error {
 public:
  MemoryShortage(tuff_status code, std::string message, uint64_t requested, uint64_t needed)
      : Error(code, std::move(message)), requested_(requested), needed_(needed) {}
  uint64_t requested() const noexcept { return requested_; }
  uint64_t needed() const noexcept { return needed_; }  // bytes to be freed, at the least

 private:
  uint64_t requested_, needed_;
};

class MemoryPressure {
 public:
  // Replaces the callback; null: none. Returns once no other thread is inside the one before. From inside a callback
  // it does not wait, which two threads would do for each other.
  void set(tuff_memory_callback callback, void* user);

  // Calls the callback; the caller holds no lock. False if there is none, or this thread is inside it already.
  bool relieve(const MemoryShortage& shortage);

 private:
  struct Registration {
    tuff_memory_callback callback;
    void* user;
    uint32_t running = 0;  // threads inside it
  };
  bool inside() const noexcept;

  std::mutex mutex_;
  std::condition_variable left_;
  std::shared_ptr<Registration> registration_;  // null: no callback
};

}  // namespace tuff
