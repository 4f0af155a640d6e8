// Computes each window in double precision.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/common/elements.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/pool/pool_backward.hpp"

namespace tuff {
namespace {

// The taps of one window along one axis: positions begin, begin + step, … below end, all within the input.
struct Window {
  uint64_t begin, end, step;
  uint64_t span;  // extent in the input and its padding
};

Window window_of(const PoolShape& s, uint32_t d, uint64_t o) {
  if (s.adaptive) {
    const uint64_t begin = o * s.in[d] / s.out[d], end = ((o + 1) * s.in[d] + s.out[d] - 1) / s.out[d];
    return {begin, end, 1, end - begin};
  }
  const auto first = static_cast<int64_t>(o * s.stride[d]) - static_cast<int64_t>(s.padding[d]);
  const auto step = static_cast<int64_t>(s.dilation[d]), size = static_cast<int64_t>(s.in[d]);
  const int64_t end = first + step * (static_cast<int64_t>(s.kernel[d]) - 1) + 1;
  const int64_t begin = first >= 0 ? first : first + (-first + step - 1) / step * step;
  return {static_cast<uint64_t>(begin), static_cast<uint64_t>(std::min(end, size)), s.dilation[d],
          static_cast<uint64_t>(std::min(end, size + static_cast<int64_t>(s.padding[d])) - first)};
}

using Windows = std::array<Window, 3>;

Windows windows_of(const PoolShape& s, uint64_t o) {
  return {window_of(s, 0, o / s.out[2] / s.out[1]), window_of(s, 1, o / s.out[2] % s.out[1]),
          window_of(s, 2, o % s.out[2])};
}

// Calls body(index in the plane) for each tap of a window.
template <typename Body>
void for_each(const PoolShape& s, const Windows& w, const Body& body) {
  for (uint64_t z = w[0].begin; z < w[0].end; z += w[0].step) {
    for (uint64_t y = w[1].begin; y < w[1].end; y += w[1].step) {
      for (uint64_t x = w[2].begin; x < w[2].end; x += w[2].step) body((z * s.in[1] + y) * s.in[2] + x);
    }
  }
}

// The largest value of a window, and the first place of it, or of the first NaN.
template <typename T>
std::pair<double, uint64_t> largest(const PoolShape& s, const T* plane, const Windows& w) {
  double best = -std::numeric_limits<double>::infinity();
  uint64_t index = 0;
  bool any = false;
  for_each(s, w, [&](uint64_t at) {
    const auto x = static_cast<double>(plane[at]);
    if (any && !(x > best) && !(std::isnan(x) && !std::isnan(best))) return;
    best = x, index = at, any = true;
  });
  return {best, index};
}

// What the sum of a window is divided by.
double divisor(const PoolArgs& args, const PoolShape& s, const Windows& w) {
  if (args.count_include_pad != 0) {
    return static_cast<double>(w[0].span) * static_cast<double>(w[1].span) * static_cast<double>(w[2].span);
  }
  double count = 0;
  for_each(s, w, [&](uint64_t) { count += 1; });
  return count;
}

}  // namespace

void host_pool(const PoolArgs& args) {
  const PoolShape s = pool_shape(args);
  if (s.planes == 0) return;
  with_float_type(args.dtype, [&]<typename T>(T) {
    for (uint64_t i = 0; i < s.planes * s.outputs(); ++i) {
      const T* plane = args.input->host<T>() + i / s.outputs() * s.inputs();
      const Windows w = windows_of(s, i % s.outputs());
      if (args.maximum) {
        const auto [best, index] = largest(s, plane, w);
        args.output->host<T>()[i] = T(best);
        if (args.indices != nullptr) args.indices->host<uint32_t>()[i] = static_cast<uint32_t>(index);
      } else {
        double sum = 0;
        for_each(s, w, [&](uint64_t at) { sum += static_cast<double>(plane[at]); });
        args.output->host<T>()[i] = T(sum / divisor(args, s, w));
      }
    }
  });
}

void host_pool_backward(const PoolBackwardArgs& args) {
  const PoolArgs& pool = args.pool;
  const PoolShape s = pool_shape(pool);
  if (s.planes == 0) return;
  with_float_type(pool.dtype, [&]<typename T>(T) {
    std::vector<double> sums(s.inputs());
    for (uint64_t n = 0; n < s.planes; ++n) {
      std::fill(sums.begin(), sums.end(), 0);
      for (uint64_t o = 0; o < s.outputs(); ++o) {
        const Windows w = windows_of(s, o);
        const uint64_t at = n * s.outputs() + o;
        const auto slope = static_cast<double>(args.doutput->host<T>()[at]);
        if (pool.maximum) {
          const uint64_t index = pool.indices != nullptr ? pool.indices->host<uint32_t>()[at]
                                                         : largest(s, pool.input->host<T>() + n * s.inputs(), w).second;
          for_each(s, w, [&](uint64_t place) { sums[place] += place == index ? slope : 0; });
        } else {
          const double share = slope / divisor(pool, s, w);
          for_each(s, w, [&](uint64_t place) { sums[place] += share; });
        }
      }
      for (uint64_t i = 0; i < s.inputs(); ++i) args.dinput->host<T>()[n * s.inputs() + i] = T(sums[i]);
    }
  });
}

}  // namespace tuff
