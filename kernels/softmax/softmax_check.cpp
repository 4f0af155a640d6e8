#include <cmath>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/softmax/softmax.hpp"

namespace tuff {

void check_softmax(const SoftmaxArgs& args) {
  check_type(args.dtype, softmax::kTypes, "softmax");
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  const uint64_t elements = checked_mul(checked_mul(view.outer, view.axis, "shape"), view.inner, "shape");
  const float scale = static_cast<float>(args.scale);
  require(std::isfinite(scale) && scale != 0, "scale is {}, needs to be finite and not zero in f32", args.scale);
  require_flag(args.logarithm, "logarithm");
  const SoftmaxMask& mask = args.mask;
  require(mask.type == args.dtype || mask.type == TUFF_U8, "mask_type is {}, needs dtype or TUFF_U8", mask.type);
  if (elements == 0) return;
  const auto detail = [&] { return fmt::format("outer={} axis={} inner={}", view.outer, view.axis, view.inner); };
  check_operand(args.input, "input", elements, args.dtype, detail);
  check_operand(args.output, "output", elements, args.dtype, detail);
  const uint64_t bytes = elements * dtype_size(args.dtype);
  check_overlap(args.output, "output", bytes, args.input, "input", bytes, true);
  if (mask.buffer == nullptr) {
    require(mask.type == args.dtype && mask.rows == 0 && mask.repeat == 1,
            "mask is TUFF_NULL_HANDLE, and mask_type, mask_rows or mask_repeat is set");
    return;
  }
  const uint64_t mask_rows = mask.rows != 0 ? mask.rows : view.outer;
  const uint64_t mask_elements = checked_mul(mask_rows, view.axis * view.inner, "mask_rows");
  check_operand(mask.buffer, "mask", mask_elements, mask.type,
                [&] { return fmt::format("mask_rows={} axis={} inner={}", mask_rows, view.axis, view.inner); });
  check_overlap(args.output, "output", bytes, mask.buffer, "mask", mask_elements * dtype_size(mask.type), false);
}

}  // namespace tuff
