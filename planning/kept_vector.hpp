// Room for a call's lists that the thread keeps for its next call, so that a steady state allocates nothing.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace tuff {

// One of each T at a time in a thread has kept memory; another, within a callback for example, gets its own.
template <typename T>
class KeptVector {
 public:
  KeptVector() : items_(std::exchange(kept(), {})) {}
  ~KeptVector() {
    if (items_.capacity() * sizeof(T) > kMostBytes) return;
    items_.clear();
    kept() = std::move(items_);
  }
  KeptVector(const KeptVector&) = delete;
  KeptVector& operator=(const KeptVector&) = delete;

  std::vector<T>& operator*() { return items_; }
  const std::vector<T>& operator*() const { return items_; }
  std::vector<T>* operator->() { return &items_; }
  const std::vector<T>* operator->() const { return &items_; }

 private:
  static constexpr size_t kMostBytes = 1 << 20;
  static std::vector<T>& kept() {
    thread_local std::vector<T> memory;
    return memory;
  }
  std::vector<T> items_;
};

}  // namespace tuff
