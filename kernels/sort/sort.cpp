// Sorting: argument check and reference implementation.
#include "kernels/sort/sort.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

#include "kernels/common/check.hpp"
#include "kernels/common/describe.hpp"
#include "kernels/common/elements.hpp"

namespace tuff {
namespace {

void check_sort(const SortArgs& args) {
  check_known_type(args.dtype, "dtype");
  check_type(args.dtype, kRealTypes, "sort");
  check_known_type(args.index_type, "index_type");
  constexpr ElementTypes kIndexTypes = {TUFF_I32, TUFF_U32, TUFF_I64, TUFF_U64};
  if (!kIndexTypes.has(args.index_type)) {
    fail(TUFF_ERROR_UNSUPPORTED, "index_type is {}, needs {}", dtype_name(args.index_type), names_of(kIndexTypes));
  }
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  require(args.k <= view.axis, "k is {}, at most shape[{}]={}", args.k, args.axis, view.axis);
  require(args.indices == nullptr || args.index_type != TUFF_I32 || view.axis <= uint64_t{1} << 31,
          "index_type is i32, and shape[{}]={} has places beyond 2^31 - 1", args.axis, view.axis);
  require(args.indices == nullptr || args.index_type != TUFF_U32 || view.axis <= uint64_t{1} << 32,
          "index_type is u32, and shape[{}]={} has places beyond 2^32 - 1", args.axis, view.axis);
  const uint64_t rows = checked_mul(view.outer, view.inner, "shape");
  const uint64_t inputs = checked_mul(rows, view.axis, "shape");
  const uint64_t results = rows * (args.k != 0 ? args.k : view.axis);
  if (inputs == 0) return;
  require(args.values != nullptr || args.indices != nullptr, "values and indices are both TUFF_NULL_HANDLE");
  const auto detail = [&] { return fmt::format("outer={} axis={} inner={}", view.outer, view.axis, view.inner); };
  check_operand(args.input, "input", inputs, args.dtype, detail);
  const uint64_t bytes = inputs * dtype_size(args.dtype), value_bytes = results * dtype_size(args.dtype);
  if (args.values != nullptr) {
    check_operand(args.values, "values", results, args.dtype, detail);
    check_overlap(args.values, "values", value_bytes, args.input, "input", bytes, false);
  }
  if (args.indices != nullptr) {
    const uint64_t index_bytes = checked_mul(results, dtype_size(args.index_type), "indices");
    check_operand(args.indices, "indices", results, args.index_type, detail);
    check_overlap(args.indices, "indices", index_bytes, args.input, "input", bytes, false);
    check_overlap(args.indices, "indices", index_bytes, args.values, "values", value_bytes, false);
  }
}

// Whether a comes before b. NaN comes after everything else.
template <typename T>
bool comes_before(T a, T b, bool descending) {
  if constexpr (std::is_integral_v<T>) {
    return descending ? b < a : a < b;
  } else {
    const double x{a}, y{b};
    if (std::isnan(x) || std::isnan(y)) return std::isnan(y) && !std::isnan(x);
    return descending ? y < x : x < y;
  }
}

CallText describe(const SortArgs& args) {
  return {fmt::format("{} {} axis {}{}{}{}", dtype_name(args.dtype), describe_sizes(args.shape, args.rank), args.axis,
                      args.descending ? " descending" : "", args.k != 0 ? fmt::format(" k={}", args.k) : "",
                      args.indices != nullptr ? " with indices" : ""),
          args.dtype};
}

}  // namespace

void host_sort(const SortArgs& args) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  const uint64_t k = args.k != 0 ? args.k : view.axis;
  if (view.outer == 0 || view.axis == 0 || view.inner == 0) return;
  with_any_type(args.dtype, [&]<typename T>(T) {
    const T* input = args.input->host<T>();
    std::vector<uint64_t> order(view.axis);
    for (uint64_t row = 0; row < view.outer * view.inner; ++row) {
      const uint64_t outer = row / view.inner, column = row % view.inner;
      const T* first = input + outer * view.axis * view.inner + column;
      std::iota(order.begin(), order.end(), uint64_t{0});
      std::stable_sort(order.begin(), order.end(), [&](uint64_t a, uint64_t b) {
        return comes_before(first[a * view.inner], first[b * view.inner], args.descending);
      });
      for (uint64_t j = 0; j < k; ++j) {
        const uint64_t at = (outer * k + j) * view.inner + column;
        if (args.values != nullptr) {
          std::memcpy(args.values->host<T>() + at, first + order[j] * view.inner, sizeof(T));
        }
        if (args.indices == nullptr) continue;
        if (dtype_size(args.index_type) == 8) {
          args.indices->host<uint64_t>()[at] = order[j];
        } else {
          args.indices->host<uint32_t>()[at] = static_cast<uint32_t>(order[j]);
        }
      }
    }
  });
}

namespace operations {
const OperationOf<SortArgs> sort =
    define_operation<SortArgs, check_sort, host_sort, record_sort, describe>("sort", kRealTypes, true);
}  // namespace operations

}  // namespace tuff
