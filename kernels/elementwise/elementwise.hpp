// Element-wise operations of one or two operands.
#pragma once

#include <cstdint>

#include "runtime/buffer.hpp"

namespace tuff {

class Recorder;

struct UnaryArgs {
  int32_t dtype;
  int32_t op;  // TUFF_UNARY_*
  const Buffer *input, *output;
  uint64_t n;
  double alpha;  // of those that have one; 0: their default
};

struct BinaryArgs {
  int32_t dtype;
  int32_t op;  // TUFF_BINARY_*
  const Buffer *a, *b, *output;
  uint64_t n;
};

void check_unary(const UnaryArgs& args);
void host_unary(const UnaryArgs& args);
void record_unary(Recorder& recorder, const UnaryArgs& args);

void check_binary(const BinaryArgs& args);
void host_binary(const BinaryArgs& args);
void record_binary(Recorder& recorder, const BinaryArgs& args);

}  // namespace tuff
