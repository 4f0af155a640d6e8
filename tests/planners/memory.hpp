// Simulated memory, as planners see it: the location of each operand, and which bytes of it have been written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planning/buffer.hpp"

namespace tuff_test {

// Disjoint byte ranges in ascending order.
class Ranges {
 public:
  void add(uint64_t begin, uint64_t end);
  bool holds(uint64_t begin, uint64_t end) const;
  // The longest part of the range that is not held.
  uint64_t longest_gap(uint64_t begin, uint64_t end) const;
  void clear() { ends_.clear(); }

 private:
  std::map<uint64_t, uint64_t> ends_;  // by the beginnings of the ranges
};

// An allocation with one operand in it.
struct Memory final : tuff::Allocation {
  std::byte* host() const noexcept override { return nullptr; }

  struct Range {
    uint64_t begin, end;
  };
  std::string name;
  uint64_t begin = 0, end = 0;          // the bytes of the allocation that the operand occupies
  uint64_t element = 1;                 // size of an element in bytes
  bool scratch = false;                 // scratch memory of the recorder
  bool matrices = false;                // a kernel of linear algebra has written to it
  bool output = false;                  // the call may write it
  std::vector<Range> has_to_be;         // ranges that must be written by the end of the recording
  bool unused = false;                  // the call does not need the operand
  bool has_to_be_read = false;          // every byte, by the end of the recording
  std::vector<Range> parts_to_be_read;  // if not every byte
  Ranges written, read;
  struct Piece {
    uint64_t begin, end;
    const char* kernel;
  };
  std::vector<Piece> pieces;  // of scratch memory: what single dispatches wrote
};

}  // namespace tuff_test
