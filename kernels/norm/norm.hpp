// Normalisation of rows by their own mean and variance (layer, RMS, group and instance norm), and of channels by stored
// statistics (batch norm).
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/element_type.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

namespace norm {
#define NORM_TYPE(NAME) TUFF_##NAME,
inline constexpr ElementTypes kTypes = {
#include "kernels/norm/norm.def"
};
// UNSUPPORTED unless the type is `usual` or f32.
void check_type_or_f32(int32_t type, const char* name, int32_t usual);
void check_epsilon(double epsilon);
}  // namespace norm

// input is [rows][channels][inner]. Each row has `groups` parts, which are normalised separately.
struct NormArgs {
  int32_t dtype;
  int32_t weight_type;                           // of weight and bias
  bool centred;                                  // the mean is subtracted; otherwise RMS norm
  bool grouped;                                  // for messages: a group norm, which names its sizes differently
  const Buffer *input, *weight, *bias, *output;  // weight and bias [channels] or null
  const Buffer *residual, *sum;                  // null: none
  uint64_t rows, channels, inner = 1, groups = 1;
  double epsilon;
};

// input is [batch][channels][inner].
struct BatchNormArgs {
  int32_t dtype;
  int32_t weight_type;                                             // of mean, variance, weight and bias
  const Buffer *input, *mean, *variance, *weight, *bias, *output;  // weight and bias may be null
  uint64_t batch, channels, inner;
  double epsilon;
};

void check_norm(const NormArgs& args);
void host_norm(const NormArgs& args);
void record_norm(Recorder& recorder, const NormArgs& args);
tuff_status offer_norm(const PluginFunction& function, const NormArgs& args);

void check_batch_norm(const BatchNormArgs& args);
void host_batch_norm(const BatchNormArgs& args);
void record_batch_norm(Recorder& recorder, const BatchNormArgs& args);
tuff_status offer_batch_norm(const PluginFunction& function, const BatchNormArgs& args);

namespace operations {
extern const OperationOf<NormArgs> layer_norm, rms_norm, group_norm;
extern const OperationOf<BatchNormArgs> batch_norm;
}  // namespace operations

}  // namespace tuff
