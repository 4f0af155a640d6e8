// Counts allocations through operator new, here and in the library.
#pragma once

#include <cstdint>

namespace tuff_test {

// False under AddressSanitizer, whose operator new is left in place.
bool counts_allocations();

// The number of allocations of this thread so far.
uint64_t allocation_count();

}  // namespace tuff_test
