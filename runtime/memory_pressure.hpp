// Handling of memory shortage: the exception that reports it, and the caller's callback, which may free memory before
// an allocation fails.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "planning/status.hpp"
#include "platform/mutex.hpp"

namespace tuff {

// Thrown if an allocation would succeed with less memory in use.
class MemoryShortage final : public Error {
 public:
  MemoryShortage(tuff_status code, std::string message, uint64_t requested, uint64_t needed)
      : Error(code, std::move(message)), requested_(requested), needed_(needed) {}
  uint64_t requested() const noexcept { return requested_; }
  uint64_t needed() const noexcept { return needed_; }  // minimum number of bytes to free

 private:
  uint64_t requested_, needed_;
};

class MemoryPressure {
 public:
  // Replaces the callback; null removes it. Returns once no other thread is running the previous callback. Inside a
  // callback it does not wait, because two threads could then wait for each other.
  void set(tuff_memory_callback callback, void* user);

  // Invokes the callback; the caller must hold no lock. Returns false if there is none, or this thread is already
  // inside it.
  bool relieve(const MemoryShortage& shortage);

 private:
  struct Registration {
    tuff_memory_callback callback;
    void* user;
    uint32_t running = 0;  // threads inside it
  };
  bool inside() const noexcept;

  Mutex mutex_{LockRank::memory_pressure};
  Condition left_;
  std::shared_ptr<Registration> registration_;  // null: no callback
};

}  // namespace tuff
