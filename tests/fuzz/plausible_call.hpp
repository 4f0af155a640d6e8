// Calls of any function of the ABI with plausible arguments, assembled from the ABI's table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "fuzz/abi.hpp"

namespace tuff_fuzz {

// Memory for the structures and results of one call at a time. Each thread that calls needs its own.
struct CallMemory {
  static constexpr size_t kMaxArguments = 32, kRoom = 4096;
  alignas(16) unsigned char arguments[kMaxArguments][kRoom];
  uint64_t lists[64];
};

// A structure that the caller of call_plausibly() places itself: `bytes` bytes, which is also its struct_size.
struct PlacedStructure {
  size_t argument;
  unsigned char* at;
  uint32_t bytes;
};

// Calls the function with 1 for numbers, the first value of enumerations, null for texts, callbacks and optional
// memory, and `handle_at(place)` for handles.
tuff_status call_plausibly(const Function& function, CallMemory& memory,
                           const std::function<uint64_t(const Place& place)>& handle_at,
                           const PlacedStructure* placed = nullptr);

}  // namespace tuff_fuzz
