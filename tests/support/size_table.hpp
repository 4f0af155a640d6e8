// Every function of the ABI that takes sizes, strides or other integers besides buffers, as a row with a valid call
// whose numbers a test can replace, one or several at a time. Operations come from their descriptions
// (fuzz/describe_*.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tuff/tuff.h"

namespace tuff_test {

// The calls take this many buffers of this size.
inline constexpr uint64_t kSizeBytes = 4096;
inline constexpr size_t kSizeBuffers = 16;

struct SizeNumber {
  std::string name;  // as in messages, except for arrays of a flat call
  uint64_t value;    // in the valid call
};

struct SizeCall {
  const char* function;
  std::vector<SizeNumber> numbers;
  // Takes one value for each of the numbers; a 32-bit field gets the low bits.
  std::function<tuff_status(tuff_stream stream, const tuff_buffer* buffers, const uint64_t* values)> call;
};

// Each call succeeds on distinct valid buffers of one context, with the values in `numbers`.
const std::vector<SizeCall>& size_calls();

}  // namespace tuff_test
