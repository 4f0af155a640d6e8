// Fixed valid calls of the operations, from their descriptions: what tests of single arguments start from. They can be
// made from any thread, and allocate nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/draft.hpp"

namespace tuff_fuzz {

class Example {
 public:
  struct Buffer {
    std::string name;  // as in messages
    int32_t dtype;
    uint64_t elements;
  };
  struct Number {
    std::string name;  // as in messages, except for arrays of a flat call
    uint64_t value;
  };

  explicit Example(std::shared_ptr<Draft> draft);

  const char* function() const { return function_->name; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  // The sizes, strides and other integers, except those that count what a pointer points to.
  const std::vector<Number>& numbers() const { return numbers_; }

  // `buffers` in the order of buffers(). `values` replace the numbers; a 32-bit field gets the low bits.
  tuff_status call(tuff_stream stream, const tuff_buffer* buffers, const uint64_t* values = nullptr) const;

  // Contents of each buffer, of `bytes` bytes: indices, offsets and the like as the fuzzer draws them, and elsewhere
  // what number() returns. If possible, every implementation computes the same from them, up to rounding
  // (Draft::suits).
  std::vector<std::vector<uint8_t>> contents(uint64_t bytes, const std::function<double()>& number) const;

 private:
  static constexpr size_t kMaxArguments = 32, kMaxStructure = 2048, kMaxLists = 1024;
  enum class Part : uint8_t { argument, structure, list };
  struct Target {
    Part part;
    uint8_t bytes;
    uint32_t at;
  };
  struct Frame {
    uint64_t arguments[kMaxArguments];
    alignas(16) unsigned char structure[kMaxStructure];
    alignas(16) unsigned char lists[kMaxLists];
  };
  static void store(Frame& frame, const Target& target, uint64_t value);

  std::shared_ptr<Draft> draft_;
  const Function* function_;
  std::vector<Buffer> buffers_;
  std::vector<Number> numbers_;
  std::vector<Target> buffer_targets_, number_targets_;
  Target stream_{};
  Frame frame_{};  // without addresses and handles
  int structure_argument_ = -1;
  std::vector<std::pair<Target, uint32_t>> list_addresses_;
};

// True if the draft has at most this many operands, and each has elements of f32, of pairs of them or of integers, in
// at most `bytes` bytes.
bool fits(const Draft& draft, size_t operands, uint64_t bytes);
// How ordinary the call is: 0 at best. Factors that are not zero, sizes that are not 1, operands of f32,
// a few hundred elements.
double plainness(const Draft& draft);

// A draft's worth for a purpose; kUnusable if it has none.
inline constexpr double kUnusable = -std::numeric_limits<double>::infinity();
using Worth = std::function<double(const Draft& draft)>;

// The best of a few thousand drafts of each description, always the same ones; of equal ones the first. Descriptions
// without a usable draft are left out.
std::vector<Example> best_examples(const Worth& worth);

// For each description the best draft, and further ones until every operand that a usable draft has is in one of them.
std::vector<Example> covering_examples(const Worth& worth);

}  // namespace tuff_fuzz
