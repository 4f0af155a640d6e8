// One call of one function: a value for each of its places. What differs from one backend to the other, handles and
// memory, is held as a reference that a Resolver turns into the backend's own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/abi.hpp"

namespace tuff_fuzz {

const Function& function_of(std::string_view name);

// References of handles: 0 is the null handle, index + 1 an object, and with this bit a number as it is.
inline constexpr uint64_t kForged = uint64_t{1} << 63;
// References of memory: a place in the backend's scratch memory; or, of a mapped buffer, object << 24 | offset.
// Any other number is the address itself.
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
  bool null = false;  // a pointer that is NULL
};

struct Outcome {
  tuff_status status = TUFF_OK;
  std::string message;        // where it failed
  std::vector<uint64_t> out;  // for each argument what its pointer received
  bool touched = false;       // where it failed: something was written all the same
};

class Call {
 public:
  explicit Call(const Function& function);

  const Function& function() const { return *function_; }
  int find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) >= 0; }
  // The places of this name, if there are any, get these values.
  void set(std::string_view name, uint64_t value);
  void set(std::string_view name, double value);
  void list(std::string_view name, std::span<const uint64_t> values);
  void put(size_t place, size_t index, uint64_t value);
  uint64_t get(std::string_view name, size_t index = 0) const;
  const Slot& slot(size_t place) const { return slots_[place]; }
  Slot& slot(size_t place) { return slots_[place]; }
  uint64_t value(size_t place, size_t index) const { return pool_[slots_[place].begin + index]; }

  // What is wrong with structures and pointers themselves.
  int null_argument = -1;   // this pointer is NULL
  int sized_argument = -1;  // this structure's struct_size is `claimed`
  uint32_t claimed = 0;
  bool tail = false;  // and something behind the known part is not zero

  Outcome invoke(const Resolver& resolver) const;
  std::string text() const;

 private:
  const Function* function_;
  std::vector<Slot> slots_;
  std::vector<uint64_t> pool_;
};

}  // namespace tuff_fuzz
