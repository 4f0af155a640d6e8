// The gradient of softmax by its input.
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

struct SoftmaxBackwardArgs {
  int32_t dtype;
  const Buffer *output, *output_gradient, *gradient;
  const uint64_t* shape;
  uint32_t rank, axis;
  double scale;
  int32_t logarithm;

  auto arrays() { return std::tuple(counted(shape, rank)); }
};

void check_softmax_backward(const SoftmaxBackwardArgs& args);
void host_softmax_backward(const SoftmaxBackwardArgs& args);
void record_softmax_backward(Recorder& recorder, const SoftmaxBackwardArgs& args);

namespace operations {
extern const OperationOf<SoftmaxBackwardArgs> softmax_backward;
}  // namespace operations

}  // namespace tuff
