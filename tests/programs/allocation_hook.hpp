// Makes allocations of the library fail, and counts the live ones. operator new of the whole process is replaced; the
// calling frames tell which module allocates. Allocations of drivers and their compilers always succeed.
#pragma once

#include <cstdint>
#include <vector>

namespace tuff_test {

// Locates the library that contains this function, and the C++ library, whose frames are between the library's and
// operator new. To be called once, before anything else.
void watch_library(const void* function);

// From now on the n-th allocation of the library fails, and with `on` all later ones too; 0: none.
void fail_allocation(uint64_t n, bool on);
// Stops that. Returns whether an allocation failed.
bool stop_failing();
// The library's allocations since fail_allocation().
uint64_t allocations_seen();
// Records the call path of each allocation of the library from now on: a hash of the `frames` innermost frames inside
// the library; 0: records no more.
void record_paths(unsigned frames);
// The paths since then, in the order of fail_allocation()'s numbers.
std::vector<uint64_t> recorded_paths();
// The library's allocations that are not freed yet.
int64_t live_allocations();

}  // namespace tuff_test
