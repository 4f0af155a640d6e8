#include "fuzz/plausible_call.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace tuff_fuzz {

tuff_status call_plausibly(const Function& function, CallMemory& memory,
                           const std::function<uint64_t(const Place& place)>& handle_at,
                           const PlacedStructure* placed) {
  uint64_t arguments[CallMemory::kMaxArguments] = {};
  if (function.arguments.size() > CallMemory::kMaxArguments) throw std::length_error(function.name);
  for (size_t i = 0; i < function.arguments.size(); ++i) {
    const Argument& argument = function.arguments[i];
    if (!argument.pointer && argument.way == Way::in) continue;
    if (placed != nullptr && placed->argument == i) {
      arguments[i] = reinterpret_cast<uintptr_t>(placed->at);
      std::memcpy(placed->at, &placed->bytes, sizeof placed->bytes);
      continue;
    }
    std::memset(memory.arguments[i], 0, 1024);
    arguments[i] = reinterpret_cast<uintptr_t>(&memory.arguments[i]);
    if (argument.structure < 0) continue;
    const uint32_t size = structures()[static_cast<size_t>(argument.structure)].size;
    std::memcpy(memory.arguments[i], &size, sizeof size);
  }
  for (const Place& place : function.places) {
    uint64_t value = 0;
    switch (place.kind) {
      case Kind::number: value = 1; break;
      case Kind::handle: value = handle_at(place); break;
      case Kind::enumerator:
        if (place.group >= 0)
          value = static_cast<uint64_t>(groups()[static_cast<size_t>(place.group)].values.front().second);
        break;
      case Kind::struct_size: continue;
      default: break;
    }
    if (place.pointer && place.kind == Kind::handle) {
      std::fill(std::begin(memory.lists), std::end(memory.lists), value);
      value = reinterpret_cast<uintptr_t>(memory.lists);
    } else if (place.pointer) {
      continue;  // zeros, or memory
    }
    if (!place.in_structure) {
      arguments[place.argument] = value;
      continue;
    }
    const uint32_t bytes = place.pointer ? 8 : place.bytes;
    unsigned char* structure = memory.arguments[place.argument];
    if (placed != nullptr && placed->argument == place.argument) {
      if (place.offset + bytes > placed->bytes) continue;
      structure = placed->at;
    }
    std::memcpy(structure + place.offset, &value, bytes);
  }
  return function.invoke(arguments);
}

}  // namespace tuff_fuzz
