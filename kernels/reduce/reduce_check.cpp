#include <cmath>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/reduce_ops.hpp"

namespace tuff {

void check_reduce(const ReduceArgs& args) {
  check_type(args.dtype, reduce::kTypes, "reduce");
  const reduce::Op* op = reduce::find(args.op);
  require(op != nullptr, "op {} is not a TUFF_REDUCE_*", args.op);
  if (args.output_type != 0) {
    check_known_type(args.output_type, "output_type");
    if (const ElementTypes types = reduce::output_types(*op, args.dtype).all; !types.has(args.output_type)) {
      fail(TUFF_ERROR_UNSUPPORTED, "output_type is {}, and {} of {} gives {}", dtype_name(args.output_type), op->name,
           dtype_name(args.dtype), names_of(types));
    }
  }
  require(std::isfinite(args.correction), "correction is {}, needs a finite number", args.correction);
  const bool corrects = op->result == reduce::Result::variance || op->result == reduce::Result::deviation;
  require(corrects || args.correction == 0, "correction is {}, and {} takes 0", args.correction, op->name);
  const AxisView view = reduce::view_of(args);
  const uint64_t outputs = checked_mul(view.outer, view.inner, "shape without the axis");
  if (outputs == 0) return;
  require(view.axis > 0 || op->empty, "{} of an empty axis (axis {} has size 0)", op->name, args.axis);
  const uint64_t inputs = checked_mul(outputs, view.axis, "shape");
  const auto detail = [&] { return fmt::format("outer={} axis={} inner={}", view.outer, view.axis, view.inner); };
  check_operand(args.input, "input", inputs, args.dtype, detail);
  const bool places = op->result == reduce::Result::place;
  require(!places || view.axis <= 0xffffffffu, "axis {} is {}, and indices are 32-bit numbers", args.axis, view.axis);
  const int32_t output_type = reduce::output_type(*op, args.dtype, args.output_type);
  check_operand(args.output, "output", outputs, output_type, detail);
  if (inputs == 0) return;
  const uint64_t size = dtype_size(args.dtype);
  check_overlap(args.output, "output", outputs * dtype_size(output_type), args.input, "input", inputs * size, false);
}

}  // namespace tuff
