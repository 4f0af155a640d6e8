#include <string>

#include "kernels/common/check.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/reduce_ops.hpp"

namespace tuff {

void check_reduce(const ReduceArgs& args) {
  check_type(args.dtype, reduce::kTypes, "reduce");
  const reduce::Op* op = reduce::find(args.op);
  require(op != nullptr, "op {} is not a TUFF_REDUCE_*", args.op);
  check_type(args.dtype, op->types(), op->name);
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  const uint64_t outputs = checked_mul(view.outer, view.inner, "shape without the axis");
  if (outputs == 0) return;
  require(view.axis > 0 || op->empty, "{} of an empty axis (axis {} has size 0)", op->name, args.axis);
  const uint64_t inputs = checked_mul(outputs, view.axis, "shape");
  const auto detail = [&] { return fmt::format("outer={} axis={} inner={}", view.outer, view.axis, view.inner); };
  check_operand(args.input, "input", inputs, args.dtype, detail);
  const bool places = op->result == reduce::Result::place;
  require(!places || view.axis <= 0xffffffffu, "axis {} is {}, and indices are 32-bit numbers", args.axis, view.axis);
  const int32_t output_type = places ? TUFF_U32 : args.dtype;
  check_operand(args.output, "output", outputs, output_type, detail);
  if (inputs == 0) return;
  const uint64_t size = dtype_size(args.dtype);
  check_overlap(args.output, "output", outputs * dtype_size(output_type), args.input, "input", inputs * size, false);
}

}  // namespace tuff
