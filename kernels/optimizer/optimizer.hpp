// Steps of optimisers over lists of tensors, and the norm of a list of gradients.
#pragma once

#include <cstdint>
#include <span>

#include "planning/buffer.hpp"
#include "planning/element_type.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

// Arrays have one buffer for each size, or none.
struct OptimizerArgs {
  int32_t dtype, gradient_type;
  int32_t algorithm;  // TUFF_OPTIMIZER_*
  int32_t nesterov;
  std::span<const uint64_t> sizes;
  std::span<const Buffer*const> parameters, gradients, masters, first_moments, second_moments;
  double rate, momentum, beta1, beta2, epsilon, weight_decay, gradient_scale;
  uint64_t step;
  const Buffer *steps, *rate_factor, *gradient_factor, *skip;  // null: none

  bool adaptive() const { return algorithm != TUFF_OPTIMIZER_SGD; }
  bool has_moments() const { return adaptive() || momentum != 0; }
  bool fixed_lists() const { return true; }
};

struct GradientNormArgs {
  int32_t dtype;
  int32_t accumulate;
  std::span<const uint64_t> sizes;
  std::span<const Buffer* const> gradients;
  double gradient_scale, limit;
  const Buffer *gradient_factor, *norm, *factor, *found;  // null: none

  bool fixed_lists() const { return true; }
};

void check_optimizer(const OptimizerArgs& args);
void host_optimizer(const OptimizerArgs& args);
void record_optimizer(Recorder& recorder, const OptimizerArgs& args);

void check_gradient_norm(const GradientNormArgs& args);
void host_gradient_norm(const GradientNormArgs& args);
void record_gradient_norm(Recorder& recorder, const GradientNormArgs& args);

namespace operations {
extern const OperationOf<OptimizerArgs> optimizer_step;
extern const OperationOf<GradientNormArgs> gradient_norm;
}  // namespace operations

}  // namespace tuff
