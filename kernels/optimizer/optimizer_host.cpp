// Element by element in double precision; what is stored is rounded, and moments are used as they are stored.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/common/elements.hpp"
#include "kernels/optimizer/optimizer.hpp"

namespace tuff {
namespace {

float* floats(std::span<const Buffer* const> buffers, size_t i) {
  return buffers.empty() ? nullptr : buffers[i]->host<float>();
}

double number_or(const Buffer* buffer, double otherwise) {
  return buffer != nullptr ? double{*buffer->host<float>()} : otherwise;
}

// What is the same for all tensors.
struct Step {
  double rate, scale, correction1, correction2, epsilon;
};

// One tensor. T and G are the types of parameters and gradients.
template <typename T, typename G>
void step_tensor(const OptimizerArgs& args, const Step& step, size_t i) {
  T* const parameter = args.parameters[i]->host<T>();
  const G* const gradient = args.gradients[i]->host<G>();
  float *const master = floats(args.masters, i), *const m = floats(args.first_moments, i),
               *const v = floats(args.second_moments, i);
  const uint64_t size = args.sizes[i];
  const double decay = args.weight_decay;
  const auto weight = [&](uint64_t j) { return master != nullptr ? double{master[j]} : double{parameter[j]}; };
  const auto store = [&](uint64_t j, double w) {
    if (master != nullptr) {
      master[j] = static_cast<float>(w);
      parameter[j] = T(double{master[j]});
    } else {
      parameter[j] = T(w);
    }
  };
  // The gradient, with the decay that is a part of it.
  const auto decayed = [&](uint64_t j) {
    const double g = double{gradient[j]} * step.scale;
    return decay != 0 ? g + decay * weight(j) : g;
  };
  if (!args.adaptive()) {
    for (uint64_t j = 0; j < size; ++j) {
      double direction = decayed(j);
      if (m != nullptr) {
        const double g = direction;
        m[j] = static_cast<float>(args.momentum * m[j] + g);
        direction = args.nesterov != 0 ? g + args.momentum * m[j] : double{m[j]};
      }
      store(j, weight(j) - step.rate * direction);
    }
    return;
  }
  for (uint64_t j = 0; j < size; ++j) {
    const double g = args.algorithm == TUFF_OPTIMIZER_ADAM ? decayed(j) : double{gradient[j]} * step.scale;
    m[j] = static_cast<float>(m[j] + (1 - args.beta1) * (g - m[j]));
    v[j] = static_cast<float>(args.beta2 * v[j] + (1 - args.beta2) * (g * g));
  }
  const auto direction = [&](uint64_t j) {
    return m[j] / step.correction1 / (std::sqrt(double{v[j]} / step.correction2) + step.epsilon);
  };
  if (args.algorithm != TUFF_OPTIMIZER_LAMB) {
    const double kept = args.algorithm == TUFF_OPTIMIZER_ADAMW && decay != 0 ? 1 - step.rate * decay : 1;
    for (uint64_t j = 0; j < size; ++j) store(j, weight(j) * kept - step.rate * direction(j));
    return;
  }
  const auto update = [&](uint64_t j) { return decay != 0 ? direction(j) + decay * weight(j) : direction(j); };
  double of_weights = 0, of_updates = 0;
  for (uint64_t j = 0; j < size; ++j) {
    of_weights += weight(j) * weight(j);
    of_updates += update(j) * update(j);
  }
  const double ratio = of_weights == 0 || of_updates == 0 ? 1 : std::sqrt(of_weights) / std::sqrt(of_updates);
  for (uint64_t j = 0; j < size; ++j) store(j, weight(j) - step.rate * ratio * update(j));
}

}  // namespace

void host_optimizer(const OptimizerArgs& args) {
  bool any = false;
  for (const uint64_t size : args.sizes) any = any || size != 0;
  if (!any || (args.skip != nullptr && *args.skip->host<int32_t>() != 0)) return;
  auto t = static_cast<double>(args.step);
  if (args.steps != nullptr) {
    int32_t& steps = *args.steps->host<int32_t>();
    steps = std::min(std::max(steps, 0), INT32_MAX - 1) + 1;
    t = steps;
  }
  // epsilon is rounded as on devices: where v is 0, all depends on whether epsilon is 0 in f32. Roundings of the others
  // change results by as little as they are.
  const Step step{args.rate * number_or(args.rate_factor, 1), args.gradient_scale * number_or(args.gradient_factor, 1),
                  1 - std::pow(args.beta1, t), 1 - std::pow(args.beta2, t), double{static_cast<float>(args.epsilon)}};
  with_float_type(args.dtype, [&]<typename T>(T) {
    with_float_type(args.gradient_type, [&]<typename G>(G) {
      for (size_t i = 0; i < args.sizes.size(); ++i) {
        if (args.sizes[i] != 0) step_tensor<T, G>(args, step, i);
      }
    });
  });
}

void host_gradient_norm(const GradientNormArgs& args) {
  double squares = 0;
  bool found = false;
  with_float_type(args.dtype, [&]<typename T>(T) {
    for (size_t i = 0; i < args.sizes.size(); ++i) {
      for (uint64_t j = 0; j < args.sizes[i]; ++j) {
        const double g = args.gradients[i]->host<T>()[j];
        squares += g * g;
        found = found || !std::isfinite(g);
      }
    }
  });
  const double factor = number_or(args.gradient_factor, 1);
  // Without gradients, an infinite factor is no reason for a NaN.
  double norm = squares == 0 ? 0 : std::sqrt(squares) * std::fabs(args.gradient_scale * factor);
  if (args.accumulate != 0) {
    const double others = *args.norm->host<float>();
    norm = std::sqrt(norm * norm + others * others);
  }
  if (args.found != nullptr) {
    int32_t& flag = *args.found->host<int32_t>();
    flag = found || (args.accumulate != 0 && flag != 0) ? 1 : 0;
  }
  if (args.norm != nullptr) *args.norm->host<float>() = static_cast<float>(norm);
  if (args.factor == nullptr) return;
  const bool within = args.limit == 0 || norm <= args.limit;
  *args.factor->host<float>() = static_cast<float>(within ? factor : factor * (args.limit / norm));
}

}  // namespace tuff
