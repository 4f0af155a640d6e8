// An object for each thread that can be asked for at any time, and goes with its thread.
//
// A plain thread_local object with a destructor is used after its end: calls come from destructors of other
// thread-local objects, from those of pthread keys, and at the process's end from static destructors and exit
// handlers. Here the thread has a pointer, which needs no destructor; what it points to is freed by a pthread key,
// after every thread_local destructor, and made anew if a later one asks. The main thread's objects stay when the
// process ends.
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

// Destroys it when this thread ends. False where there is no memory to remember it by: it is the caller's still.
bool keep_until_thread_ends(ThreadObject& object) noexcept;

}  // namespace detail

template <typename T>
class PerThread {
 public:
  // This thread's, made now if there is none; null where there is no memory for it.
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
