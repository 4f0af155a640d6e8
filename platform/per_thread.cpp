#include "platform/per_thread.hpp"

#include <atomic>

#include "platform/platform.hpp"

namespace tuff::detail {
namespace {

// A thread's objects. Records are never freed; a new thread takes one that is unused. All records are on one list, so
// that leak checkers find the objects of threads that are still running. The list is lock-free because forked children
// use it too.
struct Record {
  std::atomic<bool> taken{true};
  Record* next = nullptr;
  ThreadObject* objects = nullptr;
};

constinit std::atomic<Record*> records{nullptr};
constinit thread_local Record* own = nullptr;

void end_thread(void* data) {
  auto& record = *static_cast<Record*>(data);
  own = nullptr;
  while (ThreadObject* object = record.objects) {
    record.objects = object->next;
    delete object;
  }
  record.taken.store(false, std::memory_order_release);
}

// Created when the library is loaded. If the process has no keys left, objects are not freed when their threads end.
const platform::ThreadKey key(end_thread);

Record* find_record() noexcept {
  for (Record* record = records.load(std::memory_order_acquire); record != nullptr; record = record->next) {
    if (!record->taken.load(std::memory_order_relaxed) && !record->taken.exchange(true, std::memory_order_acquire)) {
      return record;
    }
  }
  auto* record = new (std::nothrow) Record;
  if (record == nullptr) return nullptr;
  record->next = records.load(std::memory_order_relaxed);
  while (!records.compare_exchange_weak(record->next, record, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return record;
}

}  // namespace

bool keep_until_thread_ends(ThreadObject& object) noexcept {
  if (own == nullptr) {
    Record* record = find_record();
    if (record == nullptr) return false;
    if (key.made() && !key.set(record)) {
      record->taken.store(false, std::memory_order_release);
      return false;
    }
    own = record;
  }
  object.next = own->objects;
  own->objects = &object;
  return true;
}

}  // namespace tuff::detail
