#include <string>

#include "kernels/common/check.hpp"
#include "kernels/softmax/softmax.hpp"

namespace tuff {

void check_softmax(const SoftmaxArgs& args) {
  check_float_type(args.dtype);
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  const uint64_t elements = checked_mul(checked_mul(view.outer, view.axis, "shape"), view.inner, "shape");
  if (elements == 0) return;
  const auto detail = [&] { return fmt::format("outer={} axis={} inner={}", view.outer, view.axis, view.inner); };
  check_operand(args.input, "input", elements, args.dtype, detail);
  check_operand(args.output, "output", elements, args.dtype, detail);
  const uint64_t bytes = elements * dtype_size(args.dtype);
  check_overlap(args.output, "output", bytes, args.input, "input", bytes, true);
}

}  // namespace tuff
