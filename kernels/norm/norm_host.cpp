// Each row in double precision: first the mean, then the variance about it, then the results.
#include <cmath>

#include "kernels/common/elements.hpp"
#include "kernels/norm/norm.hpp"

namespace tuff {
namespace {

template <typename T>
double at_or(const Buffer* buffer, uint64_t i, double otherwise) {
  return buffer != nullptr ? static_cast<double>(buffer->host<T>()[i]) : otherwise;
}

// Normalises `count` elements from `first` on, one part of a row, whose channels start at `first_channel`.
template <typename T, typename W>
void normalise(const NormArgs& args, uint64_t first, uint64_t first_channel, uint64_t count) {
  const T* input = args.input->host<T>() + first;
  const T* residual = args.residual != nullptr ? args.residual->host<T>() + first : nullptr;
  const T* sum = args.sum != nullptr ? args.sum->host<T>() + first : nullptr;
  T* output = args.output->host<T>() + first;
  const auto x = [&](uint64_t j) -> double {
    if (sum != nullptr) return sum[j];
    return residual != nullptr ? static_cast<double>(T(double{input[j]} + double{residual[j]})) : double{input[j]};
  };
  if (sum != nullptr) {
    T* stored = args.sum->host<T>() + first;
    for (uint64_t j = 0; j < count; ++j) stored[j] = T(double{input[j]} + double{residual[j]});
  }
  double mean = 0, squares = 0;
  if (args.centred) {
    for (uint64_t j = 0; j < count; ++j) mean += x(j);
    mean /= static_cast<double>(count);
  }
  for (uint64_t j = 0; j < count; ++j) squares += (x(j) - mean) * (x(j) - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(count) + static_cast<float>(args.epsilon));
  for (uint64_t j = 0; j < count; ++j) {
    const uint64_t channel = first_channel + j / args.inner;
    output[j] = T((x(j) - mean) / deviation * at_or<W>(args.weight, channel, 1) + at_or<W>(args.bias, channel, 0));
  }
}

}  // namespace

void host_norm(const NormArgs& args) {
  if (args.rows == 0) return;
  const uint64_t channels = args.channels / args.groups, count = channels * args.inner;
  with_float_type(args.dtype, [&]<typename T>(T) {
    with_float_type(args.weight_type, [&]<typename W>(W) {
      for (uint64_t part = 0; part < args.rows * args.groups; ++part) {
        normalise<T, W>(args, part * count, part % args.groups * channels, count);
      }
    });
  });
}

void host_batch_norm(const BatchNormArgs& args) {
  if (args.batch == 0 || args.channels == 0 || args.inner == 0) return;
  with_float_type(args.dtype, [&]<typename T>(T) {
    with_float_type(args.weight_type, [&]<typename W>(W) {
      const T* input = args.input->host<T>();
      T* output = args.output->host<T>();
      for (uint64_t i = 0; i < args.batch * args.channels * args.inner; ++i) {
        const uint64_t channel = i / args.inner % args.channels;
        const double deviation =
            std::sqrt(double{args.variance->host<W>()[channel]} + static_cast<float>(args.epsilon));
        const double normal = (double{input[i]} - double{args.mean->host<W>()[channel]}) / deviation;
        output[i] = T(normal * at_or<W>(args.weight, channel, 1) + at_or<W>(args.bias, channel, 0));
      }
    });
  });
}

}  // namespace tuff
