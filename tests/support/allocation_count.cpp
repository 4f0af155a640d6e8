#include "support/allocation_count.hpp"

#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__)

namespace tuff_test {
bool counts_allocations() { return false; }
uint64_t allocation_count() { return 0; }
FailingAllocations::FailingAllocations(uint64_t, bool) {}
FailingAllocations::~FailingAllocations() = default;
bool FailingAllocations::failed() const { return false; }
}  // namespace tuff_test

#else

namespace {

thread_local uint64_t count = 0;
thread_local uint64_t first_to_fail = 0;  // a value of count; 0: none fails
thread_local bool later_fail = false, has_failed = false;

// Counts an allocation, and tells whether it is to fail.
bool fails() {
  ++count;
  if (first_to_fail == 0 || count < first_to_fail || (count > first_to_fail && !later_fail)) return false;
  return has_failed = true;
}

}  // namespace

namespace tuff_test {
bool counts_allocations() { return true; }
uint64_t allocation_count() { return count; }
FailingAllocations::FailingAllocations(uint64_t n, bool on) {
  first_to_fail = count + n;
  later_fail = on;
  has_failed = false;
}
FailingAllocations::~FailingAllocations() { first_to_fail = 0; }
bool FailingAllocations::failed() const { return has_failed; }
}  // namespace tuff_test

// The executable's operators take precedence over the C++ library's, for every shared library of the process as well.
#define VISIBLE __attribute__((visibility("default")))

VISIBLE void* operator new(std::size_t size) {
  if (fails()) throw std::bad_alloc();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
VISIBLE void* operator new(std::size_t size, std::align_val_t alignment) {
  if (fails()) throw std::bad_alloc();
  const std::size_t step = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(step, (size + step - 1) / step * step)) return memory;
  throw std::bad_alloc();
}
VISIBLE void operator delete(void* memory) noexcept { std::free(memory); }
VISIBLE void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
VISIBLE void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
VISIBLE void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#endif
