// What the families' descriptions of calls for plug-ins (tuff/backend.h) have in common.
#pragma once

#include <cstddef>
#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"
#include "tuff/backend.h"

namespace tuff {

// The address of a buffer's first byte, which takes the place of a handle; 0 for an absent one. Throws NotMapped.
inline uint64_t address_of(const Buffer* buffer) {
  if (buffer == nullptr || buffer->allocation == nullptr) return 0;
  if (buffer->allocation->host() == nullptr) throw NotMapped();
  return reinterpret_cast<uintptr_t>(buffer->host<std::byte>());
}

template <typename Call>
Call new_call() {
  Call call{};
  call.struct_size = sizeof call;
  return call;
}

}  // namespace tuff
