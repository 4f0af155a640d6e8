// What a tuff_buffer handle stands for: a byte range of an allocation that a backend made.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tuff {

// A piece of memory owned by a backend; freed (after the device is done with it) by the destructor.
class Allocation {
 public:
  virtual ~Allocation() = default;
  Allocation() = default;
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  // The memory as the host sees it, or null where the host does not.
  virtual std::byte* host() const noexcept = 0;

  std::atomic<bool> mapped{false};  // between tuff_map and tuff_unmap
};

struct Buffer {
  std::shared_ptr<Allocation> allocation;  // null only if the buffer was made with 0 bytes
  uint64_t offset = 0;                     // into the allocation; allocations start 256-byte aligned
  uint64_t bytes = 0;
  bool host_visible = false;  // tuff_map is allowed
  bool pinned = false;        // in the host's memory, for copies that the host does not wait for

  template <typename T>
  T* host() const noexcept {
    return reinterpret_cast<T*>(allocation->host() + offset);
  }
};

}  // namespace tuff
