// Multithreaded copies of host memory: one core reaches only a quarter of the bandwidth of a device's link.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tuff {

// A copy that the process-wide team of threads helps with. The team is started by the first copy that is large enough,
// sleeps between copies, and lives as long as the process, so that nothing has to be stopped at exit. A forked process
// has none of the threads, but capi/guard.cpp rejects its calls. Concurrent copies share the team.
class HostCopy {
 public:
  // The smallest copy that uses the team; a smaller one would be done before the team is awake.
  static constexpr uint64_t kMinShared = 1ull << 20;

  HostCopy() = default;
  ~HostCopy() { finish(); }
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;

  // Starts the copy. The team may be working on it until finish() returns, so neither range may change before that. The
  // previous copy must be finished.
  void start(void* dst, const void* src, uint64_t bytes) noexcept;
  // Helps with what is left and returns when everything is copied.
  void finish() noexcept;

 private:
  friend class CopyTeam;
  void copy_pieces() noexcept;

  std::byte* dst_ = nullptr;
  const std::byte* src_ = nullptr;
  uint64_t bytes_ = 0;
  std::atomic<uint64_t> taken_{0};    // bytes that some thread has copied or is copying
  std::atomic<uint32_t> helpers_{0};  // threads of the team working on it now
  bool listed_ = false;               // in the team's list; under the team's lock, as is next_
  HostCopy* next_ = nullptr;
};

// memcpy that uses the team where that is worthwhile.
void host_copy(void* dst, const void* src, uint64_t bytes) noexcept;

}  // namespace tuff
