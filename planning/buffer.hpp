// What a tuff_buffer handle refers to: a byte range of an allocation owned by a backend.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tuff {

// A piece of memory owned by a backend. The destructor frees it once the device has finished with it.
class Allocation {
 public:
  virtual ~Allocation() = default;
  Allocation() = default;
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  // The host's mapping of the memory, or null if the host cannot access it.
  virtual std::byte* host() const noexcept = 0;

  std::atomic<bool> mapped{false};  // between tuff_map and tuff_unmap
};

struct Buffer {
  std::shared_ptr<Allocation> allocation;  // null only if the buffer was created with 0 bytes
  uint64_t offset = 0;                     // into the allocation; allocations are 256-byte aligned
  uint64_t bytes = 0;
  bool host_visible = false;  // tuff_map is allowed
  bool pinned = false;        // in host memory, for asynchronous copies

  template <typename T>
  T* host() const noexcept {
    return reinterpret_cast<T*>(allocation->host() + offset);
  }
};

}  // namespace tuff
