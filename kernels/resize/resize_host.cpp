// Interpolates each element in double precision; positions are computed in integers.
#include "kernels/common/elements.hpp"
#include "kernels/resize/resize.hpp"

namespace tuff {
namespace {

// The two elements that contribute along one axis: `second` by `weight`, `first` by 1 - weight.
struct Taps {
  uint64_t first, second;
  double weight;
};

Taps taps_of(const ResizeShape& s, const ResizeAxis& axis, uint64_t o) {
  const uint64_t at = (s.centres ? 2 * o + 1 : o) * axis.step, half = s.halves ? axis.whole / 2 : 0;
  if (at < half) return {0, 0, 0};
  const uint64_t first = (at - half) / axis.whole, rest = (at - half) % axis.whole;
  if (first >= axis.in - 1) return {axis.in - 1, axis.in - 1, 0};
  if (!s.linear || rest == 0) return {first, first, 0};
  return {first, first + 1, static_cast<double>(rest) / static_cast<double>(axis.whole)};
}

double blend(double first, double second, double weight) {
  return weight == 0 ? first : first * (1 - weight) + second * weight;
}

}  // namespace

void host_resize(const ResizeArgs& args) {
  const ResizeShape s = resize_shape(args);
  if (s.planes == 0 || s.inner == 0) return;
  const auto& [deep, down, across] = s.axes;
  with_float_type(args.dtype, [&]<typename T>(T) {
    T* output = args.output->host<T>();
    for (uint64_t i = 0; i < s.planes * s.outputs(); ++i) {
      const uint64_t inner = i % s.inner, x = i / s.inner % across.out, y = i / s.inner / across.out % down.out,
                     z = i / s.inner / across.out / down.out % deep.out;
      const T* plane = args.input->host<T>() + i / s.outputs() * s.inputs() + inner;
      const Taps zs = taps_of(s, deep, z), ys = taps_of(s, down, y), xs = taps_of(s, across, x);
      const auto element = [&](uint64_t d, uint64_t r, uint64_t c) {
        return static_cast<double>(plane[((d * down.in + r) * across.in + c) * s.inner]);
      };
      const auto row = [&](uint64_t d, uint64_t r) {
        return blend(element(d, r, xs.first), element(d, r, xs.second), xs.weight);
      };
      const auto image = [&](uint64_t d) { return blend(row(d, ys.first), row(d, ys.second), ys.weight); };
      output[i] = T(blend(image(zs.first), image(zs.second), zs.weight));
    }
  });
}

}  // namespace tuff
