#include "kernels/scan/scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/common/check.hpp"
#include "kernels/common/describe.hpp"
#include "kernels/common/elements.hpp"

namespace tuff {
namespace {

void check_scan(const ScanArgs& args) {
  check_type(args.dtype, args.op == ScanOp::log_sum_exp ? scan::kLogTypes : scan::kTypes, name_of(args.op));
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  const uint64_t elements = checked_mul(checked_mul(view.outer, view.inner, "shape"), view.axis, "shape");
  const auto detail = [&] { return fmt::format("outer={} axis={} inner={}", view.outer, view.axis, view.inner); };
  check_operand(args.input, "input", elements, args.dtype, detail);
  check_operand(args.output, "output", elements, args.dtype, detail);
  if (elements == 0) return;
  const uint64_t bytes = elements * dtype_size(args.dtype);
  check_overlap(args.output, "output", bytes, args.input, "input", bytes, true);
}

// What T is computed in: integers modulo 2^64, of which every type keeps its own bits (maxima and minima compare them
// by their own values, which fit); f64 in long double, and other floats in double precision.
template <typename T, bool compares>
using ValueOf =
    std::conditional_t<std::is_integral_v<T>, std::conditional_t<compares && std::is_signed_v<T>, int64_t, uint64_t>,
                       std::conditional_t<std::is_same_v<T, double>, long double, double>>;

template <typename T>
constexpr bool is_nan(T x) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::isnan(x);
}

template <typename T, ScanOp op, typename Value = ValueOf<T, op >= ScanOp::maximum>>
Value identity() {
  using Limits = std::numeric_limits<T>;
  if constexpr (op == ScanOp::sum) return 0;
  if constexpr (op == ScanOp::product) return 1;
  if constexpr (!std::is_integral_v<T>)
    return static_cast<Value>(op == ScanOp::minimum ? INFINITY : -INFINITY);
  else
    return op == ScanOp::maximum ? Limits::min() : Limits::max();
}

// log(e^a + e^b). Only floats have it.
template <typename Value>
Value log_sum(Value a, Value b) {
  if constexpr (std::is_integral_v<Value>) {
    return a;
  } else {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
    const Value larger = std::max(a, b), smaller = std::min(a, b);
    return std::isinf(larger) ? larger : larger + std::log1p(std::exp(smaller - larger));
  }
}

template <ScanOp op, typename Value>
Value combined(Value a, Value b) {
  switch (op) {
    case ScanOp::sum: return a + b;
    case ScanOp::product: return a * b;
    case ScanOp::maximum: return is_nan(a) || a > b ? a : b;
    case ScanOp::minimum: return is_nan(a) || a < b ? a : b;
    case ScanOp::log_sum_exp: return log_sum(a, b);
  }
}

template <ScanOp op, typename T>
void scan_host(const ScanArgs& args, const AxisView& view) {
  using Value = ValueOf<T, op >= ScanOp::maximum>;
  const T* input = args.input->host<T>();
  T* output = args.output->host<T>();
  for (uint64_t o = 0; o < view.outer; ++o) {
    for (uint64_t i = 0; i < view.inner; ++i) {
      Value value = identity<T, op>();
      for (uint64_t step = 0; step < view.axis; ++step) {
        const uint64_t r = args.reverse ? view.axis - 1 - step : step;
        const uint64_t at = (o * view.axis + r) * view.inner + i;
        const Value before = value;
        value = combined<op>(value, static_cast<Value>(input[at]));
        output[at] = static_cast<T>(args.exclusive ? before : value);
      }
    }
  }
}

void host_scan(const ScanArgs& args) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  if (view.outer == 0 || view.axis == 0 || view.inner == 0) return;
  with_any_type(args.dtype, [&]<typename T>(T) {
    switch (args.op) {
      case ScanOp::sum: return scan_host<ScanOp::sum, T>(args, view);
      case ScanOp::product: return scan_host<ScanOp::product, T>(args, view);
      case ScanOp::maximum: return scan_host<ScanOp::maximum, T>(args, view);
      case ScanOp::minimum: return scan_host<ScanOp::minimum, T>(args, view);
      case ScanOp::log_sum_exp: return scan_host<ScanOp::log_sum_exp, T>(args, view);
    }
  });
}

CallText describe(const ScanArgs& args) {
  return {fmt::format("{} {} axis {}{}{}", dtype_name(args.dtype), describe_sizes(args.shape, args.rank), args.axis,
                      args.exclusive ? " exclusive" : "", args.reverse ? " reverse" : ""),
          args.dtype};
}

}  // namespace

namespace operations {
const OperationOf<ScanArgs> cumsum =
    define_operation<ScanArgs, check_scan, host_scan, record_scan, describe>("cumsum", scan::kTypes);
const OperationOf<ScanArgs> cumprod =
    define_operation<ScanArgs, check_scan, host_scan, record_scan, describe>("cumprod", scan::kTypes);
const OperationOf<ScanArgs> cummax =
    define_operation<ScanArgs, check_scan, host_scan, record_scan, describe>("cummax", scan::kTypes);
const OperationOf<ScanArgs> cummin =
    define_operation<ScanArgs, check_scan, host_scan, record_scan, describe>("cummin", scan::kTypes);
const OperationOf<ScanArgs> cumlogsumexp =
    define_operation<ScanArgs, check_scan, host_scan, record_scan, describe>("cumlogsumexp", scan::kLogTypes);
}  // namespace operations

}  // namespace tuff
