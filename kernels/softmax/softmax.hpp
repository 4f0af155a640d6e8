// Softmax along one axis of a dense tensor.
#pragma once

#include <cstdint>

#include "runtime/buffer.hpp"

namespace tuff {

class Recorder;

struct SoftmaxArgs {
  int32_t dtype;
  const Buffer *input, *output;
  const uint64_t* shape;
  uint32_t rank, axis;
};

void check_softmax(const SoftmaxArgs& args);
void host_softmax(const SoftmaxArgs& args);
void record_softmax(Recorder& recorder, const SoftmaxArgs& args);

}  // namespace tuff
