// In double precision, by the formulas of tuff.h: statistics of what is normalised together, then its means of h and
// h n, then the gradients.
#include <cmath>
#include <vector>

#include "kernels/common/elements.hpp"
#include "kernels/norm/norm_backward.hpp"

namespace tuff {
namespace {

template <typename T>
double at_or(const Buffer* buffer, uint64_t i, double otherwise) {
  return buffer != nullptr ? static_cast<double>(buffer->host<T>()[i]) : otherwise;
}

// The elements that are normalised together: `parts` runs of `run` elements, `apart` from one run's start to the next.
struct Members {
  uint64_t first, parts, apart, run;

  uint64_t count() const { return parts * run; }
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (uint64_t p = 0; p < parts; ++p) {
      for (uint64_t i = 0; i < run; ++i) visit(first + p * apart + i);
    }
  }
};

struct Moments {
  double mean = 0, variance = 0;
};

template <typename T>
Moments moments_of(const T* x, const Members& members, bool centred) {
  Moments m;
  const auto count = static_cast<double>(members.count());
  if (centred) {
    members.for_each([&](uint64_t i) { m.mean += double{x[i]}; });
    m.mean /= count;
  }
  members.for_each([&](uint64_t i) { m.variance += (double{x[i]} - m.mean) * (double{x[i]} - m.mean); });
  m.variance /= count;
  return m;
}

template <typename T, typename W, typename S>
void differentiate(const NormBackwardArgs& args) {
  const uint64_t channels = args.channels, inner = args.inner;
  const bool of_batch = args.kind == TUFF_NORM_BATCH, centred = args.kind != TUFF_NORM_RMS;
  if ((args.batch == 0 || inner == 0) && args.weight_gradient == nullptr && args.bias_gradient == nullptr) return;
  std::vector<double> of_weight(channels), of_bias(channels);
  if (args.batch != 0 && inner != 0) {
    const T *const x = args.input->host<T>(), *const dy = args.output_gradient->host<T>();
    T* const dx = args.input_gradient != nullptr ? args.input_gradient->host<T>() : nullptr;
    const uint64_t groups = args.kind == TUFF_NORM_GROUP ? args.groups : 1;
    const uint64_t together = channels / groups * inner;  // elements of a row or group
    const uint64_t sets = of_batch ? channels : args.batch * groups;
    for (uint64_t set = 0; set < sets; ++set) {
      const Members members = of_batch ? Members{set * inner, args.batch, channels * inner, inner}
                                       : Members{set * together, 1, 0, together};
      const Moments m = args.mean != nullptr
                            ? Moments{double{args.mean->host<S>()[set]}, double{args.variance->host<S>()[set]}}
                            : moments_of(x, members, centred);
      const double deviation = std::sqrt(m.variance + static_cast<float>(args.epsilon));
      const auto normal = [&](uint64_t i) { return (double{x[i]} - m.mean) / deviation; };
      const auto h = [&](uint64_t i) { return double{dy[i]} * at_or<W>(args.weight, i / inner % channels, 1); };
      double level = 0, along = 0;
      members.for_each([&](uint64_t i) {
        of_weight[i / inner % channels] += double{dy[i]} * normal(i);
        of_bias[i / inner % channels] += double{dy[i]};
        level += h(i);
        along += h(i) * normal(i);
      });
      if (dx == nullptr) continue;
      level = centred ? level / static_cast<double>(members.count()) : 0;
      along /= static_cast<double>(members.count());
      members.for_each(
          [&](uint64_t i) { dx[i] = T((args.frozen != 0 ? h(i) : h(i) - level - normal(i) * along) / deviation); });
    }
  }
  for (uint64_t c = 0; c < channels; ++c) {
    if (args.weight_gradient != nullptr) args.weight_gradient->host<W>()[c] = W(of_weight[c]);
    if (args.bias_gradient != nullptr) args.bias_gradient->host<W>()[c] = W(of_bias[c]);
  }
}

}  // namespace

void host_norm_backward(const NormBackwardArgs& args) {
  if (args.channels == 0) return;
  with_float_type(args.dtype, [&]<typename T>(T) {
    with_float_type(args.weight_type, [&]<typename W>(W) {
      with_float_type(args.statistics_type, [&]<typename S>(S) { differentiate<T, W, S>(args); });
    });
  });
}

void host_batch_norm_training(const BatchNormTrainingArgs& args) {
  if (args.channels == 0) return;
  const double momentum = static_cast<float>(args.momentum);
  with_float_type(args.dtype, [&]<typename T>(T) {
    with_float_type(args.weight_type, [&]<typename W>(W) {
      const T* const x = args.input->host<T>();
      for (uint64_t c = 0; c < args.channels; ++c) {
        const Members members{c * args.inner, args.batch, args.channels * args.inner, args.inner};
        const Moments m = moments_of(x, members, true);
        const auto follow = [&](const Buffer* running, double value) {
          if (running == nullptr) return;
          W& r = running->host<W>()[c];
          r = W(double{r} + momentum * (value - double{r}));
        };
        const auto count = static_cast<double>(members.count());
        follow(args.running_mean, m.mean);
        follow(args.running_variance, m.variance * (count / (count - 1)));
        if (args.mean != nullptr) args.mean->host<float>()[c] = static_cast<float>(m.mean);
        if (args.variance != nullptr) args.variance->host<float>()[c] = static_cast<float>(m.variance);
        if (args.output == nullptr) continue;
        T* const y = args.output->host<T>();
        const double deviation = std::sqrt(m.variance + static_cast<float>(args.epsilon));
        const double w = at_or<W>(args.weight, c, 1), b = at_or<W>(args.bias, c, 0);
        members.for_each([&](uint64_t i) { y[i] = T((double{x[i]} - m.mean) / deviation * w + b); });
      }
    });
  });
}

}  // namespace tuff
