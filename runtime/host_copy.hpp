// Copies of host memory by several threads: one core moves a quarter of what a device's link does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tuff {

// A copy that the process's team of threads takes part in. The team starts with the first copy that is large enough for
// it, sleeps between copies, and lives as long as the process: nothing has to end at exit. A forked process, which has
// none of its threads, gets no further than capi/guard.cpp. Copies of several callers share the team.
class HostCopy {
 public:
  // From here on the team helps; below this a copy is over before it is awake.
  static constexpr uint64_t kMinShared = 1ull << 20;

  HostCopy() = default;
  ~HostCopy() { finish(); }
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;

  // Begins: the team may be at it from now on, so that neither range may change until finish() has returned. The copy
  // before must be finished.
  void start(void* dst, const void* src, uint64_t bytes) noexcept;
  // Takes part in what is left, and returns when all is copied.
  void finish() noexcept;

 private:
  friend class CopyTeam;
  void copy_pieces() noexcept;

  std::byte* dst_ = nullptr;
  const std::byte* src_ = nullptr;
  uint64_t bytes_ = 0;
  std::atomic<uint64_t> taken_{0};    // up to here somebody copies, or has
  std::atomic<uint32_t> helpers_{0};  // of the team, at it now
  bool listed_ = false;               // where the team looks; under its lock, as is what follows
  HostCopy* next_ = nullptr;
};

// memcpy, by the team where that is worth it.
void host_copy(void* dst, const void* src, uint64_t bytes) noexcept;

}  // namespace tuff
