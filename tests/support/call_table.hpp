// Every function of the ABI that takes buffers, as a row with a valid call in which a test can spoil one argument.
// Operations come from their descriptions (fuzz/describe_*.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "fuzz/example.hpp"
#include "tuff/tuff.h"

namespace tuff_test {

// Each buffer has this size, which suits every row.
inline constexpr uint64_t kCallBytes = 4096;
inline constexpr size_t kCallBuffers = 16;  // at most, in one row

struct CallBuffer {
  CallBuffer(const char* its_name) : name(its_name) {}  // NOLINT(google-explicit-constructor)
  explicit CallBuffer(const tuff_fuzz::Example::Buffer& described);

  const char* name;
  uint64_t element = 4;   // bytes of one; their multiples are where the operand may begin
  uint64_t bytes = 12;    // that the call needs
  bool optional = false;  // 0 means "none" in another row
};

struct BufferCall {
  const char* function;
  std::vector<CallBuffer> buffers;  // in the order of `operands`
  bool has_stream;                  // otherwise the function takes no stream
  std::function<tuff_status(tuff_stream stream, const tuff_buffer* operands)> call;  // allocates nothing
  bool first = true;  // of the rows of this function that come from its description
  const tuff_fuzz::Example* example = nullptr;

  // What the buffers have to hold (tuff_fuzz::Example::contents).
  std::vector<std::vector<uint8_t>> contents(const std::function<double()>& number) const;
};

// Each call succeeds on distinct valid buffers of one context. An operation has a row with the operands that it
// requires, and further ones, so that each of its operands is in a row.
const std::vector<BufferCall>& buffer_calls();

}  // namespace tuff_test
