// Reads and writes the ABI's structures, whose size tells which version the caller was compiled with, and texts.
#pragma once

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "capi/structure_sizes.hpp"
#include "planning/status.hpp"

namespace tuff::capi {

// No later version of a structure will be larger by more than this: beyond it, struct_size was not set.
constexpr uint32_t kMaxUnknownTail = 4096;

// Reads struct_size bytewise, since a caller's structure may be misaligned.
inline uint32_t struct_size_of(const void* structure, std::string_view name) {
  require(structure != nullptr, "{} is null", name);
  uint32_t size = 0;
  std::memcpy(&size, structure, sizeof size);
  return size;
}

// Accepts a size from a released version, so that no field and no group of related fields is cut in two, or a larger
// size from a later version.
template <typename T>
void check_struct_size(uint32_t size, std::string_view name) {
  constexpr auto& sizes = Released<T>::sizes;
  static_assert(sizes.back() == sizeof(T), "capi/structure_sizes.hpp lacks the new size: run scripts/api/generate.py");
  if (std::find(sizes.begin(), sizes.end(), size) != sizes.end()) [[likely]] {
    return;
  }
  require(size > sizeof(T), "{}->struct_size is {}, needs {}, the size in a version of this library", name, size,
          fmt::join(sizes, " or "));
  require(size <= sizeof(T) + kMaxUnknownTail, "{}->struct_size is {}, this version knows {} bytes", name, size,
          sizeof(T));
}

// A copy of a caller's structure, with zeros in fields that the caller does not know.
template <typename T>
T read_structure(const T* structure, std::string_view name) {
  const uint32_t size = struct_size_of(structure, name);
  check_struct_size<T>(size, name);
  const auto* bytes = reinterpret_cast<const unsigned char*>(structure);
  for (size_t i = sizeof(T); i < size; ++i) {
    require(bytes[i] == 0, "{}->struct_size is {}, and byte {} is set: this version knows {} bytes", name, size, i,
            sizeof(T));
  }
  T copy{};
  std::memcpy(&copy, bytes, std::min<size_t>(size, sizeof(T)));
  return copy;
}

// Checks an output structure before the work that fills it.
template <typename T>
void check_output_structure(const T* structure, std::string_view name) {
  check_struct_size<T>(struct_size_of(structure, name), name);
}

// Writes the fields that the caller knows and zeros beyond those this library knows. struct_size is preserved.
template <typename T>
void write_structure(T* structure, T value) {
  uint32_t size = 0;
  std::memcpy(&size, structure, sizeof size);
  value.struct_size = size;
  auto* bytes = reinterpret_cast<unsigned char*>(structure);
  std::memcpy(bytes, &value, std::min<size_t>(size, sizeof(T)));
  if (size > sizeof(T)) std::memset(bytes + sizeof(T), 0, size - sizeof(T));
}

// Reads a text of at most `most` bytes. The search for its end goes no further than that.
inline std::string read_text(const char* text, std::string_view name, uint64_t most) {
  const size_t length = strnlen(text, most + 1);
  if (length > most) fail(TUFF_ERROR_LIMIT_EXCEEDED, "{} is longer than {} bytes", name, most);
  return {text, length};
}

// Checks an output buffer for text, of `capacity` bytes.
inline void check_text(const char* buffer, std::string_view name, uint64_t capacity) {
  require(buffer != nullptr || capacity == 0, "{} is null and capacity is {}, needs 0", name, capacity);
}

// Writes as much as fits, NUL-terminated, and the full length without the NUL.
inline void write_text(std::string_view text, char* buffer, uint64_t capacity, uint64_t* length) {
  if (capacity != 0) {
    const size_t count = std::min<uint64_t>(text.size(), capacity - 1);
    text.copy(buffer, count);  // unlike memcpy, also for a view of nothing
    buffer[count] = '\0';
  }
  if (length != nullptr) *length = text.size();
}

}  // namespace tuff::capi
