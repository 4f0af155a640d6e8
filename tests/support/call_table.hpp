// Every function of the ABI that takes buffers, as a row with a valid call in which a test can spoil one argument.
// Operations come from their descriptions (fuzz/describe_*.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tuff/tuff.h"

namespace tuff_test {

// Each buffer has this size and 4-byte elements, which suits every row.
inline constexpr uint64_t kCallBytes = 4096;
inline constexpr size_t kCallBuffers = 4;  // at most, in one row

struct BufferCall {
  const char* function;
  std::vector<const char*> buffers;  // names of the buffer arguments, in the order of `operands`
  bool has_stream;                   // otherwise the function takes no stream
  std::function<tuff_status(tuff_stream stream, const tuff_buffer* operands)> call;  // allocates nothing
};

// Each call succeeds on distinct valid buffers of one context.
const std::vector<BufferCall>& buffer_calls();

}  // namespace tuff_test
