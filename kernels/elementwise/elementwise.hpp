// Element-wise operations of one or two operands.
#pragma once

#include <cstdint>

#include "kernels/common/strided_axes.hpp"
#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

struct UnaryArgs {
  int32_t dtype;
  int32_t op;  // TUFF_UNARY_*
  const Buffer *input, *output;
  uint64_t n;
  double alpha;  // for operations that take one; 0: the operation's default
};

struct BinaryArgs {
  int32_t dtype;
  int32_t op;  // TUFF_BINARY_*
  const Buffer *a, *b, *output;
  uint64_t n;
  // With rank > 0 the shapes have `rank` sizes each and broadcast by NumPy's rule; n is then 0 or the result's size.
  uint32_t rank = 0;
  const uint64_t *a_shape = nullptr, *b_shape = nullptr;

  auto arrays() { return std::tuple(counted(a_shape, rank), counted(b_shape, rank)); }
};

void check_unary(const UnaryArgs& args);
void host_unary(const UnaryArgs& args);
void record_unary(Recorder& recorder, const UnaryArgs& args);
tuff_status offer_unary(const PluginFunction& function, const UnaryArgs& args);

// The number of elements of the result. The arguments must have been checked.
uint64_t result_count(const BinaryArgs& args);
// The result's axes with the strides of a and b. A stride is 0 where a size of 1 is repeated.
StridedAxes<2> broadcast_axes(const BinaryArgs& args);
bool repeats_an_operand(const BinaryArgs& args);

void check_binary(const BinaryArgs& args);
void host_binary(const BinaryArgs& args);
void record_binary(Recorder& recorder, const BinaryArgs& args);
tuff_status offer_binary(const PluginFunction& function, const BinaryArgs& args);
void record_binary_broadcast(Recorder& recorder, const BinaryArgs& args);  // an operand is repeated

namespace operations {
extern const OperationOf<UnaryArgs> unary;
extern const OperationOf<BinaryArgs> binary;
}  // namespace operations

}  // namespace tuff
