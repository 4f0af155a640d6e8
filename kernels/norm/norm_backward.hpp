// Training of normalisations: their gradients, and batch norm by the statistics of the batch itself.
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

// input is [batch][channels][inner]. LAYER and RMS: rows, columns and 1.
struct NormBackwardArgs {
  int32_t dtype, kind, weight_type, statistics_type, frozen;
  uint64_t batch, channels, inner, groups;  // groups: GROUP only, otherwise 0
  double epsilon;
  const Buffer *input, *weight, *output_gradient;                  // weight: null: ones
  const Buffer *mean, *variance;                                   // BATCH only, or null
  const Buffer *input_gradient, *weight_gradient, *bias_gradient;  // null: not wanted
};

struct BatchNormTrainingArgs {
  int32_t dtype, weight_type;
  uint64_t batch, channels, inner;
  double epsilon, momentum;
  const Buffer *input, *weight, *bias;            // weight and bias may be null
  const Buffer *output, *mean, *variance;         // null: not wanted; statistics in f32
  const Buffer *running_mean, *running_variance;  // of weight_type, read and written, or null
};

void check_norm_backward(const NormBackwardArgs& args);
void host_norm_backward(const NormBackwardArgs& args);
void record_norm_backward(Recorder& recorder, const NormBackwardArgs& args);

void check_batch_norm_training(const BatchNormTrainingArgs& args);
void host_batch_norm_training(const BatchNormTrainingArgs& args);
void record_batch_norm_training(Recorder& recorder, const BatchNormTrainingArgs& args);

namespace operations {
extern const OperationOf<NormBackwardArgs> norm_backward;
extern const OperationOf<BatchNormTrainingArgs> batch_norm_training;
}  // namespace operations

}  // namespace tuff
