// What reductions give on the host, of elements that a function returns by their place: at(0) … at(count - 1).
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/reduce/reduce_ops.hpp"

namespace tuff::reduce {

// For integers, modulo 2^64. To compare them, the sign is turned over, so that unsigned numbers have their order.
template <typename At>
uint64_t reduced_integers(const Op& op, uint64_t count, bool is_signed, const At& at) {
  const uint64_t turned = op.selects && is_signed ? uint64_t{1} << 63 : 0;
  uint64_t value = op.identity.of_integers;
  for (uint64_t r = 0; r < count; ++r) {
    uint64_t element = at(r) ^ turned;
    if (op.prepare == Prepare::square) element *= element;
    if (op.prepare == Prepare::magnitude && is_signed && static_cast<int64_t>(element) < 0) element = 0 - element;
    value = op.combine_integers(value, element);
  }
  return value ^ turned;
}

template <typename Real>
Real combined(const Op& op, Real a, Real b) {
  if constexpr (std::is_same_v<Real, double>)
    return op.combine(a, b);
  else
    return op.combine_wide(a, b);
}

template <typename Real>
Real prepared(Prepare prepare, Real x, Real center) {
  switch (prepare) {
    case Prepare::magnitude: return std::fabs(x);
    case Prepare::square: return x * x;
    case Prepare::distance: return (x - center) * (x - center);
    case Prepare::exponential: return std::exp(x - center);
    default: return x;
  }
}

template <typename Real, typename At>
Real reduced_reals(const Op& op, uint64_t elements, double correction, const At& at) {
  Real center = 0;
  if (op.center != 0) {
    center = reduced_reals<Real>(*find(op.center), elements, 0, at);
    if (op.result == Result::logarithm && std::isinf(center)) center = 0;
  }
  auto value = static_cast<Real>(op.identity.of_floats);
  for (uint64_t r = 0; r < elements; ++r) {
    value = combined(op, value, prepared(op.prepare, at(r), center));
  }
  const Real count = static_cast<Real>(elements) - static_cast<Real>(correction);
  switch (op.result) {
    case Result::mean: return value / count;
    case Result::root: return std::sqrt(value);
    case Result::variance:
    case Result::deviation:
      value = count > 0 ? value / count : value > 0 ? static_cast<Real>(INFINITY) : static_cast<Real>(NAN);
      return op.result == Result::variance ? value : std::sqrt(value);
    case Result::logarithm: return std::log(value) + center;
    default: return value;
  }
}

}  // namespace tuff::reduce
