// One call of one function, with a value for each of its places. Handles and memory differ between backends, so they
// are stored as references that a Resolver translates for each backend.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/abi.hpp"

namespace tuff_fuzz {

const Function& function_of(std::string_view name);

// Handle references: 0 is the null handle, index + 1 an object; with this bit the remaining number is used as it is.
inline constexpr uint64_t kForged = uint64_t{1} << 63;
// Memory references: an offset in the backend's scratch memory, or for a mapped buffer object << 24 | offset. Any
// other number is the address itself.
inline constexpr uint64_t kScratch = uint64_t{1} << 63, kMapped = uint64_t{1} << 62;
inline constexpr size_t kScratchBytes = 1 << 18;

class Resolver {
 public:
  virtual ~Resolver() = default;
  virtual uint64_t handle(uint64_t reference) const = 0;
  virtual uint64_t memory(uint64_t reference) const = 0;
};

struct Slot {
  uint32_t begin = 0, count = 0;
  bool set = false;
  bool null = false;  // the pointer is NULL
};

struct Outcome {
  tuff_status status = TUFF_OK;
  std::string message;        // if it failed
  std::vector<uint64_t> out;  // the value received through each argument's pointer
  bool touched = false;       // it failed, but something was written all the same
};

class Call {
 public:
  explicit Call(const Function& function);

  const Function& function() const { return *function_; }
  int find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) >= 0; }
  // Sets the places of this name, if there are any.
  void set(std::string_view name, uint64_t value);
  void set(std::string_view name, double value);
  void list(std::string_view name, std::span<const uint64_t> values);
  void put(size_t place, size_t index, uint64_t value);
  uint64_t get(std::string_view name, size_t index = 0) const;
  // Whether the place of this name gives the number of elements behind a pointer that is set.
  bool counts_others(std::string_view name) const;
  const Slot& slot(size_t place) const { return slots_[place]; }
  Slot& slot(size_t place) { return slots_[place]; }
  uint64_t value(size_t place, size_t index) const { return pool_[slots_[place].begin + index]; }

  // Invalid structures and pointers.
  int null_argument = -1;   // this pointer is NULL
  int sized_argument = -1;  // this structure's struct_size is `claimed`
  uint32_t claimed = 0;
  bool tail = false;  // and a byte after the known part is not zero

  Outcome invoke(const Resolver& resolver) const;
  std::string text() const;

 private:
  const Function* function_;
  std::vector<Slot> slots_;
  std::vector<uint64_t> pool_;
};

}  // namespace tuff_fuzz
