// Counts what is allocated through operator new, here and in the library.
#pragma once

#include <cstdint>

namespace tuff_test {

// False under AddressSanitizer, whose operator new stays.
bool counts_allocations();

// By this thread so far.
uint64_t allocation_count();

}  // namespace tuff_test
