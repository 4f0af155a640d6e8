#include "kernels/softmax/softmax_backward.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/common/check.hpp"
#include "kernels/common/describe.hpp"
#include "kernels/common/elements.hpp"
#include "kernels/softmax/softmax.hpp"

namespace tuff {

void check_softmax_backward(const SoftmaxBackwardArgs& args) {
  check_type(args.dtype, softmax::kTypes, "softmax_backward");
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  const uint64_t elements = checked_mul(checked_mul(view.outer, view.axis, "shape"), view.inner, "shape");
  const float scale = static_cast<float>(args.scale);
  require(std::isfinite(scale) && scale != 0, "scale is {}, needs to be finite and not zero in f32", args.scale);
  require_flag(args.logarithm, "logarithm");
  if (elements == 0) return;
  const auto detail = [&] { return fmt::format("outer={} axis={} inner={}", view.outer, view.axis, view.inner); };
  const uint64_t bytes = checked_mul(elements, dtype_size(args.dtype), "shape");
  check_operand(args.output, "output", elements, args.dtype, detail);
  check_operand(args.output_gradient, "output_gradient", elements, args.dtype, detail);
  check_operand(args.gradient, "gradient", elements, args.dtype, detail);
  check_overlap(args.gradient, "gradient", bytes, args.output, "output", bytes, true);
  check_overlap(args.gradient, "gradient", bytes, args.output_gradient, "output_gradient", bytes, true);
}

void host_softmax_backward(const SoftmaxBackwardArgs& args) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  const double scale = static_cast<float>(args.scale);
  with_float_type(args.dtype, [&]<typename T>(T) {
    if (view.outer == 0 || view.axis == 0 || view.inner == 0) return;
    const T *const output = args.output->host<T>(), *const slope = args.output_gradient->host<T>();
    T* const gradient = args.gradient->host<T>();
    for (uint64_t row = 0; row < view.outer * view.inner; ++row) {
      const uint64_t first = row / view.inner * view.axis * view.inner + row % view.inner;
      const auto y = [&](uint64_t j) { return double{output[first + j * view.inner]}; };
      const auto dy = [&](uint64_t j) { return double{slope[first + j * view.inner]}; };
      double sum = 0;
      for (uint64_t j = 0; j < view.axis; ++j) sum += args.logarithm != 0 ? dy(j) : dy(j) * y(j);
      for (uint64_t j = 0; j < view.axis; ++j) {
        const double value = args.logarithm != 0 ? dy(j) - std::exp(y(j)) * sum : y(j) * (dy(j) - sum);
        gradient[first + j * view.inner] = T(scale * value);
      }
    }
  });
}

namespace {
CallText describe(const SoftmaxBackwardArgs& args) {
  return {fmt::format("{} {} axis {}", dtype_name(args.dtype), describe_sizes(args.shape, args.rank), args.axis),
          args.dtype};
}
}  // namespace

namespace operations {
const OperationOf<SoftmaxBackwardArgs> softmax_backward =
    define_operation<SoftmaxBackwardArgs, check_softmax_backward, host_softmax_backward, record_softmax_backward,
                     describe>("softmax_backward", softmax::kTypes);
}  // namespace operations

}  // namespace tuff
