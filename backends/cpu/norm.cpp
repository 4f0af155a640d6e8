// Normalisations, in double precision: the mean, then the variance about it, then the results.
#include <cmath>
#include <vector>

#include "backends/cpu/device.hpp"

namespace tuff_cpu {
namespace {

// One part of a row, as f32: `count` elements, normalised together. Returns what they are multiplied by.
double deviation_of(const float* x, uint64_t count, double mean, double epsilon) {
  double squares = 0;
#pragma omp simd reduction(+ : squares)
  for (uint64_t i = 0; i < count; ++i) {
    const double distance = static_cast<double>(x[i]) - mean;
    squares += distance * distance;
  }
  return std::sqrt(squares / static_cast<double>(count) + epsilon);
}

double mean_of(const float* x, uint64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (uint64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
  return sum / static_cast<double>(count);
}

// Weight and bias in f32; an absent one is 1 or 0.
class Weights {
 public:
  Weights(tuff_buffer address, int32_t type, uint64_t n) : there_(address != 0), values_(address, type, n) {}
  bool there() const { return there_; }
  const float* get() const { return values_.get(); }
  double at(uint64_t i, double otherwise) const { return there_ ? static_cast<double>(values_.get()[i]) : otherwise; }

 private:
  bool there_;
  Widened values_;
};

void scale_row(float* x, uint64_t count, double mean, double deviation, const Weights& weight, const Weights& bias) {
  const float *w = weight.get(), *b = bias.get();
  if (weight.there() && bias.there()) {
    for (uint64_t i = 0; i < count; ++i) {
      x[i] = static_cast<float>((static_cast<double>(x[i]) - mean) / deviation * static_cast<double>(w[i]) +
                                static_cast<double>(b[i]));
    }
  } else {
    for (uint64_t i = 0; i < count; ++i) {
      x[i] = static_cast<float>((static_cast<double>(x[i]) - mean) / deviation * weight.at(i, 1) + bias.at(i, 0));
    }
  }
}

template <typename Call>
tuff_status norm_rows(Device& device, const Call& call, bool centred, tuff_buffer bias_address) {
  if (!is_float(call.dtype) || !is_float(call.weight_type)) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  const Weights weight(call.weight, call.weight_type, call.cols), bias(bias_address, call.weight_type, call.cols);
  const PerThread<float> rows(device.threads, 2 * call.cols);
  with_float(call.dtype, [&]<typename T>(T) {
    for_each(call.rows, call.cols, [&](uint64_t r) {
      float* x = rows.mine();
      const uint64_t first = r * call.cols;
      widen(at<const T>(call.input) + first, x, call.cols);
      if (call.residual != 0) {
        // The sum is rounded to the type; f32 holds the sum of two 16-bit floats with enough digits for one rounding.
        float* other = x + call.cols;
        widen(at<const T>(call.residual) + first, other, call.cols);
        for (uint64_t i = 0; i < call.cols; ++i) {
          T rounded;
          round_to(x[i] + other[i], rounded);
          x[i] = wide(rounded);
        }
        if (call.sum != 0) narrow(x, at<T>(call.sum) + first, call.cols);
      }
      const double mean = centred ? mean_of(x, call.cols) : 0;
      scale_row(x, call.cols, mean, deviation_of(x, call.cols, mean, call.epsilon), weight, bias);
      narrow(x, at<T>(call.output) + first, call.cols);
    });
  });
  return TUFF_OK;
}

}  // namespace

tuff_status layer_norm(Device& device, const tuff_layer_norm_desc& call) {
  return norm_rows(device, call, true, call.bias);
}

tuff_status rms_norm(Device& device, const tuff_rms_norm_desc& call) { return norm_rows(device, call, false, 0); }

tuff_status group_norm(Device& device, const tuff_group_norm_desc& call) {
  if (!is_float(call.dtype) || !is_float(call.weight_type)) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  const Weights weight(call.weight, call.weight_type, call.channels), bias(call.bias, call.weight_type, call.channels);
  const uint64_t channels = call.channels / call.groups, count = channels * call.inner;
  const PerThread<float> parts(device.threads, count);
  with_float(call.dtype, [&]<typename T>(T) {
    for_each(call.batch * call.groups, count, [&](uint64_t part) {
      float* x = parts.mine();
      widen(at<const T>(call.input) + part * count, x, count);
      const double mean = mean_of(x, count), deviation = deviation_of(x, count, mean, call.epsilon);
      for (uint64_t c = 0; c < channels; ++c) {
        const uint64_t channel = part % call.groups * channels + c;
        const double w = weight.at(channel, 1), b = bias.at(channel, 0);
        float* of_channel = x + c * call.inner;
        for (uint64_t i = 0; i < call.inner; ++i) {
          of_channel[i] = static_cast<float>((static_cast<double>(of_channel[i]) - mean) / deviation * w + b);
        }
      }
      narrow(x, at<T>(call.output) + part * count, count);
    });
  });
  return TUFF_OK;
}

tuff_status batch_norm(Device& device, const tuff_batch_norm_desc& call) {
  if (!is_float(call.dtype) || !is_float(call.weight_type)) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  const Weights mean(call.mean, call.weight_type, call.channels),
      variance(call.variance, call.weight_type, call.channels);
  const Weights weight(call.weight, call.weight_type, call.channels), bias(call.bias, call.weight_type, call.channels);
  const auto deviation = [&](uint64_t c) { return std::sqrt(variance.at(c, 0) + call.epsilon); };
  constexpr uint64_t kPart = 512;
  with_float(call.dtype, [&]<typename T>(T) {
    if (call.inner == 1) {  // channels are neighbours
      std::vector<double> deviations(call.channels);
      for (uint64_t c = 0; c < call.channels; ++c) deviations[c] = deviation(c);
      for_each(call.batch, call.channels, [&](uint64_t row) {
        const T* x = at<const T>(call.input) + row * call.channels;
        T* y = at<T>(call.output) + row * call.channels;
        for (uint64_t c = 0; c < call.channels; ++c) {
          const double normal = (static_cast<double>(wide(x[c])) - mean.at(c, 0)) / deviations[c];
          round_to(static_cast<float>(normal * weight.at(c, 1) + bias.at(c, 0)), y[c]);
        }
      });
      return;
    }
    for_each(call.batch * call.channels, call.inner, [&](uint64_t plane) {
      const uint64_t c = plane % call.channels;
      const double m = mean.at(c, 0), d = deviation(c), w = weight.at(c, 1), b = bias.at(c, 0);
      const T* x = at<const T>(call.input) + plane * call.inner;
      T* y = at<T>(call.output) + plane * call.inner;
      float block[kPart];
      for (uint64_t first = 0; first < call.inner; first += kPart) {
        const uint64_t count = std::min(kPart, call.inner - first);
        widen(x + first, block, count);
        for (uint64_t i = 0; i < count; ++i) {
          block[i] = static_cast<float>((static_cast<double>(block[i]) - m) / d * w + b);
        }
        narrow(block, y + first, count);
      }
    });
  });
  return TUFF_OK;
}

}  // namespace tuff_cpu
