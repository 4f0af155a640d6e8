// The public ABI as data, generated from tuff.json: functions, their arguments, and a way to call each with arguments
// assembled at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tuff/tuff.h"

namespace tuff_fuzz {

enum class Kind : uint8_t { number, enumerator, flags, real, handle, text, memory, struct_size, reserved };

// A value that a caller sets: an argument that is not a structure, or a field of one that is.
struct Place {
  const char* name;
  Kind kind;
  uint8_t bytes;       // of one element
  int16_t group;       // index in groups() for enumerators and flags, in handle_types() for handles
  uint8_t argument;    // index of the parameter that it is, or is a field of
  uint32_t offset;     // within the structure
  uint32_t count;      // elements of an array; 0: a pointer to as many as `length` says
  const char* length;  // the place that counts the elements or bytes behind a pointer; or null
  bool in_structure;
  bool pointer;
  bool nullable;
  bool is_signed;
};

enum class Way : uint8_t { in, out, inout };

struct Argument {
  const char* name;
  int16_t structure;  // index in structures(), or -1
  Way way;
  uint8_t bytes;  // size of what an `out` pointer receives
  bool nullable;
  bool pointer;
};

struct Function {
  const char* name;
  std::span<const Place> places;
  std::span<const Argument> arguments;
  tuff_status (*invoke)(const uint64_t* arguments);
};

struct Structure {
  const char* name;
  uint32_t size;
  std::span<const uint32_t> sizes;  // its sizes in all versions
};

struct Group {
  std::string name;
  std::vector<std::pair<std::string, int64_t>> values;
};

const std::vector<Function>& functions();
const std::vector<Structure>& structures();
const std::vector<Group>& groups();
const std::vector<const char*>& handle_types();

}  // namespace tuff_fuzz
