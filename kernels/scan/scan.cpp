#include "kernels/scan/scan.hpp"

#include <fmt/format.h>

#include <type_traits>

#include "kernels/common/check.hpp"
#include "kernels/common/describe.hpp"
#include "kernels/common/elements.hpp"

namespace tuff {
namespace {

void check_scan(const ScanArgs& args) {
  check_type(args.dtype, scan::kTypes, name_of(args.op));
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  const uint64_t elements = checked_mul(checked_mul(view.outer, view.inner, "shape"), view.axis, "shape");
  const auto detail = [&] { return fmt::format("outer={} axis={} inner={}", view.outer, view.axis, view.inner); };
  check_operand(args.input, "input", elements, args.dtype, detail);
  check_operand(args.output, "output", elements, args.dtype, detail);
  if (elements == 0) return;
  const uint64_t bytes = elements * dtype_size(args.dtype);
  check_overlap(args.output, "output", bytes, args.input, "input", bytes, true);
}

// Element by element: floats in double precision, integers modulo 2^64, of which every integer type keeps its own bits.
void host_scan(const ScanArgs& args) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  if (view.outer == 0 || view.axis == 0 || view.inner == 0) return;
  with_element_type(args.dtype, [&]<typename T>(T) {
    using Value = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
    const T* input = args.input->host<T>();
    T* output = args.output->host<T>();
    for (uint64_t o = 0; o < view.outer; ++o) {
      for (uint64_t i = 0; i < view.inner; ++i) {
        Value value = args.op == ScanOp::sum ? 0 : 1;
        for (uint64_t step = 0; step < view.axis; ++step) {
          const uint64_t r = args.reverse ? view.axis - 1 - step : step;
          const uint64_t at = (o * view.axis + r) * view.inner + i;
          const Value x = static_cast<Value>(input[at]), before = value;
          value = args.op == ScanOp::sum ? value + x : value * x;
          output[at] = static_cast<T>(args.exclusive ? before : value);
        }
      }
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
}  // namespace operations

}  // namespace tuff
