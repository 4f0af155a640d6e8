// Every function of the ABI that takes buffers, as a row: a valid call that a test can spoil one argument of.
#pragma once

#include <cstdint>
#include <vector>

#include "tuff/tuff.h"

namespace tuff_test {

// The calls want buffers of this size, 4-byte elements; all of them fit every row.
inline constexpr uint64_t kCallBytes = 4096;

struct BufferCall {
  const char* function;
  std::vector<const char*> buffers;  // names of the buffer arguments, in the order of `operands`
  bool has_stream;                   // else the stream is not passed on
  tuff_status (*call)(tuff_stream stream, const tuff_buffer* operands);
};

// Each succeeds on distinct valid buffers of one context.
const std::vector<BufferCall>& buffer_calls();

}  // namespace tuff_test
