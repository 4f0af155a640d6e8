// Counts allocations through operator new, here and in the library, and makes them fail.
#pragma once

#include <cstdint>

namespace tuff_test {

// False under AddressSanitizer, whose operator new is left in place.
bool counts_allocations();

// The number of allocations of this thread so far.
uint64_t allocation_count();

// While it exists, allocations of this thread fail: the n-th from now on, and with `on` all later ones. Nothing fails
// where allocations are not counted.
class FailingAllocations {
 public:
  explicit FailingAllocations(uint64_t n, bool on = false);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;
  bool failed() const;  // one has
};

}  // namespace tuff_test
