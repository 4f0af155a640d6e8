// One loop per output: floats in double precision (those of 64 bits, and 64-bit integers, in long double), integers
// modulo 2^64, of which every integer type keeps its own bits.
#include <cmath>
#include <type_traits>

#include "kernels/common/check.hpp"
#include "kernels/common/elements.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/reduce_ops.hpp"
#include "kernels/reduce/reduce_reference.hpp"

namespace tuff {
namespace {

using reduce::Op;
using reduce::Prepare;
using reduce::Result;

template <typename T>
constexpr bool kWhole = std::is_integral_v<T> || std::is_same_v<T, Bool>;
template <typename T>
constexpr bool kOf64Bits = sizeof(T) == 8;

// The elements of one result, `stride` apart.
template <typename T>
struct Elements {
  const T* first;
  uint64_t count, stride;

  const T& operator[](uint64_t i) const { return first[i * stride]; }
};

// Whether x is the better one of two values; of equal values neither is.
template <typename T>
bool is_better(const Op& op, T x, T than) {
  return op.op == TUFF_REDUCE_ARGMAX ? x > than : x < than;
}

// The index of the result: the first of equal results, or of NaN.
template <typename T>
uint64_t place_of(const Op& op, const Elements<T>& x) {
  using Value = std::conditional_t<std::is_integral_v<T>, T, double>;
  uint64_t place = 0;
  auto value = static_cast<Value>(x[0]);
  for (uint64_t r = 1; r < x.count; ++r) {
    const auto next = static_cast<Value>(x[r]);
    if constexpr (!std::is_integral_v<T>) {
      if (std::isnan(value)) break;
      if (std::isnan(next)) value = next, place = r;
    }
    if (is_better(op, next, value)) value = next, place = r;
  }
  return place;
}

template <typename T>
bool is_nonzero(const T& x) {
  return static_cast<double>(x) != 0;
}

// For zeros and ones.
template <typename T>
uint64_t reduced_truths(const Op& op, const Elements<T>& x) {
  uint64_t value = op.identity.of_integers;
  for (uint64_t r = 0; r < x.count; ++r) value = op.combine_integers(value, is_nonzero(x[r]) ? 1 : 0);
  return value;
}

// T, of an integer modulo 2^64 or of a number.
template <typename T>
T stored(uint64_t value) {
  if constexpr (std::is_same_v<T, Bool>)
    return T(value != 0 ? 1.0 : 0.0);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(value);
  else
    return T(static_cast<double>(value));
}

template <typename T, typename Y>
Y result_of(const Op& op, const Elements<T>& x, double correction) {
  using reduce::Output;
  if (op.result == Result::place) return stored<Y>(place_of(op, x));
  if (op.prepare == Prepare::nonzero) return stored<Y>(reduced_truths(op, x));
  if constexpr (kWhole<T>) {
    if (op.output == Output::sum || op.output == Output::same)
      return stored<Y>(reduce::reduced_integers(op, x.count, std::is_signed_v<T>, [&](uint64_t r) {
        using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
        return static_cast<uint64_t>(static_cast<Wide>(x[r]));
      }));
  }
  if constexpr (kWhole<Y>) {
    return Y{};  // no operation gives integers here
  } else {
    using Real = std::conditional_t<kOf64Bits<T> || kOf64Bits<Y>, long double, double>;
    const Real value =
        reduce::reduced_reals<Real>(op, x.count, correction, [&](uint64_t r) { return static_cast<Real>(x[r]); });
    if constexpr (std::is_same_v<Y, double>)
      return static_cast<double>(value);
    else
      return Y(static_cast<double>(value));
  }
}

}  // namespace

void host_reduce(const ReduceArgs& args) {
  const Op& op = *reduce::find(args.op);
  const AxisView view = reduce::view_of(args);
  if (view.outer == 0 || view.inner == 0) return;
  with_any_type(args.dtype, [&]<typename T>(T) {
    with_any_type(reduce::output_type(op, args.dtype, args.output_type), [&]<typename Y>(Y) {
      for (uint64_t o = 0; o < view.outer; ++o) {
        for (uint64_t i = 0; i < view.inner; ++i) {
          const T* first = view.axis > 0 ? args.input->host<T>() + o * view.axis * view.inner + i : nullptr;
          args.output->host<Y>()[o * view.inner + i] =
              result_of<T, Y>(op, {first, view.axis, view.inner}, args.correction);
        }
      }
    });
  });
}

}  // namespace tuff
