// Each pair separately, in double precision. The angle is a long double, so that a large position costs none of its
// digits.
#include <cmath>

#include "kernels/common/elements.hpp"
#include "kernels/position/rope.hpp"

namespace tuff {

void host_rope(const RopeArgs& args) {
  if (args.batch * args.heads * args.seq * args.head_dim == 0) return;
  const uint64_t half = args.rotary_dim / 2;
  with_float_type(args.dtype, [&]<typename T>(T) {
    for (uint64_t b = 0; b < args.batch; ++b) {
      for (uint64_t s = 0; s < args.seq; ++s) {
        const int64_t row = args.positions != nullptr ? args.positions->host<int32_t>()[b * args.positions_stride + s]
                                                      : static_cast<int64_t>(s);
        const auto position = static_cast<int32_t>(row + args.offset);
        for (uint64_t h = 0; h < args.heads; ++h) {
          const T* x =
              args.input->host<T>() + b * args.input_strides[0] + h * args.input_strides[1] + s * args.input_strides[2];
          T* y = args.output->host<T>() + b * args.output_strides[0] + h * args.output_strides[1] +
                 s * args.output_strides[2];
          for (uint64_t i = 0; i < half; ++i) {
            const long double exponent =
                -2.0L * static_cast<long double>(i) / static_cast<long double>(args.rotary_dim);
            const long double angle =
                static_cast<long double>(position) * std::pow(static_cast<long double>(args.base), exponent);
            const auto cosine = static_cast<double>(std::cos(angle)), sine = static_cast<double>(std::sin(angle));
            const uint64_t first = args.interleaved != 0 ? 2 * i : i,
                           second = args.interleaved != 0 ? 2 * i + 1 : i + half;
            const double p = x[first], q = x[second];
            y[first] = T(p * cosine - q * sine);
            y[second] = T(p * sine + q * cosine);
          }
          for (uint64_t d = args.rotary_dim; d < args.head_dim; ++d) y[d] = x[d];
        }
      }
    }
  });
}

}  // namespace tuff
