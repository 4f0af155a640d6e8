// Memory that is nowhere, as planners see it: where each operand lies, and what of it has been written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planning/buffer.hpp"

namespace tuff_test {

// Byte ranges, apart and in order.
class Ranges {
 public:
  void add(uint64_t begin, uint64_t end);
  bool holds(uint64_t begin, uint64_t end) const;
  void clear() { ends_.clear(); }

 private:
  std::map<uint64_t, uint64_t> ends_;  // by where they begin
};

// An allocation with one operand in it.
struct Memory final : tuff::Allocation {
  std::byte* host() const noexcept override { return nullptr; }

  struct Range {
    uint64_t begin, end;
  };
  std::string name;
  uint64_t begin = 0, end = 0;   // bytes of the allocation that the operand takes
  uint64_t element = 1;          // bytes
  bool scratch = false;          // the recorder's own
  bool output = false;           // the call may write it
  std::vector<Range> has_to_be;  // written, when the call was recorded
  Ranges written;
};

}  // namespace tuff_test
