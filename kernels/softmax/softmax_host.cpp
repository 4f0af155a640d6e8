// One slice at a time, in double precision: maximum, sum of exponentials, division.
#include <cmath>
#include <limits>

#include "kernels/common/check.hpp"
#include "kernels/common/elements.hpp"
#include "kernels/softmax/softmax.hpp"

namespace tuff {

void host_softmax(const SoftmaxArgs& args) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  if (view.outer == 0 || view.axis == 0 || view.inner == 0) return;
  with_float_type(args.dtype, [&]<typename T>(T) {
    const T* input = args.input->host<T>();
    T* output = args.output->host<T>();
    for (uint64_t o = 0; o < view.outer; ++o) {
      for (uint64_t i = 0; i < view.inner; ++i) {
        const auto at = [&](uint64_t r) { return (o * view.axis + r) * view.inner + i; };
        // A NaN may or may not become the maximum; the sum is NaN either way.
        double maximum = -std::numeric_limits<double>::infinity();
        for (uint64_t r = 0; r < view.axis; ++r) maximum = std::fmax(maximum, input[at(r)]);
        double sum = 0;
        for (uint64_t r = 0; r < view.axis; ++r) sum += std::exp(input[at(r)] - maximum);
        for (uint64_t r = 0; r < view.axis; ++r) output[at(r)] = T(std::exp(input[at(r)] - maximum) / sum);
      }
    }
  });
}

}  // namespace tuff
