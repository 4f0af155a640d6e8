// Fails allocations of the library's own, and counts those that live: operator new of the whole process comes by here,
// and the frames above tell whose an allocation is. Those of drivers and their compilers always succeed.
#pragma once

#include <cstdint>

namespace tuff_test {

// Finds where the library lies that has this function, and the C++ library, whose frames stand between the library's
// and operator new. To be called once, before anything else.
void watch_library(const void* function);

// From now on the n-th allocation of the library fails, and with `on` each one after it too; 0: none.
void fail_allocation(uint64_t n, bool on);
// Ends that. Returns whether an allocation failed.
bool stop_failing();
// Of the library, since fail_allocation().
uint64_t allocations_seen();
// Of the library, not given back yet.
int64_t live_allocations();

}  // namespace tuff_test
