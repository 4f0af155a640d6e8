// A vector whose memory the thread keeps for its next call, so that steady-state calls allocate nothing.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "platform/per_thread.hpp"

namespace tuff {

// Per thread and T, one object at a time uses the kept memory. A nested one, for example within a callback, allocates
// its own.
template <typename T>
class KeptVector {
 public:
  KeptVector() {
    if (std::vector<T>* kept = PerThread<std::vector<T>>::find()) items_ = std::move(*kept);
  }
  ~KeptVector() {
    if (items_.capacity() == 0 || items_.capacity() * sizeof(T) > kMaxBytes) return;
    items_.clear();
    if (std::vector<T>* kept = PerThread<std::vector<T>>::get()) *kept = std::move(items_);
  }
  KeptVector(const KeptVector&) = delete;
  KeptVector& operator=(const KeptVector&) = delete;

  std::vector<T>& operator*() { return items_; }
  const std::vector<T>& operator*() const { return items_; }
  std::vector<T>* operator->() { return &items_; }
  const std::vector<T>* operator->() const { return &items_; }

 private:
  static constexpr size_t kMaxBytes = 1 << 20;
  std::vector<T> items_;
};

}  // namespace tuff
