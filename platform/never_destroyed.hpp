// A static object that lasts as long as the process: calls come from static destructors, from exit handlers and from
// threads that outlive them, and must not find it gone. It lies in static memory, so that making it allocates nothing
// but what T itself does, and a leak checker sees what it holds.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace tuff {

template <typename T>
class NeverDestroyed {
 public:
  template <typename... Args>
  explicit NeverDestroyed(Args&&... args) {
    ::new (static_cast<void*>(memory_)) T(std::forward<Args>(args)...);
  }
  NeverDestroyed(const NeverDestroyed&) = delete;
  NeverDestroyed& operator=(const NeverDestroyed&) = delete;

  T& operator*() noexcept { return *std::launder(reinterpret_cast<T*>(memory_)); }
  const T& operator*() const noexcept { return *std::launder(reinterpret_cast<const T*>(memory_)); }

 private:
  alignas(T) std::byte memory_[sizeof(T)];
};

}  // namespace tuff
