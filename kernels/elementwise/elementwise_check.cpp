#include <cmath>

#include "kernels/common/check.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"

namespace tuff {

void check_unary(const UnaryArgs& args) {
  check_float_type(args.dtype);
  require(elementwise::find(elementwise::kUnaryOps, args.op), "op {} is no TUFF_UNARY_*", args.op);
  const double default_alpha = elementwise::find(elementwise::kUnaryOps, args.op)->alpha;
  require(args.alpha == 0 || default_alpha != 0, "alpha is {}, and op {} has none", args.alpha, args.op);
  require(std::isfinite(static_cast<float>(args.alpha)), "alpha is {}, needs to be finite in f32", args.alpha);
  if (args.n == 0) return;
  const auto detail = [&] { return fmt::format("n={}", args.n); };
  const uint64_t bytes = checked_mul(args.n, dtype_size(args.dtype), "n");
  check_operand(args.input, "input", args.n, args.dtype, detail);
  check_operand(args.output, "output", args.n, args.dtype, detail);
  check_overlap(args.output, "output", bytes, args.input, "input", bytes, true);
}

void check_binary(const BinaryArgs& args) {
  check_float_type(args.dtype);
  require(elementwise::find(elementwise::kBinaryOps, args.op), "op {} is no TUFF_BINARY_*", args.op);
  if (args.n == 0) return;
  const auto detail = [&] { return fmt::format("n={}", args.n); };
  const uint64_t bytes = checked_mul(args.n, dtype_size(args.dtype), "n");
  check_operand(args.a, "a", args.n, args.dtype, detail);
  check_operand(args.b, "b", args.n, args.dtype, detail);
  check_operand(args.output, "output", args.n, args.dtype, detail);
  check_overlap(args.output, "output", bytes, args.a, "a", bytes, true);
  check_overlap(args.output, "output", bytes, args.b, "b", bytes, true);
}

}  // namespace tuff
