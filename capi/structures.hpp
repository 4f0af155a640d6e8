// Reading and writing the ABI's structures, whose size tells which version the caller was compiled with, and texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "planning/status.hpp"

namespace tuff::capi {

// No later version of a structure will be larger by this much: beyond it, struct_size was not set.
constexpr uint32_t kMaxUnknownTail = 4096;

// A size that a caller may state for a structure whose first version has first_bytes and which this
// library knows known_bytes of.
inline void check_struct_size(uint32_t size, size_t first_bytes, size_t known_bytes, std::string_view name) {
  require(size >= first_bytes, "{}->struct_size is {}, needs at least {}", name, size, first_bytes);
  require(size <= known_bytes + kMaxUnknownTail, "{}->struct_size is {}, this version knows {} bytes", name, size,
          known_bytes);
}

// A copy of a caller's structure, with zero in the fields that the caller does not know.
template <typename T>
T read_structure(const T* structure, std::string_view name, size_t first_bytes = sizeof(T)) {
  require(structure != nullptr, "{} is null", name);
  uint32_t size = 0;
  std::memcpy(&size, structure, sizeof(size));
  check_struct_size(size, first_bytes, sizeof(T), name);
  const auto* bytes = reinterpret_cast<const unsigned char*>(structure);
  for (size_t i = sizeof(T); i < size; ++i) {
    require(bytes[i] == 0, "{}->struct_size is {}, and byte {} is set: this version knows {} bytes", name, size, i,
            sizeof(T));
  }
  T copy{};
  std::memcpy(&copy, structure, std::min<size_t>(size, sizeof(T)));
  return copy;
}

// Checks where a structure will be written, before the work that fills it.
template <typename T>
void check_output_structure(const T* structure, std::string_view name, size_t first_bytes = sizeof(T)) {
  require(structure != nullptr, "{} is null", name);
  check_struct_size(structure->struct_size, first_bytes, sizeof(T), name);
}

// Writes as much as the caller knows, zero beyond what this library knows, and leaves struct_size.
template <typename T>
void write_structure(T* structure, T value) {
  const uint32_t size = structure->struct_size;
  value.struct_size = size;
  std::memcpy(static_cast<void*>(structure), &value, std::min<size_t>(size, sizeof(T)));
  if (size > sizeof(T)) std::memset(reinterpret_cast<unsigned char*>(structure) + sizeof(T), 0, size - sizeof(T));
}

// Checks where a text will be written: a caller's memory of so many bytes.
inline void check_text(const char* buffer, std::string_view name, uint64_t capacity) {
  require(buffer != nullptr || capacity == 0, "{} is null and capacity is {}, needs 0", name, capacity);
}

// Writes as much as fits, NUL-terminated, and the whole length without the NUL.
inline void write_text(std::string_view text, char* buffer, uint64_t capacity, uint64_t* length) {
  if (capacity != 0) {
    const size_t count = std::min<uint64_t>(text.size(), capacity - 1);
    std::memcpy(buffer, text.data(), count);
    buffer[count] = '\0';
  }
  if (length != nullptr) *length = text.size();
}

}  // namespace tuff::capi
