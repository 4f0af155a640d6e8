// A static object that lasts as long as the process. The library is called from static destructors, exit handlers and
// threads that outlive them, and must not find the object destroyed. It is stored in static memory: its construction
// allocates only what T itself does, and leak checkers see what it owns.
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
