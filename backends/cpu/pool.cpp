// Pooling: each window in the order of the input. Sums are in double precision.
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/device.hpp"

namespace tuff_cpu {
namespace {

// The taps of a window along one axis: begin, begin + step, … below end, all within the input.
struct Window {
  uint64_t begin, end, step;
  uint64_t span;  // in the input and its padding
};

Window window_of(const tuff_pool_desc& call, uint32_t d, uint64_t o) {
  const uint64_t in = call.in_shape[d];
  if (call.adaptive == 1) {
    const uint64_t out = call.out_shape[d], begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
    return {begin, end, 1, end - begin};
  }
  const auto padding = static_cast<int64_t>(call.padding[d]), size = static_cast<int64_t>(in);
  const int64_t first = static_cast<int64_t>(o * call.stride[d]) - padding;
  const auto step = static_cast<int64_t>(call.dilation[d]);
  const int64_t end = first + step * (static_cast<int64_t>(call.kernel[d]) - 1) + 1;
  const int64_t begin = first >= 0 ? first : first + (-first + step - 1) / step * step;
  return {static_cast<uint64_t>(begin), static_cast<uint64_t>(std::min(end, size)), call.dilation[d],
          static_cast<uint64_t>(std::min(end, size + padding) - first)};
}

// Calls body(offset of a row of taps in the plane) for each row of a window.
template <typename Body>
void for_rows(const tuff_pool_desc& call, const Window& z, const Window& y, const Body& body) {
  for (uint64_t i = z.begin; i < z.end; i += z.step) {
    for (uint64_t j = y.begin; j < y.end; j += y.step) body((i * call.in_shape[1] + j) * call.in_shape[2]);
  }
}

struct Largest {
  float value = -std::numeric_limits<float>::infinity();
  uint64_t index = 0;
};

// The first of the largest, or of NaN. Without a tap, -infinity and index 0.
Largest largest_of(const tuff_pool_desc& call, const float* plane, const Window& z, const Window& y, const Window& x) {
  Largest best;
  bool any = false;
  for_rows(call, z, y, [&](uint64_t row) {
    for (uint64_t k = x.begin; k < x.end; k += x.step) {
      const float value = plane[row + k];
      if (any && !(value > best.value) && !(value != value && best.value == best.value)) continue;
      best = {value, row + k};
      any = true;
    }
  });
  return best;
}

double sum_of(const tuff_pool_desc& call, const float* plane, const Window& z, const Window& y, const Window& x,
              double& count) {
  double sum = 0;
  count = 0;
  for_rows(call, z, y, [&](uint64_t row) {
    const float* taps = plane + row;
    double of_row = 0;
    if (x.step == 1) {
#pragma omp simd reduction(+ : of_row)
      for (uint64_t k = x.begin; k < x.end; ++k) of_row += static_cast<double>(taps[k]);
      count += static_cast<double>(x.end - std::min(x.begin, x.end));
    } else {
      for (uint64_t k = x.begin; k < x.end; k += x.step) {
        of_row += static_cast<double>(taps[k]);
        count += 1;
      }
    }
    sum += of_row;
  });
  return sum;
}

// Calls body(plane in f32, plane's number, memory for `spare` elements) for all planes of the input.
template <typename T, typename Body>
void for_planes(const Device& device, const tuff_pool_desc& call, uint64_t spare, const Body& body) {
  constexpr bool kCopied = !std::is_same_v<T, float>;
  const uint64_t inputs = call.in_shape[0] * call.in_shape[1] * call.in_shape[2];
  const PerThread<float> memory(device.threads, spare + (kCopied ? inputs : 0));
  for_each(call.batch * call.channels, inputs, [&](uint64_t p) {
    const T* stored = at<const T>(call.input) + p * inputs;
    float* own = memory.mine();
    if constexpr (kCopied) {
      widen(stored, own + spare, inputs);
      body(own + spare, p, own);
    } else {
      body(stored, p, own);
    }
  });
}

// Calls body(z, y) for each row of outputs of a plane, in order.
template <typename Body>
void for_output_rows(const tuff_pool_desc& call, const Body& body) {
  for (uint64_t i = 0; i < call.out_shape[0]; ++i) {
    const Window z = window_of(call, 0, i);
    for (uint64_t j = 0; j < call.out_shape[1]; ++j) body(z, window_of(call, 1, j));
  }
}

template <typename T, typename Output>
void for_outputs(const Device& device, const tuff_pool_desc& call, const Output& output) {
  const uint64_t outputs = call.out_shape[0] * call.out_shape[1] * call.out_shape[2];
  for_planes<T>(device, call, 0, [&](const float* plane, uint64_t p, float*) {
    uint64_t o = p * outputs;
    for_output_rows(call, [&](const Window& z, const Window& y) {
      for (uint64_t k = 0; k < call.out_shape[2]; ++k) output(plane, o++, z, y, window_of(call, 2, k));
    });
  });
}

// The outputs x of a row whose tap k lies in the input, from `first` to before `end`; the tap of output x is at
// x * stride + offset.
struct Reach {
  int64_t offset;
  uint64_t first, end;
};

Reach reach_of(const tuff_pool_desc& call, uint64_t k) {
  const auto stride = static_cast<int64_t>(call.stride[2]), in = static_cast<int64_t>(call.in_shape[2]);
  const int64_t offset = static_cast<int64_t>(k * call.dilation[2]) - static_cast<int64_t>(call.padding[2]);
  const int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t end = offset >= in ? 0 : (in - 1 - offset) / stride + 1;
  return {offset, static_cast<uint64_t>(first), std::min(static_cast<uint64_t>(end), call.out_shape[2])};
}

// Windows whose taps in a row are few.
bool has_usual_rows(const tuff_pool_desc& call) {
  constexpr uint64_t kMaxTaps = 64;
  return call.indices == 0 && call.adaptive == 0 && call.kernel[2] <= kMaxTaps;
}

// Largest values without their indices: a row of outputs at a time, tap by tap, so that the loop is over outputs.
template <typename T>
void largest_rows(const Device& device, const tuff_pool_desc& call) {
  const uint64_t width = call.out_shape[2], stride = call.stride[2];
  std::vector<Reach> reaches;
  for (uint64_t k = 0; k < call.kernel[2]; ++k) reaches.push_back(reach_of(call, k));
  for_planes<T>(device, call, width, [&](const float* plane, uint64_t p, float* best) {
    T* output = at<T>(call.output) + p * call.out_shape[0] * call.out_shape[1] * width;
    for_output_rows(call, [&](const Window& z, const Window& y) {
      std::fill_n(best, width, -std::numeric_limits<float>::infinity());
      for_rows(call, z, y, [&](uint64_t row) {
        for (const Reach& reach : reaches) {
          for (uint64_t x = reach.first; x < reach.end; ++x) {
            const float value = plane[static_cast<int64_t>(row + x * stride) + reach.offset];
            best[x] = value > best[x] || value != value ? value : best[x];
          }
        }
      });
      narrow(best, output, width);
      output += width;
    });
  });
}

}  // namespace

tuff_status max_pool(Device& device, const tuff_pool_desc& call) {
  if (!is_float(call.dtype)) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  with_float(call.dtype, [&]<typename T>(T) {
    if (has_usual_rows(call)) return largest_rows<T>(device, call);
    for_outputs<T>(device, call,
                   [&](const float* plane, uint64_t o, const Window& z, const Window& y, const Window& x) {
                     const Largest best = largest_of(call, plane, z, y, x);
                     round_to(best.value, at<T>(call.output)[o]);
                     if (call.indices != 0) at<uint32_t>(call.indices)[o] = static_cast<uint32_t>(best.index);
                   });
  });
  return TUFF_OK;
}

tuff_status avg_pool(Device& device, const tuff_pool_desc& call) {
  if (!is_float(call.dtype)) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  with_float(call.dtype, [&]<typename T>(T) {
    for_outputs<T>(device, call,
                   [&](const float* plane, uint64_t o, const Window& z, const Window& y, const Window& x) {
                     double count = 0;
                     const double sum = sum_of(call, plane, z, y, x, count);
                     if (call.count_include_pad != 0) {
                       count = static_cast<double>(z.span) * static_cast<double>(y.span) * static_cast<double>(x.span);
                     }
                     round_to(static_cast<float>(sum / count), at<T>(call.output)[o]);
                   });
  });
  return TUFF_OK;
}

}  // namespace tuff_cpu
