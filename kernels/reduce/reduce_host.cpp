// One loop per output: floats in double precision, integers modulo 2^32.
#include <cmath>
#include <type_traits>

#include "kernels/common/check.hpp"
#include "kernels/common/elements.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/reduce_ops.hpp"

namespace tuff {
namespace {

// The index of the result among `count` > 0 elements, `stride` apart; the first of equal results.
template <typename T>
uint32_t place_of(const reduce::Op& op, const T* input, uint64_t count, uint64_t stride) {
  uint64_t place = 0;
  double value = input[0];
  for (uint64_t r = 1; r < count; ++r) {
    const double x = input[r * stride];
    if (std::isnan(value) || (!std::isnan(x) && op.combine(value, x) == value)) continue;
    value = x, place = r;
  }
  return static_cast<uint32_t>(place);
}

template <typename T>
T reduced(const reduce::Op& op, const T* input, uint64_t count, uint64_t stride) {
  if constexpr (std::is_integral_v<T>) {
    T value = static_cast<T>(op.identity.of_integers);
    for (uint64_t r = 0; r < count; ++r) value = static_cast<T>(op.combine_integers(value, input[r * stride]));
    return value;
  } else {
    double value = op.identity.of_floats;
    for (uint64_t r = 0; r < count; ++r) value = op.combine(value, input[r * stride]);
    return T(op.result == reduce::Result::mean ? value / static_cast<double>(count) : value);
  }
}

}  // namespace

void host_reduce(const ReduceArgs& args) {
  const reduce::Op& op = *reduce::find(args.op);
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  if (view.outer == 0 || view.inner == 0) return;
  with_element_type(args.dtype, [&]<typename T>(T) {
    for (uint64_t o = 0; o < view.outer; ++o) {
      for (uint64_t i = 0; i < view.inner; ++i) {
        const T* input = view.axis > 0 ? args.input->host<T>() + o * view.axis * view.inner + i : nullptr;
        const uint64_t at = o * view.inner + i;
        if (op.result == reduce::Result::place) {
          args.output->host<uint32_t>()[at] = place_of(op, input, view.axis, view.inner);
        } else {
          args.output->host<T>()[at] = reduced(op, input, view.axis, view.inner);
        }
      }
    }
  });
}

}  // namespace tuff
