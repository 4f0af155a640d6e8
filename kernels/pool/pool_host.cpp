// Computes each window in double precision.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/elements.hpp"
#include "kernels/pool/pool.hpp"

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

template <typename T, typename Body>
void for_each(const PoolShape& s, const T* plane, const Window* w, const Body& body) {
  for (uint64_t z = w[0].begin; z < w[0].end; z += w[0].step) {
    for (uint64_t y = w[1].begin; y < w[1].end; y += w[1].step) {
      for (uint64_t x = w[2].begin; x < w[2].end; x += w[2].step) {
        const uint64_t at = (z * s.in[1] + y) * s.in[2] + x;
        body(at, static_cast<double>(plane[at]));
      }
    }
  }
}

}  // namespace

void host_pool(const PoolArgs& args) {
  const PoolShape s = pool_shape(args);
  if (s.planes == 0) return;
  with_float_type(args.dtype, [&]<typename T>(T) {
    for (uint64_t i = 0; i < s.planes * s.outputs(); ++i) {
      const T* plane = args.input->host<T>() + i / s.outputs() * s.inputs();
      const uint64_t o = i % s.outputs();
      const Window w[3] = {window_of(s, 0, o / s.out[2] / s.out[1]), window_of(s, 1, o / s.out[2] % s.out[1]),
                           window_of(s, 2, o % s.out[2])};
      if (args.maximum) {
        double best = -std::numeric_limits<double>::infinity();
        uint64_t index = 0;
        bool any = false;
        for_each(s, plane, w, [&](uint64_t at, double x) {
          if (any && !(x > best) && !(std::isnan(x) && !std::isnan(best))) return;
          best = x, index = at, any = true;
        });
        args.output->host<T>()[i] = T(best);
        if (args.indices != nullptr) args.indices->host<uint32_t>()[i] = static_cast<uint32_t>(index);
      } else {
        double sum = 0, count = 0;
        for_each(s, plane, w, [&](uint64_t, double x) { sum += x, count += 1; });
        if (args.count_include_pad != 0) {
          count = static_cast<double>(w[0].span) * static_cast<double>(w[1].span) * static_cast<double>(w[2].span);
        }
        args.output->host<T>()[i] = T(sum / count);
      }
    }
  });
}

}  // namespace tuff
