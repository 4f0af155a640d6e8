#include <cmath>

#include "kernels/common/check.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"

namespace tuff {

void check_unary(const UnaryArgs& args) {
  check_type(args.dtype, elementwise::kUnaryTypes, "unary");
  require(elementwise::find(elementwise::kUnaryOps, args.op), "op {} is not a TUFF_UNARY_*", args.op);
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

namespace {

uint64_t count_of(const uint64_t* shape, uint32_t rank, const char* name) {
  return checked_product({shape, rank}, name);
}

}  // namespace

uint64_t result_count(const BinaryArgs& args) {
  if (args.rank == 0) return args.n;
  uint64_t sizes[8];
  for (uint32_t i = 0; i < args.rank; ++i) sizes[i] = args.a_shape[i] == 1 ? args.b_shape[i] : args.a_shape[i];
  return checked_product({sizes, args.rank}, "the result's shape");
}

StridedAxes<2> broadcast_axes(const BinaryArgs& args) {
  StridedAxes<2>::Strides strides[8];
  int64_t a = 1, b = 1;
  for (uint32_t i = args.rank; i-- > 0;) {
    strides[i] = {args.a_shape[i] == 1 ? 0 : a, args.b_shape[i] == 1 ? 0 : b};
    a *= static_cast<int64_t>(args.a_shape[i]);
    b *= static_cast<int64_t>(args.b_shape[i]);
  }
  StridedAxes<2> axes;
  for (uint32_t i = 0; i < args.rank; ++i) {
    axes.append(args.a_shape[i] == 1 ? args.b_shape[i] : args.a_shape[i], strides[i]);
  }
  return axes;
}

bool repeats_an_operand(const BinaryArgs& args) {
  for (uint32_t i = 0; i < args.rank; ++i) {
    if (args.a_shape[i] != args.b_shape[i]) return true;
  }
  return false;
}

void check_binary(const BinaryArgs& args) {
  check_type(args.dtype, elementwise::kBinaryTypes, "binary");
  const elementwise::BinaryOp* op = elementwise::find(elementwise::kBinaryOps, args.op);
  require(op != nullptr, "op {} is not a TUFF_BINARY_*", args.op);
  check_type(args.dtype, op->types(), op->name);
  require(args.rank <= 8, "rank is {}, needs 0 to 8", args.rank);
  for (uint32_t i = 0; i < args.rank; ++i) {
    const uint64_t a = args.a_shape[i], b = args.b_shape[i];
    require(a == b || a == 1 || b == 1,
            "a_shape[{}] is {} and b_shape[{}] is {}: they need to be equal, or one of them 1", i, a, i, b);
  }
  const uint64_t n = result_count(args);
  require(args.rank == 0 || args.n == 0 || args.n == n, "n is {}, and the shapes give {}", args.n, n);
  if (n == 0) return;
  const auto detail = [&] { return fmt::format("n={}", n); };
  const uint64_t bytes = checked_mul(n, dtype_size(args.dtype), "n");
  const uint64_t a = args.rank == 0 ? n : count_of(args.a_shape, args.rank, "a_shape");
  const uint64_t b = args.rank == 0 ? n : count_of(args.b_shape, args.rank, "b_shape");
  check_operand(args.a, "a", a, args.dtype, detail);
  check_operand(args.b, "b", b, args.dtype, detail);
  check_operand(args.output, "output", n, args.dtype, detail);
  // A repeated operand is smaller than the output, so it never counts as exactly the same range: its elements are read
  // again after some of the output is written.
  check_overlap(args.output, "output", bytes, args.a, "a", a * dtype_size(args.dtype), true);
  check_overlap(args.output, "output", bytes, args.b, "b", b * dtype_size(args.dtype), true);
}

}  // namespace tuff
