// Plain loops: floats in double precision, integers modulo 2^32. abs and neg work on the bits, so that NaN payloads
// survive.
#include <cstring>
#include <type_traits>

#include "kernels/common/elements.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"

namespace tuff {
namespace {

template <typename T>
T apply_unary(const elementwise::UnaryOp& op, T x, double alpha) {
  if (op.op != TUFF_UNARY_ABS && op.op != TUFF_UNARY_NEG) return T(op.apply(x, alpha));
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  Bits bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  bits = op.op == TUFF_UNARY_ABS ? bits & static_cast<Bits>(~kSign) : bits ^ kSign;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

template <typename T>
T apply_binary(const elementwise::BinaryOp& op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(op.apply_integers(a, b));
  } else {
    return T(op.apply(a, b));
  }
}

}  // namespace

void host_unary(const UnaryArgs& args) {
  if (args.n == 0) return;
  const elementwise::UnaryOp& op = *elementwise::find(elementwise::kUnaryOps, args.op);
  const double alpha = alpha_of(op, args.alpha);
  with_float_type(args.dtype, [&]<typename T>(T) {
    const T* input = args.input->host<T>();
    T* output = args.output->host<T>();
    for (uint64_t i = 0; i < args.n; ++i) output[i] = apply_unary(op, input[i], alpha);
  });
}

void host_binary(const BinaryArgs& args) {
  const uint64_t n = result_count(args);
  if (n == 0) return;
  const bool repeats = repeats_an_operand(args);
  const StridedAxes<2> axes = repeats ? broadcast_axes(args) : StridedAxes<2>{};
  const elementwise::BinaryOp& op = *elementwise::find(elementwise::kBinaryOps, args.op);
  with_element_type(args.dtype, [&]<typename T>(T) {
    const T *a = args.a->host<T>(), *b = args.b->host<T>();
    T* output = args.output->host<T>();
    for (uint64_t i = 0; i < n; ++i) {
      uint64_t place[2] = {repeats ? 0 : i, repeats ? 0 : i}, rest = i;
      for (uint32_t d = axes.rank; d-- > 0; rest /= axes.sizes[d]) {
        for (size_t j = 0; j < 2; ++j) place[j] += rest % axes.sizes[d] * static_cast<uint64_t>(axes.strides[d][j]);
      }
      output[i] = apply_binary(op, a[place[0]], b[place[1]]);
    }
  });
}

}  // namespace tuff
