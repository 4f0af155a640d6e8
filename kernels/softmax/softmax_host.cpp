// One slice at a time, in double precision: the maximum, the sum of exponentials, then a division or the logarithm.
#include <cmath>
#include <limits>

#include "kernels/common/check.hpp"
#include "kernels/common/elements.hpp"
#include "kernels/softmax/softmax.hpp"

namespace tuff {

void host_softmax(const SoftmaxArgs& args) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  if (view.outer == 0 || view.axis == 0 || view.inner == 0) return;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool hides = args.mask.buffer != nullptr && args.mask.type == TUFF_U8;
  const bool adds = args.mask.buffer != nullptr && !hides;
  const uint64_t mask_rows = args.mask.rows != 0 ? args.mask.rows : view.outer;
  const double scale = static_cast<float>(args.scale);
  with_float_type(args.dtype, [&]<typename T>(T) {
    const T* input = args.input->host<T>();
    T* output = args.output->host<T>();
    for (uint64_t o = 0; o < view.outer; ++o) {
      for (uint64_t i = 0; i < view.inner; ++i) {
        const auto at = [&](uint64_t r) { return (o * view.axis + r) * view.inner + i; };
        const uint64_t mask_row = hides || adds ? o / args.mask.repeat % mask_rows : 0;
        const auto mask_at = [&](uint64_t r) { return (mask_row * view.axis + r) * view.inner + i; };
        const auto hidden = [&](uint64_t r) { return hides && args.mask.buffer->host<uint8_t>()[mask_at(r)] == 0; };
        const auto z = [&](uint64_t r) {
          if (hidden(r)) return -kInfinity;
          return scale * input[at(r)] + (adds ? double{args.mask.buffer->host<T>()[mask_at(r)]} : 0);
        };
        // A NaN may or may not become the maximum; the sum is NaN either way.
        double maximum = -kInfinity;
        bool nothing = hides;
        for (uint64_t r = 0; r < view.axis; ++r) {
          maximum = std::fmax(maximum, z(r));
          nothing = nothing && hidden(r);
        }
        double sum = 0;
        for (uint64_t r = 0; r < view.axis; ++r) sum += std::exp(z(r) - maximum);
        for (uint64_t r = 0; r < view.axis; ++r) {
          if (nothing) {
            output[at(r)] = T(args.logarithm != 0 ? -kInfinity : 0);
          } else {
            const double above = z(r) - maximum;
            output[at(r)] = T(args.logarithm != 0 ? above - std::log(sum) : std::exp(above) / sum);
          }
        }
      }
    }
  });
}

}  // namespace tuff
