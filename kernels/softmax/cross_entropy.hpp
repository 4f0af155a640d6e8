// Cross-entropy of rows of logits with the classes of their labels, and its gradient.
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

struct CrossEntropyArgs {
  int32_t dtype, label_type;
  int32_t ignores;
  int64_t ignore_index;
  const uint64_t* shape;
  uint32_t rank, axis;
  double label_smoothing, gradient_scale;
  const Buffer *logits, *labels, *gradient_factor, *loss_gradient;  // the last two may be null
  const Buffer *loss, *gradient;                                    // null: not wanted

  auto arrays() { return std::tuple(counted(shape, rank)); }
};

void check_cross_entropy(const CrossEntropyArgs& args);
void host_cross_entropy(const CrossEntropyArgs& args);
void record_cross_entropy(Recorder& recorder, const CrossEntropyArgs& args);

namespace operations {
extern const OperationOf<CrossEntropyArgs> cross_entropy;
}  // namespace operations

}  // namespace tuff
