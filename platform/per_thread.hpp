// A per-thread object that can be accessed at any time and is freed with its thread.
//
// A plain thread_local object with a destructor would be used after its destruction: calls come from destructors of
// other thread-local objects, from those of pthread keys, and at process exit from static destructors and exit
// handlers. Here the thread has a pointer, which needs no destructor. A pthread key frees the object after all
// thread_local destructors have run, and it is created again if a later one asks for it. The main thread's objects are
// not freed when the process ends.
#pragma once

#include <new>

namespace tuff {

namespace detail {

struct ThreadObject {
  ThreadObject() = default;
  ThreadObject(const ThreadObject&) = delete;
  ThreadObject& operator=(const ThreadObject&) = delete;
  virtual ~ThreadObject() = default;
  ThreadObject* next = nullptr;
};

// Destroys the object when this thread ends. Returns false if there is no memory to register it; the caller then still
// owns it.
bool keep_until_thread_ends(ThreadObject& object) noexcept;

}  // namespace detail

template <typename T>
class PerThread {
 public:
  // This thread's object, created if there is none; null if there is no memory for it.
  static T* get() noexcept {
    if (held_ != nullptr) [[likely]]
      return &held_->object;
    return make();
  }
  // Null if there is none.
  static T* find() noexcept { return held_ != nullptr ? &held_->object : nullptr; }

 private:
  struct Held final : detail::ThreadObject {
    ~Held() override { held_ = nullptr; }
    T object;
  };

  static T* make() noexcept {
    auto* held = new (std::nothrow) Held;
    if (held == nullptr) return nullptr;
    if (!detail::keep_until_thread_ends(*held)) {
      delete held;
      return nullptr;
    }
    held_ = held;
    return &held->object;
  }

  static constinit inline thread_local Held* held_ = nullptr;
};

}  // namespace tuff
